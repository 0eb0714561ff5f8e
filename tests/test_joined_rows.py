"""Rows taken up together lead to the known tree that they lead to one by one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from takeback.look.known_tree import Index
from takeback.look.observer import Joined
from takeback.model.effects import FILE, FOLDER, LINK, UNOBSERVED, Change, Entry, State
from takeback.store.folder_objects import Folder
from takeback.system.safefs import keys
from takeback.workspace import Workspace

NAMES = (b"a", b"b", b"c")


class History:
    """A tree that changes by rows, as looks and take-backs journal them; some of it is not seen for a while."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.tree: dict[bytes, Entry] = {b"": self.entry(FOLDER)}

    def entry(self, kind: int) -> Entry:
        n = self.random.randrange(1, 200)
        if kind == FOLDER:
            return Entry(FOLDER, self.random.choice((0o755, 0o700)), 0, b"", b"", b"", n, 0, 0)
        return Entry(kind, 0o644, n, bytes([n]) * 32, b"", b"", n, 0, 0)

    def row(self) -> list[Change]:
        found: dict[bytes, Change] = {}
        for _ in range(self.random.choice((1, 1, 1, 2, 5))):
            for change in self.step():
                first = found.get(change.path)
                found[change.path] = change if first is None else first._replace(after=change.after)
        return list(found.values())

    def step(self) -> list[Change]:
        folders = [path for path, entry in self.tree.items() if entry.kind == FOLDER and path.count(b"/") < 3]
        parent, name = self.random.choice(folders), self.random.choice(NAMES)
        path = parent + b"/" + name if parent else name
        what = self.random.random()
        if what < 0.1:
            return [self.put(b"", self.entry(FOLDER))]
        if what < 0.2 and parent:
            return [self.put(parent, self.entry(FOLDER))]
        before = self.tree.get(path)
        if what < 0.35:
            return [*self.gone(path), self.put(path, self.entry(FOLDER))] if not _is_folder(before) else []
        if what < 0.5:
            return self.gone(path)
        if what < 0.55:  # seen for the first time, or no longer
            self.gone(path)
            if self.random.random() < 0.5:
                return [Change(path, before, UNOBSERVED)]
            self.tree[path] = now = self.entry(self.random.choice((FILE, FOLDER)))
            return [Change(path, UNOBSERVED, now)]
        return [
            *(self.gone(path) if _is_folder(before) else []),
            self.put(path, self.entry(self.random.choice((FILE, FILE, LINK)))),
        ]

    def put(self, path: bytes, entry: Entry) -> Change:
        before, self.tree[path] = self.tree.get(path), entry
        return Change(path, before, entry)

    def gone(self, path: bytes) -> list[Change]:
        below = [each for each in self.tree if each == path or each.startswith(path + b"/")]
        return [Change(each, self.tree.pop(each), None) for each in below]


def _is_folder(state: State) -> bool:
    return state is not None and state.kind == FOLDER


def begun(seed: int) -> Index:
    """Whole, or partly seen, as an index is after `track`."""
    index = Index(root=Entry(FOLDER, 0o755, 0, b"", b"", b"", 0, 0, 0), root_key=keys.ZERO)
    if seed % 3:
        index.put_folder(b"", Folder([], [], {}, complete=bool(seed % 2)), b"")
    return index


def picture(index: Index) -> object:
    records = {path: (r.names, r.keys, r.identity, r.stored, r.object) for path, r in index.folders.items()}
    return records, index.root, index.root_key, index.gaps, index.incomplete


@pytest.mark.parametrize("seed", range(300))
def test_rows_together_are_rows_one_by_one(seed: int) -> None:
    history, one_by_one, together = History(seed), begun(seed), begun(seed)
    joined = Joined(together)
    for at in range(history.random.choice((5, 60))):
        row = history.row()
        one_by_one.apply(row)
        joined.add(row)
        if at % 17 == 16:
            joined.settle()
            assert picture(together) == picture(one_by_one), at
    joined.settle()
    assert picture(together) == picture(one_by_one)


def test_many_rows_make_a_folder_anew_once(ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project / "deep/er"
    folder.mkdir(parents=True)
    ws.checkpoint("start")
    for n in range(40):
        (folder / f"{n}.txt").write_text(f"{n}\n")
        ws.track([folder / f"{n}.txt"])
    with ws.alone():
        known = picture(ws.observer.known())
    (ws.store.folder / "index").unlink()
    ws.observer.forget()
    ws.observer._index.forget()
    made: list[bytes] = []
    put = Index.put_folder

    def counted(self: Index, path: bytes, *rest: object) -> object:
        made.append(path)
        return put(self, path, *rest)

    monkeypatch.setattr(Index, "put_folder", counted)
    with ws.alone():
        again = ws.observer.known()
    monkeypatch.undo()
    assert made.count(b"deep/er") == 2, "of the checkpoint, and of all rows since"
    assert picture(again)[0].keys() == known[0].keys()
    assert all(picture(again)[0][path][2:] == known[0][path][2:] for path in known[0])
