"""The log: append-only, chained, and what it says when it is not."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest

from takeback.errors import Damaged, TakebackError
from takeback.journal.journal import VERSION, Journal, New, glimpse, spans
from takeback.model.ids import new_id


@pytest.fixture
def journal(tmp_path: Path):
    made = Journal(tmp_path / "journal.db", create=True)
    yield made
    made.close()


def note(n: int = 0) -> New:
    return New("note", new_id(), {"n": n})


def test_rows_come_back_in_order_as_they_were(journal: Journal):
    rows = [note(n) for n in range(5)]
    assert journal.append(rows[:3], 1.5) == [1, 2, 3]
    assert journal.append(rows[3:], 2.5) == [4, 5]
    found = list(journal.rows())
    assert [(r.seq, r.id, r.kind, r.at, r.body["n"]) for r in found] == [
        (n + 1, rows[n].id, "note", 1.5 if n < 3 else 2.5, n) for n in range(5)
    ]
    assert [r.seq for r in journal.rows(after=3)] == [4, 5]
    assert list(journal.rows(kinds=("change",))) == []
    assert journal.get(rows[2].id).seq == 3 and journal.get("nobody") is None
    assert journal.last("note").seq == 5 and journal.last("change") is None
    assert journal.head().seq == 5


def test_how_many_letters_tell_an_id_from_every_other(journal: Journal):
    journal.append([New("note", id, {}) for id in ("kkkkk", "kkkkl", "kkzzz", "pqrst")], 0)
    assert [journal.letters(id, 3) for id in ("kkkkk", "kkkkl", "kkzzz", "pqrst", "kkkkzz")] == [5, 5, 3, 3, 5]


def test_bodies_are_salted_so_that_a_removed_one_cannot_be_guessed(journal: Journal):
    journal.append([New("note", new_id(), {"secret": "1234"}), New("note", new_id(), {"secret": "1234"})], 0)
    hashes = {row[0] for row in journal._db.execute("SELECT body_hash FROM log")}
    assert len(hashes) == 2


def test_the_file_is_private(journal: Journal):
    journal.append([note()], 0)
    for path in journal.path.parent.iterdir():  # type: ignore[union-attr]
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.parametrize("name", ["100%", "what?mode=memory", "a#b", "ü", "a b", "%3f"])
def test_the_name_of_its_folder_may_be_any(tmp_path: Path, name: str):
    folder = tmp_path / name
    folder.mkdir()
    made = Journal(folder / "journal.db", create=True)
    made.append([note(1)], 0)
    made.close()
    assert (folder / "journal.db").stat().st_size
    again = Journal(folder / "journal.db")
    assert [row.body["n"] for row in again.rows()] == [1]
    again.close()
    assert [row.body["n"] for row in glimpse(folder / "journal.db", ["note"], 5)] == [1]
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_a_failing_append_leaves_nothing(journal: Journal):
    first = note()
    journal.append([first], 0)
    with pytest.raises(TakebackError):
        journal.append([note(), first], 0)  # the id is taken
    assert journal.head().seq == 1 and list(journal.check()) == []
    assert journal.append([note()], 0) == [2]


def test_reopening_goes_on_with_the_chain(journal: Journal):
    journal.append([note(), note()], 0)
    assert journal.path is not None
    again = Journal(journal.path)
    again.append([note()], 0)
    assert list(again.check()) == [] == list(journal.check())
    again.close()


def test_sqlite_syncs_every_commit(journal: Journal):
    assert journal._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert journal._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_forgotten_bodies_leave_the_chain_whole_and_the_disk(journal: Journal):
    journal.append([New("note", new_id(), {"secret": "hunter2-hunter2"}), note()], 0)
    journal.append([New("prune", new_id(), {"forgot": spans([1])})], 0)
    journal.forget([1])
    assert list(journal.check()) == []
    assert [r.body for r in journal.rows()][0] is None
    assert journal.path is not None
    on_disk = b"".join(p.read_bytes() for p in journal.path.parent.iterdir())
    assert b"hunter2-hunter2" not in on_disk
    assert journal.last("note").seq == 2


def test_a_null_that_no_prune_names_is_damage(journal: Journal):
    journal.append([note(), note()], 0)
    journal.forget([1])
    assert ["no prune" in bad.why for bad in journal.check()] == [True]


@pytest.mark.parametrize("field", ["id", "kind", "at", "body_hash", "prev", "hash", "body"])
def test_every_field_is_covered_by_the_chain(journal: Journal, field: str):
    journal.append([note(n) for n in range(4)], 0)
    value = {"id": "'x'", "kind": "'change'", "at": "at + 1", "body": "CAST('{}' AS BLOB)"}.get(field, "zeroblob(32)")
    journal._db.execute(f"UPDATE log SET {field} = {value} WHERE seq = 2")
    assert [bad.seq for bad in journal.check()][0] == 2
    found = list(journal.rows())
    assert [row.damaged for row in found] == [False, True, False, False], "the others can still be read"
    assert found[1].body is None and found[3].body is not None
    assert journal.append([note()], 0) == [5], "and it goes on"


@pytest.mark.parametrize("field", ["id", "kind", "at", "body_hash", "prev", "hash", "body"])
@pytest.mark.parametrize("value", ["CAST(x'ff80' AS TEXT)", "7", "zeroblob(3)"])
def test_an_altered_last_row_of_any_type_stops_nothing(journal: Journal, field: str, value: str):
    journal.append([note(n) for n in range(3)], 0)
    journal._db.execute(f"UPDATE log SET {field} = {value} WHERE seq = 3")
    assert [row.damaged for row in journal.rows()] == [False, False, True]
    assert [bad.seq for bad in journal.check()][0] == 3
    assert journal.append([note()], 0) == [4] and not list(journal.rows())[3].damaged


def test_a_row_replaced_with_a_sound_hash_breaks_the_chain_after_it(journal: Journal, tmp_path: Path):
    journal.append([note(n) for n in range(4)], 0)
    (tmp_path / "other").mkdir()
    other = Journal(tmp_path / "other/journal.db", create=True)
    other.append([note(n + 10) for n in range(4)], 0)
    row = other._db.execute("SELECT * FROM log WHERE seq = 2").fetchone()
    journal._db.execute("DELETE FROM log WHERE seq = 2")
    journal._db.execute("INSERT INTO log VALUES(?,?,?,?,?,?,?,?)", row)
    assert {bad.seq for bad in journal.check()} == {2, 3}


def test_a_cut_tail_is_told_and_a_longer_table_is_fine(journal: Journal):
    journal.append([note()], 0)
    assert journal.path is not None
    head = (journal.path.parent / "head").read_bytes()
    journal.append([note(), note()], 0)
    newer = (journal.path.parent / "head").read_bytes()
    (journal.path.parent / "head").write_bytes(head)
    assert list(journal.check()) == [], "killed between commit and head"
    (journal.path.parent / "head").write_bytes(newer)
    journal._db.execute("DELETE FROM log WHERE seq = 3")
    assert ["tail is cut" in bad.why for bad in journal.check()] == [True]


def test_a_cut_tail_is_appended_to_only_by_the_note_that_says_so(journal: Journal):
    journal.append([note(n) for n in range(3)], 0)
    journal._db.execute("DELETE FROM log WHERE seq > 1")
    for _ in range(3):
        with pytest.raises(Damaged, match="rows 2 to 3 are lost") as refused:
            journal.append([note()], 0)
        assert "takeback repair" in refused.value.hint
    assert journal.cut() == (2, 3) and journal.head().seq == 1
    assert journal.append([New("note", new_id(), {"what": "cut", "rows": [2, 3]})], 0, across_cut=True) == [2]
    assert journal.cut() is None and list(journal.check()) == []
    assert journal.append([note()], 0) == [3] and list(journal.check()) == []


def test_a_rewritten_tail_is_not_appended_to_either(journal: Journal):
    journal.append([note(n) for n in range(2)], 0)
    assert journal.path is not None
    kept = (journal.path.parent / "head").read_bytes()
    journal._db.execute("DELETE FROM log WHERE seq > 1")
    journal.append([note()], 0, across_cut=True)
    journal.append([note()], 0)
    (journal.path.parent / "head").write_bytes(kept)
    with pytest.raises(Damaged):
        journal.append([note()], 0)
    assert journal.cut() == (2, 3)


def test_killed_between_commit_and_head_it_goes_on(journal: Journal):
    assert journal.path is not None
    for n in range(6):
        head = (journal.path.parent / "head").read_bytes()
        journal.append([note(n)], 0)
        (journal.path.parent / "head").write_bytes(head)
    assert journal.cut() is None and list(journal.check()) == [] and journal.append([note()], 0) == [7]


def test_a_missing_or_damaged_head_is_told(journal: Journal):
    journal.append([note()], 0)
    assert journal.path is not None
    (journal.path.parent / "head").write_bytes(b"rubbish")
    assert ["head file" in bad.why for bad in journal.check()] == [True]
    (journal.path.parent / "head").unlink()
    assert ["head file" in bad.why for bad in journal.check()] == [True]
    journal.append([note()], 0)
    assert list(journal.check()) == [], "the next append writes it anew"


def test_a_store_of_a_newer_program_is_refused_untouched(journal: Journal):
    assert journal.path is not None
    journal._db.execute(f"PRAGMA user_version={VERSION + 1}")
    with pytest.raises(TakebackError, match="newer"):
        Journal(journal.path)


@pytest.mark.parametrize(
    "harm",
    ["CREATE TABLE more(x)", "CREATE INDEX extra ON log(at)", "CREATE VIEW v AS SELECT 1", "DROP INDEX log_kind"],
)
def test_tables_that_are_not_ours_are_refused(journal: Journal, harm: str):
    assert journal.path is not None
    db = sqlite3.connect(journal.path)
    db.execute(harm)
    db.commit()
    db.close()
    with pytest.raises(Damaged):
        Journal(journal.path)


def test_a_file_that_is_no_database_is_damage(tmp_path: Path):
    (tmp_path / "journal.db").write_bytes(b"this is not SQLite" * 100)
    with pytest.raises(Damaged):
        Journal(tmp_path / "journal.db")


def test_threads_append_one_after_another(tmp_path: Path):
    Journal(tmp_path / "journal.db", create=True).close()
    start = threading.Barrier(4)

    def work() -> None:
        mine = Journal(tmp_path / "journal.db")
        start.wait()
        for n in range(20):
            mine.append([note(n)], 0)
        mine.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    found = Journal(tmp_path / "journal.db")
    assert found.head().seq == 80
    assert list(found.check()) == []
    found.close()


def test_counts_include_pruned_rows(journal: Journal):
    journal.append([note(), New("change", new_id(), {}), note()], 0)
    journal.append([New("prune", new_id(), {"forgot": [[1, 1]]})], 0)
    journal.forget([1])
    assert journal.count(("note", "change"), 3) == 3
    assert [seq for seq, _ in journal.bodied("note")] == [3]


def test_in_memory():
    journal = Journal(None)
    journal.append([note()], 0)
    assert list(journal.check()) == [] and journal.head().seq == 1


def test_spans():
    assert spans([5, 1, 2, 3, 7]) == [[1, 3], [5, 5], [7, 7]] and spans([]) == []


def test_what_is_appended_together_is_there_as_one_or_not_at_all(tmp_path: Path):
    journal = Journal(tmp_path / "journal.db", create=True)
    other = Journal(tmp_path / "journal.db")
    with journal.together():
        journal.append([New("note", "a", {"n": 1})], 1.0)
        with pytest.raises(TakebackError):
            journal.append([New("note", "b", {"n": 2}), New("note", "a", {"n": 3})], 1.0)  # the id is taken
        assert journal.append([New("note", "c", {"n": 4})], 1.0) == [2]
        assert list(other.rows()) == []
    assert [row.id for row in other.rows()] == ["a", "c"]
    with pytest.raises(ZeroDivisionError), journal.together():
        journal.append([New("note", "d", {"n": 5})], 1.0)
        raise ZeroDivisionError
    assert journal.append([New("note", "e", {"n": 6})], 1.0) == [3]
    assert [row.id for row in other.rows()] == ["a", "c", "e"]
    assert list(other.check()) == [] and other.cut() is None


def test_a_copy_is_whole_while_others_write(tmp_path: Path):
    """It is made where nothing can be written, as below a sandbox, whose outside goes on."""
    path, over = tmp_path / "journal.db", threading.Event()
    Journal(path, create=True).close()

    def write() -> None:
        while not over.is_set():
            mine = Journal(path)  # the last one that closes it moves SQLite's log into the database
            for _ in range(20):
                mine.append([note()], 0)
            mine.close()
            time.sleep(0.002)  # else no moment is long enough for a copy

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(60):
            copy = Journal.copied(path)
            assert list(copy.check()) == [] and copy.cut() is None
            copy.close()
    finally:
        over.set()
        writer.join()


def test_a_copy_stays_as_it_was_and_takes_nothing(journal: Journal, tmp_path: Path):
    journal.append([note()], 0)
    copy = Journal.copied(tmp_path / "journal.db")
    journal.append([note()], 0)
    assert copy.head().seq == 1 and copy.cut() is None and list(copy.check()) == []
    with pytest.raises(TakebackError):
        copy.append([note()], 0)
    copy.close()
    assert journal.head().seq == 2 and list(journal.check()) == []
