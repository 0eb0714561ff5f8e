"""What a person calls something: a checkpoint's number, an exact label, the beginning of an id, words of a prompt.

A path of that name is meant before the beginning of an id and before words; where only an entry will do, both are
named."""

from __future__ import annotations

import re
from collections.abc import Callable
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from takeback.errors import NotFound, UsageError
from takeback.model.effects import RUN, Turn

from .history import History

if TYPE_CHECKING:
    from takeback.model.outside import Undo

BEFORE = "before:"  # in front of a name: just before what is called so, which is where going back to it leads anyway


class Named(NamedTuple):
    id: str
    kind: str  # checkpoint, track, effect, takeback, call, turn, plan
    seq: int
    label: str
    prompt: str = ""  # of a turn

    def __str__(self) -> str:
        return f"{self.id[:12]} ({self.kind}{f' “{self.prompt}”' if self.prompt else ''})"


def everything(history: History) -> list[Named]:
    found = [Named(c.id, "checkpoint", c.seq, c.label) for c in history.checkpoints]
    found += [Named(e.id, "effect", e.seq, "") for e in history.all_effects if not e.takeback and e.changes]
    found += [Named(t.id, "track", t.seq, "") for t in history.tracks.values()]
    found += [Named(t.id, "takeback", t.seq, "") for t in history.takebacks.values()]
    found += [Named(b.id, "call", b.seq, "") for b in history.brackets.values()]
    found += [Named(t.id, "turn", t.seq, "", t.prompt) for t in history.agent_turns.values()]
    return sorted(found, key=lambda n: n.seq)


def resolve(
    history: History,
    name: str,
    plans: bool = False,
    prompts: bool = True,
    is_path: Callable[[str], bool] | None = None,
) -> Named:
    """The number of a checkpoint, then an exact label (the newest), then a unique id prefix, then, unless `prompts` is
    False, words of what an agent was asked; two matches is an error that lists both. So is, of the last two, what
    `is_path` says is a path."""
    known = [Named(id, "plan", 0, "") for id in history.plans] if plans else everything(history)
    if (found := _exact(history, known, name, plans)) is not None:
        return found
    matches = [n for n in known if n.id.startswith(name)] if name else []
    if not matches and prompts and not plans:
        rest = name[len(BEFORE) :].strip() if name[: len(BEFORE)].lower() == BEFORE else ""
        if rest:
            return resolve(history, rest)
        matches = _asked_for(known, name)
    if matches and is_path is not None and is_path(name):
        raise _path_too(name, matches)
    if len(matches) == 1:
        return matches[0]
    if matches:
        by_id = matches[0].id.startswith(name)
        how = "type more letters of the id" if by_id else "name one by its id, or by more of its words"
        raise UsageError(f"{name!r} is ambiguous: {', '.join(map(str, matches[-6:]))}", how)
    if name and any(id.startswith(name) for id in history.forgotten):
        raise _pruned(name)
    if not plans and (attempt := attempt_called(history, name)) is not None:
        raise NotFound(*_is_attempt(history, name, attempt))
    hint = "list them with takeback log"
    if history.forgotten and not plans:  # a label goes with its checkpoint: whether this was one is not known any more
        hint += "; what was pruned is known by its number and id only, not by its label"
    what = "plan" if plans else "checkpoint, turn, effect or take-back"
    raise NotFound(f"no {what} is called {name!r}", hint)


def attempt_called(history: History, name: str) -> Undo | None:
    """The attempt to take an effect back whose id begins so, as `effects` lists it; None where that is none, or
    several."""
    found = [undo for undo in history.undos.values() if len(name) >= 4 and undo.id.startswith(name)]
    return found[0] if len(found) == 1 else None


def _is_attempt(history: History, name: str, undo: Undo) -> tuple[str, str]:
    """What that is, and by which names it is reached."""
    act = history.acts[undo.act]
    told = f"{name!r} is what was sent to undo {act.id[:8]} ({act.summary}), by take-back {undo.takeback[:8]}"
    return told, f"name the effect, {act.id[:8]}, or the take-back, {undo.takeback[:8]}"


def exactly(history: History, name: str) -> Named | None:
    """What has this number, this label or this whole id."""
    return _exact(history, everything(history), name)


def _exact(history: History, known: list[Named], name: str, plans: bool = False) -> Named | None:
    if name.isdecimal() and not plans and (found := _numbered(history, known, int(name))) is not None:
        return found
    called = [n for n in known if n.label and n.label == name]
    if len(called) > 1:  # what somebody called so comes before what a turn began with, called as its prompt
        asked = history.agent_turns
        began = {c.id for c in history.checkpoints if (t := asked.get(Turn(c.agent, c.turn))) and t.prompt == c.label}
        called = [n for n in called if n.id not in began] or called
    same = called or [n for n in known if n.id == name]
    return same[-1] if same else None


def _path_too(name: str, matches: list[Named]) -> UsageError:
    by_id = matches[0].id.startswith(name)
    others = f"{', '.join(map(str, matches[-3:]))}{', …' if len(matches) > 3 else ''}"
    how = f"how the id of {others} begins" if by_id else f"in what an agent was asked: {others}"
    here = quote(f"./{name}".replace("././", "./"))
    return UsageError(
        f"{name!r} is a path, and also {how}",
        f"type more letters of the id, {matches[-1].id[:8]}; or, for the path: takeback revert {here}",
    )


def _numbered(history: History, known: list[Named], number: int) -> Named | None:
    for id, ordinal in history.numbers.items():
        if ordinal == number:
            if id in history.forgotten:
                raise _pruned(f"checkpoint {number}")
            return next((n for n in known if n.id == id), None)
    return None


def _asked_for(known: list[Named], name: str) -> list[Named]:
    """The turns of agents whose prompt is this, or else has each of these words; a number is none."""
    asked = _words(name)
    if not asked or name.isdecimal():
        return []
    turns = [n for n in known if n.prompt]
    return [n for n in turns if _words(n.prompt) == asked] or [n for n in turns if set(asked) <= set(_words(n.prompt))]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def work(history: History, found: Named) -> Named:
    """What can be taken back: of a checkpoint that an agent's turn or a run began with, that turn."""
    checkpoint = next((c for c in history.checkpoints if c.id == found.id), None)
    if checkpoint is None:
        return found
    asked = history.agent_turns.get(Turn(checkpoint.agent, checkpoint.turn))
    if asked is not None and checkpoint.label == asked.prompt:
        return Named(asked.id, "turn", asked.seq, "", asked.prompt)
    is_run = any(Turn(RUN, found.id) in effect.turns for effect in history.effects)
    return found._replace(kind="run") if is_run else found


def _pruned(name: str) -> NotFound:
    return NotFound(f"{name} was pruned; its files are gone from the store", "see what is left with takeback log")


def short_ids(history: History, least: int = 4) -> dict[str, int]:
    """How many letters make each id unique among all."""
    ids = sorted([*(n.id for n in everything(history)), *history.plans])
    lengths: dict[str, int] = {}
    for at, id in enumerate(ids):
        shared = 0
        for other in (ids[at - 1] if at else "", ids[at + 1] if at + 1 < len(ids) else ""):
            common = 0
            while common < len(other) and other[common] == id[common]:
                common += 1
            shared = max(shared, common)
        lengths[id] = max(least, shared + 1)
    return lengths
