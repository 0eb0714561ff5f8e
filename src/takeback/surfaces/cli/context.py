"""What one run of the program knows: where it is, how it reports, and the workspace it works on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from takeback.care.moved_folder import moved_from
from takeback.config import place
from takeback.errors import NoWorkspace, Off, TakebackError, UsageError
from takeback.store import layout
from takeback.surfaces.wording.text import safe
from takeback.workspace import open_workspace

from .terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from takeback.config.settings import Settings
    from takeback.workspace import Workspace

    from .parsing import Namespace


class Context:
    def __init__(self, args: Namespace, terminal: Terminal, environ: Mapping[str, str]) -> None:
        self.json: bool = args.json
        self.yes: bool = args.yes
        self.off: bool = args.off
        self.forgets = False  # agents' conversations go back too
        self.terminal = terminal
        self.environ = environ
        self._directory = _enter(args.directory)

    @property
    def cwd(self) -> Path:
        return Path(self._directory)

    @property
    def asks(self) -> bool:
        """Whether there is a person to ask."""
        return self.terminal.interactive and not self.json and not self.yes

    # -- settings ------------------------------------------------------------

    def settings(self, root: Path | None = None) -> Settings:
        """What holds here; below an agent by the configuration that was known when the folder was protected."""
        from takeback.config.settings import home

        return place.load(root, self.environ, self.off, root or layout.find_root(home(self.environ), self.cwd))

    def must_be_on(self, settings: Settings) -> None:
        if not settings.enabled:
            raise Off(
                f"takeback is off (source: {settings.off_source})",
                "turn it on with TAKEBACK=on or that setting; log, show, diff and restore --to work as it is",
            )

    # -- the workspace -------------------------------------------------------

    def root(self) -> Path | None:
        return layout.find_root(self.settings().home, self.cwd)

    def open(self, when_off: bool = False, tell: bool = True) -> Workspace:
        """The workspace at or above here. Says so if a take-back was interrupted, or is under way."""
        first = self.settings()
        if not when_off:
            self.must_be_on(first)
        root = layout.find_root(first.home, self.cwd)
        if root is None:
            raise self._no_workspace(first.home)
        settings = self.settings(root)
        if settings.broken:
            self.terminal.warn(f"takeback: {safe(settings.broken)}")
        if not when_off:
            self.must_be_on(settings)
        self._must_not_be_shielded(layout.folder_of(settings.home, root))
        workspace = open_workspace(root, settings, environ=self.environ)
        below = os.path.relpath(self._directory, root)
        self.terminal.below = "" if below == "." else below
        if tell:
            self.tell_interrupted(workspace)
        return workspace

    def _must_not_be_shielded(self, folder: Path) -> None:
        """Below `takeback run` the store cannot be written, on purpose."""
        if self.environ.get("TAKEBACK_RUN"):
            try:
                os.close(os.open(folder / "store.lock", os.O_RDWR))
            except FileNotFoundError:
                return
            except OSError:
                raise TakebackError(
                    "takeback run shields the store from its command, and this is part of one",
                    "do it outside of the run, or once it has ended",
                ) from None

    def tell_interrupted(self, workspace: Workspace) -> None:
        try:
            under_way, what = workspace.under_way(), workspace.interrupted()
        except TakebackError:
            return  # the journal itself is damaged: the verb will say so
        if under_way:
            self.terminal.warn(f"takeback: {under_way}; the tree is in between until that ends")
        if what:
            self.terminal.warn(f"takeback: {what}; the tree may be in between")
            self.terminal.hint("  → finish it with takeback resume, or go back with takeback resume --abort")

    def _no_workspace(self, home: Path) -> NoWorkspace:
        for folder in (self.cwd, *self.cwd.parents):
            for moved in moved_from(home, folder):
                return NoWorkspace(
                    f"{safe(str(folder))} is not protected, but it looks like {safe(str(moved))}, moved",
                    f"go on with its history: takeback init -C {safe(str(folder))}",
                )
        return NoWorkspace(
            f"nothing is protected at or above {safe(str(self.cwd))}",
            "protect this folder with takeback init",
        )


def _enter(directories: list[str]) -> str:
    """Where the run works: each -C is relative to the one before, as in git."""
    try:
        for directory in directories:
            os.chdir(directory)
        return os.path.realpath(os.getcwd())
    except (OSError, ValueError) as error:
        where = safe(directories[-1]) if directories else "the current folder"
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot work in {where} ({why})", "name a folder that exists with -C DIR") from None
