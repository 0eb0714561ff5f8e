"""Which row of the journal each state checkpoint and each value is in: a cache, told by the journal and never believed.

It follows the journal by row number. Where its tables are not ours, where it is damaged, or where it tells of a journal
that is not this one, it is dropped and made anew. Who finds a row by it reads the row, which says what it is.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.errors import TakebackError
from takeback.journal.journal import STATE_ROWS, Journal, New, Row

if TYPE_CHECKING:
    import sqlite3

    from takeback.model.thread_states import StateCheckpoint
else:
    from takeback.journal.journal import sqlite3  # however the journal has it

_VERSION = 1
_TABLES = {
    "followed": "CREATE TABLE followed(seq INTEGER NOT NULL, hash BLOB NOT NULL)",
    "checkpoints": (
        "CREATE TABLE checkpoints(seq INTEGER PRIMARY KEY, thread TEXT NOT NULL, ns TEXT NOT NULL, id TEXT NOT NULL, "
        "run TEXT NOT NULL, forked TEXT NOT NULL, identity BLOB NOT NULL, removed INTEGER NOT NULL)"
    ),
    "by_id": "CREATE INDEX by_id ON checkpoints(thread, ns, id, seq)",
    "by_seq": "CREATE INDEX by_seq ON checkpoints(thread, ns, seq)",
    "by_run": "CREATE INDEX by_run ON checkpoints(run) WHERE run != ''",
    "by_origin": "CREATE INDEX by_origin ON checkpoints(forked) WHERE forked != ''",
    "loose": "CREATE INDEX loose ON checkpoints(id)",
    "altered": "CREATE TABLE altered(seq INTEGER PRIMARY KEY)",
    "lost_writes": "CREATE TABLE lost_writes(seq INTEGER PRIMARY KEY)",
    "held": "CREATE TABLE held(id BLOB PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID",
    "writes": (
        "CREATE TABLE writes(seq INTEGER PRIMARY KEY, thread TEXT NOT NULL, ns TEXT NOT NULL, id TEXT NOT NULL, "
        "removed INTEGER NOT NULL)"
    ),
    "writes_by_id": "CREATE INDEX writes_by_id ON writes(thread, ns, id, seq)",
}
_DOUBTED = {"state": "altered", "thread": "altered", "writes": "lost_writes"}  # a head, the removal of one; or writes
_LAG = 200  # rows
_FOLLOWED = (*STATE_ROWS, "prune")


class Listed(NamedTuple):
    """A state checkpoint, as far as the cache knows it."""

    seq: int
    thread: str
    ns: str
    id: str


class ThreadIndex:
    def __init__(self, path: Path | None, journal: Journal) -> None:
        self.path = path
        self.journal = journal
        self._told: list[Row] = []
        self._db = self._opened()

    # -- opening -----------------------------------------------------------------

    def _opened(self) -> sqlite3.Connection:
        with contextlib.suppress(sqlite3.DatabaseError, OSError):
            return self._connect()
        with contextlib.suppress(sqlite3.DatabaseError, OSError):
            self._drop()
            return self._connect()
        self.path = None  # no room, or not ours to write: it is made in memory, for as long as this process lives
        return self._connect()

    def _connect(self) -> sqlite3.Connection:
        if self.path is None:
            db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        else:
            if not self.path.exists():
                os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
            db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)
        try:
            if self.path is not None:
                db.execute("PRAGMA journal_mode=WAL")
                db.execute("PRAGMA synchronous=OFF")  # what a power cut takes is made anew
            db.execute("PRAGMA trusted_schema=OFF")
            found = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE sql NOT NULL").fetchall())
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if not found:
                db.execute("BEGIN IMMEDIATE")
                if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:  # else another was faster
                    _make(db)
                db.execute("COMMIT")
            elif found != _TABLES or version != _VERSION:
                raise sqlite3.DatabaseError("its tables are not ours")
        except BaseException:
            db.close()
            raise
        return db

    def _drop(self) -> None:
        if self.path is not None:
            for end in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + end).unlink(missing_ok=True)

    def close(self) -> None:
        self._db.close()

    def anew(self) -> None:
        """Makes all of it again from the journal. The file stays if it can, and is never seen empty: other processes
        have it open."""
        try:
            self._follow(anew=True)
        except sqlite3.DatabaseError:
            self._db.close()
            with contextlib.suppress(OSError):  # then it is said by whoever opens it
                self._drop()
            self._db = self._opened()
            try:
                self._follow()
            except sqlite3.OperationalError:
                self._go_without()

    def _go_without(self) -> None:
        """The disk is full, maybe: then it is made in memory, so that a prune can free some."""
        self._db.close()
        self.path = None
        self._db = self._opened()
        self._follow()

    # -- following the journal -----------------------------------------------------

    def follow(self) -> None:
        """Brings it up to the journal's newest row."""
        try:
            self._follow()
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise TakebackError(f"{self.path} is in use ({error})", "try again in a moment") from error
            if str(error).startswith("no such"):  # table or column: it is not as we made it
                self.anew()
            else:
                self._go_without()
        except sqlite3.DatabaseError:
            self.anew()

    def _follow(self, anew: bool = False) -> None:
        if self.journal.is_together:
            return  # others read this cache too, and do not see those rows yet
        if not anew and self._followed() == tuple(self.journal.head()):
            return
        self._db.execute("BEGIN IMMEDIATE")
        try:
            head = self.journal.head()  # not before: it must never go back behind what others have seen in it
            if anew:
                self._empty()
            seq, hash = self._followed()  # another may have followed meanwhile
            if seq and self.journal.hash_at(seq) != hash:  # of another journal: put back from a backup, or cut
                self._empty()
                seq = 0
            told, self._told = self._told, []
            is_all = bool(told) and told[0].seq == seq + 1 and len(told) == head.seq - seq
            for row in told if is_all else self.journal.rows(seq, _FOLLOWED):
                if row.seq <= head.seq:
                    self._fold(row)
                elif row.kind == "prune" and row.body is not None:  # just now: it says why those before have no bodies
                    self._explain(row.body["forgot"])
            if not is_all:
                self._doubt(self.journal.unknown(seq, head.seq))
            if seq < head.seq:
                self._db.execute("UPDATE followed SET seq = ?, hash = ?", head)
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _followed(self) -> tuple[int, bytes]:
        """The row of the journal that it goes up to, and that row's hash."""
        found = self._db.execute("SELECT seq, hash FROM followed").fetchone()
        if found is None:
            raise sqlite3.DatabaseError("it does not say how far it goes")
        return found[0], found[1]

    def _empty(self) -> None:
        for (name,) in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            self._db.execute(f"DROP TABLE {name}")
        _make(self._db)

    def tell(self, rows: Sequence[New], seqs: Sequence[int]) -> None:
        """What was just appended: it need not be read again, if nobody else has appended in between."""
        if self._told and self._told[-1].seq != seqs[0] - 1:
            self._told = []
        self._told += (Row(seq, new.id, new.kind, 0.0, new.body) for seq, new in zip(seqs, rows))

    def untell(self) -> None:
        """What was told did not come to be."""
        self._told = []

    @property
    def lags(self) -> bool:
        """Whether so much was appended meanwhile that it is time to follow."""
        return len(self._told) > _LAG

    def _fold(self, row: Row) -> None:
        body = row.body
        if body is None:
            if row.kind in _DOUBTED:  # altered, unless a prune follows
                self._db.execute(f"INSERT OR REPLACE INTO {_DOUBTED[row.kind]} VALUES(?)", (row.seq,))
            return
        with contextlib.suppress(LookupError, TypeError, ValueError, AttributeError):  # no row of ours
            if row.kind == "value":
                self._db.execute("INSERT OR REPLACE INTO held VALUES(?, ?)", (body["bytes"][:32], row.seq))
            elif row.kind == "state":
                origin = (body.get("forked_from") or ("",))[0]
                found = (row.seq, body["thread"], body["ns"], body["id"], body.get("run", ""), origin)
                identity = bytes.fromhex(body["identity"])
                self._db.execute("INSERT OR REPLACE INTO checkpoints VALUES(?,?,?,?,?,?,?,0)", (*found, identity))
            elif row.kind == "writes":
                written = (row.seq, body["thread"], body["ns"], body["id"])
                self._db.execute("INSERT OR REPLACE INTO writes VALUES(?,?,?,?,0)", written)
            elif row.kind == "thread" and body["what"] == "removal":
                self._remove(row.seq, body)
            elif row.kind == "prune":
                self._explain(body["forgot"])
                for first, last in body["forgot"]:
                    for table in ("checkpoints", "writes", "held"):
                        self._db.execute(f"DELETE FROM {table} WHERE seq BETWEEN ? AND ?", (first, last))

    def _explain(self, forgot: Iterable[tuple[int, int]]) -> None:
        """Rows that a prune took are no loss."""
        spans = list(forgot)
        for table in dict.fromkeys(_DOUBTED.values()):
            self._db.executemany(f"DELETE FROM {table} WHERE seq BETWEEN ? AND ?", spans)

    def _doubt(self, unknown: Iterable[int]) -> None:
        """Rows that may have been a head or writes, but for those that a repair has noted as lost."""
        for seq in unknown:
            for table in dict.fromkeys(_DOUBTED.values()):
                self._db.execute(f"INSERT OR REPLACE INTO {table} VALUES(?)", (seq,))
        if self._one("SELECT 1 FROM altered LIMIT 1", ()) is not None:
            self._explain((seq, seq) for seq in self.journal.known_gaps())

    def _remove(self, seq: int, body: Any) -> None:
        thread, chosen = body["thread"], body.get("checkpoints")
        if chosen is None:
            for table in ("checkpoints", "writes"):
                self._db.execute(f"UPDATE {table} SET removed = ? WHERE thread = ? AND removed = 0", (seq, thread))
            return
        for table in ("checkpoints", "writes"):
            self._db.executemany(
                f"UPDATE {table} SET removed = ? WHERE thread = ? AND ns = ? AND id = ? AND removed = 0",
                [(seq, thread, ns, id) for ns, id in chosen],
            )

    # -- asking --------------------------------------------------------------------

    def head(self, thread: str, ns: str) -> int | None:
        return self._one(
            "SELECT seq FROM checkpoints WHERE thread = ? AND ns = ? AND removed = 0 ORDER BY seq DESC LIMIT 1",
            (thread, ns),
        )

    def altered_after(self, seq: int) -> int | None:
        """The first row after one of which nobody knows what it was."""
        return self._one("SELECT min(seq) FROM altered WHERE seq > ?", (seq,))

    def find(self, thread: str, ns: str, id: str) -> int | None:
        return self._one(
            "SELECT max(seq) FROM checkpoints WHERE thread = ? AND ns = ? AND id = ? AND removed = 0", (thread, ns, id)
        )

    def beginning(self, thread: str, prefix: str, ns: str | None = None) -> list[Listed]:
        """Checkpoints of a thread whose id begins so, each once, newest first."""
        where, also = ("", ()) if ns is None else (" AND ns = ?", (ns,))
        begins = "id >= ? AND substr(id, 1, ?) = ?"
        values = (thread, prefix, len(prefix), prefix, *also)
        return self._listed(f"thread = ? AND {begins}{where} AND removed = 0", values)

    def elsewhere(self, id: str) -> list[Listed]:
        """Where, in any thread, a checkpoint of this id is."""
        return self._listed("id = ? AND removed = 0", (id,))

    def listed(self, thread: str | None, ns: str | None, below: int | None, limit: int | None) -> list[Listed]:
        """Newest first; of one id the newest row alone."""
        terms: list[str] = ["removed = 0"]
        values: list[Any] = []
        for name, value in (("thread = ?", thread), ("ns = ?", ns), ("seq < ?", below)):
            if value is not None:
                terms.append(name)
                values.append(value)
        return self._listed(" AND ".join(terms), values, limit)

    def _listed(self, where: str, values: Sequence[Any], limit: int | None = None) -> list[Listed]:
        sql = f"SELECT seq, thread, ns, id FROM checkpoints WHERE {where} ORDER BY seq DESC LIMIT ?"
        most = -1 if limit is None else limit
        while True:
            rows = self._all(sql, (*values, most))
            newest: dict[tuple[str, str, str], Listed] = {}
            for row in rows:
                newest.setdefault(row[1:], Listed(*row))
            if limit is None or len(newest) >= limit or len(rows) < most:
                return list(newest.values())[:limit]
            most *= 4  # of some ids there are several rows

    def heads(self, thread: str, seq: int | None) -> dict[str, int]:
        """The newest row of each namespace, as of a row of the journal."""
        if seq is None:
            sql = "SELECT ns, max(seq) FROM checkpoints WHERE thread = ? AND removed = 0 GROUP BY ns"
            return dict(self._all(sql, (thread,)))
        sql = (
            "SELECT ns, max(seq) FROM checkpoints WHERE thread = ? AND seq <= ? AND (removed = 0 OR removed > ?) "
            "GROUP BY ns"
        )
        return dict(self._all(sql, (thread, seq, seq)))

    def alike(self, thread: str, ns: str, identity: bytes) -> list[int]:
        """Rows of a namespace with this state, newest first, those that were removed and not yet pruned among them."""
        sql = "SELECT seq FROM checkpoints WHERE thread = ? AND ns = ? AND identity = ? ORDER BY seq DESC"
        return [seq for (seq,) in self._all(sql, (thread, ns, identity))]

    def threads(self) -> list[tuple[str, int, int, int]]:
        """(thread, checkpoints, first row, last row), newest first."""
        return self._all(
            "SELECT thread, count(DISTINCT ns || x'00' || id), min(seq), max(seq) FROM checkpoints WHERE removed = 0 "
            "GROUP BY thread ORDER BY max(seq) DESC",
            (),
        )

    def has(self, thread: str) -> bool:
        return self._one("SELECT 1 FROM checkpoints WHERE thread = ? AND removed = 0 LIMIT 1", (thread,)) is not None

    def moved(self, after: int) -> set[str]:
        """Threads that have rows after one, removed ones among them."""
        found = {name for (name,) in self._all("SELECT DISTINCT thread FROM checkpoints WHERE seq > ?", (after,))}
        gone = self._all("SELECT DISTINCT thread FROM checkpoints WHERE removed > ?", (after,))
        return found | {name for (name,) in gone}

    def count(self, thread: str, after: int) -> int:
        """How many state checkpoints of a thread lie after a row."""
        sql = "SELECT count(*) FROM checkpoints WHERE thread = ? AND seq > ? AND removed = 0"
        return int(self._one(sql, (thread, after)) or 0)

    def runs(self, run: str) -> list[Listed]:
        return self._listed("run = ? AND removed = 0", (run,))

    def forks(self, thread: str) -> list[Listed]:
        """State checkpoints of other threads that began as this one's."""
        return self._listed("forked = ? AND removed = 0", (thread,))

    def removed(self) -> list[int]:
        """Rows of state checkpoints and writes that were removed, and still have their bodies."""
        sql = "SELECT seq FROM checkpoints WHERE removed > 0 UNION SELECT seq FROM writes WHERE removed > 0"
        return [seq for (seq,) in self._all(sql, ())]

    def rows_of(self, places: Iterable[tuple[str, str, str]]) -> set[int]:
        """Rows of what is not removed, by (thread, namespace, id): of state checkpoints, and of writes after them."""
        sql = " UNION ".join(
            f"SELECT seq FROM {table} WHERE thread = ?1 AND ns = ?2 AND id = ?3 AND removed = 0"
            for table in ("checkpoints", "writes")
        )
        return {seq for each in places for (seq,) in self._all(sql, each)}

    def as_of(self, seq: int, thread: str, ns: str, id: str) -> int | None:
        """The row of a checkpoint as another one's row found it, whether it was removed or not."""
        return self._one(
            "SELECT seq FROM checkpoints WHERE thread = ? AND ns = ? AND id = ? "
            "ORDER BY seq < ? DESC, seq DESC LIMIT 1",
            (thread, ns, id, seq),
        )

    def writes(self, checkpoints: Iterable[int]) -> list[tuple[int, str, str, str]]:
        """(row, thread, namespace, checkpoint) of what was written after the checkpoints in these rows, in order. What
        was removed belongs to checkpoints that were removed with it."""
        sql = (
            "SELECT w.seq, w.thread, w.ns, w.id FROM checkpoints AS c JOIN writes AS w "
            "ON w.thread = c.thread AND w.ns = c.ns AND w.id = c.id AND w.removed = c.removed WHERE c.seq = ?"
        )
        return sorted({row for seq in checkpoints for row in self._all(sql, (seq,))})

    def doubted_writes(self, checkpoints: Iterable[StateCheckpoint]) -> tuple[StateCheckpoint, int] | None:
        """A row of writes of which nobody knows whose they were, and the checkpoint after which they may have been
        written: the newest of its namespace then."""
        if self._one("SELECT 1 FROM lost_writes LIMIT 1", ()) is None:
            return None
        for each in checkpoints:
            found = self._one(
                "SELECT min(seq) FROM lost_writes WHERE seq > ? AND NOT EXISTS (SELECT 1 FROM checkpoints AS c "
                "WHERE c.thread = ? AND c.ns = ? AND c.seq > ? AND c.seq < lost_writes.seq)",
                (each.seq, each.thread, each.ns, each.seq),
            )
            if found is not None:
                return each, found
        return None

    def holder(self, value: bytes) -> int | None:
        """The row that a value is in."""
        return self._one("SELECT seq FROM held WHERE id = ?", (value,))

    def told(self) -> tuple[int, set[tuple[int, str, str, str, bool]]]:
        """How far it goes, and all that it says of state checkpoints by then: (row, thread, namespace, id, whether it
        was removed)."""
        rows = self._all(
            "SELECT f.seq, c.seq, thread, ns, id, removed FROM followed AS f LEFT JOIN checkpoints AS c", ()
        )  # one question: another process may make it anew between two
        return rows[0][0], {(*row[1:5], bool(row[5])) for row in rows if row[1] is not None}

    def held(self) -> list[tuple[bytes, int]]:
        return self._all("SELECT id, seq FROM held", ())

    def _one(self, sql: str, values: Sequence[Any]) -> int | None:
        found = self._all(sql, values)
        return None if not found or found[0][0] is None else int(found[0][0])

    def _all(self, sql: str, values: Sequence[Any]) -> list[Any]:
        try:
            return self._db.execute(sql, values).fetchall()
        except UnicodeEncodeError:
            return []  # asked for a name that is no text: none is called so
        except sqlite3.DatabaseError:
            self.anew()
            self.follow()
            return self._db.execute(sql, values).fetchall()


def _make(db: sqlite3.Connection) -> None:
    for sql in _TABLES.values():
        db.execute(sql)
    db.execute("INSERT INTO followed VALUES(0, x'')")
    db.execute(f"PRAGMA user_version={_VERSION}")
