"""thread save, fork, rollback, handoff, adopt: what appends to a thread. Nothing in one is ever rewritten."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from takeback.errors import NotFound, NoWorkspace, UsageError
from takeback.model.effects import short_id
from takeback.surfaces.cli import take_back_flow
from takeback.surfaces.wording import json_thread_shapes
from takeback.surfaces.wording.text import safe
from takeback.threads.compare import captures, look_at_files
from takeback.workspace import open_workspace

if TYPE_CHECKING:
    from typing import Any

    from takeback.model.thread_states import StateCheckpoint
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace
    from takeback.workspace import Workspace

_MOST = 256 << 20  # bytes of a state that is read


def opened(context: Context, args: Namespace) -> Workspace:
    """The workspace. State alone needs no init: it gets a store of its own, and no file is captured."""
    try:
        return context.open()
    except NoWorkspace as error:
        if not args.state_only:
            raise NoWorkspace(
                error.message, "takeback init protects the files too; or keep state alone: add --state-only"
            ) from None
    settings = context.settings(context.cwd)
    context.must_be_on(settings)
    return open_workspace(context.cwd, settings, create="state", environ=context.environ)


def agent(context: Context, args: Namespace) -> str:
    return args.agent if args.agent is not None else context.environ.get("TAKEBACK_ACTOR", "")


# -- save --------------------------------------------------------------------


def save(context: Context, workspace: Workspace, args: Namespace, words: list[str]) -> int:
    state = read_state(context, args, words[1:])
    threads = workspace.threads
    parent = args.parent
    if parent:
        with suppress(NotFound):  # then the head is another one, which is said
            parent = threads.get(words[0], parent).id
    looks = not args.state_only and captures(workspace)
    by = agent(context, args)  # who vouches for no file by that
    made = threads.save(words[0], state, parent=parent, summary=args.summary or "", agent=by, capture=looks)
    return _made(context, made, f"saved {_id(context, made)} as the head of thread {safe(made.thread)}")


def read_state(context: Context, args: Namespace, words: list[str]) -> dict[str, Any]:
    """From --state, a file, or standard input."""
    if args.given is not None and words:
        raise UsageError("the state is either --state or a file", "leave one out")
    if args.given is not None:
        where, data = "--state", args.given.encode("utf-8", "surrogateescape")
    elif words and words[0] != "-":
        where, data = safe(words[0]), _file(context, words[0])
    elif not words and context.terminal.interactive:
        raise UsageError("there is no state to save", "name a file, or say --state JSON, or - to type it")
    else:
        where, data = "standard input", sys.stdin.buffer.read(_MOST + 1) if sys.stdin is not None else b""
    if len(data) > _MOST:
        raise UsageError(f"{where} holds more than {_MOST >> 20} MB", "save a smaller state")
    if not data.strip():
        raise UsageError(f"{where} is empty", 'give a JSON object like {"messages": [], "step": 3}')
    try:
        found = json.loads(data.decode())
    except UnicodeDecodeError:
        raise UsageError(f"{where} is no UTF-8 text", "save it as UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise UsageError(f"{where} is no JSON: {error.msg} ({place})", "mend it there") from None
    except (RecursionError, ValueError):
        raise UsageError(f"{where} lies too deep, or has a number too long to read", "save a flatter state") from None
    if not isinstance(found, dict):
        kind = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}.get(type(found), "a number")
        raise UsageError(f"state is {kind}, not an object", 'give one like {"messages": [], "step": 3}')
    return found


def _file(context: Context, name: str) -> bytes:
    try:
        with open(os.path.join(context.cwd, name), "rb") as file:
            return file.read(_MOST + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{safe(name)} cannot be read ({why})", "name a readable file, or -") from None


# -- fork, rollback ----------------------------------------------------------


def fork(context: Context, workspace: Workspace, args: Namespace, words: list[str]) -> int:
    made = workspace.threads.fork(*words, agent=agent(context, args))
    origin = made.forked_from or (words[0], words[1])
    begins = f"begins with {safe(short_id(origin[1]))} of {safe(origin[0])}, as {_id(context, made)}"
    return _made(context, made, f"thread {safe(made.thread)} {begins}")


def rollback(context: Context, workspace: Workspace, args: Namespace, words: list[str]) -> int:
    found = workspace.threads.get(*words)
    if (args.everything or args.merge or args.markers or args.force) and not args.with_files:
        raise UsageError("--all, --merge, --markers and --force are about files", "add --with-files, or leave it out")
    if not args.with_files:
        look_at_files(workspace, found)
    wanted = take_back_flow.asked("thread", (found.thread, found.id), args)._replace(with_files=args.with_files)
    return take_back_flow.take_back(context, workspace, wanted)


# -- handoff, adopt ----------------------------------------------------------


def handoff(context: Context, workspace: Workspace, args: Namespace, words: list[str]) -> int:
    if not args.to:
        raise UsageError("a handoff needs an agent to go to", "takeback thread handoff THREAD [CHECKPOINT] --to AGENT")
    made = workspace.threads.handoff(*words, to_agent=args.to, note=args.note or "", agent=agent(context, args))
    if context.json:
        context.terminal.json(json_thread_shapes.handoff(made))
        return 0
    id = context.terminal.style(made.id[:8], "bold")
    what = f"{safe(short_id(made.checkpoint))} of thread {safe(made.thread)}"
    context.terminal.say(f"handoff {id}: {what} is for {safe(made.to_agent)}")
    context.terminal.hint(f"it is taken over by takeback thread adopt {made.id[:8]}")
    return 0


def adopt(context: Context, workspace: Workspace, args: Namespace, words: list[str]) -> int:
    new = words[1] if len(words) > 1 else ""
    made = workspace.threads.adopt(words[0], agent=agent(context, args), new_thread=new)
    origin = made.forked_from or ("", "")
    told = f"adopted {safe(short_id(origin[1]))} of {safe(origin[0])}: thread {safe(made.thread)}"
    return _made(context, made, f"{told}, at {_id(context, made)}", {"handoff_id": _whole(workspace, words[0])})


def _whole(workspace: Workspace, id: str) -> str:
    return next((h.id for h in workspace.threads.handed_over() if h.id.startswith(id)), id)


def _id(context: Context, made: StateCheckpoint) -> str:
    return context.terminal.style(safe(short_id(made.id)), "bold")


def _made(context: Context, made: StateCheckpoint, told: str, also: dict[str, Any] | None = None) -> int:
    if context.json:
        context.terminal.json({**json_thread_shapes.checkpoint(made), **(also or {})})
    else:
        context.terminal.say(told)
    return 0


VERBS = {"save": save, "fork": fork, "rollback": rollback, "handoff": handoff, "adopt": adopt}
