"""Outside effects on the command line: recorded, shown, approved by a person, taken back once; against a real server."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import takeback
from servers.payments import Payments

ASK = "Apply? [y/N/d diff]"
YES = "Type yes to do"
KEY = "s3cr3t-of-the-test-0451"
PLAIN = {"NO_COLOR": "1", "PAY_KEY": KEY}


@pytest.fixture
def bank() -> Iterator[Payments]:
    server = Payments().start()
    yield server
    server.stop()


def post(bank: Payments, path: str, **body: Any) -> tuple[int, str]:
    """What an agent's own code would do."""
    request = urllib.request.Request(bank.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.status, answer.read().decode()


def charge(cli, bank: Payments, *more: str, key: bool = False, env: dict[str, str] | None = None) -> str:
    """Charges a card, and records it with its refund; returns the effect's id."""
    status, body = post(bank, "/v1/charges", amount=700)
    header = ("--inverse-header", "Authorization: Bearer ${env:PAY_KEY}") if key else ()
    ran = cli.ok(
        "record", "http", "POST", f"{bank.url}/v1/charges", "--status", str(status), "--response-body", body,
        "--inverse-url", f"{bank.url}/v1/refunds", "--inverse-json", '{"charge": "{response.body.id}"}',
        *header, *more, "--json", env=env,
    )  # fmt: skip
    return ran.json["effect"]["id"]


def effects(cli, *filter: str) -> list[dict[str, Any]]:
    return cli.ok("effects", "--json", *filter).json["effects"]


def state(cli, id: str) -> str:
    return next(e["state"] for e in effects(cli) if e["id"] == id)


def bind(own_home: Path, bank: Payments, more: str = "") -> None:
    config = own_home / "config/takeback/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f'[credentials.PAY_KEY]\norigins = ["{bank.url}"]\n{more}')


@pytest.fixture
def mixed(changed, bank):
    """Files changed, then a charge, then another file."""
    changed.charge = charge(changed, bank)
    (changed.project / "later.py").write_text("later\n")
    return changed


# -- recording ------------------------------------------------------------------


def test_recording_puts_what_changed_before_it_before_it(mixed) -> None:
    rows = mixed.ok("log", "kind:effect", "--json").json["rows"]
    assert [(r["domain"], "src/new.py" in r["paths"]) for r in rows] == [("http", False), ("files", True)]


def test_what_is_recorded_names_its_inverse_exactly(cli, bank) -> None:
    _, body = post(bank, "/v1/charges", amount=5)
    words = ("record", "http", "POST", f"{bank.url}/v1/charges", "--status", "201", "--response-body", body)
    ran = cli.ok(*words, "--inverse-url", f"{bank.url}/v1/charges/{{response.body.id}}")
    assert f"taken back by DELETE {bank.url}/v1/charges/ch_1" in ran.out
    assert "· live" in ran.out


def test_the_same_answer_recorded_twice_is_one_effect_and_says_so(cli, bank) -> None:
    _, body = post(bank, "/v1/charges", amount=5)
    words = ("record", "http", "POST", f"{bank.url}/v1/charges", "--status", "201", "--response-body", body)
    words += ("--inverse-url", "/v1/refunds", "--inverse-json", '{"charge": "{response.body.id}"}')
    first, again = cli.ok(*words).out, cli.ok(*words).out
    (known,) = effects(cli)
    assert "already" not in first
    assert again == f"recorded already as {known['id'][:8]}: nothing was added\n{first}"
    assert charge(cli, bank) != known["id"] and len(effects(cli)) == 2, "another answer is another act"


def test_the_body_of_an_answer_comes_from_a_file_or_standard_input(cli, bank) -> None:
    (cli.project / "answer.json").write_text('{"id": "ch_7"}')
    words = ["record", "http", "POST", f"{bank.url}/v1/charges", "--inverse-url", f"{bank.url}/x/{{response.body.id}}"]
    shown = cli.ok(*words, "--response-body", "@answer.json", "--json").json["effect"]
    assert shown["inverse"] == f"DELETE {bank.url}/x/ch_7"
    done = subprocess.run(
        [sys.executable, "-m", "takeback", *words, "--response-body", "-", "--json"],
        input=b'{"id": "ch_8"}', capture_output=True, cwd=cli.project, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["effect"]["inverse"].endswith("/x/ch_8")
    assert cli(*words, "--response-body", "@missing").code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say what to record"),
        (["pigeon"], "nothing called 'pigeon'"),
        (["http", "POST"], "needs a method and a URL"),
        (["http", "POST", "ftp://x/y"], "http"),
        (["http", "POST", "URL", "--inverse-url", "https://elsewhere.example/x"], "elsewhere.example"),
        (["http", "POST", "URL", "--inverse-url", "URL/{response.body.id}"], "response.body.id"),
        (["http", "POST", "URL", "--inverse-url", "URL", "--inverse-header", "nonsense"], "'Name: value'"),
        (["http", "POST", "URL", "--inverse-url", "URL", "--inverse-header", "Authorization: Bearer abcdefghijklmnop"], "${env:"),
        (["http", "POST", "URL", "--inverse-url", "URL", "--inverse-json", "{"], "is no JSON"),
        (["http", "POST", "URL", "--status", "ok"], "--status needs a number"),
        (["http", "POST", "URL", "--inverse-url", "URL", "--expect", "yes"], "--expect needs numbers"),
        (["http", "POST", "URL", "--shell", "ls"], "--shell means nothing for record http"),
        (["command", "--did", "x"], "argv"),
        (["command", "--", "true"], "description"),
        (["command", "--did", "x", "rm", "x"], "stands before --"),
        (["command", "--did", "x", "--shell", "a", "--", "b"], "argv"),
        (["command", "--did", "x", "--depends-on", "kkkk", "--", "true"], "kkkk"),
        (["note"], "needs its text"),
        (["note", "x", "--status", "200"], "--status means nothing for record note"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_and_nothing_is_recorded(cli, bank, words: list[str], said: str) -> None:
    ran = cli("record", *[w.replace("URL", f"{bank.url}/v1/x") for w in words])
    assert ran.code == 2, ran
    assert said in ran.err and "→" in ran.err
    assert not effects(cli)


def test_a_command_is_recorded_and_taken_back(cli) -> None:
    made = cli.project.parent / "bucket"
    made.mkdir()
    ran = cli.ok("record", "command", "--did", "made a bucket", "--call", "call-7", "--", "rmdir", str(made), env={"TAKEBACK_ACTOR": "claude"})  # fmt: skip
    assert f"taken back by rmdir {made}" in ran.out
    shown = effects(cli)[0]
    by = {name: shown["by"][name] for name in ("surface", "actor", "call")}
    assert (shown["domain"], shown["state"], by) == (
        "command", "live", {"surface": "cli", "actor": "claude", "call": "call-7"},
    )  # fmt: skip
    ran = cli.typing("revert", shown["id"], answers=[(YES, "yes\n")], env=PLAIN)
    assert ran.code == 0 and not made.exists()
    assert "by claude" in ran.out and "call-7" in ran.out
    assert state(cli, shown["id"]) == "undone"


def test_a_note_is_irreversible_and_says_what_is_left_to_do(cli) -> None:
    ran = cli.ok("record", "note", "rotated", "the key", "--left-to-do", "tell the partners", "--json")
    assert ran.json["effect"]["state"] == "irreversible" and ran.json["effect"]["summary"] == "rotated the key"
    ran = cli("rollback", "--yes")
    assert ran.code == 3
    assert "irreversible: tell the partners" in ran.out


def test_a_request_that_was_refused_has_nothing_to_take_back(cli, bank) -> None:
    words = ("record", "http", "POST", f"{bank.url}/v1/charges", "--inverse-url", f"{bank.url}/v1/refunds")
    assert cli.ok(*words, "--status", "402", "--json").json["effect"]["state"] == "failed"
    assert cli.ok("compensate").out.startswith("nothing to take back")


# -- what it looks like -----------------------------------------------------------


def test_a_plan_shows_each_step_with_its_exact_request_and_where_it_came_from(mixed, bank) -> None:
    ran = mixed.ok("rollback", "--dry-run")
    lines = ran.out.splitlines()
    assert lines[0].endswith("· 5 steps, newest first")
    assert [line.split()[0] for line in lines[1:4]] == ["files", "http", "compensates"]
    assert lines[2].strip() == f'http   ↩  POST {bank.url}/v1/refunds {{"charge": "ch_1"}}'
    assert lines[3].strip().startswith(f"compensates POST {bank.url}/v1/charges")
    assert lines[4].strip() == "by hand, just now, through cli"
    assert lines[-1] == "4 exact · 1 compensating"


def test_steps_of_outside_effects_as_json(mixed, bank) -> None:
    plan = mixed.ok("rollback", "--dry-run", "--json").json["plan"]
    step = next(s for s in plan["steps"] if s["domain"] == "http")
    assert step["effect"] == mixed.charge
    assert step["target"] == f"{bank.url}/v1/charges/ch_1"
    assert step["summary"] == f'POST {bank.url}/v1/refunds {{"charge": "ch_1"}}'
    assert step["verdict"] == "compensating"
    assert plan["totals"] == {"exact": 4, "compensating": 1}
    assert [s["domain"] for s in plan["steps"]] == ["files", "http", "files", "files", "files"]


def test_the_ledger_is_the_log_of_what_is_outside(mixed, bank) -> None:
    assert mixed.ok("effects").out == mixed.ok("log", "--outside").out
    assert mixed.ok("effects", "--json").json == mixed.ok("log", "--outside", "--json").json
    (shown,) = effects(mixed)
    wanted = {"id", "number", "domain", "state", "summary", "target", "undoes", "at", "by", "verdict"}
    assert wanted <= set(shown)
    assert shown["undoes"] is None and shown["verdict"] == "compensating"


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ("domain:http", 1), ("domain:files", 0), ("state:live", 1), ("state:undone", 0), ("verdict:compensating", 1),
        ("-state:live", 0), ("since:1h", 1), ("charges", 1), ("actor:claude", 0),
    ],
)  # fmt: skip
def test_the_filter_knows_domain_verdict_and_state(mixed, filter: str, found: int) -> None:
    assert len(effects(mixed, "--", filter)) == found
    rows = mixed.ok("log", "kind:effect", "--json", "--", filter).json["rows"]
    assert sum(r["domain"] == "http" for r in rows) == found


def test_a_state_that_does_not_exist_is_named(cli) -> None:
    ran = cli("log", "state:lost")
    assert ran.code == 2 and "the states are live, undone" in ran.err


def test_show_says_everything_of_one(mixed, bank) -> None:
    issue = mixed.ok(
        "record", "command", "--did", "opened an issue", "--depends-on", mixed.charge, "--probe-argv", "test -e x",
        "--probe-expect", "1", "--probe-gone", "0", "--", "rm", "-f", "x", "--json",
    )  # fmt: skip
    assert issue.code == 0
    out = mixed.ok("show", mixed.charge).out
    for part in ("domain   http", "state    live", f"target   {bank.url}/v1/charges/ch_1", "by       surface cli",
                 "status: 201", f'inverse  POST {bank.url}/v1/refunds {{"charge": "ch_1"}}', "carries  "):  # fmt: skip
        assert part in out, part
    shown = mixed.ok("show", mixed.charge, "--json").json
    assert shown["did"]["status"] == 201 and shown["undos"] == [] and len(shown["carries"]) == 1
    later = mixed.ok("show", shown["carries"][0], "--json").json
    assert later["depends_on"] == [mixed.charge] and later["probe"]["expect"] == [1]


def test_show_and_log_of_a_take_back_across_domains(mixed, bank) -> None:
    mixed.typing("rollback", "start", answers=[(ASK, "y\n"), (YES, "yes\n")], env=PLAIN)
    row = mixed.ok("log", "-n", "1", "--json").json["rows"][0]
    assert row["kind"] == "takeback" and row["summary"].endswith("4 paths, 1 outside the files")
    out = mixed.ok("show", row["id"]).out
    assert f"took     POST {bank.url}/v1/charges → 201 of {mixed.charge[:8]}" in out
    assert "sent     " in out and ", done" in out
    shown = mixed.ok("show", mixed.charge, "--json").json
    assert shown["state"] == "undone" and shown["undone_by"] == [row["id"]]
    assert [u["result"] for u in shown["undos"]] == ["done"]


def test_status_counts_what_stands_outside_and_names_the_next_command(mixed) -> None:
    ran = mixed.ok("status")
    assert "outside the files: 1 live (takeback effects)" in ran.out
    assert "takeback effects" in ran.err
    assert mixed.ok("status", "--json").json["outside"] == {"live": 1}


def test_hostile_text_cannot_steer_the_terminal(cli) -> None:
    cli.ok("record", "command", "--did", "\x1b[2Jgone\u202e", "--", "echo", "\x1b]0;title\x07")
    id = cli("effects", "--json").json["effects"][0]["id"]
    for words in (["effects"], ["log"], ["show", id], ["rollback", "--dry-run"], ["compensate"]):
        out = cli.ok(*words).out
        assert "\x1b" not in out and "\u202e" not in out, words


# -- approval ---------------------------------------------------------------------


def test_files_by_a_letter_and_the_outside_by_a_word(mixed, bank, contents) -> None:
    ran = mixed.typing("rollback", "start", answers=[(ASK, "y\n"), (YES, "yes\n")], env=PLAIN)
    assert ran.code == 0
    listed = ran.out.partition(ASK)[2]
    assert "Outside the files · 1 step" in listed and f'POST {bank.url}/v1/refunds {{"charge": "ch_1"}}' in listed
    assert "took back 4 files: " in ran.out and "and 1 effect outside the files: POST" in ran.out
    assert bank.ledger()["balance"] == 0 and len(bank.refunds) == 1
    assert "later.py" not in contents() and contents()["src/legacy.py"] == b"old\n"


@pytest.mark.parametrize("answer", ["y\n", "\n", "no\n", "yes please\n", "\x04"])
def test_only_the_whole_word_does_it_and_a_no_changes_nothing(mixed, bank, contents, answer: str) -> None:
    before = contents()
    ran = mixed.typing("rollback", "start", answers=[(ASK, "y\n"), (YES, answer)], env=PLAIN)
    assert ran.code == 4
    assert "nothing was changed" in ran.out and "takeback rollback start --only files" in ran.out
    assert contents() == before and not bank.refunds
    assert state(mixed, mixed.charge) == "live"


def test_a_plan_that_only_acts_outside_asks_once(mixed, bank) -> None:
    ran = mixed.typing("compensate", "--execute", answers=[(YES, "yes\n")], env=PLAIN)
    assert ran.code == 0 and ASK not in ran.out
    assert len(bank.refunds) == 1
    assert "take this back" not in ran.out, "a refund is not redone"


@pytest.mark.parametrize("verb", ["rollback", "undo", "compensate --execute", "revert ID"])
@pytest.mark.parametrize("json_too", [False, True])
def test_yes_covers_files_only(mixed, bank, contents, verb: str, json_too: bool) -> None:
    before = contents()
    words = verb.replace("ID", mixed.charge).split()
    ran = mixed(*words, "--yes", *(["--json"] if json_too else []))
    assert ran.code == 4
    assert "1 step outside the files needs a person's yes" in ran.err
    assert "takeback approve " in ran.err and "takeback apply " in ran.err
    assert contents() == before and not bank.refunds
    if json_too:
        assert ran.json["applied"] is False and ran.json["error"]["code"] == 4 and ran.json["plan"]["id"]
    if verb == "rollback":
        assert "--only files" in ran.err


def test_without_a_terminal_and_without_yes_nothing_is_done_either(mixed, bank) -> None:
    ran = mixed("rollback")
    assert ran.code == 4 and not bank.refunds
    assert "takeback approve" in ran.err


def test_only_files_needs_no_approval_and_leaves_the_rest(mixed, bank, contents) -> None:
    mixed.ok("rollback", "--only", "files", "--yes")
    assert "later.py" not in contents() and not bank.refunds
    assert state(mixed, mixed.charge) == "live"


def test_except_leaves_a_domain_out(mixed, bank, contents) -> None:
    mixed.ok("record", "command", "--did", "x", "--", "true")
    plan = mixed.ok("rollback", "--except", "files,command", "--dry-run", "--json").json["plan"]
    assert [s["domain"] for s in plan["steps"]] == ["http"]
    assert mixed("rollback", "--only", "pigeons").code == 2
    assert mixed("rollback", "--only", ",").code == 2


def test_compensate_is_dry_until_told(mixed, bank) -> None:
    ran = mixed.ok("compensate")
    assert "Take back what stands outside the files · 1 step" in ran.out
    assert "takeback compensate --execute" in ran.err and not bank.refunds
    assert mixed.ok("compensate", "--json").json["applied"] is False


def test_compensate_goes_back_to_a_checkpoint(mixed, bank) -> None:
    mixed.ok("checkpoint", "between")
    second = charge(mixed, bank)
    plan = mixed.ok("compensate", "--to", "between", "--json").json["plan"]
    assert [s["effect"] for s in plan["steps"]] == [second]
    assert len(mixed.ok("compensate", "--json").json["plan"]["steps"]) == 2


def test_approve_then_apply_from_anywhere_once(mixed, bank) -> None:
    id = mixed.ok("plan", "rollback", "--json").json["plan"]["id"]
    early = mixed("apply", id)
    assert early.code == 4 and f"takeback approve {id}" in early.err and not bank.refunds
    ran = mixed.typing("approve", id[:8], answers=[(YES, "yes\n")], env=PLAIN)
    assert ran.code == 0 and "approved, for once" in ran.out and not bank.refunds
    mixed.ok("apply", id[:8])
    assert len(bank.refunds) == 1
    mixed("apply", id[:8])
    assert len(bank.refunds) == 1, "an approval is for once"


def test_a_declined_approval_is_none(mixed, bank) -> None:
    id = mixed.ok("plan", "compensate", "--json").json["plan"]["id"]
    ran = mixed.typing("approve", id, answers=[(YES, "y\n")], env=PLAIN)
    assert ran.code == 4 and "not approved" in ran.out
    assert mixed("apply", id).code == 4 and not bank.refunds


@pytest.mark.parametrize("more", [[], ["--yes"], ["--json"]])
def test_approve_needs_a_terminal(mixed, bank, more: list[str]) -> None:
    id = mixed.ok("plan", "rollback", "--json").json["plan"]["id"]
    ran = mixed("approve", id, *more)
    assert ran.code == 4 and "a person at a terminal" in ran.err
    assert mixed("apply", id).code == 4


def test_yes_does_not_answer_for_the_person_at_a_terminal(mixed, bank) -> None:
    id = mixed.ok("plan", "rollback", "--json").json["plan"]["id"]
    ran = mixed.typing("approve", id, "--yes", answers=[(YES, "no\n")], env=PLAIN)
    assert ran.code == 4
    assert mixed.typing("rollback", "start", "--yes", env=PLAIN).code == 4 and not bank.refunds


def test_an_approved_plan_that_would_do_something_else_is_stale(mixed, bank) -> None:
    id = mixed.ok("plan", "rollback", "--json").json["plan"]["id"]
    mixed.typing("approve", id, answers=[(YES, "yes\n")], env=PLAIN)
    charge(mixed, bank)
    ran = mixed("apply", id)
    assert ran.code == 4 and "stale" in ran.err and not bank.refunds


def test_what_others_do_elsewhere_does_not_make_an_approved_plan_stale(mixed, bank) -> None:
    id = mixed.ok("plan", "revert", mixed.charge, "--json").json["plan"]["id"]
    mixed.typing("approve", id, answers=[(YES, "yes\n")], env=PLAIN)
    (mixed.project / "unrelated.py").write_text("x\n")
    mixed.ok("apply", id)
    assert len(bank.refunds) == 1


# -- credentials --------------------------------------------------------------------


CREDENTIAL = "Type yes to send the value of PAY_KEY to "


def test_an_unbound_credential_is_a_question_of_its_own(cli, bank) -> None:
    id = charge(cli, bank, key=True)
    asked = [(YES, "yes\n"), (CREDENTIAL + bank.url, "yes\n")]
    ran = cli.typing("revert", id, answers=asked, env=PLAIN)
    assert ran.code == 0 and "PAY_KEY is bound to no place" in ran.out
    sent = [headers for method, path, headers, _ in bank.requests if path == "/v1/refunds"]
    assert any(f"Bearer {KEY}" in str(headers) for headers in sent)
    assert KEY not in ran.out


def test_a_no_to_the_credential_sends_nothing(cli, bank) -> None:
    id = charge(cli, bank, key=True)
    ran = cli.typing("revert", id, answers=[(YES, "yes\n"), (CREDENTIAL, "y\n")], env=PLAIN)
    assert ran.code == 4 and not bank.refunds


def test_policy_of_allow_does_not_let_a_credential_go(cli, bank, own_home) -> None:
    id = charge(cli, bank, key=True)
    bind(own_home, bank, '[policy.http]\ncompensating = "allow"\n')
    config = own_home / "config/takeback/config.toml"
    bound = config.read_text()
    config.write_text('[policy.http]\ncompensating = "allow"\n')
    ran = cli("revert", id, "--yes", env=PLAIN)
    assert ran.code == 4 and f"sending PAY_KEY to {bank.url} needs a person's yes" in ran.err and not bank.refunds
    config.write_text(bound)
    cli.ok("revert", id, "--yes", env=PLAIN)
    assert len(bank.refunds) == 1


def test_a_credential_that_is_not_set_is_said_so_beforehand(cli, bank) -> None:
    charge(cli, bank, key=True)
    assert "PAY_KEY is not set" in cli.ok("compensate").out
    assert "PAY_KEY is not set" not in cli.ok("compensate", env=PLAIN).out


# -- policy ---------------------------------------------------------------------------


def test_policy_of_allow_runs_with_yes_and_a_project_cannot_grant_it(mixed, bank, own_home) -> None:
    (mixed.project / ".takeback.toml").write_text('[policy.http]\ncompensating = "allow"\n')
    assert mixed("revert", mixed.charge, "--yes").code == 4 and not bank.refunds
    bind(own_home, bank, '[policy.http]\ncompensating = "allow"\n')
    mixed.ok("revert", mixed.charge, "--yes")
    assert len(bank.refunds) == 1


def test_a_project_may_refuse(mixed, bank, own_home) -> None:
    bind(own_home, bank, '[policy.http]\ncompensating = "allow"\n')
    (mixed.project / ".takeback.toml").write_text('[policy.http]\ncompensating = "refuse"\n')
    ran = mixed("revert", mixed.charge, "--yes")
    assert ran.code == 3 and not bank.refunds
    assert "refused by policy ([policy.http] compensating)" in ran.out


def test_policy_check_explains_each_decision_and_its_source(cli, bank, own_home) -> None:
    bind(own_home, bank, '[policy]\nautopilot = true\n[policy.http]\ncompensating = "allow"\n')
    (cli.project / ".takeback.toml").write_text(
        '[policy.command]\ncompensating = "refuse"\n[policy.http]\nexact = "allow"\n'
    )
    ran = cli.ok("policy", "check", "--json")
    found = {(r["domain"], r["verdict"]): (r["decision"], r["source"]) for r in ran.json["policy"]}
    config = own_home / "config/takeback/config.toml"
    assert found["http", "compensating"] == ("allow", f"[policy.http] compensating in {config}")
    assert found["command", "compensating"] == ("refuse", "[policy.command] compensating in .takeback.toml")
    assert found["email", "irreversible"] == ("refuse", f"autopilot in {config}")
    assert found["python", "exact"] == ("ask", "default")
    assert len(ran.json["ignored"]) == 1 and "looser" in ran.json["ignored"][0]
    one = cli.ok("policy", "check", "http", "compensating").out
    assert "allow" in one and "runs without a person" in one
    assert cli("policy", "check", "http", "lost").code == 2 and cli("policy", "paint").code == 2


# -- at most once ----------------------------------------------------------------------


def unknown(cli, bank: Payments, *more: str) -> str:
    """A charge whose refund was sent, and whose answer never came."""
    id = charge(cli, bank, *more)
    bank.misbehave("reset")
    ran = cli.typing("revert", id, answers=[(YES, "yes\n")], env=PLAIN)
    assert ran.code == 3, ran
    assert f"takeback resolve {id[:8]} --undone or --not-undone" in ran.out
    assert "nobody knows what came of POST" in ran.out
    return id


def test_an_unknown_undo_is_shown_so_and_never_sent_again_by_itself(cli, bank) -> None:
    id = unknown(cli, bank)
    assert state(cli, id) == "unknown" and len(bank.refunds) == 1
    undo = next(e for e in effects(cli) if e["undoes"] == id)
    assert undo["state"] == "unknown"
    assert "? " in cli.ok("rollback", "--dry-run").out
    ran = cli("compensate", "--execute", "--yes")
    assert ran.code == 3 and "unknown" in ran.out
    assert bank.asked("POST", "/v1/refunds") == 1
    assert "1 unknown" in cli.ok("status").out and "takeback resolve" in cli("status").err


@pytest.mark.parametrize("by_undo", [False, True])
def test_resolve_undone(cli, bank, by_undo: bool) -> None:
    id = unknown(cli, bank)
    name = next(e["id"] for e in effects(cli) if e["undoes"] == id) if by_undo else id
    assert cli.ok("resolve", name[:10], "--undone", "--json").json["effect"]["state"] == "undone"
    assert cli.ok("compensate").out.startswith("nothing to take back")
    again = cli("resolve", id, "--undone")
    assert again.code == 2 and "not in doubt" in again.err


def test_the_id_of_an_attempt_is_known_to_every_verb(cli, bank) -> None:
    id = unknown(cli, bank)
    attempt = next(e["id"] for e in effects(cli) if e["undoes"] == id)
    assert f"id       {id}" in cli.ok("show", attempt[:8]).out
    for verb in ("revert", "rollback", "undo"):
        ran = cli(verb, attempt[:8], "--dry-run")
        assert (
            ran.code == 2
            and f"is what was sent to undo {id[:8]}" in ran.err
            and f"name the effect, {id[:8]}" in ran.err
        )


def test_resolve_not_undone_lets_it_be_sent_again_after_approval(cli, bank) -> None:
    id = charge(cli, bank)
    bank.misbehave("drop")
    cli.typing("revert", id, answers=[(YES, "yes\n")], env=PLAIN)
    assert state(cli, id) == "unknown" and not bank.refunds
    ran = cli.ok("resolve", id, "--not-undone")
    assert "may be taken back again" in ran.out
    assert cli("revert", id, "--yes").code == 4, "a person's word on the past is no yes to what comes"
    cli.typing("revert", id, answers=[(YES, "yes\n")], env=PLAIN)
    assert len(bank.refunds) == 1 and state(cli, id) == "undone"


@pytest.mark.parametrize("words", [[], ["--undone", "--not-undone"], ["--happened"], ["--did-not-happen"]])
def test_resolve_wants_one_that_fits_the_doubt(cli, bank, words: list[str]) -> None:
    """An undo was sent: whether the charge happened is not what is in doubt."""
    id = unknown(cli, bank)
    ran = cli("resolve", id, *words)
    assert ran.code == 2 and f"takeback resolve {id[:8]} --undone or --not-undone" in ran.err
    assert state(cli, id) == "unknown"


@pytest.mark.parametrize("word", ["--done", "--not-done"])
def test_resolve_refuses_the_words_of_before_and_names_the_new_ones(cli, bank, word: str) -> None:
    id = unknown(cli, bank)
    ran = cli("resolve", id, word)
    assert ran.code == 2 and state(cli, id) == "unknown"
    for new in ("--happened", "--did-not-happen", "--undone", "--not-undone"):
        assert new in ran.err


def test_the_hint_after_an_irreversible_one_is_the_command_that_gives_it_an_inverse(cli, bank) -> None:
    _, body = post(bank, "/v1/charges", amount=5)
    words = ("record", "http", "POST", f"{bank.url}/v1/charges", "--status", "201", "--response-body", body)
    ran = cli.ok(*words)
    (made,) = effects(cli)
    how = f"takeback record http --for {made['id'][:8]} --inverse-method METHOD --inverse-url URL"
    assert how in ran.err and how in cli.ok("show", made["id"]).out and how in cli("rollback", "--yes").err
    given = ("--inverse-url", "/v1/refunds", "--inverse-json", '{"charge": "ch_1"}')
    cli.ok("record", "http", "--for", made["id"][:8], "POST", f"{bank.url}/v1/charges", *given)
    assert [(e["id"], e["state"]) for e in effects(cli)] == [(made["id"], "live")]
    cli.typing("revert", made["id"], answers=[(YES, "yes\n")], env=PLAIN)
    assert len(bank.refunds) == 1 and state(cli, made["id"]) == "undone"
    again = cli("record", "http", "--for", made["id"][:8], "POST", f"{bank.url}/v1/charges", *given)
    assert again.code == 2 and "taken back already" in again.err
    assert cli("record", "note", "x", "--for", made["id"]).code == 2


def lost(cli, bank: Payments, *more: str) -> str:
    """A charge that was sent, and whose answer never came."""
    words = ("record", "http", "POST", f"{bank.url}/v1/charges", "--status", "none", *more, "--json")
    return str(cli.ok(*words).json["effect"]["id"])


def test_a_charge_that_stands_is_noted_as_one_that_stands(cli, bank) -> None:
    id = lost(cli, bank)
    said = f"takeback resolve {id[:8]} --happened or --did-not-happen"
    assert said in cli.ok("show", id).out and said in cli("status").err and said in cli.ok("rollback", "--dry-run").out
    for wrong in ("--undone", "--not-undone"):
        ran = cli("resolve", id, wrong)
        assert ran.code == 2 and said in ran.err and state(cli, id) == "unknown"
    ran = cli.ok("resolve", id, "--happened")
    assert "happened, and stands" in ran.out and "nothing takes it back" in ran.err
    assert state(cli, id) == "irreversible"


def test_what_did_not_happen_needs_no_undo(cli, bank) -> None:
    id = lost(cli, bank)
    assert "there is nothing to take back" in cli.ok("resolve", id, "--did-not-happen").out
    assert state(cli, id) == "failed" and cli.ok("rollback", "--dry-run").out.startswith("nothing to take back")


def test_what_did_not_happen_stays_on_record_and_can_be_shown(cli, bank) -> None:
    id = lost(cli, bank)
    cli.ok("resolve", id, "--did-not-happen")
    assert "state    failed" in cli.ok("show", id).out
    (told,) = [line for line in cli.ok("log").out.splitlines() if "/v1/charges" in line]
    assert told.endswith("· failed") and "taken back" not in told
    (row,) = cli.ok("log", "--json", "state:failed").json["rows"]
    assert (row["id"], row["live"]) == (id, False)
    assert "nothing to take back" in cli("revert", id).err
    report = cli.ok("report", "--json").json
    assert [e["verdict"] for turn in report["turns"] for e in turn["effects"]] == ["failed"] and not report["remains"]
    assert report["totals"]["taken_back"] == 0
    assert "1 effect and" in cli("forget").out


def test_a_request_that_was_refused_is_shown_too(cli, bank) -> None:
    made = cli.ok("record", "http", "POST", f"{bank.url}/v1/charges", "--status", "402", "--json").json["effect"]
    assert "state    failed" in cli.ok("show", made["id"]).out and "· failed" in cli.ok("log").out


def test_the_result_of_what_happened_completes_its_undo(cli, bank) -> None:
    """Its id was never heard, so the refund could not be made: whoever finds the charge says which it is."""
    post(bank, "/v1/charges", amount=5)
    more = ("--inverse-url", "/v1/refunds", "--inverse-json", '{"charge": "{response.body.id}"}')
    id = lost(cli, bank, *more)
    assert f"takeback resolve {id[:8]} --happened --result JSON or --did-not-happen" in cli.ok("show", id).out
    ran = cli("resolve", id, "--happened", "--result", '{"number": 1}')
    assert ran.code == 2 and "{result.id}" in ran.err and state(cli, id) == "unknown"
    assert cli("resolve", id, "--did-not-happen", "--result", "{}").code == 2
    assert cli("resolve", id, "--happened", "--result", "{id}").code == 2
    cli.ok("resolve", id, "--happened", "--result", '{"id": "ch_1"}')
    assert state(cli, id) == "live"
    cli.typing("revert", id, answers=[(YES, "yes\n")], env=PLAIN)
    assert [each["charge"] for each in bank.refunds.values()] == ["ch_1"] and state(cli, id) == "undone"


def test_a_failed_undo_says_so_and_may_be_run_again(cli, bank) -> None:
    _, body = post(bank, "/v1/charges", amount=5)
    words = ("record", "http", "POST", f"{bank.url}/v1/charges", "--status", "201", "--response-body", body)
    id = cli.ok(*words, "--inverse-url", f"{bank.url}/v1/refunds", "--inverse-json", '{"charge": "ch_99"}', "--json").json["effect"]["id"]  # fmt: skip
    ran = cli.typing("revert", id, answers=[(YES, "yes\n")], env=PLAIN)
    assert ran.code == 3 and "failed: POST" in ran.out and "run it again" in ran.out
    assert state(cli, id) == "live"
    assert [e["state"] for e in effects(cli) if e["undoes"] == id] == ["failed"]


def test_taking_back_twice_does_nothing_more(mixed, bank) -> None:
    mixed.typing("rollback", "start", answers=[(ASK, "y\n"), (YES, "yes\n")], env=PLAIN)
    for words in (["rollback", "start", "--yes"], ["compensate", "--execute", "--yes"]):
        ran = mixed.ok(*words)
        assert ran.out.startswith("nothing to take back")
    assert bank.asked("POST", "/v1/refunds") == 1
    undo = next(e for e in effects(mixed) if e["undoes"] == mixed.charge)
    assert undo["state"] == "irreversible"


def test_redo_brings_files_back_and_says_what_it_does_not(mixed, bank, contents) -> None:
    mixed.typing("rollback", "start", answers=[(ASK, "y\n"), (YES, "yes\n")], env=PLAIN)
    ran = mixed("redo", "--yes")
    assert ran.code == 3 and "which is not done again" in ran.out
    assert contents()["later.py"] == b"later\n" and len(bank.charges) == 1


def test_results_as_json(mixed, bank, own_home) -> None:
    bind(own_home, bank, '[policy.http]\ncompensating = "allow"\n')
    ran = mixed.ok("rollback", "--yes", "--json").json
    result = next(r for r in ran["results"] if r["domain"] == "http")
    assert result["result"] == "done" and result["effect"] == mixed.charge
    assert result["target"] == f"{bank.url}/v1/charges/ch_1"
    assert ran["counts"] == {"done": 5, "kept": 0, "failed": 0}


def test_unknown_is_counted(cli, bank, own_home) -> None:
    bind(own_home, bank, '[policy.http]\ncompensating = "allow"\n')
    id = charge(cli, bank)
    bank.misbehave("500")
    ran = cli("revert", id, "--yes", "--json")
    assert ran.code == 3 and ran.json["counts"]["unknown"] == 1


def test_reverting_what_a_later_one_stands_on_says_so_and_offers_the_tail(cli, bank) -> None:
    first = charge(cli, bank)
    cli.ok("record", "command", "--did", "shipped it", "--depends-on", first, "--", "true")
    out = cli.ok("revert", first, "--dry-run").out
    assert "stands on it and stays" in out and f"takeback rollback {first[:8]}" in out


# -- whose --------------------------------------------------------------------------


def test_undo_takes_an_actors_turn_across_domains(cli, bank, own_home, contents) -> None:
    bind(own_home, bank, '[policy.http]\ncompensating = "allow"\n')
    claude = {"TAKEBACK_ACTOR": "claude"}
    (cli.project / "by-claude.py").write_text("x\n")
    cli.ok("track", "by-claude.py", env=claude)
    id = charge(cli, bank, env=claude)
    (cli.project / "by-me.py").write_text("y\n")
    plan = cli.ok("undo", "--dry-run", "--json").json["plan"]
    assert {s["target"] for s in plan["steps"]} == {"by-claude.py", f"{bank.url}/v1/charges/ch_1"}
    cli.ok("undo", "--yes")
    assert state(cli, id) == "undone" and "by-me.py" in contents() and "by-claude.py" not in contents()


def test_rollback_asks_about_what_people_did_outside_and_an_actor_narrows_it(cli, bank) -> None:
    claude = {"TAKEBACK_ACTOR": "claude"}
    (cli.project / "by-claude.py").write_text("x\n")
    cli.ok("checkpoint", env=claude)
    theirs = charge(cli, bank, env=claude)
    mine = charge(cli, bank)
    for words, found in (([], {theirs}), (["--all"], {theirs, mine}), (["--actor", "claude"], {theirs})):
        plan = cli.ok("rollback", "start", *words, "--dry-run", "--json").json["plan"]
        assert {s["effect"] for s in plan["steps"] if s["domain"] == "http"} == found
    out = cli.ok("rollback", "start", "--actor", "claude", "--dry-run").out
    assert "left as it is, others' work: POST" in out
    assert "left as it is, people's work: POST" in cli.ok("rollback", "start", "--dry-run").out


def test_keeping_peoples_work_keeps_what_they_did_outside(cli, tmp_path: Path) -> None:
    torn = tmp_path / "torn"
    (cli.project / "by-claude.py").write_text("x\n")
    cli.ok("checkpoint", env={"TAKEBACK_ACTOR": "claude"})
    cli.ok("record", "command", "--did", "made bucket p", "--", "touch", str(torn))
    (cli.project / "mine.txt").write_text("x\n")
    told = cli.typing("rollback", "start", answers=[("k keep it", "k\n")])
    plan, _, came = told.out.partition("Apply?")
    assert "asked about, people's work" in plan and f"touch {torn}" in plan.partition("asked about")[2]
    assert "kept people's work: made bucket p (" in came and "mine.txt" in came
    assert not torn.exists() and (cli.project / "mine.txt").exists() and not (cli.project / "by-claude.py").exists()


# -- what an agent may not do ------------------------------------------------------------


PERSONS = (["approve", "PLAN"], ["resolve", "ID", "--undone"], ["prune", "--all", "--yes"], ["repair", "--yes"],
           ["config", "confirm", "--yes"])  # fmt: skip


@pytest.mark.parametrize("words", PERSONS, ids=lambda words: words[0])
@pytest.mark.parametrize("how", ["environment", "session"])
def test_what_only_a_person_may_do_is_refused_below_an_agent(mixed, bank, words: list[str], how: str) -> None:
    import takeback
    from takeback.system.processes import started

    (mixed.project / ".takebackignore").write_text("*.py\n")
    plan = mixed.ok("plan", "compensate", "--json").json["plan"]["id"]
    words = [w.replace("PLAN", plan).replace("ID", mixed.charge) for w in words]
    if how == "session":
        with takeback.open(mixed.project) as ws:
            ws.note_session(os.getpid(), started(os.getpid()), "codex")
    ran = mixed.typing(*words, env={**PLAIN, **({"CLAUDECODE": "1"} if how == "environment" else {})})
    assert ran.code == 4, ran
    assert "is for a person" in ran.out and "in a terminal of your own" in ran.out
    assert ("Claude Code" if how == "environment" else f"process {os.getpid()} is its session") in ran.out


def test_an_agent_at_a_terminal_of_its_own_cannot_say_yes_to_what_is_outside(mixed, bank, contents) -> None:
    before = contents()
    ran = mixed.typing("rollback", "start", answers=[(ASK, "y\n")], env={**PLAIN, "CLAUDECODE": "1"})
    assert ran.code == 4 and "acting outside the files is for a person" in ran.out
    assert contents() == before and not bank.refunds


def test_an_agent_still_plans_and_takes_files_back(mixed, bank, contents) -> None:
    agent = {"CLAUDECODE": "1"}
    assert mixed.ok("plan", "rollback", "--json", env=agent).json["plan"]["id"]
    mixed.ok("rollback", "--only", "files", "--yes", env=agent)
    assert "later.py" not in contents() and not bank.refunds
    mixed.ok("prune", "--keep", "1", "--dry-run", env=agent)


# -- secrets -----------------------------------------------------------------------------


def test_no_secret_reaches_the_journal_or_the_screen(cli, bank, store_folder) -> None:
    token = "ghp_" + "a1B2" * 9
    env = {**PLAIN, "TAKEBACK_ACTOR": "claude"}
    cli.ok("record", "note", "used", token, "--left-to-do", f"revoke {token}", env=env)
    cli.ok("record", "command", "--did", f"logged in with {token}", "--", "true", env=env)
    id = charge(cli, bank, "--request-body", f"key={token}", key=True, env=env)
    cli.typing("revert", id, answers=[(YES, "yes\n"), (CREDENTIAL, "yes\n")], env=env)
    shown = "".join(
        cli(*words, env=env).out for words in (["effects", "--json"], ["log"], ["show", id], ["show", id, "--json"])
    )
    for secret in (token, KEY):
        assert secret not in shown
        assert not [p for p in store_folder().rglob("*") if p.is_file() and secret.encode() in p.read_bytes()]


# -- what is approved has been seen, and what is said names it ----------------------


def test_a_question_lists_the_probe_and_the_whole_body(cli, bank) -> None:
    end = "the very end of it"
    body = json.dumps({"charge": "ch_1", "note": "x" * 3000 + end})
    id = charge(cli, bank, "--inverse-json", body, "--probe-url", f"{bank.url}/v1/hidden", "--probe-expect", "404")
    flat = "".join(cli.ok("show", id).out.split())
    assert end.replace(" ", "") in flat and f"probe:GET{bank.url}/v1/hidden" in flat
    assert end in cli.ok("compensate", "--json").json["plan"]["steps"][0]["summary"]
    assert end not in cli.ok("compensate").out, "the overview is short"
    ran = cli.typing("revert", id, answers=[(YES, "no\n")], env=PLAIN)
    asked = "".join(ran.out.partition("Outside the files")[2].split())
    assert end.replace(" ", "") in asked and f"probe:GET{bank.url}/v1/hidden" in asked


def test_what_failed_is_the_inverse_and_every_line_has_its_id(cli, bank) -> None:
    id = charge(cli, bank, "--inverse-json", '{"charge": "ch_99"}')
    ran = cli.typing("revert", id, answers=[(YES, "yes\n")], env={**PLAIN, "COLUMNS": "400"})
    assert f"failed: POST {bank.url}/v1/refunds" in ran.out
    assert f"to take back POST {bank.url}/v1/charges → 201 ({id[:8]}): refused with 400" in ran.out
    good = charge(cli, bank)
    ran = cli.typing("revert", good, answers=[(YES, "yes\n")], env=PLAIN)
    assert f"({good[:8]})" in ran.out.rpartition("took back")[2]


def test_what_a_take_back_did_not_do_is_in_the_log_and_in_show(mixed, bank) -> None:
    on_top = charge(mixed, bank, "--inverse-json", '{"charge": "ch_99"}', "--depends-on", mixed.charge)
    back = mixed.typing("rollback", answers=[(ASK, "y\n"), (YES, "yes\n")], env=PLAIN)
    assert back.code == 3
    row = next(row for row in mixed.ok("log", "--json").json["rows"] if row["kind"] == "takeback")
    assert row["summary"].endswith("4 paths; 2 failed")
    shown = mixed.ok("show", row["id"]).out
    assert f"failed   POST {bank.url}/v1/charges → 201 of {on_top[:8]}: refused with 400" in shown
    assert f"of {mixed.charge[:8]}: not tried: {on_top[:8]} stands on it and was not taken back" in shown
    assert f" of {on_top[:8]}, failed: refused with 400" in shown
    told = mixed.ok("show", row["id"], "--json").json["not_done"]
    assert [(each["effect"], each["result"]) for each in told] == [(on_top, "failed"), (mixed.charge, "failed")]
    bank.misbehave("reset")
    mixed.typing("revert", on_top, answers=[(YES, "yes\n")], env=PLAIN)
    row = next(row for row in mixed.ok("log", "--json").json["rows"] if row["kind"] == "takeback")
    assert row["summary"] == "revert: nothing done; 1 unknown"
    shown = mixed.ok("show", row["id"]).out
    assert f"unknown  POST {bank.url}/v1/charges → 201 of {on_top[:8]}: " in shown and "  kept " not in shown


def test_a_redo_of_what_only_acted_outside_says_so_without_asking(cli, bank) -> None:
    id = charge(cli, bank)
    cli.typing("revert", id, answers=[(YES, "yes\n")], env=PLAIN)
    for words in ([], ["--yes"]):
        ran = cli("redo", *words)
        assert "needs a yes" not in ran.err
        if not words:
            assert ran.code == 3 and "not done again" in ran.out and id[:8] in ran.out
    assert len(bank.charges) == 1


def test_credentials_of_a_project_are_said_to_be_ignored(cli) -> None:
    (cli.project / ".takeback.toml").write_text('[credentials.KEY]\norigins = ["https://evil.example"]\n')
    assert "ignored: .takeback.toml sets credentials" in cli.ok("policy", "check").err


def test_a_label_holds_no_secret_and_is_not_endless(cli, store_folder) -> None:
    token = "ghp_" + "A1b2" * 9
    cli.ok("checkpoint", f"before {token}")
    assert token not in cli.ok("log").out and "before [redacted]" in cli.ok("log").out
    ran = cli("checkpoint", "x" * 1001)
    assert ran.code == 2 and "1,000 at most" in ran.err


def test_what_nobody_knows_whose_it_is_says_so_and_is_asked_about(cli, tmp_path: Path) -> None:
    """Recorded by a worker that was started before the turn, and gets its jobs from a queue."""
    jobs: queue.SimpleQueue[threading.Event] = queue.SimpleQueue()
    with takeback.open(cli.project) as ws:

        def work() -> None:
            done = jobs.get()
            ws.record_command("made a trace", argv=["rm", str(tmp_path / "trace")])
            done.set()

        worker = threading.Thread(target=work)
        worker.start()
        talk = takeback.Conversation(ws, "bob")
        (tmp_path / "trace").touch()
        with talk.turn("pay"):
            (cli.project / "note").write_text("paid")
            done = threading.Event()
            jobs.put(done)
            assert done.wait(30)
        worker.join(30)
        (act,) = ws.effects()
        assert act.among == {turn.number for turn in ws.history().agent_turns}
    assert "not known whose" in cli.ok("log").out and "shared" not in cli.ok("log").out
    assert "whose    not known" in cli.ok("show", act.id[:8]).out
    assert cli.ok("effects", "--json").json["effects"][0]["by"]["owner"] == "unknown"
    told = cli.ok("plan", "undo").out
    assert "uncertain work: made a trace" in told and f"takeback revert {act.id[:8]}" in told
    assert cli("undo", "--yes").code == 3, "what may be of the turn stays"
    assert not (cli.project / "note").exists() and (tmp_path / "trace").exists()
    assert "1 compensating" in cli.ok("plan", "revert", act.id[:8]).out  # by its name it goes
