"""What people look at: status, diff, log and show, as values. None of them writes anything."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.apply import results
from takeback.care import budget
from takeback.domains.git import repository
from takeback.domains.git.repository import amount
from takeback.errors import Damaged, NotFound
from takeback.journal import filters, names
from takeback.journal.brackets import AgentTurn, Owners
from takeback.journal.history import History
from takeback.look.known_tree import Index
from takeback.model.effects import (
    FILE,
    IRREVERSIBLE,
    KEPT,
    KIND_NAMES,
    LINK,
    UNCERTAIN,
    UNSEEN,
    Abandoned,
    Change,
    Checkpoint,
    Effect,
    Entry,
    Result,
    State,
    Takeback,
    Track,
    Turn,
    Unit,
    domain_of,
    raw,
    same,
    text,
    thread_of,
)
from takeback.model.outside import Act, Stopped, Undo, depends
from takeback.plan.requests import find_point, state_at
from takeback.store import folder_objects
from takeback.store.folder_objects import Difference, Ids
from takeback.system.safefs import Folder as OpenFolder
from takeback.system.safefs import components
from takeback.text import linediff
from takeback.text.linediff import Hunk

from . import turns
from .turns import CallSeen, TurnSeen

if TYPE_CHECKING:
    from takeback.care.budget import Standing
    from takeback.domains.git.look import Seen
    from takeback.look.scan import Look
    from takeback.workspace import Workspace

_LARGEST_DIFF = 4 << 20


# -- status ------------------------------------------------------------------


class Changed(NamedTuple):
    path: str
    change: str  # new, modified, deleted, mode, type
    actor: str  # empty: nobody known, so a person
    turns: tuple[str, ...] = ()  # ids of the agents' turns that changed it
    uncertain: bool = False  # whether they did nobody knows
    takebacks: tuple[str, ...] = ()  # ids of the take-backs that changed it: whoever asked for them did
    brought_back: tuple[str, ...] = ()  # of these, those that brought work back: it is whose it was


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
    git: tuple[str, ...] = ()  # HEAD, refs, entries of the index and stashes that differ since then
    turns: tuple[TurnSeen, ...] = ()  # of agents, whose work shows since then, newest first
    at_work: tuple[CallSeen, ...] = ()  # agents' calls that nobody has said are over
    state: tuple[tuple[str, int], ...] = ()  # threads that differ since then, by how many state checkpoints; 0: gone
    budget: Standing | None = None  # how what is kept stands against the settings
    stopped: bool = False  # what was interrupted, a person stopped
    under_way: str = ""  # the take-back that another process is at: what changed is in between until it ends


def status(ws: Workspace) -> Status:
    under_way = ws.under_way()  # asked first: killed a moment later, it is told as interrupted
    look = ws.glance()
    history = ws.history()
    checkpoint = history.here
    changes: list[Changed] = []
    if checkpoint is not None:
        pending = {c.path for c in look.changes}
        for path, before, after in _since(ws, checkpoint, look.index):
            shown = _standing_of(history, history.layers(path, checkpoint.seq))
            new = look.whose.get(path, Owners()) if path in pending else None  # as it would be journaled now
            work = [each for unit in shown for each in history.work_of(unit)]
            whose = {turn for unit in work for turn in history.by_seq[unit.seq].turns}
            asked = tuple(t.id for t in turns.known(history, whose.union(new.turns if new else ())))
            unsure = any(unit.seq in history.uncertain_rows for unit in work) or bool(new and new.uncertain)
            who = _who(history, work, new)
            by = [(id, unit) for unit in shown if (id := history.by_seq[unit.seq].takeback)]
            back = tuple(dict.fromkeys(id for id, unit in by if history.brings_back(unit)))
            took = tuple(dict.fromkeys(id for id, _ in by))
            changes.append(Changed(text(path), kind_of_change(before, after), who, asked, unsure, took, back))
    return Status(
        checkpoint,
        tuple(sorted(changes, key=lambda c: c.path)),
        (*((text(p), why) for p, why in look.index.uncovered()), *_not_in_git(ws, look)),
        tuple((text(p), why) for p, why in look.lacking),
        tuple(map(text, look.held_back)),
        (*ws.settings.ignored, *filter(None, (ws.settings.broken, ws.observer.broken_rules))),
        ws.interrupted(),
        str(ws.store.folder or "memory"),
        ws.store.size(),
        outside := _standing(history),
        len(ws.due_mail()) if "held" in dict(outside) else 0,
        _in_git(history, checkpoint, look),
        _seen(ws, history, {id for c in changes for id in c.turns}, count=0),
        tuple(turns.at_work(history, ws.observer.end_of)),
        tuple(_in_threads(ws, checkpoint)),
        budget.standing(ws),
        ws.was_stopped(),
        under_way,
    )


def _standing_of(history: History, layers: Sequence[Unit]) -> list[Unit]:
    """Of what shows of a path, the work that stands: neither what a merge took, nor the merge, says whose it is."""
    live, mine = [unit for unit in layers if unit in history.live], {unit.seq for unit in layers}

    def is_merge(unit: Unit) -> bool:
        by, took = history.by_seq[unit.seq].takeback, history.change(unit).took
        is_marked = by in history.takebacks and history.takebacks[by].request.markers
        return bool(by and took) and mine.issuperset(took) and not is_marked

    return [unit for unit in live if not is_merge(unit)] or live


def _standing(history: History) -> tuple[tuple[str, int], ...]:
    """How many outside effects are live, held or in doubt."""
    states = [act.shown_state for act in history.ledger()] if history.acts else []
    return tuple((state, states.count(state)) for state in ("live", "held", "sending", "unknown") if state in states)


def _since(ws: Workspace, checkpoint: Checkpoint, index: Index) -> Iterable[Difference]:
    records = {record.stored: record for record in index.folders.values()}
    then, now = Ids(*checkpoint.snapshot[:2]), index.folders[b""].ids
    for difference in folder_objects.compare(ws.store.blobs.get, then, now, lambda stored: records[stored].object):
        if not any(s is not None and s.kind == UNSEEN for s in difference[1:]):
            yield difference


def _seen(ws: Workspace, history: History, ids: Collection[str], **how: int) -> tuple[TurnSeen, ...]:
    """Agents' turns, newest first."""
    found = [asked for asked in history.agent_turns.values() if asked.id in ids]
    return tuple(turns.turns_seen(history, reversed(found), ws.store.blobs.get, **how))


