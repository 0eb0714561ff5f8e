"""The line above everything: which project, how much there is, and what a person should know first."""

from __future__ import annotations

from rich.text import Text

from takeback.show.timeline import Now
from takeback.surfaces.wording.text import clip, counted, safe


def top_line(project: str, stopped: str, now: Now | None, amount: str) -> Text:
    """`stopped` says why nothing is recorded or taken back, if so; `amount` how much of what is listed."""
    text = Text.assemble(("takeback ", "bold"), (clip(safe(project), 24), "cyan"), no_wrap=True)
    if stopped:
        text.append(f" · {safe(stopped)}", "bold red")
    if now is None:
        return text if stopped else text.append(" · reading …", "dim")
    if now.interrupted:
        text.append(f" · {now.interrupted}: u or x asks what becomes of it", "bold red")
    if now.under_way:
        text.append(f" · {now.under_way}", "green")
    if now.damaged:
        text.append(f" · {now.damaged}", "bold red")
    text.append(f" · {amount}, {counted(now.effects, 'effect')}", "dim")
    for call in now.at_work[:1]:
        text.append(f" · {safe(call.agent)} at work: {clip(safe(call.summary), 30)}", "green")
    if now.held:
        text.append(f" · {counted(now.held, 'mail')} held", "green")
    if now.unknown:
        text.append(f" · {now.unknown} unknown", "magenta")
    return text
