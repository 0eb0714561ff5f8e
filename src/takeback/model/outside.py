"""Outside effects as data: what was done beyond the files, how it is taken back, and what came of that.

    Act (who, what, target) ── Inverse (operation, arguments) ──► Answer: done, failed, or nobody knows

An act is journaled once and is one unit, called by its id. Its inverse is data, so that any process can run it later;
credentials in it are names. Nothing here reads the clock or the environment, and of the world only whether a process
that sends lives.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from takeback.errors import Damaged
from takeback.privacy import redact
from takeback.system import processes

from .effects import (
    ACT_VERDICTS,
    COMPENSATING,
    DONE,
    FAILED,
    HELD,
    IRREVERSIBLE,
    STATES,
    UNCOVERED,
    UNKNOWN,
    Entry,
    raw,
)

if TYPE_CHECKING:
    from takeback.config.settings import Settings
    from takeback.store.blobs import Blobs

    from .effects import Turn

ACT = 7  # the kind of an outside effect, where a file would say file or folder
KEY_LASTS = 86_400.0  # seconds for which servers commonly remember an Idempotency-Key
BEGUN = "begun"  # announced, and never heard of again
NOBODY_KNOWS = "it was sent, and no answer came; a person has to find out"
# What a person says of what nobody heard of again: of the effect itself, and of its inverse, which was sent.
HAPPENED, DID_NOT_HAPPEN = "happened", "did-not-happen"
UNDONE, NOT_UNDONE = "undone", "not-undone"
SAYINGS = (HAPPENED, DID_NOT_HAPPEN, UNDONE, NOT_UNDONE)


# Of an act that was recorded where turns or steps were at work, and nobody can tell whether it was one of theirs.
_OWNER, _AMONG = "owner", "among"


def unknown_owner(turns: Iterable[Turn]) -> dict[str, str]:
    """By whom such an act is: nobody knows; with the turns that it may be of."""
    among = " ".join(sorted(turn.number for turn in turns))
    return {_OWNER: UNKNOWN, **({_AMONG: among} if among else {})}


class Inverse(NamedTuple):
    """What takes an act back: the domain's operation and its arguments, as JSON has them."""

    op: str
    args: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"op": self.op, "args": dict(self.args)}


class NewAct(NamedTuple):
    """An outside effect about to be recorded, checked by its domain and free of secrets."""

    domain: str
    summary: str
    target: str  # what it touched: a URL, a command's words, a draft
    inverse: Inverse | None
    verdict: str = COMPENSATING
    did: Mapping[str, Any] = {}  # evidence of what was done
    depends_on: tuple[str, ...] = ()
    state: str = DONE  # or BEGUN, if it is recorded before it is done
    key: str = ""  # a harness's own name for it, under which it is done once
    step: str = ""  # the step of a harness that it is part of
    marks: Mapping[str, str] = {}  # of the values that its inverse would have used when it was recorded (marks.py)


