"""A hook of an agent, from what it was told to what it answers.

    payload ─► Agent.parse ─► the workspace ─► the gate (may it run?) ─► a bracket around the call ─► Agent.render

Reads cost nothing: no store is opened for them. It exits 0 or 2 and prints nothing or one JSON object, whatever
happens: what goes wrong is put on record (hook_record.py), and the call goes on or is denied as its owner chose.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from takeback import agents, gate
from takeback.agents import call_of_event, copilot, hook_problems
from takeback.agents import events as kinds
from takeback.agents.claude import is_another
from takeback.agents.events import Agent, Answer, Event, Reply
from takeback.config import place as setting_place
from takeback.config.settings import user_config
from takeback.domains.git.repository import amount
from takeback.errors import TakebackError
from takeback.model.calls import Call, Caller
from takeback.model.effects import domain_of, thread_of
from takeback.privacy import redact
from takeback.store import layout
from takeback.store.folder_objects import LATE
from takeback.store.layout import folder_of
from takeback.workspace import open_workspace

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from takeback.config.settings import Settings
    from takeback.gate.risk import Risk
    from takeback.look.turns_and_calls import Opened
    from takeback.model.effects import Takeback
    from takeback.workspace import Workspace

    Workspaces = Callable[[Path, Settings, Mapping[str, str]], AbstractContextManager[Workspace]]
    Beside = Callable[[Callable[[], bool]], Callable[[], bool]]

FAILED, NOTED = "failed", "noted"  # of hook_record.py, which is loaded only when there is something to put on record
_LARGEST = 64 << 20  # bytes of a payload
_PATIENCE = 10.0  # seconds at most to wait for the store, with an agent waiting
_NAMED = 8  # paths that are named of a take-back, the rest is counted


class Asked(NamedTuple):
    """One event of an agent, as the hook's process has it."""

    agent: str
    event: str  # its name, where the payload does not say
    payload: bytes
    cwd: str
    environ: Mapping[str, str]
    pid: int = 0  # the agent's process: the first above the hook that is no shell
    started: int = 0
    at: float = 0.0  # when the hook was begun; 0: now


class Place(NamedTuple):
    """Where an event happened, and by which rules."""

    home: Path
    root: Path
    settings: Settings


def answer(asked: Asked, workspaces: Workspaces | None = None, beside: Beside | None = None) -> Reply:
    """What the hook does to its agent. Never raises. `beside`: how to have something done while the hook goes on."""
    if asked.environ.get("TAKEBACK", "").lower() == "off":
        return Reply()
    asked = asked._replace(at=asked.at or time.time())
    try:
        agent, event = _heard(asked)
    except Exception as error:
        return _unread(asked, asked.event, FAILED, _told(error))
    if event.kind == kinds.STRANGE:
        return _unread(asked, event.name or asked.event, NOTED, f"no event of {agent.title} that takeback knows", event)
    is_call = event.kind in (kinds.BEFORE, kinds.ASKED, kinds.AFTER)
    if event.kind == kinds.OTHER or (is_call and event.does == kinds.READS):
        return Reply()
    place: Place | None = None
    try:
        place = _place(asked, event)
        if place is None or not place.settings.enabled or _is_shielded(asked, place):
            return Reply()
        is_risky = _judging(asked, event, place, beside)
        with (workspaces or _open)(place.root, place.settings, asked.environ) as workspace:
            said = _acted(asked, agent, event, place, workspace, is_risky)
        return agent.render(event, said)
    except Exception as error:
        return _failed(asked, agent, event, place, _told(error))


def _open(root: Path, settings: Settings, environ: Mapping[str, str]) -> Workspace:
    return open_workspace(root, settings, environ=environ)


# -- hearing ---------------------------------------------------------------------


def _heard(asked: Asked) -> tuple[Agent, Event]:
    """The agent that really asks, and its event."""
    agent = agents.load(asked.agent)
    if len(asked.payload) > _LARGEST:
        raise ValueError(f"the payload has {len(asked.payload):,} bytes")
    payload = json.loads(asked.payload.decode("utf-8", "surrogateescape") or "{}")
    if not isinstance(payload, dict):
        raise ValueError("the payload is no JSON object")
    run = asked.environ.get("TAKEBACK_RUN", "")
    caller = Caller(asked.agent, "", pid=asked.pid, started=asked.started, run=run)
    if asked.agent == "claude":
        if is_another(payload):
            agent = agents.load("copilot")
            if copilot.has_own_hooks(asked.cwd, asked.environ):
                return agent, Event(kinds.OTHER, caller)
    event = agent.parse(payload, asked.event, caller)
    if not event.transcript:
        event = event._replace(transcript=agent.transcript_of(event.caller.session, asked.environ))
    return agent, event


