"""Progress: what the line says, that it is only for a person at a terminal, and that it counts what really happens."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios

import pytest

from takeback.model.effects import Step
from takeback.surfaces.cli.progress import Progress
from takeback.surfaces.cli.terminal import Terminal

# The program, with a line drawn from the first count on and no pause between two.
EAGER = (
    sys.executable, "-c",
    "import sys\nfrom takeback.surfaces.cli import main, progress\n"
    "progress._PATIENCE = progress._OFTEN = -1.0; progress._KNOWN = 0.0\nsys.exit(main(sys.argv[1:]))",
)  # fmt: skip


def line(doing: str, total: int, unit: str, count: int, seconds: float) -> str:
    progress = Progress(Terminal({}), doing, total, unit)
    progress._next = float("inf")
    progress(0)
    progress(count)
    return progress.line(progress._began + seconds)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("captured", 100, "paths", 50, 0.5), "██████████░░░░░░░░░░ captured 50 of 100 paths"),
        (("captured", 100, "paths", 50, 2.0), "██████████░░░░░░░░░░ captured 50 of 100 paths · 25/s · 2s left"),
        (("captured", 0, "paths", 12345, 2.0), "captured 12,345 paths · 6,172/s"),
        (
            ("verified", 4_000_000, "bytes", 1_000_000, 2.0),
            "█████░░░░░░░░░░░░░░░ verified 1 MB of 4 MB · 500 KB/s · 6s left",
        ),
        (("captured", 10, "paths", 12, 5.0), "captured 12 paths · 2.4/s"),
        (("captured", 1, "paths", 1, 0.5), "████████████████████ captured 1 of 1 path"),
        (("verified", 0, "bytes", 8, 2.0), "verified 8 B · 4 B/s"),
        (("captured", 9000, "paths", 9, 3.0), "░░░░░░░░░░░░░░░░░░░░ captured 9 of 9,000 paths · 3.0/s · 49m57s left"),
    ],
)
def test_how_much_how_fast_and_how_long(given: tuple[str, int, str, int, float], said: str) -> None:
    assert line(*given) == said


def test_its_speed_is_measured_from_the_first_count_on() -> None:
    """What it waited for before, a lock or a slow disk, would make it look slow, and what it found at once fast."""
    progress = Progress(Terminal({}), "captured", 10_000, "paths")
    progress._next = float("inf")
    progress._began -= 60.0
    progress(5000)
    assert progress.line(progress._began + 2.0) == "██████████░░░░░░░░░░ captured 5,000 of 10,000 paths"
    progress(1000)
    assert progress.line(progress._began + 2.0).endswith(" captured 6,000 of 10,000 paths · 500/s · 8s left")


def test_a_second_process_counts_and_draws_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    progress = Progress(Terminal({}), "captured", 100, "paths")
    progress._next = float("inf")

    if (child := os.fork()) == 0:  # the shared count is what is tested
        progress._next = 0.0
        progress(30)
        progress.elsewhere(10)
        os._exit(0)
    os.waitpid(child, 0)
    progress(2)
    assert "captured 42 of 100" in progress.line(progress._began)
    assert capfd.readouterr().err == ""


def test_steps_of_a_take_back_are_counted_once_whatever_looks_in_between() -> None:
    progress = Progress(Terminal({}), "looking at", 4, "paths")
    progress._next = float("inf")
    progress._draw = lambda: None  # type: ignore[method-assign]
    progress(1000)
    assert progress.line(progress._began) == "looking at 1,000 paths"
    files = [Step("files", b"a", None, None, "exact", ()), Step("files", b"b", None, None, "exact", ())]
    sent = [Step("http", b"x", None, None, "compensating", ())]
    progress.told(files, None)
    progress(1)
    assert "taking back 1 of 4 steps" in progress.line(progress._began)
    progress(1)
    progress.told(files, [])
    progress.told(sent, None)
    progress(500)  # a look at what the request may have changed
    assert "taking back (http) 2 of 4 steps" in progress.line(progress._began)
    progress.told(sent, [])
    assert "3 of 4" in progress.line(progress._began)


def shown(cli, *words: str, **how) -> list[str]:
    out = cli.typing(*words, program=EAGER, **how).out
    return [part for part in re.split(r"\r(?:\x1b\[K)?|\n", out) if " of " in part or "paths" in part]


def test_a_first_checkpoint_knows_how_many_paths_there_are(bare) -> None:
    for n in range(40):
        (bare.project / f"d{n % 4}").mkdir(exist_ok=True)
        (bare.project / f"d{n % 4}" / f"f{n}").write_text(str(n))
    (bare.project / "node_modules").mkdir()
    (bare.project / "node_modules/not-counted").write_text("x")
    drawn = [part for part in shown(bare, "init") if part.startswith(("█", "░"))]
    assert drawn and all("captured" in part and "of 44 paths" in part for part in drawn)
    assert "44 of 44 paths" in drawn[-1] and "/s" in drawn[-1]


def test_restore_verify_and_prune_draw_and_wipe(changed) -> None:
    out = changed.typing("rollback", "--yes", program=EAGER, env={"NO_COLOR": "1"}).out
    assert "taking back 3 of 3 steps" in out
    drawn, _, rest = out.rpartition("\r\x1b[K")
    assert "taking back" in drawn and rest.startswith("Back to ")
    drawn = re.findall(r"(█*)(░*) verified", changed.typing("verify", "--data", program=EAGER).out)
    assert drawn and drawn == sorted(drawn) and len(drawn[-1][0]) >= 19
    changed.ok("checkpoint", "two")
    out = changed.typing("prune", "--keep", "1", "--yes", program=EAGER).out
    assert re.search(r"looked through [\d.]+ K?B of [\d.]+ KB", out)


@pytest.mark.parametrize(
    ("words", "env"), [(["--quiet"], {}), (["--json"], {}), ([], {"TERM": "dumb"})], ids=["quiet", "json", "dumb"]
)
def test_not_where_nobody_wants_it(changed, words: list[str], env: dict[str, str]) -> None:
    out = changed.typing("rollback", "--yes", *words, program=EAGER, env=env).out
    assert "taking back" not in out and "\r\x1b[K" not in out


def test_nothing_under_pipes_and_no_colour_in_it(changed) -> None:
    done = subprocess.run([*EAGER, "verify", "--data"], cwd=changed.project, capture_output=True, text=True)
    assert done.stderr == "" and "verified" not in done.stdout
    out = changed.typing("verify", "--data", program=EAGER, env={"NO_COLOR": "1"}).out
    assert "verified" in out and not re.search(r"\x1b\[\d+m", out)


def stopped(how: str) -> tuple[str, ...]:
    """The program, stopped just after the third time it has drawn."""
    return (
        sys.executable, "-c",
        "import os, signal, sys\nfrom takeback.errors import Damaged\n"
        "from takeback.surfaces.cli import main, progress\n"
        "progress._PATIENCE = progress._OFTEN = -1.0\ndraw, times = progress.Progress._draw, []\n"
        "def stop(self):\n    draw(self)\n    times.append(1)\n    if len(times) == 3:\n"
        f"        {how}\n"
        "progress.Progress._draw = stop\nsys.exit(main(sys.argv[1:]))",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGINT)", 130, "takeback: interrupted"),
        ("raise Damaged('it broke', 'mend it')", 1, "takeback: it broke"),
        ("raise ZeroDivisionError", 70, "takeback: "),
    ],
    ids=["ctrl-c", "error", "bug"],
)
def test_it_is_wiped_whatever_ends_it(changed, how: str, code: int, said: str) -> None:
    for n in range(8):
        (changed.project / f"d{n}").mkdir()
        (changed.project / f"d{n}" / "f").write_text("x")
    ran = changed.typing("checkpoint", program=stopped(how), env={"NO_COLOR": "1"})
    drawn, _, rest = ran.out.rpartition("\r\x1b[K")
    assert "captured" in drawn and rest.startswith(said) and "captured" not in rest
    assert ran.code == code


def test_what_is_said_meanwhile_stands_on_a_line_of_its_own(cli) -> None:
    (cli.project / "README.md").write_text("changed\n")
    cli.ok("checkpoint")
    out = cli.typing("undo", "5", "--yes", program=EAGER, env={"NO_COLOR": "1"}).out
    assert "taking back 1 of 1 step" in out
    assert "\r\x1b[Kthere is only 1 turn to undo\n" in out


def test_the_line_fits_where_it_is_drawn(changed) -> None:
    """Standard error is the narrow terminal; output goes elsewhere. A line that wraps could not be wiped."""
    mine, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": "xterm"}
    words = [*EAGER, "verify", "--data"]
    subprocess.run(words, cwd=changed.project, env=env, stdout=subprocess.DEVNULL, stderr=theirs, check=True)
    shown = os.read(mine, 65536).decode()
    os.close(theirs)
    os.close(mine)
    drawn = [part for part in shown.split("\r\x1b[K") if part]
    assert drawn and all(len(part) <= 29 for part in drawn) and drawn[-1].endswith("…")


def test_paths_are_counted_only_where_somebody_sees_it(bare) -> None:
    """It is a walk over the whole tree."""
    program = (
        sys.executable, "-c",
        "import sys\nfrom takeback.surfaces.cli import main\nfrom takeback.workspace import Workspace\n"
        "Workspace.count_paths = lambda self: sys.exit('walked over')\nsys.exit(main(sys.argv[1:]))",
    )  # fmt: skip
    for name, env, words in (("a", {}, ["--quiet"]), ("b", {"TERM": "dumb"}, []), ("c", {}, [])):
        (bare.project / name).mkdir()
        out = bare.typing("-C", name, "init", *words, program=program, env=env).out
        assert ("walked over" in out) == (name == "c"), out
