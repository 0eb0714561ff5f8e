"""A workspace: a project root under protection, and its store. The object every surface holds.

Here the parts are joined, under the locks of guarded.py; each call runs whole before the next begins. What hooks of
agents do is in hooked.py, the twins for `await` are in twins.py:

    look (observer) ─► journal ─► index                 checkpoint, track
    look ─► planner ─► executor ─► index (takebacks)    undo, redo, rollback, revert, restore
    views, prune, verify                                loaded by the call that needs them
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.agents.in_workspace import Hooked
from takeback.care import budget, prune, verify
from takeback.config.settings import Settings
from takeback.domains import recording
from takeback.domains.email.message import compose
from takeback.domains.email.outbox import Outbox
from takeback.domains.email.outbox import attachments as attached
from takeback.domains.http import Http, recorded
from takeback.harness import recorder
from takeback.harness.recorder import Recorder
from takeback.harness.steps import AsyncStep, WorkStep
from takeback.journal import brackets
from takeback.journal.history import NUMBERED, unpack_snapshot
from takeback.journal.journal import New
from takeback.look import runs_at_work, steps_at_work
from takeback.look.count import count
from takeback.look.observer import is_work
from takeback.look.scan import Look, Scan
from takeback.look.watch import moments
from takeback.model.effects import RUN, Checkpoint, Outcome, Plan, Request, Step, Turn, text
from takeback.model.ids import new_id
from takeback.plan import requests
from takeback.privacy import redact
from takeback.run import isolate
from takeback.show import blame, views
from takeback.store import layout
from takeback.system import agent_sessions, processes
from takeback.system.safefs import Folder as OpenFolder
from takeback.system.safefs import components

from . import domains
from .aio import Twins
from .errors import ApprovalNeeded, NoWorkspace, Off, TakebackError, UsageError
from .workspace_locks import explained

if TYPE_CHECKING:
    from typing import Literal

    from takeback.care.prune import Pruned
    from takeback.care.verify import Repaired, Verified
    from takeback.domains.email.outbox import Outbox
    from takeback.domains.recording import Instead
    from takeback.harness.recorder import Recorder
    from takeback.harness.steps import Approve, AsyncStep, WorkStep
    from takeback.journal.history import History
    from takeback.look.watch.moments import Moment, Moments
    from takeback.look.watch.watcher import Watcher
    from takeback.model.effects import Result
    from takeback.model.outside import Act, Approval, Credential, Inverse, NewAct, Outside, Waiting
    from takeback.plan.planner import Planner
    from takeback.run.isolate import Found, Layer
    from takeback.show import blame, views
    from takeback.show.turns import TurnSeen

_LABEL = 1_000  # characters
_WHOLE = ("undo", "rollback", "thread", "compensate")  # verbs that name no effect
_MOMENTS = 100  # rows after which a tree that is followed gets an automatic checkpoint


class Tracked(NamedTuple):
    """What `track` captured."""

    paths: tuple[str, ...]
    changed: tuple[str, ...]
    lacking: tuple[tuple[str, str], ...]
    id: str = ""  # of the point that it is: restore and revert take it


class Workspace(Hooked, Twins):
    """Safe to use from several threads: each call runs whole before the next begins."""

    _moments: Moments | None = None

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- looking -------------------------------------------------------------

    def glance(self) -> Look:
        """Looks at the whole tree without leaving a trace: for status and diff."""
        with self.alone(), self.open_tree() as tree:
            look = self.observer.scan(tree, self.observer.known(), dry=True)
            look.whose = self.observer.whose(look)
            return look

    def look(self) -> int:
        """Looks at the whole tree and journals what differs, whoever did it: the newest row then."""
        self.must_be_on()
        with self.writing(), self.open_tree() as tree:
            self.must_not_be_interrupted()
            self.observer.look(tree)
            return self.store.journal.head().seq

    def git_not_recorded(self) -> tuple[str, ...]:
        """What of git cannot be recorded just now, in words, with the command that would change that."""
        if not self.settings.git:
            return ()
        with self.open_tree() as tree:
            seen = self.observer.git.look(tree, dry=True)
        return (*views.git_not_covered(self, seen), *(why for _, why in seen.lacking))

    def names_at_top(self) -> list[bytes]:
        """What is known to lie right below the root."""
        with self.alone():
            folder = self.observer.known().folder(b"")
            return [] if folder is None else list(folder.names)

    # -- checkpoint, track ---------------------------------------------------

    def count_paths(self, seconds: float = 1.0) -> int:
        """How many paths a checkpoint will hold, to tell how long it may take; 0 where counting takes longer."""
        with self.alone(), self.open_tree() as tree:
            limits = self.observer.limits()
            beyond = limits.mounts | ({limits.own_store} if limits.own_store else frozenset())
            return count(tree, self.observer.rules(tree), beyond, seconds)

    def checkpoint(
        self, label: str = "", *, actor: str = "", named: bool | None = None, deadline: float | None = None
    ) -> Checkpoint:
        """Captures the whole tree. An actor vouches for what changed; without a label its checkpoint is automatic."""
        self.must_be_on()
        if actor and self.open_steps:
            recorder.note_inside(self, actor)
        is_named = named if named is not None else bool(label) or not actor
        return self._checkpoint(_clean(label), actor, is_named, deadline)

    def checkpoint_of_step(self, actor: str) -> None:
        """An automatic checkpoint of a step's actor, who vouches for nothing that others at work may have done."""
        recorder.note_inside(self, actor)
        self._checkpoint("", actor, False, vouches=not steps_at_work.can_tell(self.store.folder))

    def _checkpoint(
        self,
        label: str,
        actor: str,
        is_named: bool,
        deadline: float | None = None,
        running: Sequence[Turn] = (),
        summary: str = "",
        vouches: bool = True,
    ) -> Checkpoint:
        """What changed is the actor's who vouches for it, or of whoever is at work, runs that end now among them; it
        may be told in a line."""
        self.must_be_on()
        with self.writing(), self.open_tree() as tree:
            self.must_not_be_interrupted()
            observer = self.observer
            look = observer.scan(tree, observer.known(), deadline=deadline)
            voucher = actor if vouches and not running else ""
            rows = observer.rows_of(look, voucher, running=running, summary=summary)
            try:
                row = observer.checkpoint_row(look, label, is_named, actor=actor)
            except OSError as error:
                raise TakebackError(
                    f"the store cannot be written ({error.strerror}); no checkpoint was taken",
                    "free space or mend the store, then run it again",
                ) from error
            at = self.clock()
            seqs = observer.journal_look(look, [*rows, row])
            number = self.store.journal.count(NUMBERED, seqs[-1])
            over = budget.stay_within(self)
        snapshot = unpack_snapshot(row.body["snapshot"])
        lacking = tuple((text(path), why) for path, why in look.lacking)
        large = tuple((text(p), why) for p, why in look.index.uncovered() if why.startswith("larger than"))
        return Checkpoint(seqs[-1], row.id, at, label, is_named, snapshot, lacking, actor, number, False, large, over)

    def track(self, paths: Iterable[str | bytes], *, actor: str = "") -> Tracked:
        """Captures just these paths, before they change or after. It is a point of theirs that restore and revert can
        name."""
        self.must_be_on()
        wanted = [self.relative(p) for p in paths]
        with self.writing(), self.open_tree() as tree:
            self.must_not_be_interrupted()
            for path in wanted:
                _refuse_links(tree, path)
            scan = Scan(
                tree, self.observer.known(), self.observer.rules(tree), self.store.blobs, self.observer.limits()
            )
            look = scan.named(wanted)
            point = New("note", new_id(), {"what": "track", "paths": [text(path) for path in wanted]})
            self.observer.journal_look(look, [*self.observer.rows_of(look, actor), point])
        changed = tuple(text(c.path) for c in look.changes if is_work(c))
        lacking = tuple((text(path), why) for path, why in look.lacking)
        return Tracked(tuple(map(text, wanted)), changed, lacking, point.id)

    # -- following -----------------------------------------------------------

    def follow(self) -> Watcher:
        """A watcher of what is covered: it tells when to look, and where."""
        with self.alone(), self.open_tree() as tree:
            return moments.follow(self.observer, tree)

    def moment(self) -> Moment | None:
        """Captures the whole tree if anything changed since the last look, as one effect of nobody known. Waits for a
        running take-back: what that changes is its own."""
        self.must_be_on()
        with self.applying(), self.writing(), self.open_tree() as tree:
            self.must_not_be_interrupted()
            self._moments = self._moments or moments.Moments(self.observer)
            found = self._moments.capture(tree)
            last = self.store.journal.last("checkpoint")
            many = last is None or self.store.journal.head().seq - last.seq > _MOMENTS
        if found is not None and many:  # else nothing that was followed could ever be pruned
            self.checkpoint(named=False)
        return found

    # -- commands ------------------------------------------------------------

    def ran(self, since: Checkpoint, command: str, agent: str = "") -> tuple[Checkpoint, list[str]]:
        """Captures what a command changed as one turn, called by the checkpoint it began with. Where others are at work
        too, it is shared with them. What an agent ran is the agent's: part of the call in which it did, if it is open.
        """
        turns = [Turn(agent or RUN, since.id), *(Turn(RUN, id) for id in runs_at_work.at_work(self.store.folder))]
        if agent:
            calls = [b.turn for b in brackets.at_work(self.store.journal) if b.call.scans and b.turn.actor == agent]
            turns = [*calls, *turns[1:]] if calls else turns
        turns = list(dict.fromkeys(turns))
        after = self._checkpoint("", agent or RUN, False, running=turns, summary=f"run: {command}")
        return after, self.changed_by(turns[0], since.seq)

    def changed_by(self, turn: Turn, since: int = 0) -> list[str]:
        """The paths that a turn changed, in rows after one."""
        effects = [effect for effect in self.history().effects if turn in effect.turns and effect.seq > since]
        return [text(path) for path in sorted({path for effect in effects for path in effect.changes})]

    def layer_found(self, layer: Layer, since: Checkpoint) -> tuple[Found, list[views.FileDiff]]:
        """What an isolated command did, as it can be shown. Journals and stores nothing."""
        with self.alone():
            found = isolate.look_at(self.observer, layer, since, dry=True)
            get = self.store.blobs.get
            return found, views.file_diffs(found.differences, get, get, layer.view)

    def keep_layer(self, layer: Layer, since: Checkpoint, command: str) -> list[Result]:
        """Brings what an isolated command did into the tree, as one turn; says what came of each path."""
        self.must_be_on()
        with self.applying(), self.writing(), self.open_tree() as tree:
            self.must_not_be_interrupted()
            return isolate.keep(self.observer, tree, layer, since, f"run: {command}")

    def finish_layers(self) -> list[Result]:
        """Finishes keeping what isolated commands did, where takeback was killed at it; drops what others left."""
        folder = self.store.folder
        if folder is None or not (folder / "staging").is_dir():
            return []
        results: list[Result] = []
        with self.applying(), self.writing(), self.open_tree() as tree:
            self.must_not_be_interrupted()
            for layer in isolate.cut_off(folder):
                results += isolate.finish(self.observer, tree, layer)
                isolate.remove(layer)
        return results

    # -- taking back ---------------------------------------------------------

    def plan(
        self,
        verb: str,
        *what: str | int,
        actors: Iterable[str] | None = None,
        everything: bool = False,
        merge: bool = False,
        markers: bool = False,
        force: bool = False,
        only: Iterable[str] = (),
        without: Iterable[str] = (),
        leave: Iterable[str] = (),
        state: bool = False,
        with_files: bool = False,
        turns: Iterable[Turn] = (),
        also: Iterable[str] = (),
        own: bool = False,
        bound: bool = False,
        save: bool = False,
    ) -> Plan:
        """What a verb would do now, with a verdict per path. Nothing is changed; saved, it can be applied later.

        `only` and `without` name domains; `leave` has the ids of effects that stay. `state` takes threads
        along, which undo and rollback leave alone; the verb "thread", with a thread and one of its state checkpoints,
        takes that back, and `with_files` what was done since in its own turns, or in these alone; of a thread that has
        none, everything, unless it is to be its `own`. `bound` takes threads back only where all else went back. `also`
        has the kinds of work, of those the plan `asks` about, that go too."""
        self.must_be_on()
        options = _options(verb, actors, everything, merge, force, markers, only, without, leave, state, with_files)
        options = options._replace(turns=tuple(sorted(set(turns))), also=tuple(sorted(set(also))), own=own, bound=bound)
        with self.applying(), self.writing(), self._tree_for(verb, what, options) as tree:
            self.must_not_be_interrupted()
            plan = self._takebacks.plan(tree, self._asked(verb, what, options))
            return self._takebacks.save(plan) if save else plan

    def planned(self, request: Request, ask: Callable[[History, Request], Request] = lambda _, asked: asked) -> Plan:
        """The same for what was asked with every name resolved; `ask` resolves what only a look can tell."""
        self.must_be_on()
        with self.applying(), self.writing(), self._tree_of(request) as tree:
            self.must_not_be_interrupted()
            return self._takebacks.plan(tree, lambda planner: ask(planner.history, request))

    @contextmanager
    def _tree_for(self, verb: str, what: Sequence[str | int], options: Request) -> Iterator[OpenFolder | None]:
        """The tree that is looked at; none, where it is about threads alone."""
        is_count = verb == "redo" and all(str(n).isdecimal() and int(n) for n in what)
        request = self._takebacks.redone(int(what[0]) if what else 1, options) if is_count else options
        with self._tree_of(request) as tree:
            yield tree

    @contextmanager
    def _tree_of(self, request: Request) -> Iterator[OpenFolder | None]:
        if self._takebacks.is_of_threads(request):
            yield None
        else:
            with self.open_tree() as tree:
                yield tree

    def _asked(self, verb: str, what: Sequence[str | int], options: Request) -> Any:
        """The turn that asks for an undo is never the one it takes back. Of what an agent asks for it is noted that one
        does: it takes no work of people's unasked."""
        from takeback.look import turns_and_calls as calls

        if verb in _WHOLE and options.only != ("state",):
            options = options._replace(by_agent=calls.is_agent_asking(self))
        elif verb == "redo":  # a harness may bring back what its own code took back, and names no agent for either
            options = options._replace(by_agent=bool(calls.asker(self).get("actor")))
        spared = calls.asking(self) if verb == "undo" else frozenset()
        threads = self.threads if verb == "thread" else None
        return lambda planner: requests.resolve(planner, self.relative, verb, what, options, spared, threads)

    def planner(self) -> Planner:
        """What judges how well known work would go back, without a look."""
        with self.alone():
            return self._takebacks.planner()

    @property
    def merged(self) -> dict[bytes, bytes]:
        """Texts that the last plan merges, by content id: they are stored when it is applied."""
        return self._takebacks.merged

    def saved_plan(self, name: str) -> Plan:
        """A saved plan as it still stands, to be looked at before it is applied; refused if it is stale."""
        self.must_be_on()
        with self.applying(), self.writing(), self._tree_of(self._takebacks.requested(name)) as tree:
            self.must_not_be_interrupted()
            return self._takebacks.again(tree, name)

    def apply(self, plan: Plan | str) -> Outcome:
        """Carries out exactly this plan, or refuses it as stale."""
        return self._finishing_first(
            lambda: self._tree_of(self._takebacks.requested(plan)), lambda tree: self._takebacks.again(tree, plan)
        )

    def take_back(
        self,
        verb: str,
        *what: str | int,
        actors: Iterable[str] | None = None,
        everything: bool = False,
        merge: bool = False,
        markers: bool = False,
        force: bool = False,
        only: Iterable[str] = (),
        without: Iterable[str] = (),
        state: bool = False,
        with_files: bool = False,
        also: Iterable[str] = (),
    ) -> Outcome:
        """Any verb that can be planned, planned and applied in one go."""
        options = _options(verb, actors, everything, merge, force, markers, only, without, (), state, with_files)
        options = options._replace(also=tuple(sorted(set(also))))
        return self._finishing_first(
            lambda: self._tree_for(verb, what, options),
            lambda tree: self._takebacks.plan(tree, self._asked(verb, what, options)),
        )

    def _finishing_first(
        self,
        looked_at: Callable[[], AbstractContextManager[OpenFolder | None]],
        planned: Callable[[OpenFolder | None], Plan],
    ) -> Outcome:
        """Plans and applies with nobody in between. A take-back that was cut off is finished instead, and nothing
        more; one that a person stopped is left to them."""
        self.must_be_on()
        with self.applying():
            self.must_not_be_stopped()
            if (earlier := self._finish_interrupted(abort=False)) is not None:
                return earlier
            with self.writing(), looked_at() as tree, self._noting_a_stop():
                return self._takebacks.run(tree, planned(tree))

    def _finish_interrupted(self, abort: bool, leave: bool = False) -> Outcome | None:
        with self.writing():
            if self.observer.open_intents() is None:
                return None
            with self.open_tree() as tree, self._noting_a_stop():
                return self._takebacks.finish_interrupted(tree, abort, leave)

    def resume(self, abort: bool = False, *, leave: bool = False) -> Outcome | None:
        """Finishes an interrupted take-back, or goes back from it; None if there is none. A credential that is missing
        now keeps it from being finished; with `leave` only what needs it stays, named, and can be taken back later."""
        self.must_be_on()
        with self.applying():
            return self._finish_interrupted(abort, leave)

    def undo(
        self,
        n: int | str = 1,
        *,
        actors: Iterable[str] | None = None,
        everything: bool = False,
        merge: bool = False,
        force: bool = False,
        state: bool = False,
    ) -> Outcome:
        """Takes back the newest turn, the newest n as one, or one by its id or words of its prompt; with `state` what
        it did to threads too."""
        return self.take_back("undo", n, actors=actors, everything=everything, merge=merge, force=force, state=state)

    def redo(self, n: int = 1, *, merge: bool = False, force: bool = False) -> Outcome:
        """Brings back what the newest standing undo, rollback, revert or restore took."""
        return self.take_back("redo", n, merge=merge, force=force)

    def rollback(
        self,
        to: str = "",
        *,
        actors: Iterable[str] | None = None,
        everything: bool = False,
        merge: bool = False,
        force: bool = False,
        state: bool = False,
    ) -> Outcome:
        """Back to a checkpoint (the newest named one), or to just before an effect; with `state` each thread too."""
        what = (to,) if to else ()
        how: dict[str, Any] = {"everything": everything, "merge": merge, "force": force, "state": state}
        return self.take_back("rollback", *what, actors=actors, **how)

    def roll_back_thread(
        self,
        thread: str,
        checkpoint: str,
        *,
        with_files: bool = False,
        everything: bool = False,
        merge: bool = False,
        force: bool = False,
    ) -> Outcome:
        """A thread back to one of its state checkpoints, which becomes its new head. The tree is not touched, and need
        not be known; `with_files` takes files, git and what was done outside since then along."""
        how: dict[str, Any] = {"everything": everything, "merge": merge, "force": force, "with_files": with_files}
        return self.take_back("thread", thread, checkpoint, **how)

    def revert(self, *what: str, merge: bool = False, force: bool = False) -> Outcome:
        """Takes back one effect; or, of a path, what agents did to it since the last checkpoint or track, keeping what
        people wrote there; or what agents did to tracked paths since."""
        return self.take_back("revert", *what, merge=merge, force=force)

    def restore(
        self, checkpoint: str, *paths: str, to: str | os.PathLike[str] | None = None, force: bool = False
    ) -> Outcome:
        """Brings single files or folders back from any checkpoint, in place or into another folder. In place, what was
        not there then goes only if it is named itself, a folder with all in it; what is new in a folder that was there
        stays (`left`)."""
        if to is None:
            return self.take_back("restore", checkpoint, *paths, force=force)
        with self.alone():
            point = requests.find_point(self.history(), checkpoint, self.is_path)
            return self._takebacks.export(point.id, [self.relative(p) for p in paths], Path(to), force)

    # -- outside the files -----------------------------------------------------

    def record(
        self,
        act: NewAct,
        by: Mapping[str, str] | None = None,
        content: bytes = b"",
        instead: Instead | None = None,
        for_effect: str = "",
    ) -> Act:
        """Journals an outside effect with its inverse. What changed in the tree before it stands before it. Content
        that it names is stored with it. An effect that a hook saw, `for_effect` or where it is plain which, is given
        the inverse instead: one act is one effect.

        `instead` is asked first, while nobody else can record: an act that it finds in the ledger stands for it."""
        self.must_be_on()
        act, whose = recording.prepared(self, act, by or {})
        with self.writing(), self.open_tree() as tree:
            return recording.record(self, tree, act, whose, content, instead, for_effect)

    def record_http(
        self,
        method: str = "",
        url: str = "",
        *,
        status: int | None = 0,
        request_body: Any = None,
        response_headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
        response_body: Any = None,
        inverse: Mapping[str, Any] | None = None,
        inverse_method: str = "",
        inverse_url: str = "",
        inverse_headers: Mapping[str, str] | None = None,
        inverse_body: str | None = None,
        inverse_json: Any = None,
        expect: Sequence[int] | None = None,
        gone: Sequence[int] | None = None,
        timeout: float | None = None,
        probe: Mapping[str, Any] | None = None,
        idempotent: bool = False,
        idempotent_for: float | None = None,
        summary: str = "",
        depends_on: Iterable[str] = (),
        by: Mapping[str, str] | None = None,
        for_effect: str = "",
    ) -> Act:
        """Journals an HTTP call that was made, and the request that takes it back.

        `status` is None if no answer came, and left out if nobody noted it. The inverse may refer to the answer
        (`{response.body.id}`, `{response.headers.location}`) and to credentials by name (`${env:NAME}`); it goes where
        the call went, by POST if it has a body and by DELETE if not, unless `inverse_method` says otherwise. `expect`
        lists the statuses that mean it worked (200 to 299), `gone` those that mean there was nothing left to do (404
        and 410 for a DELETE). A `probe` (url, expect, gone) or `idempotent` settles an inverse whose answer was lost.
        `inverse` has all of these in one table instead: method, url, headers, body, json and so on. Without an inverse
        the call is recorded as irreversible.

        A call that a hook saw is in the ledger already: it gets the inverse, and no second effect is made. Which one is
        plain by its method and URL in the same turn, or `for_effect` says so; then these may be left out. An answer
        that names what a POST made (a Location, an `id`), recorded again while that stands, is the effect that it is
        already."""
        if for_effect and not (method and url):
            seen = str(self.find_effect(for_effect).did.get("request", "")).partition(" ")
            method, url = method or seen[0], url or seen[2]

        if inverse is not None and not isinstance(inverse, Mapping):
            raise UsageError("the inverse is a table of method, url, headers, body and so on", "write it so")
        sent: dict[str, Any] = {"method": inverse_method, "url": inverse_url, "headers": inverse_headers}
        sent |= {"body": inverse_body, "json": inverse_json, "expect": expect, "gone": gone, "timeout": timeout}
        sent |= {"probe": probe, "idempotent": idempotent or None, "idempotent_for": idempotent_for}
        given = {name: value for name, value in sent.items() if value is not None and value != ""}
        act = recorded(
            Http(self._takebacks.world()),
            method,
            url,
            status=status,
            request_body=request_body,
            response_headers=response_headers,
            response_body=response_body,
            inverse={**(inverse or {}), **given} or None,
            summary=summary,
            depends_on=recording.older(self, depends_on),
        )
        return self.record(act, by or {"surface": "python"}, for_effect=for_effect)

    def acted(self, id: str, **what: Any) -> Act:
        """Journals what became of an act: its state, its inverse, a verdict that changed."""
        self.must_be_on()
        known = self.find_effect(id)
        found = recording.facts(self, known, what)
        with self.writing(), self.open_tree() as tree:
            return recording.tell(self, tree, known, found)

    def outside(self, name: str) -> Outside:
        """A domain of the outside world, in this workspace."""
        return domains.load(name, self._takebacks.world())

    def record_command(
        self,
        description: str = "",
        *,
        argv: Sequence[str] | None = None,
        shell: str | None = None,
        run_in: str | None = None,
        env: Iterable[str] | None = None,
        timeout: float | None = None,
        expect: Iterable[int] | None = None,
        probe: Mapping[str, Any] | None = None,
        idempotent: bool = False,
        idempotent_for: float | None = None,
        target: str = "",
        depends_on: Iterable[str] = (),
        by: Mapping[str, str] | None = None,
        for_effect: str = "",
    ) -> Act:
        """Journals what a command did, in words, and the command that takes it back: `argv`, or a `shell` line.

        It runs in `run_in` (the project root) with the environment variables that `env` names, `timeout` seconds at
        most; an exit code in `expect` (0) means it took effect. A `probe` (argv or shell, expect, gone) or
        `idempotent` settles one that was cut off. An effect that is in the ledger already, `for_effect`, is given the
        command instead, and keeps its description."""
        from takeback.domains import command, recording

        if for_effect:
            description = description or self.find_effect(for_effect).summary
        act = command.recorded(
            command.Command(self._takebacks.world()), description, argv=argv, shell=shell, run_in=run_in, env=env,
            timeout=timeout, expect=expect, probe=probe, idempotent=idempotent or None, idempotent_for=idempotent_for,
            target=target, depends_on=recording.older(self, depends_on),
        )  # fmt: skip
        return self.record(act, by or {"surface": "python"}, for_effect=for_effect)

    def record_note(
        self,
        text: str,
        *,
        left_to_do: str = "",
        depends_on: Iterable[str] = (),
        by: Mapping[str, str] | None = None,
    ) -> Act:
        """Journals something done outside the files that nothing takes back, so that every plan names it; `left_to_do`
        is what a person can still do about it."""
        act = recording.note(text, left_to_do, recording.older(self, depends_on))
        return self.record(act, by or {"surface": "python"})

    def step(self, name: str, *, actor: str = "", approve: Approve | None = None) -> WorkStep:
        """A step of a harness: `with` it, an exception takes back what was done in it. Effects outside the files go
        back if policy allows that, or if `approve`, shown the plan, says True."""
        return WorkStep(self, name, actor, approve)

    def astep(self, name: str, *, actor: str = "", approve: Approve | None = None) -> AsyncStep:
        """The same for `async with`."""
        return AsyncStep(self.step(name, actor=actor, approve=approve))

    def recording(self, *, actor: str = "") -> Recorder:
        """`with` it, tools are journaled in this workspace, in no step: nothing is taken back by itself."""
        return Recorder(self, actor)

    def describe(self, act: Act) -> str:
        """Exactly what would be sent or run to take an act back, in one line, its secrets as names; or why it cannot
        be told."""
        return recording.describe(self, act)

    def effects(self) -> list[Act]:
        """The ledger: every outside effect, newest first."""
        with self.alone():
            return self.history().ledger()

    def find_effect(self, name: str) -> Act:
        """An outside effect by the beginning of its id, or the id of what tried to take it back."""
        with self.alone():
            return recording.find(self.history(), name)

    def unapproved(self, plan: Plan) -> tuple[list[Step], list[Credential]]:
        """What a plan would do outside the files that a person has to approve: steps, and credentials that would be
        sent where no setting binds them."""
        with self.alone():
            return self._takebacks.unapproved(plan) if plan.outside else ([], [])

    def waiting_plans(self) -> list[Waiting]:
        """Saved plans that wait for a person's yes, the newest first."""
        with self.alone():
            return self._takebacks.waiting()

    def must_be_ready(self, plan: Plan) -> None:
        """Refuses a plan of which a step needs a credential that is not set here: nothing is begun."""
        with self.alone():
            self._takebacks.must_be_ready(plan)

    def lacks(self, act: Act) -> str:
        """What taking an act back needs and is not there, in words: a credential that is not set; empty if nothing."""
        with self.alone():
            return self._takebacks.lacks(act)

    def changed_since_recorded(self, act: Act) -> list[str]:
        """The variables that taking an act back would use, and that had another value when it was recorded."""
        with self.alone():
            return self._takebacks.changed_since_recorded(act)

    def marks_of(self, domain: str, inverse: Inverse) -> dict[str, str]:
        """Marks of the values here that decide what an inverse does: whether they are the same later, never which."""
        return self._takebacks.marks_of(domain, inverse)

    def approve(self, plan: Plan, credentials: Iterable[Credential] = ()) -> Approval:
        """A person's yes to exactly this plan, good for one apply."""
        self.must_be_on()
        with self.writing():
            return self._takebacks.approve(plan, credentials)

    def resolve(self, name: str, said: str, result: Any = None) -> Act:
        """A person says what came of what nobody heard of again. Of the effect itself: "happened", with its `result`
        where its undo needs that, or "did-not-happen". Of its inverse, which was sent: "undone", or "not-undone": then
        it may be sent again. `Act.sayings` has those that fit."""
        self.must_be_on()
        with self.applying():  # first: what another process is at just now is not in doubt
            return recording.settle(self, name, said, result)

    # -- mail ----------------------------------------------------------------

    def hold_email(
        self,
        to: str | Iterable[str],
        subject: str,
        body: str,
        cc: str | Iterable[str] = (),
        bcc: str | Iterable[str] = (),
        reply_to: str = "",
        html: str = "",
        attachments: Iterable[str | bytes] = (),
        provider: str = "",
        delay: str = "",
        *,
        approved: bool = False,
        by: Mapping[str, str] | None = None,
    ) -> Act:
        """Holds a mail as a draft: gmail, outlook, or smtp through the local outbox. With a delay ("30s") it is due
        after that, and released by itself if a person has approved that by now."""
        self.must_be_on()
        with self.alone(), self.open_tree() as tree:
            files = attached(tree, [self.relative(path) for path in attachments])
        mail = compose(to, subject, body, cc, bcc, reply_to, html, files)
        return self.outbox.hold(mail, provider, delay, approved, by)

    def release_email(self, name: str = "", *, approved: bool = False, by: Mapping[str, str] | None = None) -> Act:
        """Sends a held mail, once: the point of no return. Needs a policy that allows it, or a person's yes, which
        `approved` says was given."""
        self.must_be_on()
        with self.applying():
            self.must_not_be_interrupted()
            return self.outbox.release(name, approved, by)

    def release_due(self, by: Mapping[str, str] | None = None) -> list[tuple[Act, TakebackError | None]]:
        """Releases what is due and may go by itself; each due mail with why it stays, if it does."""
        found: list[tuple[Act, TakebackError | None]] = []
        for act in self.due_mail():
            try:
                found.append((self.release_email(act.id, by=by), None))
            except TakebackError as error:
                found.append((act, error))
        return found

    def cancel_email(self, name: str = "", *, trash_copy: bool = False) -> Act:
        """Drops a held mail, which then never left. Of one that was sent only one's own copy can be trashed."""
        self.must_be_on()
        with self.applying():
            if trash_copy:
                return self.outbox.trash(name)
            act = self.outbox.before_cancel(name)
        if act.undone_by:
            return act
        outcome = self.take_back("revert", act.id)
        if outcome.finished_earlier and not self.find_effect(act.id).undone_by:
            outcome = self.take_back("revert", act.id)
        if not outcome.whole:
            notes = "; ".join(result.note for result in outcome.results if result.note)
            raise TakebackError(f"{act.id[:8]} was not cancelled: {notes}", "see takeback effects")
        return self.find_effect(act.id)

    def pending_email(self) -> list[Act]:
        """Mail that is held, or that nobody knows to have left (`shown_state` says which), oldest first."""
        with self.alone():
            return self.outbox.pending()

    def due_mail(self) -> list[Act]:
        """Held mail whose delay has passed."""
        with self.alone():
            if not any(act.did.get("due") for act in self.history().acts.values()):
                return []  # asked by every status, which should load nothing for it
            return self.outbox.due()

    def find_email(self, name: str = "") -> Act:
        """A mail by the beginning of its id or its provider's id; without a name the only one held."""
        with self.alone():
            return self.outbox.find(name)

    def read_email(self, act: Act, html: bool = False) -> str:
        """The text of a mail, as it was staged; or the HTML beside it, which is what most recipients see."""
        with self.alone():
            return self.outbox.read(act, html)

    @property
    def outbox(self) -> Outbox:
        return Outbox(self, self._takebacks.world())

    # -- seeing --------------------------------------------------------------

    def status(self) -> views.Status:
        """What changed since the newest named checkpoint, by whom, and what is not covered. Journals nothing."""
        with self.alone():
            return views.status(self)

    def diff(self, a: str = "", b: str = "", paths: Iterable[str] = ()) -> views.Diff:
        """Checkpoint A (the newest named one) to now, or to checkpoint B. Journals nothing."""
        with self.alone():
            return views.diff(self, a, b, [self.relative(p) for p in paths])

    def log(self, filter: str = "") -> list[views.LogRow]:
        """Checkpoints, effects, take-backs, and calls that the gate stopped, newest first."""
        with self.alone():
            return views.log(self, filter, gate=True)

    def turns_of(self, rows: Iterable[views.LogRow]) -> dict[str, TurnSeen]:
        """The agents' turns that rows of the log belong to, each with its prompt and totals, by id."""
        with self.alone():
            return views.turns_of(self, rows)

    def blame(self, path: str | bytes) -> blame.Blame:
        """Which effect, call and turn last wrote each line of a file. Journals nothing."""
        with self.alone():
            return blame.blame(self, self.relative(path))

    def show(self, name: str) -> views.Shown:
        """One entry of the log in full: also an agent's turn, or one call of it."""
        with self.alone():
            return views.show(self, name)

    def find_checkpoint(self, name: str) -> Checkpoint:
        """By its number, its label or the beginning of its id."""
        return requests.find_checkpoint(self.history(), name, self.is_path)

    def is_path(self, word: str) -> bool:
        """Whether a path of the project is called so: one that is there, as far as is known, or that ever changed."""
        with self.alone():
            return requests.is_known(self.history(), self.relative, self.observer.known().state, word)

    # -- care ----------------------------------------------------------------

    def pin(self, name: str, keep: bool = True) -> Checkpoint:
        """Keeps a checkpoint for ever, or no longer."""
        self.must_be_on()
        with self.writing():
            checkpoint = self.find_checkpoint(name)
            self.store.journal.append(
                [New("note", new_id(), {"what": "pin" if keep else "unpin", "id": checkpoint.id})], self.clock()
            )
            return checkpoint._replace(pinned=keep)

    def label(self, name: str, label: str) -> Checkpoint:
        """Calls a checkpoint something else; empty, nothing. What it captured stays as it is."""
        self.must_be_on()
        label = _clean(label)
        with self.writing():
            checkpoint = self.find_checkpoint(name)
            note = New("note", new_id(), {"what": "label", "id": checkpoint.id, "label": label})
            self.store.journal.append([note], self.clock())
            return checkpoint._replace(label=label, pinned=checkpoint.id in self.history().pins)

    def confirm_rules(self) -> str:
        """A person accepts that the project's own rules take paths out of cover."""
        self.must_be_on()
        with self.writing(), self.open_tree() as tree:
            fingerprint = self.observer.rules(tree).project_fingerprint
            self.store.journal.append([New("approval", new_id(), {"rules": fingerprint})], self.clock())
            return fingerprint

    def prune(self, **asked: Any) -> Pruned:
        """Makes room; `asked` are the fields of prune.Asked."""
        self.must_be_on()
        with self.applying(), self.writing():
            return prune.prune(self, prune.Asked(**asked))

    def verify(self, data: bool = False) -> Verified:
        """Walks the hash chain and every blob's record; with `data` every byte."""
        with self.alone():
            return verify.verify(self, data)

    def repair(self) -> Repaired:
        """Sets damaged blobs aside and rebuilds the caches."""
        self.must_be_on()
        with self.applying(), self.writing():
            return verify.repair(self)


