"""Which view is where. Reading is GET, and every view has a twin in JSON; changing is POST, and there are four.

/timeline?filter=&before=&day=   the list, newest first          /timeline.json
/item/ID                         a turn, call, effect, …         /item/ID.json
/compare?a=&b=                   two checkpoints, or one and now /compare.json
/plan/HASH                       a plan, and the way to apply it /plan/HASH.json
/outcome/ID                      what came of one                /outcome/ID.json
/events                          what happens, as it happens
POST /plan                       plans, and leads to the plan's page
POST /plan/HASH/apply            applies exactly that
POST /checkpoint                 takes one, with a label
POST /pin                        keeps a checkpoint for ever, or no longer
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from ... import masking
from ...errors import ApprovalNeeded, Locked, NotFound, Stale, TakebackError, UsageError
from ...timeline import EffectItem, Item, Timeline
from ...workspace import Workspace
from ..cli import shapes, show
from ..cli.takebacks import Asked
from . import details, proposals
from .details import Around
from .frame import Seen, View, page
from .guard import Keys
from .html import Child, Markup, tag, url
from .listing import Place, title, who
from .live import Doing, events
from .proposals import Proposal, Result
from .strip import Activity, shape

_LISTED = 100  # turns of one page
_KEPT = 100  # plans and outcomes that are kept
_STATIC = Path(__file__).parent / "static"
_KINDS = {"style.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
_PLANNED = ("undo", "redo", "rollback", "revert", "restore")

Form = Mapping[str, list[str]]


class Site:
    """Looks through one workspace that stays open; what changes something opens its own, by the settings of then."""

    def __init__(
        self,
        workspace: Workspace,
        opened: Callable[[], Workspace],
        keys: Keys,
        read_only: bool,
        is_ending: Callable[[], bool],
        bug: Callable[[Exception], None],
    ) -> None:
        self._ws = workspace
        self._timeline = Timeline(workspace)
        self._opened = opened
        self._keys = keys
        self._read_only = read_only
        self._is_ending = is_ending
        self._bug = bug
        self._doing = Doing()
        self._proposals: dict[str, Proposal] = {}
        self._results: dict[str, Result] = {}
        self._activity: tuple[int, str, Activity] = (-1, "", Activity(()))

    def app(self) -> Starlette:
        get = [
            ("/", self._home),
            ("/timeline", self._list),
            ("/timeline.json", self._list),
            ("/item/{id}", self._item),
            ("/compare", self._compare),
            ("/compare.json", self._compare),
            ("/plan/{id}", self._plan),
            ("/outcome/{id}", self._outcome),
            ("/static/{name}", self._static),
        ]
        routes = [Route(path, self._told(view), methods=["GET"]) for path, view in get]
        routes.append(Route("/events", self._events, methods=["GET"]))
        routes.append(Route("/plan", self._changing(self._make_plan), methods=["POST"]))
        routes.append(Route("/plan/{id}/apply", self._changing(self._apply), methods=["POST"]))
        routes.append(Route("/checkpoint", self._changing(self._checkpoint), methods=["POST"]))
        routes.append(Route("/pin", self._changing(self._pin), methods=["POST"]))
        return Starlette(routes=routes, exception_handlers={404: self._nothing, 405: self._nothing})

    @property
    def is_taking_back(self) -> bool:
        return self._doing.is_under_way

    # -- reading -------------------------------------------------------------

    def _home(self, request: Request) -> Response:
        return RedirectResponse(url("timeline"), 303)

    def _list(self, request: Request) -> Response:
        place, now = _place(request), self._timeline.now()
        if _is_json(request):
            items = self._timeline.turns(place.filter, _LISTED, place.before)
            told = {"turns": [_shape(item) for item in items], "activity": shape(self._active(place), place.day)}
            return _json({**told, "head": now.head, "filter": place.filter})
        seen = self._seen(place)
        newest = seen.items[0] if seen.items else None
        body = details.overview(seen.now, newest, len(seen.items), self._form(place), place)
        return self._page(View("Timeline", body, kind="timeline"), place, seen, 400 if seen.wrong else 200)

    def _item(self, request: Request) -> Response:
        place, id = _place(request), _id(request)
        try:
            detail = self._timeline.detail(id)
        except NotFound:
            if not (turn := self._timeline.parent(id)):
                raise
            return RedirectResponse(place.item(turn + ".json" * _is_json(request)), 303)  # a checkpoint in a turn
        if _is_json(request):
            shown = show.shape(detail.shown)
            moved = [{**m._asdict(), "differences": [d._asdict() for d in m.differences]} for m in detail.moved]
            told = {**shown, "item": _shape(detail.item), "parts": [_shape(p) for p in self._timeline.children(id)]}
            return _json({**told, "moved": moved, "masked": list(detail.masked), "more": detail.shown.more})
        path = self._path(detail.item)
        tied = [*detail.item.undone_by, *getattr(detail.item, "took", ())]
        around = Around(path, self._timeline.children(id, place.filter), self._named(tied))
        only = request.query_params.get("path", "")
        restores = details.restores(self._timeline.checkpoint_at(id), self._form(place))
        body = details.item_page(detail, around, place, self._ws.clock(), self._form(place), restores, only)
        return self._page(View(f"{who(detail.item)} {title(detail.item)}", body, chosen=path[0].id), place)

    def _path(self, item: Item) -> list[Item]:
        """From its turn down to it."""
        above: list[Item] = []
        if turn := self._timeline.parent(item.id):
            above.append(self._timeline.item(turn))
        if isinstance(item, EffectItem) and len(item.row.calls) == 1:
            above.append(self._timeline.item(item.row.calls[0]))
        return [*above, item]

    def _named(self, ids: list[str]) -> dict[str, Item]:
        found: dict[str, Item] = {}
        for id in ids[:50]:
            try:
                found[id] = self._timeline.item(id)
            except NotFound:
                continue
        return found

    def _compare(self, request: Request) -> Response:
        place = _place(request)
        asked = request.query_params
        diff = self._ws.diff(asked.get("a", ""), asked.get("b", ""))
        files = tuple(masking.mask_file(file) for file in diff.files)
        masked = [was.path for was, file in zip(diff.files, files) if was != file]
        if _is_json(request):
            ends = {"a": shapes.checkpoint(diff.a), "b": None if diff.b is None else shapes.checkpoint(diff.b)}
            return _json({**ends, "files": [shapes.file_diff(file) for file in files], "masked": masked})
        mark = next((mark for mark in self._timeline.checkpoints() if mark.id == diff.a.id), None)
        restores = details.restores(mark if diff.b is None else None, self._form(place))
        body = details.compare_page(diff._replace(files=files), masked, place, restores)
        return self._page(View("Compare", body, chosen=diff.a.id), place)

    def _plan(self, request: Request) -> Response:
        place, proposal = _place(request), self._proposal(_id(request))
        if _is_json(request):
            return _json({"plan": proposal.shape, "command": proposal.asked.command, "applied": False})

        def apply(text: str, fields: Child, **values: str) -> Markup:
            if self._read_only:
                return Markup("")
            button = tag("button", text, class_="main apply")
            action = url("plan", proposal.plan.hash, "apply")
            return tag(
                "form", *self._hidden(place, values), fields, button, action=action, method="post", class_="confirm"
            )

        body = proposals.plan_page(proposal, self._form(place), apply, place)
        return self._page(View("Plan", body, kind="plan", live=False), place)

    def _outcome(self, request: Request) -> Response:
        place, id = _place(request), _id(request)
        result = self._results.get(id)
        if result is None:
            if _is_json(request):
                raise NotFound("what came of it is not kept any more", "see it in the timeline")
            return RedirectResponse(place.item(id), 303)
        if _is_json(request):
            return _json(result.shape)
        body = proposals.result_page(result, self._form(place), place)
        return self._page(View("Outcome", body, kind="outcome", live=False, chosen=result.id), place)

    def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _KINDS:
            raise NotFound("there is no such file", "")
        return FileResponse(_STATIC / name, media_type=_KINDS[name])

    async def _events(self, request: Request) -> Response:
        since = request.query_params.get("since", "")
        seen = int(since) if since.isdecimal() and since.isascii() and len(since) < 16 else -1
        return StreamingResponse(
            events(self._timeline, seen, self._doing, self._is_ending), media_type="text/event-stream"
        )

    # -- changing ------------------------------------------------------------

    def _make_plan(self, request: Request, form: Form) -> Response:
        place = _place_of(form)
        with self._opened() as workspace:
            proposal = proposals.propose(workspace, self._asked(form))
        _keep(self._proposals, proposal.plan.hash, proposal)
        return RedirectResponse(_at(place, "plan", proposal.plan.hash), 303)

    def _asked(self, form: Form) -> Asked:
        """What is to be planned: an item and how, or an earlier plan asked another way."""
        if again := _one(form, "again"):
            asked = self._proposal(again).asked
            asked = asked._replace(merge=asked.merge or bool(_one(form, "merge")))
            asked = asked._replace(state=asked.state or bool(_one(form, "state")))
            asked = asked._replace(force=asked.force or bool(_one(form, "force")))
            return asked._replace(only=("files",)) if _one(form, "only") == "files" else asked
        how, id = _one(form, "how"), _one(form, "item")
        if how not in _PLANNED:
            raise UsageError("nobody knows what to plan", "go back to the timeline and choose it there")
        if how in ("undo", "redo"):
            return Asked(how, ())
        if how == "restore":
            if not _one(form, "path"):
                raise UsageError("no file is named", "write its path as it is in the project, such as src/auth.py")
            return Asked(how, (id, _one(form, "path")))
        item = self._timeline.item(id)
        words = item.revert if how == "revert" else (item.rollback,)
        if not any(words):
            raise UsageError("there is nothing to take back in it", "choose another entry of the timeline")
        return Asked(how, tuple(words))

    def _apply(self, request: Request, form: Form) -> Response:
        place = _place_of(form)
        proposal = self._proposal(request.path_params["id"])
        self._doing.begin(len(proposal.plan.taken))
        try:
            with self._opened() as workspace:
                workspace.told = self._doing.told
                outcome = proposals.carry_out(workspace, proposal, _one(form, "hash"), form.get("yes", []))
                result = proposals.result_of(workspace, outcome)
        finally:
            self._doing.end()
        self._proposals.pop(proposal.plan.hash, None)
        id = result.id or proposal.plan.hash
        _keep(self._results, id, result)
        return RedirectResponse(_at(place, "outcome", id), 303)

    def _checkpoint(self, request: Request, form: Form) -> Response:
        with self._opened() as workspace:
            taken = workspace.checkpoint(_one(form, "label").strip())
        return RedirectResponse(_at(_place_of(form), "item", taken.id), 303)

    def _pin(self, request: Request, form: Form) -> Response:
        with self._opened() as workspace:
            pinned = workspace.pin(_one(form, "item"), keep=_one(form, "keep") == "yes")
        return RedirectResponse(_at(_place_of(form), "item", pinned.id), 303)

    # -- what all of them share ----------------------------------------------

    def _proposal(self, hash: str) -> Proposal:
        if hash not in self._proposals:
            raise NotFound(f"plan {hash[:12]} is not kept any more", "choose in the timeline what to take back, again")
        return self._proposals[hash]

    def _hidden(self, place: Place, values: Mapping[str, str]) -> list[Child]:
        kept = {"filter": place.filter, "before": place.before, "day": place.day}
        all_of_them = {"form": self._keys.form, **values, **{name: value for name, value in kept.items() if value}}
        return [tag("input", type="hidden", name=name, value=value) for name, value in all_of_them.items()]

    def _form(self, place: Place) -> Callable[..., Markup]:
        """Buttons that plan something, or another action; none where nothing may be changed."""

        def form(text: str, *, class_: str = "", action: str = "/plan", field: Child = None, **values: str) -> Markup:
            if self._read_only:
                return Markup("")
            button = tag("button", text, class_=class_ or None)
            return tag("form", *self._hidden(place, values), field, button, action=action, method="post")

        return form

    def _seen(self, place: Place) -> Seen:
        now = self._timeline.now()
        try:
            items = self._timeline.turns(place.filter, _LISTED + 1, place.before)
            return Seen(items[:_LISTED], len(items) > _LISTED, self._active(place), now, None)
        except UsageError as error:
            return Seen([], False, Activity(()), now, (error.message, error.hint))

    def _active(self, place: Place) -> Activity:
        """The same day however it is narrowed by time: the hours of it that are not shown are still to be seen."""
        from .strip import without_times

        head, filter = self._timeline.head(), without_times(place.filter)
        if self._activity[:2] != (head, filter):
            made = Activity((effect.at, effect.domain) for effect in self._timeline.effects(filter))
            self._activity = head, filter, made
        return self._activity[2]

    def _page(self, view: View, place: Place, seen: Seen | None = None, status: int = 200) -> Response:
        done, of = self._doing.state
        progress = f"{done} of {of}" if done < of else ""
        shown = page(view, seen or self._seen(place), place, str(self._ws.root), self._read_only, progress)
        return HTMLResponse(shown, status)

    def _told(self, view: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def told(request: Request) -> Response:
            try:
                return view(request)
            except TakebackError as error:
                return self._failed(request, error)
            except Exception as error:
                self._bug(error)
                return self._failed(
                    request, TakebackError("a bug in takeback web", "the terminal it runs in has more"), 500
                )

        return told

    def _changing(self, act: Callable[[Request, Form], Response]) -> Callable[[Request], Any]:
        async def changing(request: Request) -> Response:
            form = parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)
            return await run_in_threadpool(self._told(lambda asked: act(asked, form)), request)

        return changing

    def _failed(self, request: Request, error: TakebackError, status: int = 0) -> Response:
        status = status or _status(error)
        differing = error.differing if isinstance(error, Stale) else ()
        if _is_json(request):
            told = {"message": error.message, "hint": error.hint, "code": error.exit_code}
            return _json({"error": told}, status)
        rows = [tag("li", tag("code", target), f": {was} ≠ now {now}") for target, was, now in differing[:20]]
        again: Child = None
        hash = request.path_params.get("id", "") if request.method == "POST" else ""
        if hash in self._proposals:
            again = self._form(Place())("Plan it again…", again=hash, class_="main")
        body: list[Child] = [
            tag(
                "nav",
                tag("a", "← timeline", href=url("timeline"), class_="back"),
                aria_label="Where this is",
                class_="path",
            ),
            tag("h2", "That was not done" if request.method == "POST" else "That cannot be shown", id="heading"),
            tag("p", error.message, role="alert", class_="said poor"),
            tag("ul", *rows) if rows else None,
            tag("p", f"→ {error.hint}") if error.hint else None,
            tag("div", again, class_="acts") if again else None,
        ]
        try:
            return self._page(View("Failed", body, kind="failed", live=False), Place(), None, status)
        except TakebackError as worse:  # the list itself cannot be shown
            return Response(f"takeback: {error.message}\n{worse.message}\n", status, media_type="text/plain")

    async def _nothing(self, request: Request, error: Exception) -> Response:
        return Response("takeback: there is nothing here\n", 404, media_type="text/plain")


def _status(error: TakebackError) -> int:
    for kind, status in ((NotFound, 404), (UsageError, 400), (Stale, 409), (ApprovalNeeded, 403), (Locked, 423)):
        if isinstance(error, kind):
            return status
    return 500


def _place(request: Request) -> Place:
    asked = request.query_params
    return Place(asked.get("filter", "").strip()[:2000], asked.get("before", ""), asked.get("day", ""))


def _place_of(form: Form) -> Place:
    return Place(_one(form, "filter"), _one(form, "before"), _one(form, "day"))


def _at(place: Place, *steps: str) -> str:
    return url(*steps, filter=place.filter, before=place.before, day=place.day)


def _is_json(request: Request) -> bool:
    return request.url.path.endswith(".json")


def _id(request: Request) -> str:
    return str(request.path_params["id"]).removesuffix(".json")


def _one(form: Form, name: str) -> str:
    return form.get(name, [""])[0]


def _shape(item: Item) -> dict[str, Any]:
    """An item as JSON: as the timeline has it, its row as `log --json` has that."""
    told = item._asdict()
    if isinstance(item, EffectItem):
        told["row"] = shapes.log_row(item.row)
    else:
        told |= {"totals": dict(item.totals), "badges": dict(item.badges)}
    if "marks" in told:
        told["marks"] = [mark._asdict() for mark in told["marks"]]
    return told


def _json(told: Any, status: int = 200) -> Response:
    return Response(json.dumps(told, default=str), status, media_type="application/json")


def _keep(into: dict[str, Any], key: str, value: Any) -> None:
    """The newest ones."""
    into.pop(key, None)
    into[key] = value
    while len(into) > _KEPT:
        into.pop(next(iter(into)), None)
