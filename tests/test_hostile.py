"""Hostile effects, journals and project files: no process is started and no request is sent without approval.

Everything that could fire is watched: a server that counts every connection, and a folder of programs on PATH, each of
which leaves a mark. What an agent that runs as the user can forge all the same is said at the end."""

from __future__ import annotations

import os
import random
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import takeback
from takeback.errors import TakebackError
from takeback.journal.change_lists import Change
from takeback.journal.history import pack_list
from takeback.journal.journal import New
from takeback.model.effects import Step
from takeback.model.ids import new_id
from takeback.model.outside import Act, Inverse, NewAct
from takeback.workspace import Workspace

PROGRAMS = ("sh", "bash", "curl", "rm", "psql", "git", "python3", "sentinel")
NASTY: list[Any] = [
    None, True, -1, 0, 10**400, 1.5, "", " ", "\0", "\x1b[2J\x1b]0;x\x07", "\u202egnp.exe", "a" * 200_000, "; rm -rf ~",
    "$(sentinel)", "`sentinel`", "| sentinel", "&& sentinel", "-rf", "../../etc/passwd", "/etc/passwd", "file:///etc/passwd",
    "{response.body.id}", "${env:HOME}", "${env:}", "%s%n", "\ud800", [], {}, [[]], {"a": {"b": {}}}, ["sentinel"],
    {"argv": ["sentinel"]}, [None] * 50, "http://[::1", "gopher://x", "javascript:alert(1)", "\r\nHost: evil", "http://x\\@y",
]  # fmt: skip


class Watch:
    """What fired: connections that were made, programs that were started."""

    def __init__(self, folder: Path) -> None:
        self.marks = folder / "marks"
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        for name in PROGRAMS:
            program = self.bin / name
            program.write_text(f"#!/bin/sh\necho {name} >> {self.marks}\n")
            program.chmod(0o755)
        self.connections = 0
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.server.getsockname()[1]}"
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            self.connections += 1
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            connection.close()

    @property
    def fired(self) -> list[str]:
        marks = self.marks.read_text().split() if self.marks.exists() else []
        return marks + ["connection"] * self.connections


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    made = Watch(tmp_path / "watch")
    monkeypatch.setenv("PATH", f"{made.bin}{os.pathsep}{os.environ['PATH']}")
    yield made
    made.server.close()


def sane(watch: Watch) -> dict[str, tuple[str, dict[str, Any]]]:
    """One inverse per domain that would fire if it were run."""
    return {
        "http": ("send", {"method": "DELETE", "url": f"{watch.url}/x", "origin": watch.url}),
        "command": ("run", {"argv": [str(watch.bin / "sentinel")]}),
        "email": ("cancel", {"provider": "gmail", "draft": "r1", "thread": "t1", "idempotent": True}),
        "python": ("call", {"function": "os:system", "kwargs": {"command": str(watch.bin / "sentinel")}}),
    }


def spoiled(chance: random.Random, args: dict[str, Any], watch: Watch) -> dict[str, Any]:
    """Some of it replaced by something nasty, or by what would fire elsewhere."""
    out = dict(args)
    probes = [
        {"argv": ["sentinel"], "expect": [0]}, {"shell": "sentinel"}, {"url": f"{watch.url}/probe", "expect": [200]},
        "os:system", {"method": "GET", "url": watch.url + "/p", "expect": [200], "gone": [404]},
    ]  # fmt: skip
    for _ in range(chance.randint(0, 3)):
        name = chance.choice(
            [*out, "probe", "shell", "headers", "timeout", "run_in", "env", "expect", "idempotent", "x"]
        )
        out[name] = chance.choice([*NASTY, *probes, watch.url, {"Authorization": "Bearer ${env:HOME}"}])
    if chance.random() < 0.3:
        out["probe"] = chance.choice(probes)
    if chance.random() < 0.05:
        deep: Any = "x"
        for _ in range(3000):
            deep = [deep]
        out["json"] = out["kwargs"] = deep
    return out


