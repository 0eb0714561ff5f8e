"""On a real terminal: questions, defaults, colours, the pager and progress."""

from __future__ import annotations

import subprocess
import sys

import pytest

ASK = "Apply? [y/N/d diff]"


def test_yes_applies_and_names_the_way_back(changed, contents) -> None:
    ran = changed.typing("rollback", answers=[(ASK, "y\n")])
    assert ran.code == 0
    assert "took back 3 files: src/auth.py, src/legacy.py, src/new.py" in ran.out
    assert "take this back: takeback redo" in ran.out
    assert contents()["src/legacy.py"] == b"old\n"


@pytest.mark.parametrize("answer", ["\n", "n\n", "what\n", "\x04"])
@pytest.mark.parametrize("words", [["rollback"], ["undo"], ["revert", "src"], ["restore", "start", "src"]])
def test_anything_but_a_yes_is_a_no(changed, contents, words, answer) -> None:
    before = contents()
    ran = changed.typing(*words, answers=[(ASK, answer)])
    assert ran.code == 4
    assert "nothing was changed" in ran.out
    assert contents() == before


def test_d_pages_the_diff_and_asks_again(changed, contents) -> None:
    ran = changed.typing("rollback", answers=[(ASK, "d\n"), (ASK, "n\n")])
    shown = ran.out.partition(ASK)[2]
    assert "-2" in shown and "+two" in shown
    assert ran.code == 4


def test_m_merges_where_it_is_clean(drifted, contents) -> None:
    asks = "Apply? [t take people's work too/k keep it/N/d diff/m merge]"
    merging = "Apply? [t take people's work too/k keep it/N/d diff]"
    ran = drifted.typing("rollback", "base", answers=[(asks, "m\n"), (merging, "d\n"), (merging, "k\n")])
    assert ran.code == 0
    assert "merged" in ran.out
    assert contents()["notes.md"] == b"a\nb\nc\nd\nE\n"


@pytest.fixture
def beside(drifted):
    """The same, and a person made one file by hand and another by a command."""
    (drifted.project / "mine.txt").write_text("mine\n")
    drifted.ok("checkpoint", "mine")
    drifted.ok("run", "--", "touch", "by-run.txt")
    return drifted


PEOPLES = "Apply? [t take people's work too/k keep it/N/d diff/m merge]"


def test_rollback_asks_once_about_peoples_work_and_one_key_takes_it(beside, contents) -> None:
    ran = beside.typing("rollback", "base", answers=[(PEOPLES, "t\n")])
    assert ran.code == 0
    apart = ran.out.partition("asked about, people's work since then:")[2].partition("Apply?")[0]
    assert "by-run.txt" in apart and "· run" in apart
    assert "mine.txt" in apart and "· a person" in apart
    assert "back at" in ran.out
    assert contents() == {"README.md": b"hello\n", "notes.md": b"a\nb\nc\nd\ne\n", "src/auth.py": b"one\ntwo\nthree\n",
                          "src/legacy.py": b"old\n"}  # fmt: skip
    beside.ok("redo", "--yes")
    assert contents()["mine.txt"] == b"mine\n" and contents()["by-run.txt"] == b""


def test_the_other_key_keeps_it_and_names_it(beside, contents) -> None:
    ran = beside.typing("rollback", "base", answers=[(PEOPLES, "y\n"), (PEOPLES, "k\n")])
    assert "t takes people's work too, k keeps it, N changes nothing" in ran.out, "a yes to what was asked twofold"
    assert "kept people's work: by-run.txt, mine.txt; the tree is not wholly at" in ran.out
    assert "--all" in ran.out.partition("take people's work too: takeback rollback ")[2].splitlines()[0]
    assert "made.py" not in contents()
    assert contents()["mine.txt"] == b"mine\n" and contents()["notes.md"] == b"A\nb\nc\nd\nE\n"


@pytest.mark.parametrize("answer", ["\n", "n\n", "\x04"])
def test_neither_key_changes_nothing(beside, contents, answer) -> None:
    before = contents()
    assert beside.typing("rollback", "base", answers=[(PEOPLES, answer)]).code == 4
    assert contents() == before


def test_what_is_asked_about_is_asked_for_also_where_nothing_else_is_left(beside, contents) -> None:
    beside.ok("undo", "--actor", "claude", "--merge", "--yes")
    question = "Apply? [t take people's work too/k keep it/N/d diff]"
    ran = beside.typing("rollback", "base", answers=[(question, "t\n")])
    assert ran.code == 0
    assert set(contents()) == {"README.md", "notes.md", "src/auth.py", "src/legacy.py"}


def test_where_no_agent_was_at_work_nothing_is_asked_twofold(cli, contents) -> None:
    """What a person types is a person's: a run makes nothing else of theirs others' work."""
    before = contents()
    (cli.project / "mine.txt").write_text("mine\n")
    cli.ok("run", "--", "touch", "by-run.txt")
    (cli.project / "later.txt").write_text("mine\n")
    ran = cli.typing("rollback", "start", answers=[(ASK, "y\n")])
    assert ran.code == 0 and "back at" in ran.out
    assert contents() == before


def test_a_plan_that_is_stale_by_the_time_of_the_yes_is_refused(changed, contents) -> None:
    script = f"import time; open({str(changed.project / 'src/auth.py')!r}, 'w').write('late')"
    pager = f'python3 -c "{script}"'
    for n in range(60):
        (changed.project / f"extra{n}").write_text("x\n")
    ran = changed.typing("rollback", answers=[(ASK, "d\n"), (ASK, "y\n")], env={"PAGER": pager, "LINES": "10"})
    assert ran.code == 4
    assert "the plan is stale" in ran.out
    assert "src/auth.py: exact" in ran.out
    assert contents()["src/auth.py"] == b"late"