class Act(NamedTuple):
    """An outside effect as the journal knows it."""

    id: str
    seq: int  # the row that completed it, or announced it
    at: float
    domain: str
    summary: str
    target: str
    inverse: Inverse | None
    verdict: str
    did: Mapping[str, Any]
    by: Mapping[str, str]  # actor, surface, session, call
    depends_on: tuple[str, ...] = ()
    state: str = DONE  # DONE, FAILED or BEGUN; in the ledger UNDONE, once it is; shown_state says more
    key: str = ""
    step: str = ""
    in_doubt: str = ""  # the take-back that sent its inverse and never learned what came of it
    sent_at: float = 0.0  # when that was
    undone_by: str = ""  # the take-back, or the person, that took it back
    marks: Mapping[str, str] = {}  # of the values that its inverse would have used when it was recorded

    @property
    def path(self) -> bytes:
        """What its unit is called, beside the paths of files."""
        return raw(self.id)

    @property
    def is_of_unknown(self) -> bool:
        """Whether nobody can tell whose it is."""
        return self.by.get(_OWNER) == UNKNOWN and not self.by.get("actor")

    @property
    def among(self) -> frozenset[str]:
        """The numbers of the turns that it may be of, where nobody can tell."""
        return frozenset(self.by.get(_AMONG, "").split() if self.is_of_unknown else ())

    @property
    def entry(self) -> Entry:
        """Its state while it stands: equal to another's only if the inverse is the same."""
        return Entry(ACT, 0, 0, self.digest, b"", b"", 0, 0, 0)

    @property
    def digest(self) -> bytes:
        inverse = self.inverse.to_json() if self.inverse else None
        known = {"domain": self.domain, "target": self.target, "inverse": inverse}
        return sha256(json.dumps(known, sort_keys=True).encode()).digest()

    @property
    def shown_state(self) -> str:
        """One word for people: live, undone, failed, sending, unknown, held or irreversible."""
        if self.state == FAILED:
            return "failed"
        if self.undone_by:
            return "undone"
        if self.is_being_sent:
            return "sending"
        if self.state == BEGUN or self.in_doubt:
            return "unknown"
        return self.verdict if self.verdict in (HELD, IRREVERSIBLE, UNKNOWN, UNCOVERED) else "live"

    @property
    def sayings(self) -> tuple[str, ...]:
        """What a person can say of it, where nobody knows what came of it, or of its inverse; nothing where that is
        known."""
        if self.state == FAILED or self.undone_by:
            return ()
        is_in_doubt = self.state == BEGUN or (self.verdict == UNKNOWN and not self.in_doubt)
        return (HAPPENED, DID_NOT_HAPPEN) * is_in_doubt + (UNDONE, NOT_UNDONE) * bool(self.in_doubt)

    @property
    def resolving(self) -> str:
        """The command with which a person says so: "takeback resolve kxvm --undone or --not-undone"."""
        result = " --result JSON" if self.waits_for_result else ""
        flags = [f"--{said}{result if said == HAPPENED else ''}" for said in self.sayings]
        return f"takeback resolve {self.id[:8]} {' or '.join(flags)}"

    @property
    def waits_for_result(self) -> bool:
        """Whether only its result tells what takes it back: a declared undo refers to it, or a mail lacks its draft."""
        return self.state == BEGUN and self.inverse is None and bool(self.did.get("undo") or self.domain == "email")

    @property
    def lacks_result(self) -> bool:
        """Whether it is known to have happened, and what takes it back is made from a result that nobody gave."""
        is_told = self.did.keys() & {"result", "no_result"}
        return self.state == DONE and self.inverse is None and bool(self.did.get("undo")) and not is_told

    @property
    def is_being_sent(self) -> bool:
        """Whether a mail is on its way just now: the process that sends it lives, and has not said what came of it."""
        sender = self.did.get("sender")
        if self.verdict != UNKNOWN or not isinstance(sender, dict) or not isinstance(sender.get("pid"), int):
            return False
        started = processes.started(sender["pid"])
        return started != 0 and started == sender.get("started")


class Undo(NamedTuple):
    """One attempt to take an act back, by one take-back."""

    id: str  # of its intent
    act: str
    takeback: str
    at: float
    result: str = UNKNOWN  # DONE, FAILED, or UNKNOWN until somebody finds out
    note: str = ""
    evidence: Mapping[str, Any] = {}  # what the other side answered

    @property
    def shown_state(self) -> str:
        """One word of those an act has: what was sent cannot be taken back in turn."""
        return {DONE: "irreversible", FAILED: "failed"}.get(self.result, "unknown")


ALLOWED, DECLINED = "allowed", "declined"  # what a person said to a call, asked by its agent or harness itself


class Approval(NamedTuple):
    """A person's yes to exactly one plan, once; with the credentials that may leave for places no setting binds."""

    id: str
    plan: str
    hash: str
    at: float
    credentials: tuple[tuple[str, str], ...] = ()
    marks: Mapping[str, str] = {}  # of the values of variables that were seen, or not set


