"""What only a person settles, each as a page that asks before anything is done: an undo that nobody heard of again, a
mail that is held, a take-back that was interrupted. It says what its button does in the words of the command line.

The page is made anew when its form comes back: if it would say something else by then, nothing is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from takeback.domains.email.outbox import draft
from takeback.errors import NotFound, Stale, TakebackError, UsageError
from takeback.model.effects import STATES
from takeback.model.outside import HAPPENED, Act
from takeback.privacy import redact
from takeback.show.timeline import Timeline
from takeback.surfaces.wording import approvals, effects_outside, json_shapes
from takeback.surfaces.wording import mail as mail_of_wording
from takeback.surfaces.wording.html import Child, Markup, lines, tag
from takeback.surfaces.wording.page import Page
from takeback.surfaces.wording.plans import Shown
from takeback.surfaces.wording.text import safe
from takeback.surfaces.wording.typed_json import parsed_json
from takeback.workspace import Workspace

from . import steps
from .forms import Filled, Forms, must_say_yes, one, typed_yes
from .listing import Place, way_back
from .results import Result, of_resumed


class Matter(NamedTuple):
    """One thing to settle, one way."""

    title: str
    said: tuple[str, ...]  # what it is, and what the button does
    shown: str  # what a person must have seen: the mail, or every act outside the files, in full
    question: str  # answered by typing yes; empty where the button is enough
    button: str
    says: str  # while it is done
    action: str
    values: Mapping[str, str]
    command: str
    seen: str  # a hash of all that it is about, before anything was masked
    rows: tuple[Shown, ...] = ()  # steps that are left
    hidden: int = 0  # how many there are besides
    total: int = 0
    field: Child = None  # what may be written besides

    @property
    def shape(self) -> dict[str, Any]:
        told = {"title": self.title, "said": list(self.said), "shown": self.shown, "question": self.question}
        left = [row._asdict() for row in self.rows]
        return {**told, "steps": left, "command": self.command, "confirms": self.seen}


def matter_page(matter: Matter, forms: Forms, place: Place) -> list[Child]:
    fields: list[Child] = []
    if matter.shown:
        fields.append(tag("pre", lines(matter.shown), tabindex=0, aria_label="What it is about"))
    if matter.field is not None:
        fields.append(matter.field)
    if matter.question:
        fields.append(typed_yes(matter.question))
    confirm = forms.confirm(matter.button, matter.action, fields, matter.says, seen=matter.seen, **matter.values)
    return [
        way_back(place),
        tag("h2", matter.title, id="heading"),
        *(tag("p", line) for line in matter.said),
        steps.table(matter.rows, matter.hidden) if matter.rows else None,
        confirm or (fields[0] if matter.shown else None),
        tag(
            "footer",
            tag("p", "The same in a terminal: ", tag("code", matter.command), class_="note"),
            class_="about",
        ),
    ]


def must_be_as_seen(matter: Matter, filled: Filled) -> None:
    if one(filled, "seen") != matter.seen:
        raise Stale("it is not as it was shown any more; nothing was changed", "look at it again, then confirm it")
    must_say_yes(filled, [matter.question] if matter.question else [])


def _hash(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


# -- an undo that nobody heard of again ------------------------------------------


def resolving(workspace: Workspace, id: str, said: str) -> Matter:
    act = workspace.find_effect(id)
    if act.shown_state != "unknown":
        raise UsageError(f"{act.id[:8]} is not in doubt: it is {act.shown_state}", "choose it in the timeline again")
    if said not in act.sayings:
        raise UsageError("it is not said what came of it", "go back to it in the timeline and choose")
    meaning = effects_outside.meaning(act, said)
    sent = effects_outside.describer(workspace)(act) if act.in_doubt and act.inverse is not None else ""
    told = [
        "Nobody knows what came of it. Look at the other side before you say so.",
        f"This notes your word, {meaning}, and sends nothing; to take it back needs a yes of its own.",
    ]
    asks = said == HAPPENED and act.waits_for_result
    if asks:
        told.append("Its undo needs what it answered. Without it nothing here takes it back.")
    return Matter(
        f"Is it so? {meaning}",
        tuple(told),
        f"Sent to take it back, and never answered:\n  {safe(sent)}" if sent else "",
        "",
        "Yes, note it",
        "Writing it down …",
        f"/resolve/{act.id}",
        {"said": said},
        f"takeback resolve {act.id[:8]} --{said}" + " --result JSON" * asks,
        _hash("resolve", act.id, act.in_doubt, meaning),
        field=_result_field() if asks else None,
    )


def _result_field() -> Markup:
    box = tag("textarea", id="result", name="result", rows=3, cols=60, spellcheck="false", placeholder='{"id": "…"}')
    return tag("p", tag("label", "What it answered, as JSON", for_="result"), " ", box)


def resolved(workspace: Workspace, id: str, said: str, result: str = "") -> Result:
    noted = f"noted: {effects_outside.meaning(workspace.find_effect(id), said)}"
    given = parsed_json(result, "the result", '{"id": "ch_3P"}') if result.strip() else None
    act = workspace.resolve(id, said, given)
    return Result(act.id, "Noted", (noted,), True, False, {"effect": json_shapes.effect(act, workspace.history())})


# -- a mail that is held -----------------------------------------------------------


def releasing(workspace: Workspace, id: str) -> Matter:
    act = workspace.find_email(id)
    if act.shown_state != "held":
        raise UsageError(f"{act.id[:8]} is not held: it is {act.shown_state}", "choose it in the timeline again")
    page = Page()
    mail_of_wording.write_mail(page, workspace, act)
    mail = str(page)
    shown = redact.text(mail)
    said = ["This sends it now, as it stands here. Nothing takes that back."]
    if shown != mail:
        said.append("What looks like a secret is masked here, and is sent as it is; the terminal shows all of it.")
    return Matter(
        f"Send {safe(act.summary)}?",
        tuple(said),
        shown,
        mail_of_wording.release_question(act),
        "Send it",
        "Sending …",
        f"/release/{act.id}",
        {},
        f"takeback email release {act.id[:8]}",
        _hash("release", act.id, mail, *act.did.get("blobs", ())),
    )


def released(workspace: Workspace, id: str) -> Result:
    try:
        act = workspace.release_email(id, approved=True, by={"surface": "web"})
    except TakebackError as error:
        act = workspace.find_effect(id)
        if act.shown_state != "unknown":
            raise
        heard = (error.message, f"→ {error.hint}")
        return Result(act.id, "Nobody knows whether it was sent", heard, False, False, _draft(workspace, act))
    sent = f"{act.id[:8]} {safe(str(act.did.get('left_to_do', 'sent')))}"
    return Result(act.id, "Sent", (sent,), True, False, _draft(workspace, act))


def _draft(workspace: Workspace, act: Act) -> dict[str, Any]:
    return {"draft": draft(act, workspace.clock())}


# -- a take-back that was interrupted ------------------------------------------------


def resuming(workspace: Workspace, abort: bool) -> Matter:
    plan = Timeline(workspace).unfinished(abort)
    if plan is None:
        raise NotFound("nothing was interrupted", "any take-back can be made from the timeline")
    rows, hidden = steps.listed(workspace, plan)
    page = Page()
    outside = [step for step in plan.steps if step.domain not in STATES]
    if outside:
        approvals.listing(page, workspace, outside)
    verb = plan.request.verb
    if abort:
        title, said = f"Go back from the interrupted {verb}?", ["The tree becomes as before it began."]
        if outside:
            said.append("Of what it has begun outside the files it is only asked what came of it; nothing is sent.")
    else:
        title, said = f"Finish the {verb} that was interrupted?", ["It was approved when it began; this is left."]
    return Matter(
        title,
        tuple(said),
        str(page),
        "",
        "Go back" if abort else "Finish it",
        "Going back …" if abort else "Finishing …",
        "/resume",
        {"abort": "yes"} if abort else {},
        "takeback resume --abort" if abort else "takeback resume",
        _hash("resume", plan.hash, str(abort)),
        rows,
        hidden,
        len(plan.steps),
    )


def resumed(workspace: Workspace, abort: bool) -> Result:
    outcome = workspace.resume(abort)
    if outcome is None:
        raise NotFound("nothing was interrupted", "any take-back can be made from the timeline")
    return of_resumed(workspace, outcome, abort)
