"""Microsoft 365 by Graph: a message that is a draft until it is sent. With immutable ids it keeps its id then, so that
one can always ask what became of it."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from takeback.domains.email.message import Mail, Mailbox
from takeback.domains.email.web import Api, named
from takeback.errors import TakebackError, UsageError
from takeback.model.outside import World
from takeback.text.units import format_size

from . import GONE, HELD, SENT, Missing, Ref, Unheard

_SETTING = "OUTLOOK_ACCESS_TOKEN, or email.outlook_access_token in your configuration"
_LARGEST = 3 << 20  # what Graph takes in one request; larger ones need an upload session


class Outlook:
    name = "outlook"
    remote = True

    def __init__(self, world: World) -> None:
        settings = world.settings
        same_id = {"Prefer": 'IdType="ImmutableId"'}
        self._api = Api("Outlook", settings.outlook_api_base, settings.outlook_access_token, _SETTING, same_id)

    def ready(self) -> None:
        self._api.ready()

    def stage(self, mail: Mail, id: str, blob: str) -> dict[str, Any]:
        reply = self._api.call("POST", "/me/messages", _message(mail))
        if not reply.ok:
            raise self._api.failed(reply, "take the draft")
        if not reply.body.get("id"):
            raise Unheard("Outlook took the draft and did not say which it is", "look for it among your drafts")
        return {"draft": reply.body["id"]}

    def release(self, ref: Ref) -> dict[str, Any]:
        reply = self._api.call("POST", f"/me/messages/{named(ref['draft'])}/send")
        if reply.ok:  # 202, with nothing in it
            return {}
        if reply.status == 404:
            raise Missing("Outlook has no such draft: it was sent or deleted elsewhere", "look in your sent mail")
        raise self._api.failed(reply, "send it")

    def cancel(self, ref: Ref) -> str:
        where = self.where(ref)
        if where == SENT:  # a DELETE would only hide one's own copy
            raise TakebackError("it was sent already: recipients keep it", "there is nothing to cancel")
        if where == GONE:
            return "the draft was gone already"
        self._delete(ref, "delete the draft")
        return "the draft is in Deleted Items; it never left"

    def trash(self, ref: Ref) -> None:
        if self.where(ref) != SENT:
            raise TakebackError("Outlook has no copy of it any more", "look in your sent mail")
        self._delete(ref, "delete your copy")

    def _delete(self, ref: Ref, what: str) -> None:
        reply = self._api.call("DELETE", f"/me/messages/{named(ref['draft'])}")
        if not reply.ok and reply.status != 404:
            raise self._api.failed(reply, what)

    def where(self, ref: Ref) -> str:
        reply = self._api.call("GET", f"/me/messages/{named(ref['draft'])}?$select=isDraft,parentFolderId")
        if reply.status == 404:
            return GONE
        if not reply.ok or "isDraft" not in reply.body:
            return ""
        if not reply.body["isDraft"]:
            return SENT
        deleted = self._api.call("GET", "/me/mailFolders/deleteditems?$select=id")
        return GONE if deleted.ok and deleted.body.get("id") == reply.body.get("parentFolderId") else HELD


def _message(mail: Mail) -> dict[str, Any]:
    size = sum(len(a.data) for a in mail.attachments)
    if size > _LARGEST:
        raise UsageError(
            f"the attachments are {format_size(size)}, and Outlook takes {format_size(_LARGEST)} with a draft",
            "attach less, or hold it with another provider",
        )
    body = {"contentType": "html", "content": mail.html} if mail.html else {"contentType": "text", "content": mail.text}
    message: dict[str, Any] = {"subject": mail.subject, "body": body, "toRecipients": _people(mail.to)}
    lists = {"ccRecipients": mail.cc, "bccRecipients": mail.bcc, "replyTo": mail.reply_to}
    message.update({name: _people(boxes) for name, boxes in lists.items() if boxes})
    if mail.attachments:
        message["attachments"] = [
            {
                "@odata.type": "#microsoft.graph.fileAttachment",
                "name": a.name,
                "contentType": a.type,
                "contentBytes": b64encode(a.data).decode(),
            }
            for a in mail.attachments
        ]
    return message


def _people(boxes: tuple[Mailbox, ...]) -> list[dict[str, Any]]:
    return [{"emailAddress": {"address": b.address, **({"name": b.name} if b.name else {})}} for b in boxes]