def test_rollback_offers_the_checkpoints_and_enter_takes_the_newest_named(drifted) -> None:
    ran = drifted.typing("rollback", answers=[("Number, label or id [2]:", "\n"), ("Apply?", "n\n")], env=LISTED)
    lines = ran.out.splitlines()
    assert lines[0] == "Which checkpoint?"
    assert lines[1].split()[0] == "3" and "automatic by claude" in lines[1]
    assert lines[2].split()[:2] == ["→", "2"] and '"base"' in lines[2]
    assert lines[3].split()[0] == "1" and '"start"' in lines[3]
    assert lines[4].strip() == "how things are now can be kept first: takeback checkpoint LABEL"
    assert any(line.startswith("Back to ") and '"base"' in line for line in lines)


def test_rollback_to_a_number_that_was_chosen(drifted) -> None:
    ran = drifted.typing("rollback", answers=[("Number, label or id", "1\n"), ("Apply?", "n\n")], env=LISTED)
    assert "Back to " in ran.out and '"start" · ' in ran.out


def test_a_mistyped_number_is_asked_again(drifted) -> None:
    asks = "Number, label or id"
    ran = drifted.typing("rollback", answers=[(asks, "99\n"), (asks, "1\n"), ("Apply?", "n\n")], env=LISTED)
    assert "no checkpoint, turn, effect or take-back is called '99'" in ran.out
    assert '"start" · ' in ran.out and ran.code == 4


LISTED = {"TERM": "dumb"}  # no picker: the plain list
PLAIN = {"NO_COLOR": "1"}


def test_colours_only_where_they_are_wanted(changed) -> None:
    assert "\x1b[" in changed.typing("status").out
    assert "\x1b[" not in changed.typing("status", env=PLAIN).out
    assert "\x1b[" not in changed.typing("status", env={"TERM": "dumb"}).out
    assert "\x1b[" not in changed.typing("status", "--no-color").out
    assert "\x1b[" not in changed.ok("status").out


def test_long_output_goes_through_the_pager_on_a_terminal_only(changed) -> None:
    for n in range(60):
        (changed.project / f"extra{n}").write_text("x\n")
    pager = {"PAGER": "sed s/^/paged:/", **PLAIN}
    assert "paged:" in changed.typing("diff", env=pager).out
    assert "paged:" not in changed.typing("diff", "--", "src", env=pager).out, "what fits is not paged"
    assert "paged:" not in changed.ok("diff", env=pager).out
    assert "extra59" in changed.typing("diff", env={"PAGER": "/no/such/pager", **PLAIN}).out
    assert "extra59" in changed.typing("diff", env={"PAGER": "", **PLAIN}).out, "an empty one is none"
    assert "extra59" in changed.typing("diff", env={"PAGER": "less '", **PLAIN}).out, "one that makes no sense is none"


def test_ctrl_c_is_the_pagers(changed) -> None:
    """less stops a search with it; a program that died of it would leave the terminal to nobody."""
    (changed.project / "src/new.py").write_text("".join(f"extra{n}\n" for n in range(60)))
    script = (
        "import os, signal, sys, time; signal.signal(signal.SIGINT, lambda *_: print('caught', flush=True)); "
        "sys.stdin.read(); os.killpg(0, signal.SIGINT); time.sleep(0.5); print('still here')"
    )
    ran = changed.typing("diff", env={"PAGER": f'{sys.executable} -c "{script}"', **PLAIN})
    assert ran.code == 0 and "caught" in ran.out and "still here" in ran.out and "interrupted" not in ran.out


def test_yes_does_not_ask_on_a_terminal_either(drifted) -> None:
    ran = drifted.typing("rollback", "--yes", env=PLAIN)
    assert ran.code == 3
    assert "Which" not in ran.out and "Apply" not in ran.out


def test_json_never_asks(changed) -> None:
    ran = changed.typing("rollback", "--json")
    assert ran.code == 4
    assert "Apply?" not in ran.out


@pytest.mark.parametrize(("answer", "left"), [("y\n", 1), ("\n", 2)])
def test_prune_asks(cli, answer: str, left: int) -> None:
    cli.ok("checkpoint", "two")
    ran = cli.typing("prune", "--keep", "1", answers=[("Forget this for good? [y/N]", answer)])
    assert ran.code == (0 if left == 1 else 4)
    assert "would forget 1 checkpoint" in ran.out
    assert len(cli("log", "kind:checkpoint", "--json").json["rows"]) == left


def test_progress_is_drawn_on_a_terminal_only(bare) -> None:
    script = (
        "import os, sys, time\nfrom takeback.surfaces.cli.terminal import Terminal\n"
        "progress = Terminal(os.environ).progress('captured', 10)\n"
        "if progress is None: sys.exit('none')\n"
        "time.sleep(0.4); progress(5); progress.wipe()"
    )
    program = (sys.executable, "-c", script)
    assert subprocess.run(program, capture_output=True, text=True).stderr == "none\n"
    shown = bare.typing(program=program).out
    assert "██████████░░░░░░░░░░ captured 5 of 10" in shown
    assert shown.endswith("\r\x1b[K"), "and is wiped at the end"
