"""The real workspace against the model of what it means, over random histories; and what it promises by itself.

Both play the same story (changes by hand, by a command or seen by `watch`, changes an actor vouches for, checkpoints,
take-backs, prune). After each
operation the trees must be equal, and so must the units of work that are live.
More examples: TAKEBACK_TEST_EXAMPLES=2000 pytest tests/test_workspace_model.py
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import model
import sampling
import takeback
from model import Turn
from support import age, assert_folded_whole, picture
from takeback.model.effects import same, text
from takeback.system.safefs.portable import PortableFolder
from takeback.system.safefs.posix import PosixFolder
from takeback.text import linediff


def examples(share: float = 1.0):
    return sampling.examples(max(5, int(60 * share)), int(300 * share), share=share)


@pytest.fixture(autouse=True)
def without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is durable is proved elsewhere; here each take-back would wait for the whole file system."""
    monkeypatch.setattr(PosixFolder, "sync", lambda self: None)
    monkeypatch.setattr(PortableFolder, "sync", lambda self: None)


# -- one story, played twice -------------------------------------------------

PATHS = ("p", "q", "d/r")
START = {"p": ("0", "0", "0"), "q": ("0", "0", "0")}


def merge(base: model.State, ours: model.State, theirs: model.State) -> model.State:
    """The model with the real merge of lines."""
    if ours in (base, theirs):
        return theirs
    if theirs == base:
        return ours
    if base is None or ours is None or theirs is None:
        raise model.Conflict
    try:
        merged = linediff.merge3(*(_bytes(s) for s in (base, ours, theirs)), False)
    except linediff.Conflict:
        raise model.Conflict from None
    return tuple(merged.decode().split("\n--\n")[:-1])


def _bytes(lines: model.Lines) -> bytes:
    """Lines with something between them, so that changes of neighbours do not touch."""
    return "".join(f"{line}\n--\n" for line in lines).encode()


