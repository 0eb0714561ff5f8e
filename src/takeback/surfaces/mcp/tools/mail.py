"""email_stage, email_release, email_cancel, email_pending: mail that is held until a person lets it go."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import anyio
from anyio import to_thread
from mcp_types import CallToolResult, InputRequiredResult
from pydantic import Field

from takeback.domains.email import outbox
from takeback.errors import ApprovalNeeded, CredentialNeeded
from takeback.surfaces.mcp import approvals
from takeback.surfaces.mcp.answers import Page, answer
from takeback.surfaces.mcp.approvals import Question
from takeback.surfaces.mcp.calls import Call, Ctx, Cwd, call_of
from takeback.surfaces.wording.paths import all_inside
from takeback.surfaces.wording.text import age, safe
from takeback.text.units import parse_duration

from . import CHANGES, KEEPS_ONCE, LOOKS, SENDS

if TYPE_CHECKING:
    from takeback.model.outside import Act
    from takeback.surfaces.mcp.server import Server
    from takeback.workspace import Workspace

Answer = CallToolResult | InputRequiredResult
Draft = Annotated[str, Field(description="How the mail's id begins, or its provider's id. Default: the only one held")]
_EVERY = 5.0  # seconds between looks for mail that is due
_AGAIN = 60.0  # seconds until what was due and stayed is tried again: a policy may have changed
_SHOWN = 20_000  # characters of a mail that a person is shown before it leaves


def add(server: Server) -> None:
    server.offer(email_stage, "Hold a mail as a draft", SENDS)
    server.offer(email_release, "Send a held mail", CHANGES)
    server.offer(email_cancel, "Drop a held mail", KEEPS_ONCE)
    server.offer(email_pending, "Mail that is held", LOOKS)


async def email_stage(
    ctx: Ctx,
    to: Annotated[str | list[str], Field(description="Recipients: addresses, or names with addresses")],
    subject: Annotated[str, Field(description="One line")],
    body: Annotated[str, Field(description="The text")],
    cc: Annotated[str | list[str], Field(description="Further recipients")] = [],  # noqa: B006
    bcc: Annotated[str | list[str], Field(description="Recipients that others do not see")] = [],  # noqa: B006
    reply_to: Annotated[str, Field(description="Where answers go")] = "",
    html: Annotated[str, Field(description="The same text as HTML")] = "",
    attachments: Annotated[list[str], Field(description="Files of the project")] = [],  # noqa: B006
    provider: Annotated[str, Field(description="gmail, outlook or smtp. Default: the one that is set up")] = "",
    delay: Annotated[
        str, Field(description="When it is due, such as 10m; a person is asked whether it may go then")
    ] = "",
    cwd: Cwd = "",
) -> Answer:
    """Holds a mail as a draft instead of sending it. Until it is released it can be cancelled, and then it never left;
    rollback does that too."""
    call = call_of(ctx, cwd)
    approved: bool | InputRequiredResult | None = False
    if delay:
        parse_duration(delay)
        head = f"Send this mail by itself after {safe(delay)}, unless it is cancelled?"
        people = {"to": to, "cc": cc, "bcc": bcc, "reply_to": reply_to}
        shown = _letter(people, subject, attachments, body, html)
        approved = await approvals.ask(ctx, "delay", [Question("delay", f"{head}\n\n{shown}")])
        if isinstance(approved, InputRequiredResult):
            return approved

    def work() -> CallToolResult:
        with call.open() as workspace:
            files = all_inside(call.here, workspace, attachments)
            act = workspace.hold_email(
                to,
                subject,
                body,
                cc,
                bcc,
                reply_to,
                html,
                files,
                provider,
                delay,
                approved=approved is True,
                by=call.by,
            )
            page = Page()
            page.say(f"draft {act.id[:8]} is held: {safe(act.summary)}")
            if delay:
                page.say(
                    f"due after {safe(delay)}" + ("" if approved else "; it stays held until a person releases it")
                )
            page.hint("nothing was sent; takeback_email_cancel drops it, takeback_email_release asks a person")
            return answer(page, {"draft": _draft(workspace, act), "effect": {"id": act.id}})

    return await to_thread.run_sync(work)


async def email_release(ctx: Ctx, draft: Draft = "", cwd: Cwd = "") -> Answer:
    """Sends a held mail, after a person's yes: nothing brings it back."""
    call = call_of(ctx, cwd)
    asked_before = approvals.subject_of(ctx)

    def begin() -> CallToolResult | tuple[str, Question, CallToolResult]:
        with call.open() as workspace:
            if not asked_before:
                try:
                    return _sent(workspace, workspace.release_email(draft, by=call.by))
                except CredentialNeeded:
                    raise
                except ApprovalNeeded:
                    pass
            act = workspace.find_email(asked_before or draft)
            return act.id, _question(workspace, act), _for_a_person(workspace, act)

    found = await to_thread.run_sync(begin)
    if isinstance(found, CallToolResult):
        return found
    id, question, otherwise = found
    said = await approvals.ask(ctx, id, [question])
    if isinstance(said, InputRequiredResult):
        return said
    if said is None:
        return otherwise

    def go_on() -> CallToolResult:
        with call.open() as workspace:
            if not said:
                shape = {"draft": _draft(workspace, workspace.find_email(id)), "released": False}
                return answer("Nothing was sent: a person said no, or gave no answer. It is still held.", shape)
            return _sent(workspace, workspace.release_email(id, approved=True, by=call.by))

    return await to_thread.run_sync(go_on)


