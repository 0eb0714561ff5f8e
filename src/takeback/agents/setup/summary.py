"""What a change puts into a file and takes out of it, in a few words. The diff has it in full."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from . import changes, jsonc, lines
from .changes import Change
from .targets import is_marked

_MOST = 6  # lines of another format that are shown as they are
_GONE = object()


class Summary(NamedTuple):
    words: tuple[str, ...]  # "+ 2 hooks: PreToolUse, PostToolUse"
    commands: tuple[str, ...] = ()  # what new hooks run, with AGENT and EVENT for what differs
    is_own: bool = False  # whether the file is takeback's alone


def summary(change: Change) -> Summary:
    before, after = _text(change.found.data), _text(change.after)
    if is_marked(after or before):
        return Summary((), is_own=True)
    try:
        return _of_json(_value(before), _value(after))
    except jsonc.Malformed:
        return Summary(tuple(_lines(before, after)))


def _of_json(old: Any, new: Any) -> Summary:
    had, has = changes.hooks_in(old), changes.hooks_in(new)
    gained, lost = Counter(has) - Counter(had), Counter(had) - Counter(has)
    new_ones, gone = ([event for event, _ in each.elements()] for each in (gained, lost))
    words = []
    if new_ones and sorted(new_ones) == sorted(gone):
        words.append(f"~ {_hooks(new_ones)}, renewed")
    else:
        words += [f"+ {_hooks(new_ones)}"] if new_ones else []
        words += ["− " + _hooks(gone, " of takeback's")] if gone else []
    words += _members(old, new)
    return Summary(tuple(words), tuple(dict.fromkeys(_command(line) for _, line in gained)))


def _hooks(events: list[str], whose: str = "") -> str:
    return f"{len(events)} {'hook' if len(events) == 1 else 'hooks'}{whose}: {', '.join(events)}"


def _command(line: str) -> str:
    found = lines.read(line)
    tail = f"{found.agent} {found.event}".rstrip() if found is not None else ""
    return f"{line.removesuffix(tail)}AGENT EVENT" if tail and line.endswith(tail) else line


def _members(old: Any, new: Any, above: tuple[str, ...] = ()) -> Iterator[str]:
    """The members that differ, but for hooks; one that is there on one side alone is opened once, to name what is in
    it."""
    for key in dict.fromkeys((*old, *new)):
        where, was, now = (*above, key), old.get(key, _GONE), new.get(key, _GONE)
        if was == now or where == ("hooks",):
            continue
        is_open = all(isinstance(side, dict) or side is _GONE for side in (was, now))
        if is_open and (not above or _GONE not in (was, now)):
            yield from _members({} if was is _GONE else was, {} if now is _GONE else now, where)
            continue
        sign = "+" if was is _GONE else "−" if now is _GONE else "~"
        yield f"{sign} {'.'.join(where)}" + ("" if was is not _GONE else f" = {json.dumps(now, ensure_ascii=False)}")


def _lines(before: str, after: str) -> Iterator[str]:
    old, new = Counter(before.splitlines()), Counter(after.splitlines())
    for sign, found in (("+", new - old), ("−", old - new)):
        told = [line for line in found.elements() if line.strip()]
        if len(told) > _MOST:
            yield f"{sign} {len(told)} lines"
        else:
            yield from (f"{sign} {line}" for line in told)


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")


def _value(text: str) -> Any:
    found = jsonc.parse(text).value if text.strip().strip("\ufeff") else {}
    if not isinstance(found, dict):
        raise jsonc.Malformed("its top level is no object")
    return found
