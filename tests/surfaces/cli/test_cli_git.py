"""git in plans, outcomes, log and status, as a person reads them and as JSON."""

from __future__ import annotations

import subprocess

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
    ran = cli("undo", "--actor", "run", "--yes")
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


def test_what_is_kept_says_why_and_what_would_work(cli, repo):
    work(cli, repo, "git branch made; git worktree add -q -b wtb wt; git init -q nest; echo x > nest/f")
    err = cli("undo", "--yes").err
    assert "kept wtb: the work tree wt is on it: git worktree remove wt or git switch there first" in err
    assert "kept nest: it still holds nest/.git, a repository of its own: rm -rf nest removes it" in err
    assert "kept wt: it still holds wt/.git, a work tree: git worktree remove --force wt removes it" in err
    assert "--force\n" not in err
    repo("worktree", "remove", "--force", "wt")
    assert not (repo.root / "wt").exists()


def test_objects_that_git_collected_are_told_in_the_plan(cli, repo):
    repo("branch", "other")
    repo("switch", "-q", "other")
    repo.commit("only there", o="o\n")
    repo("switch", "-q", "main")
    cli.ok("checkpoint")
    work(cli, repo, "git branch -qD other; git reflog expire --expire=now --all; git gc -q --prune=now")
    assert "other  uncovered: its objects are gone (git gc); kept" in cli("undo", "--dry-run").out
    ran = cli("undo", "--yes")
    assert ran.code == 3 and "  kept other: its objects are gone (git gc)\n" in ran.err


def test_a_path_that_is_taken_and_kept_is_told_once(cli, repo):
    work(cli, repo, "git commit -q --allow-empty -m a")
    repo("commit", "-q", "--allow-empty", "-m", "by a person")
    cli.ok("checkpoint")
    work(cli, repo, "git commit -q --allow-empty -m b")
    ran = cli("rollback", "start", "--actor", "run", "--yes")
    assert ran.out.count("  main") == 2, ran
    assert "kept main: \n" not in ran.err and ran.err.count("kept main: changed by you since") == 1
    assert ran.err.count("kept main") == 1


def test_redo_of_many_says_how_to_undo_as_many(cli, repo):
    for n in range(3):
        work(cli, repo, f"echo {n} > made{n}")
    for _ in range(3):
        cli.ok("undo", "--yes")
    assert "take this back: takeback undo 3" in cli.ok("redo", "3", "--yes").err
    cli.ok("undo", "3", "--yes")
    assert not (repo.root / "made0").exists()


def test_a_large_plan_shows_head_and_its_branch_and_counts_the_rest(cli, repo):
    script = "for n in $(seq 100); do git branch a$n; echo $n > many$n; done; git add -A; git commit -qm all; "
    work(cli, repo, script + "git switch -qc zz")
    shown = cli.ok("undo", "--dry-run").out
    assert "HEAD zz → main" in shown and "  git · HEAD, 102 refs, 100 index entries\n" in shown
    assert "index · 100 entries" in shown and "~  main " in shown
    steps = int(shown.partition(" steps")[0].rpartition(" ")[2])
    hidden = int(shown.partition("… and ")[2].partition(" more")[0])
    rows = [line for line in shown.splitlines() if line.startswith(("  files ", "  git    "))]
    assert steps == 100 + 100 + 102 + 1 == hidden + len(rows) - 1 + 100


def test_git_that_is_not_recorded_is_said_once(cli, repo):
    repo("update-index", "--split-index")
    work(cli, repo, "echo x > f0")
    line = "git: a split index is not recorded; git update-index --no-split-index makes it a plain one"
    ran = cli.ok("undo", "--yes")
    assert (ran.out + ran.err).count(line) == 1
    assert cli.ok("status").out.count(line) == 1
    ran = cli("rollback", "--yes")
    assert "nothing to take back" in ran.out and line in ran.err


def test_a_folder_inside_a_repository_says_that_git_is_not_recorded(bare, monkeypatch):
    for name, value in PERSON.items():
        monkeypatch.setenv(name, value)
    Repo.new(bare.project.parent)
    bare.ok("init", "--yes")
    line = f"git: not recorded, as this folder lies in the repository {bare.project.parent}"
    assert line in bare.ok("status").out
    bare.ok("run", "--", "sh", "-c", "echo x > made")
    ran = bare.ok("undo", "--yes")
    assert (ran.out + ran.err).count(line) == 1


def test_a_head_that_cannot_be_read_is_said_with_what_mends_it(cli, repo):
    work(cli, repo, "echo x > f0")
    (repo.root / ".git/HEAD").write_text("garbage\n")
    mend = "echo ref: refs/heads/BRANCH > .git/HEAD"
    ran = cli.ok("undo", "--yes")
    assert (ran.out + ran.err).count("git: HEAD cannot be read (a ref makes no sense); " + mend) == 1
    assert mend in cli.ok("status").out
    subprocess.run(["sh", "-c", mend.replace("BRANCH", "main")], cwd=repo.root, check=True)
    assert repo("status", "--porcelain") == ""


def test_show_has_files_first_and_git_in_words(cli, repo):
    work(cli, repo, MESS)
    cli.ok("undo", "--yes")
    id = cli.ok("log", "kind:takeback", "--json").json["rows"][0]["id"]
    shown = cli.ok("show", id).out
    assert ".git/" not in shown and "took     in git feature, main, tag v1, 5 index entries of " in shown
    assert "f0" in shown


def test_the_heading_names_what_was_run(cli, repo):
    work(cli, repo, "echo x > f0")
    assert "Undo the last turn (run “sh -c 'echo x > f0'”)" in cli.ok("undo", "--dry-run").out
