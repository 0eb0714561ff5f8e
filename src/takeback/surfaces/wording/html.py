"""HTML, made of tags and text. Text is escaped here and nowhere else; nothing but this module makes Markup.

What would steer a reader's eye (control characters, marks that turn text round) is written out, as on a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from urllib.parse import quote, urlencode

from takeback.surfaces.wording.text import safe

_VOID = frozenset(("br", "col", "hr", "img", "input", "link", "meta"))
_URLS = frozenset(("href", "src", "action", "formaction"))
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")


class Markup(str):
    """HTML that is safe as it is."""

    __slots__ = ()


Child = str | Markup | None | Iterable["Child"]
Value = str | int | float | bool | None


def tag(name: str, /, *children: Child, **attributes: Value) -> Markup:
    """`tag("a", "text", href="/x", class_="y", aria_label="z")`; None and False leave an attribute out."""
    told = "".join(_attribute(each, value) for each, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{told}>")
    return Markup(f"<{name}{told}>{''.join(_written(child) for child in children)}</{name}>")


def lines(text: str) -> Markup:
    """Text of several lines, to stand in a pre: line breaks and tabs stay."""
    return Markup("\n".join(_escaped(line) for line in text.split("\n")))


def joined(parts: Iterable[Child], between: str = " · ") -> Markup:
    return Markup(_escaped(between).join(_written(part) for part in parts))


def document(head: Child, body: Markup) -> str:
    return f'<!doctype html>\n<html lang="en"><head>{_written(head)}</head>{body}</html>\n'


def url(*steps: str, **query: str | int | None) -> str:
    """A place on this site: `url("item", id, filter=…)`; what is empty is left out of the query."""
    path = "/" + "/".join(quote(step, safe="", errors="surrogateescape") for step in steps)
    asked = {name: value for name, value in query.items() if value not in ("", None)}
    return f"{path}?{urlencode(asked, errors='surrogateescape')}" if asked else path


def _written(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return str(child)
    if isinstance(child, str):
        return _escaped(child)
    return "".join(_written(each) for each in child)


def _attribute(name: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    if not _NAME.fullmatch(name) or name.startswith("on") or name == "style":
        raise ValueError(f"an attribute {name!r} is not for these pages")
    if value is True:
        return f" {name}"
    if name in _URLS and not re.match(r"(/(?!/)|#)", str(value)):
        raise ValueError(f"{value!r} leads away from here")
    return f' {name}="{_escaped(str(value))}"'


def _escaped(text: str) -> str:
    """Tabs stay: they stand in lines of files."""
    return escape("\t".join(map(safe, text.split("\t"))), quote=True)
