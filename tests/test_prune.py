"""Prune moves a horizon: what goes, what never goes, and that it is journaled."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

import takeback
from support import set_clock
from takeback.workspace import Workspace

DAY = 86400.0


@pytest.fixture
def aged(ws: Workspace, project: Path) -> Workspace:
    """Ten checkpoints, one a day, each with other bytes."""
    import time

    now = time.time()
    today = [0.0]
    set_clock(ws, lambda: now + today[0] * DAY)
    for n in range(10):
        today[0] += 1
        (project / "f").write_bytes(bytes([n]) + os.urandom(100_000))
        ws.checkpoint(f"c{n}")
    return ws


def labels(ws: Workspace) -> list[str]:
    return [c.label for c in ws.history().checkpoints]


def test_keep_keeps_the_newest(aged: Workspace):
    size = aged.store.size()
    found = aged.prune(keep=3)
    assert labels(aged) == ["c7", "c8", "c9"]
    assert len(found.checkpoints) == 8 and found.freed > 500_000 and aged.store.size() < size - 500_000
    assert aged.verify(data=True).ok


def test_older_than(aged: Workspace):
    aged.prune(older_than=3.5 * DAY)
    assert labels(aged) == ["c6", "c7", "c8", "c9"]


def test_max_bytes(aged: Workspace):
    aged.prune(max_bytes=450_000)
    assert labels(aged)[-1] == "c9" and len(labels(aged)) < 6
    assert aged.store.size() < 700_000


def test_the_last_checkpoint_never_goes(aged: Workspace, project: Path):
    aged.prune(older_than=0.000001)
    assert labels(aged) == ["c9"]
    data = (project / "f").read_bytes()
    (project / "f").write_text("harm")
    aged.rollback()
    assert (project / "f").read_bytes() == data
    with pytest.raises(takeback.UsageError):
        aged.prune(keep=0)


def test_everything_empties_the_workspace_and_it_goes_on_from_there(aged: Workspace, project: Path):
    aged.pin("c2")
    aged.prune(everything=True)
    assert labels(aged) == []
    assert not list(aged.store.blobs.ids())
    assert aged.verify(data=True).ok
    with pytest.raises(takeback.NotFound):
        aged.rollback()
    before = (project / "f").read_bytes()
    aged.checkpoint("anew")
    (project / "f").write_text("harm")
    aged.rollback()
    assert (project / "f").read_bytes() == before


def test_a_dry_run_says_the_same_and_does_nothing(aged: Workspace):
    head = aged.store.journal.head()
    dry = aged.prune(keep=3, dry_run=True)
    assert aged.store.journal.head() == head and len(labels(aged)) == 11
    assert dry.checkpoints == aged.prune(keep=3).checkpoints


def test_pinned_checkpoints_keep_their_snapshot_and_restore_works(aged: Workspace, project: Path):
    aged.pin("c2")
    aged.prune(keep=2)
    assert labels(aged) == ["c2", "c8", "c9"]
    aged.restore("c2", "f", to=project.parent / "out")
    assert (project.parent / "out/f").read_bytes()[0] == 2
    with pytest.raises(takeback.NotFound, match="horizon") as told:
        aged.rollback("c2")
    assert "restore" in told.value.hint
    aged.pin("c2", keep=False)
    aged.prune(keep=2)
    assert labels(aged) == ["c8", "c9"]


def test_it_is_journaled_and_envelopes_stay(aged: Workspace):
    rows = [(r.seq, r.id) for r in aged.store.journal.rows()]
    aged.prune(keep=2)
    now = list(aged.store.journal.rows())
    assert [(r.seq, r.id) for r in now[: len(rows)]] == rows
    assert now[-1].kind == "prune" and now[-1].body["forgot"]
    assert sum(r.body is None for r in now) == sum(last - first + 1 for first, last in now[-1].body["forgot"])


def test_undo_and_redo_after_the_horizon_still_work(ws: Workspace, project: Path):
    for n in range(6):
        (project / "f").write_text(f"{n}\n")
        ws.checkpoint(actor="claude")
    ws.undo()
    ws.prune(keep=3)
    ws.redo()
    assert (project / "f").read_text() == "5\n"
    ws.undo(2)
    assert (project / "f").read_text() == "3\n"
    assert ws.verify(data=True).ok


def test_turns_are_told_apart_across_a_prune(ws: Workspace, project: Path):
    """A turn's number must not come again once its checkpoints are gone."""
    for n in range(3):
        (project / f"f{n}").write_text("1\n")
        ws.checkpoint(actor="A")
    (project / "open").write_text("1\n")
    ws.track(["open"], actor="A")
    ws.prune(keep=1)
    (project / "same turn").write_text("1\n")
    ws.checkpoint(actor="A")
    for n in range(4):
        (project / f"later {n}").write_text("1\n")
        ws.checkpoint(actor="A")
    for n in reversed(range(4)):
        ws.undo()
        assert not (project / f"later {n}").exists()
        assert (project / "open").exists() and (project / "same turn").exists()
    ws.undo()
    assert not (project / "open").exists() and not (project / "same turn").exists()


