"""JSON as people keep it, with comments and trailing commas: what it says, and where each part of it stands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_DEEPEST = 200  # no configuration is nested like this, and the reader calls itself
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_WORDS = {"true": True, "false": False, "null": None}


class Malformed(Exception):
    """Says what is wrong, and where."""


class Node(NamedTuple):
    """A value between two places of the text. Members have their keys; elements have none."""

    value: Any
    start: int
    end: int
    parts: tuple[Part, ...] = ()
    trailing: bool = False  # whether a comma follows the last part


class Part(NamedTuple):
    """One member of an object, or one element of a list."""

    key: str
    start: int  # of its key, or of its value where it has none
    node: Node

    @property
    def end(self) -> int:
        return self.node.end


def parse(text: str) -> Node:
    """The one value of a text; Malformed if it is not one."""
    reader = _Reader(text)
    at = reader.skip(1 if text.startswith("\ufeff") else 0)
    node = reader.value(at, 0)
    end = reader.skip(node.end)
    if end != len(text):
        raise reader.wrong("something follows its end", end)
    return node


def member(node: Node, key: str) -> Part | None:
    """A member of an object; of several with one name the last, as every reader of JSON has it."""
    return next((part for part in reversed(node.parts) if part.key == key), None) if is_object(node) else None


def is_object(node: Node) -> bool:
    return isinstance(node.value, dict)


def is_list(node: Node) -> bool:
    return isinstance(node.value, list)


def last_token(text: str, start: int, end: int) -> int:
    """Where the last thing ends that is no white space, of a stretch without values."""
    return max((stop for _, stop, _ in gaps(text, start, end)), default=start)


def gaps(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """The commas and comments between two values: (start, end, "," or "//" or "/*")."""
    at = start
    while at < end:
        if text[at] == ",":
            yield at, at + 1, ","
            at += 1
        elif text.startswith(("//", "/*"), at):
            stop = _comment(text, at)
            yield at, stop, text[at : at + 2]
            at = stop
        else:
            at += 1


def _comment(text: str, at: int) -> int:
    """Where a comment ends; -1 if it never does. The line's end is not part of it."""
    if text.startswith("//", at):
        found = re.compile(r"[\r\n]").search(text, at)
        return found.start() if found else len(text)
    stop = text.find("*/", at + 2)
    return stop + 2 if stop >= 0 else -1


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def wrong(self, what: str, at: int) -> Malformed:
        before = self.text[:at].replace("\r\n", "\n").replace("\r", "\n")
        return Malformed(f"{what}, in line {before.count(chr(10)) + 1}")

    def skip(self, at: int) -> int:
        """Over white space and comments."""
        text = self.text
        while at < len(text):
            if text[at] in " \t\r\n":
                at += 1
            elif text.startswith(("//", "/*"), at):
                stop = _comment(text, at)
                if stop < 0:
                    raise self.wrong("a comment never ends", at)
                at = stop
            else:
                break
        return at

    def value(self, at: int, depth: int) -> Node:
        text = self.text
        if depth > _DEEPEST:
            raise self.wrong("it is nested too deep", at)
        first = text[at : at + 1]
        if first in ("{", "["):
            return self.container(at, depth, first == "{")
        if first == '"':
            return self.string(at)
        if found := _NUMBER.match(text, at):
            return Node(json.loads(found[0]), at, found.end())
        for word, value in _WORDS.items():
            if text.startswith(word, at):
                return Node(value, at, at + len(word))
        raise self.wrong("a value is missing" if first in ("", ",", "}", "]", ":") else "no such value", at)

    def string(self, at: int) -> Node:
        found = _STRING.match(self.text, at)
        if found is None:
            raise self.wrong("a string never ends, or holds what a string cannot", at)
        return Node(json.loads(found[0]), at, found.end())

    def container(self, start: int, depth: int, is_object: bool) -> Node:
        text, trailing = self.text, False
        parts: list[Part] = []
        close = "}" if is_object else "]"
        at = self.skip(start + 1)
        while text[at : at + 1] != close:
            if parts and not trailing:
                raise self.wrong("a comma is missing" if at < len(text) else "its end is missing", at)
            part = self.member(at, depth) if is_object else Part("", at, self.value(at, depth + 1))
            parts.append(part)
            at = self.skip(part.end)
            if trailing := text[at : at + 1] == ",":
                at = self.skip(at + 1)
        value: Any = {p.key: p.node.value for p in parts} if is_object else [p.node.value for p in parts]
        return Node(value, start, at + 1, tuple(parts), trailing)

    def member(self, at: int, depth: int) -> Part:
        if self.text[at : at + 1] != '"':
            raise self.wrong("a key is missing", at)
        key = self.string(at)
        colon = self.skip(key.end)
        if self.text[colon : colon + 1] != ":":
            raise self.wrong("a colon is missing", colon)
        return Part(key.value, at, self.value(self.skip(colon + 1), depth + 1))
