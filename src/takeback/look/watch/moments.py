"""Moments: what changed in a tree that is followed, each quiet moment as one effect.

Nobody vouches for it. It is a turn, of the actor `watch`, only while no agent has acted since the last named
checkpoint; after that it may be anyone's, and is unattributed.
"""

from __future__ import annotations

from typing import NamedTuple

from takeback.journal.history import unpack_list
from takeback.journal.journal import New
from takeback.look.known_tree import Index
from takeback.look.observer import Observer, is_work
from takeback.model.effects import PERSONS, UNSEEN, WATCH, Change
from takeback.system.safefs import Folder as OpenFolder
from takeback.system.safefs import open_root
from takeback.system.safefs.mounts import is_local

from .following import Following, kernel
from .suspects import Suspects
from .watcher import Ignored, Watcher

_LOOKED_AT = ("checkpoint", "change", "open")  # rows that tell whether an agent has acted


class Moment(NamedTuple):
    """One effect of a tree that is followed."""

    id: str
    at: float
    changes: tuple[Change, ...]
    is_turn: bool  # whether undo steps over it
    lacking: tuple[tuple[bytes, str], ...]  # (path, why) of what should be covered and is not


class Moments:
    """The caller holds the locks."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self._seq = 0  # how far the journal has been read
        self._agent_acted = False

    def capture(self, tree: OpenFolder) -> Moment | None:
        """Looks at the whole tree; None where nobody did anything since the last look."""
        observer, journal = self.observer, self.observer.store.journal
        look = observer.scan(tree, observer.known())
        is_turn = not self.has_agent_acted()
        turns = [[WATCH, str(journal.head().seq + 1)]] if is_turn else []
        mine: list[New] = []  # of files, of the repository, or both
        rows = []
        for row in observer.rows_of(look, ""):
            if row.kind == "change" and not row.body["turns"]:  # else it belongs to whoever was at work
                row = row._replace(body={**row.body, "turns": turns})
                if row.body.get("domain") != "state":  # a thread moves by itself, and is told where it is asked for
                    mine.append(row)
            rows.append(row)
        at = observer.clock()
        observer.journal_look(look, rows)
        if not mine:
            return None
        changes = [c for row in mine for c in unpack_list(row.body["list"], observer.store.blobs.get)]
        return Moment(mine[0].id, at, tuple(filter(is_work, changes)), is_turn, tuple(look.lacking))

    def has_agent_acted(self) -> bool:
        """Since the last named checkpoint. Reads only what was journaled since it was last asked."""
        for row in self.observer.store.journal.rows(self._seq, _LOOKED_AT):
            self._seq = row.seq
            body = row.body or {}
            if row.kind == "checkpoint":
                self._agent_acted = self._agent_acted and not body.get("named")
            elif row.kind == "open":
                self._agent_acted = True
            elif body.get("domain") != "state":  # an agent that only remembers has done nothing here
                self._agent_acted |= any(turn[0] not in PERSONS for turn in body.get("turns", ()))
        return self._agent_acted


def follow(observer: Observer, tree: OpenFolder) -> Watcher:
    """A watcher of what is covered. Its cookies lie in the store."""
    folder = observer.store.folder
    settings = observer.settings
    cookies = folder and folder / "watching"
    return Following(str(observer.root), _left_out(observer, tree), cookies, settings.portable)


def suspects(observer: Observer) -> Suspects:
    """For a process that stays: which folders a whole look has to visit. Only the kernel can vouch for the others, and
    of a file system that other machines write to it knows nothing."""
    settings, folder = observer.settings, observer.store.folder

    def follow() -> Watcher | None:
        if folder is None or not is_local(str(observer.root)):
            return None
        with open_root(str(observer.root), settings.portable) as tree:
            left_out = _left_out(observer, tree)
        return kernel(str(observer.root), left_out, folder / "watching", settings.portable, times=True)

    return Suspects(follow)


def _left_out(observer: Observer, tree: OpenFolder) -> Ignored:
    """What a look leaves out. What the project's own rules exclude is followed while it is still captured."""
    rules, limits = observer.rules(tree), observer.limits()
    index: Index = observer.known()
    confirmed = limits.confirmed_rules == rules.project_fingerprint

    def left_out(path: bytes, is_folder: bool) -> bool:
        if path == limits.own_store or path in limits.mounts:
            return True
        if rules.excluded(path, is_folder) is None:
            return False
        if confirmed or not rules.by_project(path, is_folder):
            return True
        state = index.state(path)
        return state is None or state.kind == UNSEEN

    return left_out
