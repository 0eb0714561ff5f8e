"""What was done outside the files, journaled: acts, and what became of them. Loaded by the call that needs it.

    act ─► its step and actor ─► secrets out, the inverse checked ─► a look at the tree ─► act row
    fact of a known act ─────────► the same ──────────────────────► a look ──────────────► acted row

The caller (workspace.py) holds the store lock wherever a tree is passed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from takeback.domains.email.recorded import dropping
from takeback.errors import NotFound, TakebackError, UsageError
from takeback.harness import recorder
from takeback.harness.undo_declarations import Declared
from takeback.journal import names
from takeback.journal.history import History
from takeback.journal.journal import New
from takeback.model.effects import ACT_VERDICTS, COMPENSATING, DONE, FAILED, IRREVERSIBLE, STATES
from takeback.model.ids import new_id
from takeback.model.outside import (
    BEGUN,
    DID_NOT_HAPPEN,
    HAPPENED,
    SAYINGS,
    UNDONE,
    Act,
    Inverse,
    NewAct,
    body_of,
    is_same_request,
    unknown_owner,
)
from takeback.privacy import redact
from takeback.system import handed_over, processes
from takeback.system.safefs import Folder as OpenFolder

if TYPE_CHECKING:
    from takeback.workspace import Workspace

Instead = Callable[[list[Act]], Act | None]
_LARGEST = 1 << 20  # bytes of an act as JSON


# -- before it is stored -------------------------------------------------------


def prepared(ws: Workspace, act: NewAct, by: Mapping[str, str]) -> tuple[NewAct, dict[str, str]]:
    """An act as it may be stored, checked by its domain and part of the step it is recorded in; and by whom."""
    if _is_of_a_harness(ws):
        act, by = recorder.belonging(ws, act, by)
    else:
        by = by if by.get("turn") else {**by, **_owner_above(ws, by)}
        by = {**by, "above": " ".join(f"{p.pid}.{p.started}" for p in processes.ancestors(os.getpid()))}
    act = cleaned(act._replace(depends_on=older(ws, act.depends_on)), ws.environ)
    if act.inverse is not None:
        act = act._replace(inverse=ws.outside(act.domain).check(act.inverse))
        act = act._replace(marks=_marks(ws, act.domain, act.inverse))
    return act, redact.value(dict(by))


def _is_of_a_harness(ws: Workspace) -> bool:
    """Whether it is recorded in a step or turn of this process, or in what goes on after one."""
    if ws.open_steps or not handed_over.is_followed():
        return bool(ws.open_steps)
    return recorder.at_work(ws) is not None


def _owner_above(ws: Workspace, by: Mapping[str, str]) -> Mapping[str, str]:
    """Of an act that an agent recorded, which goes with its turn: the agent above this process, or a harness."""
    if (asked := ws.turn_above()) is not None:
        return {"actor": asked.caller.agent, "turn": asked.id}
    turns = ws.open_turns()
    if len(turns) == 1:
        (turn,) = turns
        return {"actor": turn.actor, "turn": turn.number}
    return unknown_owner(turns) if turns and not by.get("actor") else {}


def older(ws: Workspace, named: str | int | Iterable[str | int]) -> tuple[str, ...]:
    """The ids of the effects that another one stands on, whatever they were called; NotFound if there is none."""
    given = [named] if isinstance(named, (str, int)) else named
    if not isinstance(given, Iterable):
        raise UsageError("depends_on lists effects", "name each by its id")
    names = list(given)
    if not all(isinstance(name, (str, int)) for name in names):
        raise UsageError("depends_on lists effects", "name each by its id")
    return tuple(dict.fromkeys(find(ws.history(), str(name)).id for name in names)) if names else ()


def note(text: str, left_to_do: str, depends_on: tuple[str, ...]) -> NewAct:
    """What nothing takes back, in a line."""
    if not isinstance(text, str) or not (said := " ".join(text.split())):
        raise UsageError("a note needs its text", "such as 'rotated the signing key'")
    left = " ".join(left_to_do.split()) or "nothing is known that takes it back"
    return NewAct("note", redact.text(said), "", None, IRREVERSIBLE, {"left_to_do": redact.text(left)}, depends_on)


def facts(ws: Workspace, known: Act, what: Mapping[str, Any]) -> dict[str, Any]:
    """What became of an act, as it may be stored."""
    told = dict(what)
    if inverse := told.get("inverse"):
        told["inverse"] = ws.outside(told.get("domain", known.domain)).check(inverse)
    clean = cleaned(NewAct(known.domain, known.summary, known.target, known.inverse)._replace(**told), ws.environ)
    found = {name: getattr(clean, name) for name in told}
    if "inverse" in found:
        found["inverse"] = clean.inverse.to_json() if clean.inverse else None
        if marks := _marks(ws, clean.domain, clean.inverse):
            found["marks"] = marks
    return found


def _marks(ws: Workspace, domain: str, inverse: Inverse | None) -> dict[str, str]:
    """Of what a command uses: its variables choose what it acts on. A request goes where it went, whatever its key."""
    return ws.marks_of(domain, inverse) if domain == "command" and inverse is not None else {}


def cleaned(act: NewAct, environ: Mapping[str, str]) -> NewAct:
    """An act as it may be stored: what was done without secrets, an inverse that holds none and is plain data. A mail
    is content, and stays as it is."""
    if act.domain in STATES or act.verdict not in ACT_VERDICTS or act.state not in (DONE, FAILED, BEGUN):
        told = f"{act.domain!r}, {act.verdict!r}, {act.state!r}"
        raise UsageError(f"{told} is no outside effect", "name its domain, its verdict and its state")
    if act.domain != "email":
        args = act.inverse.args if act.inverse else {}
        if told := redact.secret_at(args, names=False):
            raise UsageError(
                f"the inverse holds {told}, which would be stored",
                "name an environment variable instead: ${env:NAME}; its value is looked up when the inverse is sent",
            )
        secrets = redact.values_of(args, environ)
        act = act._replace(
            summary=redact.text(act.summary, secrets),
            target=redact.text(act.target, secrets),
            did=redact.value(act.did, secrets),
            key=redact.text(act.key, secrets),
            step=redact.text(act.step, secrets),
        )
    try:
        size = len(json.dumps(body_of(act, {}), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the effect is no plain data ({error})", "use text, numbers, lists and tables") from error
    if size > _LARGEST:
        raise UsageError(f"the effect takes {size:,} bytes, more than {_LARGEST:,}", "keep what is long in a file")
    return act


# -- storing it ----------------------------------------------------------------


def record(
    ws: Workspace,
    tree: OpenFolder,
    act: NewAct,
    by: Mapping[str, str],
    content: bytes,
    instead: Instead | None,
    for_effect: str = "",
) -> Act:
    """Journals an act, unless another one in the ledger stands for it; one that is in the ledger already, because a
    hook saw it, is told how it is taken back; recorded once more, it stays as it is, and nothing is journaled."""
    if not for_effect and (known := already_recorded(ws.history(), act, by)) is not None:
        return known
    if (seen := already_seen(ws.history(), act, by, for_effect)) is not None:
        told = facts(ws, seen, _more_of(seen, act))
        _keep(ws, content)
        return tell(ws, tree, seen, told, later=True)
    if instead is not None and (found := instead(ws.history().ledger())) is not None:
        return found
    _look_before(ws, tree, by.get("actor", ""))
    _keep(ws, content)
    id = new_id()
    ws.store.journal.append([New("act", id, body_of(act, by))], ws.clock())
    return ws.history().acts[id]


def _keep(ws: Workspace, content: bytes) -> None:
    if content:
        ws.store.blobs.put(content)
        ws.store.blobs.flush()


def found_out(ws: Workspace, known: Act, **what: Any) -> Act:
    """Journals what became of an act, as somebody says who looked afterwards: it keeps its place in the order."""
    found = facts(ws, known, what)
    with ws.writing(), ws.open_tree() as tree:
        return tell(ws, tree, known, found, later=True)


def tell(ws: Workspace, tree: OpenFolder, known: Act, found: Mapping[str, Any], later: bool = False) -> Act:
    """Journals what became of an act; `later` if who did it did not say so, but somebody afterwards."""
    _look_before(ws, tree, known.by.get("actor", ""))
    body = {"act": known.id, **found, **({"found_out": True} if later else {})}
    ws.store.journal.append([New("acted", new_id(), body)], ws.clock())
    return ws.history().acts[known.id]


def already_seen(history: History, act: NewAct, by: Mapping[str, str], for_effect: str) -> Act | None:
    """The effect that is being recorded, where a hook saw it and nothing takes it back yet: the one that is named; the
    only one of the call that it was done in; or the oldest with the same method and URL of that call, of the turn it
    was done in, or, where nobody knows that turn, of the newest."""
    if for_effect:
        found = find(history, for_effect)
        _must_lack_inverse(found)
        return found
    in_call = _seen_in_call(history, by)
    seen = in_call or [a for a in reversed(history.ledger()) if a.by.get("surface") == "hook"]
    lacking = [a for a in seen if not _why_not(a)]
    if act.domain != "http" or len(in_call) == 1:
        return lacking[0] if in_call and len(lacking) == 1 else None
    if not in_call:
        newest = list(history.agent_turns.values())[-1].id if history.agent_turns else ""
        lacking = [a for a in lacking if a.by.get("turn") == (by.get("turn") or newest)]
    request = f"{act.did.get('method')} {act.did.get('url')}"
    return next((a for a in lacking if is_same_request(a.did, request)), None)


def already_recorded(history: History, act: NewAct, by: Mapping[str, str]) -> Act | None:
    """The effect that the same record made before: the same request with the same answer, where that names what was
    made and it stands, or where a hook saw the call. An answer that tells nothing (no body) is the same only if what
    takes it back is."""
    if act.domain != "http":
        return None
    if found := _same_made(history, act):
        return found
    if not (in_call := _seen_in_call(history, by)):
        return None
    recorded = [*in_call, *(a for a in history.ledger() if a.by.get("call") == by["call"])]
    same = [a for a in recorded if a.inverse and _is_same_answer(a, act)]
    if found := next((a for a in same if act.inverse in (None, a.inverse)), None):
        return found
    if same and act.did.get("response"):
        raise UsageError(
            f"{same[0].id[:8]} was recorded with this answer already, and something else takes it back",
            "if this is the same act, nothing is left to do; if it is another one, record it without its call",
        )
    return None


def _same_made(history: History, act: NewAct) -> Act | None:
    """The effect that stands and made the very thing that this one did: its inverse must not be sent twice. What was
    taken back may have been made again."""
    if not act.did.get("made"):
        return None
    same = [a for a in history.ledger() if a.did.get("made") == act.did["made"] and _is_same_answer(a, act)]
    standing = [a for a in same if a.state == DONE and not a.undone_by and a.id not in act.depends_on]
    return next((a for a in standing if act.inverse in (None, a.inverse)), None)


def _is_same_answer(known: Act, act: NewAct) -> bool:
    return all(known.did.get(name) == act.did.get(name) for name in ("method", "url", "status", "response"))


def _seen_in_call(history: History, by: Mapping[str, str]) -> list[Act]:
    """What a hook saw of the call that a record names, oldest first."""
    call = by.get("call", "") if by.get("surface") != "mcp" else ""  # there it is a number of the protocol
    acts: list[Act] = [a for a in reversed(history.ledger()) if call and a.by.get("surface") == "hook"]
    return [a for a in acts if call in _names_of_call(history, a)]


def _names_of_call(history: History, act: Act) -> tuple[str, ...]:
    """What the call of an act is called, by us and by its agent."""
    bracket = history.brackets.get(act.by.get("call", ""))
    return (bracket.id, bracket.call.key) if bracket is not None else ()


def _why_not(act: Act) -> str:
    """Why an effect cannot be told what takes it back; empty if it can."""
    if act.undone_by:
        return f"{act.id[:8]} was taken back already"
    if act.state == FAILED:
        return f"{act.id[:8]} did not happen, so there is nothing to take back"
    if act.inverse is not None:
        return f"{act.id[:8]} has what takes it back already"
    return f"{act.id[:8]} is a mail, which nothing calls back" if act.domain == "email" else ""


def _must_lack_inverse(act: Act) -> None:
    if why := _why_not(act):
        raise UsageError(why, f"takeback show {act.id[:8]} has it in full; without --for it is recorded anew")


def _more_of(seen: Act, act: NewAct) -> dict[str, Any]:
    """What recording an effect that a hook saw tells of it."""
    found: dict[str, Any] = {"domain": act.domain, "did": {"left_to_do": "", **act.did}}
    if act.target:
        found["target"] = act.target
    if act.state in (DONE, FAILED):
        found["state"] = act.state
    if others := tuple(id for id in act.depends_on if id != seen.id):
        found["depends_on"] = tuple(dict.fromkeys((*seen.depends_on, *others)))
    found |= {name: said for name, said in (("key", act.key), ("step", act.step)) if said}
    if act.inverse is not None:
        found |= {"inverse": act.inverse, "verdict": act.verdict}
    elif not found["did"]["left_to_do"]:
        found["did"]["left_to_do"] = seen.did.get("left_to_do", "")
    return found


def _look_before(ws: Workspace, tree: OpenFolder, actor: str) -> None:
    """What changed in the tree before an act stands before it. While a take-back is interrupted the tree is in
    between, and what happened outside is journaled all the same. Who vouches for files by checkpoints does so
    here too, or the rest of that turn would be somebody else's."""
    if ws.interrupted():
        return
    known = {c.actor for c in ws.history().checkpoints}
    ws.observer.look(tree, actor if actor in known else "")


