"""The record of what hooks could not do: bounded, private, free of secrets, and never in the way."""

from __future__ import annotations

from takeback.agents import hook_problems
from takeback.agents.hook_problems import FAILED, FILE, NOTED, Record

SECRET = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"


def test_it_is_bounded_and_free_of_secrets(tmp_path):
    for number in range(3_000):
        hook_problems.append(tmp_path, Record(number, FAILED, "claude", "PreToolUse", f"{number} {SECRET} {'x' * 300}"))
    kept = hook_problems.read(tmp_path)
    assert kept[-1].at == 2_999
    assert 100 < len(kept) <= 500
    assert (tmp_path / FILE).stat().st_size < 1 << 20
    assert SECRET not in (tmp_path / FILE).read_text()
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_it_is_private_and_makes_its_folder(tmp_path):
    hook_problems.append(tmp_path / "not" / "there", Record(1, FAILED, "claude", "Stop", "why", "/project"))
    assert (tmp_path / "not" / "there" / FILE).stat().st_mode & 0o777 == 0o600
    assert hook_problems.read(tmp_path / "not" / "there") == [Record(1, FAILED, "claude", "Stop", "why", "/project")]


def test_the_same_note_is_told_once_and_every_failure_each_time(tmp_path):
    for at in range(3):
        hook_problems.append(tmp_path, Record(at, NOTED, "claude", "Stop", "nothing is protected"))
    hook_problems.append(tmp_path, Record(3, NOTED, "codex", "Stop", "nothing is protected"))
    for at in range(4, 6):
        hook_problems.append(tmp_path, Record(at, FAILED, "claude", "Stop", "locked"))
    assert [r.at for r in hook_problems.read(tmp_path)] == [0, 3, 4, 5]


def test_what_makes_no_sense_is_left_out(tmp_path):
    hook_problems.append(tmp_path, Record(1, FAILED, "claude", "Stop", "a\nb\x1b[31m \ud800"))
    with (tmp_path / FILE).open("a") as file:
        file.write('nonsense\n{"at": 3}\n[]\n{"at": "x", "result": 1}\n')
    assert len(hook_problems.read(tmp_path)) == 1


def test_nothing_is_said_where_it_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    hook_problems.append(tmp_path / "file" / "below", Record(1, FAILED, "claude", "Stop", "why"))
    assert hook_problems.read(tmp_path / "file" / "below") == []
    (tmp_path / FILE).symlink_to(tmp_path / "file")
    hook_problems.append(tmp_path, Record(1, FAILED, "claude", "Stop", "why"))
    assert (tmp_path / "file").read_text() == ""
