"""watch: follows the tree; each quiet moment with changes is one effect."""

from __future__ import annotations

import json
import signal
import socket
import time
from typing import TYPE_CHECKING

from takeback.domains.git.repository import amount
from takeback.errors import Locked, TakebackError
from takeback.model.effects import FOLDER, domain_of, text
from takeback.show.views import kind_of_change
from takeback.surfaces.cli.captured import captured, with_progress
from takeback.surfaces.wording import json_shapes
from takeback.surfaces.wording.diffs import sign
from takeback.surfaces.wording.text import counted, safe

from . import init

if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from takeback.look.watch.moments import Moment
    from takeback.look.watch.watcher import Watcher
    from takeback.model.effects import Change, Checkpoint
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.workspace import Workspace

_HEARTBEAT = 30.0  # seconds: a root that went away with a folder above it raises no event
_AGAIN = 1.0  # seconds until what could not be captured is tried again
_REST = 0.02  # seconds in which a burst may go on before its events are read
_SHARE = 10  # a capture may take one in so many seconds of a busy tree
_SHOWN = 4  # paths on a line
_RULES = {b".takebackignore", b".takeback.toml"}  # what they say decides what is followed


def add(parser: Parser) -> None:
    parser.synopsis = "[--once]"
    parser.about = (
        'Takes a checkpoint called "watch", or protects this folder with its first one, called\n'
        '"start", if nobody did; then follows the tree\n'
        "until it is interrupted: whenever what changed has been still for a moment, it becomes one\n"
        "effect, is printed on a line, and can be undone by itself. Whoever made the changes, no\n"
        "hooks are needed. With --json each moment is one JSON object on one line."
    )
    parser.takes("--once", "--once", action="store_true", help="end after the first moment, or with what differs now")
    parser.examples = [
        ("takeback watch", "in a second terminal, while any agent works"),
        ("takeback watch --once && make test", "wait for the next change"),
        ("takeback watch --json", "for another program"),
    ]


def run(context: Context, args: Namespace) -> int:
    with Signals() as signals:
        return Watch(context, args.once, signals).run()