# -- what a person says of it ---------------------------------------------------


def settle(ws: Workspace, name: str, said: str, result: Any) -> Act:
    """Journals a person's word on what nobody heard of again. The caller keeps others from taking anything back."""
    if said not in SAYINGS:
        raise UsageError(
            f"{said!r} does not say what came of it",
            "of an effect: happened or did-not-happen; of its undo: undone or not-undone",
        )
    act = find(ws.history(), name)
    is_more = said == HAPPENED and result is not None and act.lacks_result
    if not act.sayings and not is_more:
        raise UsageError(f"{act.id[:8]} is not in doubt: it is {act.shown_state}", "see takeback effects")
    if said not in act.sayings and not is_more:
        doubt = "it happened" if HAPPENED in act.sayings else "it was taken back"
        raise UsageError(f"the doubt about {act.id[:8]} is whether {doubt}; --{said} does not say so", act.resolving)
    if result is not None and said != HAPPENED:
        raise UsageError("only what happened has a result", "leave the result out")
    with ws.writing():
        ws.must_not_be_interrupted()  # resume settles what it can, and what it cannot is asked for then
        if said not in (HAPPENED, DID_NOT_HAPPEN):
            note = {"what": "resolve", "act": act.id, "done": said == UNDONE}
            ws.store.journal.append([New("note", new_id(), note)], ws.clock())
            return find(ws.history(), act.id)
    if act.domain == "email":
        return ws.outbox.resolve(act, said == HAPPENED, result)
    if said == DID_NOT_HAPPEN:
        left = "it did not happen, as a person said: there is nothing to take back"
        return found_out(ws, act, state=FAILED, did={"left_to_do": left})
    return found_out(ws, act, **_happened(ws, act, result))


