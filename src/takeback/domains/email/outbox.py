"""Mail that is held: staged, released and cancelled, each journaled before it is done and after.

    begun ─► held ─► releasing: nobody knows ─► sent: irreversible
              │             └─► refused: held again
              └─► cancelled: it never left (a take-back of its own, or part of any other)

Releasing is the point of no return, and a person says yes to it. The caller (workspace.py) holds the lock that
take-backs hold, so that a mail is never sent and cancelled at once.
"""

from __future__ import annotations

import mimetypes
import os
import stat
import time
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from takeback.config.policy import ALLOW, REFUSE
from takeback.domains import recording
from takeback.errors import ApprovalNeeded, NotFound, TakebackError, UsageError
from takeback.model.effects import DONE, FAILED, HELD, IRREVERSIBLE, UNKNOWN, text
from takeback.model.ids import new_id
from takeback.model.outside import BEGUN, Act, NewAct, World
from takeback.system import processes
from takeback.system.safefs import Folder as OpenFolder
from takeback.system.safefs import components
from takeback.text.units import format_size, parse_duration

from .domain import cancel
from .message import Attachment, Mail, body_of, mailboxes, mime
from .providers import HELD as STILL_HELD
from .providers import SENT, Missing, Provider, Unheard, chosen, provider
from .recorded import is_mail, recipients

if TYPE_CHECKING:
    from takeback.workspace import Workspace

_LARGEST = 20 << 20  # of all attachments: servers take 25 MB of what becomes a third larger on its way
_NOT_AGAIN = "it is not sent again before that is known"
_LEFT: Mapping[str, Any] = {"sender": None}  # nobody is at it any more, though the process may live on


