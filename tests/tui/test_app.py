"""`takeback ui`, by its keys: what is seen, and what is done about it, in real workspaces."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("textual", reason="the extra takeback[ui] is not installed")

from driving import Player, play, screen

import takeback
from scene import CLAUDE, CODEX, Scene, fifty_turns
from servers.payments import serving
from takeback.journal.brackets import Call, Caller
from takeback.surfaces.tui.app import TimelineApp


@pytest.fixture
def scene(ws):
    return Scene(ws)


def test_the_one_bad_turn_among_fifty_goes_with_twelve_keys_at_most(ws, project):
    fifty_turns(ws)
    spent = []

    async def script(player):
        await player.see("add page 49")
        await player.press("slash")  # all of these are on the screen: / Filter, x Take back, y Apply
        await player.write("lice")
        await player.see("make the failing licence test", without="add page")
        await player.press("enter", "x")
        await player.see("Take back claude “make the failing licence test pass” · 2 steps", "2 exact", "y Apply")
        await player.press("y")
        await player.see("took back claude's turn “make the failing licence test pass”: 2 files", "takeback redo")
        spent.append(player.keys)

    play(project, script, size=(80, 24))
    assert spent[0] <= 12
    assert "KEYS" in (project / "licence.py").read_text() and (project / "test_licence.py").exists()
    assert len(list((project / "docs").iterdir())) == 49


def test_keys_typed_in_one_go_mean_what_the_filter_leaves(ws, project):
    """As over a slow line, where they arrive together."""
    fifty_turns(ws)

    async def script(player):
        await player.see("add page 49")
        await player.press("slash", *"licence", "enter", "x")
        await player.see("Take back claude “make the failing licence test pass” · 2 steps")

    play(project, script)


def test_a_turn_opens_into_its_calls_and_shows_their_diff(scene, project):
    scene.turn("add a form", form_html="<form>\n", style_css="a { }\n")

    async def script(player):
        await player.see("add a form", "2 files +2", "+ form.html", "+<form>")
        await player.press("enter")
        await player.see("Write form.html", "Write style.css", "exact")
        await player.press("down")
        await player.see("+a { }", without="+<form>")
        await player.press("left", "left")
        await player.see("▸ ◆ claude “add a form”")

    play(project, script)


def test_what_is_undone_is_dim_and_tied_to_what_undid_it(ws, scene, project):
    scene.turn("one", a_txt="a\n")
    outcome = ws.undo()

    async def script(player):
        await player.see("undo: 1 path", f"↩ {outcome.id[:4]}")
        row = player.app.rows.row(1, 100)
        assert any("dim" in str(span.style) for span in row.spans)
        await player.press("t")
        await player.see(f"taken back by {outcome.id[:8]}")
        await player.press("x")
        await player.see(f"{outcome.id[:8]} has taken it back already")
        await player.press("t", "x")
        await player.see("Redo undo", "created again")
        await player.press("y")
        await player.see("brought back")

    play(project, script)
    assert (project / "a.txt").exists()


def test_undo_redo_and_take_this_back(scene, project):
    scene.turn("one", a_txt="a\n")

    async def script(player):
        await player.press("u")
        await player.see("Undo the last turn (claude “one”)", "y Apply")
        await player.press("y")
        await player.see("took back claude's turn “one”", "u Take this back")
        assert not (project / "a.txt").exists()
        await player.press("u")
        await player.see("Redo undo")
        await player.press("y")
        await player.see("brought back")
        assert (project / "a.txt").exists()
        await player.press("enter", "r")
        await player.see("nothing to redo")

    play(project, script)


def test_a_plan_that_is_stale_by_the_time_of_the_yes_is_refused(scene, project):
    scene.turn("one", a_txt="a\n")

    async def script(player):
        await player.press("x")
        await player.see("1 exact", "y Apply")
        (project / "a.txt").write_text("a person's\n")
        await player.press("y")
        await player.see("Not done", "a.txt: exact:", "≠ now drifted", "→")
        await player.press("enter", "x")
        await player.see("drifted")

    play(project, script)
    assert (project / "a.txt").read_text() == "a person's\n"


def test_it_begins_with_the_filter_it_was_given(scene, project):
    scene.turn("one", a_txt="a\n")
    scene.turn("two", b_txt="b\n")

    async def script(player):
        await player.see("path:b.txt", "“two”", "1 of 3 turns", without="“one”")

    play(project, script, filter="path:b.txt")


def test_leaving_a_plan_changes_nothing(scene, project):
    scene.turn("one", a_txt="a\n")

    async def script(player):
        await player.press("x")
        await player.see("y Apply")
        await player.press("enter")  # no stray Enter does it
        await player.see("y Apply")
        await player.press("d")
        await player.see("-a")
        await player.press("escape")
        await player.until(lambda: len(player.app.screen_stack) == 1)

    play(project, script)
    assert (project / "a.txt").exists()


def test_an_agent_is_not_asked_whether_peoples_work_goes(scene, project):
    scene.by_hand("before", a_txt="a\n")
    scene.turn("one", b_txt="b\n")
    scene.by_hand("after", a_txt="mine\n")

    async def script(player):
        await player.press("slash")
        await player.write("label:before")
        await player.see("“before”", without="“one”")
        await player.press("enter", "b")
        await player.see("Back to", "b.txt", "y Apply", without="t Take it too")
        await player.press("t", "y")
        await player.see("kept people's work: a.txt")

    play(project, script, agent="claude is at work here")
    assert (project / "a.txt").read_text() == "mine\n" and not (project / "b.txt").exists()


@pytest.mark.parametrize("key", ["t", "k"])
def test_back_to_a_checkpoint_asks_once_about_peoples_work(scene, project, key):
    scene.by_hand("before", a_txt="a\n")
    scene.turn("one", b_txt="b\n")
    scene.by_hand("after", a_txt="mine\n")

    async def script(player):
        await player.see("“before”")
        await player.press("slash")
        await player.write("label:before")
        await player.see("“before”", without="“one”")
        await player.press("enter", "b")
        await player.see("Back to", "b.txt", "asked about, people's work since then:", "~  a.txt")
        await player.see("t Take it too", "k Keep it", without="y Apply")
        await player.press("d")
        await player.see("with people's work:", "-mine")
        await player.press("y")  # says neither
        await player.press(key)
        await player.see("back at" if key == "t" else "kept people's work: a.txt; the tree is not wholly at")

    play(project, script)
    assert (project / "a.txt").read_text() == ("a\n" if key == "t" else "mine\n")
    assert not (project / "b.txt").exists()


def test_drifted_text_can_be_merged(scene, project):
    text = "".join(f"line {n}\n" for n in range(20))
    scene.by_hand("base", a_txt=text)
    scene.turn("top", a_txt="TOP\n" + text)
    scene.by_hand("end", a_txt="TOP\n" + text + "mine\n")

    async def script(player):
        await player.press("slash")
        await player.write("top")
        await player.see("“top”")
        await player.press("enter", "x")
        await player.see("drifted", "m Merge", "f Force")
        await player.press("m")
        await player.see("merged")
        await player.press("y")
        await player.see("took back")

    play(project, script)
    assert (project / "a.txt").read_text() == text + "mine\n"


def test_one_path_is_reverted_and_one_file_restored(scene, project):
    scene.turn("both", a_txt="a\n", b_txt="b\n")
    scene.turn("again", a_txt="aa\n", b_txt="bb\n")

    async def script(player):
        await player.see("“again”", "a.txt")
        await player.press("tab", *["down"] * 8)
        await player.see("x f: only a.txt")
        await player.press("x")
        await player.see("Revert a.txt")
        await player.press("y")
        await player.see("took back 1 file")
        assert (project / "a.txt").read_text() == "a\n"
        await player.press("enter", "tab", "slash")
        await player.write("again")
        await player.press("enter", "f")
        await player.see("Which file")
        await player.write("b.t")
        await player.press("enter")
        await player.see("Restore from", "~  b.txt")
        await player.press("y")
        await player.see("restored 1 file")

    play(project, script)
    assert [(project / name).read_text() for name in ("a.txt", "b.txt")] == ["a\n", "b\n"]


def test_a_checkpoint_is_taken_pinned_and_compared(ws, scene, project):
    scene.turn("one", a_txt="a\n")

    async def script(player):
        await player.press("c")
        await player.see("Label of the checkpoint")
        await player.write("good")
        await player.press("enter")
        await player.see("“good”", '"good": 1 path')
        await player.press("home", "p")
        await player.see("“good” · pinned", "kept for ever")
        await player.press("n")
        await player.see("What to call checkpoint")
        await player.write("better")
        await player.press("enter")
        await player.see("“better” · pinned", "is called “better” now")
        await player.press("n", "end", "backspace", "backspace", "enter")
        await player.see("“bett” · pinned", "is called “bett” now")
        (project / "a.txt").write_text("changed\n")
        await player.press("equals_sign")
        await player.see("compare: choose the other point")
        await player.press("equals_sign")
        await player.see("“bett” → now", "+changed", "-a")
        await player.press("escape", "equals_sign", "end", "equals_sign")
        await player.see("“start”", "→", "+ a.txt", "new +1")

    play(project, script)
    assert ws.history().pins


def test_the_filter_is_that_of_the_log_and_its_mistakes_are_told(scene, project):
    scene.turn("one", a_txt="a\n")
    scene.turn("two", b_txt="b\n")

    async def script(player):
        await player.press("slash")
        await player.write("path:a.txt")
        await player.see("“one”", "1 of 3 turns", without="“two”")
        await player.press("escape")
        await player.see("“two”", without="1 of 3")
        await player.press("slash")
        await player.write("colour:red")
        await player.see("unknown key 'colour'")
        await player.press("escape")
        await player.see("“two”", without="unknown key")
        await player.press("slash")
        await player.write("nowhere")
        await player.see("nothing matches")

    play(project, script)


def test_changes_of_other_processes_appear_by_themselves(ws, scene, project):
    scene.turn("one", a_txt="a\n")

    async def script(player):
        await player.see("“one”")
        with takeback.open(project) as other:
            elsewhere = Scene(other)
            elsewhere.turn("from elsewhere", CODEX, b_txt="b\n")
            await player.see("codex “from elsewhere”")
            other.begin_call(CLAUDE, Call("x", "Bash", "Bash: make"))
            await player.see("claude at work: Bash: make")

    play(project, script)


def test_the_cursor_stays_on_its_item_when_newer_ones_come(ws, project):
    fifty_turns(ws)

    async def script(player):
        await player.press(*["down"] * 5)
        was = player.app.item.id
        with takeback.open(project) as other:
            Scene(other).turn("newer", CODEX, b_txt="b\n")
        await player.until(lambda: player.app.rows.count == 54, "the newer turn")
        assert player.app.item.id == was
        await player.press("home")
        await player.see("“newer”")

    play(project, script)


def test_what_acts_outside_needs_the_word_and_is_done_step_by_step(ws, scene, project):
    with serving() as shop:
        scene.turn("charge the card", order_txt="5\n")
        urlopen(Request(f"{shop.url}/v1/charges", b'{"amount": 5}', {"Content-Type": "application/json"})).close()
        ws.record_http(
            "POST", f"{shop.url}/v1/charges", status=201, request_body={"amount": 5}, response_body={"id": "ch_1"},
            inverse_url=f"{shop.url}/v1/charges/{{response.body.id}}", by={"actor": "claude"},
        )  # fmt: skip

        async def script(player):
            await player.see("http", "compensating")
            await player.press("x")
            await player.see("DELETE", "compensates", "1 outside the files, asked for next by typing yes")
            await player.press("y")
            await player.see("Outside the files · 1 step", "Type yes to do this outside the files")
            await player.write("no")
            await player.press("enter")
            await player.see("nothing was changed")
            assert shop.charges["ch_1"]["status"] != "voided"
            await player.press("enter", "x")
            await player.see("y Apply")
            await player.press("y")
            await player.see("Type yes")
            await player.write("yes")
            await player.press("enter")
            await player.see("1 effect outside the files", "✓ http", "✓ files")

        play(project, script)
        assert shop.charges["ch_1"]["status"] == "voided" and not (project / "order.txt").exists()


def test_a_step_that_takes_long_is_seen_under_way(ws, scene, project):
    scene.turn("make a bucket", bucket_txt="b\n")
    waits = ["sh", "-c", "while [ ! -e go ]; do sleep 0.05; done"]
    ws.record_command("made a bucket", argv=waits, by={"actor": "claude"})

    async def script(player):
        await player.press("x")
        await player.see("y Apply")
        await player.press("y")
        await player.see("Type yes")
        await player.write("yes")
        await player.press("enter")
        await player.see("… command", "· files", "Taking back")
        await player.press("escape", "q", "enter")  # it goes on, whatever is pressed
        await player.see("… command")
        (project / "go").touch()
        await player.see("✓ command", "✓ files", "took back")

    play(project, script)
    assert not (project / "bucket.txt").exists()


def test_what_agents_remember_is_compared_and_goes_back_when_asked(ws, scene, project):
    ws.threads.save("main", {"messages": ["hello"]}, agent="claude")
    scene.turn("remember", a_txt="a\n")
    ws.begin_call(CLAUDE, Call("x", "Bash", "Bash: think"))
    ws.threads.save("main", {"messages": ["hello", "world"]}, agent="claude")
    ws.end_call(CLAUDE, Call("x", "Bash", "Bash: think"))

    async def script(player):
        await player.see("“remember”", "state", "thread main", '+ messages[1]: "world"')
        await player.press("u")
        await player.see("thread main stays", "w Threads too")
        await player.press("w")
        await player.see("thread main  back to")
        await player.press("d")
        await player.see("− messages[1]  world")
        await player.press("y")
        await player.see("took back")

    play(project, script)
    assert ws.threads.load(ws.threads.get("main")) == {"messages": ["hello"]}


def test_where_an_agent_is_at_work_nothing_outside_is_done_and_secrets_are_masked(ws, scene, project):
    scene.turn("set it up", a_env="PASSWORD=hunter2hunter2\n")
    ws.record_command("made a bucket", argv=["true"], by={"actor": "claude"})

    async def script(player):
        await player.see("contents masked", without="hunter2")
        await player.press("x")
        await player.see("y Apply")
        await player.press("y")
        await player.see("acting outside the files is for a person, and claude is at work here")

    play(project, script, agent="claude is at work here")
    assert (project / "a.env").exists()


def test_a_held_mail_is_read_and_sent_after_the_word_or_dropped(ws, scene, project, monkeypatch):
    from servers.smtp import Smtp

    with Smtp() as server:
        monkeypatch.setenv("TAKEBACK_SMTP_URL", f"smtp://127.0.0.1:{server.port}")
        monkeypatch.setenv("TAKEBACK_SMTP_FROM", "shop@example.com")
        with takeback.open(project) as own:
            own.hold_email("bob@example.com", "Order 17", "Dear Bob,\n")
            own.hold_email("eve@example.com", "Order 18", "Dear Eve,\n")

        async def script(player):
            await player.see("2 mails held")
            await player.press("enter", "down")
            await player.see("Dear Eve", "s Send", "held: s sends it, x drops it")
            await player.press("x")
            await player.see("drop the draft for eve@example.com")
            await player.press("y")
            await player.see("took back")
            await player.press("enter", "down", "s")
            await player.see("to: bob@example.com", "Type yes to send it to bob@example.com")
            await player.write("yes")
            await player.press("enter")
            await player.until(lambda: len(server.got) == 1, "the mail")
            await player.see("sent", without="mail held")

        play(project, script, size=(110, 40))


def test_an_unknown_is_resolved_by_a_person(ws, scene, project):
    act = ws.record_command("made a bucket", argv=["sleep", "60"], timeout=0.2)
    ws.approve(plan := ws.plan("revert", act.id))
    ws.apply(plan)
    assert ws.find_effect(act.id).shown_state == "unknown"

    async def script(player):
        await player.see("1 unknown")
        await player.press("slash")
        await player.write("state:unknown")
        await player.press("enter")
        await player.press("enter", "down")
        await player.see("v Resolve", "nobody knows what came of it")
        await player.press("v")
        await player.see("What came of “made a bucket”?", "was taken back", "was not taken back", without="happened")
        await player.press("enter")  # a stray one says nothing
        await player.until(lambda: len(player.app.screen_stack) == 1)
        await player.rest()
        assert ws.find_effect(act.id).shown_state == "unknown"
        await player.press("v")
        await player.see("was not taken back")
        await player.press("down", "enter")
        await player.see("noted: made a bucket was taken back")

    play(project, script)
    assert ws.find_effect(act.id).shown_state == "undone"


def test_names_cannot_steer_the_terminal(ws, scene, project):
    evil = "evil\x1b[31m\u202etxt"
    scene.turn("\x1b]0;owned\x07 \u202eprompt [bold]markup[/] [@click=app.quit]x", **{"a_txt": "\x1b[2Jgone\u202e\n"})
    scene.write(evil, "x\n")

    async def script(player):
        for view in ("1", "2", "3"):
            await player.press(view)
            await player.rest()
            shown = screen(player.app)
            assert "\x1b" not in shown and "\u202e" not in shown and "\x07" not in shown
        await player.press("1")
        await player.see("[bold]markup[/]", "\\x1b[2Jgone")
        await player.press("tab", *["down"] * 12, "x")
        await player.rest()
        assert "\u202e" not in screen(player.app)

    play(project, script)


def test_every_view_help_palette_zoom_and_mouse(scene, project):
    scene.turn("one", a_txt="a\n")

    async def script(player):
        await player.press("2")
        await player.see("session  s1", "prompt   “one”")
        await player.press("3")
        await player.see('"kind": "turn"')
        await player.press("1", "question_mark")
        await player.see("Every take-back can be taken back")
        await player.press("escape", "z")
        await player.see("“one”", without="1 Changes")
        await player.press("z", "ctrl+p")
        await player.write("pin")
        await player.see("keep this checkpoint for ever")
        await player.press("escape")
        await player.until(lambda: len(player.app.screen_stack) == 1)
        await player.pilot.click("#list", offset=(10, 1))
        await player.until(lambda: player.app.rows.cursor == 1)
        await player.pilot.click("#tabs", offset=(25, 0))
        await player.see('"kind": "checkpoint"')
        await player.pilot.click("#list", offset=(10, 0))
        await player.pilot.click("#list", offset=(10, 0))
        await player.see("Write a.txt")

    play(project, script)


def test_it_shrinks_and_grows(ws, project):
    fifty_turns(ws)

    async def script(player):
        for size in ((80, 24), (40, 12), (200, 60), (80, 24)):
            await player.pilot.resize_terminal(*size)
            await player.rest()
            lines = screen(player.app).split("\n")
            assert len(lines) == size[1] and all(len(line) <= size[0] for line in lines)
        await player.see("add page 49", "x Take back", "q Quit")

    play(project, script, size=(120, 40))


def test_an_interrupted_take_back_is_told_and_asked_about_first(ws, scene, project):
    scene.turn("one", a_txt="a\n")

    def cut_off(*_):
        raise KeyboardInterrupt

    ws.told = cut_off
    with pytest.raises(KeyboardInterrupt):
        ws.undo()

    async def script(player):
        await player.see("an undo was interrupted by Ctrl-C: u or x asks")
        await player.press("u")
        await player.see("it was to do:", "a.txt", "r Finish it", "a Go back from it")
        await player.press("escape", "u")
        await player.see("Finish it, go back from it, or leave it as it is?")
        assert (project / "a.txt").exists()
        await player.press("a")
        await player.see("went back from the interrupted undo")
        assert (project / "a.txt").exists() and not ws.interrupted()

    play(project, script, size=(100, 24))


def test_an_interrupted_take_back_is_finished_when_asked(ws, scene, project):
    scene.turn("one", a_txt="a\n")

    def cut_off(*_):
        raise SystemExit

    ws.told = cut_off
    with pytest.raises(SystemExit):
        ws.undo()

    async def script(player):
        await player.press("u")
        await player.see("an undo was interrupted", "r Finish it")
        await player.press("r")
        await player.see("finished the undo that was interrupted")

    play(project, script)
    assert not (project / "a.txt").exists()


def test_one_file_of_an_older_turn_is_that_turns_change_and_not_the_newest(scene, project):
    lines = "".join(f"{n}\n" for n in range(20))
    scene.turn("write it", a_txt=lines)
    scene.turn("add the end", a_txt=lines + "the end\n", b_txt="b\n")
    scene.turn("shout the beginning", a_txt=f"BEGIN\n{lines}the end\n")

    async def script(player):
        await player.see("add the end")
        await player.press("down")
        await player.see("+the end")
        await player.press("tab", *["down"] * 6)
        await player.see("x f: only a.txt")
        await player.press("x")
        await player.see("Revert a.txt of claude “add the end”", "m Merge")
        await player.press("m")
        await player.see("y Apply", "merge")
        await player.press("y")
        await player.see("took back 1 file")

    play(project, script)
    assert (project / "a.txt").read_text() == f"BEGIN\n{lines}" and (project / "b.txt").exists()


def test_the_filter_says_how_to_go_on(scene, project):
    scene.turn("one", a_txt="a\n")

    async def script(player):
        await player.press("slash")
        await player.see("⏎ To the list", "esc End the filter")
        await player.press("enter")
        await player.see("x Take back", without="To the list")

    play(project, script, size=(80, 24))


def test_what_the_system_refuses_is_told_and_never_under_way_for_ever(scene, project, monkeypatch):
    scene.turn("one", a_txt="a\n")

    async def script(player):
        def full(*_, **__):
            raise OSError(errno.ENOSPC, "No space left on device")

        await player.press("u")
        await player.see("y Apply")
        monkeypatch.setattr(player.app.acting, "apply", full)
        await player.press("y")
        await player.see("Not done", "No space left on device", "free space on that disk")
        await player.press("enter")
        monkeypatch.setattr(player.app.acting, "plan", full)
        await player.press("u")
        await player.see("Not done", "No space left on device")
        await player.press("enter")
        monkeypatch.setattr(player.app.acting, "checkpoint", full)
        await player.press("c", "enter")
        await player.see("No space left on device → free space on that disk")

    play(project, script)


@pytest.mark.parametrize("fails", [False, True])
def test_a_diff_that_comes_late_does_not_cover_the_result(scene, project, monkeypatch, fails):
    scene.turn("one", a_txt="a\n")
    free, seen = threading.Event(), threading.Event()

    async def script(player):
        await player.press("u")
        await player.see("y Apply")
        planning = player.app.screen
        real = planning._diff_lines

        def slow(*plans):
            free.wait(30)
            seen.set()
            if fails:
                raise OSError(errno.EIO, "Input/output error")
            return real(*plans)

        monkeypatch.setattr(planning, "_diff_lines", slow)
        await player.press("d", "y")
        await player.see("took back")
        free.set()
        await player.until(seen.is_set)
        await player.rest()
        await player.see("took back")

    play(project, script)


def test_nothing_leaves_in_the_middle_of_a_take_back(ws, scene, project):
    scene.turn("make a bucket", bucket_txt="b\n")
    ws.record_command("made it", argv=["sh", "-c", "while [ ! -e go ]; do sleep 0.05; done"], by={"actor": "claude"})

    async def script(player):
        await player.press("x")
        await player.see("y Apply")
        await player.press("y")
        await player.see("Type yes")
        await player.write("yes")
        await player.press("enter")
        await player.see("… command")
        await player.press("ctrl+q")
        await player.pilot.pause(0.3)
        assert player.app.is_running
        (project / "go").touch()
        await player.see("✓ command", "took back")
        await player.press("ctrl+q")
        await player.until(lambda: not player.app.is_running, "the end")

    play(project, script)


def test_help_opens_in_any_terminal(scene, project):
    scene.turn("one", a_txt="a\n")

    async def script(player):
        await player.press("question_mark")
        await player.until(lambda: len(player.app.screen_stack) == 2, "help")
        await player.press("escape")

    play(project, script, size=(10, 3))


def test_a_long_notice_is_read_whole(scene, project):
    scene.turn("one", a_txt="a\n")

    async def script(player):
        project.rename(project.with_name("elsewhere"))
        await player.press("c", "enter")
        shown = await player.see("takeback restore --to DIR", "x Take back")
        assert "still works" in " ".join(shown.split())

    try:
        play(project, script, size=(80, 24))
    finally:
        project.with_name("elsewhere").rename(project)


def test_a_journal_that_cannot_be_read_any_more_is_told_by_itself_and_looked_at_again(ws, scene, project, monkeypatch):
    scene.turn("one", a_txt="a\n")

    async def script(player):
        def gone(_):
            raise OSError(errno.EIO, "Input/output error")

        await player.see("“one”")
        with monkeypatch.context() as patch:
            patch.setattr(player.app.timeline, "changed_since", gone)
            await player.see("Input/output error", "takeback verify")
        scene.turn("two", b_txt="b\n")
        await player.see("“two”")

    play(project, script)


def test_a_journal_that_cannot_be_read_from_the_start_is_not_called_empty(ws, scene, project):
    scene.turn("one", a_txt="a\n")
    journal = ws.store.journal.path
    ws.close()
    with open(journal, "r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * 8192)

    async def look():
        with takeback.open(project) as looking, takeback.open(project) as acting:
            async with TimelineApp(looking, acting).run_test(size=(110, 32)) as pilot:
                shown = await Player(pilot).see("the journal is damaged", "it cannot be read")
                assert "nothing has happened" not in shown and "reading" not in shown

    asyncio.run(look())


def test_a_store_that_can_only_be_read_is_told_above_all(ws, scene, project, monkeypatch):
    scene.turn("one", a_txt="a\n")
    journal = ws.store.journal.path
    ws.close()
    monkeypatch.setattr(os, "access", lambda path, mode: not (os.fspath(path) == str(journal) and mode & os.W_OK))

    async def script(player):
        await player.see("“one”", "the store can only be read, nothing is recorded or taken back")
        await player.press("u")
        await player.see("Not done", "can only be read")

    play(project, script)


def test_a_long_tie_is_read_whole(ws, scene, project):
    scene.turn("tests are red, please get them green before the demo of Thursday", a_txt="a\n")
    ws.revert(ws.history().effects[-1].id)

    async def script(player):
        await player.press("down")
        await player.see("taken back by", "+ a.txt")
        assert player.app.detail.widest <= player.app.detail.content_region.width

    play(project, script, size=(80, 24))


def test_keys_typed_while_an_item_opens_are_for_what_is_in_it(scene, project, monkeypatch):
    scene.turn("one", a_txt="a\n", b_txt="b\n")
    read = threading.Event()

    async def script(player):
        await player.see("“one”", "+ a.txt")
        real = player.app.timeline.children
        monkeypatch.setattr(player.app.timeline, "children", lambda *how: read.wait(30) and real(*how))
        await player.press("enter", "down", "down")
        read.set()
        await player.see("Write a.txt", "Write b.txt")
        await player.until(lambda: player.app.rows.cursor == 2, "the cursor on the second call")

    play(project, script)


def test_where_there_was_no_file_none_is_offered(scene, project):
    scene.turn("one", a_txt="a\n")

    async def script(player):
        await player.see("“one”")
        await player.press("f")
        await player.see("there was no file at")

    play(project, script)


def test_takeback_that_is_off_is_told_at_the_top(ws, scene, project, monkeypatch):
    scene.turn("one", a_txt="a\n")
    monkeypatch.setenv("TAKEBACK", "off")

    async def script(player):
        await player.see("“one”", "off, nothing is recorded or taken back (environment TAKEBACK)")
        await player.press("u")
        await player.see("Not done", "takeback is off")

    play(project, script)


def test_a_plan_says_who_it_waits_for(ws, scene, project):
    scene.turn("one", a_txt="a\n")

    async def script(player):
        with ws.store.write.hold(5):
            await player.press("u")
            await player.see("Waiting for another process")
        await player.see("y Apply", without="Waiting for")
        await player.press("escape")
        free = threading.Event()

        def hold() -> None:
            with player.app.acting.alone():
                free.wait(30)

        busy = threading.Thread(target=hold)
        busy.start()
        try:
            await player.press("u")
            await player.see("Waiting for what was begun here before")
        finally:
            free.set()
            busy.join()
        await player.see("y Apply", without="Waiting for")

    play(project, script)


def test_whoever_leaves_before_the_plan_gets_none(scene, project, monkeypatch):
    scene.turn("one", a_txt="a\n")
    free, held, planned = threading.Event(), threading.Event(), []

    async def script(player):
        acting = player.app.acting
        monkeypatch.setattr(acting, "plan", lambda *_, **__: planned.append(1))

        def hold() -> None:
            with acting.alone():
                held.set()
                free.wait(30)

        busy = threading.Thread(target=hold)
        busy.start()
        held.wait(30)
        try:
            await player.press("u")
            await player.see("Working out the plan")
            await player.press("escape")
            await player.until(lambda: len(player.app.screen_stack) == 1)
        finally:
            free.set()
            busy.join()
        await player.rest()

    play(project, script)
    assert not planned


def test_what_was_interrupted_is_not_left_while_it_is_finished(ws, scene, project, monkeypatch):
    scene.turn("one", a_txt="a\n")

    def cut_off(*_):
        raise KeyboardInterrupt

    ws.told = cut_off
    with pytest.raises(KeyboardInterrupt):
        ws.undo()
    free = threading.Event()

    async def script(player):
        real = player.app.acting.resume
        monkeypatch.setattr(player.app.acting, "resume", lambda back: free.wait(30) and real(back))
        await player.press("u")
        await player.see("r Finish it")
        await player.press("r")
        await player.see("Finishing what was interrupted")
        await player.press("escape", "ctrl+q")
        await player.pilot.pause(0.3)
        assert player.app.is_running and len(player.app.screen_stack) == 2
        free.set()
        await player.see("finished the undo that was interrupted")

    play(project, script)


def test_whoever_reads_stays_where_he_is_when_others_act(ws, scene, project):
    scene.turn("one", a_txt="".join(f"line {n}\n" for n in range(100)))

    async def script(player):
        await player.see("“one”", "+line 3")
        await player.press("tab", "pagedown", "pagedown")
        await player.until(lambda: player.app.detail.cursor > 40, "the middle")
        was = player.app.detail.cursor, player.app.detail.scroll_offset
        scene.turn("two", CODEX, b_txt="b\n")
        await player.see("“two”")
        await player.rest()
        assert (player.app.detail.cursor, player.app.detail.scroll_offset) == was
        await player.press("tab", "up")
        await player.see("+b")
        assert player.app.detail.scroll_offset.y == 0

    play(project, script)


def test_an_act_waits_for_the_list_that_was_asked_for_last(scene, project, monkeypatch):
    """An answer to an older question that comes late is none."""
    scene.turn("one", a_txt="a\n")
    scene.turn("two", b_txt="b\n")
    posted, free = threading.Event(), threading.Event()

    async def script(player):
        app = player.app
        await player.see("“two”")
        await player.rest()
        later, turns = app.later, app.timeline.turns

        def noted(call, *args):
            later(call, *args)
            posted.set()

        monkeypatch.setattr(app, "later", noted)
        app.load()
        started = [worker for worker in app.workers if worker.group == "load"]
        assert started
        while not posted.is_set():
            await asyncio.sleep(0)  # the thread has to start; what it posts is not handled before the next line
        monkeypatch.setattr(app.timeline, "turns", lambda *how, **more: free.wait(30) and turns(*how, **more))
        app.filter_text = "one"
        app.load()
        app.action_take_back()
        await player.pilot.pause(0.3)
        assert len(app.screen_stack) == 1
        free.set()
        await player.see("Take back claude “one”")

    play(project, script)


def test_enter_while_the_filter_is_being_read_means_what_it_leaves(ws, scene, project, monkeypatch):
    scene.by_hand("good", a_txt="a\n")
    scene.by_hand("other", a_txt="b\n")
    free, asked = threading.Event(), threading.Event()

    async def script(player):
        await player.see("“other”", "“good”")
        await player.rest()
        turns = player.app.timeline.turns

        def slow(filter="", *how, **more):
            if filter == "label:good":
                asked.set()
                free.wait(30)
            return turns(filter, *how, **more)

        monkeypatch.setattr(player.app.timeline, "turns", slow)
        await player.press("slash")
        await player.write("label:good")
        await player.until(asked.is_set)
        await player.press("enter", "p")
        await player.pilot.pause(0.3)
        assert not ws.history().pins
        free.set()
        await player.see("“good” · pinned")

    play(project, script)


def test_a_tie_leads_back_only_where_it_came_from_and_says_what_the_filter_hides(ws, scene, project):
    scene.turn("one", a_txt="a\n")
    scene.turn("two", b_txt="b\n")
    ws.undo()

    async def script(player):
        await player.see("undo: 1 path", "“two”", "“one”")
        await player.press("t")
        await player.until(lambda: player.app.item.title == "two", "what was undone")
        await player.press("down", "t")
        await player.see("nothing has taken this back, and it took nothing")
        await player.press("slash")
        await player.write("two -kind:takeback")
        await player.see("“two”", without="“one”")
        await player.press("enter", "t")
        await player.see("the filter leaves it out")

    play(project, script)


def test_a_checkpoint_that_is_not_whole_says_so(scene, project, monkeypatch):
    scene.turn("one", a_txt="a\n")

    async def script(player):
        real, lacking = player.app.acting.checkpoint, (("secret.txt", "permission denied"),)
        monkeypatch.setattr(player.app.acting, "checkpoint", lambda label: real(label)._replace(partial=lacking))
        await player.press("c", "enter")
        await player.see("it is partial, without secret.txt (permission denied)")

    play(project, script)


def test_a_list_that_cannot_be_read_at_first_is_read_later(scene, project, monkeypatch):
    scene.turn("one", a_txt="a\n")
    from takeback.show.timeline import Timeline

    def gone(_):
        raise OSError(errno.EIO, "Input/output error")

    with takeback.open(project) as looking, takeback.open(project) as acting:
        app = TimelineApp(looking, acting)

        async def go():
            async with app.run_test(size=(100, 30)) as pilot:
                player = Player(pilot)
                await player.see("Input/output error")
                patch.undo()
                await player.see("“one”", without="Input/output error")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Timeline, "now", gone)
            asyncio.run(go())


def test_a_bug_is_raised_for_the_command_line_and_no_value_is_printed(scene, project, monkeypatch, capfd):
    scene.turn("one", a_txt="a\n")

    class Broken(TimelineApp):
        def on_ready(self):
            password = "hunter2hunter2"
            raise ZeroDivisionError(len(password))

    with takeback.open(project) as looking, takeback.open(project) as acting:
        app = Broken(looking, acting)
        monkeypatch.setattr(app, "run", lambda: TimelineApp.run(app, headless=True))
        with pytest.raises(ZeroDivisionError):
            app.finish()
    assert "hunter2" not in "".join(capfd.readouterr())


def test_a_long_diff_says_that_it_is_cut(scene, project, monkeypatch):
    scene.turn("one", a_txt="".join(f"line {n}\n" for n in range(100)))
    monkeypatch.setattr("takeback.surfaces.tui.planning._MOST", 10)

    async def script(player):
        await player.press("u")
        await player.see("y Apply")
        await player.press("d")
        await player.see("lines more")

    play(project, script)


@pytest.mark.parametrize(("files", "size"), [(1, (110, 32)), (1, (70, 20)), (60, (110, 32))])
def test_a_plan_and_its_result_warn_of_a_call_that_goes_on(ws, project, files, size):
    claude = Caller("claude", "s1")
    ws.begin_turn(claude, "go")
    ws.begin_call(claude, Call("1", "Bash", "Bash: make"))
    for number in range(files):
        (project / f"made{number}.txt").write_text("made\n")
    ws.checkpoint("seen")

    async def script(player):
        await player.press("u")
        await player.see("Apply?", "claude's Bash: make is still running", "this stays")
        await player.press("y")
        await player.see("took back", "claude's Bash: make is still running")

    play(project, script, size)
