"""Agents' configuration, as protect and unprotect change it: which agents, in which files, shown before it is done."""

from __future__ import annotations

import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from takeback.agents import AGENTS
from takeback.agents.setup import changes, excluded, load
from takeback.agents.setup.summary import summary
from takeback.agents.setup.targets import Ours, Place
from takeback.agents.setup.writing import must_be_open
from takeback.errors import ApprovalNeeded, TakebackError
from takeback.privacy.masking import mask_file
from takeback.show.views import FileDiff
from takeback.surfaces.cli import approving
from takeback.surfaces.wording import diffs
from takeback.surfaces.wording.text import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from takeback.agents.setup.changes import Change
    from takeback.agents.setup.targets import Setup, Target
    from takeback.config.settings import Settings
    from takeback.show.views import FileDiff
    from takeback.surfaces.cli.context import Context

# Folders that installers keep for a while only: what runs from there is gone one day.
_FLEETING = ("/uv/archive-v0/", "/uv/environments-v2/", "/pipx/.cache/", "/.cache/pipx/", "/.local/pipx/.cache/")


class Exclude:
    """No agent: the file of the repository that keeps ours out of commits."""

    name = "git"
    title = "git"
    programs: tuple[str, ...] = ()

    def folder(self, place: Place) -> Path:
        return place.root

    def targets(self, place: Place, ours: Ours) -> list[Target]:
        return []

    def left_to_do(self, place: Place) -> str:
        return ""


EXCLUDE = Exclude()


class Planned(NamedTuple):
    """What becomes of one agent's files."""

    setup: Setup
    changes: list[Change]
    tracked: tuple[str, ...] = ()  # of the repository: files that are in its commits already


def excluding(planned: Sequence[Planned], place: Place, home: Path) -> list[Planned]:
    """Keeps what is written into a project out of its commits, where it is a git repository."""
    if place.user:
        return []
    paths = [c.path for p in planned for c in p.changes if c.after is not None and (c.record or not c.note)]
    return _planned(excluded.protecting(place.root, home, paths))


def including(planned: Sequence[Planned], place: Place, home: Path, whole: bool) -> list[Planned]:
    """Takes the same lines out again: all of them, or those of these agents."""
    if place.user:
        return []
    paths = None if whole else [c.path for p in planned for c in p.changes if not c.kept]
    return _planned(excluded.unprotecting(place.root, home, paths))


def _planned(found: excluded.Excluded | None) -> list[Planned]:
    if found is None or not (found.change.differs or found.change.record or found.change.old or found.tracked):
        return []
    if found.change.differs:
        must_be_open(found.change.found)
    return [Planned(EXCLUDE, [found.change], found.tracked)]


def of_agents(planned: Sequence[Planned]) -> list[Planned]:
    return [p for p in planned if p.setup is not EXCLUDE]


def exclude_shape(planned: Sequence[Planned]) -> dict[str, object] | None:
    """The file of the repository; None where there is none."""
    for p in planned:
        if p.setup is EXCLUDE:
            change = p.changes[0]
            changed = _status(change) if change.differs else "none"
            return {"path": str(change.path), "change": changed, "tracked": list(p.tracked)}
    return None


def warn_of_cache(context: Context) -> None:
    where = sys.executable.replace("\\", "/")
    if any(part in where for part in _FLEETING):
        context.terminal.warn(f"takeback: {safe(sys.executable)} lies in a cache, and the hooks need it to stay")
        context.terminal.warn("  → install takeback first: uv tool install . in its clone, or pipx install . there")


def named(words: Sequence[str]) -> list[Setup]:
    """The agents that were asked for, each once."""
    return [load(word) for word in dict.fromkeys(words)]


def is_found(setup: Setup, place: Place) -> bool:
    """Whether an agent is on this machine: its program, or the folder that it keeps for its user."""
    path = place.environ.get("PATH", "")
    return any(shutil.which(program, path=path) for program in setup.programs) or setup.folder(place).is_dir()


def found(place: Place) -> list[Setup]:
    return [setup for setup in map(load, AGENTS) if is_found(setup, place)]


def elsewhere(setups: Sequence[Setup], place: Place, ours: Ours) -> list[str]:
    """Which of these have takeback's hooks in the other place: the user's configuration, or the project's."""
    other = place._replace(user=not place.user)
    return [setup.name for setup in setups if changes.has_ours(setup.targets(other, ours)[0])]


# -- showing -----------------------------------------------------------------


