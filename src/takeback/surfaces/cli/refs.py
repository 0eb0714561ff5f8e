"""Steps in a git repository as a person reads them: each ref by its name, the entries of the index together."""

from __future__ import annotations

from ...effects import Step
from ...errors import TakebackError
from ...repository import HEAD, INDEX, REFS, called, entry, value_told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...workspace import Workspace

_FEW = 3  # entries of the index that are shown one by one
_COUNTED = 8  # steps of a plan whose commits are counted


def joined(steps: Sequence[Step]) -> list[Step]:
    """With many entries of the index as one step for each verdict: where the first of them stood."""
    groups: dict[tuple[str, str], list[Step]] = {}
    for step in steps:
        if step.domain == "git" and step.path.startswith(INDEX):
            groups.setdefault((step.verdict, step.note), []).append(step)
    many = {key: found for key, found in groups.items() if len(found) > _FEW}
    out: list[Step] = []
    told: set[tuple[str, str]] = set()
    for step in steps:
        key = (step.verdict, step.note)
        if key not in many or step not in many[key]:
            out.append(step)
        elif key not in told:
            told.add(key)
            path = f".git/index · {len(many[key]):,} entries".encode()
            out.append(step._replace(path=path, expected=entry(b"some"), goal=entry(b"others")))
    return out


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
    from ...domains.git import Git

    with workspace.open_tree() as tree:
        git = Git(tree, str(workspace.root), workspace.store.blobs.get, workspace.environ)
        count = git.commits(goal, now) or git.commits(now, goal)
    return f" ({count:,} commit{'s' * (count != 1)})" if count else ""