def _not_in_git(ws: Workspace, look: Look) -> list[tuple[str, str]]:
    return [(".git", why) for why in git_not_covered(ws, look.git)] if look.git is not None else []


def git_not_covered(ws: Workspace, seen: Seen) -> tuple[str, ...]:
    """What of git is not recorded here, in words, with the command that would change that."""
    top = "" if seen.known.is_there else repository.above(str(ws.root))
    if not top:
        return seen.not_covered
    return (f"not recorded, as this folder lies in the repository {top}; takeback protect there records it",)


def _in_git(history: History, checkpoint: Checkpoint | None, look: Look) -> tuple[str, ...]:
    """Paths of the repository whose changes show since a checkpoint, with those that nobody has journaled yet."""
    if checkpoint is None or look.git is None:
        return ()
    moved = {p for e in history.effects if e.domain == "git" and e.seq > checkpoint.seq for p in e.changes}
    found = {path for path in moved if history.layers(path, checkpoint.seq)} | {c.path for c in look.git.changes}
    return tuple(text(path) for path in sorted(found))


def _in_threads(ws: Workspace, checkpoint: Checkpoint | None) -> Iterable[tuple[str, int]]:
    """Threads that have moved since a checkpoint, and how many state checkpoints each is ahead."""
    if checkpoint is None or not ws.observer.has_threads:
        return
    for thread in sorted(ws.threads.moved(checkpoint.seq)):
        try:
            now, then = ws.threads.document(thread), ws.threads.document(thread, checkpoint.seq)
        except Damaged:  # a state that cannot be read is verify's to name; that the thread moved is still true
            now, then = b"?", b""
        if now != then:
            yield thread, ws.threads.ahead(thread, checkpoint.seq) if now else 0


def _who(history: History, work: Iterable[Unit], pending: Owners | None) -> str:
    """Who made what shows, with those of what is not journaled yet."""
    actors = {a for u in work for a in history.actors(u)}
    if pending is not None:
        actors |= {turn.actor for turn in pending.turns} or {""}
    known = sorted(a for a in actors if a)
    return ", ".join([*known, *(["unattributed"] if known and "" in actors else [])])


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
    a_moment: str = ""  # where that is no checkpoint itself: which moment after it
    b_moment: str = ""

    @property
    def added(self) -> int:
        return sum(f.added for f in self.files)

    @property
    def removed(self) -> int:
        return sum(f.removed for f in self.files)