class Both:
    """The workspace and the model, driven alike."""

    def __init__(self, root: Path, home: Path | None) -> None:
        self.root = root
        self.root.joinpath("d").mkdir(parents=True)
        for path, lines in START.items():
            self.root.joinpath(path).write_bytes(_bytes(lines))
        self.ws = takeback.open(root, create=True, store="memory" if home is None else str(home))
        self.model = model.Workspace(dict(START), merge)
        self.turn = {"A": 1, "B": 1}

    def play(self, kind: str, *args) -> None:
        getattr(self, kind)(*args)

    # changes

    def hand(self, change: tuple) -> None:
        path, line, value = change
        lines = list(self.model.world.get(path) or ("0", "0", "0"))
        if line is not None:
            lines[line] = value
        self.model.world[path] = None if line is None else tuple(lines)
        if line is None:
            self.root.joinpath(path).unlink(missing_ok=True)
        else:
            self.root.joinpath(path).write_bytes(_bytes(tuple(lines)))

    def vouched(self, actor: str, how: str, changes: list[tuple]) -> None:
        """An actor's changes, with whatever else is found at its checkpoint or its named paths."""
        for change in changes:
            self.hand(change)
        turn = Turn(actor, self.turn[actor])
        if how == "track":
            paths = sorted({c[0] for c in changes})
            self.model.track(paths, turn)
            self.ws.track(paths, actor=actor)
        else:
            self.model.checkpoint("x" if how == "named" else "", turn)
            self.ws.checkpoint("x" if how == "named" else "", actor=actor)
            self.turn[actor] += 1

    def run(self, changes: list[tuple]) -> None:
        """A command that a person runs."""
        began = self.model.checkpoint("before")
        since = self.ws.checkpoint("before")
        for change in changes:
            self.hand(change)
        self.model.checkpoint("", Turn("run", began))
        self.ws.ran(since, "make")

    def moment(self) -> None:
        """A tree that a person follows."""
        self.model.moment()
        self.ws.moment()

    def checkpoint(self, named: bool) -> None:
        self.model.checkpoint("named" if named else "")
        self.ws.checkpoint("named" if named else "", named=named)

    # take-backs

    def undo(self, n: int, consent: dict) -> None:
        self._take_back(self.model.undo(n, **consent), lambda: self.ws.undo(n, **consent))

    def redo(self, n: int, consent: dict) -> None:
        consent = {k: v for k, v in consent.items() if k in ("merge", "force")}
        self._take_back(self.model.redo(n, **consent), lambda: self.ws.redo(n, **consent))

    def rollback(self, number: int, consent: dict) -> None:
        found = self.checkpoints()
        to, checkpoint = found[number % len(found)]
        plan = self.model.rollback(to, **consent)
        seen = self.ws.plan("rollback", checkpoint.id, **consent)
        assert {text(u.path) for units in seen.asks.values() for u in units} == {u.path for u in plan.asks}
        self._take_back(plan, lambda: self.ws.take_back("rollback", checkpoint.id, **consent))
        if consent.get("also") and not plan.left and all(s.verdict in model.TAKEN for s in plan.steps):
            assert self.tree() == {p: s for p, s in self.model.journal[to].tree.items() if s is not None}

    def revert(self, number: int, consent: dict) -> None:
        if not (found := self.revertible()):
            return
        consent = {k: v for k, v in consent.items() if k in ("merge", "force")}
        seq, id = found[number % len(found)]
        self._take_back(self.model.revert(seq, **consent), lambda: self.ws.revert(id, **consent))

    def revert_path(self, path: str, consent: dict) -> None:
        consent = {k: v for k, v in consent.items() if k in ("merge", "force")}
        if not any(path in row.changes for _, row in self.model.rows()) and self.model.world.get(
            path
        ) == self.model.known.get(path):
            return  # nothing recorded is called so
        self._take_back(self.model.revert(path, **consent), lambda: self.ws.revert(f"./{path}", **consent))

    def _take_back(self, plan: model.Plan, act) -> None:
        self.model.apply(plan)
        outcome = act()
        assert not outcome.counts["failed"]
        verdicts = {(s.path, s.verdict) for s in plan.steps}
        assert {(text(s.path), s.verdict) for s in outcome.plan.steps} == verdicts

    def prune(self, keep: int) -> None:
        self.model.look()
        self.ws.plan("undo")  # a look, so that both have seen the same
        self.model.prune(keep)
        self.ws.prune(keep=keep)

    # what they have in common

    def checkpoints(self) -> list[tuple]:
        ours = [i for i, e in enumerate(self.model.journal) if isinstance(e, model.Checkpoint)]
        return list(zip(ours, self.ws.history().checkpoints, strict=True))

    def revertible(self) -> list[tuple[int, str]]:
        history = self.ws.history()
        ours = [i for i, e in enumerate(self.model.journal) if isinstance(e, model.Effect) and not e.by_takeback]
        found = list(zip(ours, (e.id for e in history.effects if not e.takeback), strict=True))
        ours = [i for i, e in enumerate(self.model.journal) if isinstance(e, model.Takeback)]
        theirs = sorted(history.takebacks.values(), key=lambda t: t.seq)
        return found + [(i, t.id) for i, t in zip(ours, theirs, strict=True) if t.verb != "redo"]

    def tree(self) -> dict[str, tuple[str, ...]]:
        found = {}
        for path in PATHS:
            with contextlib.suppress(FileNotFoundError):
                found[path] = tuple(self.root.joinpath(path).read_text().split("\n--\n")[:-1])
        assert {p.name for p in self.root.iterdir()} <= {"p", "q", "d"}, "a stray file"
        return found

    def check(self) -> None:
        assert_folded_whole(self.ws)
        """Both say the same of the tree, of what is live, and of what undo and redo would do next."""
        assert self.tree() == self.model.tree()
        history = self.ws.history()
        ordinal = {e.seq: n for n, e in enumerate(history.effects)}
        expected = {seq: n for n, (seq, _) in enumerate(self.model.rows())}
        live = {(ordinal[seq], text(path)) for seq, path in history.live}
        assert live == {(expected[u.seq], u.path) for u in self.model.live()}
        assert len(history.standing) == len(self.model.standing())


