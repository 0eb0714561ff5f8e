"""SMTP: the draft is bytes in our own store, and nothing leaves before it is released. Everybody gets it or nobody
does: a server that refuses one recipient is not given the message."""

from __future__ import annotations

import smtplib
import ssl
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from email.utils import formatdate
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from takeback.domains.email.message import Mail, Mailbox, header_of, mailboxes
from takeback.errors import CredentialNeeded, TakebackError, UsageError
from takeback.model.outside import World
from takeback.privacy import redact

from . import LOOPBACK, Ref, Unheard

TIMEOUT = 30.0
_SETTING = "TAKEBACK_SMTP_URL, or email.smtp_url in your configuration"
_FROM = "TAKEBACK_SMTP_FROM, or email.smtp_from in your configuration"
_PORTS = {"smtp": 587, "smtps": 465}


class Smtp:
    name = "smtp"
    remote = False

    def __init__(self, world: World) -> None:
        self._url = world.settings.smtp_url
        self._from = world.settings.smtp_from
        self._blobs = world.blobs
        self._clock = world.clock

    def ready(self) -> None:
        """The local outbox takes everything; a server is needed to release."""

    def stage(self, mail: Mail, id: str, blob: str) -> dict[str, Any]:
        return {"draft": id, "blob": blob}

    def release(self, ref: Ref) -> dict[str, Any]:
        url, sender = self._server(), self._sender()
        data = self._head(sender, str(ref["draft"])) + self._blobs.get(bytes.fromhex(ref["blob"]))
        beyond_ascii = not all(address.isascii() for address in (sender.address, *ref["recipients"]))
        connection = None
        try:
            connection = self._open(url)
            _envelope(connection, sender.address, ref["recipients"], beyond_ascii)
        except (OSError, smtplib.SMTPException) as error:
            raise TakebackError(
                f"the mail server did not take it: {self._told(error)}; nothing was sent",
                f"mend that, or {_SETTING}, and release it again",
            ) from error
        else:
            return {"server": self._hand_over(connection, data)}
        finally:
            if connection is not None:
                _leave(connection)

    def cancel(self, ref: Ref) -> str:
        return "dropped from the outbox; it never left"

    def trash(self, ref: Ref) -> None:
        raise UsageError("mail sent by SMTP leaves no copy of your own to trash", "recipients keep theirs")

    def where(self, ref: Ref) -> str:
        """A server keeps nothing that could be asked for."""
        return ""

    # -- talking to the server -------------------------------------------------

    def _server(self) -> SplitResult:
        if not self._url:
            raise CredentialNeeded("there is no mail server to release it through", f"set {_SETTING}")
        try:
            url = urlsplit(self._url)
            good = url.scheme in _PORTS and url.hostname and (url.port or 1)
        except ValueError:
            good = False
        if not good:
            raise CredentialNeeded("the mail server's address makes no sense", f"set {_SETTING}: smtp://host:587")
        return url

    def _sender(self) -> Mailbox:
        user = unquote(urlsplit(self._url).username or "")
        given = self._from or (user if "@" in user else "")
        if not given:
            raise CredentialNeeded("there is no sender for mail sent by SMTP", f"set {_FROM}")
        boxes = mailboxes("from", given)
        if len(boxes) != 1:
            raise CredentialNeeded(f"{given!r} is not one sender", f"set {_FROM}")
        return boxes[0]

    def _head(self, sender: Mailbox, draft: str) -> bytes:
        """What the sender adds. The id is the draft's: whoever should ever get it twice can tell."""
        head = EmailMessage(SMTP if sender.address.isascii() else SMTPUTF8)
        head["From"] = header_of([sender])
        head["Date"] = formatdate(self._clock(), localtime=True)
        head["Message-ID"] = f"<{draft}@{sender.address.rpartition('@')[2]}>"
        return head.as_bytes().removesuffix(b"\r\n")

    def _open(self, url: SplitResult) -> smtplib.SMTP:
        host, port = url.hostname or "", url.port or _PORTS[url.scheme]
        context = ssl.create_default_context()
        here = "[127.0.0.1]"  # said in greeting; to look our own name up could take long
        connection: smtplib.SMTP
        if url.scheme == "smtps":
            connection = smtplib.SMTP_SSL(host, port, here, timeout=TIMEOUT, context=context)
        else:
            connection = smtplib.SMTP(host, port, here, timeout=TIMEOUT)
        try:
            connection.ehlo_or_helo_if_needed()
            secure = url.scheme == "smtps"
            if not secure and connection.has_extn("starttls"):
                connection.starttls(context=context)
                connection.ehlo()
                secure = True
            if url.username:
                if not secure and host not in LOOPBACK:
                    raise smtplib.SMTPException("it offers no encryption, and the password would be readable")
                connection.login(unquote(url.username), unquote(url.password or ""))
        except BaseException:
            connection.close()
            raise
        return connection

    def _hand_over(self, connection: smtplib.SMTP, data: bytes) -> str:
        """The point of no return: from here on an answer that does not come means that nobody knows."""
        try:
            code, answer = connection.data(data)
        except smtplib.SMTPDataError as error:
            raise self._refused(error.smtp_code, error.smtp_error) from error
        except (OSError, smtplib.SMTPException) as error:
            raise Unheard(
                f"the mail server did not answer ({self._told(error)})", "it may have been sent all the same"
            ) from error
        if code != 250:
            raise self._refused(code, answer)
        return redact.text(answer.decode("ascii", "replace")[:200], self._secrets())

    def _refused(self, code: int, answer: bytes | str) -> TakebackError:
        told = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
        return TakebackError(
            f"the mail server refused it: {code} {redact.text(told[:200], self._secrets())}; nothing was sent",
            "mend that and release it again, or cancel it",
        )

    def _told(self, error: Exception) -> str:
        if isinstance(error, smtplib.SMTPRecipientsRefused):
            told = "; ".join(f"{who}: {code} {_decoded(why)}" for who, (code, why) in error.recipients.items())
        elif isinstance(error, smtplib.SMTPResponseException):
            told = f"{error.smtp_code} {_decoded(error.smtp_error)}"
        else:
            told = str(getattr(error, "strerror", None) or error or type(error).__name__)
        return redact.text(told[:300], self._secrets())

    def _secrets(self) -> list[str]:
        password = urlsplit(self._url).password or ""
        return [secret for secret in (password, unquote(password)) if secret]


def _envelope(connection: smtplib.SMTP, sender: str, recipients: list[str], beyond_ascii: bool) -> None:
    options = []
    if beyond_ascii:
        if not connection.has_extn("smtputf8"):
            raise smtplib.SMTPException("it knows no addresses beyond ASCII")
        options = ["SMTPUTF8", "BODY=8BITMIME"]
        connection.command_encoding = "utf-8"
    code, answer = connection.mail(sender, options)
    if code != 250:
        raise smtplib.SMTPSenderRefused(code, answer, sender)
    refused = {}
    for address in recipients:
        code, answer = connection.rcpt(address)
        if code not in (250, 251):
            refused[address] = code, answer
    if refused:
        raise smtplib.SMTPRecipientsRefused(refused)


def _leave(connection: smtplib.SMTP) -> None:
    try:
        if connection.sock is not None:
            connection.sock.settimeout(5)
            connection.quit()
    except (OSError, smtplib.SMTPException):
        pass
    finally:
        connection.close()


def _decoded(answer: bytes | str) -> str:
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
