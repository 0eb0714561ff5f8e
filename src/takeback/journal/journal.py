"""The append-only, hash-chained log of everything. All SQL is in this file.

    log(seq, id, kind, at, body_hash, prev, hash, body)

`hash` covers every field but `body`, which is covered by `body_hash`: prune can set a body NULL, and the chain still
holds. `prev` is the hash before. The head (seq, hash) is also in a small file, written after each commit.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.errors import Damaged, Locked, TakebackError
from takeback.system.installed import upgraded

from .head_file import START, Head, HeadFile, SeenHead

if TYPE_CHECKING:
    import sqlite3
else:
    try:
        import _sqlite3 as sqlite3  # all that we need, without the dates: 2 ms of each start
    except ImportError:
        import sqlite3

VERSION = 2  # 1 until the first row of a thread's state: an older program cannot read those
STATE_ROWS = ("state", "value", "writes", "thread")  # of threads: many and large, so read only by who asks for them
_TABLE = (
    "CREATE TABLE log(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, at INTEGER NOT NULL, "
    "body_hash BLOB NOT NULL, prev BLOB NOT NULL, hash BLOB NOT NULL, body BLOB)"
)
_KIND_INDEX = "CREATE INDEX log_kind ON log(kind, seq)"
_SCHEMA = {("table", "log", _TABLE), ("index", "log_kind", _KIND_INDEX), ("index", "sqlite_autoindex_log_1", None)}
_SALT = 8
_PATIENCE = 10.0  # seconds until a copy has to be of one moment
_WAL_HEADER = 32  # bytes, anew each time SQLite begins its log again


class Row(NamedTuple):
    seq: int
    id: str
    kind: str
    at: float  # seconds since the epoch
    body: Mapping[str, Any] | None  # None: pruned, or damaged; of a row of STATE_ROWS that nobody asked for, empty
    damaged: bool = False  # the row is not as it was written: nothing in it can be relied on


class New(NamedTuple):
    kind: str
    id: str
    body: Mapping[str, Any]  # of a "value" {"bytes": …}, which is stored as it is; JSON of all else


class BadRow(NamedTuple):
    seq: int
    why: str
    holds: bool = False  # the row itself does: what is wrong lies beside it


def _chained(seq: int, id: str, kind: str, at: int, body_hash: bytes, prev: bytes) -> bytes:
    parts = (str(seq).encode(), id.encode(), kind.encode(), str(at).encode(), body_hash, prev)
    return sha256(b"".join([len(part).to_bytes(8, "little") + part for part in parts])).digest()


class _Explained:
    """SQLite's own errors, said so that a person can act on them."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        if isinstance(error, sqlite3.OperationalError):
            raise TakebackError(
                f"the journal cannot be used ({error})", "free space or mend the store's permissions, then run it again"
            ) from error
        if isinstance(error, sqlite3.DatabaseError):
            raise Damaged(f"the journal is damaged ({error})", "run takeback verify, then takeback repair") from error


_explained = _Explained()


@contextmanager
def _copied(path: Path) -> Iterator[Path]:
    """A copy of a database and of SQLite's log, as they were at one moment: while the log is the same one, it has all
    that goes into the database meanwhile."""
    log = path.with_name(f"{path.name}-wal")
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        with tempfile.TemporaryDirectory() as folder:
            copy, before = Path(folder) / path.name, _stamp(path, log)
            shutil.copyfile(path, copy)
            try:
                shutil.copyfile(log, copy.with_name(log.name))
            except FileNotFoundError:
                pass
            if _stamp(path, log) == before:
                yield copy
                return
        time.sleep(0.01)
    raise Locked("the journal cannot be read: others write to it all the time", "run it again")


def _stamp(path: Path, log: Path) -> tuple[int, bytes | int]:
    found = path.stat()
    try:
        with open(log, "rb") as file:
            header = file.read(_WAL_HEADER)
    except FileNotFoundError:
        header = b""
    return found.st_ino, header or found.st_mtime_ns


