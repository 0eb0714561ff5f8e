"""Progress: what the line says, that it is only for a person at a terminal, and that it counts what really happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from takeback.effects import Step
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
        (("captured", 10, "paths", 12, 5.0), "████████████████████ captured 12 of 10 paths · 2.4/s"),
        (("captured", 9000, "paths", 9, 3.0), "░░░░░░░░░░░░░░░░░░░░ captured 9 of 9,000 paths · 3.0/s · 49m57s left"),
    ],
)
def test_how_much_how_fast_and_how_long(given: tuple[str, int, str, int, float], said: str) -> None:
    assert line(*given) == said


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
