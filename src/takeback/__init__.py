"""takeback: undo for AI agents.

import takeback

ws = takeback.open("my-project", create=True)
ws.checkpoint("before the refactor")
…                                    # an agent, a script or a hand changes things
print(ws.diff().files)
ws.rollback()
"""

from __future__ import annotations

import os as _os

from .errors import (
    ApprovalNeeded,
    Damaged,
    DoneWithoutUndo,
    InProgress,
    Interrupted,
    Locked,
    Moved,
    NotDone,
    NotFound,
    NoWorkspace,
    Off,
    RepeatedEffect,
    Stale,
    TakebackError,
    UsageError,
)

TYPE_CHECKING = False  # typing's own would cost every start of the program
if TYPE_CHECKING:
    from typing import Literal

    from takeback.harness.conversation import AsyncConversation, Conversation
    from takeback.harness.recorder import Recorder, tool
    from takeback.harness.steps import Remains, WorkStep
    from takeback.model.effects import Checkpoint, Outcome, Plan, Result, Step
    from takeback.show.views import Diff, LogRow, Status

    from .workspace import Workspace

__version__ = "0.1.0"

__all__ = [
    "ApprovalNeeded",
    "AsyncConversation",
    "Checkpoint",
    "Conversation",
    "Damaged",
    "Diff",
    "DoneWithoutUndo",
    "InProgress",
    "Interrupted",
    "Locked",
    "LogRow",
    "Moved",
    "NoWorkspace",
    "NotDone",
    "NotFound",
    "Off",
    "Outcome",
    "Plan",
    "Recorder",
    "Remains",
    "RepeatedEffect",
    "Result",
    "Stale",
    "Status",
    "Step",
    "TakebackError",
    "UsageError",
    "WorkStep",
    "Workspace",
    "__version__",
    "open",
    "tool",
]

# The types of results, and what only harnesses need, by the module that has them: loaded when first asked for.
_TYPES = {
    **dict.fromkeys(("Checkpoint", "Outcome", "Plan", "Result", "Step"), "model.effects"),
    **dict.fromkeys(("Diff", "LogRow", "Status"), "show.views"),
    **dict.fromkeys(("AsyncConversation", "Conversation"), "harness.conversation"),
    **dict.fromkeys(("Recorder", "tool"), "harness.recorder"),
    **dict.fromkeys(("Remains", "WorkStep"), "harness.steps"),
    "Workspace": "workspace",
}


def __getattr__(name: str) -> object:
    if name not in _TYPES:
        raise AttributeError(f"module 'takeback' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_TYPES[name]}", __name__), name)


def open(root: str | _os.PathLike[str], create: bool | Literal["state"] = False, store: str | None = None) -> Workspace:
    """Opens the workspace of a project root.

    `create` protects the folder first if it is not protected yet; one that was moved, or made anew, goes on with its
    history, as with `takeback init`. "state" makes a store for threads alone, where none is, and captures no file.
    `store` is None for the user's state folder, a path for another home, or "memory" for a store that lives no longer
    than this object."""
    from pathlib import Path

    from takeback.config import place

    from . import workspace

    path = Path(root)
    home = Path(_os.path.abspath(store)) if store is not None and store != "memory" else None
    loaded = place.load(path, _os.environ, at=Path(_os.path.realpath(path)), home=home)
    if home is not None:
        loaded = loaded._replace(home=home)
    return workspace.open_workspace(path, loaded, create, memory=store == "memory", environ=_os.environ)
