"""Secrets are shown on the owner's terminal, and nowhere else unless the owner says so."""

from __future__ import annotations

import os
import sys

import pytest

import takeback
from takeback.system.processes import MARKERS, started

PASSWORD, TOKEN = "hunter2-and-more", "ghp_" + "a1B2" * 9
PLAIN = {"NO_COLOR": "1"}
AGENT = {"CLAUDECODE": "1"}
ASK = "Apply? [y/N/d diff]"


@pytest.fixture(autouse=True)
def no_agent_here(monkeypatch) -> None:
    for name in MARKERS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def secrets(cli):
    """A secret file, a token in an ordinary one, a file with neither, and a take-back's worth of them."""
    (cli.project / ".env").write_text("A=1\n")
    cli.ok("checkpoint", "before")
    (cli.project / ".env").write_text(f"A=1\nDB={PASSWORD}\n")
    (cli.project / "src/auth.py").write_text(f"one\nkey = '{TOKEN}'\nthree\n")
    (cli.project / "README.md").write_text("hello you\n")
    return cli


def effect(cli) -> str:
    cli.ok("checkpoint", env={"TAKEBACK_ACTOR": "claude"})
    (row,) = cli.ok("log", "kind:effect", "path:.env", "actor:claude", "--json").json["rows"]
    return row["id"]


def is_masked(shown: str) -> bool:
    leaks = [secret for secret in (PASSWORD, TOKEN) if secret in shown]
    assert len(leaks) in (0, 2), leaks
    return not leaks


def agent_sits_above(cli) -> None:
    with takeback.open(cli.project) as ws:
        ws.note_session(os.getpid(), started(os.getpid()), "codex")


# -- masked ------------------------------------------------------------------------------


@pytest.mark.parametrize("env", [{}, AGENT], ids=["owner", "agent"])
@pytest.mark.parametrize("verb", ["diff", "show"])
def test_a_pipe_is_masked_and_says_so(secrets, verb: str, env) -> None:
    ran = secrets.ok(verb, *([effect(secrets)] if verb == "show" else ["before"]), env=env)
    assert is_masked(ran.out + ran.err)
    assert "~ .env  modified +1 (+1 −0, contents masked)" in ran.out
    assert "~ src/auth.py  modified +1 −1 (tokens masked)" in ran.out and "+key = '[redacted]'" in ran.out
    assert "+hello you" in ran.out
    (hint,) = ran.err.splitlines()
    assert hint.startswith("secrets are masked (.env, src/auth.py): ")
    assert ("--unmasked" in hint) == (not env) and ("an agent is at work here" in hint) == bool(env)


@pytest.mark.parametrize("verb", ["diff", "show"])
@pytest.mark.parametrize("on", ["a pipe", "a terminal"])
def test_json_is_masked_everywhere(secrets, verb: str, on: str) -> None:
    words = [verb, effect(secrets) if verb == "show" else "before", "--json"]
    ran = secrets.typing(*words) if on == "a terminal" else secrets.ok(*words)
    assert is_masked(ran.out) and "contents masked" in ran.out
    if on == "a pipe":
        found = ran.json
        assert found["masked"] == [".env", "src/auth.py"]
        env = next(f for f in found["files"] if f["path"] == ".env")
        assert env["hunks"] == [] and env["note"] == "+1 −0, contents masked" and env["added"] == 1
        assert "--unmasked" in ran.err


def test_a_file_is_masked_too(secrets, tmp_path) -> None:
    code = f"{sys.executable} -m takeback diff before > '{tmp_path / 'out'}'"
    ran = secrets.typing("-c", code, program=("sh",), env=PLAIN)
    assert is_masked((tmp_path / "out").read_text()) and "--unmasked" in ran.out


