"""Prune moves a horizon: what lies before it loses its bodies and bytes, and that is journaled.

Envelopes stay, so the chain still verifies. Pinned checkpoints keep their snapshot. The last checkpoint, anything an
interrupted take-back needs and, when it runs by itself, anything younger than a day never go. Only `everything` takes
pinned checkpoints and the last one too: the next one starts anew. Threads have no horizon in common: what the budget
of checkpoints and age leaves is counted for each of them, and the head of each stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from takeback.errors import NotFound, UsageError
from takeback.journal.history import History
from takeback.journal.journal import STATE_ROWS, New, Row, spans
from takeback.model.effects import STATES, text
from takeback.model.ids import new_id
from takeback.system.safefs import keys
from takeback.text.units import format_size
from takeback.threads import prune as thread_prune

from .reachability import needs

if TYPE_CHECKING:
    from takeback.model.thread_states import StateCheckpoint
    from takeback.workspace_locks import Guarded

YOUNG = 86_400.0  # seconds: what is younger is never pruned by itself
_FILE_ROWS = ("change", "note", "takeback", "intent", "outcome", "plan")
_KEPT_NOTES = ("pin", "unpin", "label", "repair", "cut", "gap", "resolve", "session")
_WORK_ROWS = ("turn", "open", "ask", "close")  # of agents: they go with what was done in them


@dataclass(frozen=True)
class Asked:
    keep: int | None = None  # newest checkpoints to keep
    older_than: float | None = None  # seconds
    max_bytes: int | None = None
    threads: bool = False  # of each thread as many states, and none older
    path: str = ""  # take this path's bytes out of every checkpoint
    everything: bool = False  # pinned ones and the last included
    dry_run: bool = False
    automatic: bool = False


@dataclass(frozen=True)
class Pruned:
    checkpoints: tuple[str, ...]  # ids that go
    rows: int
    freed: int  # bytes of the packs and large files; of a dry run what would be
    path_blobs: int = 0
    dry_run: bool = False
    note: str = ""
    also: tuple[str, ...] = ()  # other paths that hold the same bytes: theirs go too
    over: int = 0  # bytes that the store is still above its budget
    why_over: str = ""
    states: tuple[tuple[str, int], ...] = ()  # threads, and how many state checkpoints of each go


@dataclass(frozen=True)
class Going:
    """What goes: found once, and told by a dry run and by `status` as a prune does it."""

    horizon: int
    rows: tuple[Row, ...]  # that lose their bodies
    states: tuple[StateCheckpoint, ...]  # of threads

    @property
    def checkpoints(self) -> tuple[str, ...]:
        return tuple(row.id for row in self.rows if row.kind == "checkpoint")

    @property
    def threads(self) -> tuple[tuple[str, int], ...]:
        """Threads, and how many state checkpoints of each go."""
        return tuple(Counter(state.thread for state in self.states).items())


def budget_of(ws: Guarded, automatic: bool = False) -> Asked:
    """What the budgets of the settings ask for."""
    settings = ws.settings
    return Asked(settings.keep, settings.max_age, settings.max_bytes, threads=True, automatic=automatic)


def within_budget(ws: Guarded) -> Pruned:
    """Prunes by the budgets of the settings; what is younger than a day is never evicted for them."""
    return prune(ws, budget_of(ws, automatic=True))


def going(ws: Guarded, asked: Asked) -> Going:
    """What a prune would forget. The caller holds the store lock."""
    history = ws.history()
    horizon = _horizon(ws, history, asked)
    states = _going_states(ws, asked) if asked.threads else ()
    rows = _doomed(ws, history, horizon, asked.everything) + _doomed_states(ws, states, asked.everything)
    return Going(horizon, tuple(rows), states)


def prune(ws: Guarded, asked: Asked) -> Pruned:
    """The caller holds both locks."""
    history = ws.history()
    if asked.path:
        return _prune_path(ws, history, asked)
    if asked.keep is not None and asked.keep < 1:
        raise UsageError("prune keeps at least one checkpoint", "use --all to empty the workspace")
    found = going(ws, asked)
    staying = _staying(ws, history, found.rows, asked)
    if asked.dry_run:
        freed = ws.store.blobs.collectable(_live(ws, found.rows, found.horizon))
    elif asked.automatic and not found.rows:
        freed = 0
    else:
        _forget(ws, found, asked)
        freed = collect(ws, tell=not asked.automatic)  # also what a failed or killed run left behind
        if found.rows and not asked.automatic:
            ws.store.journal.compact()
    over, why = _over(ws, asked, staying, freed)
    return Pruned(
        found.checkpoints,
        len(found.rows),
        freed,
        dry_run=asked.dry_run,
        over=over,
        why_over=why,
        states=found.threads,
    )


def _forget(ws: Guarded, found: Going, asked: Asked) -> None:
    """Journals what goes, and takes the bodies of its rows."""
    for name, _ in found.threads:
        ws.threads.removed(name, [(state.ns, state.id) for state in found.states if state.thread == name])
    if not found.rows:
        return
    seqs = [row.seq for row in found.rows]
    body = {"forgot": spans(seqs), "horizon": found.horizon, "automatic": asked.automatic}
    ws.store.journal.append([New("prune", new_id(), body)], ws.clock())
    ws.store.journal.forget(seqs)
    if any(row.kind in STATE_ROWS for row in found.rows):
        ws.threads.forget()
    if asked.everything:
        ws.observer.start_anew()


def _going_states(ws: Guarded, asked: Asked) -> tuple[StateCheckpoint, ...]:
    """What each thread has beyond the budget."""
    if not ws.store.journal.newest_id("state") or ws.observer.open_intents() is not None:
        return ()  # a take-back that is not finished may go to any of them
    young = ws.clock() - YOUNG if asked.automatic else None
    return thread_prune.beyond(ws.threads, asked.keep, asked.older_than, young)


def _horizon(ws: Guarded, history: History, asked: Asked) -> int:
    """The row of the oldest checkpoint that stays."""
    if not history.checkpoints:
        return history.head + 1 if asked.everything else 0
    last = history.checkpoints[-1]
    if asked.everything:
        return history.head + 1
    horizon = history.checkpoints[0].seq
    if asked.keep is not None and len(history.checkpoints) > asked.keep:
        horizon = max(horizon, history.checkpoints[-asked.keep].seq)
    if asked.older_than is not None:
        limit = ws.clock() - asked.older_than
        horizon = max(horizon, next((c.seq for c in history.checkpoints if c.at >= limit), last.seq))
    if asked.max_bytes is not None:
        horizon = max(horizon, _fitting(ws, history, asked.max_bytes))
    if asked.automatic:
        young = next((c.seq for c in history.checkpoints if c.at >= ws.clock() - YOUNG), last.seq)
        horizon = min(horizon, young)
    return horizon


def _fitting(ws: Guarded, history: History, budget: int) -> int:
    """The oldest checkpoint from which on everything fits, with what is pinned; at least the last one stays."""
    if ws.store.size() <= budget:
        return 0
    budget -= _besides_blobs(ws)
    sizes = ws.store.blobs.sizes()
    rows = [row for row in ws.store.journal.rows(full=("state",)) if row.body is not None]
    rows.sort(key=lambda row: (row.id in history.pins, row.seq), reverse=True)
    horizon, total = history.checkpoints[-1].seq, 0
    counted: set[bytes] = set()
    seen: set[bytes] = set()
    for row in rows:
        for need in needs(row, ws.store.blobs, seen):
            if need.id not in counted:
                counted.add(need.id)
                total += sizes.get(need.id, 0)
        if total > budget:
            break
        if row.kind == "checkpoint" and row.id not in history.pins:
            horizon = min(horizon, row.seq)
    return horizon


def _besides_blobs(ws: Guarded) -> int:
    """What the journal and the index take up."""
    return ws.store.size() - ws.store.blobs.size()


def _staying(ws: Guarded, history: History, doomed: Collection[Row], asked: Asked) -> dict[str, int]:
    """Bytes that rows which stay need, by why they stay; nothing is measured where the store fits its budget."""
    if asked.max_bytes is None or asked.everything or ws.store.size() <= asked.max_bytes:
        return {}
    going = {row.seq for row in doomed}
    rows = [row for row in ws.store.journal.rows(full=("state",)) if row.seq not in going]
    last = history.checkpoints[-1].seq if history.checkpoints else 0
    rest = "what is younger than a day" if asked.automatic else "what else stays"
    sizes = ws.store.blobs.sizes()
    found: dict[str, int] = {}
    seen: set[bytes] = set()
    for row in reversed(rows):
        why = "the last checkpoint" if row.seq >= last else "pinned checkpoints" if row.id in history.pins else rest
        why = "threads" if row.kind in STATE_ROWS else why
        for need in needs(row, ws.store.blobs, seen):
            found[why] = found.get(why, 0) + sizes.pop(need.id, 0)
    return found


def _over(ws: Guarded, asked: Asked, staying: dict[str, int], freed: int) -> tuple[int, str]:
    """By how much the store is above its budget after all, and why; of a dry run, by how much it would be."""
    if not staying or asked.max_bytes is None:
        return 0, ""
    needed = sum(staying.values())
    size = ws.store.size() - (freed if asked.dry_run else 0)
    if size <= asked.max_bytes:
        return 0, ""
    parts = {**staying, "the journal and half-empty packs": size - needed}
    told = ", ".join(f"{why} {format_size(bytes)}" for why, bytes in parts.items() if bytes > 0)
    verb = "would still take" if asked.dry_run else "still takes"
    return size - asked.max_bytes, f"the store {verb} {format_size(size)} of {format_size(asked.max_bytes)} ({told})"


def _doomed(ws: Guarded, history: History, horizon: int, everything: bool) -> list[Row]:
    """Rows before the horizon that lose their body."""
    doomed = []
    interrupted = history.interrupted
    work = _work_needed(history, horizon, everything)
    outside = {e.takeback for e in history.effects if e.takeback and e.domain not in STATES}
    outside |= {act.in_doubt for act in history.acts.values() if act.in_doubt}
    for row in ws.store.journal.rows(full=("state",)):
        altered = row.damaged and (everything or row.seq >= history.horizon)
        if row.seq >= horizon or (row.body is None and not altered):
            continue
        if (
            altered
            or (row.kind == "checkpoint" and (row.id not in history.pins or everything))
            or (row.kind in _FILE_ROWS and not _still_needed(row, outside, interrupted))
            or (row.kind in _WORK_ROWS and (row.body or {}).get("open", row.id) not in work)
            or _is_used_approval(row, history)
        ):
            doomed.append(row)
    return doomed


def _doomed_states(ws: Guarded, going: Collection[StateCheckpoint], everything: bool) -> list[Row]:
    """Rows of threads that lose their use as state is removed, or lost it before. Other state stays, however old."""
    if not ws.store.journal.newest_id("state"):
        return []
    if everything:
        return [row for row in ws.store.journal.rows(kinds=STATE_ROWS) if row.body is not None]
    return list(ws.store.journal.at(ws.threads.forgettable(going)).values())


def _work_needed(history: History, horizon: int, everything: bool) -> set[str]:
    """Ids of agents' calls and turns that stay: those still open, those that what stays belongs to, and what a process
    that may still be at work was asked last, by which it is known as an agent."""
    acts = {act.id for act in history.live_acts}
    staying = [e for e in history.effects if e.id in acts or (e.seq >= horizon and not everything)]
    needed = {b.id for b in history.brackets.values() if not b.closed or (b.closed >= horizon and not everything)}
    needed |= {id for e in staying for id in e.calls}
    newest = {(t.caller.session, t.caller.pid, t.caller.started): t for t in history.agent_turns.values()}
    turns = {t.id for t in newest.values() if not t.caller.is_gone and not (everything and not t.caller.pid)}
    turns |= {turn.number for e in staying for turn in e.turns}
    turns |= {history.brackets[id].turn.number for id in needed if id in history.brackets}
    return needed | turns


def _is_used_approval(row: Row, history: History) -> bool:
    """It goes with the take-back that used it: without that it would look as if it could be used again."""
    used = row.kind == "approval" and "plan" in (row.body or {}) and row.id not in history.approvals
    return used and history.interrupted is None  # which is finished under it


def _still_needed(row: Row, outside: set[str], interrupted: Any) -> bool:
    body = row.body or {}
    if row.kind == "note" and body.get("what") in _KEPT_NOTES:
        return True
    if body.get("takeback", row.id) in outside:
        return True  # else what it took back outside the files would look as if it stood again
    return interrupted is not None and interrupted[0].id in (row.id, body.get("takeback"))


def collect(ws: Guarded, purge: frozenset[bytes] = frozenset(), tell: bool = False) -> int:
    """Drops the bytes that no row needs any more; tells of each pack that was looked through, if somebody asked."""
    return ws.store.blobs.collect(_live(ws) - purge, purge, ws.progress if tell else None)


def _live(ws: Guarded, going: Iterable[Row] = (), horizon: int = 0) -> set[bytes]:
    """The blobs that rows need, but for those that are going."""
    gone, horizon = {row.seq for row in going}, max(horizon, ws.history().horizon)
    live: set[bytes] = set()
    seen: set[bytes] = set()
    for row in ws.store.journal.rows(full=("state",)):
        if row.seq not in gone:
            live.update(need.id for need in needs(row, ws.store.blobs, seen))
    if any(seq >= horizon and seq not in gone for seq in ws.history().damaged):
        live.update(ws.store.blobs.ids())  # what a damaged row needs is not known, so nothing is dropped
    return live


# -- one path ----------------------------------------------------------------


def _prune_path(ws: Guarded, history: History, asked: Asked) -> Pruned:
    """Takes a captured secret out: its bytes, wherever a row leads to them by this path."""
    path = ws.relative(asked.path)
    if not path:
        raise UsageError("prune --path needs a path inside the workspace", "to forget everything, say prune --all")
    wanted: set[bytes] = set()
    elsewhere: dict[bytes, set[bytes]] = {}
    for row in ws.store.journal.rows(full=("state",)):
        for need in needs(row, ws.store.blobs, None):
            if need.path == path or need.path.startswith(path + b"/"):
                wanted.add(need.id)
            elif need.path:
                elsewhere.setdefault(need.id, set()).add(need.path)
    folders = _folder_objects(ws)
    wanted -= folders
    if not wanted:
        raise NotFound(f"no checkpoint holds {text(path)}", "see what one holds with takeback show CHECKPOINT")
    shared = wanted & elsewhere.keys()
    also = tuple(sorted(text(p) for p in set().union(*(elsewhere[id] for id in shared))))
    note = f"{len(shared)} of its versions are also another path's, whose copies go too" if shared else ""
    if asked.dry_run:
        purge = frozenset(wanted)
        freed = ws.store.blobs.collectable(_live(ws) - purge, purge)
        return Pruned((), 0, freed, len(wanted), True, note, also)
    body = {"forgot": [], "path": text(path), "blobs": sorted(id.hex() for id in wanted)}
    ws.store.journal.append([New("prune", new_id(), body)], ws.clock())
    freed = collect(ws, frozenset(wanted))
    forget_keys(ws, wanted)
    return Pruned((), 0, freed, len(wanted), note=note, also=also)


def _folder_objects(ws: Guarded) -> set[bytes]:
    seen: set[bytes] = set()
    for row in ws.store.journal.rows(kinds=("checkpoint",)):
        for _ in needs(row, ws.store.blobs, seen):
            pass
    return seen


def forget_keys(ws: Guarded, gone: set[bytes]) -> None:
    """Files whose stored bytes are gone are read again at the next look, if they are still covered then."""
    index = ws.observer.known()
    for path in list(index.folders):
        folder, record = index.folder(path), index.folders[path]
        assert folder is not None
        if any(e.content in gone or e.xattrs in gone for e in folder.entries):
            packed = b"".join(
                keys.ZERO if e.content in gone or e.xattrs in gone else key
                for e, key in zip(folder.entries, keys.split(record.keys))
            )
            index.put_keys(path, packed)
    ws.observer.save(index)


def purged(rows: list[Row]) -> set[bytes]:
    """Blobs that a prune took out on purpose."""
    return {bytes.fromhex(id) for row in rows if row.kind == "prune" and row.body for id in row.body.get("blobs", ())}
