"""What an undo needs of its environment: kept by name when it is recorded, taken when it runs, and where it is missing
nothing is begun."""

from __future__ import annotations

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
        assert (cli.project / "later.py").exists() and state(cli, id) == "live" and not bank.refunds
        assert not [e for e in effects(cli) if e["undoes"]]
    assert cli.ok("apply", plan, env=PLAIN).code == 0
    assert len(bank.refunds) == 1 and state(cli, id) == "undone" and not (cli.project / "later.py").exists()


def test_yes_does_not_ask_for_an_approval_that_is_not_what_is_missing(cli: Any, bank: Any, own_home: Any) -> None:
    bind(own_home, bank, '[policy.http]\ncompensating = "allow"\n')
    id = charge(cli, bank, key=True)
    ran = cli("revert", id, "--yes")
    assert ran.code == 4 and "PAY_KEY is not set here" in ran.err and "takeback approve" not in ran.err
    assert cli.ok("revert", id, "--yes", env=PLAIN).code == 0 and len(bank.refunds) == 1
