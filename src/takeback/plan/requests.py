"""What a person asks for, with every name in it resolved, so that it means the same when it is planned again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from takeback.errors import Damaged, NotFound, UsageError
from takeback.journal import names
from takeback.journal.history import History
from takeback.model.effects import (
    RUN,
    UNSEEN,
    Checkpoint,
    Entry,
    Request,
    State,
    Track,
    Turn,
    is_within,
    short_id,
    text,
)
from takeback.model.thread_states import quoted
from takeback.store import folder_objects

from .planner import Planner, instead_of_redo, revert_request

if TYPE_CHECKING:
    from takeback.threads.threads import Threads

Relative = Callable[[str], bytes]  # a path as typed → below the root
IsPath = Callable[[str], bool] | None  # whether a word is called like a path of the project


def resolve(
    planner: Planner,
    relative: Relative,
    verb: str,
    what: Sequence[str | int],
    options: Request,
    spared: Collection[Turn] = (),
    threads: Threads | None = None,
) -> Request:
    """`spared` are turns that undo steps over; `threads` is needed for the verb that is about one."""
    history = planner.history

    def is_path(word: str) -> bool:
        return is_known(history, relative, planner.known, word)

    if verb == "undo" and what and not _is_count(what[0]):
        return _undo(history, str(what[0]), options, spared, is_path)
    if verb in ("undo", "redo"):
        n = _count(what[0] if what else 1)
        return planner.undo(n, options.actors, options, spared) if verb == "undo" else planner.redo(n, options)
    if verb == "rollback":
        if what and not str(what[0]):
            raise UsageError("the name of the checkpoint is empty", "name one, or leave it out: the newest named one")
        return _rollback(history, str(what[0]) if what else "", options, is_path)
    if verb == "revert":
        return _revert(history, relative, [str(w) for w in what], options, is_path)
    if verb == "restore":
        paths = tuple(relative(str(p)) for p in what[1:])
        if what and (track := find_track(history, str(what[0]), is_path)) is not None:
            return _restore_tracked(history, track, paths, options)
        if len(what) < 2:
            raise UsageError("restore needs a checkpoint and at least one path", "takeback restore CHECKPOINT PATH…")
        point = find_point(history, str(what[0]), is_path)
        return options._replace(checkpoint=point.id, since=point.seq, label=point.label, paths=paths)
    if verb == "compensate":
        return _rollback(history, str(what[0]), options, is_path) if what else options
    if verb == "thread" and threads is not None:
        return _thread(history, threads, [str(w) for w in what], options)
    raise UsageError(f"{verb} cannot be planned", "plan one of: undo, redo, rollback, revert, restore, compensate")


def _thread(history: History, threads: Threads, what: Sequence[str], options: Request) -> Request:
    """A thread back to one of its state checkpoints: a rollback to the row that it is in."""
    if len(what) != 2 or not all(what):
        raise UsageError(
            "going back needs a thread and one of its state checkpoints", "takeback thread rollback THREAD CHECKPOINT"
        )
    found = threads.get(*what)
    if found.seq < history.horizon and not options.only:
        raise NotFound(
            f"{short_id(found.id)} lies before the prune horizon: what changed in the files since then is gone",
            f"go back in the thread alone: takeback thread rollback {quoted(found.thread)} {short_id(found.id)}",
        )
    label = f"{short_id(found.id)} of thread {found.thread}"
    ends = (max(t.rows) for t in history.takebacks.values() if t.rows and t.seq < found.seq < max(t.rows))
    since = next(ends, found.began or found.seq - 1) + 1  # what the take-back that made it did is no later work
    own = options.own or bool(history.turns_of((found.thread,)))
    options = options._replace(own=own and not options.only, threads=(found.thread,))
    return options._replace(since=since, label=label, checkpoint=found.id)


def find_track(history: History, name: str, is_path: IsPath = None) -> Track | None:
    """The track that is called so; None where it is something else, or nothing."""
    found, _ = _resolved(history, name, prompts=False, is_path=is_path)
    return history.tracks.get(found.id) if found is not None else None


def _restore_tracked(history: History, track: Track, paths: tuple[bytes, ...], options: Request) -> Request:
    _must_be_kept(history, track)
    for path in paths:
        if not track.has(path):
            named = ", ".join(map(text, track.paths[:3]))
            raise NotFound(f"{text(path)} was not tracked by {track.id[:8]}", f"it tracked {named}")
    return options._replace(checkpoint=track.id, since=track.seq, label=tracked(track), paths=paths)


def _must_be_kept(history: History, track: Track) -> None:
    if track.seq < history.horizon:
        raise NotFound(
            f"{track.id[:8]} lies before the prune horizon: what changed since then is gone",
            "bring files back from a checkpoint: takeback log kind:checkpoint",
        )


def tracked(track: Track) -> str:
    return f"{track.id[:8]} (tracked)"


def tracked_goals(history: History, track: Track, paths: Sequence[bytes], known: Callable[[bytes], State]) -> Goals:
    """What tracked paths were then, as the changes since tell. Where none are named they are those of the track: then a
    folder that was absent goes only if nothing is in it, which nobody named."""
    named = tuple(paths) or track.paths
    found: dict[bytes, State] = {}
    made: list[bytes] = []
    for path in history.changed_since(track.seq):
        if is_within(path, named):
            state = history.state_before(path, track.seq, known(path))
            if state is None and path not in named:
                made.append(path)
            elif state is None or state.kind != UNSEEN:
                found[path] = state
    for path in named:
        if path not in track.paths and known(path) is None and found.get(path) is None:
            raise NotFound(f"{text(path)} is not in {tracked(track)}", "it was not there then, and is not there now")
    for path in [p for p, state in found.items() if state is None and not paths]:
        if any(below.startswith(path + b"/") and known(below) is not None for below in made):
            del found[path]
            made.append(path)
    for path in list(found):  # the folders that they need
        above = folder_objects.parent(path)
        while found[path] is not None and above and above not in found and known(above) is None:
            found[above] = history.state_before(above, track.seq, known(above))
            above = folder_objects.parent(above)
    return Goals(found, tops(path for path in made if known(path) is not None))


def _rollback(history: History, name: str, options: Request, is_path: IsPath) -> Request:
    if not name:
        newest = history.here
        if newest is None:
            raise NotFound("there is no checkpoint to go back to", "take one with takeback checkpoint")
        return options._replace(since=newest.seq, label=called(newest))
    found = names.resolve(history, name, is_path=is_path)
    if found.seq < history.horizon:
        raise NotFound(
            f"{name} lies before the prune horizon: what changed since then is gone",
            f"bring single files back from it with takeback restore {found.id[:8]} PATH…",
        )
    if found.kind == "checkpoint":
        label = called(find_checkpoint(history, found.id))
    else:
        label = _just_before(found)
    return options._replace(since=found.seq, label=label)


def _just_before(found: names.Named) -> str:
    return f"just before {found.id[:8]}" + (f" “{found.prompt}”" if found.prompt else "")


def _undo(history: History, name: str, options: Request, spared: Collection[Turn], is_path: IsPath) -> Request:
    """One turn, by its id or words of its prompt. Of a single call or effect it means that alone, as revert does."""
    found = names.work(history, names.resolve(history, name, is_path=is_path))
    if found.kind == "run":
        return options._replace(verb="undo", turns=(Turn(RUN, found.id),))
    if found.kind == "turn":
        turn = next(t for t, asked in history.agent_turns.items() if asked.id == found.id)
        if turn in spared:
            raise UsageError(f"{name!r} is the turn that asks for this", "it can be undone once it has ended")
        return options._replace(verb="undo", turns=(turn,))
    if found.kind == "takeback":
        is_redo = history.takebacks[found.id].verb == "redo"
        hint = instead_of_redo(history, found.id) if is_redo else f"takeback revert {found.id[:8]} does"
        raise UsageError(f"{name!r} is a take-back, which undo does not undo", hint)
    if found.kind == "checkpoint":
        raise UsageError(f"{name!r} is a checkpoint", f"go back to it with takeback rollback {found.id[:8]}")
    return revert_request(history, [found.id], options)


def _revert(
    history: History, relative: Relative, what: Sequence[str], options: Request, is_path: Callable[[str], bool]
) -> Request:
    """Ids and paths; both: of what has these ids, only these paths. What is called like a path is the path, before
    the beginning of an id and before words of a prompt."""
    if not what:
        raise UsageError("revert needs an id or a path", "see takeback log, then takeback revert ID|PATH…")
    ids: list[str] = []
    paths: list[bytes] = []
    points: list[Track] = []
    for word in what:
        if is_path(word):
            must_be_no_entry(history, word)
            if not history.recorded_below(relative(word)):
                raise _unchanged(history, text(relative(word)))
            paths.append(relative(word))
            continue
        found, unknown = _resolved(history, word, prompts="/" not in word)
        if found is None:
            path = relative(word)  # says so where it is no path of this project
            is_told = unknown is not None and ("pruned" in unknown.message or names.attempt_called(history, word))
            raise unknown if unknown is not None and is_told else _unchanged(history, text(path))
        if found.kind == "track":
            points.append(history.tracks[found.id])
        else:
            ids.append(names.work(history, found).id)
    if points:
        options, paths = _since_track(history, points, ids, paths, options)
    options = options._replace(paths=tuple(sorted(set(paths))))
    if not ids:
        return options
    request = revert_request(history, ids, options)
    if paths and request.takebacks:
        raise UsageError("a take-back is reverted whole", "bring single files back with takeback restore")
    return request


def must_be_no_entry(history: History, word: str) -> None:
    """A path that is called like an entry of the log: exactly, so that nobody can tell which of the two is meant."""
    try:
        found = names.exactly(history, word)
    except NotFound:  # pruned
        return
    if found is not None:
        found = names.work(history, found)
        raise UsageError(
            f"{word!r} is a path, and also the {found.kind} {found.id[:8]}",
            f"write ./{word} for the path, or {found.id[:8]} for the {found.kind}",
        )


def _unchanged(history: History, word: str) -> NotFound:
    """Of a path that never changed; the beginning of an id may have been meant."""
    try:
        other, _ = _resolved(history, word, prompts=False)
    except UsageError:  # several
        other = None
    if other is not None:
        return NotFound(f"no change of {word!r} is recorded", f"the {other.kind} whose id begins so is {other.id[:8]}")
    return NotFound(f"nothing recorded is called {word!r}, and no such path has changed", "see takeback log")


def _since_track(
    history: History, points: list[Track], ids: list[str], paths: list[bytes], options: Request
) -> tuple[Request, list[bytes]]:
    """`revert TRACK [PATH…]`: what was done to the tracked paths since."""
    if len(points) > 1 or ids:
        raise UsageError("a track is reverted alone, or with paths of it", "takeback revert TRACK [PATH…]")
    track = points[0]
    _must_be_kept(history, track)
    return options._replace(since=track.seq, label=tracked(track)), paths or list(track.paths)


def is_known(history: History, relative: Relative, known: Callable[[bytes], State], word: str) -> bool:
    """Whether a path of the project is called so: one that is there, as far as is known, or that ever changed."""
    try:
        path = relative(word)
    except UsageError:
        return False
    return bool(word) and (not path or known(path) is not None or bool(history.recorded_below(path)))


def _resolved(
    history: History, word: str, prompts: bool, is_path: IsPath = None
) -> tuple[names.Named | None, NotFound | None]:
    try:
        return names.resolve(history, word, prompts=prompts, is_path=is_path), None
    except NotFound as unknown:
        return None, unknown


# -- points in time ----------------------------------------------------------


class Goals(NamedTuple):
    """What a restore is to lead to."""

    states: Mapping[bytes, State]  # of what the named paths were, None where something goes
    new: tuple[bytes, ...]  # what is in folders among them and was not then: the top of each


class Point(NamedTuple):
    """A moment whose tree is known: a checkpoint, or just before a turn, a call, an effect or a take-back."""

    id: str  # of what names it
    seq: int  # what was done from this row on came later
    label: str
    checkpoint: Checkpoint  # the newest up to then
    changed: Mapping[bytes, State]  # what was journaled between the two, by path

    @property
    def moment(self) -> str:
        """How it is called where it is no checkpoint itself."""
        return "" if self.id == self.checkpoint.id else self.label


def find_point(history: History, name: str, is_path: IsPath = None) -> Point:
    found = names.resolve(history, name, is_path=is_path)
    same = [c for c in history.checkpoints if c.id == found.id]
    if same:
        return Point(found.id, found.seq, called(same[0]), same[0], {})
    own = [c for c in history.checkpoints if found.kind == "turn" and c.turn == found.id]
    if own:  # it was taken with the look that the turn began with
        return Point(found.id, found.seq, _just_before(found), own[0], {})
    before = [c for c in history.checkpoints if max(1, history.horizon) <= c.seq < found.seq]
    if not before:
        raise NotFound(f"there is no checkpoint before {name!r}", "name one: takeback log kind:checkpoint")
    newest = before[-1]
    changed: dict[bytes, State] = {}
    if any(newest.seq < seq < found.seq for seq in history.damaged):
        raise Damaged(f"what lies before {name!r} was altered or lost", "takeback verify says what is lost")
    for effect in history.effects:
        if newest.seq < effect.seq < found.seq and effect.domain == "files":
            changed.update((path, change.after) for path, change in effect.changes.items())
    return Point(found.id, found.seq, _just_before(found), newest, changed)


def find_checkpoint(history: History, name: str, is_path: IsPath = None) -> Checkpoint:
    """A checkpoint, or the one that stands for the moment before a turn or call."""
    point = find_point(history, name, is_path)
    if point.changed:
        told = called(point.checkpoint)
        raise UsageError(
            f"{name!r} is no checkpoint, and files have changed between it and the one before, {told}",
            f"name that one, {point.checkpoint.id[:8]}, or see takeback log kind:checkpoint",
        )
    return point.checkpoint


def state_at(load: folder_objects.Load, point: Point, path: bytes) -> State:
    return (
        point.changed[path]
        if path in point.changed
        else folder_objects.lookup(load, point.checkpoint.snapshot, path)[0]
    )


def goals(load: folder_objects.Load, point: Point, paths: Sequence[bytes]) -> dict[bytes, Entry]:
    """What there was at these paths and below them, with the folders above."""
    snapshot = point.checkpoint.snapshot
    found: dict[bytes, Entry] = {}
    for path in paths:
        state, (_, subtree) = state_at(load, point, path), folder_objects.lookup(load, snapshot, path)
        if state is None or state.kind == UNSEEN:
            why = "was not covered" if state is not None else "is not"
            raise NotFound(
                f"{text(path)} {why} in {point.label}",
                f"see what it holds with takeback show {point.checkpoint.id[:8]}",
            )
        for depth in range(1, path.count(b"/") + 1):
            above = b"/".join(path.split(b"/")[:depth])
            if (folder := state_at(load, point, above)) is not None:
                found[above] = folder
        if path:
            found[path] = state
        if subtree is not None:
            below = snapshot._replace(identity=subtree.identity, stored=subtree.stored)
            found.update((folder_objects.join(path, p), entry) for p, entry in folder_objects.entries(load, below))
        later = {p: state for p, state in point.changed.items() if not path or p.startswith(path + b"/")}
        found = {p: entry for p, entry in found.items() if p not in later}
        found.update((p, state) for p, state in later.items() if state is not None and state.kind != UNSEEN)
    return found


def tops(paths: Iterable[bytes]) -> tuple[bytes, ...]:
    """Without those that lie in another of them."""
    found = set(paths)
    return tuple(sorted(path for path in found if folder_objects.parent(path) not in found))


def called(checkpoint: Checkpoint) -> str:
    return f'{checkpoint.id[:8]} "{checkpoint.label}"' if checkpoint.label else checkpoint.id[:8]


def _is_count(value: str | int) -> bool:
    return str(value).lstrip("-").isdecimal()


def _count(value: str | int) -> int:
    try:
        n = int(value)
    except ValueError:
        n = 0
    if n < 1:
        raise UsageError(f"{value!r} is no number of steps", "give a whole number from 1 up")
    return n
