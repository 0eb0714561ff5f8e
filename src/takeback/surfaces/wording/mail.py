"""A held mail as a person reads it before it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.domains.email.recorded import recipients

from .text import listed, safe

if TYPE_CHECKING:
    from takeback.model.outside import Act
    from takeback.workspace import Workspace

    from .screen import Screen


def release_question(act: Act) -> str:
    return f"Type yes to send it to {listed(recipients(act), 6)} (this cannot be undone):"


def write_mail(terminal: Screen, workspace: Workspace, act: Act) -> None:
    """All of it that a person must have seen to say yes."""
    mail = act.did.get("mail", {})
    terminal.write(terminal.style(f"Mail {act.id[:8]}", "bold") + f" · {safe(str(act.did.get('provider', '')))}")
    for field, name in (("to", "to"), ("cc", "cc"), ("bcc", "bcc"), ("reply_to", "reply to")):
        if mail.get(field):
            terminal.write(f"  {name}: {', '.join(map(safe, mail[field]))}")
    terminal.write(f"  subject: {safe(mail.get('subject', ''))}")
    for attached in mail.get("attachments", ()):
        terminal.write(f"  attached: {safe(attached['name'])} ({safe(attached['type'])}, {attached['bytes']:,} bytes)")
    _show_text(terminal, workspace.read_email(act))
    if mail.get("html"):
        terminal.write("  as HTML, which most recipients see instead:")
        _show_text(terminal, workspace.read_email(act, html=True))


def _show_text(terminal: Screen, text: str) -> None:
    for line in text.rstrip("\n").split("\n"):
        terminal.write(f"  | {safe(line)}")