class Stopped(NamedTuple):
    """An agent's call that the gate did not let pass by itself, and what came of that. A person can let it pass once,
    in that session."""

    id: str
    at: float
    what: str  # asked, or refused
    agent: str
    session: str
    fingerprint: str  # of the tool and what it was given
    kind: str
    summary: str  # without secrets
    why: str
    command: str = ""  # all of it; empty where it is too long to be looked at, or an older program kept it
    risks: tuple[tuple[str, str, str], ...] = ()  # kind, what, why of each
    seq: int = 0  # its row
    approved: float = 0.0  # when a person let it pass once
    passed: float = 0.0  # when it was made with that, as is known since that call is over
    answered: float = 0.0  # when it was over that a person was asked about it by the agent or harness itself
    answer: str = ""  # what was said there: allowed or declined; empty where nobody knows
    key: str = ""  # the agent's own name of the call
    call: str = ""  # the id of its bracket, where a person was asked
    because: str = ""  # why it was refused, or would be where it is asked about and nobody is there
    never: bool = False  # no person can let it pass either: it is an agent's own undo
    tried: float = 0.0  # when its agent announced it again, and the approval was used up
    tried_in: str = ""  # the id of the bracket of that call
    turn: str = ""  # the id of the agent's turn that it was in
    turned_down: float = 0.0  # when that call was refused all the same, as its agent asks about calls too
    alone: bool = False  # nobody was there then whom its agent could ask

    @property
    def state(self) -> str:
        """One word for people: asked, allowed or declined at the agent's own prompt, refused, approved (and not made
        again yet), tried (and nobody knows whether it was made) or passed."""
        if self.passed or self.answer == ALLOWED:
            return "passed" if self.passed else ALLOWED
        if self.turned_down:
            return "refused" if self.alone else DECLINED
        if self.tried:
            return "tried"
        return "approved" if self.approved else self.answer or self.what

    @property
    def told(self) -> str:
        """The same in words."""
        if self.tried and self.answer != ALLOWED:
            return f"approved, {self.came}"
        at = f"at {self.agent}'s prompt"
        return {
            "asked": "asked about; whether it was allowed is not known" if self.answered else "asked about",
            ALLOWED: f"asked about, and allowed by a person {at}",
            DECLINED: f"asked about, and refused by a person {at}",
            "refused": f"refused {self.because}".rstrip(),
            "approved": "approved, for once",
        }[self.state]

    @property
    def came(self) -> str:
        """What came of the approval; empty where it was not used."""
        turn = f" in turn {self.turn[:8]}" if self.turn else ""
        if self.passed:
            return f"and made{turn}"
        if self.turned_down:
            by = "because nobody was there to be asked" if self.alone else f"by a person at {self.agent}'s prompt"
            return f"and then refused {by}{turn}"
        return f"and tried{turn}; whether it was made is not known" if self.tried else ""

    @property
    def way(self) -> str:
        """The command by which a person lets it pass; empty where nothing does, or nobody has to."""
        return f"takeback approve {self.id[:8]}" if self.waits else ""

    @property
    def waits(self) -> bool:
        """Whether a person's approval would let it pass, and nobody has answered yet."""
        if self.never or self.tried:
            return False
        return self.state == "refused" or (self.state == "asked" and not self.answered)

    def ended(self, at: float, ran: bool, refused: bool) -> Stopped:
        """The same once the call that a person was asked about is over. Where nobody was there it was refused."""
        if refused and self.because:
            return self._replace(what="refused")
        return self._replace(answered=at, answer=ALLOWED if ran else DECLINED if refused else "")

    def approved_at(self, at: float) -> Stopped:
        """The same once a person has let it pass; what came of an earlier approval is told no longer."""
        return self._replace(approved=at, tried=0.0, tried_in="", turn="", passed=0.0, turned_down=0.0, alone=False)

    def came_of(self, at: float, ran: bool, refused: bool) -> Stopped:
        """The same once the call that used the approval is over."""
        return self._replace(passed=self.tried if ran else 0.0, turned_down=at if refused else 0.0)