def _place(asked: Asked, event: Event) -> Place | None:
    """The workspace of an event: at or above its folder, else the hook's own, else the project that the agent names."""
    from takeback.config import settings

    home = settings.home(asked.environ)
    for folder in (event.cwd, asked.cwd, asked.environ.get("CLAUDE_PROJECT_DIR", "")):
        if folder and "\0" not in folder and os.path.isabs(folder):
            root = layout.find_root(home, Path(folder))
            if root is not None:
                return Place(home, root, settings_of(root, asked.environ))
    if event.kind != kinds.END:
        _on_record(asked, NOTED, f"nothing is protected at or above {event.cwd or asked.cwd}", event)
    return None


def settings_of(root: Path, environ: Mapping[str, str]) -> Settings:
    """What hooks go by in a workspace: an agent waits for them, so they do not wait long for the store."""
    from takeback.config import settings

    found = settings.load(root, environ, config=setting_place.noted(settings.home(environ), root))
    return found._replace(lock_timeout=min(found.lock_timeout, _PATIENCE))


def _is_shielded(asked: Asked, place: Place) -> bool:
    """Whether this is part of a `takeback run`, which keeps the store from its command and captures by itself."""
    if not asked.environ.get("TAKEBACK_RUN"):
        return False
    try:
        os.close(os.open(folder_of(place.home, place.root) / "store.lock", os.O_RDWR))
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


# -- acting ------------------------------------------------------------------------


def _acted(
    asked: Asked, agent: Agent, event: Event, place: Place, workspace: Workspace, is_risky: Callable[[], bool] | None
) -> Answer:
    if event.kind == kinds.PROMPT:
        begun = workspace.begin_turn(event.caller, event.prompt)
        _partial(asked, event, place, begun.lacking)
        return Answer(context=_taken_back(workspace, begun.told))
    if event.kind == kinds.BEFORE:
        return _before(asked, agent, event, place, workspace, is_risky)
    if event.kind in (kinds.ASKED, kinds.REFUSED, kinds.AFTER):
        call = call_of_event.call(event, place.root)[0]
        if event.kind == kinds.ASKED:
            workspace.ask_about(event.caller, call)
            return Answer()
        if event.kind == kinds.REFUSED:
            workspace.refuse_call(event.caller, call, asked.at)
            return Answer()
        nothing = call_of_event.nothing_came_of(event)
        ended = workspace.end_call(
            event.caller, call, event.failed, ran=event.ran, at=asked.at, nothing=nothing, goes_on=event.goes_on
        )
        _partial(asked, event, place, ended.lacking)
    elif event.kind in (kinds.START, kinds.END):
        workspace.end_turn(event.caller, whole_session=True, at=asked.at if event.kind == kinds.END else 0.0)
    elif event.kind == kinds.REST:
        workspace.end_turn(event.caller)
    return Answer()


def _before(
    asked: Asked, agent: Agent, event: Event, place: Place, workspace: Workspace, is_risky: Callable[[], bool] | None
) -> Answer:
    if event.does == kinds.UNKNOWN and not event.server:
        _on_record(asked, NOTED, f"takeback does not know this tool, and looks at the whole tree: {event.tool}", event)
    call, outside = call_of_event.call(event, place.root)
    if is_risky is not None:
        try:
            opened = workspace.begin_call_unless(event.caller, call, is_risky)
        except Exception:
            if not is_risky():
                raise
            opened = None  # what is refused is refused also where nothing can be captured
        if opened is not None:
            return _begun(asked, event, place, workspace, call, opened, Answer())
    said, risks = _gated(asked, agent, event, place, workspace, call, outside)
    if said.decision == kinds.DENY or (said.decision == kinds.ASK and not agent.can_ask):
        return said
    asks = said.decision == kinds.ASK
    acts = call_of_event.acts(event, outside, risks)
    try:
        opened = workspace.begin_call(event.caller, call._replace(acts=acts, asked=asks))
    except Exception as error:
        if not asks or place.settings.failure == "closed":
            raise
        _on_record(asked, FAILED, _told(error), event, place)
        return said  # a person is asked all the same
    return _begun(asked, event, place, workspace, call, opened, said)


