"""A stand-in for Microsoft Graph: messages that are drafts until they are sent, as its reference has them.

/send answers 202 with an empty body. DELETE moves to Deleted Items. With immutable ids a message keeps its id, else
each move gives it a new one."""

from __future__ import annotations

from typing import Any

from .mailboxes import Mailboxes, Sent


class Graph(Mailboxes):
    def __init__(self) -> None:
        super().__init__()
        self.messages: dict[str, dict[str, Any]] = {}

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        match method, path.strip("/").split("/"):
            case "POST", ["v1.0", "me", "messages"]:
                id = f"AAMk{len(self.messages) + 1}="
                self.messages[id] = {"id": id, "isDraft": True, "parentFolderId": "drafts-id", **body}
                return 201, self.messages[id]
            case "POST", ["v1.0", "me", "messages", id, "send"] if self._is_draft(id):
                message = self.messages[id]
                lists = ("toRecipients", "ccRecipients", "bccRecipients")
                to = [r["emailAddress"]["address"] for name in lists for r in message.get(name, ())]
                self.sent.append(Sent(to, message))
                self._move(id, {"isDraft": False, "parentFolderId": "sent-id"})
                return 202, None
            case "DELETE", ["v1.0", "me", "messages", id] if id in self.messages:
                self._move(id, {"parentFolderId": "deleted-id"})
                return 204, None
            case "GET", ["v1.0", "me", "messages", id] if id in self.messages:
                return 200, {k: self.messages[id][k] for k in ("id", "isDraft", "parentFolderId")}
            case "GET", ["v1.0", "me", "mailFolders", "deleteditems"]:
                return 200, {"id": "deleted-id"}
        return 404, {"error": {"code": "ErrorItemNotFound", "message": "The specified object was not found."}}

    def _is_draft(self, id: str) -> bool:
        return id in self.messages and self.messages[id]["isDraft"]

    def _move(self, id: str, change: dict[str, Any]) -> None:
        message = {**self.messages.pop(id), **change}
        stays = "ImmutableId" in self.asked[-1].headers.get("Prefer", "")
        self.messages[id if stays else id + "moved"] = message