class Waiting(NamedTuple):
    """A saved plan that a person has to approve before it can be applied."""

    id: str
    verb: str
    outside: int  # steps outside the files


def depends(newer: Act, older: Act) -> bool:
    """Whether an act stands on an older one: it says so, or it touched the same thing or something inside it. Two
    requests to one address stand beside each other, unless the inverse acts on that very address or on what the older
    one made: then it would undo both."""
    if newer.seq <= older.seq:
        return False
    if older.id in newer.depends_on:
        return True
    if newer.domain != older.domain or not older.target or not newer.target:
        return False
    is_inside = newer.target == older.target or newer.target.startswith(older.target.rstrip("/") + "/")
    return is_inside and not _are_beside(newer, older)


def _are_beside(newer: Act, older: Act) -> bool:
    """Whether they are requests to one address, and what takes the older one back goes elsewhere. What a request made
    is not known while it is in doubt, so that its address stands for it, and what others made there lies below that."""
    address = older.did.get("url", older.target)
    if older.domain != "http" or newer.did.get("url", newer.target) != address:
        return False
    inverse = older.inverse.args if older.inverse is not None else older.did.get("undo", {}).get("args", {})
    return inverse.get("url", "") not in (address, older.target)


_PORTS = {"http": ":80", "https": ":443"}


def is_same_request(did: Mapping[str, Any], request: str) -> bool:
    """Whether what a hook saw of an act is that method and URL."""
    seen = str(did.get("request", ""))
    return bool(seen) and _plain_request(seen) == _plain_request(request)


def _plain_request(request: str) -> str:
    """A method and a URL in one spelling, its secrets masked. Only a scheme and a host are the same in any case."""
    method, _, url = request.partition(" ")
    url = url.partition("#")[0]
    scheme, _, rest = (url if "://" in url.partition("?")[0] else f"http://{url}").partition("://")
    scheme = scheme.lower()
    end = next((at for at, char in enumerate(rest) if char in "/?"), len(rest))
    host, path = rest[:end].rpartition("@")[2].lower(), rest[end:]
    host = host.removesuffix(_PORTS.get(scheme, ":"))
    place = redact.text(f"{scheme}://{host}{path or '/'}")
    return f"{method.upper()} {place}"


# -- the seam for a domain of the outside world --------------------------------


class Credential(NamedTuple):
    """A secret that an inverse needs, and where it would go."""

    name: str  # of the environment variable
    origin: str

    @property
    def binding(self) -> str:
        """What the user's own configuration says where it may go there without a question."""
        return f'[credentials.{self.name}] origins = ["{self.origin}"]'


class Answer(NamedTuple):
    """What came of running an inverse: DONE, FAILED (it took no effect, and may run again) or UNKNOWN."""

    result: str
    note: str = ""
    evidence: Mapping[str, Any] = {}


class World(NamedTuple):
    """What a domain of the outside world is given, and all it may use."""

    root: Path
    settings: Settings
    environ: Mapping[str, str]
    blobs: Blobs
    clock: Callable[[], float]
    allowed: frozenset[Credential] = frozenset()  # credentials a person lets go where no setting binds them


class Outside(Protocol):
    """Knows one part of the world beyond the files. A new one passes tests/conformance/outside.py."""

    name: str

    def __init__(self, world: World) -> None: ...

    def check(self, inverse: Inverse) -> Inverse:
        """The inverse as it will be stored; UsageError if it makes no sense or holds a secret."""

    def describe(self, inverse: Inverse) -> str:
        """All that could be sent or run, the probe too, in one line and uncut, its secrets as names: what a person
        approves."""

    def credentials(self, inverse: Inverse) -> tuple[Credential, ...]:
        """The secrets it needs that are not bound to where they would go."""

    # A domain may also have `lacks(inverse) -> str`: what it needs and is not there, a credential that is not set. Then
    # nothing of a plan is begun. And `uses(inverse) -> dict[str, str]`: the variables that decide what it does, with
    # their values here, empty where one is not set: a yes is for these. Else they are the references that are set.
    # And `runs_code = True`, where its inverses run code on this machine that may write files: only then does what
    # moved in the tree meanwhile belong to the take-back.

    def run(self, inverse: Inverse, key: str) -> Answer:
        """Sends it, at most once for a key if the other side honours that."""

    def probe(self, inverse: Inverse) -> bool | None:
        """Whether the inverse has taken effect; None if that cannot be told."""

    def may_repeat(self, inverse: Inverse, sent_at: float) -> bool:
        """Whether the recorder vouched that sending it again, with the same key, does nothing more."""