def everything_without_approval(ws: Workspace, acts: list[Act]) -> None:
    """All that an agent, or a person who did not say yes, can ask for."""
    for verb, what in [("rollback", ()), ("undo", (3,)), ("compensate", ()), ("redo", ())]:
        ws.plan(verb, *what, save=True)
        with pytest.raises(TakebackError) if ws.plan(verb, *what).outside else _nothing():
            ws.take_back(verb, *what)
    for act in acts:
        plan = ws.plan("revert", act.id, save=True)
        if plan.outside:
            ws.unapproved(plan)
            with pytest.raises(takeback.ApprovalNeeded):
                ws.apply(plan.id)
    ws.take_back("rollback", only=["files"])
    ws.effects(), ws.log(), ws.status(), ws.resume(), ws.resume(abort=True), ws.checkpoint()


class _nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


@pytest.mark.parametrize("seed", range(20))
def test_ten_hostile_effects_recorded(ws: Workspace, project: Path, watch: Watch, seed: int):
    chance = random.Random(seed)
    acts: list[Act] = []
    for _ in range(10):
        domain, (op, args) = chance.choice(list(sane(watch).items()))
        verdict = chance.choice(["compensating", "held", "exact", "unknown", "irreversible", "", "done", "merged"])
        made = NewAct(
            chance.choice([domain] * 8 + ["files", "", "../x", "os", "takeback.domains.http:Http"]),
            str(chance.choice(NASTY))[:300], str(chance.choice([watch.url, *NASTY]))[:300],
            Inverse(chance.choice([op] * 8 + ["", "send", "run", "__class__"]), spoiled(chance, args, watch)),
            verdict, {"x": chance.choice(NASTY[:4])}, state=chance.choice(["done", "done", "begun", "failed", "x"]),
        )  # fmt: skip
        try:
            acts.append(ws.record(made, {"actor": chance.choice(["", "agent"]), "call": "c"}))
        except TakebackError as refused:
            assert refused.message and refused.hint
    held = [a for a in acts if a.domain == "email" and a.verdict == "held"]
    everything_without_approval(ws, [a for a in acts if a not in held and a.state != "failed"])
    assert watch.fired == [] and ws.verify(data=True).ok


@pytest.mark.parametrize("seed", range(200))
def test_two_hundred_hostile_journals(ws: Workspace, project: Path, watch: Watch, seed: int):
    """Rows put straight into the journal, with hashes that hold: what a careless import, or an agent, could leave."""
    chance = random.Random(seed)
    (project / "f").write_text("x")
    ws.checkpoint("before")
    ids = [new_id() for _ in range(4)]
    rows = [New("act", id, _act_body(chance, watch)) for id in ids]
    for _ in range(chance.randint(0, 4)):
        rows.append(New(*chance.choice([_acted, _note, _approval, _takeback])(chance, watch, ids, ws)))
    ws.store.journal.append(rows, 1.0)
    for attempt in (
        lambda: ws.plan("rollback"), lambda: ws.take_back("rollback"), lambda: ws.take_back("compensate"),
        lambda: ws.take_back("undo"), lambda: ws.resume(abort=seed % 2 == 0), ws.resume, lambda: ws.take_back("rollback"),
        lambda: ws.take_back("revert", ids[0]), ws.effects, ws.log, ws.status, lambda: ws.show(ids[0]),
        lambda: ws.resolve(ids[0], "not-undone"), lambda: ws.take_back("compensate"), lambda: ws.checkpoint("after"),
        lambda: ws.prune(keep=1), lambda: ws.take_back("rollback", only=["files"]),
    ):  # fmt: skip
        try:
            attempt()
        except TakebackError as refused:
            assert refused.message
        assert watch.fired == []
    assert not [problem for problem in ws.verify(data=True).problems if "altered" in problem]


