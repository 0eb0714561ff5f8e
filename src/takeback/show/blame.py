"""Blame: which effect, call and turn last wrote each line of a file.

    version ─► change ─► version ─► change ─► … ─► what is there now
    each line of a version keeps its origin through a change, or has that change as its origin

A take-back writes nothing of its own: what it brings back has the origin that it had before it was taken. A file that
was renamed goes on where the old name ended.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from takeback.errors import Damaged, NotFound, UsageError
from takeback.journal.history import History
from takeback.model.effects import FILE, FOLDER, LINK, UNSEEN, Change, Effect, State, text
from takeback.text import linediff

from . import turns, views

if TYPE_CHECKING:
    from takeback.workspace import Workspace

LARGEST = 4 << 20  # bytes
BEFORE, EFFECT, TAKEBACK, PENDING = "before", "effect", "takeback", "pending"


class Origin(NamedTuple):
    """Where a line comes from: an effect, from before takeback, or from a change that nobody has captured yet."""

    kind: str
    id: str = ""  # of the effect
    at: float = 0.0
    actor: str = ""  # empty: nobody known, so a person
    turns: tuple[str, ...] = ()  # ids of agents' turns; several where it is shared
    sessions: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    prompt: str = ""
    summary: str = ""
    uncertain: bool = False  # whether its call did it is not known


class Region(NamedTuple):
    """Neighbouring lines with one origin."""

    start: int  # from 1
    lines: tuple[bytes, ...]  # without newlines
    origin: Origin

    @property
    def end(self) -> int:
        return self.start + len(self.lines) - 1


class Blame(NamedTuple):
    path: str
    regions: tuple[Region, ...]
    names: tuple[str, ...] = ()  # what it was called before, newest first


class _Version(NamedTuple):
    data: bytes
    origins: list[Origin]


_OLD = Origin(BEFORE)


def blame(ws: Workspace, path: bytes) -> Blame:
    history, state = ws.history(), ws.observer.known().state(path)
    if not path or (state is not None and state.kind in (FOLDER, LINK)):
        raise UsageError(f"{text(path) or '.'} is no file", "name one file")
    if state is not None and state.kind == UNSEEN:
        raise UsageError(f"{text(path)} is not captured, so nobody knows who wrote it", "takeback status says why")
    with ws.open_tree() as tree:
        present = views.read_present(tree, path)
    if present is None:
        raise _missing(history, path, ws.store.blobs.get)
    if len(present) > LARGEST:
        raise UsageError(f"{text(path)} is too large for blame", "see its changes with takeback log path:…")
    if linediff.is_binary(present):
        raise UsageError(f"{text(path)} is binary: it has no lines", f"takeback log path:{text(path)} has its changes")
    walk = _Walk(history, ws.store.blobs.get)
    last = walk.version(path, history.head + 1)
    if last is None:  # it never changed, or nobody has looked since it was made
        last = walk.unchanged(state)
    now = _written(last, present, Origin(PENDING))
    return Blame(text(path), _regions(now), tuple(map(text, walk.names)))


class _Walk:
    def __init__(self, history: History, get: Callable[[bytes], bytes]) -> None:
        self.history = history
        self.get = get
        self.names: list[bytes] = []

    def unchanged(self, state: State) -> _Version:
        data = self._read(state)
        return _Version(data, [_OLD] * len(linediff.lines(data)))

    def version(self, path: bytes, until: int) -> _Version | None:
        """A path's lines just before a row; None if no change of it is known."""
        now: _Version | None = None
        before: dict[int, _Version] = {}  # row → the version that it found
        for effect in self.history.effects:
            change = effect.changes.get(path)
            if change is None or effect.domain != "files" or effect.seq >= until:
                continue
            found = self._read(change.before)
            if now is None:
                now = self._renamed(effect, change) or self.unchanged(change.before)
            elif now.data != found and change.before is not None:
                now = _written(now, found, _OLD)  # rows between are pruned or lost
            before[effect.seq] = now
            after = self._read(change.after)
            now = self._taken_back(effect, change, before, now, after) or _written(now, after, self._origin(effect))
        return now

    def _taken_back(
        self, effect: Effect, change: Change, before: dict[int, _Version], now: _Version, after: bytes
    ) -> _Version | None:
        """What a take-back left: lines that it brought back are whose they were, and those that it found as it wanted
        them are whose they are."""
        if not effect.takeback:
            return None
        if change.before is not None and now.data == after:
            return now
        earlier = [before[seq] for seq in sorted(change.took) if seq in before]
        earlier += [version for version in reversed(before.values()) if version.data == after]
        exact = next((version for version in earlier[:1] if version.data == after), None)
        if exact is not None:
            return exact
        left = _written(now, after, origin := self._origin(effect))
        for version in earlier:
            known = _written(version, after, origin).origins
            left = _Version(after, [b if a is origin else a for a, b in zip(left.origins, known)])
        return left

    def _renamed(self, effect: Effect, change: Change) -> _Version | None:
        """Where a file came from that appeared in the moment in which another one of its content went."""
        if change.before is not None or change.after is None or change.after.kind != FILE or not change.after.size:
            return None
        gone = {p: c.before for p, c in effect.changes.items() if _went(c)}
        if not gone:
            return None
        came = {p: c.after for p, c in effect.changes.items() if c.before is None and _is_file(c.after)}
        pairs = linediff.pair_renames(gone, came, lambda s: s.content if s else b"", self._read)
        old = pairs.get(change.path)
        if old is None:
            return None
        self.names.append(old)
        return self.version(old, effect.seq) or self.unchanged(gone[old])

    def _read(self, state: State) -> bytes:
        """A version's text; nothing of what is no file, is binary, or whose bytes are gone."""
        if not _is_file(state) or state is None or state.size > LARGEST:
            return b""
        try:
            data = self.get(state.content)
        except Damaged:
            return b""
        return b"" if linediff.is_binary(data) else data

    def _origin(self, effect: Effect) -> Origin:
        if effect.takeback:
            return Origin(TAKEBACK, effect.takeback, effect.at)
        asked = turns.of_effect(self.history, effect)
        return Origin(
            EFFECT,
            effect.id,
            effect.at,
            ", ".join(sorted(effect.actors)),
            tuple(turn.id for turn in asked),
            tuple(dict.fromkeys(turn.caller.session for turn in asked)),
            effect.calls,
            " | ".join(turn.prompt for turn in asked if turn.prompt),
            effect.summary,
            effect.uncertain,
        )


