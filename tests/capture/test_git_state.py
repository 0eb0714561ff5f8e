"""What is read of a repository is what git itself says of it, and only what changed is read again."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path

import pytest

import takeback
from repositories import Repo, do_something
from takeback.domains.git import index_file
from takeback.domains.git.look import GitState
from takeback.domains.git.repository import (
    HEAD,
    INDEX,
    PARTS,
    REFS,
    STASH,
    Repository,
    Unusable,
    amount,
    called,
    value_told,
)
from takeback.journal.journal import Journal
from takeback.store.blobs import MemoryBlobs
from takeback.system.safefs import open_root


def read(root: Path) -> dict[bytes, bytes]:
    """Path → value, with the index as text."""
    found: dict[bytes, bytes] = {}
    with open_root(str(root)) as tree:
        repository = Repository.at(tree, str(root))
        assert repository is not None
        with repository:
            for name in PARTS:
                part = repository.part(name)
                assert not part.why_not, part
                states = part.states or {}
                if name == "index":
                    states = {INDEX + n: index_file.text_of(s, repository.width) for n, s in states.items()}
                found |= states
    return found


def as_git_says(repo: Repo) -> dict[bytes, bytes]:
    found = {HEAD: repo.head().encode()}
    found |= {b".git/" + name.encode(): value.encode() for name, value in repo.refs().items()}
    found |= {STASH + line.split()[0].encode(): b"" for line in repo.stashes()}
    flags = {}
    for line in repo("ls-files", "-z", "-t", "-v").split("\0"):
        if line:
            words = ["assume-unchanged"] if line[0].islower() else []
            flags[line[2:]] = words + (["skip-worktree"] if line[0] in "Ss" else [])
    later = set(repo("diff", "--name-only", "-z", "--diff-filter=A").split("\0"))
    for line in repo("ls-files", "-z", "-s").split("\0"):
        if line:
            fields, _, name = line.partition("\t")
            words = flags.get(name, []) + (["intent-to-add"] if name in later else [])
            key = INDEX + name.encode("utf-8", "surrogateescape")
            found[key] = found.get(key, b"") + (" ".join([fields, *words]) + "\n").encode()
    found |= {b".git/" + name.encode(): text.encode() for name, text in repo.merging().items()}
    return found


def must_agree(repo: Repo) -> None:
    found = read(repo.root)
    stashed = {path: b"" for path in found if path.startswith(STASH)}
    assert found | stashed == as_git_says(repo)
    order = [p.removeprefix(STASH).decode() for p in found if p.startswith(STASH)]
    assert order[::-1] == [line.split()[0] for line in repo.stashes()]


@pytest.mark.parametrize("seed", range(12))
def test_what_is_read_is_what_git_says(tmp_path, seed):
    chance = random.Random(seed)
    repo = Repo.new(tmp_path / "r", *(["--object-format=sha256"] if seed % 4 == 3 else []))
    must_agree(repo)
    repo.commit("first", a="1\n", b="2\n")
    for _ in range(30):
        do_something(repo, chance)
        must_agree(repo)


@pytest.mark.parametrize("seed", range(4))
def test_an_index_that_is_packed_again_means_the_same_to_git(tmp_path, seed):
    chance = random.Random(seed)
    repo = Repo.new(tmp_path / "r", *(["--object-format=sha256"] if seed == 3 else []))
    repo.commit("first", a="1\n", b="2\n")
    for turn in range(12):
        do_something(repo, chance)
        path = repo.root / ".git" / "index"
        before = repo.staged(), repo("status", "--porcelain=v2")
        width = 32 if seed == 3 else 20
        parsed = index_file.parse(path.read_bytes(), width, in_full=True)
        path.write_bytes(index_file.pack(parsed.items, parsed.extensions, width, turn % 2 * 4 or 2))
        assert (repo.staged(), repo("status", "--porcelain=v2")) == before
        repo("fsck", "--no-dangling")


def test_text_of_an_entry_leads_back_to_its_state():
    state = (0o100644).to_bytes(4, "big") + bytes(range(20)) + bytes([4 | 8 | 16])
    conflict = b"".join((0o100755).to_bytes(4, "big") + bytes([n] * 20) + bytes([n]) for n in (1, 2, 3))
    for one in (state, conflict):
        assert index_file.state_of(index_file.text_of(one, 20)) == one
    with pytest.raises(index_file.Unreadable):
        index_file.state_of(b"100644 nonsense 0\n")


def test_a_long_name_and_one_that_is_no_text(tmp_path):
    repo = Repo.new(tmp_path / "r")
    blob = repo("hash-object", "-w", "--stdin", told=b"x").strip()
    long = "/".join(["d" * 200] * 25)  # longer than the twelve bits that an entry has for it
    lines = b"".join(
        b"100644 %b\t%b\0" % (blob.encode(), name) for name in (long.encode(), b"caf\xe9", b"new\nline", b"tab\tbed")
    )
    repo("update-index", "-z", "--index-info", told=lines)
    must_agree(repo)
    repo("update-index", "--index-version", "4")
    must_agree(repo)


# -- odd repositories --------------------------------------------------------------


def opened(root: Path) -> Repository | None:
    with open_root(str(root)) as tree:
        found = Repository.at(tree, str(root))
        if found is not None:
            found.close()
        return found


def test_no_repository(tmp_path):
    assert opened(tmp_path) is None
    (tmp_path / ".git").mkdir()
    assert opened(tmp_path) is None


def test_a_linked_work_tree_has_its_own_head_and_index_and_shares_the_refs(tmp_path):
    repo = Repo.new(tmp_path / "main")
    repo.commit("one", a="1\n")
    repo("worktree", "add", "-q", "-b", "side", "../side")
    side = Repo(tmp_path / "side")
    side.commit("two", b="2\n")
    must_agree(repo)
    must_agree(side)
    for root, other, called_ in ((repo.root, b"refs/heads/side", "side"), (side.root, b"refs/heads/main", "main")):
        with open_root(str(root)) as tree:
            found = Repository.at(tree, str(root))
            assert found is not None
            with found:
                assert list(found.elsewhere()) == [other]
                assert called_ in found.elsewhere()[other]


def test_a_submodule_is_an_entry_of_the_index(tmp_path):
    inner = Repo.new(tmp_path / "inner")
    inner.commit("one", a="1\n")
    repo = Repo.new(tmp_path / "r")
    repo("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.root), "sub")
    must_agree(repo)
    assert read(repo.root)[b".git/index/sub"].startswith(b"160000 ")
    must_agree(Repo(repo.root / "sub"))


def test_links_are_not_followed(tmp_path):
    repo = Repo.new(tmp_path / "r")
    repo.commit("one", a="1\n")
    shutil.move(repo.root / ".git", tmp_path / "elsewhere")
    (repo.root / ".git").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unusable, match="symbolic link"):
        opened(repo.root)
    (repo.root / ".git").unlink()
    shutil.move(tmp_path / "elsewhere", repo.root / ".git")
    secret = tmp_path / "secret"
    secret.write_text("0" * 40 + "\n")
    (repo.root / ".git/refs/heads/led").symlink_to(secret)
    (repo.root / ".git/refs/tags").rmdir()
    (repo.root / ".git/refs/tags").symlink_to(tmp_path)
    assert not [path for path in read(repo.root) if b"led" in path or b"tags" in path]


def test_what_is_not_covered_is_named(tmp_path):
    repo = Repo.new(tmp_path / "r")
    repo.commit("one", a="1\n")
    config = repo.root / ".git/config"
    kept = config.read_text()
    config.write_text(kept + "[extensions]\n\trefStorage = reftable\n")
    with pytest.raises(Unusable, match="reftable"):
        opened(repo.root)
    config.write_text(kept)
    repo("update-index", "--split-index")
    with open_root(str(repo.root)) as tree:
        found = Repository.at(tree, str(repo.root))
        assert found is not None
        with found:
            assert found.part("index").why_not.startswith(
                "a split index is not recorded; git update-index --no-split-index"
            )
            assert not found.part("index").is_covered
            assert not found.part("refs").why_not


@pytest.mark.parametrize("cut", [0, 3, 11, 40, 70, -1])
def test_a_damaged_index_is_named_and_never_raises(tmp_path, cut):
    repo = Repo.new(tmp_path / "r")
    repo.commit("one", a="1\n", b="2\n")
    path = repo.root / ".git/index"
    data = path.read_bytes()
    path.write_bytes(data[:cut] if cut >= 0 else data[:30] + b"\xff\xff" + data[32:])
    with open_root(str(repo.root)) as tree:
        found = Repository.at(tree, str(repo.root))
        assert found is not None
        with found:
            part = found.part("index")
            assert part.states is None and "index cannot be read" in part.why_not


def test_a_fifo_in_place_of_a_ref_does_not_block(tmp_path):
    repo = Repo.new(tmp_path / "r")
    repo.commit("one", a="1\n")
    os.mkfifo(repo.root / ".git/refs/heads/pipe")
    (repo.root / ".git/MERGE_MSG").unlink(missing_ok=True)
    os.mkfifo(repo.root / ".git/MERGE_MSG")
    with open_root(str(repo.root)) as tree:
        found = Repository.at(tree, str(repo.root))
        assert found is not None
        with found:
            assert set(found.part("refs").states or ()) == {REFS + b"heads/main"}
            assert "MERGE_MSG is no file" in found.part("merging").why_not


# -- what is known -----------------------------------------------------------------


@pytest.fixture
def store(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir()
    journal = Journal(folder / "journal.db", create=True)
    yield folder, journal, MemoryBlobs()
    journal.close()


def state_of(store, repo: Repo) -> GitState:
    folder, journal, blobs = store
    return GitState(repo.root, folder, journal, blobs)


def look(state: GitState):
    with open_root(str(state.root)) as tree:
        seen = state.look(tree)
    state.journaled(seen, state.journal.head().seq)
    return seen


def test_first_sight_is_no_change_and_then_only_what_moved_is(tmp_path, store):
    repo = Repo.new(tmp_path / "r")
    first = repo.commit("one", a="1\n", b="2\n")
    state = state_of(store, repo)
    assert look(state).changes == ()
    assert look(state).changes == ()
    second = repo.commit("two", a="3\n")
    seen = look(state_of(store, repo))  # another process
    assert [c.path for c in seen.changes] == [b".git/index/a", b".git/refs/heads/main"]
    blobs = store[2]
    moved = seen.changes[1]
    assert moved.before is not None and moved.after is not None
    assert blobs.get(moved.before.content) == first.encode()
    assert blobs.get(moved.after.content) == second.encode()
    assert look(state_of(store, repo)).changes == ()


def test_nothing_is_parsed_while_nothing_changed(tmp_path, store, monkeypatch):
    repo = Repo.new(tmp_path / "r")
    repo.commit("one", a="1\n")
    time.sleep(0.03)  # older than the clock's grain
    state = state_of(store, repo)
    look(state)
    parsed = []
    monkeypatch.setattr(index_file, "parse", lambda *_: parsed.append(1))
    assert look(state).changes == ()
    assert look(state_of(store, repo)).changes == ()
    assert parsed == []


def test_a_refresh_by_git_is_no_change(tmp_path, store):
    repo = Repo.new(tmp_path / "r")
    repo.commit("one", a="1\n")
    state = state_of(store, repo)
    look(state)
    os.utime(repo.root / "a", ns=(1, 1))
    repo("status")
    assert look(state).changes == ()


def test_remote_refs_are_left_out_and_other_local_ones_are_not(tmp_path, store):
    repo = Repo.new(tmp_path / "r")
    first = repo.commit("one", a="1\n")
    state = state_of(store, repo)
    look(state)
    repo("update-ref", "refs/remotes/origin/main", first)
    assert look(state).changes == ()
    repo("update-ref", "refs/something/else", first)
    assert [c.path for c in look(state).changes] == [b".git/refs/something/else"]


def test_a_repository_that_comes_and_goes(tmp_path, store):
    (tmp_path / "r").mkdir()
    state = state_of(store, Repo(tmp_path / "r"))
    assert look(state).changes == ()
    repo = Repo.new(tmp_path / "r")
    repo.commit("one", a="1\n")
    assert [c.path for c in look(state).changes] == [b".git/index/a", b".git/refs/heads/main"]
    shutil.rmtree(repo.root / ".git")
    assert [(c.path, c.after) for c in look(state).changes] == [(HEAD, None)]
    assert look(state).changes == ()


def test_a_part_that_cannot_be_read_stays_as_known(tmp_path, store):
    repo = Repo.new(tmp_path / "r")
    repo.commit("one", a="1\n")
    state = state_of(store, repo)
    look(state)
    index = repo.root / ".git/index"
    kept = index.read_bytes()
    index.write_bytes(b"torn")
    seen = look(state)
    assert seen.changes == () and "index cannot be read" in seen.lacking[0][1]
    index.write_bytes(kept)
    assert look(state).changes == ()


def test_without_its_cache_the_journal_tells_what_was_known(tmp_path, monkeypatch):
    monkeypatch.setenv("TAKEBACK_HOME", str(tmp_path / "home"))
    repo = Repo.new(tmp_path / "r")
    repo.commit("one", a="1\n")
    with takeback.open(repo.root, create=True) as ws:
        ws.checkpoint()
        repo.commit("two", a="2\n")
        ws.checkpoint()
        repo.commit("three", a="3\n")
        (ws.store.folder / "git").unlink()
    with takeback.open(repo.root) as ws:
        ws.checkpoint()
        paths = [sorted(e.changes) for e in ws.history().effects if e.domain == "git"]
        assert paths == [[b".git/index/a", b".git/refs/heads/main"]] * 2


def test_what_breaks_a_look_at_a_repository_is_named_and_breaks_no_look_at_the_files(tmp_path, monkeypatch):
    monkeypatch.setenv("TAKEBACK_HOME", str(tmp_path / "home"))
    repo = Repo.new(tmp_path / "project")
    with takeback.open(repo.root, create=True) as ws:
        repo.write("a", "1\n")

        def broken() -> None:
            raise TypeError("of another shape")

        monkeypatch.setattr(ws.observer.git, "known", broken)
        assert [path for path, why in ws.checkpoint().partial if "of another shape" in why] == [".git"]
        assert ws.history().effects[-1].changes.keys() == {b"a"}


def test_a_lost_cache_of_the_index_is_a_first_sight(tmp_path, store):
    repo = Repo.new(tmp_path / "r")
    repo.commit("one", a="1\n")
    look(state_of(store, repo))
    (store[0] / "git-index").unlink()
    repo.commit("two", b="2\n")
    assert [c.path for c in look(state_of(store, repo)).changes] == [b".git/refs/heads/main"]
    repo.commit("three", b="3\n")
    assert b".git/index/b" in [c.path for c in look(state_of(store, repo)).changes]


def test_words():
    assert called(b".git/refs/heads/a/b") == "a/b"
    assert called(b".git/refs/tags/v1") == "tag v1"
    assert value_told(b"ref: refs/heads/main") == "main"
    assert value_told(b"0123456789" * 4) == "0123456"
    paths = [HEAD, b".git/refs/heads/main", *(INDEX + b"%d" % n for n in range(3))]
    assert amount(paths) == "HEAD, main, 3 index entries"