def _act_body(chance: random.Random, watch: Watch) -> dict[str, Any]:
    domain, (op, args) = chance.choice(list(sane(watch).items()))
    body: dict[str, Any] = {
        "domain": domain, "summary": "did it", "target": watch.url, "by": {},
        "verdict": chance.choice(["compensating", "held", "exact"]),
        "inverse": {"op": op, "args": spoiled(chance, args, watch) if chance.random() < 0.7 else args},
    }  # fmt: skip
    if domain == "email":  # dropping a held draft needs no yes, by design: here it is something else
        body["verdict"] = "compensating"
    if chance.random() < 0.4:
        name = chance.choice([*body, "did", "depends_on", "key", "state", "step"])
        body[name] = _plain(chance.choice(NASTY))
        if chance.random() < 0.3:
            body.pop(chance.choice(list(body)), None)
    body["inverse"] = _plain(body.get("inverse"))
    return body


def _plain(value: Any, depth: int = 0) -> Any:
    """As far as JSON goes."""
    if isinstance(value, dict):
        return {str(k): _plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v, depth + 1) for v in value[:50]] if depth < 200 else "deep"
    return "surrogate" if value == "\ud800" else value


def _acted(chance: random.Random, watch: Watch, ids: list[str], ws: Workspace) -> tuple[str, str, dict[str, Any]]:
    body = {"act": chance.choice([*ids, *NASTY[:6], []])}
    for name in ("state", "verdict", "inverse", "did", "target", "summary"):
        if chance.random() < 0.3:
            body[name] = _plain(chance.choice([*NASTY, "done", {"op": "run", "args": {"argv": ["sentinel"]}}]))
    return "acted", new_id(), body


def _note(chance: random.Random, watch: Watch, ids: list[str], ws: Workspace) -> tuple[str, str, dict[str, Any]]:
    what = chance.choice(["resolve", "session", "nothing"])
    return (
        "note",
        new_id(),
        {"what": what, "act": chance.choice([*ids, 7, None]), "done": chance.choice([True, "x", None])},
    )


def _approval(chance: random.Random, watch: Watch, ids: list[str], ws: Workspace) -> tuple[str, str, dict[str, Any]]:
    """Of some other plan, or of none."""
    body = {"plan": chance.choice(["x", None, 7]), "hash": chance.choice(["0" * 64, "", None]), "credentials": []}
    return "approval", new_id(), body | chance.choice([{}, {"credentials": [["HOME", watch.url]]}, {"rules": "x"}])


def _takeback(chance: random.Random, watch: Watch, ids: list[str], ws: Workspace) -> tuple[str, str, dict[str, Any]]:
    """One that seems to have begun, and to wait for somebody to finish it."""
    changes = [Change(id.encode(), None, None, (3,)) for id in chance.sample(ids, 2)]
    segments = [
        {
            "domain": chance.choice(["http", "command", "python"]),
            "verdict": "held",
            "list": pack_list([c], lambda _: b""),
        }
        for c in changes
    ]
    approval = chance.choice([{}, {"approval": "x"}, {"approval": ids[0]}])
    return (
        "takeback",
        new_id(),
        {"request": {"verb": "rollback"}, "hash": "x", "kept": [], "segments": segments} | approval,
    )


def test_a_forged_beginning_is_not_finished(ws: Workspace, watch: Watch):
    """With every detail right but the approval: its acts and their probes are left alone, by resume and by abort."""
    for abort in (False, True):
        acts = [
            ws.record_command("made it", argv=["sentinel"], probe={"argv": ["sentinel"], "expect": [0], "gone": [1]}),
            ws.record_http("POST", f"{watch.url}/x", status=200, inverse_method="DELETE", inverse_url=f"{watch.url}/x"),
        ]
        steps = [Step(a.domain, a.path, a.entry, None, a.verdict, ()) for a in acts]
        lists = [pack_list([Change(s.path, s.expected, None, (a.seq,))], lambda _: b"") for s, a in zip(steps, acts)]
        segments = [{"domain": a.domain, "verdict": "held", "list": packed} for a, packed in zip(acts, lists)]
        id = new_id()
        body = {"request": {"verb": "rollback"}, "label": "", "hash": "x", "kept": [], "segments": segments}
        ws.store.journal.append(
            [New("takeback", id, body), New("intent", new_id(), {"takeback": id, "segment": 0})], ws.clock()
        )
        assert ws.interrupted()
        outcome = ws.resume(abort=abort)
        assert outcome is not None and not ws.interrupted() and watch.fired == []
        assert "nobody approved it" in outcome.results[0].note
        ws.resolve(acts[0].id, "not-undone")