def _begun(
    asked: Asked, event: Event, place: Place, workspace: Workspace, call: Call, opened: Opened, said: Answer
) -> Answer:
    """What is said to a call whose before-image is taken; where it is not, as the owner chose."""
    missing = [(path, why) for path, why in opened.lacking if why == LATE or path in call.paths]
    if missing and place.settings.failure == "closed":
        workspace.end_call(event.caller, opened.bracket.call, failed=True, did_act=False)
        return Answer(kinds.DENY, _closed(f"{os.fsdecode(missing[0][0])}: {missing[0][1]}"))
    _partial(asked, event, place, opened.lacking)
    return said._replace(message=said.message or _line(place, workspace, opened.bracket.id, call))


def _gated(
    asked: Asked, agent: Agent, event: Event, place: Place, workspace: Workspace, call: Call, outside: tuple[str, ...]
) -> tuple[Answer, tuple[Risk, ...]]:
    """What the owner's policy says of a call, and what it does that nothing takes back."""
    if event.does == kinds.WRITES and not outside and _is_plain(call, place, asked.environ):
        return Answer(), ()  # captured, and nothing of an agent's or of ours: most calls, and the gate takes its time
    try:
        risks = _risks(asked, event, place)
        if not risks:
            return Answer(), ()
        alone = agent.is_alone(asked.environ)
        return gate.decide(workspace, event, risks, agent.can_ask, call.summary, alone), risks
    except Exception as error:
        if place.settings.failure == "closed":
            raise
        _on_record(asked, FAILED, f"the gate did not judge this call: {_told(error)}", event, place)
        return Answer(), ()


def _risks(asked: Asked, event: Event, place: Place) -> tuple[Risk, ...]:
    """What a call does that nothing takes back."""
    folder = next((text for name in kinds.FOLDERS if isinstance(text := event.input.get(name), str) and text), "")
    there = event._replace(cwd=os.path.join(event.cwd or str(place.root), folder))
    stores, config = (str(place.home),), _configs(place, asked.environ)
    home, known = asked.environ.get("HOME", ""), gate.known(asked.environ)
    return gate.tool(there, str(place.root), home, stores, config, known)


def _judging(asked: Asked, event: Event, place: Place, beside: Beside | None) -> Callable[[], bool] | None:
    """A command is judged beside the look at the tree, since both take their time and most are harmless: whether it
    must be looked into, as it also must where this fails."""
    if beside is None or event.kind != kinds.BEFORE or event.does != kinds.SHELL:
        return None
    found = beside(lambda: bool(_risks(asked, event, place)))

    @cache  # it can be heard once
    def is_risky() -> bool:
        try:
            return found()
        except Exception:
            return True

    return is_risky


def _is_plain(call: Call, place: Place, environ: Mapping[str, str]) -> bool:
    """Whether a call writes only what no program's configuration is called like, and none of ours lies in there."""
    hidden = any(part.startswith(b".") for path in call.paths for part in path.split(b"/"))
    ours = (str(place.home), *_configs(place, environ))
    return (
        bool(call.paths) and not hidden and not any(o.startswith(f"{place.root}/") for o in map(os.path.realpath, ours))
    )


