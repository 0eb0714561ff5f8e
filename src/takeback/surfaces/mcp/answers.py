"""What a call answers: text to read, and the same objects as the command line's --json.

Both are bounded: what is left out is counted, and there is a way to ask for the rest.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from os import fsdecode
from pathlib import Path
from typing import Any

from mcp_types import CallToolResult, TextContent

from takeback.errors import Stale, TakebackError
from takeback.surfaces.wording import page as cli
from takeback.surfaces.wording.text import safe

from .wording import OWN, for_agents

LONGEST_LIST = 1000
LONGEST_LINE = 4000
_LONGEST_TEXT = 60_000


class Page(cli.Page):
    """What the command line would print, with tools for commands where it says what to do next. Paths in these are
    whole where the root is known: a call may come from any folder of the project."""

    def __init__(self, root: Path | None = None) -> None:
        super().__init__()
        self._root = root

    def typed(self, path: bytes) -> str:
        return super().typed(path) if self._root is None else shlex.quote(str(self._root / fsdecode(path)))

    def hint(self, line: str) -> None:  # type: ignore[override]
        self.write(for_agents(line))

    def tell(self, lines: Iterable[str]) -> None:
        """Lines of which some say what to do next; what files hold comes after an empty one."""
        is_ours = True
        for line in lines:
            is_ours = is_ours and bool(line)
            self.write(for_agents(line) if is_ours and line.lstrip().startswith(OWN) else line)


def answer(said: object, shape: dict[str, Any], failed: bool = False) -> CallToolResult:
    text = _cut(_plain(str(said)), _LONGEST_TEXT)
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=bounded(shape), is_error=failed
    )


def failure(error: TakebackError) -> CallToolResult:
    """What went wrong, and what to do next."""
    message, hint = (_cut(_plain(text), LONGEST_LINE // 4) for text in (error.message, for_agents(error.hint)))
    lines = [safe(message)]
    told: dict[str, Any] = {"message": message, "hint": hint, "code": error.exit_code}
    if isinstance(error, Stale):
        told["differing"] = [{"target": t, "was": w, "now": n} for t, w, n in error.differing]
        lines += [f"  {safe(t)}: {safe(w)} ≠ now {safe(n)}" for t, w, n in error.differing[:20]]
    if hint:
        lines.append(f"→ {safe(hint)}")
    return answer("\n".join(lines), {"error": told}, failed=True)


def bounded(value: Any) -> Any:
    """As JSON can carry it: long lists and lines cut, with how long they were; bytes that are no UTF-8 written out."""
    if isinstance(value, str):
        return _cut(_plain(value), LONGEST_LINE)
    if isinstance(value, (list, tuple)):
        return [bounded(each) for each in value[:LONGEST_LIST]]
    if isinstance(value, dict):
        out = {bounded(name): bounded(each) for name, each in value.items()}
        for name, each in value.items():
            if isinstance(each, (list, tuple)) and len(each) > LONGEST_LIST:
                out[f"{name}_total"] = len(each)
        return out
    return value


def whole(value: Any) -> Any:
    """The same, with nothing cut."""
    if isinstance(value, str):
        return _plain(value)
    if isinstance(value, list):
        return [whole(each) for each in value]
    return {_plain(name): whole(each) for name, each in value.items()} if isinstance(value, dict) else value


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} characters more)"


def _plain(text: str) -> str:
    if text.isascii():
        return text
    return re.sub("[\ud800-\udfff]", lambda m: f"\\x{ord(m[0]) - 0xDC00:02x}" if ord(m[0]) >= 0xDC80 else "�", text)
