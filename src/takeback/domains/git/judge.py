"""Which steps of a plan a git repository keeps: those that cannot go alone. Pure.

HEAD       stays on a branch that somebody moved since, and does not go to one that is gone
a branch   stays while HEAD, or another work tree, is on it
all of it  stays where the repository is gone
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from takeback.model.effects import DRIFTED, UNCOVERED, State, Step, Unit, same

from .repository import GONE, HEAD, REFS, called, part_of

COLLECTED = "its objects are gone (git gc)"


class Around(NamedTuple):
    """What has to be known of a repository to judge the steps of a plan together."""

    read: Callable[[bytes], bytes]  # a blob's bytes
    known: Callable[[bytes], State]
    before: Callable[[bytes, int], State]  # what a path was just before a row
    layers: Callable[[bytes, int], list[Unit]]  # its changes that show since a row
    elsewhere: Mapping[bytes, str]  # branches that other work trees are on, each with the tree in words
    under_way: str = ""  # what git is in the middle of, and the command that ends it
    lost: Collection[bytes] = ()  # paths whose goal names an object that git no longer has
    unread: Mapping[str, str] = {}  # parts of the repository that cannot be read, and why


def judged(steps: tuple[Step, ...], around: Around) -> tuple[Step, ...]:
    """The steps of a plan with those kept that cannot go alone: HEAD stays on a branch that somebody moved, a branch
    stays that HEAD or another work tree is on."""
    if not any(s.taken and s.domain == "git" for s in steps):
        return steps
    kept: dict[bytes, tuple[str, str]] = {}  # path → verdict, why
    last = {s.path: s for s in steps if s.domain == "git" and s.taken}  # in order: the last of a path is its end
    if around.known(HEAD) is None:
        kept = dict.fromkeys(last, (UNCOVERED, GONE))
        return _with_kept(steps, kept, "")
    for path, step in last.items():
        if same(step.expected, step.goal):
            continue
        if part_of(path) in around.unread:
            kept[path] = (UNCOVERED, around.unread[part_of(path)])
        elif path in around.lost:
            kept[path] = (UNCOVERED, COLLECTED)
        where = around.elsewhere.get(path.removeprefix(b".git/"))
        if where and path.startswith(REFS):
            kept[path] = (DRIFTED, where)
    if HEAD in last and (why := _why_head_stays(last, kept, steps, around)):
        kept[HEAD] = (DRIFTED, why)
    head = around.known(HEAD) if HEAD in kept or HEAD not in last else last[HEAD].goal
    on = b".git/" + _value(head, around).removeprefix(b"ref: ")
    if on in last and on not in kept and last[on].goal is None:
        then = around.before(HEAD, min(last[on].units).seq)
        if _value(then, around) != b"ref: " + on.removeprefix(b".git/"):  # else it was to be made by a first commit
            kept[on] = (DRIFTED, "HEAD is on it")
    return _with_kept(steps, kept, around.under_way)


def _why_head_stays(
    last: Mapping[bytes, Step], kept: Mapping[bytes, object], steps: Sequence[Step], around: Around
) -> str:
    head = last[HEAD]
    now, goal = _value(head.expected, around), _value(head.goal, around)
    if now.startswith(b"ref: ") and now != goal:
        path = b".git/" + now[5:]
        taken = set(last[path].units) if path in last and path not in kept else set()
        drifted = any(s.path == path and not s.taken for s in steps) or path in kept
        since = min((u.seq for u in head.units), default=0)
        if drifted or any(u not in taken for u in around.layers(path, since)):
            return f"it stays on {called(path)}, which has moved since"
    if goal.startswith(b"ref: ") and now != goal:
        path = b".git/" + goal[5:]
        there = last[path].goal if path in last and path not in kept else around.known(path)
        since = min((u.seq for u in head.units), default=0)
        if there is None and around.before(path, since) is not None:
            return f"the branch {called(path)} is gone"
    return ""


def _value(state: State, around: Around) -> bytes:
    return b"" if state is None else around.read(state.content)


def _with_kept(steps: tuple[Step, ...], kept: Mapping[bytes, tuple[str, str]], note: str) -> tuple[Step, ...]:
    out = []
    for step in steps:
        if step.taken and step.domain == "git" and step.path in kept:
            verdict, why = kept[step.path]
            step = step.kept(verdict, why)
        elif step.taken and step.path == HEAD and note and not step.note:
            step = step._replace(note=note)
        out.append(step)
    return tuple(sorted(out, key=lambda s: not s.taken))
