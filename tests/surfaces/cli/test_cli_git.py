"""git in plans, outcomes, log and status, as a person reads them and as JSON."""

from __future__ import annotations

import pytest

from repositories import PERSON, Repo


@pytest.fixture
def repo(cli, monkeypatch):
    for name, value in PERSON.items():
        monkeypatch.setenv(name, value)
    repo = Repo.new(cli.project)
    for n in range(6):
        repo.write(f"f{n}", f"{n}\n")
    repo("add", "-A")
    repo("commit", "-qm", "one")
    cli("init", "--yes")
    cli.ok("checkpoint", "start")
    return repo


def work(cli, repo, script: str):
    return cli.ok("run", "--", "sh", "-c", script)


MESS = (
    "git switch -qc feature; for n in 0 1 2 3 4; do echo x >> f$n; git commit -qam more; done; "
    "git switch -q main; git merge -q feature; git tag v1"
)


def test_a_plan_names_each_ref_and_sums_up_the_index(cli, repo):
    told = work(cli, repo, MESS).err
    assert "in git feature, main, tag v1, 5 index entries changed" in told
    shown = cli.ok("undo", "--dry-run").out
    assert "index · 5 entries" in shown
    now, then = repo("rev-parse", "--short=7", "main").strip(), repo("rev-parse", "--short=7", "main~5").strip()
    assert f"main {now} → {then} (5 commits)" in shown
    assert "feature" in shown and "created since" in shown and "tag v1" in shown
    assert cli.ok("undo", "--dry-run", "--all-steps").out.count("index: f") == 5


def test_json_has_each_step_by_its_path(cli, repo):
    work(cli, repo, MESS)
    steps = cli.ok("undo", "--dry-run", "--json").json["plan"]["steps"]
    by_target = {step["target"]: step for step in steps}
    assert by_target[".git/refs/heads/main"]["domain"] == "git"
    assert by_target[".git/refs/tags/v1"]["summary"] == "delete tag v1"
    assert ".git/index/f0" in by_target


def test_what_came_of_it_and_what_was_kept(cli, repo):
    work(cli, repo, MESS)
    repo("commit", "-q", "--allow-empty", "-m", "by a person")
    ran = cli("undo", "--yes")
    assert ran.code == 3
    assert "and in git feature, tag v1, 5 index entries; kept main, changed by you since" in ran.out
    assert "kept main: changed by you since · take it too: takeback revert" in ran.out + ran.err
    results = {r["target"]: r for r in cli("redo", "--yes", "--json").json["results"]}
    assert results[".git/refs/tags/v1"]["domain"] == "git"


def test_status_and_log_tell_of_git(cli, repo):
    repo("commit", "-q", "--allow-empty", "-m", "by a person")
    assert "git: main" in cli.ok("status").out
    assert cli.ok("status", "--json").json["git"] == [".git/refs/heads/main"]
    work(cli, repo, "git tag v1")
    assert "git: run: sh -c 'git tag v1' · tag v1" in cli.ok("log", "domain:git").out
    repo("update-index", "--split-index")
    assert ".git" in [u["path"] for u in cli.ok("status", "--json").json["uncovered"] if "split index" in u["why"]]


def test_only_and_except(cli, repo):
    work(cli, repo, MESS)
    cli.ok("undo", "--except", "git", "--yes")
    assert "refs/tags/v1" in repo.refs() and (repo.root / "f0").read_text() == "0\n"
    cli.ok("undo", "--only", "git", "--yes")
    assert "refs/tags/v1" not in repo.refs()
    assert repo("status", "--porcelain") == ""