def _configs(place: Place, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The person's configuration: the one that counts here, and where the environment says that it is."""
    return tuple(dict.fromkeys(map(str, (place.settings.config, user_config(environ)))))


# -- what is said ------------------------------------------------------------------


def _line(place: Place, workspace: Workspace, id: str, call: Call) -> str:
    if not place.settings.message:
        return ""
    short = id[: workspace.store.journal.letters(id, 3)]
    return f"⚙ checkpoint {short} before {redact.text(call.summary)}"


def _taken_back(workspace: Workspace, told: Iterable[Takeback]) -> str:
    """One paragraph on what was taken back since the agent was last asked, for the model."""
    parts = [part for takeback in told if (part := _taken(workspace, takeback))]
    if not parts:
        return ""
    return (
        f"{' Then '.join(parts)} The files in the project are as they are now on purpose: "
        "read them again before you rely on what you remember, and do not do this work again unless you are asked to."
    )


def _taken(workspace: Workspace, takeback: Takeback) -> str:
    history = workspace.history()
    changed = {p for e in history.effects if e.takeback == takeback.id for p in e.changes}
    if not changed:
        return ""
    git = {p for p in changed if domain_of(p) == "git"}
    paths = sorted(f"thread {thread_of(p)}" if domain_of(p) == "state" else os.fsdecode(p) for p in changed - git)
    prompts = [history.agent_turns[turn].prompt for turn in takeback.request.turns if turn in history.agent_turns]
    named = ", ".join(f'"{prompt}"' for prompt in prompts if prompt)
    what = f"the turn{'s' if len(prompts) > 1 else ''} {named}" if named else f"work ({takeback.verb})"
    listed = ", ".join(paths[:_NAMED]) + (f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else "")
    listed += f"{'; and ' if listed else ''}in git {amount(git)}" if git else ""
    if takeback.verb == "redo":
        return f"takeback brought back work that it had taken back: {listed}."
    return f"takeback took back {what}: {listed}."


# -- failing -----------------------------------------------------------------------


def _failed(asked: Asked, agent: Agent, event: Event, place: Place | None, why: str) -> Reply:
    """As the owner chose: the call goes on with a loud record, or is denied."""
    _on_record(asked, FAILED, why, event, place)
    if event.kind != kinds.BEFORE:
        return Reply()
    try:
        if place is not None and place.settings.failure == "closed":
            return agent.render(event, Answer(kinds.DENY, _closed(why)))
        return agent.render(event, Answer(message=f"takeback captured nothing before this call: {why}"))
    except Exception as error:
        _on_record(asked, FAILED, _told(error), event, place)
        return Reply()


def _unread(asked: Asked, name: str, result: str, why: str, event: Event | None = None) -> Reply:
    """An event that makes no sense. If its name says that a call waits for the answer, its owner's choice holds."""
    agent, place = None, None
    try:
        place = _place(asked, Event(kinds.END, Caller(asked.agent, "")))
        agent = agents.load(asked.agent)
    except Exception as error:
        if place is None:  # else it has been said: no such agent
            result, why = FAILED, f"{why}; {_told(error)}"
    _on_record(asked, result, why, event, place)
    try:
        if agent is None or place is None or agent.events.get(name) != kinds.BEFORE:
            return Reply()
        if not place.settings.enabled or place.settings.failure != "closed" or _is_shielded(asked, place):
            return Reply()
        waiting = Event(kinds.BEFORE, Caller(asked.agent, ""), name=name)
        return agent.render(waiting, Answer(kinds.DENY, _closed(why)))
    except Exception as error:
        _on_record(asked, FAILED, _told(error), event, place)
        return Reply()


def _closed(why: str) -> str:
    return (
        f"takeback cannot capture what is there before this call ({why}), and hooks.failure is closed: "
        "a person has to mend it (takeback doctor)"
    )


def _told(error: Exception) -> str:
    if isinstance(error, TakebackError):
        return f"{error.message}; {error.hint}" if error.hint else error.message
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    at = f" ({os.path.basename(where.tb_frame.f_code.co_filename)}:{where.tb_lineno})" if where is not None else ""
    return f"{type(error).__name__}: {error}{at}"


def _partial(asked: Asked, event: Event, place: Place, lacking: Iterable[tuple[bytes, str]]) -> None:
    found = [f"{os.fsdecode(path)}: {why}" for path, why in lacking]
    if found:
        more = f" and {len(found) - 3:,} more" if len(found) > 3 else ""
        _on_record(asked, FAILED, f"not captured: {'; '.join(found[:3])}{more}", event, place)


def _on_record(asked: Asked, result: str, what: str, event: Event | None = None, place: Place | None = None) -> None:
    """Leaves a line for the owner. Never raises: there is nobody left to tell."""
    try:
        from takeback.config import settings

        home = place.home if place else settings.home(asked.environ)
        root, tool = str(place.root) if place else "", event.tool if event else ""
        name = event.name if event and event.name else asked.event
        hook_problems.append(home, hook_problems.Record(time.time(), result, asked.agent, name, what, root, tool))
    except Exception:
        return