def test_an_interrupted_takeback_keeps_what_it_needs(ws: Workspace, project: Path, monkeypatch):
    from takeback.domains.files import Files

    for n in range(3):
        (project / "f").write_text(f"{n}\n")
        ws.checkpoint(f"c{n}")

    def die(self, *_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Files, "_place", die)
    with pytest.raises(KeyboardInterrupt):
        ws.rollback("c0")
    monkeypatch.undo()
    assert ws.interrupted()
    try:
        ws.prune(keep=1)
    except takeback.TakebackError as told:
        assert "interrupted" in told.message
    finished = ws.resume()
    assert finished is not None and (project / "f").read_text() == "0\n"
    assert ws.verify(data=True).ok


def test_a_secret_is_taken_out_of_every_checkpoint_and_verify_stays_green(ws: Workspace, project: Path):
    secrets = [f"KEY=secret-number-{n}-{os.urandom(40).hex()}\n" for n in range(3)]
    (project / "other").write_text("1\n")
    for secret in secrets:
        (project / ".env").write_text(secret)
        ws.checkpoint()
    (project / ".env").unlink()
    ws.checkpoint("gone")
    found = ws.prune(path=".env")
    assert found.path_blobs == 3
    folder = ws.store.folder
    assert folder is not None
    assert not any(ws.store.blobs.has(sha256(s.encode()).digest()) for s in secrets)
    assert ws.verify(data=True).ok
    assert ws.store.journal.last("prune").body["path"] == ".env"
    (project / "other").write_text("2\n")
    outcome = ws.rollback(str(ws.history().checkpoints[1].number))
    assert [(r.path, r.result) for r in outcome.results] == [(b"other", "done"), (b".env", "kept")]
    assert (project / "other").read_text() == "1\n" and not (project / ".env").exists()
    assert ws.diff(str(ws.history().checkpoints[1].number)).files[0].note == "its bytes are not in the store"
    with pytest.raises(takeback.NotFound):
        ws.prune(path="never")


def test_automatic_prune_is_journaled_as_such(project: Path, monkeypatch):
    import time

    monkeypatch.setenv("TAKEBACK_CHECKPOINTS_MAX_AGE", "2d")
    with takeback.open(project, create=True) as ws:
        now = time.time()
        for n in range(6):
            set_clock(ws, lambda n=n: now + n * DAY)
            (project / "f").write_text(f"{n}\n")
            ws.checkpoint(f"c{n}")
        assert labels(ws)[0] in ("c3", "c4") and labels(ws)[-1] == "c5"
        assert ws.store.journal.last("prune").body["automatic"] is True


def test_a_budget_that_cannot_be_kept_is_told_with_what_stays(aged: Workspace):
    aged.pin("c2")
    planned = aged.prune(max_bytes=150_000, dry_run=True)
    assert planned.over > 50_000
    for part in ("would still take", "the last checkpoint 1", "pinned checkpoints 1"):
        assert part in planned.why_over, part
    done = aged.prune(max_bytes=150_000)
    assert labels(aged) == ["c2", "c9"]
    assert abs(done.over - (aged.store.size() - 150_000)) < 5_000, "but for lock files"
    assert "still takes" in done.why_over
    aged.pin("c2", keep=False)
    assert "pinned" not in aged.prune(max_bytes=150_000).why_over
    assert aged.prune(max_bytes=400_000).over == 0


def test_a_budget_that_fits_says_nothing(aged: Workspace):
    assert aged.prune(max_bytes=600_000, dry_run=True).why_over == ""
    assert aged.prune(max_bytes=10**9).why_over == ""
    assert aged.prune(keep=1).why_over == ""


def test_a_checkpoint_says_that_young_history_is_above_the_budget(ws: Workspace, project: Path):
    ws.settings = ws.settings._replace(max_bytes=200_000)
    told = []
    for n in range(8):
        (project / "f").write_bytes(bytes([n]) + os.urandom(100_000))
        told.append(ws.checkpoint(str(n)).over_budget)
    (why,) = filter(None, told)  # the size is looked up at every eighth
    assert "what is younger than a day" in why and "the last checkpoint" in why


