"""Damage is found before anything is written from it, named with what it costs, and set aside, never deleted."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import takeback
from takeback.model.thread_states import Write
from takeback.store.blobs import BIG
from takeback.workspace import Workspace


@pytest.fixture
def stored(project: Path) -> Workspace:
    """A workspace whose store has an open pack, a large blob, an index and some history."""
    (project / "d").mkdir()
    (project / "small").write_text("small one\n" * 30)
    (project / "d/text").write_text("".join(f"line {n}\n" for n in range(400)))
    (project / "d/noise").write_bytes(os.urandom(3000))
    (project / "big").write_bytes(os.urandom(BIG + 1000))
    ws = takeback.open(project, create=True)
    ws.checkpoint("mark")
    for name in ("small", "d/text", "d/noise", "big"):
        (project / name).write_text(f"now {name}\n")
    (project / "new").write_text("new\n")
    ws.checkpoint(actor="claude")
    return ws


def contents(project: Path) -> dict[str, bytes]:
    return {str(p.relative_to(project)): p.read_bytes() for p in project.rglob("*") if p.is_file()}


def positions(path: Path, count: int) -> list[int]:
    """The first and last bytes, and others evenly in between."""
    size = path.stat().st_size
    if size <= count:
        return list(range(size))
    step = size / count
    return sorted({*range(0, 8), *range(size - 8, size), *(int(n * step) for n in range(count))})


def store_files(folder: Path) -> list[tuple[str, int]]:
    counts = {"journal.db": 160, "head": 44, "index": 40, "workspace.json": 0}
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.stat().st_size and not path.name.endswith(".lock"):
            count = counts.get(path.name, 60 if path.suffix == ".pack" else 24)
            found.append((str(path.relative_to(folder)), count))
    return found


@pytest.mark.parametrize("part", ["packs", "big", "journal", "index", "head"])
def test_a_flipped_byte_anywhere_is_found_before_anything_is_written_from_it(
    stored: Workspace, project: Path, tmp_path: Path, part: str
):
    now = contents(project)
    folder = stored.store.folder
    assert folder is not None
    stored.close()
    safe = tmp_path / "safe"
    shutil.copytree(folder, safe)
    with takeback.open(project) as ws:
        ws.rollback("mark")
        before = contents(project)
    assert before != now
    tried = refused = 0
    for name, count in store_files(safe):
        if not name.startswith(part):
            continue
        for at in positions(safe / name, count):
            shutil.rmtree(folder)
            shutil.copytree(safe, folder)
            for path, data in now.items():
                (project / path).write_bytes(data)
            with open(folder / name, "r+b") as file:
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes([byte ^ (1 << at % 8)]))
            tried += 1
            try:
                with takeback.open(project) as ws:
                    whole = ws.rollback("mark").whole
            except takeback.TakebackError:
                whole = False
            refused += not whole
            found = contents(project)
            if whole:
                assert found == before, f"{name} at {at}: called done, and wrong"
            for path in {*found, *before, *now}:
                assert found.get(path) in (before.get(path), now.get(path)), f"{name} at {at}: wrong bytes in {path}"
    assert tried
    if part in ("packs", "big", "journal"):
        assert refused, "no flip mattered: the sweep missed what it should hit"


def test_verify_is_green_on_a_sound_store(stored: Workspace):
    found = stored.verify(data=True)
    assert found.ok and found.first_bad == "" and found.lost == () and found.blobs and found.rows


def flip(path: Path, at: int) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def test_verify_names_the_first_bad_entry_and_the_checkpoints_and_paths_it_costs(stored: Workspace, project: Path):
    folder = stored.store.folder
    assert folder is not None
    from hashlib import sha256

    (project / "big").write_bytes(b"x" * 100)
    stored.checkpoint("later")
    (large,) = (folder / "big").iterdir()
    flip(large, 5000)
    assert stored.verify().ok, "the records hold; only --data reads every byte"
    found = stored.verify(data=True)
    assert not found.ok and large.name[:12] in found.first_bad
    assert sha256(large.read_bytes()).hexdigest() != large.name
    mark = next(c.id for c in stored.history().checkpoints if c.label == "mark")
    later = next(c.id for c in stored.history().checkpoints if c.label == "later")
    assert (mark, "big") in {(lost.entry, lost.path) for lost in found.lost}
    assert later not in {lost.entry for lost in found.lost}


def test_a_missing_blob_is_named(stored: Workspace):
    folder = stored.store.folder
    assert folder is not None
    (large,) = (folder / "big").iterdir()
    large.unlink()
    found = stored.verify()
    assert not found.ok and {lost.path for lost in found.lost} == {"big"}


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("UPDATE log SET body = replace(body, 'mark', 'hack') WHERE kind = 'checkpoint'", "altered"),
        ("UPDATE log SET at = at + 1 WHERE seq = 2", "altered"),
        ("UPDATE log SET body = NULL WHERE seq = 2", "no prune removed it"),
        ("DELETE FROM log WHERE seq = 2", "missing"),
        ("DELETE FROM log WHERE seq = (SELECT max(seq) FROM log)", "tail is cut"),
    ],
)
def test_an_altered_journal_is_told(stored: Workspace, harm: str, said: str):
    folder = stored.store.folder
    assert folder is not None
    db = sqlite3.connect(folder / "journal.db")
    db.execute(
        harm.replace("replace(body, 'mark', 'hack')", "CAST(replace(CAST(body AS TEXT), 'mark', 'hack') AS BLOB)")
    )
    db.commit()
    db.close()
    found = stored.verify()
    assert not found.ok and said in " ".join(found.problems), found.problems


def test_a_planted_trigger_or_table_is_refused_on_open(stored: Workspace, project: Path):
    folder = stored.store.folder
    assert folder is not None
    stored.close()
    db = sqlite3.connect(folder / "journal.db")
    db.execute("CREATE TRIGGER evil AFTER INSERT ON log BEGIN DELETE FROM log; END")
    db.commit()
    db.close()
    with pytest.raises(takeback.Damaged, match="tables"):
        takeback.open(project)


def test_a_rewritten_journal_is_told_by_the_head_that_was_kept(stored: Workspace, project: Path):
    folder = stored.store.folder
    assert folder is not None
    head = (folder / "head").read_bytes()
    stored.close()
    shutil.rmtree(folder)
    with takeback.open(project, create=True) as ws:
        for n in range(8):
            (project / "x").write_text(f"{n}")
            ws.checkpoint(f"{n}")
        (folder / "head").write_bytes(head)
        assert "rewritten" in " ".join(ws.verify().problems)


def test_repair_sets_damage_aside_and_what_is_still_there_is_stored_anew(stored: Workspace, project: Path):
    folder = stored.store.folder
    assert folder is not None
    (pack,) = (folder / "packs").glob("*.pack")
    size = pack.stat().st_size
    flip(pack, size // 2)
    assert not stored.verify().ok
    found = stored.repair()
    assert found.quarantined >= 1
    assert any((folder / "quarantine").iterdir()), "nothing is deleted"
    stored.checkpoint("after")
    assert stored.verify(data=True).lost == tuple(
        lost for lost in stored.verify(data=True).lost if lost.entry != stored.history().checkpoints[-1].id
    )
    for name in ("small", "d/text", "d/noise", "big"):
        assert (project / name).read_text() == f"now {name}\n"
    (project / "small").write_text("harm")
    stored.rollback("after")
    assert (project / "small").read_text() == "now small\n"


def alter(ws: Workspace, what: str) -> int:
    """Flips a byte of the body of one row; says which."""
    assert ws.store.folder is not None
    db = sqlite3.connect(ws.store.folder / "journal.db")
    (seq, body) = db.execute(f"SELECT seq, body FROM log WHERE {what} ORDER BY seq DESC LIMIT 1").fetchone()
    db.execute("UPDATE log SET body = ? WHERE seq = ?", (bytes([body[0] ^ 1]) + body[1:], seq))
    db.commit()
    db.close()
    return int(seq)


@pytest.mark.parametrize("index", ["kept", "gone"])
@pytest.mark.parametrize("what", ["kind = 'change'", "kind = 'checkpoint'", "seq = 1", "kind = 'note'"])
def test_an_altered_row_costs_itself_and_no_more(stored: Workspace, project: Path, what: str, index: str):
    stored.pin("mark")
    seq = alter(stored, what)
    folder = stored.store.folder
    assert folder is not None
    stored.close()
    if index == "gone":
        (folder / "index").unlink()
    before = contents(project)
    with takeback.open(project) as ws:
        assert ws.history().damaged == [seq]
        assert ws.log() and ws.status() and ws.diff("mark") and ws.show("mark")
        for act in (ws.undo, lambda: ws.rollback("mark"), lambda: ws.revert("small"), ws.redo):
            try:
                outcome = act()
                assert seq == 1 or what == "kind = 'note'" or not outcome.results, "only before or beside it"
                break
            except takeback.Damaged as refused:
                assert f"row {seq} was altered" in refused.message and "restore" in refused.hint
                assert contents(project) == before
        ws.restore("mark", "small")
        assert (project / "small").read_text() == "small one\n" * 30
        found = ws.verify(data=True)
        assert not found.ok and found.first_bad.startswith(f"row {seq}: ") and not found.mendable
        assert [(x.path, x.why) for x in found.lost] == [("(the entry itself)", "its journal row was altered")]
        ws.checkpoint("later")
        then = contents(project)
        (project / "small").write_text("harm")
        (project / "new").unlink(missing_ok=True)
        (project / "newer").write_text("harm")
        ws.rollback("later")
        assert contents(project) == then
        ws.redo()
        assert (project / "small").read_text() == "harm"


def test_a_row_whose_list_is_lost_stops_only_take_backs_across_it(ws: Workspace, project: Path):
    for n in range(900):
        (project / f"file{n}").write_text(f"{n}")
    (project / "first").write_text("one")
    ws.checkpoint("one")
    for n in range(900):
        (project / f"file{n}").write_text(f"now {n}")
    ws.checkpoint("two")
    folder = ws.store.folder
    assert folder is not None
    lists = [row.body["list"] for row in ws.store.journal.rows(kinds=("change",)) if row.body]
    listed = lists[-1]["blob"]
    ws.store.blobs.collect(set(ws.store.blobs.ids()) - {bytes.fromhex(listed)}, frozenset({bytes.fromhex(listed)}))
    ws.close()
    (folder / "index").unlink()
    with takeback.open(project) as again:
        assert again.log() and again.status()
        with pytest.raises(takeback.Damaged, match="altered or lost"):
            again.rollback("one")
        again.restore("one", "file7")
        assert (project / "file7").read_text() == "7"
        again.repair()
        found = again.verify(data=True)
        assert found.ok and found.known


def test_nothing_an_altered_row_may_need_is_dropped_by_prune(stored: Workspace, project: Path):
    seq = alter(stored, "kind = 'checkpoint'")
    (project / "small").write_text("more\n")
    stored.checkpoint("last")
    ids = set(stored.store.blobs.ids())
    stored.prune(keep=2)
    assert stored.history().damaged == [seq] and ids == set(stored.store.blobs.ids())
    stored.prune(keep=1)
    assert stored.history().damaged == [] and stored.verify(data=True).ok, "it went with the rest, by name"
    assert len(ids) > len(set(stored.store.blobs.ids()))


def test_what_repair_set_aside_is_a_known_loss(stored: Workspace, project: Path):
    folder = stored.store.folder
    assert folder is not None
    (large,) = (folder / "big").iterdir()
    flip(large, 5000)
    assert stored.verify(data=True).mendable
    stored.repair()
    for _ in range(2):
        found = stored.verify(data=True)
        assert found.ok and not found.problems and found.known == len(found.lost) > 0
        assert {x.path for x in found.lost} == {"big"}
        stored.checkpoint()
    large.write_bytes(b"rubbish")
    assert not stored.verify(data=True).ok, "what is damaged anew is told anew"


def test_folder_objects_that_repair_set_aside_are_stored_anew(stored: Workspace, project: Path):
    folder = stored.store.folder
    assert folder is not None
    now = stored.history().checkpoints[-1].snapshot
    found = stored.store.blobs._find(now.stored)  # type: ignore[attr-defined]
    flip(folder / "packs" / f"{found.pack}.pack", found.offset + 70)
    assert not stored.verify().ok
    stored.repair()
    assert stored.checkpoint("after").snapshot.identity == now.identity
    assert stored.verify(data=True).lost == ()


def test_what_is_gone_is_a_known_loss_after_repair_too(stored: Workspace):
    folder = stored.store.folder
    assert folder is not None
    (large,) = (folder / "big").iterdir()
    large.unlink()
    assert not stored.verify().ok
    stored.repair()
    assert stored.verify().ok and stored.verify().known


def test_a_flipped_toc_is_no_damage_and_repair_keeps_all(stored: Workspace, project: Path):
    folder = stored.store.folder
    assert folder is not None
    stored.close()
    (toc,) = (folder / "packs").glob("*.toc")
    for at in range(0, toc.stat().st_size, 13):
        flip(toc, at)
        with takeback.open(project) as ws:
            assert ws.verify(data=True).ok
            ws.repair()
            assert ws.verify(data=True).lost == () and not (folder / "quarantine").exists()


def test_an_older_journal_put_back_never_heals_unseen(stored: Workspace, project: Path):
    folder = stored.store.folder
    assert folder is not None
    stored.close()
    old = (folder / "journal.db").read_bytes()
    with takeback.open(project) as ws:
        (project / "small").write_text("again\n")
        ws.checkpoint("lost")
        first, last = len(list(ws.store.journal.rows())) - 1, len(list(ws.store.journal.rows()))
    (folder / "journal.db").write_bytes(old)
    with takeback.open(project) as ws:
        with pytest.raises(takeback.Damaged, match=f"rows {first} to {last} are lost") as refused:
            ws.checkpoint("after")
        assert "takeback repair" in refused.value.hint
        assert ws.status() and ws.log()
        assert not ws.verify().ok and ws.verify().mendable
        assert any("recorded" in note for note in ws.repair().notes)
        ws.checkpoint("after")
        found = ws.verify(data=True)
        assert found.ok and found.known == 1 and f"rows {first} to {last}" in found.lost[0].path
        (project / "small").write_text("harm")
        ws.rollback("after")
        assert (project / "small").read_text() == "again\n"
        ws.rollback("mark", everything=True)
        assert (project / "small").read_text() == "small one\n" * 30


def test_a_lost_index_is_rebuilt(stored: Workspace, project: Path):
    folder = stored.store.folder
    assert folder is not None
    (folder / "index").unlink()
    (project / "small").write_text("changed\n")
    assert [c.path for c in stored.status().changes if c.path == "small"]
    stored.rollback("mark", everything=True)
    assert (project / "small").read_text() == "small one\n" * 30


def test_a_lost_toc_or_idx_is_rebuilt_by_walking_the_records(stored: Workspace, project: Path):
    folder = stored.store.folder
    assert folder is not None
    stored.close()
    for path in [*folder.glob("packs/*.toc"), *folder.glob("packs/*.idx")]:
        path.unlink()
    with takeback.open(project) as ws:
        assert ws.verify(data=True).ok
        ws.rollback("mark")
        assert (project / "small").read_text() == "small one\n" * 30


def test_a_path_whose_goal_the_store_lacks_is_kept_and_named(stored: Workspace, project: Path):
    folder = stored.store.folder
    assert folder is not None
    (large,) = (folder / "big").iterdir()
    large.unlink()
    before = contents(project)
    outcome = stored.rollback("mark")
    assert [r.path for r in outcome.results if r.result == "kept"] == [b"big"]
    assert contents(project)["big"] == before["big"]
    assert not stored.interrupted()


def states(project: Path, size: int) -> tuple[Workspace, list[str]]:
    """Two state checkpoints with a value of their own each, of so many bytes, and a file."""
    (project / "big").write_bytes(os.urandom(BIG + 1000))
    ws = takeback.open(project, create=True)
    ids = [ws.threads.save("main", {"x": os.urandom(size).hex()}).id for _ in range(2)]
    ws.threads.save("other", {"x": 1})
    ws.close()
    assert ws.store.folder is not None
    return ws, ids


def test_losses_of_threads_are_told_beside_others(project: Path):
    ws, ids = states(project, 500)
    assert ws.store.folder is not None
    with sqlite3.connect(ws.store.folder / "journal.db") as db:
        db.execute("UPDATE log SET body = substr(body, 1, 60) || x'ff' WHERE kind = 'value'")
    db.close()
    next(p for p in ws.store.folder.rglob("*") if p.is_file() and p.stat().st_size > BIG).unlink()
    with takeback.open(project) as ws:
        found = ws.verify()
    of_threads = [each for each in found.lost if each.kind == "state"]
    assert [each.entry for each in of_threads] == ids and not found.ok
    assert {each.why for each in of_threads} < set(found.problems), "beside the blob and the rows"
    assert len(found.problems) == len(set(found.problems)) and any("is missing" in p for p in found.problems)


def test_a_lost_value_is_told_once_and_known_after_a_repair(project: Path):
    ws, ids = states(project, 300_000)
    assert ws.store.folder is not None
    for path in ws.store.folder.rglob("*.pack"):
        path.unlink()
        path.with_suffix(".toc").unlink(missing_ok=True)
    with takeback.open(project) as ws:
        lost = [each for each in ws.verify().lost if each.kind == "state"]
        assert [(each.entry, each.path) for each in lost] == [(id, "thread main") for id in ids]
        ws.repair()
        found = ws.verify()
        assert found.ok, found.problems
        assert [each.entry for each in found.lost if each.kind == "state"] == ids


def test_an_altered_row_of_writes_is_counted(project: Path):
    with takeback.open(project, create="state") as ws:
        made = ws.threads.save("main", {"x": 1})
        ws.threads.put_writes("main", "", made.id, "task", "", [Write(0, "x", b"2", "task")])
        folder = ws.store.folder
    assert folder is not None
    with sqlite3.connect(folder / "journal.db") as db:
        db.execute("UPDATE log SET body = replace(body, 'task', 'tusk') WHERE kind = 'writes'")
    db.close()
    with takeback.open(project) as ws:
        assert [each.kind for each in ws.verify().lost] == ["writes"]


@pytest.mark.parametrize("verb", ["status", "log", "undo"])
def test_a_torn_workspace_file_is_told_and_not_a_bug(project: Path, verb: str):
    """In a process of its own: what reads it must not count on anything that other code has loaded."""
    takeback.open(project, create=True).close()
    (meta,) = Path(os.environ["TAKEBACK_HOME"]).glob("*/workspace.json")
    meta.write_text(meta.read_text()[:-20])
    ran = subprocess.run(
        [sys.executable, "-m", "takeback", verb], cwd=project, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1 and "cannot be read" in ran.stderr and "takeback repair" in ran.stderr, ran
