"""A real SMTP server (aiosmtpd) that keeps what it got: plain, with STARTTLS and a login, or TLS from the start."""

from __future__ import annotations

import datetime
import ssl
import threading
from collections.abc import Callable
from email import message_from_bytes
from email.policy import SMTPUTF8
from pathlib import Path
from typing import Any, NamedTuple

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword


class Got(NamedTuple):
    sender: str
    to: list[str]
    data: bytes

    @property
    def message(self) -> Any:
        return message_from_bytes(self.data.replace(b"\r\n", b"\n"), policy=SMTPUTF8)


class _Loopback(Controller):
    def __init__(self, handler: Any, **how: Any) -> None:
        super().__init__(handler, hostname="127.0.0.1", port=0, **how)

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]  # the one that was free
        super()._trigger_server()


class Smtp:
    """`refuses` names recipients it does not take; `after_data` runs when it has the message, before it answers."""

    def __init__(self, **how: Any) -> None:
        self.got: list[Got] = []
        self.refuses: set[str] = set()
        self.after_data: Callable[[Any], str | None] = lambda session: None
        self.mutex = threading.Lock()
        self._controller = _Loopback(self, enable_SMTPUTF8=True, **how)

    def __enter__(self) -> Smtp:
        self._controller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._controller.stop()

    @property
    def port(self) -> int:
        return int(self._controller.port)

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if address in self.refuses:
            return "550 5.1.1 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        with self.mutex:
            self.got.append(Got(envelope.mail_from, list(envelope.rcpt_tos), envelope.content))
        answer = self.after_data(server)
        return answer or "250 2.0.0 queued as ABC"


def certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's context for "localhost", and the file that lets clients trust it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "certificate.pem", folder / "key.pem"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    return context, public


def only(user: str, password: str) -> Callable[..., AuthResult]:
    """An authenticator that knows one person."""

    def check(server: Any, session: Any, envelope: Any, mechanism: str, data: LoginPassword) -> AuthResult:
        good = (data.login, data.password) == (user.encode(), password.encode())
        return AuthResult(success=good, handled=False)

    return check