@contextlib.contextmanager
def both(operations: list[tuple], place: Path, disk: bool = False) -> Iterator[Both]:
    folder = Path(tempfile.mkdtemp(dir=place))
    found = Both(folder / "root", folder / "home" if disk else None)
    try:
        for operation in operations:
            found.play(*operation)
            found.check()
        yield found
    finally:
        found.ws.close()
        shutil.rmtree(folder)


paths = st.sampled_from(PATHS)
actors = st.sampled_from(("A", "B"))
edits = st.one_of(
    st.tuples(paths, st.integers(0, 2), st.sampled_from("123")),  # set one line
    st.tuples(paths, st.integers(0, 2), st.sampled_from("01")),
    st.tuples(paths, st.none(), st.none()),  # delete
)
consents = st.sampled_from(({}, {}, {"merge": True}, {"force": True}, {"everything": True}))
narrowed = st.sampled_from(({}, {"actors": ["A"]}, {"actors": ["A"], "merge": True}, {"actors": ["B"], "force": True}))
answers = st.sampled_from(
    ({"also": ("people",)}, {"also": ("people",), "merge": True}, {"also": ("people", "uncertain")})
)
by_hand = st.tuples(st.just("hand"), edits)
by_command = st.tuples(st.just("run"), st.lists(edits, min_size=1, max_size=2))
moments = st.tuples(st.just("moment"))
vouched = st.tuples(
    st.just("vouched"),
    actors,
    st.sampled_from(("checkpoint", "checkpoint", "track", "named")),
    st.lists(edits, min_size=1, max_size=2),
)
marks = st.tuples(st.just("checkpoint"), st.booleans())
takebacks = st.one_of(
    st.tuples(st.just("undo"), st.integers(1, 2), st.one_of(consents, narrowed)),
    st.tuples(st.just("redo"), st.integers(1, 2), consents),
    st.tuples(st.just("rollback"), st.integers(0, 20), st.one_of(consents, narrowed, answers)),
    st.tuples(st.just("revert"), st.integers(0, 20), consents),
    st.tuples(st.just("revert_path"), paths, consents),
)
prunes = st.tuples(st.just("prune"), st.integers(1, 4))
work = st.one_of(by_hand, by_hand, by_command, moments, vouched, vouched, marks)
histories = st.lists(st.one_of(work, work, takebacks), max_size=14)
with_prune = st.lists(st.one_of(work, work, takebacks, takebacks, prunes), max_size=18)


@examples(3)
@given(histories)
def test_the_workspace_does_what_the_model_says(tmp_path_factory, operations):
    with both(operations, tmp_path_factory.getbasetemp()):
        pass


@examples(2)
@given(with_prune)
def test_the_same_where_history_is_pruned(tmp_path_factory, operations):
    with both(operations, tmp_path_factory.getbasetemp()) as story:
        assert story.ws.verify().ok


@examples(0.5)
@given(with_prune)
def test_the_same_with_a_store_on_disk_reopened_each_time(tmp_path_factory, operations):
    with both([], tmp_path_factory.getbasetemp(), disk=True) as story:
        for operation in operations:
            story.play(*operation)
            story.check()
            story.ws.close()
            story.ws = takeback.open(story.root, store=str(story.root.parent / "home"))
        assert story.ws.verify(data=True).ok


# -- what the workspace promises by itself, on wilder trees --------------------

PLACES = ("a", "b", "d", "d/x", "d/y", "d/e", "d/e/z", "f/w")


