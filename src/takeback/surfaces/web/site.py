"""Which view is where. Reading is GET, and every view has a twin in JSON; changing is POST, and is in changes.py.

/timeline?filter=&before=&day=   the list, newest first          /timeline.json
/item/ID                         a turn, call, effect, …         /item/ID.json
/compare?a=&b=                   two checkpoints, or one and now /compare.json
/plan/HASH                       a plan, and the way to apply it /plan/HASH.json
/outcome/ID                      what came of one                /outcome/ID.json
/resolve/ID?said=                what saying so notes            /resolve/ID.json
/release/ID                      what sending a mail sends       /release/ID.json
/resume?abort=                   what finishing it does          /resume.json
/events                          what happens, as it happens
POST /plan                       plans, and leads to the plan's page
POST /plan/HASH/apply            applies exactly that
POST /resolve/ID                 notes what came of what nobody heard of again
POST /release/ID                 sends a mail that is held
POST /resume                     finishes a take-back that was interrupted, or goes back from it
POST /checkpoint                 takes one, with a label
POST /pin                        keeps a checkpoint for ever, or no longer
POST /label                      calls a checkpoint something else
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from takeback.errors import ApprovalNeeded, Locked, NotFound, Stale, TakebackError, UsageError
from takeback.privacy import masking
from takeback.show.timeline import Timeline
from takeback.show.timeline_items import EffectItem, Item
from takeback.surfaces.wording import entry, failures, json_shapes
from takeback.surfaces.wording.html import Child, tag, url
from takeback.workspace import Workspace

from . import details, proposals, results, settling
from .changes import Changes, Next
from .details import Around
from .forms import Filled, Forms, group, one
from .frame import Seen, View, page
from .guard import Keys
from .listing import Place, title, way_back, who
from .live import events
from .settling import Matter
from .strip import Activity, Kept, shape, without_times

_LISTED = 100  # turns of one page
_STATIC = Path(__file__).parent / "static"
_KINDS = {"style.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}


class Site:
    """Looks through one workspace that stays open."""

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
        self._changes = Changes(self._timeline, opened)
        self._token = "" if read_only else keys.form
        self._is_ending = is_ending
        self._bug = bug
        self._activity = Kept()

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
            ("/resolve/{id}", self._resolve),
            ("/release/{id}", self._release),
            ("/resume", self._resume),
            ("/resume.json", self._resume),
            ("/static/{name}", self._static),
        ]
        post = [
            ("/plan", self._changes.plan),
            ("/plan/{id}/apply", self._changes.apply),
            ("/resolve/{id}", self._changes.resolve),
            ("/release/{id}", self._changes.release),
            ("/resume", self._changes.resume),
            ("/checkpoint", self._changes.checkpoint),
            ("/pin", self._changes.pin),
            ("/label", self._changes.label),
        ]
        routes = [Route(path, self._showing(view), methods=["GET"]) for path, view in get]
        routes.append(Route("/events", self._events, methods=["GET"]))
        routes += [Route(path, self._changing(change), methods=["POST"]) for path, change in post]
        return Starlette(routes=routes, exception_handlers={404: self._nothing, 405: self._nothing})

    @property
    def under_way(self) -> str:
        return self._changes.doing.under_way

    # -- the timeline and its items ------------------------------------------

    def _home(self, request: Request) -> Response:
        return RedirectResponse(url("timeline"), 303)

    def _list(self, request: Request) -> Response:
        place, now = _place(request), self._timeline.now()
        if _is_json(request):
            items = self._timeline.turns(place.filter, _LISTED, place.before)
            told = {"turns": [_shape(item) for item in items], "activity": shape(self._active(place), place.day)}
            stands = {"interrupted": now.interrupted, "under_way": now.under_way, "damaged": now.damaged}
            waits = {"held": now.held, "unknown": now.unknown}
            return _json({**told, "head": now.head, "filter": place.filter, **stands, **waits})
        seen = self._seen(place)
        newest = seen.items[0] if seen.items else None
        body = details.overview(seen.now, newest, len(seen.items), self._forms(place), place)
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
            shown = entry.shape(detail.shown)
            moved = [{**m._asdict(), "differences": [d._asdict() for d in m.differences]} for m in detail.moved]
            told = {**shown, "item": _shape(detail.item), "parts": [_shape(p) for p in self._timeline.children(id)]}
            return _json({**told, "moved": moved, "masked": list(detail.masked), "more": detail.shown.more})
        path = self._path(detail.item)
        tied = [*detail.item.undone_by, *getattr(detail.item, "took", ()), *details.asked(detail)]
        around = Around(path, self._timeline.children(id, place.filter), self._named(tied))
        only = request.query_params.get("path", "")
        restores = details.restores(self._timeline.checkpoint_at(id), self._forms(place))
        body = details.item_page(detail, around, place, self._ws.clock(), self._forms(place), restores, only)
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
            ends = {
                "a": json_shapes.checkpoint(diff.a),
                "b": None if diff.b is None else json_shapes.checkpoint(diff.b),
            }
            return _json({**ends, "files": [json_shapes.file_diff(file) for file in files], "masked": masked})
        mark = next((mark for mark in self._timeline.checkpoints() if mark.id == diff.a.id), None)
        restores = details.restores(mark if diff.b is None else None, self._forms(place))
        body = details.compare_page(diff._replace(files=files), masked, place, restores)
        return self._page(View("Compare", body, chosen=diff.a.id), place)

    # -- what asks, and what came of it ----------------------------------------

    def _plan(self, request: Request) -> Response:
        place, proposal = _place(request), self._changes.proposal(_id(request))
        if _is_json(request):
            return _json({"plan": proposal.shape, "command": proposal.asked.command, "applied": False})
        body = proposals.plan_page(proposal, self._forms(place), place)
        return self._page(View("Plan", body, kind="plan", live=False), place)

    def _resolve(self, request: Request) -> Response:
        return self._ask(request, settling.resolving(self._ws, _id(request), _asked(request, "said")))

    def _release(self, request: Request) -> Response:
        return self._ask(request, settling.releasing(self._ws, _id(request)))

    def _resume(self, request: Request) -> Response:
        return self._ask(request, settling.resuming(self._ws, _asked(request, "abort") == "yes"))

    def _ask(self, request: Request, matter: Matter) -> Response:
        if _is_json(request):
            return _json(matter.shape)
        place = _place(request)
        body = settling.matter_page(matter, self._forms(place), place)
        return self._page(View(matter.title, body, kind="plan", live=False), place)

    def _outcome(self, request: Request) -> Response:
        place, id = _place(request), _id(request)
        result = self._changes.result(id)
        if result is None:
            if _is_json(request):
                raise NotFound("what came of it is not kept any more", "see it in the timeline")
            return RedirectResponse(place.item(id), 303)
        if _is_json(request):
            return _json(result.shape)
        body = results.result_page(result, self._forms(place), place)
        return self._page(View("Outcome", body, kind="outcome", live=False, chosen=result.id), place)

    # -- what belongs to every page --------------------------------------------

    def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _KINDS:
            raise NotFound("there is no such file", "")
        return FileResponse(_STATIC / name, media_type=_KINDS[name])

    async def _events(self, request: Request) -> Response:
        since = _asked(request, "since")
        seen = int(since) if since.isdecimal() and since.isascii() and len(since) < 16 else -1
        return StreamingResponse(
            events(self._timeline, seen, self._changes.doing, self._is_ending), media_type="text/event-stream"
        )

    def _forms(self, place: Place) -> Forms:
        return Forms(place, self._token)

    def _seen(self, place: Place) -> Seen:
        now = self._timeline.now()
        try:
            items = self._timeline.turns(place.filter, _LISTED + 1, place.before)
            return Seen(items[:_LISTED], len(items) > _LISTED, self._active(place), now, None)
        except UsageError as error:
            return Seen([], False, Activity(()), now, (error.message, error.hint))

    def _active(self, place: Place) -> Activity:
        """The same day however it is narrowed by time: the hours of it that are not shown are still to be seen."""
        filter = without_times(place.filter)
        key = self._timeline.head(), filter
        return self._activity.of(key, lambda: [(e.at, e.domain) for e in self._timeline.effects(filter)])

    def _page(self, view: View, place: Place, seen: Seen | None = None, status: int = 200) -> Response:
        done, of = self._changes.doing.state
        progress = f"{done} of {of}" if done < of else ""
        shown = page(view, seen or self._seen(place), place, str(self._ws.root), self._forms(place), progress)
        return HTMLResponse(shown, status)

    # -- how it is answered ------------------------------------------------------

    def _showing(self, view: Callable[[Request], Response]) -> Callable[[Request], Response]:
        return lambda request: self._told(request, _place(request), lambda: view(request))

    def _changing(self, change: Callable[[str, Filled], Next]) -> Callable[[Request], Any]:
        async def changing(request: Request) -> Response:
            filled = parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)
            place = Place(one(filled, "filter"), one(filled, "before"), one(filled, "day"))

            def work() -> Response:
                return RedirectResponse(place.to(*change(request.path_params.get("id", ""), filled)), 303)

            return await run_in_threadpool(self._told, request, place, work)

        return changing

    def _told(self, request: Request, place: Place, work: Callable[[], Response]) -> Response:
        try:
            return work()
        except TakebackError as error:
            return self._failed(request, place, error)
        except Exception as error:
            self._bug(error)
            bug = TakebackError("a bug in takeback web", "the terminal it runs in has more")
            return self._failed(request, place, failures.of_the_system(error) or bug)

    def _failed(self, request: Request, place: Place, error: TakebackError) -> Response:
        status = _status(error)
        if _is_json(request):
            told = {"message": error.message, "hint": error.hint, "code": error.exit_code}
            return _json({"error": told}, status)
        is_change = request.method == "POST"
        hash = request.path_params.get("id", "") if is_change else ""
        again: Child = None
        if self._changes.has_plan(hash):
            again = self._forms(place).plan("Plan it again…", again=hash, class_="main")
        rows = [tag("li", line) for line in failures.what_differs(error)]
        body: list[Child] = [
            way_back(place),
            tag("h2", "That was not done" if is_change else "That cannot be shown", id="heading"),
            tag("p", error.message, role="alert", class_="said poor"),
            tag("ul", *rows) if rows else None,
            tag("p", f"→ {error.hint}") if error.hint else None,
            group("Next", again),
        ]
        try:
            return self._page(View("Failed", body, kind="failed", live=False), place, None, status)
        except Exception as worse:  # the list itself cannot be shown
            if not isinstance(worse, TakebackError):
                self._bug(worse)
            return Response(f"takeback: {error.message}\n{worse}\n", status, media_type="text/plain")

    async def _nothing(self, request: Request, error: Exception) -> Response:
        return Response("takeback: there is nothing here\n", 404, media_type="text/plain")


def _status(error: TakebackError) -> int:
    for kind, status in ((NotFound, 404), (UsageError, 400), (Stale, 409), (ApprovalNeeded, 403), (Locked, 423)):
        if isinstance(error, kind):
            return status
    return 500


def _place(request: Request) -> Place:
    return Place(_asked(request, "filter").strip()[:2000], _asked(request, "before"), _asked(request, "day"))


def _asked(request: Request, name: str) -> str:
    return request.query_params.get(name, "")


def _is_json(request: Request) -> bool:
    return request.url.path.endswith(".json")


def _id(request: Request) -> str:
    return str(request.path_params["id"]).removesuffix(".json")


def _shape(item: Item) -> dict[str, Any]:
    """An item as JSON: as the timeline has it, its row as `log --json` has that."""
    told = item._asdict()
    if isinstance(item, EffectItem):
        told["row"] = json_shapes.log_row(item.row)
    else:
        told |= {"totals": dict(item.totals), "badges": dict(item.badges)}
    if "marks" in told:
        told["marks"] = [mark._asdict() for mark in told["marks"]]
    return told


def _json(told: Any, status: int = 200) -> Response:
    return Response(json.dumps(told, default=str), status, media_type="application/json")
