"""What a person calls something: a number, an exact label, or the beginning of an id."""

from __future__ import annotations

from .effects import FAILED
from .errors import NotFound, UsageError
from .history import History
from .typed import NamedTuple


class Named(NamedTuple):
    id: str
    kind: str  # checkpoint, effect, takeback, call, turn, plan
    seq: int
    label: str


def everything(history: History) -> list[Named]:
    found = [Named(c.id, "checkpoint", c.seq, c.label) for c in history.checkpoints]
    found += [Named(e.id, "effect", e.seq, "") for e in history.effects if not e.takeback and e.changes]
    found += [Named(t.id, "takeback", t.seq, "") for t in history.takebacks.values()]
    found += [Named(a.id, "effect", a.seq, "") for a in history.acts.values() if a.state == FAILED]
    found += [Named(b.id, "call", b.seq, "") for b in history.brackets.values()]
    found += [Named(t.id, "turn", t.seq, "") for t in history.agent_turns.values()]
    return sorted(found, key=lambda n: n.seq)


def resolve(history: History, name: str, plans: bool = False) -> Named:
    """A number, then an exact label (the newest), then a unique id prefix; two matches is an error that lists both."""
    known = everything(history)
    if plans:
        known = [Named(id, "plan", 0, "") for id in history.plans]
    what = "plan" if plans else "checkpoint, effect or take-back"
    if name.isdecimal() and not plans:
        number = int(name)
        for id, ordinal in history.numbers.items():
            if ordinal == number:
                for found in known:
                    if found.id == id:
                        return found
                if id in history.forgotten:
                    raise _pruned(f"number {name}")
    labelled = [n for n in known if n.label and n.label == name]
    if labelled:
        return labelled[-1]
    matches = [n for n in known if n.id.startswith(name)] if name else []
    if len(matches) == 1:
        return matches[0]
    if matches:
        listed = ", ".join(f"{n.id[:12]} ({n.kind})" for n in matches[:6])
        raise UsageError(f"{name!r} is ambiguous: {listed}", "type more letters of the id")
    if name and any(id.startswith(name) for id in history.forgotten):
        raise _pruned(name)
    hint = "list them with takeback log"
    if history.forgotten and not plans:  # a label goes with its checkpoint: whether this was one is not known any more
        hint += "; what was pruned is known by its number and id only, not by its label"
    raise NotFound(f"no {what} is called {name!r}", hint)


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
