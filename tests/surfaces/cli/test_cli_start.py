"""How the program starts, what it prints about itself, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import takeback
from takeback.surfaces.cli import split_verb
from takeback.surfaces.cli.verb_list import VERBS, overview

pytestmark = pytest.mark.started

# Libraries that only some verbs need: each is loaded inside its own.
HEAVY = ("cryptography", "httpx", "langgraph", "mcp", "pydantic", "starlette", "textual", "tree_sitter", "uvicorn")


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["checkpoint"], ["status"]], ids=" ".join)
def test_nothing_heavy_is_imported_for(changed, words: list[str]) -> None:
    code = f"import sys\nfrom takeback.surfaces.cli import main\nmain({words!r})\nprint(*sys.modules, file=sys.stderr)"
    program = [sys.executable, "-S", "-c", code]
    done = subprocess.run(program, cwd=changed.project, capture_output=True, text=True, env=_with_path())
    assert done.returncode == 0, done.stderr
    loaded = {*done.stderr.splitlines()[-1].split()}
    assert "takeback.surfaces.cli" in loaded
    assert not {*HEAVY} & loaded


def _with_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


def test_version(bare) -> None:
    assert bare("--version") == (0, f"takeback {takeback.__version__}\n", "")


def test_help_fits_one_screen(bare) -> None:
    ran = bare("--help")
    lines = ran.out.splitlines()
    assert ran.code == 0
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    for group in ("start", "see", "take back", "more"):
        assert group in lines
    assert overview() + "\n" == ran.out


def test_help_names_what_one_needs_first_by_group(bare) -> None:
    groups: dict[str, list[str]] = {}
    for line in bare("--help").out.splitlines():
        if line in ("start", "see", "take back", "more"):
            verbs = groups.setdefault(line, [])
        elif line.startswith("  ") and groups:
            verbs.append(line.split()[0])
    assert groups == {
        "start": ["init", "protect", "watch", "run", "checkpoint"],
        "see": ["status", "diff", "log", "ui"],
        "take back": ["undo", "redo", "rollback", "revert", "restore"],
        "more": ["help", "effects"],
    }


def test_help_before_or_after_a_verb(bare) -> None:
    assert bare("--help", "undo").out == bare("undo", "--help").out == bare("help", "undo").out
    assert "usage: takeback undo [N|TURN]" in bare("undo", "-h").out


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples(bare, verb: str) -> None:
    ran = bare.ok("help", verb)
    assert ran.out.startswith(f"usage: takeback {verb}")
    assert "examples\n" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100


def test_help_all_names_every_verb_and_exit_code(bare) -> None:
    out = bare.ok("help", "--all").out
    for verb in VERBS:
        assert f"\n  {verb} " in out
    for code in ("0", "1", "2", "3", "4", "10", "11", "70", "130"):
        assert f"\n  {code} " in out


@pytest.mark.parametrize(
    ("words", "verb", "rest"),
    [
        (["-C", "dir", "--json", "log", "-n", "3"], "log", ["-C", "dir", "--json", "-n", "3"]),
        (["log", "-C", "dir"], "log", ["-C", "dir"]),
        (["-qy", "undo"], "undo", ["-qy"]),
        ([], "status", ["--bare"]),
        (["--json"], "status", ["--bare", "--json"]),
        (["--help"], "--help", []),
        (["-C", "dir", "--version"], "--version", []),
    ],
)
def test_the_verb_is_found(words: list[str], verb: str, rest: list[str]) -> None:
    assert split_verb(words) == (verb, rest)


def test_options_stand_before_or_after_the_verb(cli) -> None:
    elsewhere = cli.project.parent
    before = cli("-C", "project", "--json", "status", cwd=elsewhere)
    after = cli("status", "-C", "project", "--json", cwd=elsewhere)
    assert before.code == after.code == 0
    assert before.json["checkpoint"] == after.json["checkpoint"]


def test_bare_prints_the_status_and_the_next_command(changed) -> None:
    ran = changed.ok()
    assert ran.out.splitlines()[0].endswith("· 3 changes")
    assert ran.err.startswith("next: takeback diff to look, takeback rollback to take it back")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rolback"], "there is no verb 'rolback'; did you mean rollback?"),
        (["status", "--bogus"], "unrecognized arguments: --bogus"),
        (["show"], "the following arguments are required: ID"),
        (["help", "nothing"], "there is no verb 'nothing'"),
    ],
)
def test_usage_errors(cli, words: list[str], message: str) -> None:
    ran = cli(*words)
    assert ran.code == 2
    assert ran.err.splitlines()[0].startswith(f"takeback: {message}")
    assert ran.err.splitlines()[1].startswith("  → ")
    assert ran.out == ""


def test_an_error_is_also_json(bare) -> None:
    ran = bare("status", "--json")
    assert ran.code == 10
    assert ran.json["error"]["code"] == 10
    assert ran.json["error"]["hint"] == "protect this folder with takeback init"
    assert ran.err.startswith("takeback: nothing is protected")


def test_a_bug_is_reported_and_never_a_bare_traceback(cli, tmp_path) -> None:
    code = (
        "import sys\nfrom takeback.surfaces.cli import main\nfrom takeback.surfaces.cli.verbs.see import status\n"
        "def broken(context, args): raise RuntimeError('boom \\x1b[31m')\n"
        "status.run = broken\nsys.exit(main(['status', '--json']))"
    )
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=cli.project)
    assert done.returncode == 70
    assert "takeback: a bug in takeback status: RuntimeError: boom \\x1b[31m" in done.stderr
    assert "Traceback" not in done.stderr
    assert '"code": 70' in done.stdout
    (report,) = tmp_path.glob("takeback-report-*.txt")
    assert "Traceback" in report.read_text()
    assert takeback.__version__ in report.read_text()


def test_a_reader_that_leaves_early_is_no_error(cli) -> None:
    for n in range(300):
        (cli.project / f"file-{n:04}").write_text("x" * 1000)
    done = subprocess.run(
        f"{sys.executable} -m takeback diff | head -n 1",
        shell=True,
        cwd=cli.project,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert '"start" → now' in done.stdout
    quiet = f"set -o pipefail; {sys.executable} -m takeback diff | head -n 1"
    done = subprocess.run(["bash", "-c", quiet], cwd=cli.project, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (141, "")


def test_interrupted_by_the_keyboard_is_130(cli) -> None:
    code = (
        "import sys\nfrom takeback.surfaces.cli import main\nfrom takeback.surfaces.cli.verbs.see import status\n"
        "def stopped(context, args): raise KeyboardInterrupt\n"
        "status.run = stopped\nsys.exit(main(['status']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=cli.project)
    assert (done.returncode, done.stderr) == (130, "takeback: interrupted\n")
