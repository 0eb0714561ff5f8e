"""resolve: a person says what came of an effect, or of its undo, that nobody heard of again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.errors import UsageError
from takeback.model.outside import SAYINGS
from takeback.surfaces.cli import approving
from takeback.surfaces.wording import json_shapes
from takeback.surfaces.wording.effects_outside import meaning
from takeback.surfaces.wording.text import safe
from takeback.surfaces.wording.typed_json import parsed_json

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser

_EITHER = "of an effect say --happened or --did-not-happen, of its undo --undone or --not-undone"


def add(parser: Parser) -> None:
    parser.synopsis = "ID --happened [--result JSON]|--did-not-happen|--undone|--not-undone"
    parser.about = (
        "An effect that was begun, or an undo that was sent, and never heard of again is unknown; nothing\n"
        "of it is sent again by itself. Look at the other side, then say what you saw. Where it is in\n"
        "doubt whether the effect happened: --happened or --did-not-happen. Where its undo was sent:\n"
        "--undone or --not-undone, and then it may be sent again, after approval. status, show and the\n"
        "plan name those that fit. Refused where an agent is at work: it is a person's word."
    )
    parser.takes("ID", "name", help="how the id of the effect, or of its undo, begins")
    parser.takes("--happened", "--happened", action="store_true", help="the effect is there, and stands")
    parser.takes("--result JSON", "--result", help="with --happened: what it answered, for its undo; text, @FILE or -")
    parser.takes("--did-not-happen", "--did-not-happen", action="store_true", help="the effect is not there")
    parser.takes("--undone", "--undone", action="store_true", help="its undo took effect")
    parser.takes("--not-undone", "--not-undone", action="store_true", help="its undo did not; it may be sent again")
    parser.retired = {"--done": _EITHER, "--not-done": _EITHER}
    parser.examples = [
        ("takeback effects state:unknown", "what is in doubt"),
        ("takeback resolve kxvm --did-not-happen", "the other side has no such charge"),
        ('takeback resolve kxvm --happened --result \'{"id": "ch_3P"}\'', "it is: this is its id"),
        ("takeback resolve kxvm --undone", "the other side has the refund"),
        ("takeback resolve kxvm --not-undone", "it has not; then takeback undo again"),
    ]


def run(context: Context, args: Namespace) -> int:
    chosen = [said for said in SAYINGS if getattr(args, said.replace("-", "_"))]
    with context.open() as workspace:
        approving.only_a_person(context, "saying what came of an effect", workspace)
        if len(chosen) != 1:
            doubted = workspace.find_effect(args.name)
            hint = doubted.resolving if doubted.sayings else _EITHER
            raise UsageError("say what came of it, in one word" if not chosen else "say one thing of it", hint)
        doubted = workspace.find_effect(args.name)
        act = workspace.resolve(args.name, chosen[0], parsed_json(args.result, "--result", '\'{"id": "ch_3P"}\''))
        if context.json:
            context.terminal.json({"effect": json_shapes.effect(act, workspace.history())})
            return 0
        context.terminal.say(f"noted: {meaning(doubted, chosen[0])}")
        if act.sayings:
            context.terminal.hint(f"whether it was taken back is still in doubt: {act.resolving}")
        elif act.shown_state in ("live", "held"):
            context.terminal.hint(f"take it back: takeback revert {act.id[:8]}")
        elif act.shown_state == "irreversible":
            context.terminal.hint(f"nothing takes it back: {safe(str(act.did.get('left_to_do', '')))}")
        return 0