def is_key_known(inverse: Inverse, sent_at: float, now: float) -> bool:
    """Whether the recorder vouched that an inverse may be sent again with its key, and that key is not forgotten yet.
    What was never sent is no repetition."""
    lasts: float = inverse.args.get("idempotent_for", KEY_LASTS)
    return bool(inverse.args.get("idempotent")) and 0 <= now - sent_at <= lasts


_TEXTS = ("domain", "summary", "target", "verdict", "state", "key", "step")


def recorded(row_id: str, seq: int, at: float, body: Mapping[str, Any]) -> Act:
    """An act from its journal row; Damaged if that holds something else."""
    if not _is_sound(body):
        raise Damaged(f"row {seq} is no outside effect", "takeback verify says what is lost")
    packed = body.get("inverse")
    return Act(
        row_id, seq, at, body["domain"], body["summary"], body["target"],
        Inverse(packed["op"], packed["args"]) if packed else None,
        body["verdict"], body.get("did", {}), body.get("by", {}), tuple(body.get("depends_on", ())),
        body.get("state", DONE), body.get("key", ""), body.get("step", ""),
        marks=body.get("marks", {}),
    )  # fmt: skip


def _is_sound(body: Mapping[str, Any]) -> bool:
    """Whether every part is of its kind. Rows are ours, but a journal may have been written by anybody."""
    inverse, by, wanted = body.get("inverse"), body.get("by", {}), body.get("depends_on", [])
    return (
        all(isinstance(body.get(name, ""), str) for name in _TEXTS)
        and bool(body.get("domain")) and body["domain"] not in STATES and "summary" in body and "target" in body
        and body.get("verdict") in ACT_VERDICTS and body.get("state", DONE) in (DONE, FAILED, BEGUN)
        and isinstance(by, dict) and all(isinstance(each, str) for each in by.values())
        and isinstance(body.get("did", {}), dict)
        and isinstance(body.get("marks", {}), dict)
        and isinstance(wanted, list) and all(isinstance(each, str) for each in wanted)
        and is_inverse(inverse)
    )  # fmt: skip


def is_fact(body: Mapping[str, Any]) -> bool:
    """Whether a later row may tell this of an act."""
    whole = {"domain": "-", "summary": "", "target": "", "verdict": COMPENSATING, "inverse": None}
    return _is_sound({**whole, **body})


def is_inverse(packed: Any) -> bool:
    """Whether JSON is an inverse, or none."""
    if packed is None:
        return True
    return isinstance(packed, dict) and isinstance(packed.get("op"), str) and isinstance(packed.get("args"), dict)


def body_of(act: NewAct, by: Mapping[str, str]) -> dict[str, Any]:
    """An act as its journal row has it; what is empty is left out."""
    body: dict[str, Any] = {
        "domain": act.domain,
        "summary": act.summary,
        "target": act.target,
        "verdict": act.verdict,
        "inverse": act.inverse.to_json() if act.inverse else None,
        "by": dict(by),
    }
    more = {"did": dict(act.did), "depends_on": list(act.depends_on), "key": act.key, "step": act.step}
    more["marks"] = dict(act.marks)
    body.update({name: value for name, value in more.items() if value})
    if act.state != DONE:
        body["state"] = act.state
    return body