class Outbox:
    def __init__(self, workspace: Workspace, world: World) -> None:
        self._workspace = workspace
        self._world = world

    # -- staging -------------------------------------------------------------

    def hold(self, mail: Mail, asked: str, delay: str, approved: bool, by: Mapping[str, str] | None) -> Act:
        """Makes a draft of it. With a delay it is due after that, and goes by itself if a person said yes by now."""
        name = chosen(self._world.settings, asked)
        if delay and not isinstance(delay, str):
            raise UsageError(f"{delay!r} is no delay", "write a number with its unit, such as 30s")
        due = self._world.clock() + parse_duration(delay) if delay else 0.0
        holder = provider(name, self._world)
        holder.ready()
        content, id = mime(mail), new_id()
        blob = sha256(content).hexdigest()
        did: dict[str, Any] = {"provider": name, "mail": mail.to_json(), "blobs": [blob]}
        if due:
            did |= {"due": due, "approved": approved}
        act = NewAct("email", _summary(mail), f"draft:{name}:{id}", None, UNKNOWN, did, state=BEGUN)
        if not holder.remote:
            inverse = cancel(name, holder.stage(mail, id, blob))
            return self._workspace.record(act._replace(inverse=inverse, verdict=HELD, state=DONE), by, content)
        begun = self._workspace.record(act, by, content)
        try:
            ref = holder.stage(mail, id, blob)
        except Unheard as error:
            raise TakebackError(
                f"{error.message}, so nobody knows whether there is a draft; nothing was sent",
                "look among your drafts, delete it if it is there, then "
                f"takeback resolve {begun.id[:8]} --did-not-happen",
            ) from error
        except TakebackError as error:
            self._workspace.acted(begun.id, state=FAILED, did={"left_to_do": error.message})
            raise
        target = f"draft:{name}:{ref['draft']}"
        return self._workspace.acted(begun.id, state=DONE, verdict=HELD, target=target, inverse=cancel(name, ref))

    # -- releasing -----------------------------------------------------------

    def release(self, name: str, approved: bool, by: Mapping[str, str] | None) -> Act:
        """Sends it, once."""
        act = self.find(name)
        if act.verdict == IRREVERSIBLE:
            raise TakebackError(f"{act.id[:8]} was sent already: {act.did.get('left_to_do', '')}", "it goes only once")
        self._must_stand(act)
        if act.in_doubt:
            raise TakebackError(
                f"nobody knows whether {act.id[:8]} was cancelled", f"cancel it: takeback email cancel {act.id[:8]}"
            )
        self._permit(act, approved)
        if is_releasing(act) and (act := self.settle(act)).verdict == IRREVERSIBLE:
            return act
        me = processes.Process(os.getpid(), processes.started(os.getpid()))
        intent = {"releasing": True, "left_to_do": _doubt(act), "released_by": dict(by or {}), "sender": me._asdict()}
        act = self._workspace.acted(act.id, verdict=UNKNOWN, did=intent)
        holder = self._provider(act)
        try:
            told = holder.release({**_ref(act), "recipients": _envelope(act)})
        except Unheard as error:
            if self._where(act) == SENT:  # held would prove nothing: it may still be on its way
                return self._sent(act, {})
            self._workspace.acted(act.id, did=_LEFT)
            raise TakebackError(f"{error.message}: {_doubt(act)}", _NOT_AGAIN) from error
        except Missing:
            if self._where(act) == SENT:  # an earlier attempt, or somebody else
                return self._sent(act, {})
            self._held_again(act)
            raise
        except TakebackError:
            self._held_again(act)
            raise
        except BaseException:
            self._workspace.acted(act.id, did=_LEFT)
            raise
        return self._sent(act, told)

    def settle(self, act: Act) -> Act:
        """What became of a release that nobody heard of again, as its provider tells: sent, or held as before."""
        where = self._where(act)
        if where == SENT:
            return self._sent(act, {})
        if where != STILL_HELD:
            raise TakebackError(_doubt(act), _NOT_AGAIN)
        return self._held_again(act)

    def resolve(self, act: Act, happened: bool, result: Any = None) -> Act:
        """What a person found out about it: whether it was sent, or, of one that was never staged for certain, whether
        there is a draft."""
        if act.state == BEGUN:
            return self._staged_after_all(act, result) if happened else self._never_staged(act)
        return self._sent(act, {}) if happened else self._held_again(act)

    def _staged_after_all(self, act: Act, result: Any) -> Act:
        name, draft = act.did.get("provider", ""), result.get("draft") if isinstance(result, Mapping) else None
        if not isinstance(draft, str) or not draft:
            raise UsageError(
                f"nobody can tell which draft of {name} it is, to send it or to drop it",
                'say its id there: --result \'{"draft": "ID"}\'; or delete it there, then --did-not-happen',
            )
        found: dict[str, Any] = {"state": DONE, "verdict": HELD, "target": f"draft:{name}:{draft}"}
        found |= {"inverse": cancel(name, {"draft": draft}), "did": {"left_to_do": ""}}
        return recording.found_out(self._workspace, act, **found)

    def _never_staged(self, act: Act) -> Act:
        left = {"left_to_do": "there is no draft, as a person said"}
        return recording.found_out(self._workspace, act, state=FAILED, did=left)

    def _where(self, act: Act) -> str:
        try:
            return self._provider(act).where(_ref(act))
        except TakebackError:
            return ""

    def _sent(self, act: Act, told: Mapping[str, Any]) -> Act:
        now = self._world.clock()
        left = f"sent {time.strftime('%H:%M', time.localtime(now))} to {', '.join(recipients(act))}"
        if act.did.get("provider") != "smtp":
            left += (
                f"; trash your own copy with takeback email cancel --trash-copy {act.id[:8]}, recipients keep theirs"
            )
        did = {**_LEFT, "releasing": False, "left_to_do": left, "sent": now, "answer": dict(told)}
        return self._workspace.acted(act.id, verdict=IRREVERSIBLE, did=did)

    def _held_again(self, act: Act) -> Act:
        return self._workspace.acted(act.id, verdict=HELD, did={**_LEFT, "releasing": False, "left_to_do": ""})

    def _permit(self, act: Act, approved: bool) -> None:
        decision, source = self._world.settings.policy.decide("email", IRREVERSIBLE)
        if decision == REFUSE:
            raise TakebackError(
                f"releasing mail is refused by policy ({source}); {act.id[:8]} stays held",
                "change that in your own configuration",
            )
        if decision != ALLOW and not approved and not self._goes_by_itself(act):
            raise ApprovalNeeded(
                f"{act.id[:8]} is held: releasing mail cannot be undone, so a person has to say yes",
                f"run takeback email release {act.id[:8]} on a terminal",
            )

    def _goes_by_itself(self, act: Act) -> bool:
        return bool(act.did.get("approved")) and self.is_due(act)

    # -- cancelling ----------------------------------------------------------

    def before_cancel(self, name: str) -> Act:
        """The mail to cancel, as it stands; what has been sent is refused."""
        act = self.find(name)
        if is_releasing(act):
            act = self.settle(act)
        if act.verdict == IRREVERSIBLE:
            left = act.did.get("left_to_do", "")
            raise TakebackError(f"{act.id[:8]} cannot be unsent: {left}", "recipients keep what was sent")
        if not act.undone_by:
            self._must_stand(act)
        return act

    def trash(self, name: str) -> Act:
        """Trashes one's own copy of what was sent. Recipients keep theirs."""
        act = self.find(name)
        if act.verdict != IRREVERSIBLE:
            raise UsageError(
                f"{act.id[:8]} was not sent, so there is no copy", f"cancel it: takeback email cancel {act.id[:8]}"
            )
        self._provider(act).trash(_ref(act))
        left = f"sent to {', '.join(recipients(act))}, who keep theirs; your own copy is in the trash"
        return self._workspace.acted(act.id, did={"trashed": self._world.clock(), "left_to_do": left})

    # -- looking -------------------------------------------------------------

    def pending(self) -> list[Act]:
        """What is held, or was about to leave when nobody heard of it again; oldest first."""
        acts = [act for act in self._workspace.effects() if act.inverse is not None and is_mail(act)]
        return [act for act in reversed(acts) if not act.undone_by and act.verdict in (HELD, UNKNOWN)]

    def due(self) -> list[Act]:
        return [act for act in self.pending() if act.verdict == HELD and self.is_due(act)]

    def is_due(self, act: Act) -> bool:
        return bool(0 < act.did.get("due", 0) <= self._world.clock())

    def find(self, name: str) -> Act:
        """A mail by the beginning of its id or its provider's id; without a name the only one held."""
        if not name:
            pending = self.pending()
            held = [act for act in pending if act.shown_state == HELD]
            if len(held) == 1:
                return held[0]
            if not held and pending:  # what may have left already is no mail that is held
                act = pending[-1]
                raise NotFound(f"no mail is held, and {act.id[:8]} ({act.summary}) is {act.shown_state}", act.resolving)
            if not held:
                raise NotFound("no mail is held", "hold one with takeback email stage")
            listed = ", ".join(f"{act.id[:8]} ({act.summary})" for act in held[:6])
            raise UsageError(f"{len(held)} mails are held: {listed}", "name one of them")
        for act in self._workspace.effects():
            if act.inverse is not None and is_mail(act) and act.inverse.args.get("draft") == name:
                return act
        act = self._workspace.find_effect(name)
        if not is_mail(act):
            raise UsageError(f"{act.id[:8]} is no mail", "list those with takeback email pending")
        return act

    def read(self, act: Act, html: bool = False) -> str:
        """The text of a mail, as it was staged; or the HTML beside it."""
        blobs = act.did.get("blobs", ())
        kinds = ("html",) if html else ("plain", "html")
        return body_of(self._world.blobs.get(bytes.fromhex(blobs[0])), kinds) if blobs else ""

    def _must_stand(self, act: Act) -> None:
        if act.undone_by:
            raise TakebackError(f"{act.id[:8]} was cancelled", "stage it again to send it")
        if act.state != DONE or act.inverse is None:
            raise TakebackError(f"{act.id[:8]} was never held: {act.did.get('left_to_do', '')}", "stage it again")

    def _provider(self, act: Act) -> Provider:
        return provider(act.did.get("provider", ""), self._world)


