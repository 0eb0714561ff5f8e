"""Ten thousand effects: what is drawn is what is seen, and a key never waits for the journal."""

from __future__ import annotations

import asyncio
import threading
from itertools import count

import pytest

pytest.importorskip("textual", reason="the extra takeback[ui] is not installed")

from driving import Player, play

import takeback
from scene import CLAUDE
from takeback.journal.brackets import open_row, turn_row
from takeback.journal.history import pack_list
from takeback.journal.journal import New
from takeback.model.calls import Call
from takeback.model.effects import FILE, Change, Entry, Turn
from takeback.model.ids import new_id
from takeback.surfaces.tui.app import TimelineApp


@pytest.fixture
def many(ws):
    """2,000 turns of five calls with one effect each, written into the journal as the calls write it."""
    ws.root.joinpath("a.txt").write_text("one\n")
    ws.checkpoint("real")
    blob = ws.store.blobs.put(b"some text\n")
    ws.store.blobs.flush()
    state = Entry(FILE, 0o644, 10, blob, b"", b"", 0, 0, 0)
    at, numbers, rows = ws.clock(), count(), []
    for number in range(2_000):
        asked = turn_row(CLAUDE, f"turn {number} makes it better")
        rows.append(asked)
        turn = Turn("claude", asked.id)
        for _ in range(5):
            path = f"src/file{next(numbers)}.py"
            opened = open_row(turn, CLAUDE, Call(path, "Write", f"Write {path}", (path.encode(),), scans=False), 0)
            packed = pack_list([Change(path.encode(), None, state)], ws.store.blobs.put)
            body = {"list": packed, "turns": [list(turn)], "calls": [opened.id], "summary": f"Write {path} · 1 file"}
            rows += [opened, New("change", new_id(), body), New("close", new_id(), {"open": opened.id, "oldest": 0})]
    ws.store.journal.append(rows, at)
    return ws


def test_all_of_it_is_there_and_only_a_screenful_is_drawn(many, project):
    async def script(player):
        await player.see("2,003 turns, 10,001 effects", "turn 1999")
        drawn = []
        rows = player.app.rows
        kept = type(rows).row
        rows.row = lambda at, width: drawn.append(at) or kept(rows, at, width)
        await player.press("end")
        await player.see("“start”")
        assert 0 < len(set(drawn)) <= 3 * 32
        await player.press("home", "slash")
        await player.write("file4321.py")
        await player.see("turn 864 makes it better", without="turn 1999")
        await player.press("enter", "enter")
        await player.see("Write src/file4321.py", "+some text")

    play(project, script)


def test_a_key_is_answered_while_the_workspace_is_busy(many, project):
    """Somebody holds the workspace of the timeline: its cursor still moves, and help opens."""
    with takeback.open(project) as looking, takeback.open(project) as acting:
        app = TimelineApp(looking, acting)

        async def go() -> None:
            async with app.run_test(size=(100, 30)) as pilot:
                player = Player(pilot)
                await player.see("turn 1999")
                held, free = threading.Event(), threading.Event()

                def hold() -> None:
                    with looking.alone(), acting.alone():
                        held.set()
                        free.wait(60)

                busy = threading.Thread(target=hold)
                busy.start()
                held.wait(60)
                try:
                    await player.press("down", "down", "down", "enter", "u")
                    await player.see("Working out the plan")
                    await player.press("escape", "question_mark")
                    await player.see("Every take-back can be")
                    assert app.rows.cursor == 3 and not free.is_set()
                finally:
                    free.set()
                    busy.join()

        asyncio.run(go())
