"""The whole command, interpreter start-up included, as a person or a hook runs it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .library import Library, environ

STARTUP = "start-up"


def found() -> list[str]:
    """How to run the command: its script beside this interpreter. Empty while there is none that works."""
    script = Path(sys.executable).with_name("takeback")
    argv = [str(script)] if script.exists() else [sys.executable, "-m", "takeback"]
    with tempfile.TemporaryDirectory() as home:
        env = {**environ(Path(home)), "TMPDIR": home}
        done = subprocess.run([*argv, "checkpoint", "--help"], env=env, capture_output=True)
    return [] if done.returncode else argv


def checkpoint(argv: list[str], ours: Library) -> float:
    run = [*argv, "-C", str(ours.tree), "checkpoint", "bench"]
    started = time.perf_counter()
    done = subprocess.run(run, env=environ(ours.store.parent), capture_output=True, text=True)
    took = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"takeback checkpoint failed: {done.stderr}")
    return took


def startup(argv: list[str], rounds: int) -> dict[str, list[float]]:
    """A bare interpreter against `takeback --version`, in turn."""
    times: dict[str, list[float]] = {"python": [], "takeback": []}
    with tempfile.TemporaryDirectory() as home:
        for _ in range(rounds):
            for name, run in (("python", [sys.executable, "-c", "pass"]), ("takeback", [*argv, "--version"])):
                started = time.perf_counter()
                subprocess.run(run, env=environ(Path(home)), check=True, stdout=subprocess.DEVNULL)
                times[name].append(time.perf_counter() - started)
    return times
