"""Secrets of every shape, planted everywhere: none is in any byte of the store, decompressed, nor in any output.

    record ─► plan ─► approve ─► apply ─► log, show, effects --json        by API, command line and MCP's own calls

What the owner's files hold is content, and so is staged mail; the project here has none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import ledger as ledgers
import takeback
from secrets_to_plant import SHAPES
from takeback.model.outside import Inverse, NewAct
from takeback.workspace import Workspace

VALUE = "a-value-that-no-shape-gives-away/1+1"  # of a referenced name
OTHER = "another value entirely"
EVERYTHING = {name: shape.text for name, shape in SHAPES.items()}
SAID = "\n".join(EVERYTHING.values())
SECRETS = {**{name: shape.secret for name, shape in SHAPES.items()}, "value": VALUE, "other": OTHER}


class Echo(BaseHTTPRequestHandler):
    """Says back everything it was told, headers and all, and every secret besides."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        said = {"headers": dict(self.headers), "body": body, "id": "re_1", "leak": SAID, "password": OTHER}
        data = json.dumps(said).encode()
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        self.send_response(400 if "fail" in self.path else 200)
        self.send_header("Set-Cookie", "sid=" + OTHER.replace(" ", "-"))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_DELETE = do_GET = _answer

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    made.asked = []  # type: ignore[attr-defined]
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHOP_KEY", VALUE)
    path = ledgers.register(tmp_path / "site")
    for folder in reversed(path.split(os.pathsep)):
        monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", path)


def url(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def leaks(data: bytes | str) -> list[str]:
    """The planted secrets in some bytes, plain or as JSON writes them."""
    said = data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape")
    found = []
    for name, secret in SECRETS.items():
        lines = [line for line in secret.splitlines() if len(line) > 30] or [secret]
        forms = {form for each in (secret, *lines) for form in (each, json.dumps(each)[1:-1])}
        if any(form.encode() in said for form in forms):
            found.append(name)
    return found


def leaks_of_store(ws: Workspace) -> dict[str, list[str]]:
    """Every byte of the store: each journal row, each blob as it was put, each file as it lies there."""
    found: dict[str, list[str]] = {}
    for row in ws.store.journal.rows():
        found[f"row {row.seq} {row.kind}"] = leaks(json.dumps(row.body, ensure_ascii=False))
    for id in ws.store.blobs.ids():
        found[f"blob {id.hex()[:8]}"] = leaks(ws.store.blobs.get(id))
    assert ws.store.folder is not None
    for path in ws.store.folder.rglob("*"):
        if path.is_file():
            found[path.name] = leaks(path.read_bytes())
    return {where: names for where, names in found.items() if names}


def take_back_everything(ws: Workspace) -> list[str]:
    """Plans, approves and applies; all that could be shown of it."""
    plan = ws.plan("rollback", save=True)
    ws.approve(plan, ws.unapproved(plan)[1])
    outcome = ws.apply(plan.id)
    acts = {act.id: act for act in ws.effects()}
    described = [ws.outside(a.domain).describe(a.inverse) for a in acts.values() if a.inverse is not None]
    return [repr(plan), repr(outcome.results), repr(ws.effects()), repr(ws.log()), *described]


def cli(project: Path, *args: str, ok: bool = True) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "takeback", "-C", str(project), *args], capture_output=True, text=True, check=False
    )
    assert not ok or done.returncode in (0, 3), done.stderr
    return done.stdout + done.stderr


def everything_shown(ws: Workspace, project: Path) -> str:
    ids = [act.id for act in ws.effects()] + [row.id for row in ws.log() if row.kind == "takeback"]
    calls = [("effects",), ("effects", "--json"), ("log",), ("log", "--json"), ("status",), ("status", "--json")]
    calls += [("show", id) for id in ids] + [("show", id, "--json") for id in ids]
    return "\n".join(cli(project, *call) for call in calls)


def test_the_search_itself_finds_what_is_there(ws: Workspace, project: Path):
    """A test of absence has to be able to fail."""
    (project / "leak.txt").write_text(SAID + VALUE + OTHER)
    ws.checkpoint("with secrets in a file")
    assert set().union(*leaks_of_store(ws).values()) == set(SECRETS)


def test_http(ws: Workspace, project: Path, server: ThreadingHTTPServer):
    at = url(server)
    common: dict[str, Any] = {
        "request_body": {"all": EVERYTHING, "password": OTHER, "note": f"with {VALUE}"},
        "response_headers": {"Set-Cookie": f"s={OTHER}", "Authorization": OTHER, "X-Leak": SAID.replace("\n", " ")},
        "response_body": json.dumps({"id": "ch_1", "leak": EVERYTHING, "token": OTHER}),
        "inverse_method": "POST", "inverse_headers": {"Authorization": "Bearer ${env:SHOP_KEY}"},
        "inverse_json": {"charge": "{response.body.id}", "key": "${env:SHOP_KEY}"},
        "by": {"surface": "mcp", "call": SAID, "actor": "agent"},
    }  # fmt: skip
    ws.record_http("POST", f"{at}/charges?api_key={OTHER.replace(' ', '-')}", status=200, **common,
                   inverse_url=f"{at}/refunds?key=${{env:SHOP_KEY}}", summary=f"charged with {SAID}")  # fmt: skip
    ws.record_http("POST", f"{at}/others", status=200, inverse_url=f"{at}/fail", **common)
    shown = take_back_everything(ws)
    assert [path.split("?")[0] for path in server.asked] == ["/fail", "/refunds"]  # type: ignore[attr-defined]
    assert {act.shown_state for act in ws.effects()} == {"live", "undone"}
    shown.append(everything_shown(ws, project))
    assert leaks("\n".join(shown)) == [] and leaks_of_store(ws) == {}


