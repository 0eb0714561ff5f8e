"""Our side: the library, called in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parent.parent


class Library:
    name = "takeback"

    def __init__(self, tree: Path, home: Path) -> None:
        self.tree = tree
        self.store = home / "store"
        home.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.worker"],
            cwd=_CHECKOUT,
            env=environ(home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def first(self) -> float:
        return self._ask("first", tree=str(self.tree), store=str(self.store))

    def checkpoint(self) -> float:
        return self._ask("checkpoint")

    def rollback(self) -> float:
        return self._ask("rollback")

    def close(self) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _ask(self, verb: str, **what: str) -> float:
        self._process.stdin.write(json.dumps({"verb": verb, **what}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"takeback failed at {verb} (exit {self._process.wait()})")
        return float(answer)


def environ(home: Path) -> dict[str, str]:
    """Nothing of the user's own: no settings, no store."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_STATE_HOME": str(home / "state"),
        "TAKEBACK_HOME": str(home / "store"),
        "LC_ALL": "C.UTF-8",
    }
