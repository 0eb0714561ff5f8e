"""One round trip with an installed `takeback` command: round_trip.py COMMAND FOLDER."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path


def main(command: str, folder: str) -> int:
    project, home = Path(folder, "project"), Path(folder, "home")
    home.mkdir()
    _write(project)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "TAKEBACK_HOME": str(home / "store")}
    environ |= {name: os.environ[name] for name in ("SYSTEMROOT", "TEMP", "TMP") if name in os.environ}

    def takeback(*words: str) -> str:
        done = subprocess.run([command, *words], cwd=project, env=environ, capture_output=True, text=True)
        print(f"  takeback {' '.join(words)}: exit {done.returncode}")
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        return done.stdout

    takeback("init")
    before = _state(project)
    _change(project)
    changed = _state(project)
    seen = {change["path"] for change in json.loads(takeback("status", "--json"))["changes"]}
    if not {"a.txt", "sub/b.bin", "new.txt"} <= seen:
        raise SystemExit(f"status did not see every change: {sorted(seen)}")
    takeback("rollback", "--yes")
    _must_equal("rollback", _state(project), before)
    takeback("redo", "--yes")
    _must_equal("redo", _state(project), changed)
    takeback("verify", "--data")
    return 0


def _write(project: Path) -> None:
    (project / "sub").mkdir(parents=True)
    (project / "empty").mkdir()
    (project / "a.txt").write_text("one\ntwo\n")
    (project / "sub" / "b.bin").write_bytes(bytes(range(256)) * 40)
    (project / "sub" / "run.sh").write_text("#!/bin/sh\n")
    (project / "sub" / "run.sh").chmod(0o755)


def _change(project: Path) -> None:
    (project / "a.txt").write_text("one\nthree\n")
    (project / "sub" / "b.bin").unlink()
    (project / "sub" / "run.sh").chmod(0o644)
    (project / "empty").rmdir()
    (project / "new.txt").write_text("new\n")


def _state(project: Path) -> dict[str, tuple[int, int, str]]:
    """Each path with its mode, its time and the hash of its bytes."""
    found = {}
    for path in sorted(project.rglob("*")):
        st = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(project))] = (st.st_mode, st.st_mtime_ns, content)
    return found


def _must_equal(verb: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise SystemExit(f"{verb} did not bring the tree back:\n{found}\n{wanted}")
    print(f"  {verb}: every byte, mode and time is as it was")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
