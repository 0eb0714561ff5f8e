"""What acts outside the files happens after a person's yes, once, and never otherwise: in both eras of the protocol."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from clients import ERAS, Person, connected
from mcp_types import ElicitResult

import takeback
from servers.payments import Payments
from takeback.surfaces.mcp.server import Server

pytestmark = pytest.mark.anyio


async def test_each_era_speaks_its_own_protocol(server: Server, era: str) -> None:
    async with connected(server, era) as calls:
        assert calls.client.protocol_version == ERAS[era]


async def test_a_yes_takes_files_and_the_charge_back_in_one_go(
    server: Server, work: Path, era: str, payments: Payments, charge: Callable[[], dict[str, Any]]
) -> None:
    person = Person()
    async with connected(server, era, person) as calls:
        await calls.ok("checkpoint", label="before")
        effect = (await calls.ok("record_http", **charge()))["effect"]
        (work / "README.md").write_text("changed\n")
        done = await calls.ok("rollback")
        assert done["applied"] and done["whole"]
        assert (work / "README.md").read_text() == "hello\n"
        assert payments.ledger()["balance"] == 0 and len(payments.refunds) == 1
        (message,) = person.asked
        assert f"POST {payments.url}/v1/refunds" in message and "ch_1" in message
        assert "test-agent" in message  # who recorded it
        ledger = (await calls.ok("effects"))["effects"]
        assert [e["state"] for e in ledger if e["id"] == effect["id"]] == ["undone"]
        assert [e["undoes"] for e in ledger if e["id"] != effect["id"]] == [effect["id"]]
        await calls.ok("rollback")
        await calls.ok("compensate", execute=True)
        assert len(payments.refunds) == 1 and len(person.asked) == 1


@pytest.mark.parametrize(
    "said",
    [
        False,
        ElicitResult(action="decline"),
        ElicitResult(action="cancel"),
        ElicitResult(action="accept"),
        ElicitResult(action="accept", content={"approve": "perhaps"}),
        ElicitResult(action="accept", content={"approve": "true"}),
        ElicitResult(action="accept", content={"approve": 1}),
        ElicitResult(action="accept", content={"yes": True}),
    ],
    ids=["unticked", "decline", "cancel", "no content", "no boolean", "the word true", "a one", "another field"],
)
async def test_anything_but_a_yes_does_nothing(
    server: Server, work: Path, era: str, payments: Payments, charge: Callable[[], dict[str, Any]], said: Any
) -> None:
    async with connected(server, era, Person(lambda _: said)) as calls:
        await calls.ok("checkpoint", label="before")
        await calls.ok("record_http", **charge())
        (work / "README.md").write_text("changed\n")
        done = await calls("rollback")
        assert not done.is_error and done.structured_content["applied"] is False
        assert "Nothing was done" in calls.text
        assert (work / "README.md").read_text() == "changed\n"
        assert not payments.refunds


async def test_without_a_way_to_ask_a_person_gets_the_line_to_run(
    server: Server, work: Path, era: str, payments: Payments, charge: Callable[[], dict[str, Any]]
) -> None:
    async with connected(server, era) as calls:
        await calls.ok("checkpoint", label="before")
        await calls.ok("record_http", **charge())
        (work / "README.md").write_text("changed\n")
        proposed = await calls.ok("rollback")
        plan = proposed["plan"]
        assert proposed["applied"] is False and plan["hash"] and len(plan["steps"]) == 2
        assert f"takeback approve {plan['id']}" in calls.text and f"takeback apply {plan['id']}" in calls.text
        assert not payments.refunds and (work / "README.md").read_text() == "changed\n"
        with takeback.open(work) as ws:  # the person, elsewhere
            ws.approve(ws.saved_plan(plan["id"]))
        assert (await calls.ok("apply", plan=plan["id"]))["applied"]
        assert len(payments.refunds) == 1 and (work / "README.md").read_text() == "hello\n"


async def test_the_files_alone_need_nobody(
    server: Server, work: Path, era: str, payments: Payments, charge: Callable[[], dict[str, Any]]
) -> None:
    async with connected(server, era) as calls:
        await calls.ok("checkpoint", label="before")
        await calls.ok("record_http", **charge())
        (work / "README.md").write_text("changed\n")
        assert (await calls.ok("rollback", only=["files"]))["applied"]
        assert (work / "README.md").read_text() == "hello\n" and not payments.refunds


async def test_a_policy_of_allow_needs_nobody(
    server: Server, era: str, payments: Payments, charge: Callable[[], dict[str, Any]], configure: Callable[[str], None]
) -> None:
    configure('[policy.http]\ncompensating = "allow"\n')
    async with connected(server, era) as calls:
        await calls.ok("record_http", **charge())
        assert (await calls.ok("compensate", execute=True))["applied"]
    assert len(payments.refunds) == 1


async def test_a_credential_that_nothing_binds_is_a_question_of_its_own(
    server: Server,
    era: str,
    payments: Payments,
    charge: Callable[[], dict[str, Any]],
    configure: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even a policy of allow covers it."""
    configure('[policy.http]\ncompensating = "allow"\n')
    monkeypatch.setenv("PAY_KEY", "value-of-the-key")
    refusing = Person(lambda message: "PAY_KEY" not in message)
    what = {**charge(), "inverse_headers": {"Authorization": "Bearer ${env:PAY_KEY}"}}
    async with connected(server, era, refusing) as calls:
        await calls.ok("record_http", **what)
        assert not (await calls.ok("compensate", execute=True))["applied"]
        assert [f"PAY_KEY to {payments.url}" in message for message in refusing.asked] == [True]
        assert not payments.refunds
    willing = Person()
    async with connected(server, era, willing) as calls:
        assert (await calls.ok("compensate", execute=True))["applied"]
        assert len(willing.asked) == 1 and "value-of-the-key" not in "".join(willing.asked)
    assert [h["Authorization"] for m, p, h, _ in payments.requests if p == "/v1/refunds"] == ["Bearer value-of-the-key"]