def diff(ws: Workspace, a: str, b: str, paths: Sequence[bytes]) -> Diff:
    history = ws.history()
    start = a or (history.here.id if history.here is not None else "")
    if not start:
        raise NotFound("there is no checkpoint to compare with", "take one with takeback checkpoint")
    old = find_point(history, start, ws.is_path)
    get = ws.store.blobs.get

    def then(path: bytes) -> State:
        return state_at(get, old, path)

    if b:
        new = find_point(history, b, ws.is_path)
        found = folder_objects.compare(get, Ids(*old.checkpoint.snapshot[:2]), Ids(*new.checkpoint.snapshot[:2]))
        changed = _moved(found, {*old.changed, *new.changed}, then, lambda path: state_at(get, new, path))
        kept = [d for d in changed if _within(d.path, paths) and not _unseen(d)]
        return Diff(old.checkpoint, new.checkpoint, tuple(file_diffs(kept, get, get)), old.moment, new.moment)
    look = ws.glance()
    with ws.open_tree() as tree:
        changed = _moved(_since(ws, old.checkpoint, look.index), old.changed, then, look.index.state)
        kept = [d for d in changed if _within(d.path, paths) and not _unseen(d)]
        return Diff(old.checkpoint, None, tuple(file_diffs(kept, get, get, tree)), old.moment)


def _moved(
    found: Iterable[Difference],
    changed: Collection[bytes],
    before: Callable[[bytes], State],
    after: Callable[[bytes], State],
) -> list[Difference]:
    """Differences of checkpoints as those of moments after them, which differ in these paths."""
    if not changed:
        return list(found)
    moved = (Difference(path, before(path), after(path)) for path in changed)
    return sorted(
        [*(d for d in found if d.path not in changed), *(d for d in moved if not same(d.before, d.after))],
        key=lambda d: d.path,
    )


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
        return read_present(tree, path)

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
        renamed = linediff.pair_renames(
            gone, came, lambda e: e.content, lambda e: read_new(path_of[id(e)], e) if id(e) in path_of else read_old(e)
        )
    moved = set(renamed.values())
    out = []
    for path, before, after in sorted(found, key=lambda difference: difference[0]):
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
    if linediff.is_binary(old) or linediff.is_binary(new):
        return FileDiff(text(path), status, kind, text(old_path), binary=True, note="; ".join(notes), **sizes)
    hunks = linediff.hunks(old, new)
    added, removed = linediff.count(hunks)
    return FileDiff(text(path), status, kind, text(old_path), added, removed, hunks, False, "; ".join(notes), **sizes)


def read_present(tree: OpenFolder, path: bytes) -> bytes | None:
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
    kind: str  # checkpoint, effect, takeback, gate (a call that was stopped); of `show` also turn and call
    number: int  # of a checkpoint; 0 of all else, which goes by its id
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
    turns: tuple[str, ...] = ()  # ids of the agents' turns it belongs to; several where it is shared
    sessions: tuple[str, ...] = ()  # the agents' own names of theirs
    calls: tuple[str, ...] = ()  # ids of the calls it was found in
    prompt: str = ""  # what the agent was asked
    uncertain: bool = False  # whether its call did it is not known
    domains: tuple[str, ...] = ()  # of a take-back: each that it reached; `domain` is the first
    seq: int = 0  # its place in the journal
    redone: str = ""  # of a take-back that does not stand whole: what became of it


def log(ws: Workspace, filter: str = "", gate: bool = False, history: History | None = None) -> list[LogRow]:
    """Checkpoints, effects and take-backs; asked for, also what the gate stopped, and take-backs gone back from. As of
    now, unless a history is given."""
    history = history or ws.history()
    wanted = filters.parse(filter)
    now = ws.clock()
    lengths = names.short_ids(history)
    acts = {act.id: act for act in history.ledger()}
    rows = [_checkpoint_row(c, history, lengths) for c in history.checkpoints]
    rows += [
        _act_row(acts[e.id], e, history, lengths) if e.id in acts else _effect_row(e, history, lengths)
        for e in history.all_effects
        if not e.takeback and e.changes
    ]
    cut_off = any(t.interrupted for t in history.takebacks.values()) and bool(ws.interrupted())
    rows += [_takeback_row(t, history, lengths, cut_off) for t in history.takebacks.values()]
    rows += _records(ws, history) if gate else []
    rows.sort(key=lambda r: -r.seq)
    return [row for row in rows if wanted.matches(row, now)]


