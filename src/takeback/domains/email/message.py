"""A mail before it is anybody's draft: addresses read, headers checked, MIME made of it.

Whatever would start another header is refused, not cleaned: who wrote it should know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from email import message_from_bytes
from email.headerregistry import Address as HeaderAddress
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from typing import Any, NamedTuple

from takeback.errors import UsageError

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = r"[^\s@<>()\[\]\\,;:\"\x00-\x1f\x7f]+"
_ADDRESS = re.compile(rf"({_WORDS})@({_WORDS})")
_NAMED = re.compile(r'(?P<name>"(?:[^"\\]|\\.)*"|[^"<>]*)\s*<(?P<address>[^<>]*)>')
_BETWEEN = re.compile(r'(?:[^",;<]|"(?:[^"\\]|\\.)*"|<[^>]*>)+')
_HEADER = 10_000  # characters: longer ones are no mail of anybody's


class Mailbox(NamedTuple):
    name: str
    address: str

    def __str__(self) -> str:
        if not self.name:
            return self.address
        name = self.name
        if re.search(r'[",;<>@\\]', name):
            name = '"' + re.sub(r'(["\\])', r"\\\1", name) + '"'
        return f"{name} <{self.address}>"


class Attachment(NamedTuple):
    name: str
    type: str
    data: bytes


class Mail(NamedTuple):
    """What a person would see of it, every part checked."""

    to: tuple[Mailbox, ...]
    subject: str
    text: str
    cc: tuple[Mailbox, ...] = ()
    bcc: tuple[Mailbox, ...] = ()
    reply_to: tuple[Mailbox, ...] = ()
    html: str = ""
    attachments: tuple[Attachment, ...] = ()

    @property
    def envelope(self) -> list[str]:
        """Every address it goes to, once."""
        return list(dict.fromkeys(box.address for box in (*self.to, *self.cc, *self.bcc)))

    @property
    def international(self) -> bool:
        """Whether an address itself, not just a name, is beyond ASCII."""
        return not all(box.address.isascii() for box in (*self.to, *self.cc, *self.bcc, *self.reply_to))

    def to_json(self) -> dict[str, Any]:
        """All but the text, for the journal and for people."""
        lists = {"to": self.to, "cc": self.cc, "bcc": self.bcc, "reply_to": self.reply_to}
        shown: dict[str, Any] = {name: [str(box) for box in boxes] for name, boxes in lists.items() if boxes}
        shown["subject"] = self.subject
        if self.html:
            shown["html"] = True
        if self.attachments:
            shown["attachments"] = [{"name": a.name, "type": a.type, "bytes": len(a.data)} for a in self.attachments]
        return shown


def compose(
    to: str | Iterable[str],
    subject: str,
    text: str,
    cc: str | Iterable[str] = (),
    bcc: str | Iterable[str] = (),
    reply_to: str | Iterable[str] = (),
    html: str = "",
    attachments: tuple[Attachment, ...] = (),
) -> Mail:
    """A mail of these parts, or a UsageError that says which one is wrong."""
    mail = Mail(
        mailboxes("to", to), one_line("the subject", subject), written("the text", text),
        mailboxes("cc", cc), mailboxes("bcc", bcc), mailboxes("reply-to", reply_to),
        written("the HTML", html), attachments,
    )  # fmt: skip
    if not mail.envelope:
        raise UsageError("a mail needs a recipient", "name one with to, cc or bcc")
    for attachment in attachments:
        one_line("the name of an attachment", attachment.name)
    return mail


def one_line(what: str, value: str) -> str:
    """A text that can stand in a header."""
    if _CONTROL.search(_text(what, value)):
        raise UsageError(
            f"{what} holds a line break or control character, which could start another header: {value[:60]!r}",
            "write it on one line",
        )
    if len(value) > _HEADER:
        raise UsageError(f"{what} is {len(value):,} characters long", "make it shorter")
    return written(what, value)


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{what} is {type(value).__name__}, not text", "write it as text")
    return value


def written(what: str, value: str) -> str:
    if _SURROGATE.search(_text(what, value)) or "\0" in value:
        raise UsageError(f"{what} holds characters that no charset has", "write it as text")
    return value


def mailboxes(what: str, given: str | Iterable[str]) -> tuple[Mailbox, ...]:
    """`bob@example.org`, `Bob <bob@example.org>`, several of them with commas in between, or a list of such."""
    found: list[Mailbox] = []
    if not isinstance(given, Iterable):
        raise UsageError(f"{what} names nobody: {given!r}", "write bob@example.org, or a list of such")
    for text in [given] if isinstance(given, str) else given:
        one_line(f"an address in {what}", text)
        left = re.sub(r"[\s,;]+", "", _BETWEEN.sub("", text))
        if left:
            raise _no_address(what, text)
        found += [_mailbox(what, part.strip()) for part in _BETWEEN.findall(text) if part.strip()]
    return tuple(dict.fromkeys(found))


def _mailbox(what: str, text: str) -> Mailbox:
    named = _NAMED.fullmatch(text)
    name, address = (named["name"].strip(), named["address"].strip()) if named else ("", text)
    if name.startswith('"'):
        name = re.sub(r"\\(.)", r"\1", name[1:-1])
    parts = _ADDRESS.fullmatch(address)
    if parts is None:
        raise _no_address(what, text)
    local, domain = parts.groups()
    try:
        domain = domain.encode("idna").decode()
    except UnicodeError:
        raise _no_address(what, text) from None
    return Mailbox(name, f"{local}@{domain}")


def _no_address(what: str, text: str) -> UsageError:
    return UsageError(f"{text[:60]!r} in {what} is no mail address", "write bob@example.org or Bob <bob@example.org>")


def mime(mail: Mail, bcc: bool = False) -> bytes:
    """The message without its sender, date and id, which whoever sends it adds. Bcc is written only for a provider
    that takes its envelope from the headers and removes it."""
    policy = (SMTPUTF8 if mail.international else SMTP).clone(cte_type="7bit")
    message = EmailMessage(policy)
    lists = {"To": mail.to, "Cc": mail.cc, "Bcc": mail.bcc if bcc else (), "Reply-To": mail.reply_to}
    for header, boxes in lists.items():
        if boxes:
            message[header] = header_of(boxes)
    message["Subject"] = mail.subject
    message.set_content(mail.text)
    if mail.html:
        message.add_alternative(mail.html, subtype="html")
    for attachment in mail.attachments:
        main, _, sub = attachment.type.partition("/")
        message.add_attachment(attachment.data, maintype=main, subtype=sub, filename=attachment.name)
    return message.as_bytes()


def header_of(boxes: Iterable[Mailbox]) -> tuple[HeaderAddress, ...]:
    return tuple(HeaderAddress(box.name, *box.address.rsplit("@", 1)) for box in boxes)


def body_of(data: bytes, kinds: tuple[str, ...] = ("plain", "html")) -> str:
    """What a person reads of a message: its plain text, or else its HTML as it is; or the first that is there."""
    part = message_from_bytes(data, policy=SMTPUTF8).get_body(kinds)
    return "" if part is None else str(part.get_content()).replace("\r\n", "\n")