def email_cancel(
    ctx: Ctx,
    draft: Draft = "",
    trash_copy: Annotated[
        bool, Field(description="Of a mail that was sent: trash one's own copy, nothing more")
    ] = False,
    cwd: Cwd = "",
) -> CallToolResult:
    """Drops a held mail: it never left. A mail that was sent cannot be unsent."""
    call = call_of(ctx, cwd)
    with call.open() as workspace:
        act = workspace.cancel_email(draft, trash_copy=trash_copy)
        said = "your own copy is in the trash; recipients keep theirs" if trash_copy else "cancelled: it never left"
        return answer(f"{act.id[:8]} {said}", {"draft": _draft(workspace, act), "effect": {"id": act.id}})


def email_pending(ctx: Ctx, cwd: Cwd = "") -> CallToolResult:
    """Mail that is held, oldest first, with what is due."""
    call = call_of(ctx, cwd)
    with call.open() as workspace:
        held, now = workspace.pending_email(), workspace.clock()
        drafts = [_draft(workspace, act) for act in held]
    page = Page()
    for act, shape in zip(held, drafts):
        due = " · due, and waits for a person" if shape["is_due"] else ""
        page.say(f"{act.id[:8]}  {shape['state']}  {age(now - act.at)}  {safe(act.summary)}{due}")
    if not held:
        page.say("no mail is held")
    return answer(page, {"drafts": drafts})


# -- asking ------------------------------------------------------------------------


def _question(workspace: Workspace, act: Act) -> Question:
    """The mail as it would leave: a person says yes to what they have read."""
    shape = _draft(workspace, act)
    head = f"Send this mail? Nothing brings it back. (held by takeback as {act.id[:8]})"
    attached = [each["name"] for each in shape["attachments"]]
    html = workspace.read_email(act, html=True) if act.did["mail"].get("html") else ""
    shown = _letter(shape, shape["subject"], attached, workspace.read_email(act), html)
    return Question("release", f"{head}\n\n{shown}")


def _letter(people: Mapping[str, str | list[str]], subject: str, attached: list[str], body: str, html: str) -> str:
    """All of a mail that a person must have seen to say yes."""
    lines = []
    for field in ("to", "cc", "bcc", "reply_to"):
        if given := people[field]:
            boxes = given if isinstance(given, str) else ", ".join(given)
            lines.append(f"{field.replace('_', '-').capitalize()}: {safe(boxes)}")
    lines.append(f"Subject: {safe(subject)}")
    if attached:
        lines.append("Attached: " + safe(", ".join(attached)))
    lines += ["", _text(body)]
    if html:
        lines += ["", "As HTML, which most recipients see instead:", _text(html)]
    return "\n".join(lines)


def _text(body: str) -> str:
    cut = f"\n… ({len(body) - _SHOWN:,} characters more)" if len(body) > _SHOWN else ""
    return "\n".join(safe(line) for line in body[:_SHOWN].splitlines()) + cut


def _for_a_person(workspace: Workspace, act: Act) -> CallToolResult:
    run = [f"takeback email release {act.id[:8]}"]
    text = (
        f"Nothing was sent: releasing {act.id[:8]} ({safe(act.summary)}) needs a person's yes, and this client cannot "
        f"ask for one.\nA person runs, on a terminal in {safe(str(workspace.root))}: {run[0]}"
    )
    shape = {"draft": _draft(workspace, act), "released": False, "approval": {"needed": True, "run": run}}
    return answer(text, shape)


def _sent(workspace: Workspace, act: Act) -> CallToolResult:
    shape = {"draft": _draft(workspace, act), "effect": {"id": act.id}, "released": True}
    return answer(f"{act.id[:8]} was sent: {safe(act.summary)}", shape)


def _draft(workspace: Workspace, act: Act) -> dict[str, Any]:
    return outbox.draft(act, workspace.clock())


# -- what is due -------------------------------------------------------------------


class Watch(NamedTuple):
    """Until when there is nothing to do about a workspace's mail, unless something is journaled there."""

    head: int = -1
    until: float = 0.0


async def release_when_due(server: Server) -> None:
    """Sends what is due in the workspaces that were opened, as far as policy or a person lets it go by itself."""
    while True:
        await anyio.sleep(_EVERY)
        for root in list(server.roots):
            server.roots[root] = await to_thread.run_sync(_release, server, root)


def _release(server: Server, root: Path) -> Watch:
    watch = server.roots[root]
    try:
        with Call(server, str(root)).open_quietly() as workspace:
            head, now = workspace.store.journal.head().seq, workspace.clock()
            if not workspace.settings.enabled or (head == watch.head and now < watch.until):
                return watch
            stayed = [error for _, error in workspace.release_due(by={"surface": "mcp"}) if error is not None]
            later = [due for act in workspace.pending_email() if (due := act.did.get("due", 0)) > now]
            head = workspace.store.journal.head().seq
    except Exception:  # whatever it is must not end the server: the next look tries again, and status says what is due
        return watch
    return Watch(head, min(later + [now + _AGAIN] * bool(stayed), default=math.inf))