def attachments(tree: OpenFolder, paths: Iterable[bytes]) -> tuple[Attachment, ...]:
    """Files of the project, read through no link."""
    found: list[Attachment] = []
    left = _LARGEST
    for path in paths:
        data = _read(tree, path, left)
        left -= len(data)
        name = text(components(path)[-1])
        kind, encoding = mimetypes.guess_type(name)
        found.append(Attachment(name, kind if kind and not encoding else "application/octet-stream", data))
    return tuple(found)


def _read(tree: OpenFolder, path: bytes, most: int) -> bytes:
    names = components(path)
    if not names:
        raise UsageError("the project itself cannot be attached", "name a file in it")
    try:
        with tree.descend(names[:-1]) as here:
            fd = here.open_read(names[-1])
    except OSError as error:
        raise UsageError(
            f"{text(path)} cannot be attached ({error.strerror})", "name a readable file that no symlink leads to"
        ) from error
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise UsageError(f"{text(path)} is no file, so it cannot be attached", "name a file")
        data = file.read(most + 1)
    if len(data) > most:
        raise UsageError(f"the attachments are larger than {format_size(_LARGEST)}", "attach less")
    return data


def is_releasing(act: Act) -> bool:
    """Whether it was about to leave when nobody heard of it again."""
    return act.verdict == UNKNOWN and bool(act.did.get("releasing"))


def _envelope(act: Act) -> list[str]:
    """Where it goes: to those that were shown, whatever else a row may name."""
    return list(dict.fromkeys(box.address for box in mailboxes("the recipients", recipients(act))))


def draft(act: Act, now: float) -> dict[str, Any]:
    """A mail as every surface gives it to programs."""
    due = act.did.get("due")
    return {
        "id": act.id,
        "state": "sent" if act.verdict == IRREVERSIBLE else "cancelled" if act.undone_by else act.shown_state,
        "provider": act.did.get("provider", ""),
        "provider_draft": act.inverse.args.get("draft") if act.inverse else None,
        **{field: act.did.get("mail", {}).get(field, []) for field in ("to", "cc", "bcc", "reply_to", "attachments")},
        "subject": act.did.get("mail", {}).get("subject", ""),
        "at": act.at,
        "due": due,
        "is_due": bool(due and due <= now and act.verdict == HELD and not act.undone_by),
        "approved": bool(act.did.get("approved")),
        "left_to_do": act.did.get("left_to_do", ""),
    }


def _summary(mail: Mail) -> str:
    boxes = [*mail.to, *mail.cc, *mail.bcc]
    others = f" and {len(boxes) - 1} more" if len(boxes) > 1 else ""
    return f'mail to {boxes[0].address}{others}: "{mail.subject}"'


def _ref(act: Act) -> Mapping[str, Any]:
    assert act.inverse is not None
    return act.inverse.args


def _doubt(act: Act) -> str:
    return (
        f"nobody knows whether {act.id[:8]} was sent: find out, then takeback resolve {act.id[:8]} --happened (it was "
        "sent) or --did-not-happen (it is held as before)"
    )
