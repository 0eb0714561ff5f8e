"""Turned off: what still works, and that nothing is written."""

from __future__ import annotations

import pytest

OFF = [["--off"], {"TAKEBACK": "off"}, "config"]


@pytest.fixture(params=["--off", "environment", "configuration"])
def off(request, changed, own_home):
    """Runs a verb while takeback is off, in each of the three ways."""

    def run(*words: str):
        if request.param == "--off":
            return changed(*words, "--off")
        if request.param == "environment":
            return changed(*words, env={"TAKEBACK": "off"})
        (own_home / "config/takeback").mkdir(parents=True, exist_ok=True)
        (own_home / "config/takeback/config.toml").write_text("[checkpoints]\nenabled = false\n")
        return changed(*words)

    run.source = {"--off": "--off", "environment": "environment TAKEBACK", "configuration": "config.toml"}[
        request.param
    ]
    return run


def test_seeing_and_restoring_elsewhere_still_work(off, tmp_path) -> None:
    assert off("log").code == 0
    assert off("show", "1").code == 0
    assert "src/auth.py" in off("diff").out
    assert off("restore", "start", "src/legacy.py", "--to", str(tmp_path / "out")).code == 0
    assert (tmp_path / "out/src/legacy.py").read_text() == "old\n"


@pytest.mark.parametrize(
    "words",
    [
        ["checkpoint"],
        ["track", "README.md"],
        ["status"],
        ["rollback", "--yes"],
        ["undo", "--yes"],
        ["redo", "--yes"],
        ["revert", "src", "--yes"],
        ["restore", "start", "src", "--yes"],
        ["plan", "undo"],
        ["apply", "k"],
        ["resume"],
        ["prune", "--yes"],
        ["pin", "1"],
        ["unpin", "1"],
        ["verify"],
        ["repair"],
        ["init"],
        ["config", "confirm"],
        [],
        ["prune", "--orphans"],
    ],
    ids=" ".join,
)
def test_other_verbs_say_that_it_is_off_and_why(off, contents, words) -> None:
    before = contents()
    ran = off(*words)
    assert ran.code == 1
    assert ran.err.startswith("takeback: takeback is off (source: ")
    assert f"{off.source})" in ran.err.splitlines()[0]
    assert contents() == before


def test_doctor_and_config_say_that_it_is_off(off) -> None:
    ran = off("doctor")
    assert ran.code == 1
    assert "✗ switched on" in ran.out
    line = next(line for line in off("config").out.splitlines() if line.startswith("checkpoints.enabled"))
    assert line.split()[1] == "false" and line.endswith(off.source)


def test_no_store_is_made_or_written(bare, changed, own_home, store_folder) -> None:
    def store() -> dict[str, bytes]:
        return {
            p.name: p.read_bytes() for p in store_folder().rglob("*") if p.is_file() and "journal.db-" not in p.name
        }

    before = store()
    for words in (["log"], ["diff"], ["show", "1"], ["checkpoint"], ["rollback", "--yes"]):
        changed(*words, "--off")
    assert store() == before
    (bare.project.parent / "fresh").mkdir()
    ran = bare("init", "--off", "-C", str(bare.project.parent / "fresh"))
    assert ran.code == 1
    assert len(list((own_home / "takeback").iterdir())) == 1


def test_on_beats_a_configuration_that_is_off(changed, own_home) -> None:
    (own_home / "config/takeback").mkdir(parents=True)
    (own_home / "config/takeback/config.toml").write_text("[checkpoints]\nenabled = false\n")
    assert changed("checkpoint").code == 1
    assert changed("checkpoint", env={"TAKEBACK": "on"}).code == 0