def _happened(ws: Workspace, act: Act, result: Any) -> dict[str, Any]:
    """What is known of an act that happened, as a person said. An undo that waits for its result is completed by it."""
    did: dict[str, Any] = {"left_to_do": ""}
    if result is not None:
        did |= recorder.kept_result(result)
    found: dict[str, Any] = {"state": DONE, "did": did}
    if act.inverse is not None:
        return found
    waiting = act.did.get("undo")
    if waiting and result is not None:
        return {**found, "inverse": completed(ws, waiting, result), "verdict": COMPENSATING}
    more = f"its undo needs its result, which nobody gave: takeback resolve {act.id[:8]} --happened --result JSON"
    left = more if waiting else act.did.get("left_to_do")
    return {**found, "verdict": IRREVERSIBLE, "did": {**did, "left_to_do": left or "no inverse was recorded"}}


def completed(ws: Workspace, waiting: Mapping[str, Any], result: Any) -> Inverse:
    """An undo that was declared before its result was known, with that filled in."""
    try:
        how = Declared(waiting["domain"], waiting["args"])
        return how.inverse(ws, waiting.get("given", {}), result)
    except (LookupError, TypeError, AttributeError) as error:  # a journal may have been written by anybody
        raise UsageError(f"its undo cannot be read ({error})", "say that it happened without a result") from error


