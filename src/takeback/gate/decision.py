"""What a call with risks is answered: by the owner's policy, and by what a person approved for once.

asked or denied ─► a note {what: asked|refused, agent, session, fingerprint, key, …}; its id is what is approved
takeback approve ─► an approval {call: that id, …}
the same again, in that session ─► an approval {used: …}, and it passes: once; else a note of its own

What a person says at the agent's own prompt is told by the call's bracket: it ran, or it was refused. So it is with a
call that an approval let pass: its agent may still ask about it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.agents.events import ASK as ASKED
from takeback.agents.events import DENY, FOLDERS, SHELL, Answer, Event
from takeback.config.policy import ALLOW, ASK, REFUSE, Policy
from takeback.errors import TakebackError
from takeback.journal.journal import New
from takeback.model.ids import new_id
from takeback.privacy import redact

from .risk import Risk

if TYPE_CHECKING:
    from takeback.agents.in_workspace import Hooked
    from takeback.workspace_locks import Guarded

_LOOKED_AT = 200  # notes among which the same call is looked for
_LONGEST = 300  # characters of a summary
LARGEST = 20_000  # characters of a call that a person is shown whole; a longer one is not approved
_SHOWN = 8  # letters of an id
_RISKS = 100  # of one call that a person is shown
_PART = 1000  # characters of what a risk says


class Decided(NamedTuple):
    """A decision on risks, before anybody is asked."""

    decision: str
    risk: Risk | None  # the one that decided
    source: str = ""


def by_policy(policy: Policy, risks: Sequence[Risk]) -> Decided:
    """The strictest decision, and the risk it is for."""
    found = Decided(ALLOW, None)
    for risk in risks:
        if risk.refuse:
            return Decided(REFUSE, risk, "always")
        decision, source = policy.call(risk.kind)
        if (decision == REFUSE and found.decision != REFUSE) or (decision == ASK and found.decision == ALLOW):
            found = Decided(decision, risk, source)
    return found


def fingerprint(event: Event, risks: Sequence[Risk] = ()) -> str:
    """What makes a call the same call: its tool, what it is given, where it runs, and what it would do: a script that
    was written anew since is another call. What a model says about a command beside it does not count."""
    given: Any = dict(event.input)
    if event.does == SHELL and event.command:
        given = [event.command, event.cwd, [event.input.get(name) for name in FOLDERS]]
    told = json.dumps([event.tool, event.server, given, [risk[:2] for risk in risks]], sort_keys=True, default=str)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def decide(
    ws: Hooked, event: Event, risks: Sequence[Risk], can_ask: bool, summary: str = "", alone: bool = False
) -> Answer:
    """Nothing to say where it may go on; else ask, or deny where the policy says so or the agent cannot ask. Where it
    is alone, which is to say that nobody sits at it, the agent refuses what it is to ask about."""
    decided = by_policy(ws.settings.policy, risks)
    if decided.risk is None or decided.decision == ALLOW:
        return Answer()
    risk = decided.risk
    reason = f"takeback: {risk.what}: {risk.why}"
    if risk.undo:
        reason += f"; what would undo it: {risk.undo}"
    asked = _Asked(event, decided, summary or event.command or event.tool, risks, _refused_by(decided, can_ask, alone))
    asked = asked._replace(is_refused=risk.refuse or decided.decision == REFUSE or not can_ask, alone=alone)
    if risk.refuse:
        with suppress(Exception):  # whatever goes wrong with that: it is denied, on record or not
            ws.gate(asked)
        return Answer(DENY, f"{reason}. An agent may never do this to its own undo; a person can, in a terminal.")
    try:
        call = ws.gate(asked)
    except TakebackError as error:  # then nobody can approve it either
        now = f"{reason}; it cannot be put on record just now ({error.message})"
        return Answer(ASKED, now) if can_ask and decided.decision == ASK else Answer(DENY, f"{now}: try again later")
    if not call:
        return Answer()
    if decided.decision == REFUSE:
        reason += f"; {asked.because.removeprefix('by ')} refuses it"
    elif can_ask:
        also = f"{reason}. A person may also let it pass once with: takeback approve {call[:_SHOWN]}"
        return Answer(ASKED, also, call=call)
    return Answer(DENY, f"{reason}. A person lets it pass once with: takeback approve {call[:_SHOWN]}", call=call)


class _Asked(NamedTuple):
    event: Event
    decided: Decided
    summary: str
    risks: Sequence[Risk]
    because: str  # why it is refused
    is_refused: bool = False
    alone: bool = False


def _refused_by(decided: Decided, can_ask: bool, alone: bool) -> str:
    if decided.risk is not None and decided.risk.refuse:
        return "as always, for an agent may never do this to its own undo"
    if decided.decision == REFUSE:
        return "by autopilot" if decided.source == "autopilot" else f"by the policy ({decided.source})"
    if not can_ask:
        return "because its hooks can ask nobody"
    return "because nobody was there to be asked" if alone else ""


def journaled(ws: Guarded, asked: Any) -> str:
    """The id by which a person can approve a call; empty if one has, which is then used up. Under the store lock.
    The same call may be announced twice, by two hooks or after one that died: its key passes again, and no other, and
    it is told once. Each other one is told for itself."""
    event, decided, summary, risks, because, is_refused, alone = asked
    journal, caller = ws.store.journal, event.caller
    print_ = fingerprint(event, risks)
    mine = {"agent": caller.agent, "session": caller.session, "fingerprint": print_}
    key = "" if event.key.startswith("#") else event.key  # one that we made is the same for the next call
    approved: dict[str, Mapping[str, Any]] = {}
    ours: set[str] = set()
    never = bool(decided.risk.refuse)
    for row in journal.rows(kinds=("approval",)) if not never else ():
        body = row.body or {}
        if "call" in body and all(body.get(name) == value for name, value in mine.items()):
            approved[row.id] = body
            ours.add(row.id)
        approved.pop(body.get("used", ""), None)
        if key and body.get("used") in ours and body.get("key") == key:
            return ""
    for id in approved:
        used = {"used": id, **({"key": event.key} if event.key else {}), **({"alone": True} if alone else {})}
        journal.append([New("approval", new_id(), used)], ws.clock())
        return ""
    declined: set[str] = set()
    for at, row in enumerate(journal.newest_first("note") if key else ()):
        if at >= _LOOKED_AT:
            break
        body = row.body or {}
        if body.get("what") == "declined":
            declined.add(body.get("call", ""))
        if body.get("key") == key and row.id not in declined and mine.items() <= body.items():
            return row.id
    risk = decided.risk
    line = redact.text(" ".join(summary.split()))
    note: dict[str, Any] = {
        "what": "refused" if is_refused else "asked",
        **mine,
        "key": event.key,
        "kind": risk.kind,
        "summary": line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…",
        "why": redact.text(risk.why),
        "command": _whole(event) if len(risks) <= _RISKS else "",
        "risks": [[each.kind, _cut(each.what), _cut(each.why)] for each in risks[:_RISKS]],
    }
    note |= {name: said for name, said in (("because", because), ("never", never)) if said}
    new = New("note", new_id(), note)
    journal.append([new], ws.clock())
    return new.id


def _cut(told: str) -> str:
    return redact.text(told if len(told) <= _PART else told[: _PART - 1] + "…")


def _whole(event: Event) -> str:
    """All of a call that a person has to see before letting it pass, without secrets; empty if that is too much."""
    told = event.command
    if event.does != SHELL or not told:
        told = f"{event.tool} {json.dumps(event.input, indent=2, sort_keys=True, default=str, ensure_ascii=False)}"
    return redact.text(told) if len(told) <= LARGEST else ""