def _records(ws: Workspace, history: History) -> list[LogRow]:
    """What was decided, and changed nothing that stands."""
    gone = [a for a in history.abandoned.values() if a.takeback.id not in history.takebacks]
    return [
        *(_gate_row(call, history) for call in ws.stopped_calls().values()),
        *(_abandoned_row(each, history) for each in gone),
    ]


def _abandoned_row(found: Abandoned, history: History) -> LogRow:
    """A take-back that was interrupted, and then gone back from."""
    begun, left = found.takeback, {path for path, _ in found.left}
    back = [_called(history, path) for path in found.paths if path not in left]
    told = f"put back as before it: {results.listed(back)}" if back else "nothing of it had begun" if not left else ""
    kept = f"not put back: {results.listed(_called(history, path) for path, _ in found.left)}" if left else ""
    summary = f"{_asked_for(begun)}: {'; '.join(filter(None, (told, kept)))}"
    paths = tuple(text(path) for path in found.paths if text(path) not in history.acts)
    row = LogRow(
        begun.id, "takeback", 0, "", begun.at, "", summary, False, paths,
        state="undone", seq=begun.seq, redone=GONE_BACK_FROM,
    )  # fmt: skip
    return _asked_by(row, begun, history)


def _gate_row(call: Stopped, history: History) -> LogRow:
    """A call of an agent that was asked about or refused, what a person said to that, and how one lets it pass."""
    summary = f"{call.told}: {call.summary}" + (f" ({call.way})" if call.way else "")
    row = LogRow(
        call.id, "gate", 0, "", call.at, call.agent, summary, True, (),
        "gate", IRREVERSIBLE, state=call.state, seq=call.seq,
    )  # fmt: skip
    return _asked(row, _turn_of_stopped(call, history))._replace(sessions=(call.session,))


def _turn_of_stopped(call: Stopped, history: History) -> list[AgentTurn]:
    """The turn that a call was stopped in, if that is known."""
    asked = (t for t in history.agent_turns.values() if t.seq < call.seq and t.caller.session == call.session)
    return [t for t in asked if t.caller.agent == call.agent][-1:]


def _checkpoint_row(c: Checkpoint, history: History, lengths: dict[str, int]) -> LogRow:
    summary = f"{c.snapshot.files:,} path{'s' * (c.snapshot.files != 1)}" + (
        f", {len(c.partial)} not captured" if c.partial else ""
    )
    row = LogRow(
        c.id, "checkpoint", c.number, c.label, c.at, c.actor or c.agent, summary, True, (),
        named=c.named, pinned=c.id in history.pins, partial=bool(c.partial), short=lengths[c.id], seq=c.seq,
    )  # fmt: skip
    return _asked(row, turns.known(history, [Turn(c.agent, c.turn)]))


def _asked(row: LogRow, found: Sequence[AgentTurn], calls: tuple[str, ...] = ()) -> LogRow:
    """A row with the agents' turns and calls it belongs to."""
    sessions = tuple(dict.fromkeys(asked.caller.session for asked in found))
    prompt = " | ".join(asked.prompt for asked in found if asked.prompt)
    return row._replace(turns=tuple(asked.id for asked in found), sessions=sessions, calls=calls, prompt=prompt)


def _track_row(track: Track) -> LogRow:
    paths = tuple(map(text, track.paths))
    return LogRow(track.id, "track", 0, "", track.at, "", f"tracked {', '.join(paths[:3])}", True, paths)


def _effect_row(e: Effect, history: History, lengths: dict[str, int]) -> LogRow:
    paths = tuple(text(p) for p in sorted(e.changes))
    live = any((e.seq, p) in history.live for p in e.changes)
    actor = ", ".join(sorted(e.actors))
    row = LogRow(
        e.id, "effect", 0, "", e.at, actor, e.summary or _told(e), live, paths,
        e.domain, UNCERTAIN if turns.is_uncertain(e) else e.verdict, short=lengths[e.id],
        state="live" if live else "undone", uncertain=e.uncertain, seq=e.seq,
    )  # fmt: skip
    return _asked(row, turns.of_effect(history, e), e.calls)


def _act_row(act: Act, effect: Effect, history: History, lengths: dict[str, int]) -> LogRow:
    live = (act.seq, act.path) in history.live
    row = LogRow(
        act.id, "effect", 0, "", act.at, act.by.get("actor", ""), act.summary, live,
        (act.target,) if act.target else (), act.domain, act.verdict, short=lengths[act.id], state=act.shown_state,
        uncertain=act.is_of_unknown, seq=act.seq,
    )  # fmt: skip
    return _asked(row, turns.of_effect(history, effect), effect.calls)


