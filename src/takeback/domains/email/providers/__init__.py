"""Mail as data, and what is needed of a provider that holds it as a draft and sends it later.

    compose (message.py) ─► stage ─► held ─► release: it leaves, and nothing brings it back
                                        └──► cancel: it never left

One provider per file. Each raises TakebackError where nothing was done, and Unheard where nobody knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from takeback.errors import TakebackError, UsageError
from takeback.model.outside import World

if TYPE_CHECKING:
    from takeback.config.settings import Settings
    from takeback.domains.email.message import Mail

HELD, SENT, GONE = "held", "sent", "gone"  # where a draft is; an empty text where nobody can tell
LOOPBACK = ("localhost", "127.0.0.1", "::1")  # where nobody listens in
PROVIDERS = {"gmail": "gmail:Gmail", "outlook": "outlook:Outlook", "smtp": "smtp:Smtp"}

Ref = Mapping[str, Any]  # what a provider needs to find a draft again, as JSON has it


class Unheard(TakebackError):
    """It was sent, and no answer came: it may have taken effect."""


class Missing(TakebackError):
    """There is no such draft: it was sent or deleted elsewhere."""


class Provider(Protocol):
    """Holds mail and sends it. A draft is sent at most once."""

    name: str
    remote: bool  # whether staging leaves this machine

    def __init__(self, world: World) -> None: ...

    def ready(self) -> None:
        """Raises if a draft cannot be made: a setting is missing."""

    def stage(self, mail: Mail, id: str, blob: str) -> dict[str, Any]:
        """Makes the draft; what finds it again. `id` is new, and `blob` holds the message in the store."""

    def release(self, ref: Ref) -> dict[str, Any]:
        """Sends the draft, once; what the other side said. `recipients` in it are the addresses a person saw."""

    def cancel(self, ref: Ref) -> str:
        """Drops a draft that was not sent; a note on how."""

    def trash(self, ref: Ref) -> None:
        """Moves one's own copy of what was sent to the trash."""

    def where(self, ref: Ref) -> str:
        """HELD, SENT, GONE, or an empty text."""


def chosen(settings: Settings, asked: str = "") -> str:
    """The provider asked for, else the one set, else the one that has what it needs; the local outbox needs nothing."""
    if asked and asked not in PROVIDERS:
        raise UsageError(f"{asked!r} is no mail provider", f"name one of {', '.join(PROVIDERS)}")
    configured = [
        name
        for name, value in (
            ("gmail", settings.gmail_access_token),
            ("outlook", settings.outlook_access_token),
            ("smtp", settings.smtp_url),
        )
        if value
    ]
    return asked or settings.provider or (configured[0] if configured else "smtp")


def provider(name: str, world: World) -> Provider:
    if name not in PROVIDERS:
        raise UsageError(f"{name!r} is no mail provider", f"name one of {', '.join(PROVIDERS)}")
    module, _, found = PROVIDERS[name].partition(":")
    made: Provider = getattr(import_module(f".{module}", __name__), found)(world)
    return made
