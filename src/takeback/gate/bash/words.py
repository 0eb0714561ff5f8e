"""From the pieces of a shell word to the words a program gets: quotes gone, braces expanded, expansions split."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

UNKNOWN = "\0"  # what only the running shell could say
APART = "\x1f"  # between the words of "$@" and "${A[@]}", which quotes do not join
_SPACE = " \t\n"
_MOST = 400  # words that one brace expression may make here; one that makes more is not known
_BRACES, _LONG = 40, 2000  # of a word whose braces are expanded: more would take for ever
_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")  # of=~/x
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)|([A-Za-z])\.\.([A-Za-z])")


class Piece(NamedTuple):
    text: str
    quoted: bool = False  # no split, no braces, no tilde
    splits: bool = False  # an expansion outside quotes


def named(*texts: str) -> frozenset[str]:
    """The words of a list that is written as one text."""
    return frozenset(word for text in texts for word in text.split())


Letter = tuple[str, bool]  # a character, and whether it is quoted


def fields(pieces: Iterable[Piece], home: str, between: str = "") -> list[str]:
    """The words that the pieces of one word become; expansions are split at spaces, and `between`."""
    between = _SPACE + between.replace(UNKNOWN, "")
    found: list[list[Letter]] = [[]]
    is_there = False
    for text, quoted, splits in pieces:
        is_there = is_there or quoted
        for letter in text:
            if letter == APART or (splits and letter in between):
                if found[-1] or is_there:
                    found.append([])
                is_there = False
            else:
                found[-1].append((letter, quoted or splits))
    if not found[-1] and not is_there:
        found.pop()
    made: list[str] = []
    for letters in found:
        room = [_MOST]
        if (braces := letters.count(("{", False))) > 1 and (braces > _BRACES or len(letters) > _LONG):
            made.append(UNKNOWN)
            continue
        expanded = [_with_home(word, home) for word in _braces(letters, room)]
        made += expanded if room[0] > 0 else [UNKNOWN]
    return made


def _with_home(letters: list[Letter], home: str) -> str:
    text = "".join(letter for letter, _ in letters)
    start = _ASSIGNED.match(text)
    at = start.end() if start is not None else 0
    if letters[at : at + 1] != [("~", False)] or any(quoted for _, quoted in letters[:at]):
        return text
    whose = text[at:].partition("/")[0]
    if any(quoted for _, quoted in letters[at : at + len(whose)]):
        return text
    return text[:at] + (home if whose == "~" else os.path.expanduser(whose)) + text[at + len(whose) :]


def _braces(letters: list[Letter], room: list[int]) -> list[list[Letter]]:
    """{a,b} and {1..3}, from left to right, while there is room for more words."""
    room[0] -= 1
    if room[0] <= 0:
        return []
    for start, letter in enumerate(letters):
        if letter != ("{", False):
            continue
        depth, commas = 0, [start]
        for at in range(start, len(letters)):
            if letters[at] == ("{", False):
                depth += 1
            elif letters[at] == (",", False) and depth == 1:
                commas.append(at)
            elif letters[at] == ("}", False):
                depth -= 1
                if depth == 0:
                    break
        else:
            continue
        inner = letters[start + 1 : at]
        if len(commas) > 1:
            cuts = [*commas, at]
            parts = [letters[a + 1 : b] for a, b in pairwise(cuts)]
        elif ranged := _range("".join(c for c, _ in inner)):
            parts = [[(c, True) for c in text] for text in ranged]
        else:
            continue
        return [rest for part in parts for rest in _braces([*letters[:start], *part, *letters[at + 1 :]], room)]
    return [letters]


def _range(text: str) -> list[str]:
    found = _RANGE.fullmatch(text)
    if found is None:
        return []
    first, last = (int(found[1]), int(found[2])) if found[1] else (ord(found[3]), ord(found[4]))
    step = 1 if first <= last else -1
    numbers = list(range(first, last + step, step))[:_MOST]
    return [str(n) if found[1] else chr(n) for n in numbers]


def bare(text: str) -> list[Piece]:
    """What stands outside quotes: a backslash quotes the letter after it."""
    found, at = [], 0
    for escape in re.finditer(r"\\(.)", text, re.DOTALL):
        found.append(Piece(text[at : escape.start()]))
        if escape[1] != "\n":
            found.append(Piece(escape[1], quoted=True))
        at = escape.end()
    return [*found, Piece(text[at:])]


def in_quotes(text: str) -> str:
    """Inside double quotes a backslash quotes only a few."""
    return re.sub(r'\\([\\"$`\n])', lambda found: "" if found[1] == "\n" else found[1], text)


def ansi(text: str, nul: str = "") -> str:
    """What is in $'…'."""

    def letter(found: re.Match[str]) -> str:
        said = found[1]
        try:
            if said[0] in "xuU" and len(said) > 1:
                return chr(int(said[1:], 16))
            if said[0] in "01234567":
                return chr(int(said, 8) & 0xFF)
        except (ValueError, OverflowError):
            return ""
        if said[0] == "c" and len(said) > 1:
            return chr(ord(said[1]) & 0x1F)
        return _CONTROL.get(said, said)

    return _ANSI.sub(letter, text).replace("\0", nul)


# -- without a parser --------------------------------------------------------


class Loose(NamedTuple):
    """A command as a plain reading of the letters finds it."""

    pieces: list[list[Piece]]
    writes: list[list[Piece]]


def loose(text: str, check: Callable[[], None] = lambda: None) -> list[Loose]:
    """Commands by words alone, where there is no parser or it could not make sense of the text. It sees more commands
    than there are rather than fewer, and knows quotes, comments and here-documents. `check` raises when it is late."""
    found = [Loose([], [])]
    word: list[Piece] | None = None
    target = False
    waiting: list[str] = []
    at = 0

    def end() -> None:
        nonlocal word, target
        if word is not None:
            (found[-1].writes if target else found[-1].pieces).append(word)
        word, target = None, False

    def add(piece: Piece) -> None:
        nonlocal word
        word = [] if word is None else word
        word.append(piece)

    while at < len(text):
        check()
        letter = text[at]
        if letter == "\\":
            if text[at + 1 : at + 2] != "\n":
                add(Piece(text[at + 1 : at + 2], quoted=True))
            at += 2
        elif letter == "'":
            close = text.find("'", at + 1)
            close = len(text) if close < 0 else close
            inner = text[at + 1 : close]
            if word and word[-1].text.endswith("$"):
                word[-1] = Piece(word[-1].text[:-1])
                inner = ansi(inner)
            add(Piece(inner, quoted=True))
            at = close + 1
        elif letter == '"':
            close = at + 1
            while close < len(text) and text[close] != '"':
                close += 2 if text[close] == "\\" else 1
            inner = text[at + 1 : close]
            for inside in re.findall(r"\$\(([^()]*)\)|`([^`]*)`", inner):
                found[-1:-1] = loose(inside[0] or inside[1], check)
            add(Piece(re.sub(r"\$\([^()]*\)|`[^`]*`", UNKNOWN, in_quotes(inner)), quoted=True))
            at = close + 1
        elif here := re.compile(r"<<-?\s*(['\"\\]?)([\w.]+)").match(text, at):
            end()
            waiting.append(here[2])
            at = here.end()
        elif letter == "\n" or letter in ";&|()`":
            end()
            if letter == "\n" and waiting:
                for name in waiting:
                    check()
                    body = re.compile(rf"(.*?)^\t*{re.escape(name)}$", re.DOTALL | re.MULTILINE).match(text, at + 1)
                    at = body.end() - 1 if body else len(text)
                waiting = []
            if found[-1].pieces or found[-1].writes:
                found.append(Loose([], []))
            at += 1
        elif letter == "#" and word is None:
            line = text.find("\n", at)
            at = len(text) if line < 0 else line
        elif letter in "<>":
            end()
            target = letter == ">"
            at += 2 if text[at + 1 : at + 2] in (">", "&", "|") else 1
        elif letter in " \t":
            end()
            at += 1
        else:
            stop = re.compile(r"[^\s\\'\";&|()`<>]+").match(text, at)
            run = stop[0] if stop else letter
            add(Piece(run))
            at += len(run)
    end()
    return [command for command in found if command.pieces or command.writes]