def _takeback_row(t: Takeback, history: History, lengths: dict[str, int], cut_off: bool) -> LogRow:
    changes = [change for seq in t.rows if seq in history.by_seq for change in history.by_seq[seq].changes.values()]
    names_of = {text(change.path) for change in changes if change.does}
    beyond = names_of & history.acts.keys()
    paths = tuple(sorted(names_of - beyond))
    lie_in = Counter(domain_of(raw(path)) for path in paths)
    threads = lie_in["state"]
    files = len(paths) - threads
    counted = [f"{files} path{'s' * (files != 1)}"] if files else []
    counted += [f"{threads} thread{'s' * (threads != 1)}"] if threads else []
    counted += [f"{len(beyond)} outside the files"] if beyond else []
    missed = Counter(each.result for each in t.missed if each.result != KEPT)
    none = "nothing done" if missed else "kept everything" if t.kept or not changes else "all was already as it was"
    told = ", ".join(counted) or none
    told += "".join(f"; {missed[result]} {result}" for result in sorted(missed))
    if t.interrupted:  # what it has done so far is known when it is finished
        told = "interrupted (takeback resume finishes it)" if cut_off else "not finished"
    elif t.id in history.abandoned:
        told += "; interrupted then, and the rest was gone back from"
    whose = turns.called(history, turns.meant(history, t.request))
    summary = " · ".join(filter(None, (f"{_asked_for(t)}: {told}", whose)))
    redone = "" if t.interrupted or t.id in history.standing else _redone(t, history)
    standing = redone in ("", KEPT_BY_REDO, IN_PART)
    targets = tuple(sorted({history.acts[id].target for id in beyond} - {""}))
    domains = *sorted(d for d in lie_in if lie_in[d]), *sorted({history.acts[id].domain for id in beyond})
    row = LogRow(
        t.id, "takeback", 0, "", t.at, "", summary, standing, (*paths, *targets),
        domains[0] if domains else "files", "exact", short=lengths[t.id], state="live" if standing else "undone",
        domains=domains, seq=t.seq, redone=redone,
    )  # fmt: skip
    return _asked_by(row, t, history)


def _asked_by(row: LogRow, t: Takeback, history: History) -> LogRow:
    """A take-back with the agent that asked for it, where one did."""
    actor, turn, call = (t.by.get(name, "") for name in ("actor", "turn", "call"))
    calls = (call,) if call in history.brackets else ()
    return _asked(row._replace(actor=actor), turns.known(history, [Turn(actor, turn)]), calls)


GONE_BACK_FROM = "interrupted, and gone back from"
KEPT_BY_REDO, IN_PART = "not redone: kept by a redo", "redone in part"


def _asked_for(t: Takeback) -> str:
    """'rollback to start'"""
    joined = {"rollback": " to ", "restore": " from "}.get(t.verb, "") if t.label else ""
    return f"{t.verb}{joined}{t.label}" if joined else t.verb


def _redone(t: Takeback, history: History) -> str:
    """What became of a take-back that a redo addressed, or that something else took."""
    units = history.units(t.rows)
    if not units:
        return "stepped over by a redo"
    if live := sum(unit in history.live for unit in units):
        return KEPT_BY_REDO if live == len(units) else IN_PART
    if any(t.id in other.request.takebacks for other in history.standing.values()):
        return "redone"
    return "taken back"


def _told(e: Effect) -> str:
    if e.domain == "state":
        return ", ".join(f"thread {thread_of(path)}" for path in sorted(e.changes))
    return amount(e.changes) if e.domain == "git" else summarise(e.changes.values())


def summarise(changes: Iterable[Any]) -> str:
    """'3 modified, 1 deleted: src/auth.py, …'"""
    counts: dict[str, int] = {}
    first: list[str] = []
    for change in sorted(changes, key=lambda change: change.path):
        kind = kind_of_change(change.before, change.after)
        counts[kind] = counts.get(kind, 0) + 1
        if len(first) < 4:
            first.append(text(change.path))
    total = sum(counts.values())
    listed = ", ".join(first[:3]) + (", …" if total > 3 else "")
    return ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())) + f": {listed}"


