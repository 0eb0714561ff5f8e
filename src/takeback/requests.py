"""What a person asks for, with every name in it resolved, so that it means the same when it is planned again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from . import names, trees
from .effects import UNSEEN, Checkpoint, Entry, Request, Turn, raw, short_id, text
from .errors import NotFound, UsageError
from .history import History
from .planner import Planner, revert_request
from .typed import TYPE_CHECKING

if TYPE_CHECKING:
    from .threads import Threads

Relative = Callable[[str], bytes]  # a path as typed → below the root


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
    if verb in ("undo", "redo"):
        n = _count(what[0] if what else 1)
        return planner.undo(n, options.actors, options, spared) if verb == "undo" else planner.redo(n, options)
    if verb == "rollback":
        if what and not str(what[0]):
            raise UsageError("the name of the checkpoint is empty", "name one, or leave it out: the newest named one")
        return _rollback(history, str(what[0]) if what else "", options)
    if verb == "revert":
        return _revert(history, relative, [str(w) for w in what], options)
    if verb == "restore":
        if len(what) < 2:
            raise UsageError("restore needs a checkpoint and at least one path", "takeback restore CHECKPOINT PATH…")
        checkpoint = find_checkpoint(history, str(what[0]))
        paths = tuple(relative(str(p)) for p in what[1:])
        return options._replace(checkpoint=checkpoint.id, since=checkpoint.seq, label=called(checkpoint), paths=paths)
    if verb == "compensate":
        return _rollback(history, str(what[0]), options) if what else options
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
        from .states import quoted

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


def _rollback(history: History, name: str, options: Request) -> Request:
    if not name:
        newest = history.newest_named()
        if newest is None:
            raise NotFound("there is no checkpoint to go back to", "take one with takeback checkpoint")
        return options._replace(since=newest.seq, label=called(newest))
    found = names.resolve(history, name)
    if found.seq < history.horizon:
        raise NotFound(
            f"{name} lies before the prune horizon: what changed since then is gone",
            f"bring single files back from it with takeback restore {found.id[:8]} PATH…",
        )
    if found.kind == "checkpoint":
        label = called(find_checkpoint(history, found.id))
    else:
        label = f"just before {found.id[:8]}"
    return options._replace(since=found.seq, label=label)


def _revert(history: History, relative: Relative, what: Sequence[str], options: Request) -> Request:
    """Ids, or paths where no id is called so; both: of what has these ids, only these paths."""
    if not what:
        raise UsageError("revert needs an id or a path", "see takeback log, then takeback revert ID|PATH…")
    ids, paths = [], []
    for word in what:
        found, unknown = _resolved(history, word)
        is_path = raw(word) in history.all_paths
        if found is not None and is_path and found.kind != "checkpoint":
            raise UsageError(
                f"{word!r} is both a {found.kind} and a path that changed",
                f"write ./{word} for the path, or more letters of the id",
            )
        if found is not None and not is_path:
            ids.append(found.id)
            continue
        path = relative(word)
        below = [p for p in history.all_paths if p == path or not path or p.startswith(path + b"/")]
        if not below:
            if unknown is not None and "pruned" in unknown.message:
                raise unknown
            raise NotFound(f"nothing recorded is called {word!r}, and no such path has changed", "see takeback log")
        paths += below
    options = options._replace(paths=tuple(sorted(set(paths))))
    if not ids:
        return options
    request = revert_request(history, ids, options)
    if paths and request.takebacks:
        raise UsageError("a take-back is reverted whole", "bring single files back with takeback restore")
    return request


def _resolved(history: History, word: str) -> tuple[names.Named | None, NotFound | None]:
    try:
        return names.resolve(history, word), None
    except NotFound as unknown:
        return None, unknown


def find_checkpoint(history: History, name: str) -> Checkpoint:
    found = names.resolve(history, name)
    for checkpoint in history.checkpoints:
        if checkpoint.id == found.id:
            return checkpoint
    kind = f"{'an' if found.kind[:1] in 'aeiou' else 'a'} {found.kind}"
    raise UsageError(f"{name!r} is no checkpoint but {kind}", "name a checkpoint: takeback log kind:checkpoint")


def goals(load: trees.Load, checkpoint: Checkpoint, paths: Sequence[bytes]) -> dict[bytes, Entry]:
    """What a checkpoint has at these paths and below them, with the folders above."""
    found: dict[bytes, Entry] = {}
    for path in paths:
        state, subtree = trees.lookup(load, checkpoint.snapshot, path)
        if state is None or state.kind == UNSEEN:
            why = "was not covered" if state is not None else "is not"
            raise NotFound(
                f"{text(path)} {why} in {called(checkpoint)}",
                f"see what it holds with takeback show {checkpoint.id[:8]}",
            )
        for depth in range(1, path.count(b"/") + 1):
            above = b"/".join(path.split(b"/")[:depth])
            folder, _ = trees.lookup(load, checkpoint.snapshot, above)
            if folder is not None:
                found[above] = folder
        if path:
            found[path] = state
        if subtree is not None:
            below = checkpoint.snapshot._replace(identity=subtree.identity, stored=subtree.stored)
            found.update((trees.join(path, p), entry) for p, entry in trees.entries(load, below))
    return found


def called(checkpoint: Checkpoint) -> str:
    return f'{checkpoint.id[:8]} "{checkpoint.label}"' if checkpoint.label else checkpoint.id[:8]


def _count(value: str | int) -> int:
    try:
        n = int(value)
    except ValueError:
        n = 0
    if n < 1:
        raise UsageError(f"{value!r} is no number of steps", "give a whole number from 1 up")
    return n