class Wild:
    """A small tree with folders, links and modes, and random things that happen to it."""

    def __init__(self, place: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=place))
        self.root = self.folder / "root"
        (self.root / "d" / "e").mkdir(parents=True)
        (self.root / "empty").mkdir(mode=0o750)
        for path in ("a", "b", "d/x", "d/e/z"):
            self.root.joinpath(path).write_text(f"{path}\none\ntwo\nthree\n")
        self.root.joinpath("b").chmod(0o640)
        self.root.joinpath("d/link").symlink_to("../a")
        os.link(self.root / "d/x", self.root / "twin")
        age(self.root)
        self.ws = takeback.open(self.root, create=True, store="memory")

    def __enter__(self) -> Wild:
        return self

    def __exit__(self, *_: object) -> None:
        self.ws.close()
        shutil.rmtree(self.folder)

    def play(self, operations: list[tuple]) -> None:
        for kind, path, *rest in operations:
            with contextlib.suppress(OSError):
                getattr(self, kind)(self.root / path if path else self.root, *rest)

    def write(self, path: Path, content: str) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(content * 3)

    def delete(self, path: Path) -> None:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def chmod(self, path: Path, mode: int) -> None:
        path.lstat()
        path.chmod(mode | 0o400 | (0o300 if path.is_dir() else 0)) if not path.is_symlink() else None

    def symlink(self, path: Path, target: str) -> None:
        path.symlink_to(target)

    def move(self, path: Path, to: str) -> None:
        path.rename(self.root / to)

    def link(self, path: Path, to: str) -> None:
        os.link(path, self.root / to, follow_symlinks=False)

    def mkdir(self, path: Path) -> None:
        path.mkdir()

    def checkpoint(self, _: Path, actor: str) -> None:
        self.ws.checkpoint(actor=actor, named=False)

    def undo(self, _: Path, n: int) -> None:
        self.ws.undo(n)

    def redo(self, _: Path, n: int) -> None:
        self.ws.redo(n)

    def files(self) -> dict[bytes, tuple]:
        """Everything but the times of folders."""
        return {
            p: v if v[4] is None or not os.path.isdir(os.fsencode(self.root) + b"/" + p) else v[:5]
            for p, v in picture(self.root).items()
        }


places = st.sampled_from(PLACES)
happenings = st.one_of(
    st.tuples(st.just("write"), places, st.sampled_from(("new\n", "other\n", ""))),
    st.tuples(st.just("write"), places, st.sampled_from(("new\n", "other\n"))),
    st.tuples(st.just("delete"), places),
    st.tuples(st.just("chmod"), places, st.sampled_from((0o600, 0o755, 0o4711))),
    st.tuples(st.just("symlink"), places, st.sampled_from(("a", "nowhere/at/all", ".."))),
    st.tuples(st.just("move"), places, places),
    st.tuples(st.just("link"), places, places),
    st.tuples(st.just("mkdir"), places),
    st.tuples(st.just("checkpoint"), st.just(""), st.sampled_from(("", "A", "B"))),
)
stepping = st.one_of(
    st.tuples(st.just("undo"), st.just(""), st.integers(1, 2)),
    st.tuples(st.just("redo"), st.just(""), st.integers(1, 2)),
)
wild = st.lists(happenings, max_size=10)
wilder = st.lists(st.one_of(happenings, happenings, happenings, stepping), max_size=14)


@examples()
@given(wild)
def test_rollback_all_restores_the_checkpoints_tree_with_every_mode_and_time(tmp_path_factory, operations):
    with Wild(tmp_path_factory.getbasetemp()) as story:
        before = picture(story.root)
        story.play(operations)
        outcome = story.ws.rollback("start", everything=True)
        assert outcome.whole
        times = bool(outcome.plan.taken)  # times alone are nothing to take back
        assert picture(story.root, times) == (before if times else {p: (*v[:5], 0, *v[6:]) for p, v in before.items()})


@examples()
@given(wilder)
def test_rollback_all_after_take_backs_restores_it_too(tmp_path_factory, operations):
    with Wild(tmp_path_factory.getbasetemp()) as story:
        before = story.files()
        story.play(operations)
        assert story.ws.rollback("start", everything=True).whole
        assert story.files() == before
        assert not story.ws.plan("rollback", "start", everything=True).steps