def ties(history: History) -> dict[str, list[str]]:
    """What each take-back took, by ids of the log: effects, or take-backs that it brought back."""
    found: dict[str, dict[str, None]] = {}
    for effect in history.effects:
        for change in effect.changes.values() if effect.takeback else ():
            for seq in change.took:
                if id := _id_at(history, seq):
                    found.setdefault(effect.takeback, {})[id] = None
    return {id: list(took) for id, took in found.items()}


class Missed(NamedTuple):
    """What a take-back was to do, and did not."""

    path: str  # or what an effect outside the files did
    effect: str  # its id, if it is one
    result: str  # kept, failed or unknown
    why: str  # with the command to go on with, where it still stands


class Shown(NamedTuple):
    """One entry of the log in full."""

    row: LogRow
    files: tuple[FileDiff, ...] = ()
    partial: tuple[tuple[str, str], ...] = ()
    took: tuple[tuple[str, str], ...] = ()  # (path, id of the effect it took)
    already: tuple[tuple[str, str], ...] = ()  # the same of what it went over: that was as it should be
    kept: tuple[tuple[str, str], ...] = ()
    undone_by: tuple[str, ...] = ()  # ids of take-backs that took it
    tree: tuple[tuple[str, str, int, int], ...] = ()  # (path, kind, mode, size) of a checkpoint
    act: Act | None = None  # an effect outside the files
    inverse: str = ""  # what takes it back, exactly as it would be sent or run
    undos: tuple[Undo, ...] = ()  # attempts at that, oldest first
    stands_on: tuple[str, ...] = ()  # ids of older effects that it depends on
    carries: tuple[str, ...] = ()  # ids of later live ones that depend on it
    outside: frozenset[str] = frozenset()  # ids, among those it took or kept, of effects outside the files
    takebacks: frozenset[str] = frozenset()  # and of take-backs
    turn: TurnSeen | None = None  # of an agent; of what belongs to one, that one
    calls: tuple[CallSeen, ...] = ()  # of a turn; of what was found in some, these
    effects: tuple[LogRow, ...] = ()  # what was found in a turn or call, oldest first
    asked_for: tuple[LogRow, ...] = ()  # the take-backs that a turn or call asked for, oldest first
    refused: tuple[LogRow, ...] = ()  # of a turn, the calls that the gate refused before they began, oldest first
    threads: tuple[tuple[str, str, str], ...] = ()  # (thread, state checkpoint before, and after) that it moved
    more: int = 0  # paths that changed too, where only the first ones were asked for
    stopped: Stopped | None = None  # a call that the gate stopped
    abandoned: Abandoned | None = None  # a take-back that was interrupted, and gone back from
    missed: tuple[Missed, ...] = ()  # of a take-back


def show(ws: Workspace, name: str) -> Shown:
    rows = {row.id: row for row in log(ws)}
    try:
        named = names.resolve(ws.history(), name, is_path=ws.is_path)
    except NotFound:
        if (call := ws.stopped_call(name)) is not None:
            return Shown(_gate_row(call, ws.history()), stopped=call)
        if (gone := _abandoned(ws.history(), name)) is not None:
            return Shown(_abandoned_row(gone, ws.history()), abandoned=gone)
        if (undo := names.attempt_called(ws.history(), name)) is not None:
            return show(ws, undo.act)  # which tells of all attempts at it
        raise
    if named.kind == "checkpoint" and named.label == name:  # a prompt is the label of its checkpoint too
        turn = names.work(ws.history(), named)
        named = turn if turn.kind == "turn" else named
    found = show_named(ws, named, rows)
    return found._replace(tree=tuple(tree_of(ws, found.row.id))) if found.row.kind == "checkpoint" else found


def _abandoned(history: History, name: str) -> Abandoned | None:
    """The take-back whose id begins so; None where that is none, or several."""
    found = [gone for id, gone in history.abandoned.items() if name and id.startswith(name)]
    return found[0] if len(found) == 1 else None


def files_of(ws: Workspace, rows: Iterable[LogRow]) -> dict[str, tuple[FileDiff, ...]]:
    """What these effects and take-backs changed in files, by id."""
    history, get = ws.history(), ws.store.blobs.get
    by_id = {e.id: e for e in history.effects if not e.takeback}
    found: dict[str, tuple[FileDiff, ...]] = {}
    for row in rows:
        takeback = history.takebacks.get(row.id)
        parts = [history.by_seq[seq] for seq in takeback.rows] if takeback is not None else [by_id.get(row.id)]
        changes = [c for e in parts if e is not None and e.domain == "files" for c in e.changes.values()]
        found[row.id], _ = _first_diffs((Difference(c.path, c.before, c.after) for c in changes), get, None)
    return found


