"""The questions that only a person answers: a plain yes; what acts outside the files; where a credential may go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.agents import AGENTS
from takeback.agents.sessions.conversation import titled
from takeback.config import settings
from takeback.errors import ApprovalNeeded, TakebackError
from takeback.surfaces.wording.approvals import credential_question, listing, question, unbound_said
from takeback.system import agent_sessions, processes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from takeback.model.effects import Plan
    from takeback.model.outside import Credential
    from takeback.workspace import Workspace

    from .context import Context


def approved(context: Context, question: str) -> bool:
    """True with --yes or after a yes; False after a no; without a person to ask it is an error, exit 4."""
    if context.yes:
        return True
    if not context.asks:
        raise ApprovalNeeded("nothing was changed: this needs a yes", "add --yes to do it, or run it on a terminal")
    if context.terminal.confirm(question):
        return True
    context.terminal.say("nothing was changed")
    return False


def only_a_person(context: Context, what: str, workspace: Workspace | None = None) -> None:
    """Refuses where an agent is at work: exit 4."""
    if agent := agent_above(context, workspace):
        raise ApprovalNeeded(
            f"{what} is for a person, and {agent}; nothing was changed", "run it yourself, in a terminal of your own"
        )


def agent_above(context: Context, workspace: Workspace | None = None) -> str:
    """Which agent is at work here, by its session, whichever project that was journaled in, or by its mark in the
    environment; empty if none is."""
    return processes.agent_above(sessions_known(context, workspace), context.environ)


def sessions_known(context: Context, workspace: Workspace | None = None) -> list[Mapping[str, Any]]:
    """The processes that are agents': those of this workspace, and those of others."""
    elsewhere = agent_sessions.known(
        workspace.settings.home if workspace is not None else settings.home(context.environ)
    )
    try:
        return [*(workspace.history().sessions if workspace is not None else ()), *elsewhere]
    except TakebackError:  # of a damaged journal the rest still tells
        return elsewhere


def name_asking(context: Context, workspace: Workspace) -> None:
    """Where an agent's sandbox hides the processes above, its mark in the environment still says who asks; so does its
    session in another project."""
    workspace.by_command = True
    for variable, title in processes.MARKERS.items():
        if context.environ.get(variable, "") not in ("", "0", "false"):
            workspace.asked_by = titled(title)
            return
    elsewhere = [s for s in agent_sessions.known(workspace.settings.home) if s["root"] != str(workspace.root)]
    name = processes.agent_named(elsewhere, {})
    workspace.asked_by = name if name in AGENTS else ""


def outside(context: Context, workspace: Workspace, plan: Plan) -> tuple[Credential, ...] | None:
    """Asks for what a plan does outside the files, each step listed, and then for each credential that no setting
    binds. Returns the credentials that may go; None after a no."""
    steps, unbound = workspace.unapproved(plan)
    if steps or unbound:
        only_a_person(context, "acting outside the files", workspace)
    if steps:
        listing(context.terminal, workspace, steps)
        if not typed_yes(context, question(len(steps))):
            return None
    for credential in unbound:
        context.terminal.write(unbound_said(credential))
        if not typed_yes(context, credential_question(credential)):
            return None
    return tuple(unbound)


def typed_yes(context: Context, question: str) -> bool:
    """The whole word, so that no stray key does it."""
    return context.terminal.ask(question).lower() == "yes"