@examples()
@given(wild, st.integers(1, 3))
def test_n_undos_and_n_redos_change_nothing(tmp_path_factory, operations, n):
    with Wild(tmp_path_factory.getbasetemp()) as story:
        story.play(operations)
        before = story.files()
        undone = sum(bool(story.ws.undo().results) for _ in range(n))
        for _ in range(undone):
            story.ws.redo()
        # Links made by others to what was undone are broken, and stay so: all but the groups is as before.
        assert {p: v[:6] for p, v in story.files().items()} == {p: v[:6] for p, v in before.items()}


@examples()
@given(wilder, st.sampled_from((("undo",), ("redo",), ("rollback",), ("revert", "a"), ("revert", "d"))), st.booleans())
def test_the_dry_run_is_the_result(tmp_path_factory, operations, request_, everything):
    verb, *what = request_
    options = {"everything": everything} if verb in ("undo", "rollback") else {"force": everything}
    with Wild(tmp_path_factory.getbasetemp()) as story:
        story.play(operations)
        try:
            plan = story.ws.plan(verb, *(f"./{w}" for w in what), **options)
        except takeback.NotFound:
            return
        before = story.files()
        outcome = story.ws.apply(plan)
        assert {r.path for r in outcome.results if r.result == "done"} == {s.path for s in plan.taken}
        after = story.files()
        touched = {s.path for s in plan.taken}
        assert {p: v[:5] for p, v in before.items() if p not in touched and p} == {
            p: v[:5] for p, v in after.items() if p not in touched and p
        }
        from takeback.domains.files import Files
        from takeback.system.safefs import open_root

        with open_root(str(story.root), story.ws.settings.portable) as tree:
            files = Files(tree, story.ws.store.blobs)
            for step in plan.taken:
                now = files.present(step.path)
                assert (now is None) == (step.goal is None), step.path
                assert now is None or step.goal is None or now[:5] == step.goal[:5], step.path


@examples()
@given(wilder)
def test_a_second_rollback_finds_nothing(tmp_path_factory, operations):
    with Wild(tmp_path_factory.getbasetemp()) as story:
        story.play(operations)
        story.ws.rollback("start")
        before = story.files()
        again = story.ws.rollback("start")
        assert not again.id and all(same(s.expected, s.goal) for s in again.plan.taken)
        assert story.files() == before


@examples()
@given(wilder)
def test_verify_stays_green_and_the_index_is_only_a_cache(tmp_path_factory, operations):
    with Wild(tmp_path_factory.getbasetemp()) as story:
        story.play(operations)
        story.ws.checkpoint("end")
        assert story.ws.verify(data=True).ok
        story.ws.observer.forget()  # the known tree again, from the journal alone
        assert story.ws.observer.known().folders[b""].identity == story.ws.history().checkpoints[-1].snapshot.identity
        story.ws.checkpoint("again")
        assert not story.ws.history().layers(b"a", story.ws.history().checkpoints[-2].seq)


@examples()
@given(wild, places, st.sampled_from(("p", "other")))
def test_a_plan_goes_stale_only_by_what_it_depends_on(tmp_path_factory, operations, path, content):
    with Wild(tmp_path_factory.getbasetemp()) as story:
        story.play(operations)
        story.ws.checkpoint(actor="A")
        plan = story.ws.plan("rollback", "start", actors=["A"])
        before = picture(story.root, times=False)
        story.play([("write", path, content)])
        now = picture(story.root, times=False)
        changed = {p for p in {*before, *now} if before.get(p) != now.get(p)}
        if changed & {s.path for s in plan.taken}:
            with pytest.raises(takeback.Stale):
                story.ws.apply(plan)
            assert picture(story.root, times=False) == now
        elif not any(s.goal is None and any(p.startswith(s.path + b"/") for p in changed) for s in plan.taken):
            assert story.ws.apply(plan).counts["failed"] == 0
