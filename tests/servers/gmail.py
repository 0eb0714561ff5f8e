"""A stand-in for Gmail's API: drafts, threads, sent mail, as its reference has them.

A draft's id stays; the message in it gets a new id when it is sent, in the same thread, labelled SENT. A sent or
deleted draft is 404. Bcc is taken from the headers and out of what is sent."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from email import message_from_bytes
from email.policy import SMTPUTF8
from typing import Any

from .mailboxes import Mailboxes, Sent

_ME = "/gmail/v1/users/me/"


class Gmail(Mailboxes):
    def __init__(self) -> None:
        super().__init__()
        self.drafts: dict[str, dict[str, Any]] = {}
        self.messages: dict[str, dict[str, Any]] = {}
        self._count = 0

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if not path.startswith(_ME):
            return 404, {"error": {"message": "Not Found"}}
        match method, path.removeprefix(_ME).split("/"):
            case "POST", ["drafts"]:
                return self._create(body["message"]["raw"])
            case "POST", ["drafts", "send"]:
                return self._send(body["id"])
            case "GET", ["drafts", id] if id in self.drafts:
                return 200, {"id": id, "message": {"id": self.drafts[id]["id"], "labelIds": ["DRAFT"]}}
            case "DELETE", ["drafts", id] if id in self.drafts:
                del self.drafts[id]
                return 204, None
            case "GET", ["threads", id]:
                found = [m for m in [*self.messages.values(), *self.drafts.values()] if m["threadId"] == id]
                shown = [{k: m[k] for k in ("id", "threadId", "labelIds")} for m in found]
                return (200, {"id": id, "messages": shown}) if found else (404, _NOT_FOUND)
            case "POST", ["messages", id, "trash"] if id in self.messages:
                self.messages[id]["labelIds"] = ["TRASH"]
                return 200, {"id": id}
        return 404, _NOT_FOUND

    def _create(self, raw: str) -> tuple[int, Any]:
        data = urlsafe_b64decode(raw)
        self._count += 1
        id = f"r{self._count}"
        message = {"id": f"m{self._count}", "threadId": f"t{self._count}", "labelIds": ["DRAFT"], "raw": data}
        self.drafts[id] = message
        return 200, {"id": id, "message": {k: message[k] for k in ("id", "threadId", "labelIds")}}

    def _send(self, id: str) -> tuple[int, Any]:
        if id not in self.drafts:
            return 404, _NOT_FOUND
        draft = self.drafts.pop(id)
        parsed = message_from_bytes(draft["raw"].replace(b"\r\n", b"\n"), policy=SMTPUTF8)
        to = [a.addr_spec for h in ("To", "Cc", "Bcc") if parsed[h] for a in parsed[h].addresses]
        del parsed["Bcc"]
        self.sent.append(Sent(to, parsed))
        new = {**draft, "id": f"{draft['id']}-sent", "labelIds": ["SENT"]}
        self.messages[new["id"]] = new
        return 200, {k: new[k] for k in ("id", "threadId", "labelIds")}


_NOT_FOUND = {"error": {"code": 404, "message": "Requested entity was not found."}}
