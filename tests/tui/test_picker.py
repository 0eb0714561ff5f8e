"""`takeback rollback` without a target: the picker, and the plain list where the extra is missing."""

from __future__ import annotations

import pytest

pytest.importorskip("textual", reason="the extra takeback[ui] is not installed")

from driving import run

import takeback
from scene import Scene
from takeback.surfaces.tui.picker import Picker
from takeback.surfaces.wording.take_backs import Asked

ASKED = Asked("rollback", ())


def pick(project, script, asked=ASKED, size=(110, 32)):
    with takeback.open(project) as looking, takeback.open(project) as acting:
        app = Picker(looking, acting, asked)
        run(app, script, size)
    return app


@pytest.fixture
def scene(ws):
    scene = Scene(ws)
    scene.by_hand("first", a_txt="one\n")
    scene.by_hand("second", a_txt="two\n")
    (scene.root / "a.txt").write_text("three\n")
    return scene


def test_the_newest_named_one_is_chosen_and_what_would_change_stands_beside_it(scene, project):
    async def script(player):
        await player.see("“second”", "“first”", "“start”", "Back to", "-three", "+two", "just now", "⏎ Go back to it")
        await player.press("down")
        await player.see("-three", "+one")
        await player.press("enter")
        await player.see("y Apply", '"first" · 1 step')
        await player.press("y")
        await player.see("back at")
        await player.press("enter")
        await player.until(lambda: not player.app.is_running or player.app._exit)

    app = pick(project, script)
    assert app.return_value == 0 and app.said[0].startswith("back at")
    assert (project / "a.txt").read_text() == "one\n"


def test_a_checkpoint_is_chosen_by_its_number(scene, project):
    """By all of it: after the twelfth, 1 and 2 typed at once are 12."""
    for n in range(9):
        scene.by_hand(f"more {n}", a_txt=f"{n}\n")
    marks = {c.label: c.number for c in scene.ws.history().checkpoints}
    assert marks["first"] == 2 and marks["more 8"] == 12

    async def script(player):
        await player.see("12  “more 8”", "2  “first”")
        await player.press("2")
        await player.see("+one")
        await player.press("down", "1", "2")
        await player.until(lambda: player.app.item.number == 12, "the twelfth")
        await player.press("down", "2", "enter")
        await player.see("y Apply", '"first" · 1 step')
        await player.press("y")
        await player.see("back at")
        await player.press("enter")

    pick(project, script)
    assert (project / "a.txt").read_text() == "one\n"


def test_leaving_changes_nothing(scene, project):
    async def script(player):
        await player.see("“second”")
        await player.press("enter")
        await player.see("y Apply")
        await player.press("escape")
        await player.until(lambda: len(player.app.screen_stack) == 1)
        await player.press("x", "u", "escape")

    app = pick(project, script)
    assert app.return_value == 4 and app.said == []
    assert (project / "a.txt").read_text() == "three\n"


def test_it_is_found_by_its_label_and_options_are_kept(scene, project):
    async def script(player):
        await player.see("“second”")
        await player.press("slash")
        await player.write("label:first")
        await player.see("“first”", without="“second”")
        await player.press("enter", "enter")
        await player.see("nothing to take back")
        await player.press("enter")

    pick(project, script, Asked("rollback", (), only=("git",)))
    assert (project / "a.txt").read_text() == "three\n"


def test_the_newest_named_one_stays_chosen_below_newer_ones(ws, scene, project):
    scene.turn("where it began", b_txt="b\n")
    scene.turn("and another", c_txt="c\n")

    async def script(player):
        await player.see("“and another”", "Back to", '"where it began" ·')
        await player.rest()
        await player.see('"where it began" ·')
        assert player.app.item.title == "where it began"
        ws.checkpoint()  # what comes meanwhile does not move it either
        scene.turn("yet another", d_txt="d\n")
        await player.see("“yet another”")
        assert player.app.item.title == "where it began"

    pick(project, script)


def test_a_checkpoint_can_be_taken_before_going_back(ws, scene, project):
    async def script(player):
        await player.see("“second”", "-three", "c Take one now")
        await player.press("c")
        await player.see("Label of the checkpoint")
        await player.write("third")
        await player.press("enter")
        await player.see("“third”", '"third": 1 path')
        assert player.app.item.title == "second", "what was chosen stays chosen"
        await player.press("enter")
        await player.see("y Apply", '"second" · 1 step')
        await player.press("y")
        await player.see("back at")
        await player.press("enter")

    pick(project, script)
    assert (project / "a.txt").read_text() == "two\n"
    ws.rollback("third")
    assert (project / "a.txt").read_text() == "three\n"


def test_keys_of_the_timeline_do_nothing_here_and_help_has_its_own(ws, scene, project):
    async def script(player):
        await player.see("“second”", "-three")
        for key in ("p", "f", "equals_sign", "t", "1", "3", "x", "u", "r"):
            await player.press(key)
            assert len(player.app.screen_stack) == 1, key
        await player.rest()
        await player.see("-three", without="compare")
        await player.press("question_mark")
        await player.see("back to this checkpoint", "leave all as it is", without="pin it")
        await player.press("escape")
        await player.until(lambda: len(player.app.screen_stack) == 1)

    pick(project, script)
    assert not ws.history().pins and len(ws.history().checkpoints) == 3