# -- looking -------------------------------------------------------------------


def describe(ws: Workspace, act: Act) -> str:
    """Exactly what would be sent or run to take an act back, in one line, its secrets as names; or why it cannot be
    told."""
    if act.inverse is None:
        return ""
    try:
        domain = ws.outside(act.domain)
        told = domain.describe(domain.check(act.inverse))
        if act.domain == "email":
            return dropping(act) or told
        return redact.text(told, redact.values_of(act.inverse.args, ws.environ))
    except TakebackError as error:
        return f"{act.domain} {act.inverse.op} ({error.message})"
    except Exception as error:  # a domain may be anybody's, and so may the journal
        return f"{act.domain} {act.inverse.op} (it makes no sense: {type(error).__name__})"


def find(history: History, name: str) -> Act:
    """An act by the beginning of its id, or the id of what tried to take it back."""
    tried = names.attempt_called(history, name)
    found = tried.act if tried is not None else names.resolve(history, name, prompts=False).id
    acts = [act for act in history.ledger() if found in (act.id, act.in_doubt)]
    if len(acts) == 1:
        return acts[0]
    if acts:
        listed = ", ".join(act.id[:12] for act in acts)
        raise UsageError(f"{name!r} left several effects in doubt: {listed}", "name one of them")
    raise NotFound(f"{name!r} is no effect outside the files", "list them with takeback effects")
