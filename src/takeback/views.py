"""What people look at: status, diff, log and show, as values. None of them writes anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from . import filters, names, textdiff, trees
from .acts import Act, Undo, depends
from .effects import (
    FILE,
    KIND_NAMES,
    LINK,
    UNSEEN,
    Checkpoint,
    Effect,
    Entry,
    State,
    Takeback,
    text,
)
from .errors import Damaged, NotFound
from .history import History
from .index import Index
from .safefs import Folder as OpenFolder
from .safefs import components
from .textdiff import Hunk
from .trees import Difference, Ids
from .typed import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .workspace import Workspace

_LARGEST_DIFF = 4 << 20


# -- status ------------------------------------------------------------------


class Changed(NamedTuple):
    path: str
    change: str  # new, modified, deleted, mode, type
    actor: str  # empty: nobody known, so a person


class Status(NamedTuple):
    checkpoint: Checkpoint | None
    changes: tuple[Changed, ...]
    uncovered: tuple[tuple[str, str], ...]  # (path, why)
    lacking: tuple[tuple[str, str], ...]  # should be covered, and is not
    held_back: tuple[str, ...]  # the project's rules exclude them; covered until a person confirms
    ignored: tuple[str, ...]  # settings of the project that are not honoured
    interrupted: str
    store_path: str
    store_bytes: int
    outside: tuple[tuple[str, int], ...] = ()  # (state, how many) of effects outside the files that still matter
    due: int = 0  # mails whose window is over, and which nobody has released


def status(ws: Workspace) -> Status:
    look = ws.glance()
    history = ws.history()
    checkpoint = history.newest_named()
    changes: list[Changed] = []
    if checkpoint is not None:
        pending = {c.path for c in look.changes}
        for path, before, after in _since(ws, checkpoint, look.index):
            changes.append(
                Changed(text(path), kind_of_change(before, after), _who(history, path, checkpoint.seq, pending))
            )
    return Status(
        checkpoint,
        tuple(sorted(changes, key=lambda c: c.path)),
        tuple((text(p), why) for p, why in look.index.uncovered()),
        tuple((text(p), why) for p, why in look.lacking),
        tuple(map(text, look.held_back)),
        (*ws.settings.ignored, *filter(None, (ws.settings.broken, ws.observer.broken_rules))),
        ws.interrupted(),
        str(ws.store.folder or "memory"),
        ws.store.size(),
        outside := _standing(history),
        len(ws.due_mail()) if "held" in dict(outside) else 0,
    )


def _standing(history: History) -> tuple[tuple[str, int], ...]:
    """How many outside effects are live, held or in doubt."""
    states = [act.shown_state for act in history.ledger()] if history.acts else []
    return tuple((state, states.count(state)) for state in ("live", "held", "unknown") if state in states)


def _since(ws: Workspace, checkpoint: Checkpoint, index: Index) -> Iterable[Difference]:
    objects = {record.stored: record.object for record in index.folders.values()}
    then, now = Ids(*checkpoint.snapshot[:2]), index.folders[b""].ids
    for difference in trees.compare(ws.store.blobs.get, then, now, objects.__getitem__):
        if not any(s is not None and s.kind == UNSEEN for s in difference[1:]):
            yield difference


def _who(history: History, path: bytes, since: int, pending: set[bytes]) -> str:
    actors = {a for u in history.layers(path, since) for a in history.actors(u)}
    if path in pending:
        actors.add("")
    known = sorted(a for a in actors if a)
    return ", ".join([*known, *(["you"] if known and "" in actors else [])])


def kind_of_change(before: State, after: State) -> str:
    if before is None:
        return "new"
    if after is None:
        return "deleted"
    if before.kind != after.kind:
        return "type"
    if before.content == after.content and before.mode != after.mode:
        return "mode"
    return "modified"


# -- diff --------------------------------------------------------------------


class FileDiff(NamedTuple):
    path: str
    status: str  # new, modified, deleted, renamed, mode, type
    kind: str  # file, folder, symlink
    old_path: str = ""  # of a rename
    added: int = 0
    removed: int = 0
    hunks: tuple[Hunk, ...] = ()
    binary: bool = False
    note: str = ""  # mode change, link targets, too large to show
    old_size: int = 0
    new_size: int = 0


class Diff(NamedTuple):
    a: Checkpoint
    b: Checkpoint | None  # None: now
    files: tuple[FileDiff, ...]

    @property
    def added(self) -> int:
        return sum(f.added for f in self.files)

    @property
    def removed(self) -> int:
        return sum(f.removed for f in self.files)


def diff(ws: Workspace, a: str, b: str, paths: Sequence[bytes]) -> Diff:
    history = ws.history()
    if a:
        old = ws.find_checkpoint(a)
    elif (newest := history.newest_named()) is not None:
        old = newest
    else:
        raise NotFound("there is no checkpoint to compare with", "take one with takeback checkpoint")
    get = ws.store.blobs.get
    if b:
        new = ws.find_checkpoint(b)
        found = trees.compare(get, Ids(*old.snapshot[:2]), Ids(*new.snapshot[:2]))
        kept = [d for d in found if _within(d.path, paths) and not _unseen(d)]
        return Diff(old, new, tuple(file_diffs(kept, get, get)))
    look = ws.glance()
    with ws.open_tree() as tree:
        kept = [d for d in _since(ws, old, look.index) if _within(d.path, paths)]
        present = {d.path: d for d in kept}
        return Diff(old, None, tuple(file_diffs(list(present.values()), get, get, tree)))


def _within(path: bytes, wanted: Sequence[bytes]) -> bool:
    return not wanted or any(not w or path == w or path.startswith(w + b"/") for w in wanted)


def _unseen(difference: Difference) -> bool:
    return any(s is not None and s.kind == UNSEEN for s in difference[1:])


def file_diffs(
    found: Sequence[Difference],
    get_old: Callable[[bytes], bytes],
    get_new: Callable[[bytes], bytes],
    tree: OpenFolder | None = None,
) -> list[FileDiff]:
    """Differences as a person reads them: with renames paired and hunks counted."""

    def read_new(path: bytes, entry: Entry) -> bytes | None:
        if entry.size > _LARGEST_DIFF:
            return None
        if tree is None or entry.kind == LINK:
            return get_new(entry.content) if tree is None else _read_link(tree, path)
        return _read_present(tree, path)

    def read_old(entry: Entry) -> bytes | None:
        if entry.size > _LARGEST_DIFF:
            return None
        try:
            return get_old(entry.content)
        except Damaged:
            return None

    gone = {
        d.path: d.before
        for d in found
        if d.after is None and d.before is not None and d.before.kind == FILE and d.before.size
    }
    came = {
        d.path: d.after
        for d in found
        if d.before is None and d.after is not None and d.after.kind == FILE and d.after.size
    }
    renamed: dict[bytes, bytes] = {}
    if gone and came:
        path_of = {id(entry): path for path, entry in came.items()}
        renamed = textdiff.pair_renames(
            gone, came, lambda e: e.content, lambda e: read_new(path_of[id(e)], e) if id(e) in path_of else read_old(e)
        )
    moved = set(renamed.values())
    out = []
    for path, before, after in sorted(found):
        if path in moved and before is not None:
            continue
        if path in renamed:
            out.append(_file_diff(path, gone[renamed[path]], after, read_old, read_new, renamed[path]))
        else:
            out.append(_file_diff(path, before, after, read_old, read_new))
    return out


def _file_diff(
    path: bytes,
    before: State,
    after: State,
    read_old: Callable[[Entry], bytes | None],
    read_new: Callable[[bytes, Entry], bytes | None],
    old_path: bytes = b"",
) -> FileDiff:
    entry = after or before
    assert entry is not None
    kind = KIND_NAMES[entry.kind]
    status = "renamed" if old_path else kind_of_change(before, after)
    notes = []
    if before is not None and after is not None and before.mode != after.mode and after.kind != LINK:
        notes.append(f"mode {before.mode:04o} → {after.mode:04o}")
    if before is not None and after is not None and before.kind != after.kind:
        notes.append(f"{KIND_NAMES[before.kind]} → {KIND_NAMES[after.kind]}")
    if before is not None and after is not None and before.xattrs != after.xattrs:
        notes.append("extended attributes changed")
    if before is not None and after is not None and before.group != after.group:
        notes.append("hard links changed")
    old = read_old(before) if before is not None and before.kind in (FILE, LINK) else b""
    new = read_new(path, after) if after is not None and after.kind in (FILE, LINK) else b""
    sizes: dict[str, Any] = {"old_size": before.size if before else 0, "new_size": after.size if after else 0}
    if kind == "symlink":
        notes.append(" → ".join(text(t) for t in (old, new) if t))
        return FileDiff(text(path), status, kind, text(old_path), note="; ".join(notes), **sizes)
    if old is None or new is None:
        notes.append("too large to show" if max(sizes.values()) > _LARGEST_DIFF else "its bytes are not in the store")
        return FileDiff(text(path), status, kind, text(old_path), binary=True, note="; ".join(notes), **sizes)
    if kind == "folder" or old == new:
        return FileDiff(text(path), status, kind, text(old_path), note="; ".join(notes), **sizes)
    if textdiff.is_binary(old) or textdiff.is_binary(new):
        return FileDiff(text(path), status, kind, text(old_path), binary=True, note="; ".join(notes), **sizes)
    hunks = textdiff.hunks(old, new)
    added, removed = textdiff.count(hunks)
    return FileDiff(text(path), status, kind, text(old_path), added, removed, hunks, False, "; ".join(notes), **sizes)


def _read_present(tree: OpenFolder, path: bytes) -> bytes | None:
    import os

    parts = components(path)
    try:
        with tree.descend(parts[:-1]) as here:
            fd = here.open_read(parts[-1])
            with os.fdopen(fd, "rb") as file:
                return file.read(_LARGEST_DIFF + 1)
    except OSError:
        return None


def _read_link(tree: OpenFolder, path: bytes) -> bytes | None:
    parts = components(path)
    try:
        with tree.descend(parts[:-1]) as here:
            return here.readlink(parts[-1])
    except OSError:
        return None


# -- log and show ------------------------------------------------------------


class LogRow(NamedTuple):
    """One line of the log. `verdict` is how well it could be taken back; `live` whether it still stands."""

    id: str
    kind: str  # checkpoint, effect, takeback
    number: int
    label: str
    at: float
    actor: str
    summary: str
    live: bool
    paths: tuple[str, ...]
    domain: str = "files"
    verdict: str = "exact"
    named: bool = False
    pinned: bool = False
    partial: bool = False
    short: int = 8  # letters that make the id unique
    state: str = ""  # live or undone; of an outside effect also failed, unknown, held or irreversible


def log(ws: Workspace, filter: str = "") -> list[LogRow]:
    history = ws.history()
    wanted = filters.parse(filter)
    now = ws.clock()
    lengths = names.short_ids(history)
    acts = {act.id: act for act in history.ledger()}
    rows = [_checkpoint_row(c, history, lengths) for c in history.checkpoints]
    rows += [
        _act_row(acts[e.id], history, lengths) if e.id in acts else _effect_row(e, history, lengths)
        for e in history.effects
        if not e.takeback and e.changes
    ]
    rows += [_takeback_row(t, history, lengths) for t in history.takebacks.values()]
    rows.sort(key=lambda r: -r.number)
    return [row for row in rows if wanted.matches(row, now)]


def _checkpoint_row(c: Checkpoint, history: History, lengths: dict[str, int]) -> LogRow:
    summary = f"{c.snapshot.files:,} path{'s' * (c.snapshot.files != 1)}" + (
        f", {len(c.partial)} not captured" if c.partial else ""
    )
    return LogRow(
        c.id, "checkpoint", c.number, c.label, c.at, c.actor, summary, True, (),
        named=c.named, pinned=c.id in history.pins, partial=bool(c.partial), short=lengths[c.id],
    )  # fmt: skip


def _effect_row(e: Effect, history: History, lengths: dict[str, int]) -> LogRow:
    paths = tuple(text(p) for p in sorted(e.changes))
    live = any((e.seq, p) in history.live for p in e.changes)
    actor = ", ".join(sorted(e.actors))
    return LogRow(
        e.id, "effect", history.numbers[e.id], "", e.at, actor, e.summary or summarise(e.changes.values()), live, paths,
        e.domain, e.verdict, short=lengths[e.id], state="live" if live else "undone",
    )  # fmt: skip


def _act_row(act: Act, history: History, lengths: dict[str, int]) -> LogRow:
    live = (act.seq, act.path) in history.live
    return LogRow(
        act.id, "effect", history.numbers[act.id], "", act.at, act.by.get("actor", ""), act.summary, live,
        (act.target,) if act.target else (), act.domain, act.verdict, short=lengths[act.id], state=act.shown_state,
    )  # fmt: skip


def _takeback_row(t: Takeback, history: History, lengths: dict[str, int]) -> LogRow:
    names_of = {text(u.path) for u in history.units(t.rows)}
    beyond = names_of & history.acts.keys()
    paths = tuple(sorted(names_of - beyond))
    what = f"{t.verb} to {t.label}" if t.verb in ("rollback", "restore") and t.label else t.verb
    counted = [f"{len(paths)} path{'s' * (len(paths) != 1)}"] if paths else []
    counted += [f"{len(beyond)} outside the files"] if beyond else []
    summary = f"{what}: {', '.join(counted) or 'kept everything'}" + (", interrupted" if t.interrupted else "")
    standing = t.id in history.standing
    targets = tuple(sorted({history.acts[id].target for id in beyond} - {""}))
    return LogRow(
        t.id, "takeback", history.numbers[t.id], "", t.at, "", summary, standing, (*paths, *targets),
        verdict="exact", short=lengths[t.id], state="live" if standing else "undone",
    )  # fmt: skip


def summarise(changes: Iterable[Any]) -> str:
    """'3 modified, 1 deleted: src/auth.py, …'"""
    counts: dict[str, int] = {}
    first: list[str] = []
    for change in sorted(changes):
        kind = kind_of_change(change.before, change.after)
        counts[kind] = counts.get(kind, 0) + 1
        if len(first) < 4:
            first.append(text(change.path))
    total = sum(counts.values())
    listed = ", ".join(first[:3]) + (", …" if total > 3 else "")
    return ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())) + f": {listed}"


class Shown(NamedTuple):
    """One entry of the log in full."""

    row: LogRow
    files: tuple[FileDiff, ...] = ()
    partial: tuple[tuple[str, str], ...] = ()
    took: tuple[tuple[str, str], ...] = ()  # (path, id of the effect it took)
    kept: tuple[tuple[str, str], ...] = ()
    undone_by: tuple[str, ...] = ()  # ids of take-backs that took it
    tree: tuple[tuple[str, str, int, int], ...] = ()  # (path, kind, mode, size) of a checkpoint
    act: Act | None = None  # an effect outside the files
    inverse: str = ""  # what takes it back, exactly as it would be sent or run
    undos: tuple[Undo, ...] = ()  # attempts at that, oldest first
    stands_on: tuple[str, ...] = ()  # ids of older effects that it depends on
    carries: tuple[str, ...] = ()  # ids of later live ones that depend on it
    outside: frozenset[str] = frozenset()  # ids, among those it took or kept, of effects outside the files


def show(ws: Workspace, name: str) -> Shown:
    history = ws.history()
    found = names.resolve(history, name)
    row = next(r for r in log(ws) if r.id == found.id)
    get = ws.store.blobs.get
    if found.kind == "checkpoint":
        checkpoint = ws.find_checkpoint(found.id)
        tree = tuple((text(p), KIND_NAMES[e.kind], e.mode, e.size) for p, e in trees.entries(get, checkpoint.snapshot))
        return Shown(row, partial=checkpoint.partial, tree=tree)
    if found.id in history.acts:
        return _show_act(ws, row, next(act for act in history.ledger() if act.id == found.id))
    if found.kind == "effect":
        effect = next(e for e in history.effects if e.id == found.id)
        changes = [Difference(c.path, c.before, c.after) for c in effect.changes.values()]
        by = {e.takeback for e in history.effects if e.takeback for c in e.changes.values() if effect.seq in c.took}
        return Shown(
            row, tuple(file_diffs([c for c in changes if not _unseen(c)], get, get)), undone_by=tuple(sorted(by))
        )
    takeback = history.takebacks[found.id]
    rows = [history.by_seq[seq] for seq in takeback.rows]
    changes = [Difference(c.path, c.before, c.after) for e in rows if e.domain == "files" for c in e.changes.values()]
    took = [(_called(history, c.path), _id_at(history, s)) for e in rows for c in e.changes.values() for s in c.took]
    kept = [(_called(history, u.path), _id_at(history, u.seq)) for u in sorted(takeback.kept)]
    diffs = tuple(file_diffs([c for c in changes if not _unseen(c)], get, get))
    undos = tuple(u for u in history.undos.values() if u.takeback == takeback.id)
    outside = frozenset(id for _, id in [*took, *kept] if id in history.acts)
    return Shown(row, diffs, took=tuple(took), kept=tuple(kept), undos=undos, outside=outside)


def _show_act(ws: Workspace, row: LogRow, act: Act) -> Shown:
    history = ws.history()
    inverse = ws.describe(act)
    older = (a.id for a in history.acts.values() if a.seq < act.seq and depends(act, a))
    newer = (a.id for a in history.live_acts if a.seq > act.seq and depends(a, act))
    undos = tuple(u for u in history.undos.values() if u.act == act.id)
    by = (act.undone_by,) if act.undone_by else ()
    return Shown(row, undone_by=by, act=act, inverse=inverse, undos=undos, stands_on=tuple(older), carries=tuple(newer))


def _called(history: History, path: bytes) -> str:
    """A path, or what an outside effect did."""
    act = history.acts.get(text(path))
    return text(path) if act is None else act.summary


def _id_at(history: History, seq: int) -> str:
    effect = history.by_seq.get(seq)
    return "" if effect is None else effect.takeback or effect.id
