"""thread verify and prune: whether all of it is as it was stored, and forgetting what is old."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.errors import ApprovalNeeded, UsageError
from takeback.surfaces.cli.approving import approved, only_a_person
from takeback.surfaces.cli.captured import with_progress
from takeback.surfaces.wording import json_thread_shapes
from takeback.surfaces.wording.text import counted, listed, safe
from takeback.surfaces.wording.threads import brief, verified
from takeback.text.units import format_size, parse_duration

if TYPE_CHECKING:
    from typing import Any

    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace
    from takeback.threads.prune import ThreadsPruned
    from takeback.workspace import Workspace

_STAYS = 10  # that are named


# -- verify ------------------------------------------------------------------


def verify(context: Context, workspace: Workspace, args: Namespace, words: list[str]) -> int:
    found = workspace.threads.verify(words[0] if words else "")
    bad = sum(not each.ok for each in found)
    if context.json:
        steps = [json_thread_shapes.checked(each) for each in found]
        context.terminal.json({"ok": not bad, "steps": steps, "failed": bad})
        return 1 if bad else 0
    context.terminal.page(verified(context.terminal, found))
    if not found:
        context.terminal.say("there is no state checkpoint to verify")
    elif not bad:
        whole = context.terminal.style("whole", "green")
        context.terminal.say(f"{whole}: {counted(len(found), 'state checkpoint')}")
    else:
        context.terminal.write(f"{context.terminal.style('damaged', 'red')}: {bad:,} of {len(found):,}")
        context.terminal.hint(
            "  → go on from one that holds: takeback thread rollback or fork; takeback verify says more"
        )
    return 1 if bad else 0


# -- prune -------------------------------------------------------------------


def prune(context: Context, workspace: Workspace, args: Namespace, words: list[str]) -> int:
    if not args.dry_run:
        only_a_person(context, "pruning", workspace)
    asked = _asked(args)
    threads = workspace.threads
    planned = threads.prune(words, **asked, dry_run=True)
    if args.dry_run or not planned.removed:
        _tell(context, planned)
        return 0
    if not context.yes and not context.json:
        _tell(context, planned)
    try:
        if not approved(context, "Forget this for good?"):
            return 4
    except ApprovalNeeded as error:
        if not context.json:
            raise
        told = {"message": error.message, "hint": error.hint, "code": 4}
        context.terminal.json({"prune": json_thread_shapes.pruned(planned), "error": told})
        return 4
    done = threads.prune(words, **asked)
    size = workspace.store.blobs.size()
    freed = with_progress(context, workspace, workspace.prune, "looked through", size, "bytes").freed
    _tell(context, done, freed)
    return 0


def _asked(args: Namespace) -> dict[str, Any]:
    asked: dict[str, Any] = {"delete": args.delete}
    if args.keep is not None:
        if not args.keep.isdecimal() or int(args.keep) < 1:
            raise UsageError(
                f"--keep needs a whole number from 1 up, not {safe(args.keep)!r}", "--delete removes a thread whole"
            )
        asked["keep"] = int(args.keep)
    if args.older_than is not None:
        asked["older_than"] = parse_duration(args.older_than)
    return asked


def _tell(context: Context, found: ThreadsPruned, freed: int = 0) -> None:
    if context.json:
        context.terminal.json({"prune": {**json_thread_shapes.pruned(found), "freed": freed}})
        return
    terminal = context.terminal
    if not found.removed:
        terminal.say("nothing to prune" + (": all of it has to stay" if found.stays else ""))
    else:
        names = list(dict.fromkeys(state.thread for state in found.removed))
        what = f"{counted(len(found.removed), 'state checkpoint')} of {listed(names)}"
        whole = f", {'which goes' if len(names) == 1 else 'which go'} whole" if found.deleted else ""
        room = f", {format_size(freed)} freed" if freed else ""
        terminal.say(f"{'would forget' if found.dry_run else 'forgot'} {what}{whole}{room}")
    if found.handoffs:
        ids = listed([id[:8] for id in found.handoffs])
        terminal.warn(f"  {counted(len(found.handoffs), 'handoff')} that nobody adopted can go nowhere then: {ids}")
    for each in found.stays[:_STAYS]:
        terminal.say(f"  {safe(each.checkpoint.thread)} {brief(each.checkpoint.id)} stays: {safe(each.why)}")
    if len(found.stays) > _STAYS:
        terminal.say(f"  … and {len(found.stays) - _STAYS:,} more stay")


VERBS = {"verify": verify, "prune": prune}
