"""What doctor looks at. Each check says what it found and, where it fails, how to mend it."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from takeback import __version__
from takeback.config.settings import Settings, default_home
from takeback.errors import TakebackError
from takeback.store import layout
from takeback.surfaces.resident import starting
from takeback.surfaces.wording.text import counted, listed
from takeback.text.units import format_size
from takeback.workspace import open_workspace

from . import doctor_agents, doctor_orphans

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from takeback.surfaces.cli.context import Context
    from takeback.workspace import Workspace

_LEAST_FREE = 500 * 1000**2


class Check(NamedTuple):
    name: str
    ok: bool
    detail: str
    fix: str = ""


def all_of(context: Context) -> list[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    found = [
        Check(
            "python",
            sys.version_info >= (3, 11),
            f"Python {version}",
            "" if sys.version_info >= (3, 11) else "use 3.11 or newer",
        )
    ]
    settings, told = _settings(context)
    found += told
    root = layout.find_root(settings.home, context.cwd)
    found += _home(settings)
    found.append(_resident(settings))
    if root is None:
        found.append(Check("workspace", False, f"nothing is protected at or above {context.cwd}", "takeback init"))
        found += _agents(context, settings, None, {})
        return found
    found += _workspace(context, settings, root)
    return found


def _settings(context: Context) -> tuple[Settings, list[Check]]:
    try:
        root = layout.find_root(context.settings().home, context.cwd)
        settings = context.settings(root)
    except TakebackError as error:
        chosen = context.environ.get("TAKEBACK_HOME", "")
        home = Path(chosen) if os.path.isabs(chosen) else default_home(context.environ)
        return Settings(home=home), [Check("settings", False, error.message, error.hint)]
    fix = "mend the file, or remove it" if settings.broken else ""
    checks = [Check("settings", not settings.broken, settings.broken or "they parse", fix)]
    if settings.ignored:
        fix = "set it in your own configuration if you want it; the project cannot lessen what is protected"
        checks.append(Check("project settings", False, "; ".join(settings.ignored), fix))
    if settings.enabled:
        checks.append(Check("switched on", True, "checkpoints are taken"))
    else:
        off = f"takeback is off (source: {settings.off_source})"
        checks.append(Check("switched on", False, off, "turn it on with TAKEBACK=on, or change that setting"))
    return settings, checks


def _home(settings: Settings) -> Iterator[Check]:
    """The folder of all stores: its room, and stores nobody needs."""
    place = settings.home
    while not place.is_dir() and place != place.parent:
        place = place.parent
    try:
        free = shutil.disk_usage(place).free
        fix = "" if free >= _LEAST_FREE else "free space, or set TAKEBACK_HOME to a larger disk"
        yield Check("free space", free >= _LEAST_FREE, f"{format_size(free)} free for {settings.home}", fix)
    except OSError as error:
        yield Check("free space", False, f"{place}: {error.strerror}", "mend its permissions")
    gone = [root for _, root in doctor_orphans.found(settings.home)]
    detail = f"{counted(len(gone), 'store')} of roots that are gone: {listed(gone)}" if gone else "none"
    fix = "takeback prune --orphans; or takeback init where such a root was moved to" if gone else ""
    yield Check("orphaned stores", not gone, detail, fix)


def _resident(settings: Settings) -> Check:
    """The process that makes hooks fast. Without it all is well, too."""
    found = starting.status()
    if not found:
        why = "none runs; the next hook starts one" if settings.resident else "switched off: hooks do without it"
        return Check("resident process", True, why)
    watched = sum(bool(workspace["watched"]) for workspace in found["workspaces"])
    told = f"process {found['pid']}, {counted(watched, 'workspace')} watched"
    if found["version"] != __version__:
        fix = "takeback resident stop; the next hook starts the new one"
        return Check("resident process", False, f"{told}, by takeback {found['version']}", fix)
    return Check("resident process", True, told)


def _workspace(context: Context, settings: Settings, root: Path) -> Iterator[Check]:
    folder = layout.folder_of(settings.home, root)
    yield _permissions(folder)
    try:
        workspace = open_workspace(root, settings)
    except TakebackError as error:
        yield Check("journal", False, error.message, error.hint)
        yield from _agents(context, settings, root, {})
        return
    with workspace:
        yield _root(workspace)
        yield _journal(workspace)
        if settings.enabled:
            yield _lock(workspace)
        yield _interrupted(workspace)
        yield _size(workspace)
        yield _covered(workspace)
        yield from _threads(workspace)
        yield from _agents(context, settings, root, doctor_agents.last_seen(workspace))


def _agents(context: Context, settings: Settings, root: Path | None, seen: Mapping[str, float]) -> Iterator[Check]:
    for finding in doctor_agents.found(context, settings.home, root, seen):
        yield Check(*finding)


def _permissions(folder: Path) -> Check:
    loose = []
    for here, folders, names in os.walk(folder):
        if here == str(folder / "staging"):
            folders.clear()  # what an isolated command writes has the modes it gives it; the folder itself is closed
        for name, wanted in [(".", 0o700), *((f, 0o700) for f in folders), *((n, 0o600) for n in names)]:
            path = os.path.normpath(os.path.join(here, name))
            try:
                mode = stat.S_IMODE(os.lstat(path).st_mode)
            except OSError:
                continue
            if os.name == "posix" and mode & ~wanted & 0o077:
                loose.append(path)
    if loose:
        fix = f"chmod -R go-rwx {folder}"
        return Check("store", False, f"others may read {counted(len(set(loose)), 'path')} in {folder}", fix)
    needed = [folder, *(folder / name for name in ("journal.db", "head", "packs") if (folder / name).exists())]
    if closed := [each for each in needed if not os.access(each, os.W_OK)]:
        fix = "mend its owner, its permissions (0700) or its disk; until then log, show, diff and restore --to DIR work"
        return Check("store", False, f"{closed[0]} can only be read", fix)
    return Check("store", True, f"{folder}, private")


def _root(workspace: Workspace) -> Check:
    try:
        with workspace.open_tree():
            return Check("root", True, str(workspace.root))
    except TakebackError as error:
        return Check("root", False, error.message, error.hint)


def _journal(workspace: Workspace) -> Check:
    try:
        journal = workspace.store.journal
        head, kept = journal.head(), journal.kept_head()
        count = len(workspace.history().checkpoints)
        damaged = workspace.history().damaged
    except TakebackError as error:
        return Check("journal", False, error.message, error.hint)
    if kept is None or kept.seq > head.seq or (kept.seq == head.seq and kept.hash != head.hash):
        return Check("journal", False, "its head is not the one that was kept", "takeback verify names what is lost")
    if damaged:
        what = f"row {min(damaged)} was altered or lost: take-backs across it are refused"
        return Check("journal", False, what, "takeback verify names what is lost")
    return Check(
        "journal",
        True,
        f"{counted(head.seq, 'row')}, {counted(count, 'checkpoint')}; takeback verify checks all",
    )


def _threads(workspace: Workspace) -> Iterator[Check]:
    """Where there are threads: whether their index follows the journal, and whether what they hold can be read."""
    if not workspace.store.journal.newest_id("state"):
        return
    threads = workspace.threads
    try:
        found = threads.all()
        for seen in found:
            threads.load(seen.head)
    except TakebackError as error:
        yield Check("threads", False, error.message, error.hint or "takeback thread verify names what is lost")
        return
    count = sum(seen.checkpoints for seen in found)
    told = f"{counted(len(found), 'thread')}, {counted(count, 'state checkpoint')}; every head can be read"
    yield Check("threads", True, told)


def _lock(workspace: Workspace) -> Check:
    if workspace.store.is_read_only:
        return Check("lock", True, "none is needed to read")
    try:
        with workspace.store.write.hold(1.0):
            return Check("lock", True, "can be taken")
    except TakebackError as error:
        return Check("lock", False, error.message, error.hint)


def _interrupted(workspace: Workspace) -> Check:
    try:
        under_way, what = workspace.under_way(), workspace.interrupted()
    except TakebackError as error:
        return Check("take-backs", False, error.message, error.hint)
    fix = "takeback resume, or takeback resume --abort" if what else ""
    return Check("take-backs", not what, what or under_way or "none interrupted", fix)


def _size(workspace: Workspace) -> Check:
    size, budget = workspace.store.size(), workspace.settings.max_bytes
    fix = "" if size <= budget else "takeback prune, or raise checkpoints.max_bytes"
    return Check("size", size <= budget, f"{format_size(size)} of {format_size(budget)}", fix)


def _covered(workspace: Workspace) -> Check:
    try:
        found = workspace.status()
    except TakebackError as error:
        return Check("coverage", False, error.message, error.hint)
    if found.lacking:
        named = listed([path for path, _ in found.lacking])
        fix = "make them readable, or exclude them in your configuration"
        return Check("coverage", False, f"should be covered and is not: {named}", fix)
    if found.held_back:
        fix = "takeback config confirm, or take the rule out"
        return Check("coverage", False, f"the project's rules exclude what is captured: {listed(found.held_back)}", fix)
    but = f", but for {counted(len(found.uncovered), 'excluded path')}" if found.uncovered else ""
    return Check("coverage", True, f"all{but}")