def tree_of(ws: Workspace, checkpoint: str) -> Iterable[tuple[str, str, int, int]]:
    """(path, kind, mode, size) of all that a checkpoint holds."""
    for path, entry in folder_objects.entries(ws.store.blobs.get, ws.find_checkpoint(checkpoint).snapshot):
        yield text(path), KIND_NAMES[entry.kind], entry.mode, entry.size


def show_named(ws: Workspace, found: names.Named, rows: Mapping[str, LogRow], most: int | None = None) -> Shown:
    """One entry, given the rows of the log by id; of its paths only the first `most` are compared. No tree."""
    history = ws.history()
    if found.kind in ("turn", "call"):
        return _show_work(ws, history, found, rows, most)
    if found.kind == "track":
        return Shown(_track_row(history.tracks[found.id]))
    row, get = rows[found.id], ws.store.blobs.get
    if found.kind == "checkpoint":
        return Shown(row, partial=ws.find_checkpoint(found.id).partial)
    if found.id in history.acts:
        shown = _show_act(ws, row, next(act for act in history.ledger() if act.id == found.id))
        return shown._replace(**_work_of(ws, history, row))
    if found.kind == "effect":
        effect = next(e for e in history.effects if e.id == found.id)
        changes = [Difference(c.path, c.before, c.after) for c in effect.changes.values()]
        by = {e.takeback for e in history.effects if e.takeback for c in e.changes.values() if effect.seq in c.took}
        if effect.domain == "state":
            moved = tuple(moved_threads(ws, changes))
            return Shown(row, undone_by=tuple(sorted(by)), threads=moved, **_work_of(ws, history, row))
        diffs, more = _first_diffs(changes, get, most)
        return Shown(row, diffs, undone_by=tuple(sorted(by)), more=more, **_work_of(ws, history, row))
    takeback = history.takebacks[found.id]
    parts = [history.by_seq[seq] for seq in takeback.rows]
    changes = [Difference(c.path, c.before, c.after) for e in parts if e.domain == "files" for c in e.changes.values()]
    steps = [
        ((_called(history, c.path), _id_at(history, s)), c) for e in parts for c in e.changes.values() for s in c.took
    ]
    took, already = [named for named, c in steps if c.does], [named for named, c in steps if not c.does]
    kept = [(_called(history, u.path), _id_at(history, u.seq)) for u in sorted(takeback.kept)]
    diffs, more = _first_diffs(changes, get, most)
    undos = tuple(u for u in history.undos.values() if u.takeback == takeback.id)
    outside, takebacks = (
        frozenset(id for _, id in [*took, *already, *kept] if id in known)
        for known in (history.acts, history.takebacks)
    )
    of_threads = [c for e in parts if e.domain == "state" for c in e.changes.values()]
    moved = tuple(moved_threads(ws, [Difference(c.path, c.before, c.after) for c in of_threads]))
    told: dict[str, Any] = {"took": tuple(took), "kept": tuple(kept), "undos": undos, "outside": outside}
    told["already"] = tuple(already)
    told["takebacks"], told["abandoned"] = takebacks, history.abandoned.get(takeback.id)
    acts = {act.path: act for act in history.ledger()} if takeback.missed else {}
    told["missed"] = tuple(_missed(history, each, acts.get(each.path)) for each in takeback.missed)
    return Shown(row, diffs, threads=moved, more=more, **told, **_work_of(ws, history, row))


def _first_diffs(
    changes: Iterable[Difference], get: Callable[[bytes], bytes], most: int | None
) -> tuple[tuple[FileDiff, ...], int]:
    """The differences of the first paths, and how many more there are."""
    seen = [c for c in changes if not _unseen(c) and not same(c.before, c.after)]  # else it was so already
    seen.sort(key=lambda c: c.path)  # a path may be there twice: the order of its changes stays
    return tuple(file_diffs(seen[:most], get, get)), len(seen) - len(seen[:most])


def moved_threads(ws: Workspace, changes: Iterable[Difference]) -> Iterable[tuple[str, str, str]]:
    """Each thread with the state checkpoints it stood at before and after; empty where it was not there, or pruned."""
    for path, *ends in changes:
        thread = thread_of(path)
        ids = []
        for end in ends:
            told = ws.threads.told_by(thread, ws.store.blobs.get(end.content)) if end is not None else None
            ids.append(max(told.values(), key=lambda s: (s.ns == "", s.seq)).id if told else "")
        yield thread, ids[0], ids[1]


