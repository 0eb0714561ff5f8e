"""What an agent does with git is taken back and brought back: HEAD, branches, tags, index, stash and tree."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import takeback
from conformance.domain import World, domain_conformance
from repositories import PERSON, Repo, do_something
from takeback.domains.git import index_file
from takeback.domains.git.apply import Git, _Run
from takeback.domains.git.repository import INDEX, STASH, entry
from takeback.journal.brackets import Call, Caller
from takeback.model.effects import DONE, FAILED, KEPT, Step, same
from takeback.system.safefs import open_root

CLAUDE = Caller("claude", "s1")
_keys = iter(range(1000))


@pytest.fixture
def repo(tmp_path, monkeypatch):
    """Two commits, a side branch, a tag, a stash, something staged and something not."""
    for name, value in {**PERSON, "TAKEBACK_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    repo = Repo.new(tmp_path / "project")
    repo.commit("one", **{"a": "1\n", "b": "1\n", "dir/c": "1\n"})
    repo("branch", "side")
    repo.commit("two", a="2\n")
    repo("tag", "v1")
    repo("switch", "-q", "side")
    repo.commit("aside", s="s\n")
    repo("switch", "-q", "main")
    repo.write("b", "stashed first\n")
    repo("stash", "push", "-q", "-m", "first")
    repo.write("b", "stashed second\n")
    repo("stash", "push", "-q", "-m", "second")
    repo.write("staged", "by a person\n")
    repo("add", "staged")
    repo.write("dir/c", "not staged\n")
    return repo


@pytest.fixture
def ws(repo):
    with takeback.open(repo.root, create=True) as opened:
        yield opened


def in_a_call(ws, act, prompt="do it") -> None:
    key = str(next(_keys))
    ws.begin_turn(CLAUDE, prompt)
    ws.begin_call(CLAUDE, Call(key, "Bash", "Bash: git"))
    act()
    ws.end_call(CLAUDE, Call(key, "Bash", "Bash: git"))


def kept(outcome) -> dict[str, str]:
    return {r.path.decode(): r.note for r in outcome.results if r.result == KEPT}


# -- each operation, there and back ------------------------------------------------


def commit(repo):
    repo.write("a", (repo.root / "a").read_text() + "agent\n")
    repo("commit", "-qam", "by the agent")


def commit_what_a_person_had_staged(repo):
    repo("commit", "-qm", "all of it")


def amend(repo):
    repo.write("a", "amended\n")
    repo("commit", "-qa", "--amend", "-m", "other words")


def switch(repo):
    repo("checkout", "-qf", "side")


def switch_to_a_new_branch(repo):
    repo("switch", "-qc", "agent/feature")
    commit(repo)


def detach(repo):
    repo("checkout", "-qf", "--detach", "v1")


def merge(repo):
    repo("reset", "-q", "--hard")
    repo("merge", "-q", "-m", "merged", "side")


def merge_that_conflicts(repo):
    repo("reset", "-q", "--hard")
    repo("switch", "-q", "side")
    repo.commit("clash", a="clash\n")
    repo("switch", "-q", "main")
    repo("merge", "-q", "side", ok=False)
    assert repo.merging()


def reset_hard(repo):
    repo("reset", "-q", "--hard", "HEAD~1")


def reset_soft(repo):
    repo("reset", "-q", "--soft", "HEAD~1")


def tags(repo):
    repo("tag", "v2")
    repo("tag", "-am", "told", "v3")
    repo("tag", "-d", "v1")


def delete_branch(repo):
    repo("branch", "-D", "side")


def rename_branch(repo):
    repo("branch", "-m", "main", "trunk")


def branch_in_place_of_a_folder(repo):
    repo("branch", "-D", "side")
    repo("switch", "-qc", "side/deeper")


def stash_push(repo):
    repo("stash", "push", "-qu", "-m", "the agent's")


def stash_pop(repo):
    repo("commit", "-qam", "clean")
    repo("stash", "pop", "-q")


def stash_drop(repo):
    repo("stash", "drop", "-q", "stash@{1}")


def stash_clear(repo):
    repo("stash", "clear")


def add_and_remove(repo):
    repo.write("new", "new\n")
    repo("add", "new")
    repo("rm", "-qf", "a")
    repo("update-index", "--chmod=+x", "b")
    repo.write("later", "later\n")
    repo("add", "-N", "later")
    repo("update-index", "--assume-unchanged", "dir/c")
    repo("update-index", "--skip-worktree", "b")


def unstage(repo):
    repo("reset", "-q")


def rebase(repo):
    repo("stash", "push", "-q")
    repo("rebase", "-q", "side")


def pick(repo):
    repo("reset", "-q", "--hard")
    repo("cherry-pick", "side")


def pick_that_conflicts(repo):
    repo("reset", "-q", "--hard")
    repo("switch", "-q", "side")
    repo.commit("clash", a="clash\n")
    repo("switch", "-q", "main")
    repo("cherry-pick", "side", ok=False)
    assert "CHERRY_PICK_HEAD" in repo.merging()


def pack_and_commit(repo):
    repo("pack-refs", "--all")
    commit(repo)
    repo("branch", "-D", "side")


def collect(repo):
    switch_to_a_new_branch(repo)
    repo("gc", "-q")


def notes(repo):
    repo("notes", "add", "-m", "told")


OPERATIONS = [
    commit,
    commit_what_a_person_had_staged,
    amend,
    switch,
    switch_to_a_new_branch,
    detach,
    merge,
    merge_that_conflicts,
    reset_hard,
    reset_soft,
    tags,
    delete_branch,
    rename_branch,
    branch_in_place_of_a_folder,
    stash_push,
    stash_pop,
    stash_drop,
    stash_clear,
    add_and_remove,
    unstage,
    rebase,
    pick,
    pick_that_conflicts,
    pack_and_commit,
    collect,
    notes,
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda f: f.__name__)
def test_there_and_back_again(ws, repo, operation):
    before = repo.all()
    in_a_call(ws, lambda: operation(repo))
    after = repo.all()
    assert after != before
    for _ in range(2):
        outcome = ws.undo()
        assert outcome.whole, outcome.results
        assert repo.all() == before
        outcome = ws.redo()
        assert outcome.whole, outcome.results
        assert repo.all() == after
    repo("fsck", "--no-dangling")


@pytest.mark.parametrize("operation", [commit, merge_that_conflicts, reset_hard, stash_pop, switch_to_a_new_branch])
def test_in_a_linked_work_tree(repo, tmp_path, operation):
    repo("stash", "push", "-q")
    repo("worktree", "add", "-q", "-b", "linked", "../linked")
    repo("switch", "-q", "-c", "parked")
    linked = Repo(tmp_path / "linked")
    linked("switch", "-q", "main")
    linked.write("dir/c", "not staged\n")
    with takeback.open(linked.root, create=True) as ws:
        before, there = linked.all(), (repo.head(), repo.staged())
        in_a_call(ws, lambda: operation(linked))
        after = linked.all()
        assert ws.undo().whole and linked.all() == before
        assert ws.redo().whole and linked.all() == after
    assert (repo.head(), repo.staged()) == there


@pytest.mark.parametrize("options", [["--object-format=sha256"], []])
def test_a_first_commit_and_a_branch_that_is_to_be_born(tmp_path, monkeypatch, options):
    for name, value in {**PERSON, "TAKEBACK_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    repo = Repo.new(tmp_path / "project", *options)

    def said() -> tuple[object, ...]:
        return repo.head(), repo.refs(), repo.staged(), repo.tree(), repo("status", "--porcelain")

    def head() -> str:
        return "ref: " + repo("symbolic-ref", "HEAD").strip()

    repo.head = head  # type: ignore[method-assign]
    with takeback.open(repo.root, create=True) as ws:
        ws.checkpoint()
        before = said()
        in_a_call(ws, lambda: repo.commit("first", a="1\n"))
        after = said()
        assert ws.undo().whole and said() == before
        assert ws.redo().whole and said() == after


def test_from_a_detached_head(ws, repo):
    repo("stash", "push", "-q")
    repo("checkout", "-q", "--detach")
    before = repo.all()
    in_a_call(ws, lambda: commit(repo))
    in_a_call(ws, lambda: repo("switch", "-q", "side"))
    after = repo.all()
    assert ws.undo(2).whole and repo.all() == before
    assert ws.redo(2).whole and repo.all() == after


def test_a_rollback_takes_git_along(ws, repo):
    ws.checkpoint("start")
    before = repo.all()
    for operation in (commit, switch_to_a_new_branch, stash_drop, tags):
        in_a_call(ws, lambda operation=operation: operation(repo))
    assert ws.rollback("start", everything=True).whole
    assert repo.all() == before


@pytest.mark.parametrize("seed", range(6))
def test_any_walk_through_git_leads_back_and_forth(ws, repo, seed):
    """Whatever an agent did in some turns: each of them is taken back, and brought back, to what git said then."""
    chance = random.Random(seed)
    said = [repo.all()]
    while len(said) < 6:
        in_a_call(ws, lambda: [do_something(repo, chance) for _ in range(4)])
        now = repo.all()
        if now != said[-1] and ws.plan("undo").steps:
            said.append(now)
    for back in range(4, -1, -1):
        outcome = ws.undo()
        assert outcome.whole, outcome.results
        assert repo.all() == said[back], back
    outcome = ws.redo(5)
    assert outcome.whole, outcome.results
    assert repo.all() == said[-1]
    assert ws.undo(3).whole
    assert repo.all() == said[2]


def test_a_run_owns_what_it_did_with_git(ws, repo):
    before = repo.all()
    ws.checkpoint()
    repo.write("a", "by hand\n")
    repo("commit", "-qam", "by hand")
    ws.checkpoint()
    assert ws.undo().whole
    assert repo.all() == before


# -- what others did ---------------------------------------------------------------


def test_what_a_person_staged_since_stays(ws, repo):
    in_a_call(ws, lambda: commit(repo))
    repo.write("mine", "mine\n")
    repo("add", "mine")
    assert ws.undo().whole
    assert repo("diff", "--cached", "--name-only").split() == ["mine", "staged"]
    assert repo("log", "-1", "--format=%s").strip() == "two"


def test_a_ref_that_somebody_moved_stays_and_is_named(ws, repo):
    in_a_call(ws, lambda: (commit(repo), repo("tag", "agents")))
    moved = repo.commit("by a person", mine="mine\n")
    outcome = ws.undo()
    assert not outcome.whole
    assert list(kept(outcome)) == [".git/refs/heads/main"]
    assert "changed by you since" in kept(outcome)[".git/refs/heads/main"]
    assert repo.refs()["refs/heads/main"] == moved
    assert "refs/tags/agents" not in repo.refs()


def test_head_stays_on_a_branch_that_somebody_moved(ws, repo):
    in_a_call(ws, lambda: switch_to_a_new_branch(repo))
    moved = repo.commit("by a person", mine="mine\n")
    outcome = ws.undo()
    told = kept(outcome)
    assert sorted(told) == [".git/HEAD", ".git/refs/heads/agent/feature"]
    assert "stays on agent/feature" in told[".git/HEAD"]
    assert repo.head() == "ref: refs/heads/agent/feature"
    assert repo.refs()["refs/heads/agent/feature"] == moved
    assert repo.tree()["mine"][1] == b"mine\n"


def test_head_stays_where_a_person_committed_after_the_agent_switched(ws, repo):
    in_a_call(ws, lambda: switch(repo))
    repo.commit("by a person", mine="mine\n")
    assert ".git/HEAD" in kept(ws.undo())
    assert repo.head() == "ref: refs/heads/side"


def test_a_branch_that_a_person_switched_to_stays(ws, repo):
    in_a_call(ws, lambda: repo("branch", "made"))
    repo("switch", "-q", "made")
    outcome = ws.undo()
    assert kept(outcome) == {".git/refs/heads/made": "HEAD is on it"}
    assert repo.head() == "ref: refs/heads/made"


def test_a_branch_that_another_work_tree_is_on_stays(ws, repo):
    in_a_call(ws, lambda: repo("branch", "made"))
    repo("worktree", "add", "-q", "../other", "made")
    outcome = ws.undo()
    assert kept(outcome) == {
        ".git/refs/heads/made": "the work tree other is on it: git worktree remove other or git switch there first"
    }
    repo("worktree", "remove", "../other")
    assert "refs/heads/made" in repo.refs()


def test_force_takes_what_somebody_moved_too(ws, repo):
    before = repo.all()
    in_a_call(ws, lambda: switch_to_a_new_branch(repo))
    repo.commit("by a person", mine="mine\n")
    assert ws.undo(force=True).whole
    assert repo.head() == before[0]
    assert repo.refs() == before[1]


def test_merge_never_mixes_two_values_of_a_ref(ws, repo):
    in_a_call(ws, lambda: commit(repo))
    moved = repo.commit("by a person", mine="mine\n")
    outcome = ws.undo(merge=True)
    assert ".git/refs/heads/main" in kept(outcome)
    assert repo.refs()["refs/heads/main"] == moved


def test_a_persons_commit_between_calls_is_nobodys(ws, repo):
    in_a_call(ws, lambda: repo.write("a", "agent\n"))
    mine = repo.commit("by a person", mine="mine\n")
    in_a_call(ws, lambda: repo("tag", "agents"))
    assert ws.undo(2).whole
    assert repo.refs()["refs/heads/main"] == mine
    assert "refs/tags/agents" not in repo.refs()


def test_a_write_tool_owns_nothing_of_git(ws, repo):
    ws.begin_turn(CLAUDE, "write")
    call = Call("w", "Write", "Write a", (b"a",), scans=False)
    ws.begin_call(CLAUDE, call)
    repo.write("a", "agent\n")
    repo("tag", "mine")
    ws.end_call(CLAUDE, call)
    ws.checkpoint()
    owners = {e.domain: sorted(e.actors) for e in ws.history().effects}
    assert owners == {"files": ["claude"], "git": []}
    assert ws.undo().whole
    assert "refs/tags/mine" in repo.refs()


# -- scope -------------------------------------------------------------------------


def test_except_git_and_only_git(ws, repo):
    before = repo.all()
    in_a_call(ws, lambda: commit(repo))
    after = repo.all()
    assert ws.take_back("undo", without=["git"]).whole
    assert repo.refs() == after[1] and repo.tree() == before[5]
    assert ws.take_back("undo", only=["git"]).whole
    assert repo.all() == before


def test_settings_that_leave_git_alone(repo, monkeypatch):
    monkeypatch.setenv("TAKEBACK_GIT_ENABLED", "false")
    with takeback.open(repo.root, create=True) as ws:
        in_a_call(ws, lambda: commit(repo))
        after = repo.all()
        assert [e.domain for e in ws.history().effects] == ["files"]
        assert ws.undo().whole
        assert (repo.head(), repo.refs(), repo.staged()) == after[:3]


def test_git_needs_nobodys_approval(ws, repo):
    in_a_call(ws, lambda: commit(repo))
    plan = ws.plan("undo")
    assert plan.outside == [] and {s.domain for s in plan.steps} == {"files", "git"}
    assert ws.apply(plan).whole


def test_a_plan_is_stale_once_a_ref_moved(ws, repo):
    in_a_call(ws, lambda: commit(repo))
    plan = ws.plan("undo")
    repo.commit("by a person", mine="mine\n")
    with pytest.raises(takeback.Stale):
        ws.apply(plan)


# -- repositories that come and go -------------------------------------------------


def test_a_repository_that_the_agent_made_is_left_empty(tmp_path, monkeypatch):
    for name, value in {**PERSON, "TAKEBACK_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    root = tmp_path / "project"
    root.mkdir()
    (root / "a").write_text("1\n")
    repo = Repo(root)
    with takeback.open(root, create=True) as ws:
        ws.checkpoint()
        in_a_call(ws, lambda: (Repo.new(root), repo("add", "a"), repo("commit", "-qm", "first")))
        made = repo.refs(), repo.staged()
        assert ws.undo().whole
        assert (repo.refs(), repo.staged()) == ({}, [])
        assert ws.redo().whole
        assert (repo.refs(), repo.staged()) == made


def test_a_repository_that_is_gone_is_named(ws, repo):
    in_a_call(ws, lambda: shutil.rmtree(repo.root / ".git"))
    outcome = ws.undo()
    assert kept(outcome) == {".git/HEAD": "the repository is gone, and its objects are not in the store"}
    assert not (repo.root / ".git").exists()


def test_no_repository_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("TAKEBACK_HOME", str(tmp_path / "home"))
    root = tmp_path / "project"
    root.mkdir()
    with takeback.open(root, create=True) as ws:
        in_a_call(ws, lambda: (root / "a").write_text("1\n"))
        assert ws.undo().whole and not (root / "a").exists()


# -- what stands in the way --------------------------------------------------------


def test_another_git_at_work_fails_that_part_and_not_the_rest(ws, repo):
    before = repo.all()
    in_a_call(ws, lambda: (commit(repo), repo("tag", "agents")))
    lock = repo.root / ".git/index.lock"
    lock.touch()
    outcome = ws.undo()
    failed = {r.path: r.note for r in outcome.results if r.result == FAILED}
    assert set(failed) == {b".git/index/a", b".git/index/dir/c"}
    assert set(failed.values()) == {"another git holds index.lock"}
    assert lock.exists() and repo.refs() == before[1]
    lock.unlink()
    assert ws.undo().whole
    assert repo.all() == before


def test_a_locked_ref_fails_and_is_told(ws, repo):
    in_a_call(ws, lambda: (repo("tag", "one"), repo("tag", "two")))
    (repo.root / ".git/refs/tags/one.lock").touch()
    outcome = ws.undo()
    failed = {r.path: r.note for r in outcome.results if r.result == FAILED}
    assert list(failed) == [b".git/refs/tags/one"] and "lock" in failed[b".git/refs/tags/one"]
    assert "refs/tags/one" in repo.refs() and "refs/tags/two" not in repo.refs()


def test_an_object_that_was_collected_is_told(ws, repo):
    in_a_call(ws, lambda: repo("stash", "drop", "-q", "stash@{1}"))
    repo("reflog", "expire", "--expire-unreachable=now", "--all")
    repo("gc", "-q", "--prune=now")
    (step,) = ws.plan("undo").steps
    assert (step.taken, step.note) == (False, "its objects are gone (git gc)")
    outcome = ws.undo()
    assert list(kept(outcome).values()) == ["its objects are gone (git gc)"]
    assert len(repo.stashes()) == 1


def test_what_goes_between_plan_and_undo_is_kept_too(ws, repo):
    gone = "1" * 40
    step = Step("git", STASH + gone.encode(), None, entry(b"who 1 +0000\tmessage"), "exact", (), 0)
    with open_root(str(repo.root)) as tree:
        (result,) = Git(tree, str(repo.root), lambda _: b"who 1 +0000\tmessage", os.environ).apply([step], "k", {})
    assert (result.result, result.note) == (KEPT, f"its objects are gone (git gc): git has no {gone[:12]}")


def test_an_index_that_cannot_be_read_keeps_its_entries_and_names_them(ws, repo):
    in_a_call(ws, lambda: (repo.write("new", "n\n"), repo("add", "new"), repo("tag", "made")))
    (repo.root / ".git/index").write_bytes(b"DIRC")
    outcome = ws.undo()
    why = "the index cannot be read (it ends in the middle); rm .git/index && git reset makes it anew from HEAD"
    assert kept(outcome) == {".git/index/new": why}
    assert "refs/tags/made" not in repo.refs() and not (repo.root / "new").exists()
    (repo.root / ".git/index").unlink()
    repo("reset", "-q")
    assert "new" not in repo("ls-files")


def test_an_index_of_version_4_stays_one(ws, repo):
    repo("update-index", "--index-version", "4")
    before = repo.all()
    in_a_call(ws, lambda: (repo.write("dir/new", "n\n"), repo("add", "-A")))
    assert ws.undo().whole
    assert (repo.root / ".git/index").read_bytes()[:8] == b"DIRC\0\0\0\4"
    assert repo.all() == before


def test_the_projects_hooks_and_the_callers_settings_do_not_run(ws, repo, monkeypatch, tmp_path):
    in_a_call(ws, lambda: commit(repo))
    hooks = repo.root / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("reference-transaction", "post-checkout", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\necho ran >> {tmp_path}/ran\nexit 1\n")
        (hooks / name).chmod(0o755)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert ws.undo().whole
    assert not (tmp_path / "ran").exists() and not (tmp_path / "index").exists()


def meanwhile(monkeypatch, word, act):
    """Has a person do something right before our git is run with a word."""
    run = _Run.git

    def disturbed(self, args, told=b""):
        if word in args:
            monkeypatch.setattr(_Run, "git", run)
            act()
        return run(self, args, told)

    monkeypatch.setattr(_Run, "git", disturbed)


def test_a_stash_that_a_person_makes_in_that_moment_stays(ws, repo, monkeypatch):
    repo("stash", "clear")
    in_a_call(ws, lambda: stash_push(repo))

    def stash_more():
        repo.write("b", "a person's\n")
        repo("stash", "push", "-q", "-m", "a person's")

    meanwhile(monkeypatch, "refs/stash", stash_more)
    ws.undo()
    assert "a person's" in repo("stash", "list")


def test_head_that_a_person_moves_in_that_moment_stays(ws, repo, monkeypatch):
    in_a_call(ws, lambda: switch_to_a_new_branch(repo))
    meanwhile(monkeypatch, "cat-file", lambda: repo("checkout", "-q", "-b", "a-persons"))
    outcome = ws.undo()
    assert repo.head() == "ref: refs/heads/a-persons"
    assert [r.result for r in outcome.results if r.path == b".git/HEAD"] == [KEPT]


def test_git_writes_the_reflog(ws, repo):
    in_a_call(ws, lambda: commit(repo))
    ws.undo()
    assert "takeback: undo" in repo("reflog", "main", "-1")
    assert "takeback: undo" in repo("reflog", "HEAD", "-1")


def test_a_rebase_under_way_is_named(ws, repo):
    repo("switch", "-q", "side", "-f")
    repo.commit("clash", a="clash\n")
    repo("switch", "-q", "main")
    repo("reset", "-q", "--hard")
    in_a_call(ws, lambda: repo("rebase", "-q", "side", ok=False))
    plan = ws.plan("undo")
    (head,) = [s for s in plan.steps if s.path == b".git/HEAD"]
    assert head.note == "a rebase is under way, which is not recorded: it stays, and git rebase --quit ends it"
    assert ws.undo().whole
    repo("rebase", "--quit")
    assert repo.head() == "ref: refs/heads/main" and repo("status", "--porcelain") == ""


# -- crashes -----------------------------------------------------------------------

_KILLED = """
import os, signal, sys
import takeback
from takeback.domains.git import apply as git

