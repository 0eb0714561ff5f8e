"""Gmail: a draft has an id of its own, which stays; the message in it gets another one when it is sent."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

from takeback.domains.email.message import Mail, mime
from takeback.domains.email.web import Api, named
from takeback.errors import TakebackError
from takeback.model.outside import World

from . import GONE, HELD, SENT, Missing, Ref, Unheard

_ME = "/gmail/v1/users/me"
_SETTING = "GMAIL_ACCESS_TOKEN, or email.gmail_access_token in your configuration"


class Gmail:
    name = "gmail"
    remote = True

    def __init__(self, world: World) -> None:
        settings = world.settings
        self._api = Api("Gmail", settings.gmail_api_base, settings.gmail_access_token, _SETTING)

    def ready(self) -> None:
        self._api.ready()

    def stage(self, mail: Mail, id: str, blob: str) -> dict[str, Any]:
        raw = urlsafe_b64encode(mime(mail, bcc=True)).decode()  # Gmail takes bcc from here, and out of what it sends
        reply = self._api.call("POST", f"{_ME}/drafts", {"message": {"raw": raw}})
        if not reply.ok:
            raise self._api.failed(reply, "take the draft")
        if not reply.body.get("id"):
            raise Unheard("Gmail took the draft and did not say which it is", "look for it among your drafts")
        message = reply.body.get("message") or {}
        return {"draft": reply.body["id"], "thread": message.get("threadId", "")}

    def release(self, ref: Ref) -> dict[str, Any]:
        reply = self._api.call("POST", f"{_ME}/drafts/send", {"id": ref["draft"]})
        if reply.ok:
            return {"message": str(reply.body.get("id", ""))}
        if reply.status == 404:
            raise Missing("Gmail has no such draft: it was sent or deleted elsewhere", "look in your sent mail")
        raise self._api.failed(reply, "send it")

    def cancel(self, ref: Ref) -> str:
        reply = self._api.call("DELETE", f"{_ME}/drafts/{named(ref['draft'])}")
        if reply.ok:
            return "the draft is deleted; it never left"
        if reply.status != 404:
            raise self._api.failed(reply, "delete the draft")
        if self.where(ref) == SENT:
            raise TakebackError("it was sent already: recipients keep it", "there is nothing to cancel")
        return "the draft was gone already"

    def trash(self, ref: Ref) -> None:
        sent = self._sent(ref)
        if not sent:
            raise TakebackError("Gmail has no copy of it any more, or does not show it", "look in your sent mail")
        reply = self._api.call("POST", f"{_ME}/messages/{named(sent)}/trash")
        if not reply.ok:
            raise self._api.failed(reply, "trash your copy")

    def where(self, ref: Ref) -> str:
        reply = self._api.call("GET", f"{_ME}/drafts/{named(ref['draft'])}?format=minimal")
        if reply.ok:
            return HELD
        if reply.status != 404:
            return ""
        sent = self._sent(ref)
        return SENT if sent else GONE if sent is not None else ""

    def _sent(self, ref: Ref) -> str | None:
        """The id of the sent message, which is in the draft's thread; empty if there is none, None if it is hidden."""
        if not ref.get("thread"):
            return None
        reply = self._api.call("GET", f"{_ME}/threads/{named(ref['thread'])}?format=minimal")
        if not reply.ok:
            return "" if reply.status == 404 else None
        found = [m for m in reply.body.get("messages", ()) if "SENT" in m.get("labelIds", ())]
        return str(found[-1]["id"]) if found else ""
