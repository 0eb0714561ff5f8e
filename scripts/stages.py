"""The stages of scripts/test and scripts/check, one after another; the first that fails ends the run.

stages.py [--all] [STAGE…]     --all: every point of the sweeps, many examples of each property
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
PYTHON = [sys.executable, "-m"]
WORKERS = str((os.cpu_count() or 1) + 1)  # a test often waits, for a process or a moment
_PORTABLE = (
    "capture/test_watching",
    "crash/test_killed_holders",
    *(
        f"test_{name}"
        for name in (
            "api", "calls", "files", "hard_links", "index_file", "journal", "locks", "odd_files", "races", "safefs",
            "scan", "scenarios", "takebacks", "verify", "walkback_defects", "workspace_model",
        )
    ),
)  # fmt: skip
_FORKED = (
    "capture/test_run",
    *(
        f"test_{name}"
        for name in (
            "workspace_model", "hard_links", "scan", "takebacks", "files", "odd_files", "scenarios", "walkback_defects",
        )
    ),
)  # fmt: skip
_ROOM = 4 << 30
_REAL_AGENTS = "tests/agents/end_to_end"
_WEB = "tests/web"
_SKIP = re.compile(r"^SKIPPED \[\d+\] (\S+?:\d+|\S+): (.*)$")
_ALL = "--all"
_NO_REASON = ("", "unconditional skip", "skipped", "todo", "fixme")


class Failed(Exception):
    """A stage did not pass; what it printed says why."""


def lint() -> None:
    run([*PYTHON, "ruff", "check", "--output-format=concise", "."])


def format_() -> None:
    run([*PYTHON, "ruff", "format", "--check", "."])


def types() -> None:
    run([*PYTHON, "mypy"])


def tests() -> None:
    ignored = f"--ignore={_REAL_AGENTS}", f"--ignore={_WEB}"
    every = ["-n", WORKERS, "--dist", "worksteal", "-o", "tmp_path_retention_policy=failed", "-rfEs"]
    run([*PYTHON, "compileall", "-q", "src"])  # once, not by each of the thousands of processes that tests start
    run([*PYTHON, "pytest", *every, *ignored], **in_memory())


def in_memory() -> dict[str, str]:
    """Lets pytest make its folders in memory, where there is room: nothing is synced to a disk there. The stages
    `portable` and `forked` stay on the disk."""
    memory = Path("/dev/shm")
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= _ROOM
    return {"PYTEST_DEBUG_TEMPROOT": str(memory)} if roomy else {}


def agents() -> None:
    """The real agents against a scripted model. Where npm can install them, the first two must run; the others run
    where somebody has installed them."""
    always = ("claude", "codex") if shutil.which("npm") else ()
    if always:
        run(["scripts/agents", *always])
    run([*PYTHON, "pytest", "-n", WORKERS, "-rfEs", _REAL_AGENTS], TAKEBACK_TEST_AGENTS=" ".join(always))


def web() -> None:
    """The page of `takeback web` in a real Chromium, which is installed where we may; there its tests must run."""
    if shutil.which("chromium") is None and _may_install():
        patience = "-o Acquire::http::Timeout=20 -o Acquire::Retries=1"  # where there is no mirror, that is soon known
        apt = f"apt-get -q -y {patience} --no-install-recommends install chromium"
        try:
            quiet(["timeout", "900", "sh", "-c", f"{apt} || (apt-get -q {patience} update && {apt})"])
        except Failed as error:
            print(f"Chromium cannot be installed here, so its tests are skipped: {error}", flush=True)
    required = shutil.which("chromium") is not None
    run([*PYTHON, "pytest", "-n", WORKERS, "-rfEs", _WEB], TAKEBACK_TEST_BROWSER="required" * required)


def _may_install() -> bool:
    return hasattr(os, "getuid") and os.getuid() == 0 and shutil.which("apt-get") is not None


def portable() -> None:
    """What touches files, again on what every system has: no openat2, reflink or flock. It is killed there, too, at
    every call of a rollback."""
    every = ["pytest", "-n", WORKERS, "-rfEs"]
    run([*PYTHON, *every, *(f"tests/{name}.py" for name in _PORTABLE)], TAKEBACK_PORTABLE="1")
    run([*PYTHON, *every, "tests/crash/test_kill_sweep.py", "-k", "rollback"], TAKEBACK_PORTABLE="1")


def forked() -> None:
    """What reads and writes trees, again with a second process for the smallest of them. In processes of ours: xdist's
    workers have threads, and nobody forks there."""
    every = [*PYTHON, "pytest", "-p", "tests.forking", "-rfEs"]
    files = [f"tests/{name}.py" for name in _FORKED]
    together([*every, *files[::2]], [*every, *files[1::2]])  # about as long, both


def docs() -> None:
    if found := doc_tests():
        run([*PYTHON, "pytest", *found])


def wheel() -> None:
    """Builds the wheel, installs it where nothing else is, and makes a round trip with its command."""
    with tempfile.TemporaryDirectory(prefix="takeback-wheel-") as folder:
        out = Path(folder, "dist")
        quiet([*PYTHON, "build", "--wheel", "--no-isolation", "--outdir", str(out)])
        (built,) = out.glob("*.whl")
        quiet([*PYTHON, "venv", f"{folder}/venv"])
        scripts = Path(folder, "venv", "Scripts" if os.name == "nt" else "bin")
        quiet(
            [
                str(scripts / "python"),
                "-m",
                "pip",
                "install",
                "--disable-pip-version-check",
                "--quiet",
                str(built),
            ]
        )
        print(f"  {built.name} installed")
        if not Path(folder, "venv", "share", "man", "man1", "takeback.1").is_file():
            raise SystemExit("the manual page is not installed")
        run([sys.executable, str(CHECKOUT / "scripts" / "round_trip.py"), str(scripts / "takeback"), folder])


STAGES: dict[str, Callable[[], None]] = {
    "lint": lint,
    "format": format_,
    "types": types,
    "tests": tests,
    "agents": agents,
    "web": web,
    "portable": portable,
    "forked": forked,
    "docs": docs,
    "wheel": wheel,
}
_UNASKED = [name for name in STAGES if name != "docs"]  # `tests` has them too
_skips: list[tuple[str, str, str]] = []  # stage, place, reason
_stage = ""
_whole = False  # nothing is sampled


def main(words: list[str]) -> int:
    global _stage, _whole
    _whole, names = _ALL in words, [word for word in words if word != _ALL]
    if unknown := [name for name in names if name not in STAGES]:
        print(f"no such stage: {', '.join(unknown)}; there are {', '.join(STAGES)}", file=sys.stderr)
        return 2
    took: list[tuple[str, float]] = []
    for _stage in names or _UNASKED:
        print(f"\n── {_stage} ".ljust(72, "─"), flush=True)
        started = time.monotonic()
        try:
            STAGES[_stage]()
        except Failed as failure:
            print(f"\n{_stage} failed after {time.monotonic() - started:.1f} s: {failure}", file=sys.stderr)
            print(f"again, alone: scripts/test {f'{_ALL} ' * _whole}{_stage}", file=sys.stderr)
            return 1
        took.append((_stage, time.monotonic() - started))
    print("\n── took ".ljust(73, "─"))
    for name, seconds in took:
        print(f"  {name:<10}{seconds:>7.1f} s")
    return _tell_skips()


def _tell_skips() -> int:
    if not _skips:
        print("nothing was skipped")
        return 0
    print("skipped:")
    places: dict[tuple[str, str], list[str]] = {}
    for stage, place, reason in sorted(set(_skips)):
        places.setdefault((stage, reason), []).append(place)
    for (stage, reason), found in places.items():
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        print(f"  {stage:<10}{found[0]}{more}  {reason or '(no reason given)'}")
    unexplained = [place for _, place, reason in _skips if reason.strip().lower() in _NO_REASON]
    if unexplained:
        print(f"a skip needs a reason: {', '.join(sorted(set(unexplained)))}", file=sys.stderr)
        return 1
    return 0


def doc_tests() -> list[str]:
    return sorted(str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "tests").rglob("test_*docs*.py"))


def run(argv: list[str], **environ: str) -> None:
    """Shows what a command prints, and keeps an eye on skipped tests."""
    with subprocess.Popen(
        argv, cwd=CHECKOUT, env=clean_environ() | environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        for raw in process.stdout:
            line = raw.decode(errors="replace")
            print(line, end="", flush=True)
            if found := _SKIP.match(line):
                _skips.append((_stage, found[1], found[2].removeprefix("Skipped: ")))
    if process.returncode:
        raise Failed(f"exit {process.returncode} of {_shown(argv)}")


def together(*commands: list[str]) -> None:
    """Several at once; what they print comes line by line as it is said."""
    with ThreadPoolExecutor(len(commands)) as pool:
        for done in [pool.submit(run, argv) for argv in commands]:
            done.result()


def quiet(argv: list[str]) -> None:
    """Shows what a command prints only if it fails."""
    done = subprocess.run(argv, cwd=CHECKOUT, env=clean_environ(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        print(done.stdout.decode(errors="replace"))
        raise Failed(f"exit {done.returncode} of {_shown(argv)}")


def clean_environ() -> dict[str, str]:
    """Without the user's own takeback settings, and without an outer environment of Python."""
    mine = ("TAKEBACK", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(mine)}
    return kept | ({"TAKEBACK_WHOLE_SWEEP": "1"} if _whole else {})


def _shown(argv: list[str]) -> str:
    return " ".join(Path(word).name if word == sys.executable else word for word in argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
