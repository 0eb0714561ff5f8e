"""What a damaged database still holds: its rows, found page by page, each proved by its own hash.

SQLite gives up where a page that it needs is damaged. Here every page is read for itself, in the database and in its
write-ahead log, and a row counts only if it is as it was written: nothing is guessed. What was damaged is copied aside
first, never deleted; the rows that are lost are named in the new journal.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from takeback.config.settings import Settings
from takeback.errors import Damaged
from takeback.journal.head_file import kept_head
from takeback.journal.journal import New, Stored, holds, rebuild, spans
from takeback.model.ids import new_id
from takeback.store import layout
from takeback.system.locks import Lock

_LEAF = 13  # a page of rows
_WAL_HEAD, _FRAME_HEAD = 32, 24
_Pages = dict[int, list[bytes]]  # by number; a page may have several versions, the newest first


class Salvaged(NamedTuple):
    rows: list[Stored]  # in their order
    lost: list[list[int]]  # [first, last] of rows that are gone, or have lost their body


# -- setting right -----------------------------------------------------------


def why_closed(settings: Settings, root: Path) -> str:
    """Why the store of a root cannot be opened, if that is because of damage; empty otherwise."""
    try:
        opened, _ = layout.open_store(settings.home, root, settings.portable)
    except Damaged as error:
        return error.message
    opened.close()
    return ""


def mend(settings: Settings, root: Path) -> list[str]:
    """Makes a store that cannot be opened one that can; returns what was done."""
    folder = layout.folder_of(settings.home, root)
    notes = []
    with (
        Lock(folder / "apply.lock", settings.portable).hold(settings.lock_timeout),
        Lock(folder / "store.lock", settings.portable).hold(settings.lock_timeout),
    ):
        try:
            layout.read_meta(folder)
        except Damaged:
            set_aside(folder, ["workspace.json"])
            layout.write_meta(folder, layout.new_meta(root, root.stat().st_ino, settings.config))
            notes.append(f"workspace.json was made anew for {root}")
        if why_closed(settings, root):
            notes.append(rebuild_journal(folder))
    return notes


def rebuild_journal(folder: Path) -> str:
    """Sets the database aside and puts a new one in its place, of every row that can still be read. The caller holds
    the locks. After a crash anywhere in here the rows are in the old file, in the new one or in both."""
    found = read(folder)
    new = folder / "journal.db.new"
    note = New("note", new_id(), {"what": "gap", "gap": found.lost})
    set_aside(folder, ["journal.db", "journal.db-wal", "journal.db.new", "head"])
    rebuild(new, found.rows, note, time.time())
    for beside in ("journal.db-wal", "journal.db-shm"):  # they belong to the old one
        (folder / beside).unlink(missing_ok=True)
    os.replace(new, folder / "journal.db")
    told = f"the journal was rebuilt from {len(found.rows):,} rows; the damaged database is in the store's quarantine"
    return told + (f"; lost: {said(found.lost)}" if found.lost else "; none is lost")


def set_aside(folder: Path, names: list[str]) -> None:
    """Copies files of the store into its quarantine."""
    aside = folder / "quarantine" / f"{int(time.time())}-{new_id()[:6]}"
    aside.parent.mkdir(mode=0o700, exist_ok=True)
    aside.mkdir(mode=0o700)
    for name in names:
        if (folder / name).exists():
            shutil.copy2(folder / name, aside / name)
            with open(aside / name, "r+b") as copy:
                os.fsync(copy.fileno())


def said(lost: list[list[int]]) -> str:
    return ", ".join(f"row {first}" if first == last else f"rows {first} to {last}" for first, last in lost)


# -- reading -----------------------------------------------------------------


def read(folder: Path) -> Salvaged:
    """Every row that is still as it was written."""
    found: dict[int, Stored] = {}
    for name in ("journal.db", "journal.db.new"):  # the second is left by a repair that was killed
        for row in _rows(_pages(folder / name, folder / f"{name}-wal")):
            known = found.get(row[0])
            if known is None or (known[7] is None and known[6] == row[6]):
                found[row[0]] = row
    rows = [found[seq] for seq in sorted(found)]
    forgotten = _forgotten(rows)
    rows = [(*row[:7], None) if row[0] in forgotten else row for row in rows]
    kept = kept_head(folder / "head")
    last = max(kept.seq if kept else 0, *found, 0)
    gone = set(range(1, last + 1)) - found.keys()
    gone |= {row[0] for row in rows if row[7] is None and row[0] not in forgotten}
    return Salvaged(rows, spans(gone))


def _forgotten(rows: list[Stored]) -> set[int]:
    """Rows whose body a prune took: an older page may still have it."""
    bodies = [json.loads(row[7]) for row in rows if row[2] == "prune" and row[7] is not None]
    return {seq for body in bodies for first, last in body.get("forgot", ()) for seq in range(first, last + 1)}


def _pages(database: Path, wal: Path) -> _Pages:
    found: _Pages = {}
    data = wal.read_bytes() if wal.exists() else b""
    size = _page_size(data[8:12])
    for at in range(_WAL_HEAD, len(data) - _FRAME_HEAD - size + 1, _FRAME_HEAD + size):
        page = data[at + _FRAME_HEAD : at + _FRAME_HEAD + size]
        found.setdefault(int.from_bytes(data[at : at + 4], "big"), []).insert(0, page)
    data = database.read_bytes() if database.exists() else b""
    size = _page_size(data[16:18])
    for number, at in enumerate(range(0, len(data), size), 1):
        found.setdefault(number, []).append(data[at : at + size])
    return found


def _page_size(field: bytes) -> int:
    size = int.from_bytes(field, "big")
    return size if 512 <= size <= 65536 and size & (size - 1) == 0 else 4096


def _rows(pages: _Pages) -> Iterator[Stored]:
    """The rows in all pages of rows. Whatever does not parse is none."""
    for number, versions in pages.items():
        for page in versions:
            start = 100 if number == 1 else 0
            if page[start : start + 1] != bytes([_LEAF]):
                continue
            count = int.from_bytes(page[start + 3 : start + 5], "big")
            for place in range(start + 8, start + 8 + 2 * count, 2):
                for newest in (True, False):
                    try:
                        row = _row(page, int.from_bytes(page[place : place + 2], "big"), pages, newest)
                    except (IndexError, ValueError):
                        continue
                    if holds(row):
                        yield row
                        break
                    if holds((*row[:7], None)):
                        yield (*row[:7], None)


def _row(page: bytes, at: int, pages: _Pages, newest: bool) -> Stored:
    """One row of a page; what does not fit there goes on in a chain of further pages."""
    length, at = _varint(page, at)
    seq, at = _varint(page, at)
    size = len(page)
    most, least = size - 35, (size - 12) * 32 // 255 - 23
    here = length
    if length > most:
        here = least + (length - least) % (size - 4)
        here = here if here <= most else least
    data = page[at : at + here]
    number = int.from_bytes(page[at + here : at + here + 4], "big") if here < length else 0
    for _ in pages:  # at most once through all: a damaged chain may lead in a circle
        if len(data) >= length or number not in pages:
            break
        more = pages[number][0 if newest else -1]
        data += more[4 : 4 + length - len(data)]
        number = int.from_bytes(more[:4], "big")
    _, id, kind, when, body_hash, prev, hash, body = _values(data)
    return (
        seq,
        id.decode(),
        kind.decode(),
        int.from_bytes(when, "big", signed=True),
        body_hash,
        prev,
        hash,
        body or None,
    )


def _values(data: bytes) -> Iterator[bytes]:
    """The columns of a record as bytes."""
    end, at = _varint(data, 0)
    place = end
    while at < end:
        kind, at = _varint(data, at)
        size = (kind - 12) // 2 if kind >= 12 else (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)[kind]
        yield data[place : place + size]
        place += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for n in range(9):
        byte = data[at + n]
        if n == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + n + 1
    raise ValueError