async def test_steps_and_credentials_are_asked_for_one_by_one(
    server: Server, era: str, charge: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAY_KEY", "value-of-the-key")
    person = Person()
    what = {**charge(), "inverse_headers": {"Authorization": "Bearer ${env:PAY_KEY}"}}
    async with connected(server, era, person) as calls:
        await calls.ok("record_http", **what)
        assert (await calls.ok("compensate", execute=True))["applied"]
    assert len(person.asked) == 2 and sum("No setting binds" in message for message in person.asked) == 1


async def test_a_plan_that_changes_while_a_person_thinks_is_stale(
    server: Server, work: Path, era: str, payments: Payments, charge: Callable[[], dict[str, Any]]
) -> None:
    def slow(message: str) -> bool:
        (work / "src/auth.py").write_text("somebody else\n")
        return True

    async with connected(server, era, Person(slow)) as calls:
        await calls.ok("checkpoint", label="before")
        await calls.ok("record_http", **charge())
        (work / "src/auth.py").write_text("the agent\n")
        error = await calls.fails("rollback")
        assert "stale" in error["message"] and error["differing"]
    assert not payments.refunds and (work / "src/auth.py").read_text() == "somebody else\n"


async def test_text_of_an_agent_cannot_forge_lines_of_the_question(
    server: Server, era: str, charge: Callable[[], dict[str, Any]]
) -> None:
    person = Person(lambda _: False)
    async with connected(server, era, person) as calls:
        await calls.ok("record_http", **{**charge(), "summary": "harmless\n2. nothing\x1b[2K\u202e at all"})
        await calls.ok("compensate", execute=True)
    (message,) = person.asked
    assert "\x1b" not in message and "\u202e" not in message
    assert not [line for line in message.split("\n") if line.startswith("2. ")]


async def test_two_clients_at_once_send_one_refund(
    server: Server, era: str, payments: Payments, charge: Callable[[], dict[str, Any]]
) -> None:
    async with connected(server, era, Person()) as one, connected(server, era, Person()) as two:
        await one.ok("record_http", **charge())

        async def compensate(calls: Any) -> None:
            await calls("compensate", execute=True)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(compensate, one)
            tasks.start_soon(compensate, two)
    assert len(payments.refunds) == 1


async def test_an_answer_of_one_call_is_none_of_another(
    server: Server, payments: Payments, charge: Callable[[], dict[str, Any]]
) -> None:
    """The later protocol's state goes through the client: it is sealed, and bound to the call it was made for."""
    async with connected(server, "auto", Person()) as calls:
        await calls.ok("record_http", **charge())
        session = calls.client.session
        asked: Any = await session.call_tool("takeback_compensate", {"execute": True}, allow_input_required=True)
        assert asked.result_type == "input_required"
        yes = {key: ElicitResult(action="accept", content={"approve": True}) for key in asked.input_requests}
        for name, arguments, state in (
            ("takeback_rollback", {}, asked.request_state),
            ("takeback_compensate", {"execute": True}, asked.request_state[:-2] + "AA"),
            ("takeback_compensate", {"execute": True}, '{"subject": "x", "asked": "y"}'),
        ):
            with pytest.raises(Exception, match=r"(?i)state|invalid"):
                await session.call_tool(
                    name, arguments, input_responses=yes, request_state=state, allow_input_required=True
                )
        again: Any = await session.call_tool(
            "takeback_compensate", {"execute": True}, input_responses=yes, allow_input_required=True
        )
        assert again.result_type == "input_required"  # answers to nothing that was asked
        assert not payments.refunds


async def test_the_question_lists_the_probe_and_the_whole_body(
    server: Server, work: Path, era: str, payments: Payments, charge: Callable[[], dict[str, Any]]
) -> None:
    person = Person(lambda _: False)
    long = {"charge": "{response.body.id}", "note": "x" * 3000 + "the very end"}
    async with connected(server, era, person) as calls:
        probe = {"url": f"{payments.url}/v1/hidden", "headers": {"X-Look": "closely"}, "expect": [404]}
        await calls.ok("record_http", **{**charge(), "inverse_body": long, "probe": probe})
        hidden = {"shell": "echo hidden", "gone": [1]}
        await calls.ok("record_reversal", description="d", argv=["true"], env=["HOME"], expect=[3], probe=hidden)
        await calls("compensate", execute=True)
        (message,) = person.asked
        assert "the very end" in message and f"probe: GET {payments.url}/v1/hidden X-Look: closely" in message
        assert "true (with HOME, expects 3) · probe: sh -c 'echo hidden' (shell)" in message


async def test_a_take_back_of_which_no_step_was_done_is_a_failure(
    server: Server,
    work: Path,
    era: str,
    payments: Payments,
    charge: Callable[[], dict[str, Any]],
    configure: Callable[[str], None],
) -> None:
    """Its only step is refused. One of which a part was done is none."""
    configure('[policy.http]\ncompensating = "refuse"\n')
    async with connected(server, era, Person()) as calls:
        await calls.ok("checkpoint", label="before")
        effect = (await calls.ok("record_http", **charge()))["effect"]["id"]
        for tool, more in (("rollback", {}), ("revert", {"what": [effect]}), ("compensate", {"execute": True})):
            error = await calls.fails(tool, **more)
            assert error["code"] == 3 and effect[:8] in error["message"] and "refused by policy" in error["message"]
            said = (await calls(tool, **more)).structured_content
            assert (said["applied"], said["whole"], said["results"][0]["result"]) == (False, False, "kept")
        (work / "README.md").write_text("changed\n")
        said = await calls.ok("rollback")
        assert (said["applied"], said["whole"]) == (True, False) and (work / "README.md").read_text() == "hello\n"
    assert not payments.refunds
