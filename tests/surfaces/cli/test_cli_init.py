"""init: what it protects, what it refuses, and how it finds a history again."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest


def test_init_protects_and_takes_the_first_checkpoint(bare, store_folder) -> None:
    (bare.project / "a.txt").write_text("a")
    ran = bare.ok("init")
    assert ran.out.splitlines()[0] == f"{bare.project} is protected"
    assert '"start": 1 path' in ran.out
    (row,) = bare("log", "--json").json["rows"]
    assert (row["kind"], row["label"], row["named"]) == ("checkpoint", "start", True)
    assert os.listdir(bare.project) == ["a.txt"], "nothing is written into the project"
    assert store_folder().stat().st_mode & 0o777 == 0o700


def test_init_is_idempotent(cli) -> None:
    again = cli.ok("init")
    assert again.out == f"{cli.project} is protected already\n"
    assert len(cli("log", "--json").json["rows"]) == 1
    assert cli("init", "--json").json["created"] is False


def test_init_as_json(bare) -> None:
    found = bare("init", "--json").json
    assert found["created"] is True
    assert found["root"] == str(bare.project)
    assert found["checkpoint"]["label"] == "start"


def test_init_refuses_the_whole_disk_and_the_home_folder(bare, own_home: Path) -> None:
    own_home.mkdir(exist_ok=True)
    for folder, what in (("/", "is the whole file system"), (str(own_home), "is your home folder")):
        ran = bare("init", "-C", folder)
        assert ran.code == 2
        assert what in ran.err
        assert "--force" in ran.err
    assert not (own_home / "takeback").exists(), "no store is made"


def test_init_refuses_a_folder_inside_the_store(cli, own_home: Path) -> None:
    ran = cli("init", "-C", str(own_home / "takeback"))
    assert ran.code == 2
    assert "takeback's own store" in ran.err


def test_init_of_the_home_folder_with_force(bare, own_home: Path) -> None:
    own_home.mkdir(exist_ok=True)
    assert bare("init", "--force", "-C", str(own_home)).code == 0


@pytest.mark.parametrize("inner", [True, False])
def test_init_refuses_nested_roots(bare, inner: bool) -> None:
    below = bare.project / "below"
    below.mkdir()
    first, second = (bare.project, below) if inner else (below, bare.project)
    bare.ok("init", "-C", str(first))
    ran = bare("init", "-C", str(second))
    assert ran.code == 2
    assert ("lies inside" if inner else "holds") in ran.err
    assert bare("init", "-C", str(second), "--force").code == 0


def test_init_below_a_repository_protects_the_folder_given_and_says_so(bare) -> None:
    (bare.project / ".git").mkdir()
    below = bare.project / "below"
    below.mkdir()
    ran = bare.ok("init", "-C", str(below))
    assert f"{below} is protected" in ran.out
    assert f"it lies in the git repository {bare.project}" in ran.err


@pytest.mark.parametrize(("answer", "which"), [("y\n", ""), ("n\n", "below"), ("\n", "below")])
def test_init_offers_the_top_of_the_repository_on_a_terminal(bare, answer: str, which: str) -> None:
    (bare.project / ".git").mkdir()
    (bare.project / "below").mkdir()
    ran = bare.typing("init", "-C", "below", answers=[("Protect all of that instead? [y/N]", answer)])
    assert ran.code == 0
    assert (
        f"{bare.project / which} is protected".encode()
        in ran.out.replace("\x1b[1m", "").replace("\x1b[0m", "").encode()
    )


def test_a_moved_root_is_known_and_adopted_with_its_history(changed, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    changed.project.rename(moved)
    told = changed("status", cwd=moved)
    assert told.code == 10
    assert f"looks like {changed.project}, moved" in told.err
    assert f"takeback init -C {moved}" in told.err
    ran = changed.ok("init", cwd=moved)
    assert f"this folder was moved from {changed.project}; its history came along" in ran.out
    assert changed.ok("rollback", "start", "--yes", cwd=moved).code == 0
    assert (moved / "src/legacy.py").read_text() == "old\n"


def test_another_folder_with_the_same_inode_number_is_not_the_moved_root(cli, store_folder, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "unlike").write_text("x")
    meta = json.loads((store_folder() / "workspace.json").read_text())
    meta["inode"] = other.stat().st_ino
    (store_folder() / "workspace.json").write_text(json.dumps(meta))
    shutil.rmtree(cli.project)
    ran = cli.ok("init", cwd=other)
    assert f"{other} is protected" in ran.out


def test_a_replaced_root_is_refused_until_init_accepts_it(cli, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(cli.project, copy)
    shutil.rmtree(cli.project)
    copy.rename(cli.project)
    (cli.project / "README.md").write_text("changed\n")
    ran = cli("status")
    assert ran.code == 1
    assert "it was replaced by another one" in ran.err
    assert "takeback init" in ran.err
    assert cli("restore", "start", ".", "--to", str(tmp_path / "out")).code == 0
    assert "its history goes on here" in cli.ok("init").out
    assert [c["path"] for c in cli("status", "--json").json["changes"]] == ["README.md"]


def test_verbs_find_the_workspace_upwards(changed) -> None:
    ran = changed("status", "--json", cwd=changed.project / "src")
    assert [c["path"] for c in ran.json["changes"]] == ["src/auth.py", "src/legacy.py", "src/new.py"]


def test_the_first_init_ever_says_hello_in_three_lines(bare, tmp_path: Path) -> None:
    from takeback.surfaces.cli.verbs.start.init import WELCOME

    assert len(WELCOME) == 3
    assert WELCOME[0] not in bare.ok("init").err, "only to a person at a terminal"
    first, second = tmp_path / "one", tmp_path / "two"
    first.mkdir()
    second.mkdir()
    out = bare.typing("init", "-C", str(first), env={"NO_COLOR": "1"}).out
    assert out.splitlines()[-3:] == list(WELCOME)
    again = bare.typing("init", "-C", str(second), env={"NO_COLOR": "1"}).out
    assert WELCOME[0] not in again and "let your agent loose" in again