calls = int(sys.argv[2])
real = {name: getattr(git._Run, name) for name in ("git", "_stash", "_index", "_files")}
count = 0

def dying(name):
    def act(self, *given):
        global count
        count += self.beside != b"takeback-"  # else it is asked while planning
        if count == calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return real[name](self, *given)
    return act

for name in real:
    setattr(git._Run, name, dying(name))
commit = git._Lock.commit
def commit_dying(self, *given):
    global count
    count += 1
    if count == calls:
        os.kill(os.getpid(), signal.SIGKILL)
    return commit(self, *given)
git._Lock.commit = commit_dying
with takeback.open(sys.argv[1]) as ws:
    ws.undo()
"""


@pytest.mark.parametrize("abort", [False, True])
@pytest.mark.parametrize("at", range(1, 11))
def test_a_killed_undo_is_finished_or_taken_back(ws, repo, at, abort):
    before = repo.all()
    in_a_call(ws, lambda: (switch_to_a_new_branch(repo), stash_drop(repo), repo("branch", "-D", "side")))
    after = repo.all()
    done = subprocess.run([sys.executable, "-c", _KILLED, str(repo.root), str(at)], check=False)
    if done.returncode == 0:
        assert at > 9
        return
    assert done.returncode == -signal.SIGKILL
    outcome = ws.resume(abort=abort)
    assert outcome is not None and outcome.whole, outcome.results
    assert repo.all() == (after if abort else before)
    left = [p.name for p in (repo.root / ".git").rglob("*") if "takeback" in p.name or p.name.endswith(".lock")]
    assert left == []
    assert (ws.undo() if abort else ws.redo()).whole
    assert repo.all() == (before if abort else after)


# -- the domain by itself ----------------------------------------------------------


def _world(repo: Repo, path: bytes, values: list[bytes | None], put) -> World:
    blobs = {entry(v).content: v for v in values if v is not None}
    git = Git(open_root(str(repo.root)), str(repo.root), blobs.__getitem__, os.environ, "undo")
    by_state = {None if v is None else entry(v).content: v for v in values}

    def put_state(path: bytes, state) -> None:
        put(by_state[None if state is None else state.content])

    return World(git, path, [None if v is None else entry(v) for v in values], put_state)


def test_refs_conform(repo):
    values = [None, *(repo("rev-parse", name).strip().encode() for name in ("main", "side"))]

    def put(value):
        repo("update-ref", "-d", "refs/heads/x") if value is None else repo(
            "update-ref", "refs/heads/x", value.decode()
        )

    domain_conformance(lambda: _world(repo, b".git/refs/heads/x", values, put))


def test_head_conforms(repo):
    values = [b"ref: refs/heads/main", b"ref: refs/heads/side", repo("rev-parse", "main").strip().encode()]

    def put(value):
        if value.startswith(b"ref: "):
            repo("symbolic-ref", "HEAD", value[5:].decode())
        else:
            repo("update-ref", "--no-deref", "HEAD", value.decode())

    domain_conformance(lambda: _world(repo, b".git/HEAD", values, put))


def test_index_entries_conform(repo):
    blobs = [repo("hash-object", "-w", "--stdin", told=told).strip().encode() for told in (b"x", b"y")]
    values = [None, b"100644 %b 0\n" % blobs[0], b"100755 %b 0\n" % blobs[1]]
    values.append(b"".join(b"100644 %b %d\n" % (blobs[0], stage) for stage in (1, 2, 3)))

    def put(value):
        repo("update-index", "--force-remove", "x")
        lines = [b"%b\tx\0" % line for line in (value or b"").splitlines()]
        repo("update-index", "-z", "--index-info", told=b"".join(lines))

    domain_conformance(lambda: _world(repo, INDEX + b"x", values, put))


def test_merge_files_conform(repo):
    path = repo.root / ".git/MERGE_MSG"

    def put(value):
        path.unlink(missing_ok=True) if value is None else path.write_bytes(value)

    domain_conformance(lambda: _world(repo, b".git/MERGE_MSG", [None, b"one\n", b"two\n"], put))


def test_a_stash_conforms(repo):
    name = repo("rev-parse", "stash@{0}").strip()
    who = b"Ada <ada@example.org> 1700000000 +0000"
    values = [None, who + b"\tone", who + b"\ttwo"]

    def put(value):
        for at, line in reversed(list(enumerate(repo.stashes()))):
            if line.startswith(name):
                repo("stash", "drop", "-q", f"stash@{{{at}}}")
        if value is not None:
            environ = {**os.environ, **PERSON, "GIT_COMMITTER_DATE": "1700000000 +0000"}
            message = value.partition(b"\t")[2].decode()
            subprocess.run(["git", "stash", "store", "-m", message, name], cwd=repo.root, env=environ, check=True)

    domain_conformance(lambda: _world(repo, STASH + name.encode(), values, put))


def test_an_index_that_was_written_leaves_git_nothing_to_refresh(ws, repo):
    in_a_call(ws, lambda: commit(repo))
    ws.undo()
    parsed = index_file.parse((repo.root / ".git/index").read_bytes(), 20, in_full=True)
    (item,) = [item for item in parsed.items if item.name == b"a"]
    assert int.from_bytes(item.stat[20:24], "big") == (repo.root / "a").stat().st_ino & 0xFFFFFFFF


def test_a_file_changed_in_the_moment_of_the_write_is_seen_by_git(ws, repo):
    """An entry as young as the index may be stale: its file has to be read again."""
    in_a_call(ws, lambda: repo("rm", "-q", "--cached", "b"))
    repo("update-index", "--refresh", ok=False)
    st = (repo.root / "a").stat()
    repo.write("a", "3\n")
    os.utime(repo.root / "a", ns=(st.st_atime_ns, st.st_mtime_ns))
    assert ws.undo().whole
    assert "a" in repo("diff", "--name-only").split()


def test_without_git_refs_fail_and_files_go_back(ws, repo, monkeypatch, tmp_path):
    in_a_call(ws, lambda: commit(repo))
    tree = open_root(str(repo.root))
    (step,) = [s for s in ws.plan("undo").steps if s.path == b".git/refs/heads/main"]
    git = Git(tree, str(repo.root), ws.store.blobs.get, {"PATH": str(tmp_path)}, "undo")
    (result,) = git.apply([step], "k", {})
    assert (result.result, result.note) == (FAILED, "the program git is not found")
    assert same(git.present(step.path), step.expected)


def test_one_result_for_each_step(repo, ws):
    in_a_call(ws, lambda: (commit(repo), stash_drop(repo)))
    steps = [s for s in ws.plan("undo").steps if s.domain == "git"]
    git = Git(open_root(str(repo.root)), str(repo.root), ws.store.blobs.get, os.environ, "undo")
    results = list(git.apply([*steps, Step("git", b".git/refs/heads/none", None, None, "exact", ())], "k", {}))
    assert [r.path for r in results] == [*(s.path for s in steps), b".git/refs/heads/none"]
    assert {r.result for r in results} == {DONE}
    assert Path(repo.root / ".git/index").stat().st_mode & 0o777 == 0o644