@pytest.mark.parametrize("how", ["environment", "session"])
def test_an_agent_on_a_terminal_sees_no_secrets(secrets, how: str) -> None:
    id = effect(secrets)
    if how == "session":
        agent_sits_above(secrets)
    env = {**PLAIN, **(AGENT if how == "environment" else {})}
    for words in (["diff", "before"], ["show", id]):
        ran = secrets.typing(*words, env=env)
        assert ran.code == 0 and is_masked(ran.out) and "contents masked" in ran.out


def test_a_plans_diff_is_masked_for_an_agent_alone(secrets) -> None:
    answers = [(ASK, "d\n"), (ASK, "n\n")]
    mine = secrets.typing("rollback", "before", answers=answers, env=PLAIN)
    assert not is_masked(mine.out) and "masked" not in mine.out
    theirs = secrets.typing("rollback", "before", answers=answers, env={**PLAIN, **AGENT})
    assert is_masked(theirs.out) and "(+0 −1, contents masked)" in theirs.out and "-hello you" in theirs.out
    assert is_masked(secrets.ok("rollback", "before", "--dry-run", "--all-steps").out)
    assert is_masked(secrets.ok("plan", "rollback", "before", "--json").out)


def test_where_a_link_leads_is_masked_in_short_too(cli) -> None:
    (cli.project / "link").symlink_to(f"https://me:{PASSWORD}@example.org/")
    for words in (["--stat"], []):
        assert PASSWORD not in cli.ok("diff", *words).out
        assert PASSWORD in cli.typing("diff", *words, env=PLAIN).out


def test_one_line_per_file_has_nothing_to_mask(secrets) -> None:
    ran = secrets.ok("diff", "before", "--stat")
    assert is_masked(ran.out) and ran.err == ""
    assert is_masked(secrets.ok("diff", "before", "--stat", "--json").out)


def test_a_token_in_a_label_is_not_even_kept(cli) -> None:
    id = cli.ok("checkpoint", f"with {TOKEN}", "--json").json["checkpoint"]["id"]
    (cli.project / "README.md").write_text("hello you\n")
    cli.ok("rollback", id, "--yes")
    for words in (["status"], ["log"], ["log", "--json"], ["show", id], ["diff", id], ["rollback", id, "--dry-run"]):
        assert TOKEN not in cli.ok(*words).out
    assert "with [redacted]" in cli.typing("log", env=PLAIN).out


# -- as it is ----------------------------------------------------------------------------


def test_the_owners_terminal_shows_everything(secrets) -> None:
    id = effect(secrets)
    for words in (["diff", "before"], ["show", id]):
        ran = secrets.typing(*words, env=PLAIN)
        assert not is_masked(ran.out) and "masked" not in ran.out


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_the_owner_gets_it_into_a_pipe(secrets, json: list[str]) -> None:
    id = effect(secrets)
    for words in (["diff", "before"], ["show", id]):
        ran = secrets.ok(*words, "--unmasked", *json)
        assert not is_masked(ran.out) and ran.err == "" and "contents masked" not in ran.out


@pytest.mark.parametrize("how", ["environment", "session", "a terminal"])
@pytest.mark.parametrize("verb", ["diff", "show"])
def test_an_agent_does_not(secrets, verb: str, how: str) -> None:
    words = [verb, *([effect(secrets)] if verb == "show" else []), "--unmasked"]
    if how == "session":
        agent_sits_above(secrets)
    env = {} if how == "session" else AGENT
    ran = secrets.typing(*words, env=env) if how == "a terminal" else secrets(*words, env=env)
    assert ran.code == 4 and is_masked(ran.out)
    assert "seeing secrets as they are is for a person" in (ran.out if how == "a terminal" else ran.err)


def test_what_holds_no_secrets_is_the_same_everywhere(changed) -> None:
    assert changed.ok("diff").out == changed.ok("diff", "--unmasked").out == changed.typing("diff", env=PLAIN).out
    assert changed.ok("diff").err == ""
    assert changed.ok("diff", "--json").json["masked"] == []
