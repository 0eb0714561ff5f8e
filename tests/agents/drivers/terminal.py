"""An agent in a terminal, as a person has it: tmux shows its screen and passes on keys."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_LONGEST = 90  # seconds until something is on the screen
_SIZE = ("-x", "140", "-y", "50")


def has_tmux() -> bool:
    return shutil.which("tmux") is not None


class Terminal:
    """A session of its own, on a server of its own, whose socket lies in a folder with a short name."""

    def __init__(self, folder: Path, argv: Sequence[str], environ: Mapping[str, str], cwd: Path) -> None:
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        given = {**environ, "TERM": "xterm-256color"}
        words = ["env", "-i", *(f"{name}={value}" for name, value in given.items()), *argv]
        outer = {name: os.environ[name] for name in ("HOME", "PATH", "LANG") if name in os.environ}
        session = [*self._tmux, "new-session", "-d", *_SIZE, "-c", str(cwd), "--", *words]
        subprocess.run(session, check=True, env={"LANG": "C.UTF-8", **outer}, timeout=_LONGEST)

    def shown(self) -> str:
        return self._run("capture-pane", "-p")

    def see(self, *words: str) -> str:
        """The screen, once one of these can be read on it."""
        shown = ""

        def is_there() -> bool:
            nonlocal shown
            shown = self.shown()
            return any(each in shown for each in words)

        self.wait(is_there, f"any of {words} on the screen")
        return shown

    def wait(self, what: Callable[[], bool], why: str) -> None:
        until = time.monotonic() + _LONGEST
        while not what():
            assert time.monotonic() < until, f"it never came: {why}\n{self.shown()}"
            time.sleep(0.05)

    def press(self, *keys: str) -> None:
        for key in keys:
            self._run("send-keys", key)
            time.sleep(0.15)  # some take two keys at once for one

    def say(self, text: str) -> None:
        """Types a prompt, again where it was not listening yet. Enter counts once the prompt is on the screen; what
        comes with it would be pasted."""
        until = time.monotonic() + _LONGEST
        while text not in self.shown():
            assert time.monotonic() < until, f"it does not listen:\n{self.shown()}"
            self._run("send-keys", "-l", text)
            time.sleep(1)
        self._run("send-keys", "Enter")

    def number_of(self, answer: str) -> str:
        """The number before an answer that can be chosen."""
        found = re.findall(rf"(\d)\. {answer}", self.shown())
        assert found, self.shown()
        return str(found[-1])

    def close(self) -> None:
        """As when a person closes the window: what runs in it is hung up."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, timeout=_LONGEST)

    def _run(self, *words: str) -> str:
        done = subprocess.run([*self._tmux, *words], capture_output=True, text=True, timeout=_LONGEST)
        assert done.returncode == 0, done.stderr
        return done.stdout