def _written(version: _Version, after: bytes, origin: Origin) -> _Version:
    """The next version: lines that stayed keep their origin, the others have this one."""
    if version.data == after:
        return version
    kept = linediff.kept_lines(version.data, after)
    return _Version(after, [origin if at is None else version.origins[at] for at in kept])


def _regions(version: _Version) -> tuple[Region, ...]:
    found: list[Region] = []
    lines = [line.removesuffix(b"\n") for line in linediff.lines(version.data)]
    start = 0
    for origin, group in groupby(version.origins):
        end = start + sum(1 for _ in group)
        found.append(Region(start + 1, tuple(lines[start:end]), origin))
        start = end
    return tuple(found)


def _is_file(state: State) -> bool:
    return state is not None and state.kind == FILE


def _went(change: Change) -> bool:
    return change.after is None and _is_file(change.before)


def _missing(history: History, path: bytes, get: Callable[[bytes], bytes]) -> NotFound:
    """Why there is nothing to blame."""
    for effect in reversed(history.effects):
        change = effect.changes.get(path)
        if change is None or effect.domain != "files":
            continue
        if change.after is None:
            moved = _moved_to(history, effect, path, get)
            if moved:
                return NotFound(f"{text(path)} was renamed to {text(moved)}", f"takeback blame {text(moved)}")
            id = (effect.takeback or effect.id)[:8]
            return NotFound(f"{text(path)} is gone: {id} deleted it", f"takeback show {id}")
        break
    return NotFound(f"there is no file {text(path)}", "name a file of the project")


def _moved_to(history: History, effect: Effect, path: bytes, get: Callable[[bytes], bytes]) -> bytes:
    walk = _Walk(history, get)
    gone = {p: c.before for p, c in effect.changes.items() if _went(c)}
    came = {p: c.after for p, c in effect.changes.items() if c.before is None and _is_file(c.after)}
    pairs = linediff.pair_renames(gone, came, lambda s: s.content if s else b"", walk._read)
    return next((new for new, old in pairs.items() if old == path), b"")