class Signals:
    """SIGINT and SIGTERM end it once what it is doing is done; a second one at once."""

    def __init__(self) -> None:
        self.caught = 0

    def __enter__(self) -> Signals:
        self._there, self._here = socket.socketpair()
        self._there.setblocking(False)
        self._here.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._there.fileno(), warn_on_full_buffer=False)
        self._before = {n: signal.signal(n, self._catch) for n in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        signal.set_wakeup_fd(self._wakeup)
        self._there.close()
        self._here.close()

    @property
    def wake(self) -> int:
        """Can be read from once a signal came."""
        return self._here.fileno()

    def _catch(self, number: int, frame: FrameType | None) -> None:
        if self.caught:
            raise KeyboardInterrupt
        self.caught = number


class Watch:
    def __init__(self, context: Context, once: bool, signals: Signals) -> None:
        self.context = context
        self.terminal = context.terminal
        self.once = once
        self.signals = signals
        self._told: set[object] = set()  # what went wrong, each said once

    def run(self) -> int:
        workspace, first = init.ensure(self.context)
        workspace.must_be_on()
        begun, code = False, None
        while code is None:
            with workspace:
                watcher = workspace.follow()  # before anything is captured, so that nothing falls between
                try:
                    if not begun:
                        if self.once and self._capture(workspace):
                            return 0
                        self._begin(workspace, watcher, first)
                    code = self._follow(workspace, watcher, at_once=begun)
                finally:
                    watcher.close()
            begun = True
            if code is None:  # the project's settings or rules changed
                workspace = self.context.open(tell=False)
        return code

    def _begin(self, workspace: Workspace, watcher: Watcher, checkpoint: Checkpoint | None) -> None:
        if checkpoint is None and not self.once:
            checkpoint = with_progress(self.context, workspace, lambda: workspace.checkpoint("watch"))
        if self.context.json:
            shape = None if checkpoint is None else json_shapes.checkpoint(checkpoint)
            self._line({"watching": str(workspace.root), "how": watcher.how, "checkpoint": shape})
        else:
            if checkpoint is not None:
                captured(self.context, checkpoint)
            self.terminal.hint(f"watching {safe(str(workspace.root))}; Ctrl-C ends it")
        self.terminal.out.flush()

    # -- following -----------------------------------------------------------

    def _follow(self, workspace: Workspace, watcher: Watcher, at_once: bool) -> int | None:
        """Until the end, whose exit code it returns; or None where the rules changed."""
        settle, busy = workspace.settings.settle, workspace.settings.busy
        waiting, pause = at_once, 0.0  # whether there may be something to capture; what the last capture asks for
        while True:
            self._tell_limited(watcher)
            if not self.signals.caught and not waiting:
                waiting = watcher.wait(_HEARTBEAT, self.signals.wake)
            if self.signals.caught:
                self._capture(workspace)
                return 128 + self.signals.caught
            if not waiting:
                with workspace.open_tree():
                    continue
            self._settle(watcher, settle, max(busy, pause))
            seen = watcher.changed()
            began = time.monotonic()
            found = self._capture(workspace)
            pause = _SHARE * (time.monotonic() - began)
            if found and self.once:
                return 0
            waiting = found is None
            if waiting and not self.signals.caught:
                watcher.wait(_AGAIN, self.signals.wake)
            elif seen.everything or _RULES & seen.paths:
                return None

    def _settle(self, watcher: Watcher, settle: float, longest: float) -> None:
        """Returns once nothing has changed for a while, or after so long a time."""
        until = time.monotonic() + longest
        while not self.signals.caught and time.monotonic() < until:
            if not watcher.wait(settle, self.signals.wake):
                return
            time.sleep(_REST)

    def _tell_limited(self, watcher: Watcher) -> None:
        if watcher.limited and watcher.limited not in self._told:
            self._told.add(watcher.limited)
            self.terminal.warn(f"takeback: {safe(watcher.limited)}; looking again and again instead")

    # -- one moment ----------------------------------------------------------

    def _capture(self, workspace: Workspace) -> bool | None:
        """Whether there was something to capture; None where it has to be tried again."""
        try:
            found = workspace.moment()
        except TakebackError as error:
            with workspace.open_tree():  # gone, moved or replaced: that ends it
                pass
            if workspace.store.folder is not None and not workspace.store.folder.is_dir():
                raise
            if not isinstance(error, Locked) or self.signals.caught:  # else a take-back takes its time
                self._tell(error)
            return None
        self._told.discard("failed")
        if found is None:
            return False
        self._show(found)
        return True

    def _tell(self, error: TakebackError) -> None:
        if "failed" not in self._told:
            self._told.add("failed")
            self.terminal.warn(f"takeback: not captured: {safe(error.message)}")
            self.terminal.warn(f"  → {safe(error.hint)}")

    def _show(self, found: Moment) -> None:
        if self.context.json:
            self._line(_shape(found))
        else:
            self.terminal.say(self._said(found))
        self.terminal.out.flush()
        for path, why in found.lacking:
            if (path, why) not in self._told:
                self._told.add((path, why))
                self.terminal.warn(f"takeback: not captured: {safe(text(path))}: {safe(why)}")

    def _said(self, found: Moment) -> str:
        """'14:02:11  3 files  ~ src/a.py + b.txt - c/   undo with takeback undo'"""
        style = self.terminal.style
        git = [c.path for c in found.changes if domain_of(c.path) == "git"]
        files = tuple(c for c in found.changes if domain_of(c.path) != "git")
        shown = _tops(files)
        listed = " ".join(f"{sign(self.terminal, _kind(c))} {safe(_name(c))}" for c in shown[:_SHOWN])
        more = f" … {len(shown) - _SHOWN:,} more" if len(shown) > _SHOWN else ""
        how = "undo with takeback undo" if found.is_turn else f"anyone's: takeback revert {found.id[:8]}"
        when = time.strftime("%H:%M:%S", time.localtime(found.at))
        told = [f"{_counted(files)}  {listed}{more}"] if files else []
        told += [f"git: {safe(amount(git))}"] if git else []
        return f"{style(when, 'dim')}  {'  '.join(told)}   {style(how, 'dim')}"

    def _line(self, value: dict[str, Any]) -> None:
        self.terminal.write(json.dumps(value))


def _shape(found: Moment) -> dict[str, Any]:
    return {
        "id": found.id,
        "number": None,  # checkpoints have one
        "at": found.at,
        "actor": "watch" if found.is_turn else "",
        "changes": [{"path": text(c.path), "change": _kind(c)} for c in found.changes],
        "lacking": json_shapes.pairs((text(path), why) for path, why in found.lacking),
    }


def _kind(change: Change) -> str:
    return kind_of_change(change.before, change.after)


def _is_folder(change: Change) -> bool:
    state = change.after or change.before
    return state is not None and state.kind == FOLDER


def _name(change: Change) -> str:
    return (text(change.path) or ".") + ("/" if _is_folder(change) else "")


def _counted(changes: tuple[Change, ...]) -> str:
    folders = sum(map(_is_folder, changes))
    files = len(changes) - folders
    return ", ".join(counted(n, word) for n, word in ((files, "file"), (folders, "folder")) if n)


def _tops(changes: tuple[Change, ...]) -> list[Change]:
    """Without what came or went with a folder that is shown."""
    whole = {c.path for c in changes if _is_folder(c) and (c.before is None or c.after is None)}

    def is_inside(path: bytes) -> bool:
        while b"/" in path:
            path = path.rpartition(b"/")[0]
            if path in whole:
                return True
        return False

    return [c for c in changes if not is_inside(c.path)]
