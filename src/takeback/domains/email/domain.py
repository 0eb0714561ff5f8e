"""The email domain: mail is held as a draft, so that taking it back means that it never left.

Its one inverse is `cancel`. Releasing is no inverse: outbox.py does that, as the point of no return.
"""

from __future__ import annotations

from typing import Any

from takeback.errors import CredentialNeeded, UsageError
from takeback.model.effects import DONE, UNKNOWN
from takeback.model.outside import Answer, Credential, Inverse, World

from .providers import GONE, HELD, PROVIDERS, SENT, Unheard, provider

_KEYS = {"provider", "draft", "thread", "blob", "idempotent"}
_SHOWN = {"gmail": "Gmail", "outlook": "Outlook", "smtp": "outbox"}


class Email:
    name = "email"

    def __init__(self, world: World) -> None:
        self._world = world

    def check(self, inverse: Inverse) -> Inverse:
        if inverse.op != "cancel":
            raise UsageError(f"mail is not taken back by {inverse.op!r}", "its inverse is cancel")
        if unknown := sorted(str(name) for name in inverse.args if name not in _KEYS):
            raise UsageError(f"cancelling a mail knows no {', '.join(unknown)[:200]}", "stage the mail again")
        if str(inverse.args.get("provider")) not in PROVIDERS:
            raise UsageError("the inverse names no mail provider", f"name one of {', '.join(PROVIDERS)}")
        draft = inverse.args.get("draft")
        if not isinstance(draft, str) or not draft or not draft.isprintable():
            raise UsageError("the inverse names no draft", "give the id that the provider gave it")
        if not all(isinstance(inverse.args.get(name, ""), str) for name in ("thread", "blob")):
            raise UsageError("the inverse names a draft in no way we know", "stage the mail with takeback email stage")
        return inverse

    def describe(self, inverse: Inverse) -> str:
        return f"cancel the {_SHOWN.get(inverse.args['provider'], '')} draft {inverse.args['draft']}"

    def credentials(self, inverse: Inverse) -> tuple[Credential, ...]:
        """None by name: tokens of mail are settings of the owner, each for its own service."""
        return ()

    def lacks(self, inverse: Inverse) -> str:
        """Whether a token is missing: what lies in the local outbox is dropped without any."""
        holder = provider(self.check(inverse).args["provider"], self._world)
        try:
            if holder.remote:
                holder.ready()
        except CredentialNeeded as error:
            return error.message
        return ""

    def run(self, inverse: Inverse, key: str) -> Answer:
        args = self.check(inverse).args
        try:
            return Answer(DONE, provider(args["provider"], self._world).cancel(args))
        except Unheard as error:
            return Answer(UNKNOWN, error.message)

    def probe(self, inverse: Inverse) -> bool | None:
        args = self.check(inverse).args
        try:
            where = provider(args["provider"], self._world).where(args)
        except Unheard:
            return None
        return {GONE: True, HELD: False, SENT: False}.get(where)

    def may_repeat(self, inverse: Inverse, sent_at: float) -> bool:
        """A draft that is gone cannot be cancelled again."""
        return True


def cancel(provider_name: str, ref: dict[str, Any]) -> Inverse:
    """What takes a staged mail back. It may be sent again: `idempotent` says so to the planner."""
    return Inverse("cancel", {"provider": provider_name, "idempotent": True, **ref})