# -- opening -----------------------------------------------------------------


@explained
def open_workspace(
    root: Path,
    settings: Settings,
    create: bool | Literal["state"] = False,
    memory: bool = False,
    environ: Mapping[str, str] = {},
) -> Workspace:
    """Opens the workspace of exactly this root; with `create` it is made and its first checkpoint taken if needed,
    which for "state" alone it is not. A folder that was moved here, or made anew, then goes on with its history."""
    real = Path(os.path.realpath(root))
    if not real.is_dir():
        raise UsageError(f"{root} is not a folder", "name the folder to protect")
    if memory:
        workspace = Workspace(real, layout.open_memory(), settings, 0, environ=environ)
        if create != "state":
            workspace.checkpoint("start")
        return workspace
    if not layout.is_workspace(settings.home, real):
        if not create:
            raise NoWorkspace(f"{real} is not protected", f"protect it with takeback init -C {real}")
        if not settings.enabled:
            raise Off(
                f"takeback is off (source: {settings.off_source})",
                "turn it on with TAKEBACK=on, or change that setting",
            )
        from takeback.care.moved_folder import adopt_moved

        _refuse_nested(real, settings, environ)
        if adopt_moved(real, settings) is None:
            layout.create(settings.home, real, real.stat().st_ino, settings.portable, settings.config)
    elif create and settings.enabled:
        from takeback.care.moved_folder import accept_replaced

        accept_replaced(real, settings)
    opened, meta = layout.open_store(settings.home, real, settings.portable)
    workspace = Workspace(real, opened, settings, meta["inode"], environ=environ)
    if create and create != "state" and opened.journal.last("checkpoint") is None:
        workspace.checkpoint("start")
    return workspace


