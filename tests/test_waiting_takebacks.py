"""A take-back that was killed and waits to be finished: what a person writes meanwhile is no part of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import takeback

KILLING = ["sh", "-c", "echo by the inverse > data.txt; kill -9 $PPID"]  # the take-back that runs it
ROLL_BACK = "import sys, takeback; ws = takeback.open(sys.argv[1]); plan = ws.plan('rollback', '1'); "
ROLL_BACK += "ws.approve(plan); ws.apply(plan)"


@pytest.fixture
def ws(tmp_path, monkeypatch):
    monkeypatch.setenv("TAKEBACK_HOME", str(tmp_path / "home"))
    root = tmp_path / "project"
    root.mkdir()
    (root / "data.txt").write_text("one\n")
    with takeback.open(root, create=True) as opened:
        yield opened


@pytest.mark.parametrize("goes_on", [True, False])
def test_what_a_person_writes_while_it_waits_stays_with_redo(ws, goes_on):
    (ws.root / "data.txt").write_text("two\n")
    ws.checkpoint(named=False)
    if goes_on:  # with another act, when it is finished
        ws.record_command("migrated", argv=["sh", "-c", "echo more > more.txt"])
    ws.record_command("deployed", argv=KILLING)
    killed = subprocess.run([sys.executable, "-c", ROLL_BACK, str(ws.root)], capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr.decode()
    (ws.root / "mine.txt").write_text("written while it waits\n")
    assert ws.interrupted()
    ws.resume()
    assert (ws.root / "mine.txt").exists()
    ws.redo()
    assert (ws.root / "mine.txt").read_text() == "written while it waits\n"
    (effect,) = (e for e in ws.history().effects if b"mine.txt" in e.changes)
    assert not effect.takeback and not effect.turns


STOP_HALFWAY = """
import os, sys, takeback
from takeback.domains import files
ws = takeback.open(sys.argv[1])
done = files.Files.apply
def killed(self, steps, *more, **also):
    for _ in done(self, steps[: len(steps) // 2], *more, **also): pass
    os.kill(os.getpid(), 9)
files.Files.apply = killed
ws.rollback("1")
"""


def test_a_step_that_finishes_it_first_says_so(ws):
    for name in ("a.txt", "b.txt"):
        (ws.root / name).write_text("x")
    assert subprocess.run([sys.executable, "-c", STOP_HALFWAY, str(ws.root)], check=False).returncode == -9
    with pytest.raises(RuntimeError) as raised, ws.step("write") as step:
        (ws.root / "c.txt").write_text("x")
        raise RuntimeError
    assert step.finished is not None and step.finished.whole and [p.name for p in ws.root.iterdir()] == ["data.txt"]
    first, second = raised.value.__notes__
    assert first.startswith("takeback: finished a rollback that was interrupted: took back ")
    assert "a.txt" in first and "b.txt" in first
    assert second == 'takeback: step "write" was taken back: c.txt'


def test_going_back_from_it_names_what_it_kept(ws, capsys, monkeypatch):
    from takeback.surfaces.cli import main

    for name in ("a", "b", "c", "d"):
        (ws.root / name).write_text(f"{name}\n")
    ws.checkpoint(named=False)
    killed = subprocess.run([sys.executable, "-c", STOP_HALFWAY, str(ws.root)], capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr.decode()
    gone = next(name for name in ("a", "b", "c", "d") if not (ws.root / name).exists())
    (ws.root / gone).write_text("a person's\n")
    monkeypatch.chdir(ws.root)
    code = main(["resume", "--abort"])
    told = capsys.readouterr()
    assert code == 3
    assert f"but for {gone}" in told.out + told.err and f"kept {gone} as it is now" in told.err
    assert (ws.root / gone).read_text() == "a person's\n"


@pytest.fixture
def hanging():
    """A server whose first answer never comes."""
    import threading
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    asked = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            is_first = not asked.is_set()
            asked.set()
            if is_first:
                threading.Event().wait(20)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_DELETE = do_POST

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()


def test_what_a_person_writes_over_while_it_waits_stays(ws, hanging):
    """Killed in a request, with files still to come back and others that are back already."""
    url, asked = hanging
    (ws.root / "data.txt").write_text("two\n")
    (ws.root / "gone.txt").write_text("agent\n")
    ws.checkpoint(named=False)
    ws.record_http(
        "POST",
        f"{url}/charges",
        status=200,
        inverse_url=f"{url}/refunds",
        probe={"url": f"{url}/x", "expect": [200], "gone": [404]},
    )
    (ws.root / "new.txt").write_text("agent, after the charge\n")
    ws.checkpoint(named=False)
    rolling = subprocess.Popen([sys.executable, "-c", ROLL_BACK, str(ws.root)])
    assert asked.wait(20)
    rolling.kill()
    rolling.wait()
    assert not (ws.root / "new.txt").exists() and (ws.root / "gone.txt").exists()
    (ws.root / "data.txt").write_text("a person's hour of work\n")
    (ws.root / "new.txt").write_text("a person's, too\n")
    outcome = ws.resume()
    assert outcome is not None and not outcome.whole
    assert (ws.root / "data.txt").read_text() == "a person's hour of work\n" and not (ws.root / "gone.txt").exists()
    assert ws.show(outcome.id)
    ws.redo()
    assert (ws.root / "data.txt").read_text() == "a person's hour of work\n"
    assert (ws.root / "new.txt").read_text() == "a person's, too\n"


ROLL_BACK_WITH_KEY = "import sys, takeback; ws = takeback.open(sys.argv[1]); plan = ws.plan('rollback', '1'); "
ROLL_BACK_WITH_KEY += "ws.approve(plan, ws.unapproved(plan)[1]); ws.apply(plan)"


def killed_in_its_refund(ws, hanging, **how):
    """A rollback whose refund arrived and was never answered. Whoever comes next has not got its credential."""
    url, asked = hanging
    ws.record_http(
        "POST",
        f"{url}/charges",
        status=200,
        inverse_url=f"{url}/refunds",
        inverse_headers={"Authorization": "Bearer ${env:SHOP_KEY}"},
        **how,
    )
    (ws.root / "data.txt").write_text("two\n")
    ws.checkpoint(named=False)
    env = {**os.environ, "SHOP_KEY": "k"}
    rolling = subprocess.Popen([sys.executable, "-c", ROLL_BACK_WITH_KEY, str(ws.root)], env=env)
    assert asked.wait(20)
    rolling.kill()
    rolling.wait()


def by_a_step(ws):
    with ws.step("write") as step:
        pass
    return step.finished.message


def by_a_turn(ws):
    with takeback.Conversation(ws).turn("hello") as turn:
        pass
    return turn.finished.message


def by_an_undo(ws):
    return takeback.Conversation(ws).undo().message


def by_going_back(ws):
    ws.resume(abort=True)
    return "takeback resolve"


@pytest.mark.parametrize("comes_next", [by_a_step, by_a_turn, by_an_undo, by_going_back])
@pytest.mark.parametrize("how", [{}, {"idempotent": True}], ids=["once", "idempotent"])
def test_what_may_have_been_sent_stays_in_doubt_whoever_comes_next(ws, hanging, comes_next, how, capsys, monkeypatch):
    from takeback.surfaces.cli import main

    killed_in_its_refund(ws, hanging, **how)
    told = comes_next(ws)
    assert not ws.interrupted()
    (act,) = ws.effects()
    (undo,) = ws.history().undos.values()
    assert (act.shown_state, undo.shown_state) == ("unknown", "unknown")
    assert "sent" in undo.note and "no answer came" in undo.note
    assert not undo.note.startswith("nothing was sent")
    if comes_next is not by_going_back:
        assert "no answer came" in told
        way = "takeback revert" if how else "takeback resolve"
        assert f"{way} {act.id[:8]}" in told
    monkeypatch.chdir(ws.root)
    for verb in (["effects"], ["show", act.id]):
        main(verb)
        assert "no answer came" in capsys.readouterr().out
