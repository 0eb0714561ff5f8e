"""The values that threads refer to: which are held, and where; put once, read with what they stand on.

The caller holds the store lock wherever something is put.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from takeback.errors import Damaged, TakebackError
from takeback.journal.journal import Journal, New
from takeback.model.ids import new_id
from takeback.model.thread_states import NewState
from takeback.store.blobs import Blobs

from . import value_codec
from .index import ThreadIndex

if TYPE_CHECKING:
    from .stores import StateStore

HERE = "local"  # the store of the workspace itself
_AT_HAND = 32 << 20  # bytes of values that were read or put
_NAMES = 256  # names of threads' values whose newest one is known


class Fresh(NamedTuple):
    """A value that may have to be stored."""

    name: str
    id: bytes
    data: bytes


class Upload(NamedTuple):
    """Values that lie beyond this machine now, in one blob; and the row of each."""

    blob: str
    rows: Mapping[bytes, bytes]


class HeldValues:
    def __init__(
        self,
        index: ThreadIndex,
        journal: Journal,
        blobs: Blobs,
        store: StateStore | None,
        configured: Callable[[str], StateStore],
        chosen: str = HERE,
    ) -> None:
        self.index = index
        self.journal = journal
        self.blobs = blobs
        self._store = store  # where values go that are put through this object, before all settings
        self._chosen = chosen  # and where they go by the settings, by its name
        self._configured = configured  # a store by its name, as the settings have it: to read from, too
        self._stores: dict[str, StateStore] = {store.name: store} if store is not None else {}
        self._data: OrderedDict[bytes, tuple[bytes, int]] = OrderedDict()  # value → its bytes, its depth
        self._size = 0
        self._newest: OrderedDict[tuple[str, str, str], bytes] = OrderedDict()  # thread, namespace, name → value
        self._uploaded: OrderedDict[bytes, str] = OrderedDict()  # value → the blob that it was put into by this object
        self._packs: OrderedDict[bytes, frozenset[bytes]] = OrderedDict()  # value → blobs of the packs it stands on
        self._pruned = 0  # the newest prune that what is at hand has outlived

    def read_from(self, store: StateStore) -> None:
        """Reads values that lie there too; what is put goes where it went."""
        self._stores.setdefault(store.name, store)

    # -- putting -------------------------------------------------------------------

    @property
    def goes_elsewhere(self) -> bool:
        """Whether values that are put through this object go beyond this machine."""
        return self._store is not None or self._chosen != HERE

    @property
    def store(self) -> StateStore:
        """Where they go then. Made when it is needed: what needs no key asks for none."""
        if self._store is None:
            self._store = self._stores[self._chosen] = self._configured(self._chosen)
        return self._store

    def referred(self, new: NewState) -> tuple[dict[str, str], list[Fresh]]:
        """References for the values of a state, and those that may have to be stored."""
        refs: dict[str, str] = {}
        fresh: list[Fresh] = []
        for name, value in new.values.items():
            if isinstance(value, str):
                refs[name] = value
            elif len(value) <= value_codec.INLINE:
                refs[name] = "=" + b2a_base64(value, newline=False).decode()
            else:
                id = value_codec.id_of(value)
                refs[name] = id.hex()
                fresh.append(Fresh(name, id, value))
        return refs, fresh

    def upload(self, fresh: Sequence[Fresh]) -> Upload:
        """Puts values into the store beyond this machine, as one blob."""
        parts = {id: value_codec.encode(data, id, largest=len(data) + 1).body[32:] for _, id, data in fresh}
        whole = b"".join(parts.values())
        blob, digest, at = self.store.put(whole), sha256(whole).hexdigest(), 0
        rows: dict[bytes, bytes] = {}
        for id, part in parts.items():
            rows[id] = value_codec.elsewhere(id, value_codec.Place(self.store.name, blob, digest, at, len(part)))
            at += len(part)
        return Upload(blob, rows)

    def rows_for(
        self, new: NewState, fresh: Sequence[Fresh], upload: Upload | None, parent: Mapping[str, str]
    ) -> list[New]:
        """Rows for the values that are not held yet; large ones are put into the packs. `parent` has the references
        of the state that this one follows: what grew is stored as what was added."""
        rows: dict[bytes, bytes] = {}
        for name, id, data in fresh:
            if id not in rows and not self.has(id):
                if upload is not None and id in upload.rows:
                    rows[id], depth = upload.rows[id], 0
                    self._uploaded[id] = upload.blob
                else:
                    rows[id], depth = self._stored(id, data, self._base(new, name, parent))
                self._remember(id, data, depth)
            self._newest[(new.thread, new.ns, name)] = id
            self._newest.move_to_end((new.thread, new.ns, name))
        while len(self._newest) > _NAMES:
            self._newest.popitem(last=False)
        while len(self._uploaded) > 16 * _NAMES:
            self._uploaded.popitem(last=False)
        for id, body in rows.items():
            self._packs[id] = self._packs_of(id, body)
        if any(body[32] == value_codec.PACKED for body in rows.values()):
            self.blobs.flush()
        return [New("value", new_id(), {"bytes": body}) for body in rows.values()]

    def knows(self, new: NewState, fresh: Sequence[Fresh]) -> bool:
        """Whether it is known what each of these grew from."""
        return all((new.thread, new.ns, each.name) in self._newest for each in fresh)

    def _stored(self, id: bytes, data: bytes, base: tuple[bytes, bytes, int] | None) -> tuple[bytes, int]:
        found = value_codec.encode(data, id, base)
        if found.body:
            return found.body, found.depth
        self.blobs.put(data, id)
        return value_codec.packed(id), 0

    def _base(self, new: NewState, name: str, parent: Mapping[str, str]) -> tuple[bytes, bytes, int] | None:
        """The value that this one most likely grew from."""
        id = self._newest.get((new.thread, new.ns, name))
        ref = parent.get(name, "=")
        if id is None and ref[0] != "=":
            id = bytes.fromhex(ref)
        if id is None:
            return None
        try:
            return (id, *self._read(id))
        except TakebackError:
            return None  # lost: this one is stored whole

    def packs(self, refs: Mapping[str, str]) -> list[str]:
        """The blobs of the packs that these values stand on: prune keeps them with the row that names them."""
        found: set[bytes] = set()
        for ref in refs.values():
            if ref[0] != "=":
                id = bytes.fromhex(ref)
                if id not in self._packs:
                    self._packs[id] = self._packs_of(id, self.row(id))
                found |= self._packs[id]
        while len(self._packs) > 16 * _NAMES:
            self._packs.popitem(last=False)
        return sorted(id.hex() for id in found)

    def blob(self, refs: Mapping[str, str]) -> str:
        """The newest blob beyond this machine that some of these values lie in; empty if none does."""
        newest, found = 0, ""
        for ref in refs.values():
            if ref[0] == "=":
                continue
            id = bytes.fromhex(ref)
            seq = self.index.holder(id)
            if seq is None and id in self._uploaded:  # together with this one
                return self._uploaded[id]
            if seq is not None and seq > newest and (place := value_codec.place_of(self.row(id))) is not None:
                newest, found = seq, place.blob
        return found

    def _packs_of(self, id: bytes, body: bytes) -> frozenset[bytes]:
        if body[32] == value_codec.PACKED:
            return frozenset({id})
        base = value_codec.base_of(body)
        if base is None:
            return frozenset()
        return self._packs[base] if base in self._packs else self._packs_of(base, self.row(base))

    # -- reading -------------------------------------------------------------------

    def has(self, id: bytes) -> bool:
        return id in self._data or self.index.holder(id) is not None

    def read(self, ref: str) -> bytes:
        """What a reference stands for, checked by its hash."""
        return a2b_base64(ref[1:]) if ref[0] == "=" else self._read(bytes.fromhex(ref))[0]

    def row(self, id: bytes) -> bytes:
        """The body of the row that a value is in."""
        seq = self.index.holder(id)
        found = self.journal.at([seq]).get(seq) if seq is not None else None
        if found is None or found.body is None or found.kind != "value" or found.body["bytes"][:32] != id:
            where = f" (row {seq})" if seq is not None else ""
            raise Damaged(
                f"value {id.hex()[:12]} is missing or altered{where}", "takeback thread verify names what is lost"
            )
        return bytes(found.body["bytes"])

    def _read(self, id: bytes) -> tuple[bytes, int]:
        """A value, and how many others were read for it."""
        if (known := self._data.get(id)) is not None:
            self._data.move_to_end(id)
            return known
        deeper = 0

        def base(other: bytes) -> bytes:
            nonlocal deeper
            data, depth = self._read(other)
            deeper = depth + 1
            return data

        data = value_codec.decode(self.row(id), base, self.blobs.get, self._fetched)
        self._remember(id, data, deeper)
        return data, deeper

    def _fetched(self, place: value_codec.Place) -> bytes:
        if place.store not in self._stores:
            self._stores[place.store] = self._configured(place.store)
        data = self._stores[place.store].get(place.blob, bytes.fromhex(place.sha256))
        return data[place.at : place.at + place.size]

    def _remember(self, id: bytes, data: bytes, depth: int) -> None:
        if id in self._data:
            return
        self._data[id] = data, depth
        self._size += len(data)
        while self._size > _AT_HAND and len(self._data) > 1:
            _, (old, _) = self._data.popitem(last=False)
            self._size -= len(old)

    def outlived(self) -> bool:
        """Whether all that is at hand is still held. After a prune, of whichever process, it is forgotten: what is put
        from now on must not stand on a value that went."""
        newest = self.journal.newest("prune")
        if newest == self._pruned:
            return True
        self._pruned = newest
        self.forget()
        return False

    def forget(self) -> None:
        """Nothing is at hand any more: what was may be in no row, or altered since."""
        for kept in (self._data, self._newest, self._uploaded, self._packs):
            kept.clear()
        self._size = 0
