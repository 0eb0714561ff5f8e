"""A configuration file as text, with what is ours put in and taken out again, and every other byte left as it is.

    put in      a list's element or an object's member, after the last one; what is missing around it is made
    take out    exactly the same, wherever it stands by now, with the comma that came with it

Each character knows whether it is ours. While nobody else has edited the text, dropping those gives the one before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence, Set
from itertools import groupby
from typing import Any, NamedTuple

from . import jsonc
from .jsonc import Malformed, Node, Part

Where = tuple[str, ...]  # keys from the top down to a list or an object
Made = Set[Where]  # lists and objects that were not there


class Span(NamedTuple):
    """Text of ours, and where it begins."""

    at: int
    text: str


class Document:
    def __init__(self, text: str, made: Made | None = frozenset()) -> None:
        """`made` is what was made when ours was put in; None if nobody remembers: then whatever is empty goes."""
        self.text = text
        self.made: set[Where] = set(made or ())
        self._forgot = made is None
        self._ours = bytearray(len(text))
        self.root = jsonc.parse(text)
        if not jsonc.is_object(self.root):
            raise Malformed("its top level is no object")
        found = re.search(r"\r\n|\n|\r", text)
        self._newline = found[0] if found else "\n"
        self._unit = _unit(text, self.root)

    # -- looking -------------------------------------------------------------

    def find(self, where: Where) -> Node | None:
        node = self.root
        for key in where:
            part = jsonc.member(node, key)
            if part is None:
                return None
            node = part.node
        return node

    def spans(self) -> tuple[Span, ...]:
        """What is ours, so that it can be dropped again."""
        found, at = [], 0
        for ours, run in groupby(self._ours):
            length = len(list(run))
            if ours:
                found.append(Span(at, self.text[at : at + length]))
            at += length
        return tuple(found)

    # -- putting in ----------------------------------------------------------

    def append(self, where: Where, value: Any) -> None:
        """Puts an element at the end of a list."""
        self._make(where[:-1], where[-1], "[]")
        node = self.find(where)
        assert node is not None
        if not jsonc.is_list(node):
            raise Malformed(f"{_called(where)} is no list")
        self._put(node, len(where), json.dumps(value, ensure_ascii=False))

    def set(self, where: Where, value: Any) -> None:
        """Puts a member into an object that lacks it."""
        self._make(where[:-1], where[-1], json.dumps(value, ensure_ascii=False))

    def _make(self, above: Where, key: str, value: str) -> None:
        """Sees to it that a member is there, and the objects above it."""
        if above:
            self._make(above[:-1], above[-1], "{}")
        node = self.find(above)
        assert node is not None
        if not jsonc.is_object(node):
            raise Malformed(f"{_called(above)} is no object")
        if jsonc.member(node, key) is None:
            self._put(node, len(above), f"{json.dumps(key)}: {value}")
            self.made.add((*above, key))

    def _put(self, node: Node, depth: int, new: str) -> None:
        """After the last part of an object or a list, in the way it is written."""
        text = self.text
        before = node.parts[-1].end if node.parts else node.start + 1
        at = jsonc.last_token(text, before, node.end - 1)
        tail = text[at : node.end - 1]
        opening = text[node.start + 1 : node.parts[0].start] if node.parts else ""
        broken = not node.parts or "\n" in opening or "\r" in opening or _ends_a_line(text, before, at)
        inner = self._newline + self._unit * (depth + 1)
        if node.parts and broken and (found := re.search(r"(?:\r\n|\n|\r)[ \t]*$", opening)):
            inner = found[0]
        added = (inner if broken else " ") + new + ("," if node.trailing else "")
        if broken and not re.search(r"[\r\n]", tail):
            added += self._newline + self._unit * depth
        self._insert(at, added)
        if node.parts and not node.trailing:
            self._insert(before, ",")
        self._parse()

    def _insert(self, at: int, new: str) -> None:
        self.text = self.text[:at] + new + self.text[at:]
        self._ours[at:at] = b"\1" * len(new)

    # -- taking out ----------------------------------------------------------

    def take_out(self, where: Where, is_ours: Callable[[Any], bool]) -> int:
        """Takes the parts of a list or an object out that are ours; the lists and objects made for them go too, once
        they are empty. Returns how many."""
        count = 0
        while (node := self.find(where)) is not None:
            mine = [part for part in node.parts if is_ours(part.node.value)]
            if not mine:
                break
            self._cut(node, mine[-1])
            count += 1
        if count:
            self.tidy(where)
        return count

    def take_out_within(self, where: Where, key: str, is_ours: Callable[[Any], bool]) -> int:
        """The same one level deeper: in the list called `key` of each element; an element whose list is all ours
        goes as a whole."""
        count = 0
        while (node := self.find(where)) is not None:
            cut = next(
                (
                    (inner.node, part)
                    for element in node.parts
                    if (inner := jsonc.member(element.node, key)) is not None
                    for part in inner.node.parts
                    if is_ours(part.node.value)
                ),
                None,
            )
            if cut is None:
                break
            element = next(e for e in node.parts if e.start <= cut[1].start < e.end)
            whole = all(is_ours(part.node.value) for part in cut[0].parts)
            self._cut(node, element) if whole else self._cut(*cut)
            count += 1
        if count:
            self.tidy(where)
        return count

    def drop(self, where: Where) -> None:
        """Takes one member out."""
        above = self.find(where[:-1])
        part = jsonc.member(above, where[-1]) if above is not None else None
        if above is not None and part is not None:
            self._cut(above, part)
            self.made.discard(where)
            self.tidy(where[:-1])

    def tidy(self, where: Where) -> None:
        """Takes an empty list or object out that was made for what is gone, and so on upwards."""
        node = self.find(where)
        if where and node is not None and not node.parts and (where in self.made or self._forgot):
            self.drop(where)

    def _cut(self, node: Node, part: Part) -> None:
        """A part with the white space before it and one comma: the one after it, else the one before."""
        text = self.text
        index = node.parts.index(part)
        until = node.parts[index + 1].start if index + 1 < len(node.parts) else node.end - 1
        after = next((at for at, _, what in jsonc.gaps(text, part.end, until) if what == ","), None)
        behind = node.parts[index - 1].end if index else node.start + 1
        start = jsonc.last_token(text, behind, part.start)
        end = part.end
        if after is not None and not text[end:after].strip():
            end, after = after + 1, None
        comma = after
        if after is None and end == part.end and index:
            comma = next(at for at, _, what in jsonc.gaps(text, behind, part.start) if what == ",")
        if _ends_a_line(text, behind, start) and not re.match(r"[ \t]*[\r\n]", text[end:]):
            start = len(text[: part.start].rstrip(" \t"))  # what follows must not become part of the comment
        if not index and after is None and index + 1 == len(node.parts):
            # Alone in its list or object, which was written out for it: [] is what was there.
            if not text[node.start + 1 : start].strip() and not text[end : node.end - 1].strip():
                start, end = node.start + 1, node.end - 1
        self._remove(start, end)
        if comma is not None:
            self._remove(comma if comma < start else comma - (end - start), None)
        self._parse()

    def _remove(self, start: int, end: int | None) -> None:
        end = start + 1 if end is None else end
        self.text = self.text[:start] + self.text[end:]
        del self._ours[start:end]

    def _parse(self) -> None:
        self.root = jsonc.parse(self.text)


def without(text: str, spans: Sequence[Span]) -> str | None:
    """A text before these were put in; None if they are not where they should be."""
    for span in reversed(spans):
        end = span.at + len(span.text)
        if text[span.at : end] != span.text:
            return None
        text = text[: span.at] + text[end:]
    return text


def _called(where: Where) -> str:
    return "its " + ".".join(where)


def _ends_a_line(text: str, start: int, at: int) -> bool:
    """Whether the last thing before a place is a comment that runs to the end of its line."""
    last = None
    for _, stop, what in jsonc.gaps(text, start, at):
        last = what if stop == at else None
    return last == "//"


def _unit(text: str, root: Node) -> str:
    """How far one level is indented."""
    for part in root.parts:
        line = re.split(r"[\r\n]", text[: part.start])[-1]
        if line and not line.strip(" \t"):
            return line
    return "  "
