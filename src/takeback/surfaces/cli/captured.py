"""What checkpoint and init share: progress while the tree is captured, and the line that tells of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.surfaces.wording.checkpoints import captured_said
from takeback.surfaces.wording.text import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from takeback.model.effects import Checkpoint
    from takeback.workspace import Workspace

    from .context import Context

    T = TypeVar("T")

_MOST = 20


def vouching(context: Context, workspace: Workspace) -> str:
    """Who vouches for what changed: TAKEBACK_ACTOR, which names nobody else below an agent's session."""
    actor = context.environ.get("TAKEBACK_ACTOR", "")
    if agent := workspace.vouches_above(actor):
        context.terminal.hint(f"TAKEBACK_ACTOR does not count below {safe(agent)}'s session: {safe(actor)} is another")
        return ""
    return actor


def with_progress(
    context: Context,
    workspace: Workspace,
    work: Callable[[], T],
    doing: str = "captured",
    total: int = 0,
    unit: str = "paths",
) -> T:
    """Runs it with a count on the terminal."""
    progress = None if context.json else context.terminal.progress(doing, total, unit)
    if progress is not None:
        workspace.progress, workspace.told = progress, progress.told
    try:
        return work()
    except KeyboardInterrupt:
        if workspace.was_stopped():  # in the middle of a take-back
            context.tell_interrupted(workspace)
        raise
    finally:
        if progress is not None:
            workspace.progress = workspace.told = None
            progress.wipe()


def first_checkpoint(context: Context, workspace: Workspace, label: str) -> Checkpoint:
    """Nothing is known yet: where it is told how long it takes, the paths are counted before."""
    total = workspace.count_paths() if context.terminal.draws and not context.json else 0
    return with_progress(context, workspace, lambda: workspace.checkpoint(label), total=total)


def captured(context: Context, checkpoint: Checkpoint, how: str = "") -> int:
    """'checkpoint 5 kxvmnopq "label": 1,204 paths'; exit 3 where it is not whole."""
    terminal = context.terminal
    terminal.say(captured_said(checkpoint, terminal.style(checkpoint.id[:8], "bold")) + how)
    for path, why in checkpoint.too_large[:_MOST]:
        terminal.warn(f"  not captured: {safe(path)}, {safe(why)}")
    if checkpoint.over_budget:
        over_budget(context, checkpoint.over_budget)
    return lacking(context, checkpoint.partial, "this checkpoint is partial")


def over_budget(context: Context, why: str) -> None:
    context.terminal.warn(f"takeback: {why}")
    context.terminal.warn(
        "  → raise checkpoints.max_bytes, takeback unpin what need not stay, or exclude what is large in your "
        "configuration and take it out with takeback prune --path"
    )


def lacking(context: Context, found: Sequence[tuple[str, str]], what: str) -> int:
    if not found:
        return 0
    context.terminal.warn(f"takeback: {what}; not captured:")
    for path, why in found[:_MOST]:
        context.terminal.warn(f"    {safe(path) or '.'}: {safe(why)}")
    if len(found) > _MOST:
        context.terminal.warn(f"    … and {len(found) - _MOST:,} more (all of them: takeback status --json)")
    context.terminal.warn("  → make them readable and take another checkpoint, or exclude them in your configuration")
    return 3
