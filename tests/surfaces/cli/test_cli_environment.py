"""What an undo needs of its environment: kept by name when it is recorded, taken when it runs, and where it is missing
nothing is begun."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_cli_outside import PLAIN, YES, bind, charge, effects, state

from servers.payments import Payments

SEND = "Type yes to send the value of"


@pytest.fixture
def bank() -> Iterator[Payments]:
    server = Payments().start()
    yield server
    server.stop()


@pytest.fixture
def psql(cli: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that writes down what it was called with, and where it was told to go."""
    folder = cli.project.parent / "bin"
    folder.mkdir()
    told = folder / "told"
    program = folder / "psql"
    program.write_text(f'#!/bin/sh\necho "$* at ${{PGHOST-none}}" >> {told}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return told


def recorded(cli: Any, *words: str, **env: str) -> str:
    ran = cli.ok("record", "command", "--did", "ran up.sql", "--json", *words, env=env)
    return str(ran.json["effect"]["id"])


def test_a_variable_that_the_command_names_is_kept_by_name_and_taken_when_it_runs(cli: Any, psql: Path) -> None:
    """`psql $DB -f x.sql` ran with $DB empty, and was called done."""
    id = recorded(cli, "--shell", "psql $DB -f down.sql", DB="postgres://shop")
    journal = b"".join(p.read_bytes() for p in (cli.project.parent).rglob("journal.db*"))
    assert b"postgres://shop" not in journal
    plan = cli.ok("compensate").out
    assert "with DB" in plan and "DB is not set" in plan
    answers = [(YES, "yes\n"), (f"{SEND} DB", "yes\n")]
    ran = cli.typing("revert", id, answers=[], env={"NO_COLOR": "1"})
    assert ran.code == 4 and "nothing was changed: DB is not set here" in ran.out and not psql.exists()
    assert "run the same again" in ran.out and "no new approval" not in ran.out, "nothing was approved"
    assert state(cli, id) == "live" and not [e for e in effects(cli) if e["undoes"]], "nothing was begun"
    empty = cli.typing("revert", id, answers=[], env={"NO_COLOR": "1", "DB": ""})
    assert empty.code == 4 and not psql.exists()
    cli.typing("revert", id, answers=answers, env={"NO_COLOR": "1", "DB": "postgres://shop"})
    assert psql.read_text() == "postgres://shop -f down.sql at none\n" and state(cli, id) == "undone"


def test_what_chooses_an_account_or_a_place_is_kept_where_it_was_set(cli: Any, psql: Path) -> None:
    id = recorded(cli, "--", "psql", "-f", "down.sql", PGHOST="db.staging")
    bare = recorded(cli, "--", "psql", "-f", "other.sql")
    plan = cli.ok("compensate", env={"PGHOST": "db.prod"}).out
    assert "psql -f down.sql (with PGHOST)" in plan and "PGHOST is db.prod here, and was db.staging" in plan
    assert "psql -f other.sql  " in plan
    same = cli.ok("compensate", env={"PGHOST": "db.staging"}).out
    assert "PGHOST is db.staging here" in same and "and was" not in same
    missing = cli.typing("revert", id, answers=[], env={"NO_COLOR": "1"})
    assert missing.code == 4 and "PGHOST is not set here" in missing.out and not psql.exists()
    cli.typing("revert", id, answers=[(YES, "yes\n")], env={"NO_COLOR": "1", "PGHOST": "db.staging"})
    cli.typing("revert", bare, answers=[(YES, "yes\n")], env={"NO_COLOR": "1", "PGHOST": "db.prod"})
    assert psql.read_text() == "-f down.sql at db.staging\n-f other.sql at none\n"


def test_a_secret_one_stays_a_reference_that_is_asked_about(cli: Any, psql: Path) -> None:
    id = recorded(cli, "--", "psql", "-f", "down.sql", PGPASSWORD="hunter2-hunter2", PGHOST="db")
    here = {"NO_COLOR": "1", "PGPASSWORD": "hunter2-hunter2", "PGHOST": "db"}
    plan = cli.ok("compensate", env=here).out
    assert "with PGHOST, PGPASSWORD" in plan and "hunter2" not in plan
    ran = cli.typing("revert", id, answers=[(YES, "yes\n"), (f"{SEND} PGPASSWORD to command://psql", "no\n")], env=here)
    assert ran.code == 4 and not psql.exists()
    assert "hunter2" not in cli.ok("show", id).out


def test_a_credential_that_is_missing_begins_nothing_and_the_approval_stands(
    cli: Any, bank: Any, own_home: Any
) -> None:
    bind(own_home, bank)
    id = charge(cli, bank, key=True)
    (cli.project / "later.py").write_text("later\n")
    plan = cli.ok("plan", "rollback", "--json").json["plan"]["id"]
    assert cli.typing("approve", plan, answers=[(YES, "yes\n")], env={"NO_COLOR": "1"}).code == 0
    for words in (["apply", plan], ["apply", plan, "--json"]):
        ran = cli(*words)
        assert ran.code == 4 and "nothing was changed: PAY_KEY is not set here" in ran.err, ran
        assert "run the same again, which needs no new approval" in ran.err
        assert (cli.project / "later.py").exists() and state(cli, id) == "live" and not bank.refunds
        assert not [e for e in effects(cli) if e["undoes"]]
    assert cli.ok("apply", plan, env=PLAIN).code == 0
    assert len(bank.refunds) == 1 and state(cli, id) == "undone" and not (cli.project / "later.py").exists()


def test_a_yes_given_while_a_variable_was_not_set_does_not_cover_its_value(cli: Any, psql: Path) -> None:
    """The hint promised that no new approval was needed, and the same was then refused as stale."""
    id = recorded(cli, "--shell", "psql $DB -f down.sql", DB="shop")
    unset, there = {"NO_COLOR": "1"}, {"NO_COLOR": "1", "DB": "shop"}
    plan = cli.ok("plan", "revert", id, "--json").json["plan"]["id"]
    approve(cli, plan, unset)
    ran = cli("apply", plan, env=unset)
    assert ran.code == 4 and "DB is not set here" in ran.err and "no new approval" not in ran.err
    assert f"needs a new approval (takeback approve {plan[:8]})" in ran.err
    refused = cli("apply", plan, env=there)
    assert refused.code == 4 and "DB has another value here than when it was approved" in refused.err
    approve(cli, plan, there)
    cli.ok("apply", plan, env=there)
    assert psql.read_text() == "shop -f down.sql at none\n" and state(cli, id) == "undone"


def test_yes_does_not_ask_for_an_approval_that_is_not_what_is_missing(cli: Any, bank: Any, own_home: Any) -> None:
    bind(own_home, bank, '[policy.http]\ncompensating = "allow"\n')
    id = charge(cli, bank, key=True)
    ran = cli("revert", id, "--yes")
    assert ran.code == 4 and "PAY_KEY is not set here" in ran.err and "approv" not in ran.err
    assert cli.ok("revert", id, "--yes", env=PLAIN).code == 0 and len(bank.refunds) == 1


LOCAL = {"NO_COLOR": "1", "DB": "shop", "PGHOST": "localhost"}


def log_line(cli: Any, **env: str) -> str:
    return recorded(cli, "--shell", 'echo "drop $DB at $PGHOST" >> log', **env)


def approve(cli: Any, plan: str, env: dict[str, str]) -> None:
    ran = cli.typing("approve", plan, answers=[(YES, "yes\n"), (f"{SEND} DB", "yes\n")], env=env)
    assert ran.code == 0, ran.out


@pytest.mark.parametrize(("name", "other"), [("PGHOST", "prodhost"), ("DB", "prod")])
def test_a_yes_is_for_the_values_that_were_there(cli: Any, name: str, other: str) -> None:
    """A plan that was approved for localhost ran at prodhost, exit 0."""
    id = log_line(cli, DB="shop", PGHOST="localhost")
    plan = cli.ok("plan", "revert", id, "--json", env=LOCAL).json["plan"]["id"]
    approve(cli, plan, LOCAL)
    ran = cli("apply", plan, env={**LOCAL, name: other})
    assert ran.code == 4 and "stale" in ran.err and name in ran.err and "nothing was changed" in ran.err, ran
    assert not (cli.project / "log").exists() and state(cli, id) == "live"
    assert cli("approve", plan, "--json", env={**LOCAL, name: other}).code == 4
    unset = cli("apply", plan, env={key: value for key, value in LOCAL.items() if key != name})
    assert unset.code == 4 and f"{name} is not set here" in unset.err
    cli.ok("apply", plan, env=LOCAL)  # the yes stands for what it was given to
    assert (cli.project / "log").read_text() == "drop shop at localhost\n" and state(cli, id) == "undone"


def test_a_yes_for_one_place_is_none_for_a_new_plan_in_another(cli: Any) -> None:
    id = log_line(cli, DB="shop", PGHOST="localhost")
    approve(cli, cli.ok("plan", "revert", id, "--json", env=LOCAL).json["plan"]["id"], LOCAL)
    elsewhere = {**LOCAL, "PGHOST": "prodhost"}
    plan = cli.ok("plan", "revert", id, "--json", env=elsewhere).json["plan"]["id"]
    ran = cli("apply", plan, env=elsewhere)
    assert ran.code == 4 and "takeback approve" in ran.err and not (cli.project / "log").exists()
    assert plan[:8] in cli.ok("approve", env=elsewhere).out, "it waits for a yes of its own"
    approve(cli, plan, elsewhere)
    cli.ok("apply", plan, env=elsewhere)
    assert (cli.project / "log").read_text() == "drop shop at prodhost\n"


def test_what_was_not_set_when_it_was_approved_cannot_be_chosen_afterwards(cli: Any) -> None:
    """But it may be when it is only planned: an agent plans, and a person sees the value and approves it."""
    id = log_line(cli, DB="shop", PGHOST="localhost")
    bare = {"NO_COLOR": "1"}
    plan = cli.ok("plan", "revert", id, "--json", env=bare).json["plan"]["id"]
    approve(cli, plan, LOCAL)
    stale = cli("apply", plan, env={**LOCAL, "PGHOST": "prodhost"})
    assert stale.code == 4 and "PGHOST" in stale.err and "approved" in stale.err
    cli.ok("apply", plan, env=LOCAL)
    assert (cli.project / "log").read_text() == "drop shop at localhost\n"


def test_a_default_that_is_overruled_later_is_another_plan(cli: Any) -> None:
    id = recorded(cli, "--shell", "echo ${PGHOST:-localhost} >> log")
    plan = cli.ok("plan", "revert", id, "--json").json["plan"]["id"]
    assert cli.typing("approve", plan, answers=[(YES, "yes\n")], env={"NO_COLOR": "1"}).code == 0
    ran = cli("apply", plan, env={"PGHOST": "prodhost"})
    assert ran.code == 4 and "PGHOST" in ran.err and not (cli.project / "log").exists()
    cli.ok("apply", plan)
    assert (cli.project / "log").read_text() == "localhost\n"


def test_a_plan_says_that_a_secret_differs_and_nothing_stored_tells_it(cli: Any, own_home: Path) -> None:
    id = log_line(cli, DB="hunter2", PGHOST="localhost")
    same = cli.ok("compensate", env={"DB": "hunter2", "PGHOST": "localhost"}).out
    assert "differ" not in same
    other = cli.ok("compensate", env={"DB": "hunter3", "PGHOST": "localhost"}).out
    assert "DB differs from when it was recorded" in other and "hunter" not in other
    plan = cli.ok("plan", "revert", id, "--json", env={**LOCAL, "DB": "hunter2"}).json["plan"]["id"]
    approve(cli, plan, {**LOCAL, "DB": "hunter2"})
    stored = b"".join(p.read_bytes() for p in cli.project.parent.rglob("journal.db*"))
    for value in (b"hunter2", b"DB\0hunter2", b"DB=hunter2"):
        digest = hashlib.sha256(value)
        assert value not in stored and digest.hexdigest().encode() not in stored and digest.digest() not in stored
    (key,) = cli.project.parent.rglob("marks.key")
    assert key.stat().st_mode & 0o777 == 0o600 and key.read_bytes() not in stored
    assert key.read_bytes().hex().encode() not in stored and "hunter" not in cli.ok("show", id, "--json").out
