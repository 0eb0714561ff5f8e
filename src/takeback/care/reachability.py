"""Which blobs a journal row needs: the mark phase of prune, and what verify holds against the store."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from takeback.errors import Damaged
from takeback.journal import change_lists
from takeback.journal.history import unpack_list, unpack_snapshot
from takeback.journal.journal import Row
from takeback.model.effects import FILE, LINK, raw
from takeback.store import folder_objects
from takeback.store.blobs import Blobs


class Need(NamedTuple):
    id: bytes
    path: bytes  # what would be lost without it; empty for a folder object or a change list


def needs(row: Row, blobs: Blobs, seen: set[bytes] | None) -> Iterator[Need]:
    """Every blob a row leads to; subtrees already seen are not walked again. With None each path is named, also of
    folders that are alike."""
    body = row.body
    if body is None:
        return
    if row.kind == "checkpoint":
        snapshot = unpack_snapshot(body["snapshot"])
        if snapshot.root.xattrs:
            yield Need(snapshot.root.xattrs, b"")
        yield from _tree_needs(snapshot.stored, blobs, seen)
        return
    for id in _held(body) if row.kind == "act" else ():
        yield Need(id, b"")
    for id in body.get("blobs", ()) if row.kind == "state" else ():
        yield Need(bytes.fromhex(id), b"//" + raw(body["thread"]))
    for packed in [body["list"]] if "list" in body else [s["list"] for s in body.get("segments", ())]:
        if "blob" in packed:
            yield Need(bytes.fromhex(packed["blob"]), b"")
        try:
            found = unpack_list(packed, blobs.get)
        except Damaged:
            continue  # the list itself is named as lost
        for change in found:
            for id in change_lists.references([change]):
                yield Need(id, change.path)


def _held(body: Mapping[str, Any]) -> list[bytes]:
    """What an act holds, such as a mail. Whoever wrote the row may have named anything."""
    did = body.get("did")
    named = did.get("blobs") if isinstance(did, dict) else None
    ids = [id for id in named if isinstance(id, str)] if isinstance(named, list) else []
    return [bytes.fromhex(id) for id in ids if re.fullmatch("[0-9a-f]{64}", id)]


def _tree_needs(stored: bytes, blobs: Blobs, seen: set[bytes] | None) -> Iterator[Need]:
    waiting = [(b"", stored)]
    while waiting:
        path, id = waiting.pop()
        if seen is not None:
            if id in seen:
                continue
            seen.add(id)
        yield Need(id, path)
        try:
            folder = folder_objects.decode(blobs.get(id))
        except Damaged:
            continue
        for name, entry in zip(folder.names, folder.entries):
            if entry.kind in (FILE, LINK):
                yield Need(entry.content, folder_objects.join(path, name))
            if entry.xattrs:
                yield Need(entry.xattrs, folder_objects.join(path, name))
        waiting += [(folder_objects.join(path, name), ids.stored) for name, ids in folder.subtrees.items()]
