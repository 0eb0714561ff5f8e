"""A person's yes, asked through the client: what an agent may not give itself.

    up to 2025-11-25   elicitation/create, while the call waits
    from 2026-07-28    the call ends with what must be asked (input_required), and comes again with the answers
    neither            nobody can be asked: the caller is told what a person runs instead

Only an accepted form whose box is ticked is a yes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import is_version_at_least
from pydantic import BaseModel, Field, StrictBool, ValidationError

from .calls import Ctx

_INPUT_REQUIRED = "2026-07-28"  # from then on a server asks by ending the call


class Question(NamedTuple):
    """One yes or no."""

    key: str
    message: str


class Yes(BaseModel):
    """The form of every question: one box, and nothing but a ticked one counts."""

    approve: StrictBool = Field(  # neither "true" nor 1 is a ticked box
        title="Approve", description="Tick to let exactly this happen; anything else does nothing"
    )


async def ask(ctx: Ctx, subject: str, questions: Sequence[Question]) -> bool | InputRequiredResult | None:
    """Whether a person says yes to all of it; None if the client cannot ask one. `subject` comes back in
    `subject_of`, when the call comes again with the answers."""
    if not can_ask(ctx):
        return None
    if _asks_by_ending(ctx):
        return _by_ending(ctx, subject, questions)
    if not ctx.session.can_send_request:
        return None
    for question in questions:
        try:
            found = await ctx.elicit(question.message, Yes)
        except ValueError:  # accepted without an answer
            return False
        except MCPError:  # it cannot ask after all
            return None
        if found.action != "accept" or not found.data.approve:
            return False
    return True


def can_ask(ctx: Ctx) -> bool:
    """Whether the client shows forms; a bare `elicitation: {}` is how that was said before there were others."""
    found = ctx.client_capabilities.elicitation if ctx.client_capabilities is not None else None
    return found is not None and (found.form is not None or found.url is None)


def subject_of(ctx: Ctx) -> str:
    """What was asked about, where this call brings the answers. The SDK seals it and binds it to the same call."""
    return str(_state(ctx).get("subject", ""))


def _asks_by_ending(ctx: Ctx) -> bool:
    return ctx.protocol_version is not None and is_version_at_least(ctx.protocol_version, _INPUT_REQUIRED)


def _by_ending(ctx: Ctx, subject: str, questions: Sequence[Question]) -> bool | InputRequiredResult:
    asked = hashlib.sha256(repr(list(questions)).encode()).hexdigest()
    answers = ctx.input_responses or {}
    if _state(ctx) == {"subject": subject, "asked": asked} and answers:
        return all(_is_yes(answers.get(question.key)) for question in questions)
    requests = {q.key: ElicitRequest(params=_form(q.message)) for q in questions}
    state = json.dumps({"subject": subject, "asked": asked})
    return InputRequiredResult(input_requests=dict(requests), request_state=state)


def _form(message: str) -> ElicitRequestFormParams:
    return ElicitRequestFormParams(message=message, requested_schema=Yes.model_json_schema())


def _is_yes(found: object) -> bool:
    if not isinstance(found, ElicitResult) or found.action != "accept":
        return False
    try:
        return Yes.model_validate(found.content).approve
    except ValidationError:
        return False


def _state(ctx: Ctx) -> dict[str, str]:
    try:
        found = json.loads(ctx.request_state or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
