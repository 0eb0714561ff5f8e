"""Steps in a git repository as a person reads them: each ref by its name, the entries of the index together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from takeback.domains.git.apply import Git
from takeback.domains.git.repository import HEAD, INDEX, REFS, called, entry, part_of, value_told
from takeback.errors import TakebackError
from takeback.model.effects import Step

from .text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from takeback.workspace import Workspace

_FEW = 3  # entries of the index that are shown one by one
_SUMMED = ".git/index · ".encode()
_COUNTED = 8  # steps of a plan whose commits are counted


class Joined(NamedTuple):
    """A step as it is shown, and how many it stands for."""

    step: Step
    steps: int = 1


def joined(steps: Sequence[Step]) -> list[Joined]:
    """With many entries of the index as one step for each verdict: where the first of them stood."""
    groups: dict[tuple[str, str], list[Step]] = {}
    for step in steps:
        if step.domain == "git" and step.path.startswith(INDEX):
            groups.setdefault((step.verdict, step.note), []).append(step)
    many = {key: found for key, found in groups.items() if len(found) > _FEW}
    out: list[Joined] = []
    told: set[tuple[str, str]] = set()
    for step in steps:
        key = (step.verdict, step.note)
        if key not in many or step.domain != "git" or not step.path.startswith(INDEX):
            out.append(Joined(step))
        elif key not in told:
            told.add(key)
            path = _SUMMED + f"{len(many[key]):,} entries".encode()
            shown = step._replace(path=path, expected=entry(b"some"), goal=entry(b"others"))
            out.append(Joined(shown, len(many[key])))
    return out


def is_first(step: Step, current: Collection[bytes]) -> bool:
    """Whether a step is never left out: HEAD, the branches it is on, and the index where it is told in one line."""
    return step.domain == "git" and (step.path == HEAD or step.path in current or step.path.startswith(_SUMMED))


def current(workspace: Workspace, steps: Sequence[Step], read: Callable[[Workspace, bytes], bytes]) -> set[bytes]:
    """The paths of the branch that HEAD is on, and of the one it goes to."""
    values = [workspace.observer.git.known().small.get(HEAD, b"")]
    try:
        values += [read(workspace, s.goal.content) for s in steps if s.path == HEAD and s.goal is not None]
    except TakebackError:
        pass
    return {b".git/" + value[5:] for value in values if value.startswith(b"ref: ")}


def amounts(steps: Sequence[Step]) -> str:
    """'git · 3,000 refs, 12 index entries'"""
    paths = {step.path for step in steps if step.domain == "git"}
    words = {"refs": "ref", "index": "index entry", "stash": "stash entry"}
    found = [(sum(part_of(path) == part for path in paths), word) for part, word in words.items()]
    return "git · " + ", ".join([*["HEAD"] * (HEAD in paths), *(counted(n, word) for n, word in found if n)])


def name(workspace: Workspace, step: Step, read: Callable[[Workspace, bytes], bytes], counts: bool) -> str:
    """'main a1b2c3d → 9f8e7d6 (2 commits)'"""
    told = called(step.path)
    if not step.taken or not (step.path == HEAD or step.path.startswith(REFS)):
        return told
    try:
        values = [read(workspace, s.content) for s in (step.expected, step.goal) if s is not None]
    except TakebackError:
        return told
    told += " " + " → ".join(map(value_told, values))
    if counts and len(values) == 2 and step.path.startswith(REFS) and values[0] != values[1]:
        told += _commits(workspace, *(value.decode("ascii", "replace") for value in values))
    return told


def is_counted(steps: Sequence[Step]) -> bool:
    return sum(step.path.startswith(REFS) for step in steps if step.domain == "git") <= _COUNTED


def _commits(workspace: Workspace, now: str, goal: str) -> str:
    """How many commits go or, where none goes, come back."""
    with workspace.open_tree() as tree:
        git = Git(tree, str(workspace.root), workspace.store.blobs.get, workspace.environ)
        count = git.commits(goal, now) or git.commits(now, goal)
    return f" ({count:,} commit{'s' * (count != 1)})" if count else ""
