"""doctor: one line per check, each failure with its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.surfaces.wording.text import safe

from . import doctor_checks

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = ""
    parser.about = "Checks the set-up, one line each; exit 1 if any check fails, each with its fix."
    parser.examples = [("takeback doctor", ""), ("takeback doctor --json", "for a bug report")]


def run(context: Context, args: Namespace) -> int:
    found = doctor_checks.all_of(context)
    if context.json:
        shape = [{"name": c.name, "ok": c.ok, "detail": c.detail, "fix": c.fix} for c in found]
        context.terminal.json({"checks": shape})
    else:
        style = context.terminal.style
        width = max(len(c.name) for c in found)
        for check in found:
            mark = style("✓", "green") if check.ok else style("✗", "red")
            context.terminal.write(f"{mark} {check.name:<{width}}  {safe(check.detail)}")
            if check.fix:
                context.terminal.write(f"  {'':<{width}}  → {safe(check.fix)}")
        bad = sum(not c.ok for c in found)
        context.terminal.say("all is well" if not bad else f"{bad} of {len(found)} checks failed")
    return 0 if all(c.ok for c in found) else 1
