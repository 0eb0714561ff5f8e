"""forget: init's inverse. What is known of this folder goes, for good; the folder itself stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.config import agents_own_files
from takeback.errors import ApprovalNeeded, Damaged
from takeback.store import layout
from takeback.surfaces.cli.approving import approved, only_a_person
from takeback.surfaces.wording.text import counted, listed, moment, safe
from takeback.system import regular_files
from takeback.text.units import format_size

from . import doctor_orphans

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.workspace import Workspace


_WHAT = "forgetting a folder"


class Gone:
    """A store that goes, or went."""

    def __init__(self, root: Path, folder: Path, lost: dict[str, Any]) -> None:
        self.root = root
        self.folder = folder
        self.lost = lost
        self.size = doctor_orphans.bytes_in(folder)

    @property
    def shape(self) -> dict[str, Any]:
        return {"root": str(self.root), "store": {"path": str(self.folder), "bytes": self.size}, "lost": self.lost}


def add(parser: Parser) -> None:
    parser.synopsis = ""
    parser.about = (
        "The inverse of init: says what is lost, asks, and removes this folder's store with all its\n"
        "history: checkpoints, turns, what agents remember, held mail, and the ledger of what was done\n"
        "outside the files. That cannot be taken back. The files of the project stay as they are now,\n"
        "in between where a take-back was interrupted.\n"
        "Nothing an agent may do: below one it is refused, exit 4."
    )
    parser.examples = [
        ("takeback forget", "see what is lost, and confirm"),
        ("takeback forget -C ~/work/shop --yes", "another folder, without asking"),
    ]


def run(context: Context, args: Namespace) -> int:
    only_a_person(context, _WHAT)
    settings = context.settings()
    try:
        workspace = context.open(when_off=True, tell=False)
    except Damaged as error:
        root = context.root()
        assert root is not None  # else there was nothing to be damaged
        gone = Gone(root, layout.folder_of(settings.home, root), {"damaged": error.message})
        if not _is_approved(context, gone):
            return 4
        doctor_orphans.remove(gone.folder)
        return _tell(context, gone)
    with workspace:
        only_a_person(context, _WHAT, workspace)
        gone = Gone(workspace.root, layout.folder_of(settings.home, workspace.root), _lost(workspace))
        if not _is_approved(context, gone):
            return 4
        with workspace.applying(), workspace.writing():  # so nobody else is at work on it
            doctor_orphans.remove(gone.folder)
    return _tell(context, gone)


def _lost(workspace: Workspace) -> dict[str, Any]:
    history = workspace.history()
    states = [act.shown_state for act in history.ledger()]
    return {
        "checkpoints": len(history.checkpoints),
        "since": min((c.at for c in history.checkpoints), default=None),
        "pinned": len(history.pins),
        "turns": len(history.agent_turns),
        "effects": len({e.id for e in history.all_effects if not e.takeback}),
        "outside": {state: states.count(state) for state in ("live", "unknown", "sending") if states.count(state)},
        "held": states.count("held"),
        "threads": workspace.threads.names() if workspace.store.journal.newest_id("state") else [],
        "interrupted": workspace.interrupted(),
    }


def _lines(lost: dict[str, Any]) -> list[str]:
    """What goes, the more dearly it is missed the further down."""
    if "damaged" in lost:
        return [f"it is damaged: {safe(lost['damaged'])}; takeback repair may bring much of it back"]
    since = f" since {moment(lost['since'])}" if lost["since"] else ""
    kept = [counted(lost["checkpoints"], "checkpoint"), counted(lost["effects"], "effect")]
    out = [f"{', '.join(kept)} and {counted(lost['turns'], 'turn')} of agents{since}: none can be undone any more"]
    if lost["pinned"]:
        out.append(f"{counted(lost['pinned'], 'checkpoint')} that you pinned")
    if lost["threads"]:
        out.append(f"what agents remember: {listed(lost['threads'])}")
    if lost["outside"]:
        told = ", ".join(f"{count:,} {state}" for state, count in lost["outside"].items())
        out.append(f"how to take back what was done outside the files: {told}")
    if lost["held"]:
        out.append(f"{counted(lost['held'], 'mail')} held here, never to be sent by takeback")
    if lost["interrupted"]:
        out.append(
            f"{lost['interrupted']}: the files stay in between, and takeback resume neither ends it nor goes back"
        )
    return out


def _is_approved(context: Context, gone: Gone) -> bool:
    if not context.json:
        where = f"{format_size(gone.size)} in {safe(str(gone.folder))}"
        context.terminal.write(f"This forgets {safe(str(gone.root))}: {where}")
        for line in _lines(gone.lost):
            context.terminal.write(f"  {line}")
    try:
        return approved(context, "Forget all of it for good?")
    except ApprovalNeeded as error:
        if not context.json:
            raise
        told = {"message": error.message, "hint": error.hint, "code": error.exit_code}
        context.terminal.json({**gone.shape, "forgotten": False, "error": told})
        return False


def _tell(context: Context, gone: Gone) -> int:
    terminal = context.terminal
    if context.json:
        terminal.json({**gone.shape, "forgotten": True})
        return 0
    terminal.say(f"{safe(str(gone.root))} is forgotten, {format_size(gone.size)} freed; its files are as they were")
    if agents := [agent for agent, path in agents_own_files.HOOKS.items() if _has_hooks(gone.root / path)]:
        terminal.hint(f"the hooks of {', '.join(agents)} stay, and do nothing here now: takeback unprotect")
    terminal.hint("protect it anew: takeback init")
    return 0


def _has_hooks(path: Path) -> bool:
    try:
        return b"takeback" in regular_files.read(path, 1 << 20)
    except OSError:
        return False
