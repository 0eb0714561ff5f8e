"""Starting the sweeps from tests: each in a process of its own, on a file system in memory where there is one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


@contextmanager
def quick_folder() -> Iterator[Path]:
    """Where syncing costs nothing: for tests in which durability is not the point."""
    memory = Path("/dev/shm")
    base = tempfile.mkdtemp(prefix="takeback-", dir=memory if os.access(memory, os.W_OK) else None)
    try:
        yield Path(base)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def python(script: str, *args: object, before: tuple[str, ...] = (), timeout: float = 300) -> Any:
    """The JSON a script of this folder prints."""
    done = subprocess.run(
        [*before, sys.executable, HERE / script, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def holds(report: dict[str, Any]) -> None:
    failures = report["failures"]
    assert not failures, f"{len(failures)} did not hold; the first:\n" + "\n".join(f[:1500] for f in failures[:3])
