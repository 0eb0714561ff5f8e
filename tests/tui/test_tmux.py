"""Through a real terminal: tmux, real keys, what it really shows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("textual", reason="the extra takeback[ui] is not installed")

from scene import fifty_turns

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")


class Tmux:
    """A session of its own, on a server of its own."""

    def __init__(self, folder: Path, project: Path, size: tuple[int, int], environ: dict[str, str]) -> None:
        self.socket = str(folder / "tmux")
        command = f"{sys.executable} -m takeback ui; echo left with $?; exec sleep 1000"
        outer = {
            name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")
        }  # of pytest's own
        subprocess.run(
            ["tmux", "-S", self.socket, "-f", "/dev/null", "new-session", "-d", "-s", "t",
             "-x", str(size[0]), "-y", str(size[1]), "-c", str(project), command],
            check=True, env={**outer, **environ},
        )  # fmt: skip

    def run(self, *words: str) -> str:
        return subprocess.run(
            ["tmux", "-S", self.socket, *words], check=True, capture_output=True, text=True, timeout=30
        ).stdout

    def keys(self, *keys: str) -> None:
        self.run("send-keys", "-t", "t", *keys)

    def write(self, text: str) -> None:
        self.run("send-keys", "-t", "t", "-l", text)

    def shown(self, *flags: str) -> str:
        return self.run("capture-pane", "-p", "-t", "t", *flags)

    def see(self, *texts: str, without: str = "") -> str:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            shown = self.shown()
            if all(text in shown for text in texts) and not (without and without in shown):
                return shown
            time.sleep(0.1)
        raise AssertionError(f"never saw {texts}:\n{self.shown()}")


@pytest.fixture
def tmux(tmp_path, project):
    made = []

    def opened(size=(80, 24), **environ: str) -> Tmux:
        made.append(Tmux(tmp_path, project, size, environ))
        return made[0]

    yield opened
    for each in made:
        each.run("kill-server")


def test_the_bad_turn_is_found_and_taken_back(ws, project, tmux):
    fifty_turns(ws)
    terminal = tmux()
    terminal.see("add page 49", "x Take back", "/ Filter")
    terminal.write("/licence")
    terminal.see("make the failing licence test", without="add page")
    terminal.keys("Enter")
    terminal.keys("x")
    terminal.see("Take back claude", "2 exact", "y Apply")
    terminal.keys("y")
    terminal.see("took back claude's turn", "✓ files")
    terminal.keys("Enter")
    terminal.see("↩")
    terminal.run("resize-window", "-t", "t", "-x", "130", "-y", "40")
    terminal.see("│", "taken back by")
    terminal.keys("q")
    terminal.see("left with 0")
    assert "KEYS" in (project / "licence.py").read_text()


def test_no_colour_when_asked(ws, project, tmux):
    fifty_turns(ws)
    terminal = tmux(NO_COLOR="1")
    terminal.see("add page 49", "+# Page 49")
    coloured = [code for code in terminal.shown("-e").split("\x1b[")[1:] if code.split("m")[0].startswith(("3", "4"))]
    assert not [code for code in coloured if code.split("m")[0] not in ("39", "49", "39;49")]


def test_keys_that_arrive_together_mean_what_they_mean_one_by_one(ws, project, tmux):
    fifty_turns(ws)
    terminal = tmux()
    terminal.see("add page 49", "x Take back")
    terminal.keys("Down", "Enter", "Down", "x")
    terminal.see("Take back claude “add page 48", "y Apply", "▾ ◆ claude “add page 48", "▸ ◆ claude “add page 47")


def test_whoever_leaves_while_a_plan_waits_is_not_kept(ws, project, tmux):
    fifty_turns(ws)
    terminal = tmux(TAKEBACK_LOCK_TIMEOUT="3600")
    terminal.see("add page 49", "x Take back")
    with ws.store.write.hold(5):
        terminal.keys("u")
        terminal.see("Waiting for another process")
        terminal.keys("q")
        terminal.see("x Take back", without="Waiting for")
        terminal.keys("q")
        terminal.see("left with 0")
    assert (project / "docs/page49.md").exists(), "nothing was taken back"
