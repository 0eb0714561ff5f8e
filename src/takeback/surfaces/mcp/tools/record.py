"""record_http, record_reversal, record_note: what was done outside the files, journaled with what takes it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from mcp_types import CallToolResult
from pydantic import Field

from takeback.errors import UsageError
from takeback.surfaces.mcp.answers import Page, answer
from takeback.surfaces.mcp.calls import Ctx, Cwd, call_of
from takeback.surfaces.wording import effects_outside, json_shapes
from takeback.surfaces.wording.text import safe

from . import KEEPS

if TYPE_CHECKING:
    from takeback.model.outside import Act
    from takeback.surfaces.mcp.server import Server
    from takeback.workspace import Workspace

# What other servers of this kind call the parts of an inverse.
HTTP_ALIASES = {f"compensator_{part}": f"inverse_{part}" for part in ("method", "url", "headers", "body")}
FOR = {"for": "for_effect", "effect": "for_effect"}

Body = dict[str, Any] | list[Any] | str | int | float | bool | None  # whatever JSON has, by its types
DependsOn = Annotated[list[str], Field(description="Ids of earlier effects that this one stands on")]
Idempotent = Annotated[bool, Field(description="Sending it twice with the same key does nothing more")]
ForEffect = Annotated[
    str, Field(description="Id of an effect that is in the ledger already, as your hooks saw it: it gets this inverse")
]
Timeout = Annotated[float, Field(ge=0, description="Seconds until it is given up; 0: the default")]


def add(server: Server) -> None:
    server.offer(record_http, "Record an HTTP call", KEEPS)
    server.offer(record_reversal, "Record what takes an act back", KEEPS)
    server.offer(record_note, "Record what nothing takes back", KEEPS)


def record_http(
    ctx: Ctx,
    method: Annotated[str, Field(description="The method of the call you made, such as POST")] = "",
    url: Annotated[str, Field(description="Its URL. Only with for_effect may it and the method be left out")] = "",
    status: Annotated[
        int | None, Field(description="The status that came back; null: no answer came. Default: not said")
    ] = 0,
    request_body: Annotated[Body, Field(description="What you sent; an excerpt is kept, without secrets")] = None,
    response_headers: Annotated[dict[str, str] | None, Field(description="The headers that came back")] = None,
    response_body: Annotated[Body, Field(description="The body that came back: JSON or text")] = None,
    inverse_method: Annotated[
        str, Field(description="The method of the request that takes it back. Default: DELETE, with a body POST")
    ] = "",
    inverse_url: Annotated[
        str,
        Field(description="Its URL, on the same origin; may hold {response.body.id} or {response.headers.location}"),
    ] = "",
    inverse_headers: Annotated[
        dict[str, str] | None, Field(description="Its headers; credentials by name only: Bearer ${env:STRIPE_KEY}")
    ] = None,
    inverse_body: Annotated[
        Body, Field(description="Its body: JSON (an object) or text; may hold references too")
    ] = None,
    expect: Annotated[list[int], Field(description="Its statuses that mean it worked. Default: 200 to 299")] = [],  # noqa: B006
    gone: Annotated[
        list[int], Field(description="Its statuses that mean there was nothing left. Default for DELETE: 404, 410")
    ] = [],  # noqa: B006
    timeout: Timeout = 0.0,
    probe: Annotated[
        dict[str, Any] | None,
        Field(description="How to find out whether it took effect: {method, url, headers, expect, gone}"),
    ] = None,
    idempotent: Idempotent = False,
    idempotent_for: Annotated[float, Field(ge=0, description="Seconds for which that holds. Default: a day")] = 0.0,
    summary: Annotated[str, Field(description="What was done, in a line")] = "",
    depends_on: DependsOn = [],  # noqa: B006
    for_effect: ForEffect = "",
    cwd: Cwd = "",
) -> CallToolResult:
    """Journals an HTTP call that you made, with the request that takes it back, so that rollback can send it later.
    Call it right after the call, with the answer: its id is known now. Nothing is sent. Without an inverse the call is
    recorded as irreversible. A call that your hooks saw gets the inverse, and no second effect is made; nor where the
    same answer, which names what the call made, was recorded already."""
    body: dict[str, Any] = {"inverse_body" if isinstance(inverse_body, str) else "inverse_json": inverse_body}
    call = call_of(ctx, cwd)
    with call.open() as workspace:
        known = dict(workspace.history().acts)
        act = workspace.record_http(
            method, url, status=status, request_body=request_body, response_headers=response_headers,
            response_body=response_body, inverse_method=inverse_method, inverse_url=inverse_url,
            inverse_headers=inverse_headers, expect=expect or None, gone=gone or None, timeout=timeout or None,
            probe=probe, idempotent=idempotent, idempotent_for=idempotent_for or None, summary=summary,
            depends_on=depends_on, by=call.by, for_effect=for_effect, **body,
        )  # fmt: skip
        return recorded(workspace, act, is_known=known.get(act.id) == act)


def record_reversal(
    ctx: Ctx,
    description: Annotated[str, Field(description="What you did, in a line: created bucket demo-1")] = "",
    command: Annotated[str, Field(description="What takes it back, as a line for the shell; prefer argv")] = "",
    argv: Annotated[list[str], Field(description='The same as words: ["aws", "s3", "rb", "s3://demo-1"]')] = [],  # noqa: B006
    run_in: Annotated[str, Field(description="The folder it runs in. Default: the project root")] = "",
    env: Annotated[list[str], Field(description="Names of environment variables that it needs")] = [],  # noqa: B006
    expect: Annotated[list[int], Field(description="Exit codes that mean it took effect. Default: 0")] = [],  # noqa: B006
    timeout: Timeout = 0.0,
    probe: Annotated[
        dict[str, Any] | None,
        Field(description="How to find out whether it took effect: {argv or shell, expect, gone}, exit codes"),
    ] = None,
    idempotent: Idempotent = False,
    target: Annotated[str, Field(description="What it touched, so that later effects on the same are known")] = "",
    depends_on: DependsOn = [],  # noqa: B006
    for_effect: ForEffect = "",
    cwd: Cwd = "",
) -> CallToolResult:
    """Journals something that you did outside the files, with the command that takes it back: give exactly one of
    command and argv. Call it right after the act. Nothing is run."""
    more: dict[str, Any] = {
        "run_in": run_in, "env": env, "expect": expect, "timeout": timeout, "probe": probe, "idempotent": idempotent
    }  # fmt: skip
    if bool(command) == bool(argv):
        given = "both were given" if command else "neither was given"
        raise UsageError(f"what takes it back is either command or argv, and {given}", "prefer argv, a list of words")
    call = call_of(ctx, cwd)
    with call.open() as workspace:
        act = workspace.record_command(
            description, argv=argv or None, shell=command or None, target=target, depends_on=depends_on, by=call.by,
            for_effect=for_effect, **{name: value for name, value in more.items() if value},
        )  # fmt: skip
        return recorded(workspace, act)


def record_note(
    ctx: Ctx,
    text: Annotated[str, Field(description="What you did, in a line: rotated the signing key")],
    left_to_do: Annotated[str, Field(description="What a person can still do about it")] = "",
    depends_on: DependsOn = [],  # noqa: B006
    cwd: Cwd = "",
) -> CallToolResult:
    """Journals something that you did outside the files and that nothing takes back, so that status, log and every
    plan name it. Call it right after the act. Where a request or a command would take it back, record that instead."""
    call = call_of(ctx, cwd)
    with call.open() as workspace:
        return recorded(
            workspace, workspace.record_note(text, left_to_do=left_to_do, depends_on=depends_on, by=call.by)
        )  # fmt: skip


def _tool_for(act: Act) -> str:
    return "takeback_record_http" if act.domain == "http" else "takeback_record_reversal"


def recorded(workspace: Workspace, act: Act, is_known: bool = False) -> CallToolResult:
    undo = effects_outside.describer(workspace)(act) if act.inverse else ""
    page = Page()
    if is_known:
        page.say(f"recorded already as {act.id[:8]}: nothing was added")
    page.say(f"effect {act.id[:8]} is recorded: {safe(act.summary)}")
    if undo:
        page.say(f"taken back by: {safe(undo)}")
    elif act.shown_state == "failed":
        page.say(safe(str(act.did.get("left_to_do", "it has no inverse"))))
    elif act.sayings:
        page.say(f"nobody knows whether it happened; a person finds out, then runs {act.resolving}")
    else:
        page.say("nothing takes it back: it has no inverse")
        page.say(f"if something does: call {_tool_for(act)} with for_effect {act.id[:8]}")
    return answer(page, {"effect": json_shapes.effect(act, workspace.history(), undo)})
