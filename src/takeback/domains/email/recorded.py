"""A mail as the journal has it: whether it is one, to whom it goes, and what dropping it means."""

from __future__ import annotations

from takeback.model.outside import Act


def is_mail(act: Act) -> bool:
    """Whether it is a mail as we journal it: rows may have been written by anybody."""
    mail, due, blobs = act.did.get("mail"), act.did.get("due", 0), act.did.get("blobs", [])
    if act.domain != "email" or not isinstance(mail, dict) or not isinstance(due, (int, float)):
        return False
    lists = [mail.get(field, []) for field in ("to", "cc", "bcc", "reply_to")]
    texts = [mail.get("subject", ""), act.did.get("provider", ""), act.did.get("left_to_do", "")]
    return (
        all(isinstance(boxes, list) and all(isinstance(box, str) for box in boxes) for boxes in [*lists, blobs])
        and all(isinstance(text, str) for text in texts)
        and isinstance(mail.get("attachments", []), list)
        and all(isinstance(each, dict) and {*each} == {"name", "type", "bytes"} for each in mail.get("attachments", []))
    )


def recipients(act: Act) -> list[str]:
    mail = act.did.get("mail", {})
    return [box for field in ("to", "cc", "bcc") for box in mail.get(field, ())]


def dropping(act: Act) -> str:
    """What cancelling it does, in words that a person knows it by; empty if it is no mail as we journal it."""
    if not is_mail(act) or not recipients(act):
        return ""
    return f'drop the draft for {", ".join(recipients(act))}: "{act.did["mail"].get("subject", "")}"'