def _refuse_nested(root: Path, settings: Settings, environ: Mapping[str, str]) -> None:
    """A root inside a protected one, made by an agent, would take what it does there out of the history that is a
    person's to see. What this process itself is known as does not count: a harness opens what it was written to."""
    if (outer := layout.find_root(settings.home, root)) is None:
        return
    above = [session for session in agent_sessions.known(settings.home) if session["pid"] != os.getpid()]
    if agent := processes.agent_above(above, environ):
        raise ApprovalNeeded(
            f"{root} lies inside {outer}, which is protected already; protecting it by itself is for a person, and "
            f"{agent}; nothing was changed",
            f"open {outer}, or run takeback init --force there yourself",
        )


def _clean(label: str) -> str:
    """A label without secrets."""
    if not isinstance(label, str) or "\0" in label or "\n" in label:
        raise UsageError("a label is one line of text", "name it without line breaks")
    if len(label) > _LABEL:
        raise UsageError(f"a label of {len(label):,} characters is too long", f"{_LABEL:,} at most")
    if not (label := label.strip()):
        return ""
    return redact.text(label)


def _refuse_links(tree: OpenFolder, path: bytes) -> None:
    """A path that leads through a symlink is somewhere else's."""
    parts = components(path)
    for depth in range(len(parts) - 1):
        try:
            with tree.descend(parts[:depth]) as here:
                st = here.stat(parts[depth])
        except OSError:
            return
        if stat.S_ISLNK(st.st_mode):
            link = text(b"/".join(parts[: depth + 1]))
            raise UsageError(f"{text(path)} leads through the symlink {link}", "name a path that no symlink is part of")


def _options(
    verb: str,
    actors: Iterable[str] | None,
    everything: bool,
    merge: bool,
    force: bool,
    markers: bool,
    only: Iterable[str] = (),
    without: Iterable[str] = (),
    leave: Iterable[str] = (),
    state: bool = False,
    with_files: bool = False,
) -> Request:
    if verb == "thread":
        state, only = True, only if with_files else ("state",)
    return Request(
        "rollback" if verb == "thread" else verb,
        actors=None if actors is None else tuple(sorted(set(actors))),
        everything=everything,
        merge=merge or markers,
        markers=markers,
        force=force,
        only=tuple(sorted(set(only))),
        without=tuple(sorted(set(without))),
        leave=tuple(sorted(set(leave))),
        state=state,
    )
