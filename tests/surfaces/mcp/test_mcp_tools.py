"""Every tool: what it answers, as text and as data; and what it says to arguments that make no sense."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from clients import Person, connected
from mcp_types import TextResourceContents

import takeback
from servers.payments import Payments
from servers.smtp import Smtp
from takeback.journal.brackets import Call as BracketCall
from takeback.journal.brackets import Caller
from takeback.model.outside import NewAct
from takeback.show.views import FileDiff
from takeback.surfaces.mcp import windows
from takeback.surfaces.mcp.server import Server
from takeback.surfaces.mcp.wording import TOOLS as TOOL_FOR
from takeback.surfaces.mcp.wording import for_agents
from takeback.text.linediff import Hunk

pytestmark = pytest.mark.anyio

DOCS = Path(__file__).parents[3] / "docs"
TOOLS = [
    "init",
    "checkpoint",
    "track",
    "status",
    "diff",
    "log",
    "rollback",
    "revert",
    "redo",
    "record_http",
    "record_reversal",
    "record_note",
    "compensate",
    "email_stage",
    "email_release",
    "email_cancel",
    "email_pending",
    "undo",
    "show",
    "restore",
    "plan",
    "apply",
    "effects",
    "thread_save",
    "thread_load",
    "thread_list",
    "thread_resume",
    "thread_diff",
    "thread_search",
    "thread_fork",
    "thread_rollback",
    "thread_handoff",
    "thread_adopt",
    "thread_verify",
]


async def test_every_tool_is_there_with_words_types_and_hints(server: Server, era: str) -> None:
    async with connected(server, era) as calls:
        tools = (await calls.client.list_tools()).tools
    assert {t.name for t in tools} == {f"takeback_{name}" for name in TOOLS}
    for tool in tools:
        assert tool.title and tool.description and tool.annotations is not None
        assert tool.annotations.read_only_hint is not None and tool.annotations.open_world_hint is not None
        assert "cwd" in tool.input_schema["properties"]
        for name, shape in tool.input_schema["properties"].items():
            assert shape.get("description"), (tool.name, name)
        assert tool.output_schema["type"] == "object" and len(tool.output_schema["properties"]) > 1, tool.name
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
    by_name = {t.name: t.annotations for t in tools}
    for name in ("status", "diff", "log", "show", "effects", "email_pending"):
        assert by_name[f"takeback_{name}"].read_only_hint
    for name in ("rollback", "undo", "revert", "restore", "apply", "compensate", "email_release"):
        assert by_name[f"takeback_{name}"].destructive_hint


async def test_the_instructions_are_those_of_the_docs(server: Server, era: str) -> None:
    page = (DOCS / "agent-instructions.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    async with connected(server, era) as calls:
        assert calls.client.instructions == block
    for word in ("takeback_checkpoint", "takeback_record_http", "takeback_email_stage", "dry_run", "A person approves"):
        assert word in block


async def test_the_docs_name_every_tool() -> None:
    page = (DOCS / "mcp.md").read_text(encoding="utf-8")
    assert [name for name in TOOLS if f"`{name}" not in page and f"`takeback_{name}" not in page] == []


async def test_a_path_is_meant_before_the_beginning_of_an_id(project: Path, era: str) -> None:
    (project / "a.txt").write_text("one\n")
    (project / "sub").mkdir()
    async with connected(Server(project, os.environ), era) as calls:
        await calls.ok("init")
        (project / "a.txt").write_text("two\n")
        id = (await calls.ok("track", paths=["a.txt"]))["id"]
        (project / "sub" / id[:6]).write_text("new\n")
        for name, arguments in (("undo", {"turn": id[:6]}), ("rollback", {"checkpoint": id[:6]}),
                                ("show", {"id": id[:6]}), ("diff", {"a": id[:6]}),
                                ("restore", {"checkpoint": id[:6], "paths": ["a.txt"]})):  # fmt: skip
            told = await calls.fails(name, **arguments, cwd="sub")
            assert told["code"] == 2 and "is a path, and also how the id of" in told["message"]
            assert id[:8] in told["hint"] and f"takeback_revert ./{id[:6]}" in told["hint"]
        assert (await calls.ok("revert", what=[id[:6]], cwd="sub"))["applied"]
        assert not (project / "sub" / id[:6]).exists() and (project / "a.txt").read_text() == "two\n"


async def test_a_day_of_an_agent(project: Path, era: str) -> None:
    """Each tool that looks at files or takes them back, one after the other."""
    (project / "a.txt").write_text("one\n")
    async with connected(Server(project, os.environ), era) as calls:
        assert (await calls.fails("status"))["code"] == 10
        made = await calls.ok("init")
        assert made["created"] and made["checkpoint"]["label"] == "start" and made["root"] == str(project)
        assert not (await calls.ok("init"))["created"]
        base = (await calls.ok("checkpoint", label="base"))["checkpoint"]
        assert base["label"] == "base" and "takeback_rollback" in calls.text

        (project / "a.txt").write_text("two\n")
        (project / "b.txt").write_text("b\n")
        assert (await calls.ok("track", paths=["b.txt"]))["changed"] == ["b.txt"]
        found = await calls.ok("status")
        assert {(c["path"], c["change"]) for c in found["changes"]} == {("a.txt", "modified"), ("b.txt", "new")}
        shown = await calls.ok("diff")
        assert [f["path"] for f in shown["files"]] == ["a.txt", "b.txt"] and "-one" in calls.text
        assert shown["added"] == 2 and shown["next_offset"] is None

        assert not (await calls.ok("rollback", dry_run=True))["applied"] and (project / "b.txt").exists()
        done = await calls.ok("rollback", checkpoint="base")
        assert done["applied"] and done["whole"] and not (project / "b.txt").exists()
        assert (await calls.ok("redo"))["applied"] and (project / "b.txt").exists()
        assert (await calls.ok("revert", path="a.txt"))["applied"] and (project / "a.txt").read_text() == "one\n"
        await calls.ok("redo")
        await calls.ok("undo")
        assert not (project / "b.txt").exists()
        (project / "a.txt").unlink()
        assert (await calls.ok("restore", checkpoint="base", paths=["a.txt"]))["applied"]
        assert (project / "a.txt").read_text() == "one\n"

        (project / "c.txt").write_text("c\n")
        plan = (await calls.ok("plan", verb="rollback", args=["base"]))["plan"]
        assert plan["id"] and plan["hash"] and [s["target"] for s in plan["steps"]] == ["c.txt"]
        assert (project / "c.txt").exists()
        assert (await calls.ok("apply", plan=plan["id"]))["applied"] and not (project / "c.txt").exists()

        rows = (await calls.ok("log", limit=3))["rows"]
        assert len(rows) == 3 and rows[0]["kind"] == "takeback"
        assert (await calls.ok("log", filter="kind:checkpoint"))["total"] == 2
        assert (await calls.ok("show", id=base["id"]))["tree"][0]["path"] == "a.txt"
        assert (await calls.ok("show", id=rows[0]["id"]))["kind"] == "takeback"
        assert (await calls.ok("effects"))["effects"] == []


async def test_recorded_effects_have_the_fields_that_programs_read(
    server: Server, work: Path, era: str, charge: Callable[[], dict[str, Any]], payments: Payments
) -> None:
    async with connected(server, era) as calls:
        effect = (await calls.ok("record_http", **charge()))["effect"]
        assert effect["id"] and effect["domain"] == "http" and effect["state"] == "live"
        assert effect["by"]["surface"] == "mcp" and effect["by"]["actor"] == "test-agent" and effect["by"]["call"]
        other = (await calls.ok("record_reversal", description="made out", argv=["rm", "out"]))["effect"]
        assert "rm out" in calls.text
        ledger = (await calls.ok("effects"))["effects"]
        assert {e["id"]: (e["domain"], e["state"], e["undoes"]) for e in ledger} == {
            effect["id"]: ("http", "live", None),
            other["id"]: ("command", "live", None),
        }
        plan = (await calls.ok("compensate"))["plan"]
        assert [s["domain"] for s in plan["steps"]] == ["command", "http"] and plan["id"]
        assert (await calls.ok("show", id=effect["id"]))["inverse"].startswith("POST ")
    assert not payments.refunds


async def test_the_same_answer_recorded_twice_is_one_effect_and_says_so(
    server: Server, work: Path, era: str, charge: Callable[[], dict[str, Any]], payments: Payments
) -> None:
    async with connected(server, era, Person()) as calls:
        await calls.ok("checkpoint", label="before")
        given = charge()
        first = (await calls.ok("record_http", **given))["effect"]
        assert "already" not in calls.text
        assert (await calls.ok("record_http", **given))["effect"] == first
        assert f"recorded already as {first['id'][:8]}" in calls.text
        assert (await calls.ok("record_http", **charge()))["effect"]["id"] != first["id"]
        assert (await calls.ok("rollback", checkpoint="before"))["whole"]
    assert len(payments.refunds) == 2


async def test_what_is_recorded_is_told_in_the_words_of_the_tool(server: Server, work: Path, era: str) -> None:
    async with connected(server, era) as calls:
        for given, said in (({}, "neither was given"), ({"command": "a", "argv": ["a"]}, "both were given")):
            await calls.fails("record_reversal", description="d", **given)
            assert "command or argv" in calls.text and said in calls.text
        call = {"method": "POST", "url": "http://h/x", "inverse_url": "http://h/x/1"}
        base = (await calls.ok("record_http", **call))["effect"]
        assert base["inverse"] == "DELETE http://h/x/1"
        later = (await calls.ok("record_http", **call, depends_on=[base["id"][:8]]))["effect"]
        assert later["depends_on"] == [base["id"]]
        await calls.fails("record_http", **call, depends_on=["zzzzzzzz"])
        assert (await calls.ok("record_http", **call, status=403))["effect"]["state"] == "failed"
        assert "it failed with 403, so there is nothing to take back" in calls.text
        await calls.fails("checkpoint", label="x" * 1001)


async def test_arguments_as_other_servers_name_them(
    server: Server, work: Path, era: str, payments: Payments, charge: Callable[[], dict[str, Any]]
) -> None:
    made = charge()
    async with connected(server, era, Person()) as calls:
        await calls.ok(
            "record_http",
            method="POST",
            url=made["url"],
            compensatorMethod="POST",
            compensatorUrl=f"{payments.url}/v1/refunds",
            compensatorBody='{"charge": "ch_1"}',
        )
        (work / "sub").mkdir()
        await calls.ok("record_reversal", description="made two", command="echo gone > undone", runIn="sub")
        assert not (await calls.ok("compensate", execute=False))["applied"]
        assert (await calls.ok("compensate", execute=True))["applied"]
        assert (work / "sub/undone").read_text() == "gone\n" and len(payments.refunds) == 1
        draft = (await calls.ok("email_stage", to="a@example.com", subject="s", body="b"))["draft"]
        await calls.ok("email_cancel", draftId=draft["id"])
        (work / "README.md").write_text("changed\n")
        await calls.ok("revert", path="README.md")
        assert (work / "README.md").read_text() == "hello\n"


@pytest.fixture
def smtp(monkeypatch: pytest.MonkeyPatch) -> Any:
    with Smtp() as found:
        monkeypatch.setenv("TAKEBACK_SMTP_URL", f"smtp://127.0.0.1:{found.port}")
        monkeypatch.setenv("TAKEBACK_SMTP_FROM", "me@example.com")
        yield found


async def test_mail_is_held_shown_to_a_person_and_sent_once(server: Server, era: str, smtp: Smtp) -> None:
    person = Person()
    async with connected(server, era, person) as calls:
        draft = (await calls.ok("email_stage", to=["a@example.com"], subject="Grüße", body="Dear A,\nhello"))["draft"]
        assert draft["id"] and draft["state"] == "held" and not smtp.got
        assert [d["id"] for d in (await calls.ok("email_pending"))["drafts"]] == [draft["id"]]
        assert (await calls.ok("email_release", draftId=draft["id"]))["released"]
        assert [got.to for got in smtp.got] == [["a@example.com"]]
        (message,) = person.asked
        assert "a@example.com" in message and "Grüße" in message and "Dear A,\nhello" in message
        await calls.fails("email_release", draft=draft["id"])
        await calls.fails("email_cancel", draft=draft["id"])
        assert len(smtp.got) == 1


@pytest.mark.parametrize("delay", ["", "1h"], ids=["released", "by itself"])
async def test_a_person_sees_all_of_a_mail_before_saying_yes(
    server: Server, era: str, smtp: Smtp, work: Path, delay: str
) -> None:
    """Nobody is in copy, nothing is attached and no other text is sent that was not shown."""
    (work / "plan.txt").write_text("secret")
    person = Person(lambda _: False)
    async with connected(server, era, person) as calls:
        await calls.ok(
            "email_stage", to="a@example.com", cc=["b@example.com"], bcc="c@example.com", reply_to="d@example.com",
            subject="s", body="plain words", html="<p>other words</p>", attachments=["plan.txt"], delay=delay,
        )  # fmt: skip
        if not delay:
            await calls.ok("email_release")
    (message,) = person.asked
    lines = message.split("\n")
    assert {"To: a@example.com", "Cc: b@example.com", "Bcc: c@example.com", "Reply-to: d@example.com"} <= {*lines}
    assert {"Attached: plan.txt", "plain words", "<p>other words</p>"} <= {*lines}


async def test_mail_stays_held_after_a_no_and_without_anybody_to_ask(server: Server, era: str, smtp: Smtp) -> None:
    async with connected(server, era, Person(lambda _: False)) as calls:
        draft = (await calls.ok("email_stage", to="a@example.com", subject="s", body="b"))["draft"]
        assert not (await calls.ok("email_release"))["released"]
    async with connected(server, era) as calls:
        assert not (await calls.ok("email_release"))["released"]
        assert f"takeback email release {draft['id'][:8]}" in calls.text
        assert (await calls.ok("email_cancel"))["draft"]["state"] == "cancelled"
        assert (await calls.ok("email_pending"))["drafts"] == []
    assert not smtp.got


async def test_due_mail_leaves_by_itself_only_if_a_person_or_policy_said_so(
    server: Server, era: str, smtp: Smtp, monkeypatch: pytest.MonkeyPatch
) -> None:
    from takeback.surfaces.mcp.tools import mail

    monkeypatch.setattr(mail, "_EVERY", 0.01)
    agreeing = Person(lambda message: "yes@example.com" in message)
    async with connected(server, era, agreeing) as calls, anyio.create_task_group() as tasks:
        tasks.start_soon(mail.release_when_due, server)
        await calls.ok("email_stage", to="yes@example.com", subject="s", body="b", delay="1s")
        held = (await calls.ok("email_stage", to="no@example.com", subject="s", body="b", delay="1s"))["draft"]
        with anyio.fail_after(30):
            while not smtp.got or not (await calls.ok("email_pending"))["drafts"][0]["is_due"]:
                await anyio.sleep(0.05)
        await anyio.sleep(0.2)
        assert [got.to for got in smtp.got] == [["yes@example.com"]]
        assert [d["id"] for d in (await calls.ok("email_pending"))["drafts"]] == [held["id"]]
        assert "due" in calls.text
        tasks.cancel_scope.cancel()


# -- what is too long ----------------------------------------------------------------


async def test_a_long_diff_is_cut_and_the_rest_can_be_asked_for(server: Server, work: Path, era: str) -> None:
    (work / "long.txt").write_text("".join(f"line {n}\n" for n in range(1000)))
    (work / "wide.txt").write_text("x" * 100_000)
    async with connected(server, era) as calls:
        seen: list[str] = []
        offset: int | None = 0
        while offset is not None:
            found = await calls.ok("diff", offset=offset, limit=300)
            assert len(calls.text) < 40_000
            seen += [line for f in found["files"] if f["path"] == "long.txt" for h in f["hunks"] for line in h["lines"]]
            offset = found["next_offset"]
        assert seen == [f"+line {n}" for n in range(1000)]
        alone = await calls.ok("diff", paths=["wide.txt"])
        assert [f["path"] for f in alone["files"]] == ["wide.txt"] and len(calls.text) < 3000
        assert (await calls.ok("diff", stat=True))["files"][0]["added"] == 1000 and "+line" not in calls.text


def test_windows_meet_without_a_gap() -> None:
    hunk = Hunk(0, 0, 1, 5, tuple(b"+%d" % n for n in range(5)))
    files = [FileDiff("a", "new", "file", hunks=(hunk, hunk)), FileDiff("b", "mode", "file")]
    total = windows.windowed(files, 0, 100).total
    assert total == 12
    for size in range(1, 13):
        parts = [windows.windowed(files, at, size) for at in range(0, total, size)]
        lines = [line for part in parts for f in part.files for h in f.hunks for line in h.lines]
        assert lines == [*hunk.lines, *hunk.lines]
        assert {f.path for part in parts for f in part.files} == {"a", "b"}


async def test_ten_thousand_paths_are_counted_and_not_listed(server: Server, work: Path) -> None:
    for n in range(1500):
        (work / f"f{n}").write_text("x")
    async with connected(server) as calls:
        found = await calls.ok("status")
        assert len(found["changes"]) == 1000 and found["changes_total"] == 1500
        assert len(calls.text) < 10_000
        done = await calls.ok("rollback")
        assert done["whole"] and len(done["results"]) == 1000 and done["results_total"] == 1500


async def test_peoples_work_is_kept_and_named(server: Server, work: Path, era: str) -> None:
    with takeback.open(work) as ws:
        base = ws.checkpoint("base")
        (work / "by-agent").write_text("x\n")
        ws.checkpoint(actor="claude")
        since = ws.checkpoint("before: make")
        (work / "by-run").write_text("x\n")
        ws.ran(since, "make")
    (work / "by-hand").write_text("x\n")
    async with connected(server, era) as calls:
        done = await calls.ok("rollback", checkpoint="base")
        assert done["applied"] and done["at_target"] is False
        assert done["plan"]["asks"] == {"people": ["by-hand", "by-run"]}
        assert "kept people's work: by-hand, by-run; the tree is not wholly at" in calls.text
        assert f"takeback_rollback {base.id[:8]} everything=true" in calls.text
        assert not (work / "by-agent").exists() and (work / "by-run").exists() and (work / "by-hand").exists()
        done = await calls.ok("rollback", checkpoint="base", everything=True)
        assert done["at_target"] is True and not (work / "by-run").exists() and not (work / "by-hand").exists()


async def test_names_that_are_no_text_do_not_break_the_protocol(server: Server, work: Path, era: str) -> None:
    (work / os.fsdecode(b"caf\xe9.txt")).write_bytes(b"caf\xe9\n")
    (work / "new\nline\x1b[2J").write_text("x\n")
    async with connected(server, era) as calls:
        assert "caf\\xe9.txt" in {c["path"] for c in (await calls.ok("status"))["changes"]}
        await calls.ok("diff")
        assert "\x1b" not in calls.text
        await calls.ok("log")
        assert (await calls.ok("rollback"))["whole"]


async def test_secrets_in_files_are_masked(server: Server, work: Path, era: str) -> None:
    token = "sk_" + "live_" + "4eC39HqLyjWDarjtT1zdp7dc"
    (work / ".env").write_text("PASSWORD=hunter2\n")
    (work / "settings.py").write_text(f"KEY = '{token}'\nDEBUG = True\n")
    async with connected(server, era) as calls:
        said = []
        for tool, arguments in (("diff", {}), ("checkpoint", {}), ("show", {"id": "2"})):
            said += [str(await calls.ok(tool, **arguments)), calls.text]
        (content,) = (await calls.client.read_resource("takeback://diff?cwd=" + str(work))).contents
        found = await calls.ok("diff", a="start")
    assert "hunter2" not in "".join(said) + str(found) + str(content) and token not in "".join(said) + str(found)
    env, settings = found["files"]
    assert env["path"] == ".env" and not env["hunks"] and "+1 −0, contents masked" in env["note"]
    assert [line for h in settings["hunks"] for line in h["lines"]][1] == "+DEBUG = True"


# -- which workspace -----------------------------------------------------------------


async def test_cwd_chooses_the_workspace_from_below(work: Path, tmp_path: Path, era: str) -> None:
    server = Server(work, os.environ, any_root=True)
    other = tmp_path / "other/deep"
    other.mkdir(parents=True)
    takeback.open(other.parent, create=True).close()
    async with connected(server, era) as calls:
        (other / "x").write_text("x")
        assert [c["path"] for c in (await calls.ok("status", cwd=str(other)))["changes"]] == ["deep/x"]
        assert (await calls.ok("track", paths=["x"], cwd=str(other)))["paths"] == ["deep/x"]
        assert (await calls.ok("status"))["changes"] == []


async def test_init_refuses_what_is_no_project(server: Server, work: Path, own_home: Path, tmp_path: Path) -> None:
    async with connected(server) as calls:
        for folder in ("/", str(own_home), str(own_home / "takeback"), str(work / "src"), str(tmp_path)):
            await calls.fails("init", cwd=folder)
        await calls.ok("status")


async def test_init_promises_nothing_where_the_store_can_only_be_read(
    server: Server, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not (str(path).endswith("journal.db") and mode & os.W_OK))
    async with connected(server) as calls:
        assert "can only be read" in str(await calls.fails("init"))


async def test_the_agent_that_started_it_is_known_as_one(work: Path, era: str) -> None:
    async with connected(Server(work, os.environ, parent=os.getppid()), era) as calls:
        await calls.ok("status")
        await calls.ok("status")
    with takeback.open(work) as ws:
        (session,) = ws.history().sessions
    assert session["pid"] == os.getppid() and session["name"] == "test-agent"


async def test_the_log_and_the_diff_are_resources(server: Server, work: Path, era: str) -> None:
    (work / "README.md").write_text("changed\n")
    async with connected(server, era) as calls:
        client = calls.client
        assert {r.uri for r in (await client.list_resources()).resources} == {"takeback://log", "takeback://diff"}
        for uri, word in (
            ("takeback://log", "start"),
            ("takeback://diff", "+changed"),
            (f"takeback://diff?cwd={work}", "+changed"),
        ):
            (content,) = (await client.read_resource(uri)).contents
            assert isinstance(content, TextResourceContents) and word in content.text
        with pytest.raises(Exception, match="outside"):
            await client.read_resource("takeback://log?cwd=/")


# -- what makes no sense ---------------------------------------------------------------

HOSTILE: list[tuple[str, dict[str, Any]]] = [
    ("status", {"cwd": "/no/such/folder"}),
    ("status", {"cwd": "\0"}),
    ("status", {"cwd": "../../../../../../.."}),
    ("status", {"cwd": "x" * 100_000}),
    ("status", {"cwd": 7}),
    ("status", {"cwd": ["a"]}),
    ("status", {"cwd": "README.md"}),
    ("status", {"unknown": 1}),
    ("checkpoint", {"label": "two\nlines"}),
    ("checkpoint", {"label": {"a": 1}}),
    ("track", {}),
    ("track", {"paths": []}),
    ("track", {"paths": ["../outside"]}),
    ("track", {"paths": ["/etc/passwd"]}),
    ("track", {"paths": ["a\0b"]}),
    ("track", {"paths": [""]}),
    ("track", {"paths": 5}),
    ("diff", {"a": "nothing like it"}),
    ("diff", {"paths": ["../../etc"]}),
    ("diff", {"limit": 0}),
    ("diff", {"limit": 10**9}),
    ("diff", {"offset": -1}),
    ("diff", {"offset": "many"}),
    ("log", {"filter": "since:never"}),
    ("show", {}),
    ("show", {"id": "zzzzzzzz"}),
    ("show", {"id": "x" * 1_000_000}),
    ("rollback", {"chekpoint": "start"}),
    ("rollback", {"checkpoint": "nowhere"}),
    ("rollback", {"checkpoint": "start", "to": "start"}),
    ("rollback", {"only": ["fils"]}),
    ("rollback", {"without": ["fils"], "dry_run": True}),
    ("rollback", {"checkpoint": {"$ne": ""}}),
    ("undo", {"n": 0}),
    ("undo", {"n": -3}),
    ("undo", {"n": 10**30}),
    ("undo", {"n": True, "cwd": "/nowhere"}),
    ("redo", {"n": "two"}),
    ("revert", {}),
    ("revert", {"path": "../../etc/passwd"}),
    ("revert", {"what": ["never/there"]}),
    ("restore", {"checkpoint": "start"}),
    ("restore", {"checkpoint": "start", "paths": []}),
    ("restore", {"checkpoint": "start", "paths": ["../x"]}),
    ("restore", {"checkpoint": "start", "paths": ["x"], "to": "/tmp"}),
    ("plan", {"verb": "apply"}),
    ("plan", {"verb": "undo", "args": ["x"]}),
    ("plan", {"verb": "rollback", "args": ["a", "b"]}),
    ("apply", {"plan": "zzzzzzzz"}),
    ("apply", {"plan": ""}),
    ("compensate", {"to": "nowhere"}),
    ("compensate", {"execute": "perhaps"}),
    ("record_http", {"method": "POST"}),
    ("record_http", {"method": "PO ST", "url": "http://h/"}),
    ("record_http", {"method": "POST", "url": "file:///etc/passwd"}),
    ("record_http", {"method": "POST", "url": "http://h/", "status": 99}),
    ("record_http", {"method": "POST", "url": "http://h/x", "inverse_method": "DELETE", "inverse_url": "http://evil/x"}),
    ("record_http", {"method": "POST", "url": "http://h/x", "inverse_method": "DELETE", "inverse_url": "http://h/{response.body.id}"}),
    ("record_http", {"method": "POST", "url": "http://h/x", "inverse_method": "DELETE", "inverse_url": "http://h/x",
                     "inverse_headers": {"Authorization": "Bearer sk_live_abcdefghijklmnop"}}),
    ("record_http", {"method": "POST", "url": "http://h/x", "inverse_method": "DELETE", "inverse_url": "http://h/x",
                     "inverse_headers": {"X": "a\r\nHost: evil"}}),
    ("record_reversal", {"description": "d"}),
    ("record_reversal", {"description": "d", "command": "a", "argv": ["a"]}),
    ("record_reversal", {"description": "", "argv": ["a"]}),
    ("record_reversal", {"description": "d", "argv": ["a\0b"]}),
    ("record_reversal", {"description": "d", "argv": "rm -rf"}),
    ("email_stage", {"to": "a@example.com\r\nBcc: b@example.com", "subject": "s", "body": "b"}),
    ("email_stage", {"to": "a@example.com", "subject": "s\r\nBcc: b@example.com", "body": "b"}),
    ("email_stage", {"to": "a@example.com", "subject": "s", "body": "b", "provider": "pigeon"}),
    ("email_stage", {"to": "a@example.com", "subject": "s", "body": "b", "delay": "soon"}),
    ("email_stage", {"to": "a@example.com", "subject": "s", "body": "b", "attachments": ["/etc/passwd"]}),
    ("email_release", {"draft": "zzzzzzzz"}),
    ("email_release", {}),
    ("email_cancel", {"draft": "1"}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "arguments"), HOSTILE, ids=lambda v: v if isinstance(v, str) else repr(v)[:40])
async def test_what_makes_no_sense_is_told_and_changes_nothing(
    server: Server, work: Path, tool: str, arguments: dict[str, Any]
) -> None:
    before = {p: p.read_bytes() for p in work.rglob("*") if p.is_file()}
    async with connected(server, "auto", Person()) as calls:
        await calls.fails(tool, **arguments)
        assert len(calls.text) < 3000
        assert (await calls.ok("effects"))["effects"] == []
    assert {p: p.read_bytes() for p in work.rglob("*") if p.is_file()} == before


async def test_two_hundred_hostile_calls_send_nothing_and_run_nothing(
    server: Server, work: Path, era: str, payments: Payments, charge: Callable[[], dict[str, Any]], smtp: Smtp
) -> None:
    """Whatever an agent asks for, in any order and with any arguments: without a person nothing leaves."""
    chance = random.Random(era)
    ran = work.parent / "ran"
    async with connected(server, era) as calls:
        await calls.ok("record_http", **charge())
        await calls.ok("record_reversal", description="d", argv=["touch", str(ran)])
        await calls.ok("record_reversal", description="d", command=f"touch {ran}")
        draft = (await calls.ok("email_stage", to="a@example.com", subject="s", body="b", delay="1s"))["draft"]
        ids = [e["id"] for e in (await calls.ok("effects"))["effects"] if e["domain"] != "email"]
        plans = [(await calls.ok("plan", verb=verb))["plan"]["id"] for verb in ("compensate", "rollback", "undo")]
        asked = len(payments.requests)
        words = [
            *ids,
            *plans,
            draft["id"],
            "start",
            "1",
            "",
            "x",
            "../..",
            "\0",
            "*",
            "yes",
            "--yes",
            "; touch ran",
            "$(id)",
        ]
        values = [
            *words,
            *words,
            True,
            False,
            None,
            0,
            1,
            -1,
            10**20,
            1.5,
            [],
            ["files"],
            ["http"],
            ids,
            plans,
            {"a": 1},
        ]
        tools = {t.name.removeprefix("takeback_"): t.input_schema for t in (await calls.client.list_tools()).tools}
        kept = ("init", "email_cancel", "record_http", "record_reversal", "email_stage")  # which may well succeed
        for _ in range(200):
            tool = chance.choice([name for name in tools if name not in kept])
            shape = tools[tool]
            names = [*shape.get("required", []), *chance.choices(sorted(shape["properties"]), k=2)]
            given = {
                name: chance.choice(values) for name in names if chance.random() < 0.7 and name in shape["properties"]
            }
            if chance.random() < 0.7:
                given.pop("cwd", None)
            await calls(tool, **given)
        assert len(payments.requests) == asked and not ran.exists() and not smtp.got
        states = {e["id"]: e["state"] for e in (await calls.ok("effects"))["effects"]}
        assert all(states[id] == "live" for id in ids)


# -- in words that an agent can follow ----------------------------------------------


def test_every_command_that_is_named_as_a_tool_is_one() -> None:
    assert {command.replace(" ", "_") for command in TOOL_FOR} <= set(TOOLS)
    assert set(TOOLS) - {command.replace(" ", "_") for command in TOOL_FOR} == {
        "record_http",
        "record_reversal",
        "record_note",
    }


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("take this back: takeback redo", "take this back: takeback_redo"),
        ("see takeback log, then takeback revert ID|PATH…", "see takeback_log, then takeback_revert ID|PATH…"),
        (
            "take it too: takeback revert kxvm --force, or merge it: takeback revert kxvm --merge",
            "take it too: takeback_revert kxvm force=true, or merge it: takeback_revert kxvm merge=true",
        ),
        ("takeback rollback kxvm --with-state takes it too", "takeback_rollback kxvm with_state=true takes it too"),
        ("takeback thread rollback main kxvm --with-files", "takeback_thread_rollback main kxvm with_files=true"),
        (
            "take this back: takeback rollback kxvm --only files --force",
            'take this back: takeback_rollback kxvm only=["files"] force=true',
        ),
        (
            "kept key: tell · if something takes it back: takeback record command --for kxvm -- COMMAND",
            "kept key: tell · if something takes it back: takeback_record_reversal for_effect=kxvm argv=…",
        ),
        (
            "takeback record http --for kxvm --inverse-method METHOD --inverse-url URL",
            "takeback_record_http for_effect=kxvm inverse_method=… inverse_url=…",
        ),
        ("list them with takeback email pending", "list them with takeback_email_pending"),
        ("takeback thread list (takeback thread verify)", "takeback_thread_list (takeback_thread_verify)"),
        ("others' work: a (1 path; take it too with --all)", "others' work: a (1 path; take it too with everything=true)"),
        ("… and 9 more (see all: takeback status --all)", "… and 9 more (the data has more)"),
        # what is a person's, or what no tool can
        *[(same, same) for same in (
            "run takeback email release kxvm on a terminal", "takeback approve kxvm, then takeback resume",
            "takeback restore --to DIR still works",
            "takeback email release --due", "takeback resolve kxvm --undone", "takeback protect claude",
            "by claude “say takeback redo”", "takeback logs in",
            "as it was when this folder was protected; a person changes that with takeback init",
        )],
    ],
)  # fmt: skip
def test_what_to_do_next_is_said_by_tools(said: str, told: str) -> None:
    assert for_agents(said) == told


async def test_what_takes_a_note_back_is_told_by_a_tool(work: Path, server: Server, era: str) -> None:
    async with connected(server, era) as calls:
        made = await calls.ok("record_note", text="rotated the key")
        (work / "README.md").write_text("changed\n")
        for tool, given in (("compensate", {}), ("rollback", {}), ("show", {"id": made["effect"]["id"]})):
            await calls.ok(tool, **given)
            assert "takeback record" not in calls.text, calls.text
        assert "takeback_record_reversal for_effect=" in calls.text


async def test_answers_name_tools_where_the_agent_has_one(work: Path, server: Server) -> None:
    async with connected(server) as calls:
        await calls("checkpoint", label="before")
        (work / "README.md").write_text("changed: see takeback log\n")
        for failed in (await calls.fails("show", id="nothing"), await calls.fails("email_cancel", draft="")):
            assert "takeback_" in failed["hint"] and "takeback " not in failed["hint"], failed
        await calls("rollback")
        assert "take this back: takeback_redo" in calls.text
        await calls("redo")
        assert "take this back: takeback_undo" in calls.text or "takeback_rollback" in calls.text
        await calls("diff")
        assert "+changed: see takeback log" in calls.text, "what a file says stays as it is"


async def test_what_nothing_takes_back_is_noted(work: Path, server: Server, era: str) -> None:
    async with connected(server, era) as calls:
        first = await calls.ok("record_note", text="rotated the  signing key", left_to_do="tell the team")
        assert first["effect"]["summary"] == "rotated the signing key" and first["effect"]["verdict"] == "irreversible"
        assert "tell the team" not in calls.text or "nothing takes it back" in calls.text
        then = await calls.ok("record_note", text="told the team", depends_on=[first["effect"]["id"]])
        assert then["effect"]["depends_on"] == [first["effect"]["id"]]
        assert {e["summary"] for e in (await calls.ok("effects"))["effects"]} == {
            "rotated the signing key",
            "told the team",
        }
        (work / "README.md").write_text("changed\n")
        planned = await calls.ok("rollback", dry_run=True)
        assert "irreversible" in {step["verdict"] for step in planned["plan"]["steps"]}
        await calls.fails("record_note", text="  ")


async def test_what_a_hook_saw_gets_its_inverse_and_no_second_effect(
    server: Server, work: Path, payments: Any, charge: Any
) -> None:
    """One act, one effect: by its method and URL, or by its id."""
    claude, made = Caller("claude", "s"), charge()
    seen = NewAct("command", "curl", "curl", None, "irreversible", {"request": f"POST {payments.url}/v1/charges"})
    other = NewAct("command", "kubectl delete pod web", "pod", None, "irreversible", {"left_to_do": "nobody knows"})
    with takeback.open(work) as ws:
        ws.begin_turn(claude, "charge it")
        for key, act in (("1", seen), ("2", other)):
            ws.begin_call(claude, BracketCall(key, "Bash", act.summary, acts=(act,)))
            ws.end_call(claude, BracketCall(key, "Bash", ""))
        pod, curl = ws.effects()
    async with connected(server) as calls:
        effect = (await calls.ok("record_http", **made))["effect"]
        assert (effect["id"], effect["domain"], effect["state"]) == (curl.id, "http", "live")
        given = {"argv": ["kubectl", "apply", "-f", "web.yaml"], "for": pod.id[:8]}
        effect = (await calls.ok("record_reversal", **given))["effect"]
        assert (effect["id"], effect["summary"], effect["state"]) == (pod.id, pod.summary, "live")
        assert "already" in (await calls.fails("record_reversal", **given))["message"]
        lone = (await calls.ok("record_http", method="POST", url=f"{payments.url}/v1/other", status=201))["effect"]
        assert f"takeback_record_http with for_effect {lone['id'][:8]}" in calls.text
        assert len((await calls.ok("effects"))["effects"]) == 3


async def test_bodies_have_their_types_in_the_schema(server: Server) -> None:
    async with connected(server) as calls:
        tools = {tool.name: tool.input_schema for tool in (await calls.client.list_tools()).tools}
    for name in ("request_body", "response_body", "inverse_body"):
        kinds = {each["type"] for each in tools["takeback_record_http"]["properties"][name]["anyOf"]}
        assert kinds >= {"object", "array", "string", "null"}
    for tool, schema in tools.items():
        for name, about in schema["properties"].items():
            assert {"type", "anyOf", "$ref", "enum"} & about.keys(), f"{tool}.{name} has no type"