def show(context: Context, planned: Sequence[Planned]) -> None:
    """Every file that changes, before anybody is asked: with what is put in where a person can ask for the diff, as the
    diff where nobody can, and with --yes one line for each."""
    terminal = context.terminal
    if context.yes:
        for line in diffs.stat_lines(terminal, _files(context, planned)):
            terminal.say(line)
    elif context.asks:
        terminal.page(list(_summary(context, planned)))
    else:
        _show_diff(context, planned)


def _show_diff(context: Context, planned: Sequence[Planned]) -> None:
    context.terminal.page(list(diffs.lines(context.terminal, _files(context, planned))))


def _files(context: Context, planned: Sequence[Planned]) -> list[FileDiff]:
    files = list(_diffs(planned))
    if not context.terminal.out_is_tty or approving.agent_above(context):
        files = [mask_file(file) for file in files]
    return files


def _summary(context: Context, planned: Sequence[Planned]) -> Iterator[str]:
    """One line for each file, with what is put in or taken out below it; what the hooks run is said once."""
    terminal = context.terminal
    commands: list[str] = []
    changed = [c for p in planned for c in p.changes if c.differs]
    for change, file in zip(changed, _files(context, planned), strict=True):
        found = summary(change)
        commands += found.commands
        name = terminal.style(diffs.name_of(file), "bold")
        own = terminal.style("  takeback's own", "dim") if found.is_own else ""
        yield f"{diffs.sign(terminal, file.status)} {name}  {diffs.what_of(terminal, file)}{own}"
        for words in found.words:
            yield from (f"    {line}" for line in textwrap.wrap(safe(words), max(40, terminal.width - 4)))
    if commands:
        yield ""
        yield "each hook runs"
        yield from (f"    {safe(command)}" for command in dict.fromkeys(commands))


def _diffs(planned: Sequence[Planned]) -> Iterator[FileDiff]:
    from takeback.text.linediff import count, hunks

    for change in (c for p in planned for c in p.changes if c.differs):
        old, new = change.found.data, change.after
        found = hunks(old or b"", new or b"")
        added, removed = count(found)
        note = f"link to {change.found.real}" if change.path.is_symlink() else ""
        yield FileDiff(str(change.path), _status(change), "file", "", added, removed, found, note=note)


def _status(change: Change) -> str:
    if change.found.data is None:
        return "new"
    return "deleted" if change.after is None else "modified"


def shape(planned: Planned, place: Place) -> dict[str, object]:
    files = [
        {"path": str(c.path), "change": _status(c) if c.differs else "none", "kept": c.kept, "note": c.note}
        for c in planned.changes
        if c.differs or c.after is not None
    ]
    setup = planned.setup
    return {"agent": setup.name, "scope": "user" if place.user else "project", "files": files}


def approved_or_shown(context: Context, question: str, planned: Sequence[Planned], shown: dict[str, object]) -> bool:
    """Asks; without a person to ask, the JSON report says what was wanted."""
    try:
        if not context.asks or not any(change.differs for p in planned for change in p.changes):
            return approving.approved(context, question)
        while (answer := context.terminal.ask(f"{question} [y/N/d diff]").lower()) in ("d", "diff"):
            _show_diff(context, planned)
        if answer not in ("y", "yes"):
            context.terminal.say("nothing was changed")
        return answer in ("y", "yes")
    except ApprovalNeeded as error:
        if not context.json:
            raise
        told = {"message": error.message, "hint": error.hint, "code": error.exit_code}
        context.terminal.json({**shown, "error": told})
        return False


def apply(
    context: Context, shown: list[Planned], plan: Callable[[], list[Planned]], settings: Settings
) -> list[Planned]:
    """Writes what was planned and shown. It is planned once more, with nobody else at it: what a person has seen is
    what is done, and with --yes whatever is still left to do. Returns what was done."""
    if not any(c.differs or c.record or c.old for p in shown for c in p.changes):
        return shown
    with changes.alone(settings.home, settings.lock_timeout, settings.portable):
        planned = plan()
        if not context.yes and _outcome(planned) != _outcome(shown):
            raise TakebackError("these files were changed meanwhile; nothing was changed by this", "try again")
        changes.apply([c for p in planned for c in p.changes], settings.home)
    return planned


def _outcome(planned: Sequence[Planned]) -> list[tuple[Path, bytes | None, bytes | None]]:
    return [(c.path, c.found.data, c.after) for p in planned for c in p.changes]


def changed(planned: Sequence[Planned], root: Path) -> list[str]:
    """The files that change; those of the project as they are called in it."""
    paths = [change.path for p in planned for change in p.changes if change.differs]
    return [str(path.relative_to(root) if path.is_relative_to(root) else path) for path in paths]


def count(planned: Sequence[Planned]) -> int:
    """How many files change."""
    return sum(change.differs for p in planned for change in p.changes)
