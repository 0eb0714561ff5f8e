"""The filter that every surface shares: `actor:claude path:src/ since:2h -kind:checkpoint "two words"`.

Terms are separated by spaces and all must match. A term is `key:value` or bare text, which is looked
for in summary, label and prompt; several values are separated by commas and one must match; `-` before a term
turns it round; quotes keep spaces and commas.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from typing import NamedTuple, Protocol

from takeback.errors import UsageError
from takeback.model.effects import ACT_VERDICTS, UNCERTAIN
from takeback.text.units import parse_duration

KINDS = ("checkpoint", "effect", "takeback", "gate")
STATES = (
    "live", "undone", "failed", "sending", "unknown", "held", "irreversible",
    "asked", "allowed", "declined", "refused", "approved", "tried", "passed",
)  # fmt: skip


class Row(Protocol):
    """What a filter looks at."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def at(self) -> float: ...
    @property
    def actor(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def domain(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def paths(self) -> Sequence[str]: ...
    @property
    def turns(self) -> Sequence[str]: ...
    @property
    def sessions(self) -> Sequence[str]: ...
    @property
    def calls(self) -> Sequence[str]: ...


Test = Callable[[Row, float], bool]  # of a row, at a time now


class Term(NamedTuple):
    """One condition: any of its tests passes, or, if negated, none does."""

    tests: tuple[Test, ...]
    negated: bool

    def matches(self, row: Row, now: float) -> bool:
        return any(test(row, now) for test in self.tests) is not self.negated


class Filter(NamedTuple):
    """A parsed filter; an empty one matches everything."""

    text: str
    terms: tuple[Term, ...]

    def matches(self, row: Row, now: float) -> bool:
        return all(term.matches(row, now) for term in self.terms)


def _actor(value: str) -> Test:
    is_it = _name_test(value)
    return lambda row, now: is_it(row.actor)


def _domain(value: str) -> Test:
    is_it = _name_test(value)
    return lambda row, now: any(map(is_it, getattr(row, "domains", ()) or (row.domain,)))  # a take-back reaches several


def _verdict(value: str) -> Test:
    known = (*ACT_VERDICTS, UNCERTAIN)
    if "*" not in value and "?" not in value and value.lower() not in known:
        told = ", ".join(known)
        raise UsageError(f"unknown verdict {value!r} in the filter", hint=f"the verdicts are {told}")
    is_it = _name_test(value)
    return lambda row, now: is_it(row.verdict)


def _state(value: str) -> Test:
    if value.lower() not in STATES:
        raise UsageError(f"unknown state {value!r} in the filter", hint=f"the states are {', '.join(STATES)}")
    return lambda row, now: row.state == value.lower()


def _kind(value: str) -> Test:
    if value.lower() not in KINDS:
        raise UsageError(f"unknown kind {value!r} in the filter", hint=f"the kinds are {', '.join(KINDS)}")
    return lambda row, now: row.kind == value.lower()


def _label(value: str) -> Test:
    return lambda row, now: value.casefold() in row.label.casefold()


def _id(value: str) -> Test:
    return lambda row, now: row.id.startswith(value.lower())


def _turn(value: str) -> Test:
    return lambda row, now: any(id.startswith(value.lower()) for id in row.turns)


def _session(value: str) -> Test:
    return lambda row, now: any(name.casefold().startswith(value.casefold()) for name in row.sessions)


def _call(value: str) -> Test:
    return lambda row, now: any(id.startswith(value.lower()) for id in row.calls)


def _path(value: str) -> Test:
    value = value.removeprefix("./")
    if "*" in value or "?" in value:
        fits = _glob(value + "*" if value.endswith("/") else value)
        return lambda row, now: any(fits(path) for path in row.paths)
    if value.endswith("/"):
        return lambda row, now: any(path.startswith(value) for path in row.paths)
    return lambda row, now: any(path == value or path.startswith(value + "/") for path in row.paths)


def _since(value: str) -> Test:
    at = moment(value, end_of_day=False)
    return lambda row, now: row.at >= at(now)


def _until(value: str) -> Test:
    at = moment(value, end_of_day=True)
    return lambda row, now: row.at <= at(now)


def _words(value: str) -> Test:
    text = value.casefold()

    def has(row: Row, now: float) -> bool:
        told = row.summary, row.label, getattr(row, "prompt", "")  # what is outside the files may have none
        return any(text in each.casefold() for each in told)

    return has


KEYS: dict[str, tuple[Callable[[str], Test], str]] = {
    "actor": (_actor, "who did it; * and ? stand for any text and any letter"),
    "call": (_call, "how the id of an agent's call begins, in which it was found"),
    "domain": (_domain, "where it took effect: files, git, state, http, command, email, python, note, gate"),
    "id": (_id, "how the id begins"),
    "kind": (_kind, "checkpoint, effect, gate or takeback (gate: a call that was asked about or refused)"),
    "label": (_label, "text in the label"),
    "path": (_path, "a path, a folder and what is in it, or a pattern with * and ?"),
    "session": (_session, "how an agent's own name of its session begins"),
    "since": (_since, "not before: a duration ago (2h) or a date or time (2026-01-31, 2026-01-31T18:00)"),
    "state": (
        _state,
        "live or undone; outside the files also held, failed, sending, unknown, irreversible; "
        "at the gate asked, allowed, declined, refused, approved, tried, passed",
    ),
    "turn": (_turn, "how the id of an agent's turn begins"),
    "until": (_until, "not after, written as for since; a date means the end of that day"),
    "verdict": (_verdict, "exact, compensating, held, irreversible, unknown, uncertain or uncovered"),
}

_TERM = re.compile(r"""(?P<minus>-?)(?:(?P<key>[A-Za-z_]+):)?(?P<value>(?:"[^"]*"|[^\s"])*)(?=\s|$)""")
_VALUE = re.compile(r"""(?:"[^"]*"|[^",])+""")


def parse(text: str) -> Filter:
    """The filter that this text means, or a UsageError that says what is wrong with it."""
    terms = []
    at = 0
    while rest := text[at:].lstrip():
        at = len(text) - len(rest)
        found = _TERM.match(text, at)
        if found is None:
            raise UsageError(f"a quote is not closed in the filter {text!r}", hint='write "two words"')
        terms.append(_term(found[0], found["key"], found["value"], negated=bool(found["minus"])))
        at = found.end()
    return Filter(text, tuple(terms))


def _term(written: str, key: str | None, value: str, negated: bool) -> Term:
    if key is not None and key.lower() not in KEYS:
        raise UsageError(
            f"unknown key {key!r} in the filter",
            hint=f'the keys are {", ".join(KEYS)}; to look for the text itself, quote it: "{key}:…"',
        )
    values = [value] if key is None else _VALUE.findall(value)
    values = [plain for each in values if (plain := each.replace('"', ""))]
    if not values:
        raise UsageError(f"nothing to look for in {written!r}", hint="write a value, as in actor:claude")
    make = KEYS[key.lower()][0] if key is not None else _words
    return Term(tuple(make(each) for each in values), negated)


def _name_test(value: str) -> Callable[[str], bool]:
    fits = _glob(value.casefold())
    return lambda name: fits(name.casefold())


def _glob(pattern: str) -> Callable[[str], bool]:
    """A pattern in which only * and ? are special, since brackets are common in paths; * crosses slashes."""
    compiled = re.compile(fnmatch.translate(pattern.replace("[", "[[]")))
    return lambda text: compiled.match(text) is not None


def moment(value: str, end_of_day: bool) -> Callable[[float], float]:
    """The time meant, given the time now: a duration before it, or a date or time of its own."""
    try:
        ago = parse_duration(_in_short(value))
    except UsageError:
        at = _date_or_time(value, end_of_day)
        return lambda now: at
    return lambda now: now - ago


def _in_short(value: str) -> str:
    """2 days ago, as people and git write it, is 2d."""
    words = value.strip().casefold().replace(".", " ")
    found = re.fullmatch(r"(\d+) *(second|minute|hour|day|week)s?(?: +ago)?", words)
    return f"{found[1]}{found[2][0]}" if found else {"yesterday": "1d"}.get(words, value)


def _date_or_time(value: str, end_of_day: bool) -> float:
    try:
        try:
            day = date.fromisoformat(value)
        except ValueError:
            return datetime.fromisoformat(value).timestamp()
        return datetime.combine(day, time.max if end_of_day else time.min).timestamp()
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"{value!r} is neither a duration nor a date",
            hint="write a duration such as 2h, a date such as 2026-01-31, or 2026-01-31T18:00",
        ) from None
