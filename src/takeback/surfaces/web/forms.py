"""Ways to change something, as buttons and fields; where nothing may be changed there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from takeback.errors import ApprovalNeeded
from takeback.surfaces.wording.html import Child, Markup, tag

from .listing import Place

Filled = Mapping[str, list[str]]  # a form as it came back: name → what was written there


class Forms:
    """Of one page. Each has the token that only our pages know, and the place to come back to."""

    def __init__(self, place: Place, token: str) -> None:
        self._place = place
        self._token = token  # empty where nothing may be changed

    @property
    def may_change(self) -> bool:
        return bool(self._token)

    def plan(self, text: str, *, class_: str = "", field: Child = None, **values: str) -> Markup | None:
        """Leads to a plan, which asks."""
        return self._form(tag("button", text, class_=class_ or None, data_says="Planning …"), "/plan", field, values)

    def note(self, text: str, action: str, *, field: Child = None, **values: str) -> Markup | None:
        """Journals something that changes nothing in the world: a checkpoint, a pin."""
        return self._form(tag("button", text, data_says="Writing it down …"), action, field, values)

    def confirm(self, text: str, action: str, fields: Child, says: str, **values: str) -> Markup | None:
        """Does exactly what stands on the page."""
        return self._form(tag("button", text, class_="main apply", data_says=says), action, fields, values, "confirm")

    def way(self, text: str, *steps: str, **query: str) -> Markup | None:
        """A link to a page that asks."""
        return tag("a", text, href=self._place.to(*steps, **query), class_="button") if self.may_change else None

    def _form(
        self, button: Markup, action: str, fields: Child, values: Mapping[str, str], class_: str = ""
    ) -> Markup | None:
        if not self.may_change:
            return None
        sent = {"form": self._token, **values, **self._place.kept}
        hidden = [tag("input", type="hidden", name=name, value=value) for name, value in sent.items()]
        return tag("form", *hidden, fields, button, action=action, method="post", class_=class_ or None)


def group(label: str, *made: Child) -> Markup | None:
    """What can be done from here; nothing where there is nothing to do."""
    there = [each for each in made if each]
    return tag("div", *there, class_="acts", role="group", aria_label=label) if there else None


def typed_yes(question: str, number: int = 0) -> Markup:
    """A field for the whole word, so that no stray key does it."""
    id = f"yes-{number}"
    field = tag(
        "input",
        id=id,
        name="yes",
        type="text",
        autocomplete="off",
        required=True,
        size=6,
        pattern="[Yy][Ee][Ss]",
    )
    return tag("p", tag("label", question, for_=id), " ", field)


def must_say_yes(filled: Filled, questions: Sequence[str]) -> None:
    said = [answer.strip().lower() for answer in filled.get("yes", [])]
    if said != ["yes"] * len(questions):
        raise ApprovalNeeded("nothing was changed: this needs a typed yes", "type yes into every field, or leave it")


def one(filled: Filled, name: str) -> str:
    return filled.get(name, [""])[0]
