"""Budgets hold: what is kept beyond them is only what may not go yet, and that is said with its reason and its end."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import takeback
from sampling import examples
from support import picture, set_clock
from takeback.workspace import Workspace

DAY = 86_400.0


class Days:
    """A clock that tests move."""

    def __init__(self, ws: Workspace) -> None:
        self._begun = time.time()
        self.passed = 0.0
        set_clock(ws, lambda: self._begun + self.passed * DAY)


@contextmanager
def opened(project: Path, **budget: int) -> Iterator[tuple[Workspace, Days]]:
    with takeback.open(project, create=True) as ws:
        ws.settings = ws.settings._replace(**budget)
        ws.observer.settings = ws.settings
        yield ws, Days(ws)


def labels(ws: Workspace) -> list[str]:
    return [c.label for c in ws.history().checkpoints]


def steps(ws: Workspace, thread: str) -> list[int]:
    return [ws.threads.load(state)["step"] for state in reversed(ws.threads.list(thread))]


# -- the budget of checkpoints and bytes ---------------------------------------


def test_young_checkpoints_beyond_the_budget_are_told_until_they_may_go(project: Path) -> None:
    with opened(project, keep=3) as (ws, days):
        for n in range(6):
            days.passed += 1 / 24
            (project / "f").write_text(str(n))
            ws.checkpoint(f"c{n}")
        found = ws.status().budget
        assert found is not None and (found.checkpoints, found.keep, found.over, found.young) == (7, 3, 4, 7)
        third = ws.history().checkpoints[-4]
        assert found.until is not None and abs(found.until - (third.at + DAY)) < 1, "when the newest of the four may go"
        days.passed += 1.01
        ws.checkpoint("a day later")
        assert labels(ws) == ["c4", "c5", "a day later"] and not ws.status().budget.is_over


def test_the_size_is_kept_however_few_checkpoints_there_are(project: Path) -> None:
    """Counted were those that are left, and with few of them no eighth ever came."""
    with opened(project, keep=3, max_bytes=1_000_000) as (ws, days):
        for n in range(20):
            days.passed += 2
            (project / "f").write_bytes(os.urandom(600_000))
            ws.checkpoint(f"c{n}")
            assert ws.store.size() < 1_400_000, "the last one and one that is on its way out"


def test_large_files_that_fit_one_by_one_and_not_together_are_named(project: Path) -> None:
    with opened(project, max_bytes=20_000_000) as (ws, _):
        for n in range(5):
            (project / f"{n}.bin").write_bytes(os.urandom(9_000_000))
        taken = ws.checkpoint("large")
        assert len(taken.too_large) == 3 and ws.store.size() < 21_000_000
        uncovered = dict(ws.status().uncovered)
        assert sum("budget has room for" in why for why in uncovered.values()) == 3


def test_bytes_beyond_the_budget_are_told(project: Path) -> None:
    with opened(project, max_bytes=1_000_000) as (ws, _):
        for n in range(3):
            (project / "f").write_bytes(os.urandom(900_000))
            ws.checkpoint(f"c{n}")
        found = ws.status().budget
        assert found is not None and found.over == 3 and found.over_bytes > 1_500_000 and found.until is not None


# -- of each thread ------------------------------------------------------------


def save(ws: Workspace, thread: str, count: int, first: int = 0) -> None:
    for step in range(first, first + count):
        ws.threads.save(thread, {"step": step, "text": f"{thread} {step} " * 40})


def test_keep_counts_the_states_of_each_thread(project: Path) -> None:
    with opened(project, keep=3) as (ws, days):
        save(ws, "a", 6)
        save(ws, "b", 2)
        found = ws.status().budget
        assert found is not None and found.threads == (("a", 3),) and found.until is not None
        days.passed += 1.5
        for n in range(8):
            ws.checkpoint(f"c{n}")
        assert steps(ws, "a") == [3, 4, 5] and steps(ws, "b") == [0, 1]
        assert ws.status().budget.threads == () and ws.verify(data=True).ok
        row = ws.store.journal.last("prune")
        assert row is not None and row.body["automatic"] is True


def test_threads_alone_keep_their_budget_by_saving(project: Path) -> None:
    """Where no file is ever looked at there is no checkpoint after which it could be done."""
    with takeback.open(project, create="state") as ws:
        ws.settings = ws.settings._replace(keep=4)
        days = Days(ws)
        save(ws, "a", 10)
        days.passed += 2
        save(ws, "a", 70, first=10)  # one of these is the one that looks
        kept = steps(ws, "a")
        assert kept[0] >= 10 and kept[-1] == 79 and ws.verify(data=True).ok


def test_old_states_go_and_the_head_stays(project: Path) -> None:
    with opened(project, max_age=int(5 * DAY)) as (ws, days):
        save(ws, "a", 3)
        days.passed += 10
        for n in range(9):
            ws.checkpoint(f"c{n}")
        assert steps(ws, "a") == [2]


def test_what_a_fork_a_handoff_and_a_redo_need_stays(project: Path) -> None:
    with opened(project, keep=1) as (ws, days):
        save(ws, "a", 6)
        listed = list(reversed(ws.threads.list("a")))
        ws.threads.fork("a", listed[1].id, "b")
        ws.threads.handoff("a", listed[2].id, to_agent="codex")
        ws.roll_back_thread("a", listed[3].id)
        days.passed += 2
        save(ws, "a", 1, first=9)
        for n in range(8):
            ws.checkpoint(f"c{n}")
        assert set(steps(ws, "a")) >= {1, 2, 9} and 0 not in steps(ws, "a")


def test_where_a_thread_was_is_stored_again_when_it_moves_on_after_a_prune(project: Path) -> None:
    """Else the take-back of the move would have nothing to go back to."""
    for is_cached in (True, False):
        with opened(project, keep=1) as (ws, days):
            name = f"cached {is_cached}"
            save(ws, name, 1)
            days.passed += 1
            ws.checkpoint("c1")  # the row that told of step 0 goes with the first checkpoint
            if not is_cached:
                ws.observer.thread_state.remove()
            save(ws, name, 1, first=1)
            ws.checkpoint("c2")
            assert ws.verify(data=True).ok
            assert ws.rollback("c1", state=True).whole
            assert ws.threads.load(ws.threads.get(name))["step"] == 0


# -- whatever happens ------------------------------------------------------------

ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 3), st.integers(1, 40_000)),
        st.tuples(st.just("checkpoint"), st.just(0), st.just(0)),
        st.tuples(st.just("agent"), st.integers(0, 3), st.integers(1, 2_000)),
        st.tuples(st.just("pin"), st.just(0), st.just(0)),
        st.tuples(st.just("record"), st.just(0), st.just(0)),
        st.tuples(st.just("save"), st.integers(0, 1), st.integers(1, 4)),
        st.tuples(st.just("wait"), st.just(0), st.integers(1, 60)),  # hours
        st.tuples(st.just("prune"), st.just(0), st.just(0)),
    ),
    min_size=5,
    max_size=25,
)


@given(ACTS, st.integers(1, 4), st.sampled_from([60_000, 10**9]))
@examples(60, 300)
def test_what_must_stay_stays(tmp_path_factory, acts, keep: int, max_bytes: int) -> None:
    """Young history, the last checkpoint, pinned ones, what stands outside the files, and the heads of threads."""
    project = tmp_path_factory.mktemp("p")
    with takeback.open(project, create=True, store=str(tmp_path_factory.mktemp("store"))) as ws:
        ws.settings = ws.settings._replace(keep=keep, max_bytes=max_bytes, max_age=int(3 * DAY))
        ws.observer.settings = ws.settings
        days = Days(ws)
        snapshots = {ws.history().checkpoints[-1].id: picture(project, times=False)}
        pinned: set[str] = set()
        recorded: list[str] = []
        heads: dict[str, int] = {}
        for what, which, size in acts:
            if what == "wait":  # what is wrongly gone stays gone, but may be old enough after that
                _nothing_is_missing(ws, snapshots, pinned, recorded, heads)
            if what == "write":
                (project / f"f{which}").write_bytes(os.urandom(size))
            elif what == "checkpoint":
                taken = ws.checkpoint("c")
                snapshots[taken.id] = picture(project, times=False)
            elif what == "agent":
                (project / f"f{which}").write_bytes(os.urandom(size))
                taken = ws.checkpoint(actor="claude")
                snapshots[taken.id] = picture(project, times=False)
            elif what == "pin":
                pinned.add(ws.pin(ws.history().checkpoints[-1].id).id)
            elif what == "record":
                recorded.append(ws.record_command("made a bucket", argv=["true"]).id)
            elif what == "save":
                for n in range(size):
                    ws.threads.save(f"t{which}", {"step": heads.get(f"t{which}", 0) + n})
                heads[f"t{which}"] = heads.get(f"t{which}", 0) + size - 1
            elif what == "wait":
                days.passed += size / 24
            else:
                from takeback.care import prune

                with ws.applying(), ws.writing():
                    prune.within_budget(ws)
                _nothing_is_missing(ws, snapshots, pinned, recorded, heads)
        _nothing_is_missing(ws, snapshots, pinned, recorded, heads)


@given(
    ACTS,
    st.integers(1, 4),
    st.sampled_from([60_000, 10**9]),
    st.sampled_from(["budget", "keep", "older_than", "max_bytes", "everything", "path"]),
)
@examples(40, 300)
def test_a_prune_does_what_its_dry_run_and_the_status_say(tmp_path_factory, acts, keep, max_bytes, how) -> None:
    project = tmp_path_factory.mktemp("p")
    with takeback.open(project, create=True, store=str(tmp_path_factory.mktemp("store"))) as ws:
        days = Days(ws)
        for at, (what, which, size) in enumerate(acts):
            if what in ("write", "agent"):
                (project / f"f{which}").write_bytes(os.urandom(size))
            if what in ("checkpoint", "agent"):
                ws.checkpoint("c" if what == "checkpoint" else "", actor="" if what == "checkpoint" else "claude")
            elif what == "pin":
                ws.pin(ws.history().checkpoints[-1].id)
            elif what == "record":
                ws.record_command("made a bucket", argv=["true"])
            elif what == "save":
                for n in range(size):
                    ws.threads.save(f"t{which}", {"step": n, "at": at, "text": "more and more " * 20})
                if size == 4:
                    ws.threads.fork(f"t{which}", ws.threads.list(f"t{which}")[1].id, f"fork {at}")
            elif what == "wait":
                days.passed += size / 24
            elif what == "prune" and ws.history().live:
                ws.take_back("undo", only=("files",))
        ws.settings = ws.settings._replace(keep=keep, max_bytes=max_bytes, max_age=int(3 * DAY))
        ws.observer.settings = ws.settings
        budget = {"keep": keep, "older_than": 3 * DAY, "max_bytes": max_bytes, "threads": True}
        asked = budget if how == "budget" else {"path": "f0"} if how == "path" else {how: budget.get(how, True)}
        try:
            said = ws.prune(**asked, dry_run=True)
        except takeback.NotFound:
            return  # f0 was never captured
        told = ws.status().budget
        before = sum(ws.store.blobs.sizes().values())
        done = ws.prune(**asked)
        assert (said.checkpoints, said.rows, said.states) == (done.checkpoints, done.rows, done.states)
        assert (said.freed, said.path_blobs) == (done.freed, done.path_blobs)
        assert (said.note, said.also) == (done.note, done.also)
        assert not done.freed or sum(ws.store.blobs.sizes().values()) < before
        assert ws.verify(data=True).ok
        if how == "budget":
            assert told is not None and (told.over, told.threads) == (len(done.checkpoints), done.states)
            again = ws.status().budget
            assert again is not None and (again.over, again.threads) == (0, ())


def _nothing_is_missing(ws, snapshots, pinned, recorded, heads) -> None:
    now = ws.clock()
    there = {c.id: c for c in ws.history().checkpoints}
    rows = {row.id: row for row in ws.store.journal.rows(kinds=("checkpoint",))}
    newest = max(rows.values(), key=lambda row: row.seq)
    for id, row in rows.items():
        if now - row.at < DAY or row is newest or id in pinned:
            assert id in there, (id, row.at - now)
    for id in there.keys() & snapshots.keys():  # and each that is there can be brought back whole
        if id in pinned or id == newest.id or now - there[id].at < DAY:
            with tempfile.TemporaryDirectory(dir=ws.root.parent) as folder:
                into = Path(folder, "tree")
                ws.restore(id, ".", to=into)
                shown, wanted = picture(into, times=False), dict(snapshots[id])
            shown.pop(b""), wanted.pop(b"")
            assert shown == wanted
    live = {act.id for act in ws.effects() if act.shown_state == "live"}
    assert live == set(recorded)
    for name, step in heads.items():
        assert ws.threads.load(ws.threads.get(name))["step"] == step
    states = [row for row in ws.store.journal.rows(kinds=("state",)) if now - row.at < DAY]
    assert all(row.body is not None for row in states)
    assert ws.verify(data=True).ok
