"""The other side: a shadow git repository, apart from the work tree, each step a process of its own."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

_CONFIG = ("core.autocrlf=false", "gc.auto=0", "core.fsmonitor=false", "core.untrackedCache=false")


class ShadowGit:
    name = "git"

    def __init__(self, tree: Path, home: Path) -> None:
        self.tree = tree
        self.store = home / "shadow.git"
        self._old = ""
        self._environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "LC_ALL": "C",
        }
        home.mkdir(parents=True, exist_ok=True)
        self._git = ["git", f"--git-dir={self.store}", f"--work-tree={tree}"]
        for setting in _CONFIG:
            self._git += ["-c", setting]

    def first(self) -> float:
        started = time.perf_counter()
        self._run("init", "--quiet")
        self._old = self._write_tree()
        return time.perf_counter() - started

    def checkpoint(self) -> float:
        started = time.perf_counter()
        self._old = self._write_tree()
        return time.perf_counter() - started

    def rollback(self) -> float:
        """Stores the present, as takeback does, then goes back to the last checkpoint."""
        started = time.perf_counter()
        self._write_tree()
        self._run("read-tree", "-u", "--reset", self._old)
        return time.perf_counter() - started

    def close(self) -> None:
        pass

    def _write_tree(self) -> str:
        self._run("add", "-A")
        return self._run("write-tree")

    def _run(self, *args: str) -> str:
        done = subprocess.run(
            [*self._git, *args],
            cwd=self.tree,
            env=self._environ,
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
        return done.stdout.strip()


def version() -> str:
    return subprocess.run(["git", "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()[2]