def test_the_paths_that_share_a_secret_are_named_before_it_goes(ws: Workspace, project: Path):
    for name in ("one", "two"):  # two folders that are alike, times and all
        (project / name).mkdir()
        (project / name / "key").write_text("secret\n")
        os.utime(project / name / "key", ns=(10**18, 10**18))
        os.utime(project / name, ns=(10**18, 10**18))
    (project / "copy").write_text("secret\n")
    ws.checkpoint("shared")
    planned = ws.prune(path="two", dry_run=True)
    assert planned.also == ("copy", "one/key") and planned.path_blobs == 1
    assert ws.prune(path="two/key").also == ("copy", "one/key")


# -- agents' turns and calls ---------------------------------------------------


def _worked(ws, caller, key: str, prompt: str = "", path: str = "") -> str:
    """A turn with one call that makes a file; the id of the call."""
    from takeback.journal.brackets import Call

    if prompt:
        ws.begin_turn(caller, prompt)
    call = Call(key, "Bash", f"Bash: secret plan {key}")
    opened = ws.begin_call(caller, call)
    (ws.root / (path or key)).write_text(key)
    ws.end_call(caller, call)
    return opened.bracket.id


def _bodies(ws) -> str:
    return str([row.body for row in ws.store.journal.rows()])


def test_prompts_and_calls_go_with_what_was_done_in_them(ws):
    from takeback.journal.brackets import Caller

    claude = Caller("claude", "s")
    first = _worked(ws, claude, "one", "a private wish")
    _worked(ws, claude, "two", "the second")
    ws.checkpoint("here")
    third = _worked(ws, claude, "three")
    ws.prune(keep=1)
    assert "a private wish" not in _bodies(ws) and "secret plan one" not in _bodies(ws)
    assert "secret plan three" in _bodies(ws) and "the second" in _bodies(ws)  # that turn still goes on
    assert ws.verify().ok
    history = ws.history()
    assert [t.prompt for t in history.agent_turns.values()] == ["the second"]
    assert list(history.brackets) == [third]
    with pytest.raises(takeback.NotFound, match="pruned"):
        ws.show(first)
    assert ws.log() and ws.status()
    assert _worked(ws, claude, "four") and len(ws.history().agent_turns) == 1  # and its next call belongs to it
    assert ws.undo().whole
    assert not (ws.root / "three").exists() and (ws.root / "one").exists()


def test_a_call_that_is_open_stays_and_is_found_though_later_ones_are_gone(ws):
    from takeback.journal import brackets
    from takeback.journal.brackets import Call, Caller

    claude, codex = Caller("claude", "s"), Caller("codex", "t")
    waiting = Call("long", "Bash", "Bash: sleep 1000")
    ws.begin_turn(claude, "wait")
    opened = ws.begin_call(claude, waiting)
    _worked(ws, codex, "one", "meanwhile")
    ws.checkpoint("here")
    ws.prune(keep=1)
    ws.prune(everything=True)
    assert [b.id for b in brackets.open_ones(ws.store.journal)] == [opened.bracket.id]
    assert [t.prompt for t in ws.history().agent_turns.values()] == ["wait"]
    ws.checkpoint("anew")
    (ws.root / "late").write_text("x")
    assert ws.end_call(claude, waiting).bracket is not None
    assert [row.actor for row in ws.log("kind:effect")] == ["claude"]
    assert ws.verify().ok


def test_what_still_stands_outside_the_files_keeps_its_call_and_turn(ws):
    from takeback.journal.brackets import Call, Caller
    from takeback.model.outside import NewAct

    push = NewAct("command", "git push", "git push", None, "irreversible")
    claude, call = Caller("claude", "s"), Call("push", "Bash", "Bash: git push", acts=(push,))
    ws.begin_turn(claude, "publish it")
    opened = ws.begin_call(claude, call)
    ws.end_call(claude, call)
    ws.begin_turn(claude, "go on")
    ws.checkpoint("here")
    ws.prune(keep=1)
    shown = ws.show(ws.log("domain:command")[0].id)
    assert shown.turn.prompt == "publish it" and [c.id for c in shown.calls] == [opened.bracket.id]
    assert ws.verify().ok


def test_a_process_that_may_be_at_work_is_still_known_as_an_agent(ws):
    import os

    from takeback.journal.brackets import Caller
    from takeback.system import processes

    ws.begin_turn(Caller("claude", "s", "", os.getpid(), processes.started(os.getpid())), "begin")
    ws.checkpoint("here")
    ws.prune(keep=1)
    assert "claude is at work" in processes.agent_above(ws.history().sessions, {})
    ws.prune(everything=True)
    assert "claude is at work" in processes.agent_above(ws.history().sessions, {})
