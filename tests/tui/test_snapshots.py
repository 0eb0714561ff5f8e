"""How it looks, at the smallest size and at a roomy one. After a change that is meant: pytest --snapshot-update."""

from __future__ import annotations

import pytest

pytest.importorskip("textual", reason="the extra takeback[ui] is not installed")
pytest.importorskip("pytest_textual_snapshot", reason="the dev group is not installed")

from driving import Player
from textual.widgets import Input

from scene import CODEX, Scene
from takeback.surfaces.tui.app import TimelineApp
from takeback.surfaces.tui.picker import Picker
from takeback.surfaces.wording.take_backs import Asked

SIZES = {"small": (80, 24), "roomy": (120, 40)}


@pytest.fixture
def past(still, project):
    """An agent's turns, a charge and a mail, a person's edit, another agent whose turn was undone."""
    ws, clock = still(project), still.clock
    scene = Scene(ws)
    (project / "licence.py").write_text("def check(key):\n    return key in KEYS\n")
    (project / "README.md").write_text("# Shop\n")
    ws.checkpoint("release 1.4")
    clock.pass_by(3600)
    scene.turn("make the failing licence test pass", licence_py="def check(key):\n    return True\n")
    clock.pass_by()
    scene.turn("charge the card for order 17", order_py="total = 5\n")
    by = {"actor": "claude"}
    ws.record_http(
        "POST", "https://api.shop.example/v1/charges", status=201, request_body={"amount": 5, "card": "tok_visa"},
        response_body={"id": "ch_1", "amount": 5}, by=by,
        inverse_url="https://api.shop.example/v1/charges/{response.body.id}",
    )  # fmt: skip
    ws.hold_email("bob@example.com", "Order 17", "Dear Bob,\n\nthank you for your order.\n", by=by)
    clock.pass_by()
    scene.by_hand("before the weekend", notes_txt="milk\n")
    ws.pin("before the weekend")
    clock.pass_by()
    scene.turn("tidy up", CODEX, order_py="total = 6\n", notes_txt=None)
    clock.pass_by()
    ws.undo()
    clock.pass_by(30)
    yield still, project
    ws.close()


def opened(past, kind=TimelineApp, *more):
    still, project = past
    return kind(still(project), still(project), *more)


def after(*keys: str):
    async def before(pilot) -> None:
        player = Player(pilot)
        await player.until(lambda: pilot.app.now is not None)
        await player.rest()
        for key in keys:
            if key != "down":  # what is behind a dialog is drawn as it was when that came
                await player.rest()
            await player.press(key)
        app = pilot.app
        for box in app.screen.query(Input):
            box.cursor_blink = False
        await player.until(lambda: not app.is_early and not app.timeline.changed_since(app.now.head), "all of it")
        await player.rest()

    return before


@pytest.mark.parametrize("size", SIZES)
def test_the_timeline(past, snap_compare, size):
    keys = ("down",) * 4 + ("enter", "down", "down")
    assert snap_compare(opened(past), terminal_size=SIZES[size], run_before=after(*keys))


@pytest.mark.parametrize("size", SIZES)
def test_a_plan(past, snap_compare, size):
    keys = ("down",) * 4 + ("x",)
    assert snap_compare(opened(past), terminal_size=SIZES[size], run_before=after(*keys))


@pytest.mark.parametrize("size", SIZES)
def test_the_question_for_what_acts_outside(past, snap_compare, size):
    keys = ("down",) * 4 + ("x", "y")
    assert snap_compare(opened(past), terminal_size=SIZES[size], run_before=after(*keys))


@pytest.mark.parametrize("size", SIZES)
def test_a_result(past, snap_compare, size):
    keys = ("end", "up", "x", "y")
    assert snap_compare(opened(past), terminal_size=SIZES[size], run_before=after(*keys))


@pytest.mark.parametrize("size", SIZES)
def test_the_keys(past, snap_compare, size):
    assert snap_compare(opened(past), terminal_size=SIZES[size], run_before=after("question_mark"))


@pytest.mark.parametrize("size", SIZES)
def test_the_picker(past, snap_compare, size):
    app = opened(past, Picker, Asked("rollback", ()))
    assert snap_compare(app, terminal_size=SIZES[size], run_before=after("down"))


def test_without_colours(past, snap_compare):
    app = opened(past, TimelineApp, "", "", True)
    assert snap_compare(app, terminal_size=SIZES["small"], run_before=after("down"))
