"""init: protects a folder and takes its first checkpoint."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from takeback.care import moved_folder
from takeback.config import place
from takeback.look import roots
from takeback.store import layout
from takeback.surfaces.cli import approving
from takeback.surfaces.cli.captured import captured, first_checkpoint
from takeback.surfaces.wording import json_shapes
from takeback.surfaces.wording.text import safe
from takeback.text.units import format_duration, format_size
from takeback.workspace import open_workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.config.settings import Settings
    from takeback.model.effects import Checkpoint
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.workspace import Workspace


def add(parser: Parser) -> None:
    parser.synopsis = "[--force]"
    parser.about = (
        "Protects this folder: makes its store, outside the project, and captures the whole tree in\n"
        'a checkpoint called "start". Nothing is written into the project. A second init changes\n'
        "nothing; in a folder that was moved or replaced it goes on with the history. Inside a\n"
        "protected folder it is nothing an agent may do: below one it is refused, exit 4."
    )
    parser.takes("--force", "--force", action="store_true", help="also /, your home folder, or nested roots")
    parser.examples = [
        ("takeback init", "protect the current folder"),
        ("takeback init -C ~/work/shop", "another one"),
    ]


def run(context: Context, args: Namespace) -> int:
    root = context.cwd
    settings = context.settings(root)
    context.must_be_on(settings)
    if not layout.is_workspace(settings.home, root) and (top := roots.repository_top(root)) is not None:
        root = _offer_top(context, root, top)
        settings = context.settings(root)
    said = _prepare(context, root, settings, args.force)
    settings = context.settings(root)  # a folder that was moved brings the place of its configuration along
    note_place(context, root, settings)
    with open_workspace(root, settings) as workspace:
        context.tell_interrupted(workspace)
        workspace.must_be_on()
        first = workspace.store.journal.last("checkpoint") is None
        if not first:
            return _known_already(context, workspace, said)
        begun = time.monotonic()
        checkpoint = first_checkpoint(context, workspace, "start")
        return _protected(context, workspace, checkpoint, time.monotonic() - begun)


def choose_root(context: Context) -> Path:
    """The folder to protect where none is: this one, or the repository's top."""
    root = context.cwd
    context.must_be_on(context.settings(root))
    top = roots.repository_top(root)
    return root if top is None else _offer_top(context, root, top)


def ensure(
    context: Context, root: Path | None = None, write: Callable[[], None] = lambda: None
) -> tuple[Workspace, Checkpoint | None]:
    """The workspace at or above here; where there is none, this folder is protected first. With the checkpoint that
    was taken for that, which has what `write` adds to the tree."""
    if context.root() is not None:
        write()
        return context.open(), None
    root = root or choose_root(context)
    settings = context.settings(root)
    if said := _prepare(context, root, settings, force=False):
        context.terminal.hint(said)
        settings = context.settings(root)
    write()
    workspace = open_workspace(root, settings, environ=context.environ)
    if workspace.store.journal.last("checkpoint") is not None:  # a folder that was moved
        return workspace, None
    return workspace, first_checkpoint(context, workspace, "start")


def note_place(context: Context, root: Path, settings: Settings) -> None:
    """A person who protects a folder, or does it again, says by that which configuration agents go by there."""
    if (before := place.note(root, settings)) is not None:
        context.terminal.hint(
            f"agents here go by your configuration at {safe(str(settings.config))} from now on, no longer by "
            f"{safe(str(before))}"
        )


def _offer_top(context: Context, root: Path, top: Path) -> Path:
    """The repository's top where a person says so; otherwise the folder given, and that is said."""
    if context.asks and context.terminal.confirm(
        f"{safe(str(root))} lies in the git repository {safe(str(top))}. Protect all of that instead?"
    ):
        return top
    context.terminal.hint(
        f"protecting {safe(str(root))} only; it lies in the git repository {safe(str(top))}"
        f" (all of it: takeback init -C {safe(str(top))})"
    )
    return root


def _prepare(context: Context, root: Path, settings: Settings, force: bool) -> str:
    """Makes the store, or takes an old one over; says which."""
    if layout.is_workspace(settings.home, root):
        if moved_folder.accept_replaced(root, settings):
            return "this folder replaced the one that was protected; its history goes on here"
        return ""
    if layout.find_root(settings.home, root) is not None:
        approving.only_a_person(context, "protecting a folder inside a protected one by itself")
    if (was := moved_folder.adopt_moved(root, settings)) is not None:
        return f"this folder was moved from {safe(str(was))}; its history came along"
    if not force:
        roots.refuse_unwise(root, settings, context.environ.get("HOME", ""))
    layout.create(settings.home, root, root.stat().st_ino, settings.portable, settings.config)
    return ""


def _known_already(context: Context, workspace: Workspace, said: str) -> int:
    newest = workspace.history().newest_named()
    if context.json:
        shape = None if newest is None else json_shapes.checkpoint(newest)
        context.terminal.json({"root": str(workspace.root), "created": False, "note": said, "checkpoint": shape})
        return 0
    context.terminal.say(said or f"{safe(str(workspace.root))} is protected already")
    context.terminal.hint("see what changed: takeback status")
    return 0


def _protected(context: Context, workspace: Workspace, checkpoint: Checkpoint, seconds: float) -> int:
    size = workspace.store.size()
    if context.json:
        shape = {"root": str(workspace.root), "created": True, "checkpoint": json_shapes.checkpoint(checkpoint)}
        context.terminal.json({**shape, "store": {"path": str(workspace.store.folder), "bytes": size}})
        return 3 if checkpoint.partial else 0
    bold = context.terminal.style(safe(str(workspace.root)), "bold")
    context.terminal.say(f"{bold} is protected")
    took = f" in {format_duration(seconds)}" if seconds >= 0.1 else ""
    code = captured(context, checkpoint, f"{took}, {format_size(size)} in the store")
    if not welcomed(context, workspace.settings.home):
        context.terminal.hint("let your agent loose; then: takeback status, takeback diff, takeback rollback")
    return code


WELCOME = (
    "welcome to takeback: what happens here from now on can be seen, and taken back",
    "  let an agent loose: takeback protect, once, or takeback run -- COMMAND",
    "  something is wrong: takeback log, then takeback undo; takeback help has the rest",
)


def welcomed(context: Context, home: Path) -> bool:
    """Says hello the first time ever, to a person at a terminal."""
    terminal = context.terminal
    if terminal.quiet or not (terminal.out_is_tty and terminal.err_is_tty):
        return False
    try:
        (home / "welcomed").touch(mode=0o600, exist_ok=False)
    except OSError:
        return False
    for line in WELCOME:
        terminal.hint(line)
    return True