def _show_work(
    ws: Workspace, history: History, found: names.Named, rows: Mapping[str, LogRow], most: int | None
) -> Shown:
    """An agent's turn, or one call of it, with what was found in it."""
    mine = set(history.rows_of_call(found.id, failed=True) or ())
    effects = [e for e in history.all_effects if e.id in mine and not e.takeback]
    refused: list[LogRow] = []
    if found.kind == "turn":
        asked = next(t for t in history.agent_turns.values() if t.id == found.id)
        stopped = (call for call in ws.stopped_calls().values() if not call.call)
        refused = [_gate_row(call, history) for call in stopped if asked in _turn_of_stopped(call, history)]
        calls = tuple(turns.calls_of(history, asked.turn))
        who, at, summary = asked.caller.agent, asked.at, asked.prompt
    else:
        calls = tuple(turns.calls_seen(history, [history.brackets[found.id]]))
        asked_then = history.agent_turns.get(history.brackets[found.id].turn)
        asked = asked_then or AgentTurn(0, calls[0].turn, calls[0].at, history.brackets[found.id].caller, "")
        who, at, summary = calls[0].agent, calls[0].at, calls[0].summary
    ids = dict.fromkeys([*(e.id for e in effects), *(id for call in calls for id in call.effects)])
    listed = sorted((rows[id] for id in ids if id in rows), key=lambda row: row.seq)
    happened = [row for row in listed if row.state != "failed"]
    live = not happened or any(row.live for row in happened)
    row = LogRow(
        found.id, found.kind, 0, "", at, who, summary, live, tuple(sorted({p for row in listed for p in row.paths})),
        state="live" if live else "undone", uncertain=any(row.uncertain for row in listed),
    )  # fmt: skip
    row = _asked(row, [asked], tuple(call.id for call in calls))
    get = ws.store.blobs.get
    by = {e.takeback for e in history.effects if e.takeback for c in e.changes.values() if _took(c, effects)}
    diffs, more = _first_diffs(turns.net(effects, "files", "git"), get, most)
    return Shown(
        row,
        diffs,
        undone_by=tuple(sorted(by)),
        more=more,
        turn=turns.turns_seen(history, [asked], get)[0],
        calls=calls,
        effects=tuple(listed),
        asked_for=tuple(rows[t.id] for t in turns.asked_for(history, found.id) if t.id in rows),
        refused=tuple(refused),
    )


def _took(change: Change, effects: Sequence[Effect]) -> bool:
    return any(e.seq in change.took and change.path in e.changes for e in effects)


def _work_of(ws: Workspace, history: History, row: LogRow) -> dict[str, Any]:
    """The turn and the calls that an effect belongs to."""
    seen = _seen(ws, history, row.turns)
    calls = turns.calls_seen(history, [history.brackets[id] for id in row.calls if id in history.brackets])
    return {"turn": seen[0] if len(seen) == 1 else None, "calls": tuple(calls)}


def turns_of(ws: Workspace, rows: Iterable[LogRow]) -> dict[str, TurnSeen]:
    """The agents' turns that rows of the log belong to, by id."""
    return {seen.id: seen for seen in _seen(ws, ws.history(), {id for row in rows for id in row.turns})}


def _show_act(ws: Workspace, row: LogRow, act: Act) -> Shown:
    history = ws.history()
    inverse = ws.describe(act)
    older = (a.id for a in history.acts.values() if depends(act, a))
    newer = (a.id for a in history.live_acts if depends(a, act))
    undos = tuple(u for u in history.undos.values() if u.act == act.id)
    by = (act.undone_by,) if act.undone_by else ()
    return Shown(row, undone_by=by, act=act, inverse=inverse, undos=undos, stands_on=tuple(older), carries=tuple(newer))


def _called(history: History, path: bytes) -> str:
    """A path, or what an outside effect did."""
    act = history.acts.get(text(path))
    return text(path) if act is None else act.summary


def _missed(history: History, found: Result, act: Act | None) -> Missed:
    if act is None:
        return Missed(text(found.path), "", found.result, found.note)
    stands = (act.seq, act.path) in history.live
    return Missed(act.summary, act.id, found.result, results.why_not(act, found) if stands else found.note)


def _id_at(history: History, seq: int) -> str:
    effect = history.by_seq.get(seq)
    return "" if effect is None else effect.takeback or effect.id