def test_command(ws: Workspace, project: Path, tmp_path: Path):
    talk = tmp_path / "talk.py"
    talk.write_text(
        f"import os, sys\nprint({SAID!r})\nprint(os.environ['SHOP_KEY'], sys.argv, file=sys.stderr)\n"
        "print('password=' + 'c0rrect-horse')\nsys.exit('fail' in sys.argv)\n"
    )
    argv = [sys.executable, str(talk), "${env:SHOP_KEY}"]
    ws.record_command(f"made a thing with {SAID}", argv=argv, env=["SHOP_KEY"], by={"call": f"--token {OTHER}1"})
    ws.record_command("made another", argv=[*argv, "fail"], env=["SHOP_KEY"])
    shown = take_back_everything(ws)
    shown.append(everything_shown(ws, project))
    assert "exit 1" in "".join(shown) and leaks("\n".join(shown)) == [] and leaks_of_store(ws) == {}


def test_any_domain_and_the_core_itself(ws: Workspace, project: Path, tmp_path: Path):
    """What a careless domain says is cleaned before it is kept; an inverse with a secret in it is refused."""
    ledger = tmp_path / "ledger"
    did = {"everything": EVERYTHING, "list": [SAID, {"authorization": OTHER}], "with": f"x{VALUE}y"}
    inverse = Inverse("write", {"ledger": str(ledger), "line": "refund", "says": "it is ${env:SHOP_KEY}"})
    act = ws.record(
        NewAct("ledger", f"did {SAID} {VALUE}", f"thing://{SAID}", inverse, did=did, key=SAID, step=SAID),
        {"surface": SAID, "call": SAID},
    )
    ws.acted(act.id, did={"later": SAID, "secret": OTHER}, summary=f"done with {SAID}")
    for name, text in EVERYTHING.items():
        with pytest.raises(takeback.UsageError) as refused:
            ws.record(NewAct("ledger", "x", "x", Inverse("write", {"ledger": str(ledger), "line": text})))
        assert SECRETS[name] not in refused.value.message + refused.value.hint
    ledgers.behave(ledger, "crash")
    shown = take_back_everything(ws)
    ws.resolve(act.id, "not-undone")
    ledgers.behave(ledger, "ok")
    shown += take_back_everything(ws)
    shown.append(everything_shown(ws, project))
    assert leaks("\n".join(shown)) == [] and leaks_of_store(ws) == {}


def test_a_domain_that_lets_everything_pass_stores_no_secret(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ledgers.Ledger, "check", lambda self, inverse: inverse)
    act = ledgers.record(ws, tmp_path / "ledger", "fine")
    for text in EVERYTHING.values():
        inverse = Inverse("write", {"ledger": "x", "line": ["deep", {"down": text}]})
        with pytest.raises(takeback.UsageError, match="would be stored"):
            ws.record(NewAct("ledger", "x", "x", inverse))
        with pytest.raises(takeback.UsageError, match="would be stored"):
            ws.acted(act.id, inverse=inverse)
    assert leaks_of_store(ws) == {}


@pytest.mark.parametrize("where", ["--inverse-header", "--inverse-json", "--inverse-body", "--inverse-url", "-- argv"])
def test_a_literal_on_the_command_line_is_refused_and_not_repeated(ws: Workspace, project: Path, where: str):
    for name in ("stripe", "github classic", "jwt", "bearer", "basic", "url password", "password in a query"):
        text = EVERYTHING[name]
        what = ["http", "POST", "https://api.example.com/x", "--inverse-url", "https://api.example.com/y"]
        value = {
            "--inverse-header": f"X-Key: {text}", "--inverse-json": json.dumps({"k": text}), "--inverse-body": text,
            "--inverse-url": f"https://api.example.com/y?k={text}",
        }.get(where)  # fmt: skip
        if value is None:
            what = ["command", "--did", "x", "--", "curl", "-H", text]
        elif where == "--inverse-url":
            what[-1] = value
        else:
            what += [where, value]
        said = cli(project, "record", *what, ok=False)
        assert SECRETS[name] not in said and ws.effects() == [], (name, said)
    assert leaks_of_store(ws) == {}


def test_the_command_line_records_without_secrets(ws: Workspace, project: Path, server: ThreadingHTTPServer):
    at = url(server)
    one_line = SAID.replace("\n", " ")
    said = cli(
        project, "record", "http", "POST", f"{at}/charges?token={OTHER.replace(' ', '-')}", "--status", "201",
        "--request-body", SAID, "--response-body", json.dumps({"id": "ch_1", "secret": OTHER, "all": EVERYTHING}),
        "--response-header", f"Set-Cookie: s={OTHER}", "--did", f"charged {one_line}", "--call", one_line,
        "--inverse-url", f"{at}/refunds", "--inverse-header", "Authorization: Bearer ${env:SHOP_KEY}",
        "--inverse-body", "charge={response.body.id}",
    )  # fmt: skip
    said += cli(project, "record", "note", f"rotated {one_line}", "--left-to-do", one_line)
    said += cli(project, "plan", "rollback", "--json") + cli(project, "rollback", "--yes", ok=False)
    shown = take_back_everything(ws)
    shown.append(everything_shown(ws, project))
    assert "re_1" in "".join(shown)
    assert leaks(said) == [] and leaks("\n".join(shown)) == [] and leaks_of_store(ws) == {}