class Journal:
    """The journal of one workspace in SQLite; `path` None keeps it in memory."""

    def __init__(self, path: Path | None, create: bool = False) -> None:
        self.path = path
        self._head_file = HeadFile(path.with_name("head")) if path else None
        self._has_state = False  # whether the format says so
        self.is_together = False  # a transaction is open: nobody else sees its rows yet
        self.left = Head(0, START)  # the head that this object last made
        self._opened: os.stat_result | None = None  # the file; None in memory
        with _explained:
            self._db = self._connect(create)

    @classmethod
    def copied(cls, path: Path) -> Journal:
        """One that lies where nothing can be written, read into memory: SQLite would write beside it. Others may write
        to it all the while, from outside a sandbox."""
        seen = SeenHead(path.with_name("head"))  # before the rows, which then go as far at least
        with _copied(path) as copy:
            source = cls(copy)
            with _explained:
                here = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
                source._db.backup(here)
            source.close()
        source._db, source.path, source._head_file, source._opened = here, path, seen, None
        here.text_factory = _as_text
        here.execute("PRAGMA query_only=ON")
        return source

    def _connect(self, create: bool) -> sqlite3.Connection:
        if self.path is None:
            db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        else:
            if create and not self.path.exists():
                os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
            self._opened = _stat(self.path)
            uri = f"{_uri(self.path)}?mode=rw"
            db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=30)
        try:
            return self._prepared(db, create)
        except BaseException:
            db.close()  # and with it any lock of a transaction begun
            if self._head_file is not None:
                self._head_file.close()
            raise

    def _prepared(self, db: sqlite3.Connection, create: bool) -> sqlite3.Connection:
        """With its settings made and its schema made or checked."""
        if self.path is not None:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=FULL")
        db.execute("PRAGMA trusted_schema=OFF")
        db.text_factory = _as_text
        if create and self._head_file is not None and self._head_file.read() is None:
            self._head_file.write(Head(0, START), sync=True)
        found = {tuple(row) for row in db.execute("SELECT type, name, sql FROM sqlite_master")}
        if not found and (create or self.path is None):
            db.execute("BEGIN IMMEDIATE")
            db.execute(_TABLE)
            db.execute(_KIND_INDEX)
            db.execute("PRAGMA user_version=1")
            db.execute("COMMIT")
            return db
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise TakebackError(
                f"this store was written by a newer takeback (format {version}, this one reads {VERSION})",
                f"upgrade takeback: {upgraded()}",
            )
        if found != _SCHEMA:
            raise Damaged(
                "the journal's tables are not those takeback made; something else changed them",
                "takeback repair sets the database aside and makes a new one of every row that holds",
            )
        return db

    def close(self) -> None:
        self._db.close()
        if self._head_file is not None:
            self._head_file.close()

    def reopen(self) -> None:
        """After its file was replaced."""
        self._db.close()
        with _explained:
            self._db = self._connect(create=False)

    def _follow(self) -> None:
        """Another process may have repaired the journal, which replaces its file: what is put into the old one is
        lost."""
        if self._opened is None or self.path is None or self._db.in_transaction:
            return
        now = _stat(self.path)
        if now is not None and not os.path.samestat(now, self._opened):
            self.reopen()

    def broken(self) -> str:
        """What SQLite finds wrong with its own pages, as a sentence; empty if it can read them all."""
        try:
            found = [text for (text,) in self._db.execute("PRAGMA integrity_check(3)")]
        except sqlite3.OperationalError:
            return ""  # in use, or not to be read just now: no damage
        except sqlite3.DatabaseError as error:
            found = [str(error)]
        return "" if found == ["ok"] else f"the journal's database is damaged ({'; '.join(found)})"

    # -- the seam: append, rows, get, head, forget ---------------------------

    def append(self, rows: Sequence[New], at: float, across_cut: bool = False) -> list[int]:
        """Adds rows in one synced transaction. After a lost tail it refuses, but for the note that says so."""
        if self.is_together:
            with _explained:
                return self._part(rows, at)
        self._follow()
        with _explained:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                head = self.head()
                cut = self._cut(self.kept_head(), head)
                if cut is not None and not across_cut:
                    raise Damaged(_cut_said(*cut), "run takeback repair to go on without them; it is recorded")
                seqs, head = self._inserted(rows, at, head)
                self._db.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
        self._tell_head(head, cut is not None)
        return seqs

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is appended inside is one synced transaction: one wait for the disk, and all of it or none."""
        self._follow()
        with _explained:
            self._db.execute("BEGIN IMMEDIATE")
            self.is_together = True
            try:
                if (cut := self.cut()) is not None:
                    raise Damaged(_cut_said(*cut), "run takeback repair to go on without them; it is recorded")
                yield
                head = self.head()
                self._db.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
            finally:
                self.is_together = False
        self._tell_head(head, False)

    def _part(self, rows: Sequence[New], at: float) -> list[int]:
        """Of what is appended together: if it fails, the rest does not."""
        self._db.execute("SAVEPOINT part")
        try:
            seqs, _ = self._inserted(rows, at, self.head())
        except BaseException:
            self._has_state = False  # said in this part, maybe
            self._db.execute("ROLLBACK TO part")
            raise
        finally:
            self._db.execute("RELEASE part")
        return seqs

    def _inserted(self, rows: Sequence[New], at: float, head: Head) -> tuple[list[int], Head]:
        seqs = []
        if not self._has_state and any(new.kind in STATE_ROWS for new in rows):
            self._db.execute(f"PRAGMA user_version={VERSION}")
            self._has_state = True
        for new in rows:
            row = _stored(new, head, at)
            self._db.execute("INSERT INTO log VALUES(?,?,?,?,?,?,?,?)", row)
            head = Head(row[0], row[6])
            seqs.append(head.seq)
        self.left = head
        return seqs, head

    def _roll_back(self) -> None:
        self._has_state = False  # said in the same transaction, maybe
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def _tell_head(self, head: Head, was_cut: bool) -> None:
        if self._head_file is None:
            return
        try:
            self._head_file.write(head)
            if was_cut:
                self._head_file.write(head, place=head.seq + 1)  # the head of the lost rows lies there
        except OSError:
            pass  # the rows are committed; a head that lags behind them is fine

    def rows(self, after: int = 0, kinds: Iterable[str] = (), full: Iterable[str] = ()) -> Iterator[Row]:
        """Rows in order, each checked against its own hashes as it is read; altered ones say so and have no body.
        Those of threads come without theirs, unless their kind is asked for in `kinds` or `full`."""
        wanted = tuple(kinds)
        where = f" AND kind IN ({','.join('?' * len(wanted))})" if wanted else ""
        light = frozenset(STATE_ROWS) - {*wanted, *full}
        named = ",".join(f"'{kind}'" for kind in light)
        body = f"CASE WHEN kind IN ({named}) AND body IS NOT NULL THEN x'' ELSE body END" if light else "body"
        with _explained:
            found = self._db.execute(
                f"SELECT seq, id, kind, at, body_hash, prev, hash, {body} FROM log WHERE seq > ?{where} ORDER BY seq",
                (after, *wanted),
            ).fetchall()
        for row in found:
            yield _checked(row, light)

    def at(self, seqs: Sequence[int]) -> dict[int, Row]:
        """The rows of these numbers, with their bodies."""
        out: dict[int, Row] = {}
        for first in range(0, len(seqs), 500):
            some = seqs[first : first + 500]
            marks = ",".join("?" * len(some))
            with _explained:
                found = self._db.execute(
                    f"SELECT seq, id, kind, at, body_hash, prev, hash, body FROM log WHERE seq IN ({marks})", some
                ).fetchall()
            out.update((row[0], _checked(row)) for row in found)
        return out

    def times(self, seqs: Sequence[int]) -> list[float]:
        """When the rows of these numbers were written, in their order; those that are not there are left out."""
        found: dict[int, int] = {}
        for first in range(0, len(seqs), 500):
            some = seqs[first : first + 500]
            marks = ",".join("?" * len(some))
            with _explained:
                found.update(self._db.execute(f"SELECT seq, at FROM log WHERE seq IN ({marks})", some).fetchall())
        return [found[seq] / 1e6 for seq in seqs if seq in found]

    def get(self, id: str) -> Row | None:
        with _explained:
            found = self._db.execute(
                "SELECT seq, id, kind, at, body_hash, prev, hash, body FROM log WHERE id = ?", (id,)
            ).fetchone()
        return None if found is None else _checked(found)

    def letters(self, id: str, least: int) -> int:
        """How many letters of an id tell it from every other one."""
        with _explained:
            beside = [
                self._db.execute("SELECT max(id) FROM log WHERE id < ?", (id,)).fetchone()[0],
                self._db.execute("SELECT min(id) FROM log WHERE id > ?", (id,)).fetchone()[0],
            ]
        shared = 0
        for other in beside:
            if isinstance(other, str):
                alike = (at for at, (a, b) in enumerate(zip(id, other, strict=False)) if a != b)
                shared = max(shared, next(alike, len(id)))
        return max(least, shared + 1)

    def head(self) -> Head:
        self._follow()
        with _explained:
            found = self._db.execute("SELECT seq, hash FROM log ORDER BY seq DESC LIMIT 1").fetchone()
        if found is None:
            return Head(0, START)
        return Head(found[0], found[1] if isinstance(found[1], bytes) else START)  # altered: the chain breaks there

    def hash_at(self, seq: int) -> bytes | None:
        with _explained:
            found = self._db.execute("SELECT hash FROM log WHERE seq = ?", (seq,)).fetchone()
        return None if found is None or not isinstance(found[0], bytes) else found[0]

    def newest_id(self, kind: str) -> str:
        """Of the rows of a kind that have not been pruned; empty if there is none."""
        with _explained:
            found = self._db.execute(
                "SELECT id FROM log WHERE kind = ? AND body IS NOT NULL ORDER BY seq DESC LIMIT 1", (kind,)
            ).fetchone()
        return found[0] if found is not None else ""

    def newest(self, *kinds: str) -> int:
        """The number of the newest row of these kinds; 0 if there is none."""
        with _explained:
            found = [
                self._db.execute("SELECT max(seq) FROM log WHERE kind = ?", (kind,)).fetchone()[0] for kind in kinds
            ]
        return max((seq for seq in found if seq is not None), default=0)

    def last(self, kind: str) -> Row | None:
        return next(self.newest_first(kind), None)

    def newest_first(self, kind: str) -> Iterator[Row]:
        """Rows of a kind that have not been pruned, each read when it is asked for."""
        below = 1 << 62
        while True:
            with _explained:
                found = self._db.execute(
                    "SELECT seq, id, kind, at, body_hash, prev, hash, body FROM log WHERE kind = ? AND seq < ? "
                    "AND body IS NOT NULL ORDER BY seq DESC LIMIT 1",
                    (kind, below),
                ).fetchone()
            if found is None:
                return
            below = found[0]
            yield _checked(found)

    def bodied(self, kind: str) -> list[tuple[int, float]]:
        """(seq, time) of the rows of a kind that have not been pruned."""
        with _explained:
            found = self._db.execute(
                "SELECT seq, at FROM log WHERE kind = ? AND body IS NOT NULL ORDER BY seq", (kind,)
            ).fetchall()
        return [(seq, at / 1e6) for seq, at in found]

    def count(self, kinds: Sequence[str], up_to: int) -> int:
        """How many rows of these kinds there are up to a row, pruned ones included: ordinals never move."""
        marks = ",".join("?" * len(kinds))
        with _explained:
            found = self._db.execute(
                f"SELECT count(*) FROM log WHERE kind IN ({marks}) AND seq <= ?", (*kinds, up_to)
            ).fetchone()
        return int(found[0])

    def forget(self, seqs: Iterable[int]) -> None:
        """Removes bodies; a prune row that names them was appended before. The bytes are overwritten on disk."""
        with _explained:
            self._db.execute("PRAGMA secure_delete=ON")
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany("UPDATE log SET body = NULL WHERE seq = ?", ((seq,) for seq in seqs))
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def compact(self) -> None:
        with _explained:
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    # -- the head, kept outside the table ------------------------------------

    def kept_head(self) -> Head | None:
        """The head as it is kept outside the table."""
        return self.head() if self._head_file is None else self._head_file.read()

    def cut(self) -> tuple[int, int] | None:
        """The first and last row that were lost: the head file is ahead of the table, or tells of another row."""
        kept = self.kept_head()  # before the table: another process may append in between
        return self._cut(kept, self.head())

    def _cut(self, kept: Head | None, newest: Head) -> tuple[int, int] | None:
        if kept is None or not kept.seq or kept == newest:
            return None
        head = newest.seq
        if kept.seq > head:
            return head + 1, kept.seq
        with _explained:
            found = self._db.execute(
                "SELECT seq, id, kind, at, body_hash, prev, hash, body FROM log WHERE seq = ?", (kept.seq,)
            ).fetchone()
        if found is not None and (found[6] == kept.hash or not holds(found)):
            return None  # an altered row is told as such, and is still there
        return kept.seq, head

    # -- verify --------------------------------------------------------------

    def known_gaps(self) -> set[int]:
        """Rows that a damaged database lost, as a repair has noted."""
        return {seq for row in self.rows(kinds=("note",)) if row.body for seq in _span(row.body.get("gap", ()))}

    def unknown(self, after: int, up_to: int) -> list[int]:
        """Rows in between that are missing, or altered so that they may have been of any kind."""
        with _explained:
            found = self._db.execute(
                "SELECT seq, id, kind, at, body_hash, prev, hash, NULL FROM log WHERE seq > ? AND seq <= ?",
                (after, up_to),
            ).fetchall()
        missing = range(after + 1, up_to + 1) if len(found) < up_to - after else ()
        return sorted({*missing} - {row[0] for row in found} | {row[0] for row in found if not holds(row)})

    def check(self) -> Iterator[BadRow]:
        """Walks the chain and names each row that does not hold."""
        prev, expected = START, 1
        kept = self.kept_head()  # before the rows: another process may append while they are read
        forgotten: set[int] = set()
        known_gaps = self.known_gaps()
        empty: list[int] = []
        with _explained:
            found = self._db.execute(
                "SELECT seq, id, kind, at, body_hash, prev, hash, body FROM log ORDER BY seq"
            ).fetchall()
        for seq, id, kind, at, body_hash, row_prev, hash, body in found:
            if seq != expected:
                if not known_gaps.issuperset(range(expected, seq)):
                    yield BadRow(expected, f"rows {expected} to {seq - 1} are missing")
            elif row_prev != prev:
                yield BadRow(seq, "does not follow the row before it")
            if not holds((seq, id, kind, at, body_hash, row_prev, hash, None)):
                yield BadRow(seq, "the row was altered")
            elif body is None:
                empty.append(seq)
            elif not holds((seq, id, kind, at, body_hash, row_prev, hash, body)):
                yield BadRow(seq, "its body was altered")
            elif kind == "prune":
                forgotten.update(_span(json.loads(body)["forgot"]))
            prev, expected = hash, seq + 1
        for seq in empty:
            if seq not in forgotten and seq not in known_gaps:
                yield BadRow(seq, "its body is gone, and no prune removed it")
        if kept is None and found and self._head_file is not None:
            yield BadRow(found[-1][0], "the head file is missing or damaged", holds=True)
        elif kept is not None and kept.seq >= expected:
            yield BadRow(expected, _cut_said(expected, kept.seq))
        elif kept is not None and kept.seq and next((row[6] for row in found if row[0] == kept.seq), None) != kept.hash:
            yield BadRow(kept.seq, "the journal was rewritten: its head is not the one that was kept")


def _as_text(data: bytes) -> str:
    """An altered row must not stop the others."""
    return data.decode(errors="replace")


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _uri(path: Path) -> str:
    """As SQLite reads it. `Path.as_uri` brings in all of urllib for it, at the cost of a start."""
    if os.name == "nt":
        return path.as_uri()
    return "file://" + str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def glimpse(path: Path, kinds: Sequence[str], most: int) -> list[Row]:
    """The newest rows of these kinds that are not pruned. Read-only, and it waits for nobody: a person is typing."""
    marks = ",".join("?" * len(kinds))
    with _explained:
        db = sqlite3.connect(f"{_uri(path)}?mode=ro", uri=True, timeout=0.1)
        try:
            found = db.execute(
                "SELECT seq, id, kind, at, body_hash, prev, hash, body FROM log "
                f"WHERE kind IN ({marks}) AND body IS NOT NULL ORDER BY seq DESC LIMIT ?",
                (*kinds, most),
            ).fetchall()
        finally:
            db.close()
    return [_checked(row) for row in found]


def rebuild(path: Path, rows: Iterable[Stored], note: New, at: float) -> None:
    """A new database of rows as they were written, and one more that says so. Synced when this returns."""
    path.unlink(missing_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("PRAGMA synchronous=FULL")
        db.execute("BEGIN")
        db.execute(_TABLE)
        db.execute(_KIND_INDEX)
        head, version = Head(0, START), 1
        for row in rows:
            db.execute("INSERT INTO log VALUES(?,?,?,?,?,?,?,?)", row)
            head = Head(row[0], row[6])
            version = VERSION if row[2] in STATE_ROWS else version
        db.execute(f"PRAGMA user_version={version}")
        db.execute("INSERT INTO log VALUES(?,?,?,?,?,?,?,?)", _stored(note, head, at))
        db.execute("COMMIT")
    finally:
        db.close()


def spans(seqs: Iterable[int]) -> list[list[int]]:
    """Sequence numbers as [first, last] pairs."""
    out: list[list[int]] = []
    for seq in sorted(seqs):
        if out and out[-1][1] == seq - 1:
            out[-1][1] = seq
        else:
            out.append([seq, seq])
    return out


def _span(pairs: Iterable[Sequence[int]]) -> Iterator[int]:
    for first, last in pairs:
        yield from range(first, last + 1)


def _cut_said(first: int, last: int) -> str:
    return f"the journal's tail is cut: rows {first} to {last} are lost"


Stored = tuple[int, str, str, int, bytes, bytes, bytes, bytes | None]


def as_kept(at: float) -> float:
    """A time as a row gives it back."""
    return int(at * 1e6) / 1e6


def _stored(new: New, head: Head, at: float) -> Stored:
    """A new row as it is written after the head."""
    if new.kind == "value":
        body = os.urandom(_SALT) + new.body["bytes"]
    else:
        body = json.dumps({**new.body, "salt": os.urandom(_SALT).hex()}, separators=(",", ":")).encode()
    body_hash = sha256(body).digest()
    seq, when = head.seq + 1, int(at * 1e6)
    hash = _chained(seq, new.id, new.kind, when, body_hash, head.hash)
    return seq, new.id, new.kind, when, body_hash, head.hash, hash, body


def holds(row: Stored) -> bool:
    """Whether a row is as it was written. What was altered may even be of another type."""
    seq, id, kind, at, body_hash, prev, hash, body = row
    try:
        return _chained(seq, id, kind, at, body_hash, prev) == hash and (
            body is None or sha256(body).digest() == body_hash
        )
    except (AttributeError, TypeError):
        return False


def _checked(row: Stored, light: frozenset[str] = frozenset()) -> Row:
    """A row as it is handed out; of the kinds in `light` the body was not read."""
    seq, id, kind, at, _, _, _, body = row
    is_left_out = body is not None and kind in light
    if not holds((*row[:7], None) if is_left_out else row):
        return Row(seq, str(id), str(kind), at / 1e6 if isinstance(at, int) else 0.0, None, damaged=True)
    if body is None or is_left_out:
        return Row(seq, id, kind, at / 1e6, None if body is None else {})
    return Row(seq, id, kind, at / 1e6, {"bytes": body[_SALT:]} if kind == "value" else json.loads(body))