def test_an_inverse_that_changed_since_it_was_approved_is_not_sent_by_resume(
    ws: Workspace, project: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
):
    (project / "f").write_text("x")
    act = ws.record_command("made it", argv=["true"])
    (project / "g").write_text("x")
    plan = ws.plan("rollback", save=True)
    ws.approve(plan)

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("takeback.apply.executor.Executor._conclude", dies)
        with pytest.raises(KeyboardInterrupt):
            ws.apply(plan.id)
    ws.acted(act.id, inverse=Inverse("run", {"argv": ["sentinel"]}))
    outcome = ws.resume()
    assert outcome is not None and watch.fired == []
    assert {r.path.decode(): r.result for r in outcome.results} == {"g": "done", act.id: "failed", "f": "done"}


def test_the_projects_own_files_loosen_nothing(project: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch):
    (project / ".takeback.toml").write_text(
        '[policy.command]\ncompensating = "allow"\n[policy.all]\ncompensating = "allow"\nheld = "allow"\n'
        f'[credentials.SHOP_KEY]\norigins = ["{watch.url}", "command://sentinel"]\n[python]\nfunctions = ["os:system"]\n'
    )
    (project / "evil.py").write_text(f"import os\nos.system({str(watch.bin / 'sentinel')!r})\ndef undo(): ...\n")
    monkeypatch.chdir(project)
    monkeypatch.setenv("SHOP_KEY", "value-of-the-key")
    monkeypatch.syspath_prepend(project)
    with takeback.open(project, create=True) as ws:
        ws.record_command("made it", argv=["sentinel", "${env:SHOP_KEY}"])
        for function in ("os:system", "evil:undo"):
            ws.record(NewAct("python", "did it", "", Inverse("call", {"function": function, "kwargs": {}})))
        with pytest.raises(takeback.ApprovalNeeded):
            ws.rollback()
        plan = ws.plan("rollback", save=True)
        assert ws.unapproved(plan)[1], "the credential is a question of its own"
        ws.approve(plan)
        with pytest.raises(takeback.ApprovalNeeded, match="sending SHOP_KEY"):
            ws.apply(plan.id)
        ws.approve(plan, ws.unapproved(plan)[1])
        outcome = ws.apply(plan.id)
        assert watch.fired == ["sentinel"], "what was approved, and no function that nobody listed"
        assert sorted(r.result for r in outcome.results) == ["done", "failed", "failed"]
        assert "evil" not in sys.modules


def test_what_can_be_forged_is_found_out_by_who_looks(ws: Workspace, watch: Watch):
    """An agent that runs as the user can write an approval into the journal: only another user or a sandbox prevents
    that (docs/security.md). It cannot do so through takeback, and the row stays in the chain."""
    ws.record_command("made it", argv=["sentinel"])
    plan = ws.plan("rollback", save=True)
    forged = New("approval", new_id(), {"plan": plan.id, "hash": plan.hash, "credentials": []})
    ws.store.journal.append([forged], ws.clock())
    assert ws.apply(plan.id).whole and watch.fired == ["sentinel"]
    assert ws.store.journal.get(forged.id) is not None and ws.verify().ok
    mode = ws.store.folder.stat().st_mode if ws.store.folder else 0
    assert stat.S_IMODE(mode) == 0o700
