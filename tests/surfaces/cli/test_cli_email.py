"""takeback email: stage, pending, release by a typed yes, cancel; with a real SMTP server."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from servers.gmail import Gmail
from servers.smtp import Smtp


@pytest.fixture
def smtp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Smtp]:
    with Smtp() as server:
        monkeypatch.setenv("TAKEBACK_SMTP_URL", f"smtp://127.0.0.1:{server.port}")
        monkeypatch.setenv("TAKEBACK_SMTP_FROM", "ann@example.org")
        for name in ("CLAUDECODE", "AI_AGENT"):
            monkeypatch.delenv(name, raising=False)
        yield server


def staged(cli: Any, *more: str, subject: str = "Report") -> str:
    ran = cli.ok(
        "email", "stage", "--to", "bob@example.org", "--subject", subject, "--body", "It is done.", "--json", *more
    )
    return str(ran.json["draft"]["id"])


def test_stage_pending_and_cancel(cli: Any, smtp: Smtp) -> None:
    ran = cli.ok("email", "stage", "--to", "Bob <bob@example.org>, cy@example.org", "--subject", "Grüße", "--body", "x")
    assert 'mail to bob@example.org and 1 more: "Grüße"' in ran.out
    assert "takeback email release" in ran.err
    [draft] = cli.ok("email", "pending", "--json").json["drafts"]
    assert draft["to"] == ["Bob <bob@example.org>", "cy@example.org"]
    assert (draft["state"], draft["provider"], draft["subject"], draft["due"]) == ("held", "smtp", "Grüße", None)
    assert draft["id"][:8] in cli.ok("email", "pending").out
    assert "never left" in cli.ok("email", "cancel").out
    assert cli.ok("email", "pending", "--json").json == {"drafts": []}
    assert cli.ok("email", "cancel", draft["id"], "--json").json["draft"]["state"] == "cancelled"
    assert smtp.got == []


def test_release_asks_on_a_terminal_and_shows_all_of_it(cli: Any, smtp: Smtp) -> None:
    (cli.project / "report.csv").write_text("1,2\n")
    (cli.project / "it.html").write_text("<p>It is something else.</p>\n")
    id = staged(cli, "--bcc", "eve@example.org", "--attach", "report.csv", "--html-file", "it.html")
    ran = cli.typing("email", "release", answers=[("Type yes", "no\n")])
    assert ran.code == 4 and smtp.got == []
    ran = cli.typing("email", "release", answers=[("Type yes", "y\n")])
    assert ran.code == 4 and smtp.got == []
    ran = cli.typing(
        "email",
        "release",
        "--yes",
        id[:8],
        answers=[("Type yes to send it to bob@example.org, eve@example.org", "yes\n")],
    )
    assert ran.code == 0, ran
    for shown in ("bob@example.org", "bcc: eve@example.org", "subject: Report", "report.csv", "| It is done."):
        assert shown in ran.out
    assert "| <p>It is something else.</p>" in ran.out, "most recipients see that instead"
    [got] = smtp.got
    assert got.to == ["bob@example.org", "eve@example.org"]
    assert next(got.message.iter_attachments()).get_filename() == "report.csv"


def test_without_a_terminal_a_release_exits_4(cli: Any, smtp: Smtp) -> None:
    id = staged(cli)
    for words in (("email", "release"), ("email", "release", id, "--yes"), ("email", "release", "--json", "--yes")):
        ran = cli(*words)
        assert ran.code == 4, ran
        assert "a person has to say yes" in ran.err + ran.out
    assert smtp.got == []


def test_below_an_agent_a_release_is_refused(cli: Any, smtp: Smtp) -> None:
    staged(cli)
    ran = cli.typing("email", "release", env={"CLAUDECODE": "1"})
    assert ran.code == 4 and "Claude Code is at work here" in ran.out
    assert smtp.got == []


def test_a_policy_of_allow_needs_no_terminal(cli: Any, smtp: Smtp) -> None:
    config = Path(os.environ["XDG_CONFIG_HOME"], "takeback/config.toml")
    config.parent.mkdir(parents=True)
    config.write_text('[policy.email]\nirreversible = "allow"\n')
    staged(cli)
    draft = cli.ok("email", "release", "--json").json["draft"]
    assert draft["state"] == "sent" and "bob@example.org" in draft["left_to_do"]
    assert len(smtp.got) == 1
    ran = cli("email", "cancel", draft["id"])
    assert ran.code == 1 and "cannot be unsent" in ran.err


def test_several_are_listed_until_one_is_named(cli: Any, smtp: Smtp) -> None:
    first, second = staged(cli, subject="One"), staged(cli, subject="Two")
    ran = cli.typing("email", "release")
    assert ran.code == 2 and first[:8] in ran.out and second[:8] in ran.out
    ran = cli.typing("email", "release", first[:8], second[:8], answers=[("Type yes", "yes\n"), ("Type yes", "yes\n")])
    assert ran.code == 0 and len(smtp.got) == 2
    assert cli("email", "release").code == 2


def test_a_delay_and_what_is_due(cli: Any, smtp: Smtp) -> None:
    stage = ("email", "stage", "--to", "bob@example.org", "--subject", "S", "--body", "x", "--delay", "0.1s")
    assert cli.typing(*stage, answers=[("Type yes to let it go by itself", "yes\n")]).code == 0
    draft = cli.ok(*stage, "--json").json["draft"]
    assert draft["due"] and not draft["approved"]
    assert smtp.got == []
    time.sleep(0.2)  # the second one is due by now
    assert "2 mails due and still held" in cli.ok("status").out
    assert cli.ok("status", "--json").json["due"] == 2
    ran = cli("email", "release", "--due")
    assert ran.code == 3 and len(smtp.got) == 1
    assert draft["id"][:8] in ran.err
    ran = cli.typing("email", "release", "--due", answers=[("Type yes to send it", "yes\n")])
    assert ran.code == 0 and len(smtp.got) == 2
    assert "no mail is due" in cli.ok("email", "release", "--due").out


def test_the_text_may_come_from_a_file(cli: Any, smtp: Smtp) -> None:
    (cli.project / "text.txt").write_text("from a file\n")
    (cli.project / "text.html").write_text("<i>rich</i>")
    cli.ok(
        "email",
        "stage",
        "--to",
        "b@example.org",
        "--subject",
        "S",
        "--body-file",
        "text.txt",
        "--html-file",
        "text.html",
    )
    cli.typing("email", "release", answers=[("Type yes", "yes\n")])
    assert smtp.got[0].message.get_body(("plain",)).get_content() == "from a file\n"
    assert "<i>rich</i>" in smtp.got[0].message.get_body(("html",)).get_content()


@pytest.mark.parametrize(
    "words",
    [
        ("email",),
        ("email", "send"),
        ("email", "stage", "--to", "b@example.org", "--body", "x"),
        ("email", "stage", "--to", "b@example.org", "--subject", "S"),
        ("email", "stage", "--to", "b", "--subject", "S", "--body", "x"),
        ("email", "stage", "--to", "b@example.org", "--subject", "S\r\nBcc: e@example.org", "--body", "x"),
        ("email", "stage", "--to", "b@example.org", "--subject", "S", "--body", "x", "--body-file", "-"),
        ("email", "stage", "--to", "b@example.org", "--subject", "S", "--body", "x", "--attach", "/etc/passwd"),
        ("email", "stage", "--to", "b@example.org", "--subject", "S", "--body", "x", "--delay", "soon"),
        ("email", "stage", "x", "--to", "b@example.org", "--subject", "S", "--body", "x"),
        ("email", "pending", "--subject", "S"),
        ("email", "cancel", "--due"),
        ("email", "release", "--trash-copy"),
        ("email", "cancel", "--trash-copy"),
        ("email", "cancel", "nothing"),
    ],
)
def test_what_makes_no_sense_exits_2_and_says_why(cli: Any, words: tuple[str, ...]) -> None:
    ran = cli(*words)
    assert ran.code == 2, ran
    assert "→" in ran.err
    assert cli.ok("email", "pending", "--json").json == {"drafts": []}


def test_trash_copy_says_that_recipients_keep_theirs(cli: Any) -> None:
    with Gmail() as gmail:
        env = {"EMAIL_PROVIDER": "gmail", "GMAIL_ACCESS_TOKEN": gmail.token, "GMAIL_API_BASE": gmail.url}
        stage = ("email", "stage", "--to", "bob@example.org", "--subject", "S", "--body", "x", "--json")
        id = cli.ok(*stage, env=env).json["draft"]["id"]
        ran = cli.typing("email", "release", answers=[("Type yes", "yes\n")], env={**env, "CLAUDECODE": ""})
        assert ran.code == 0 and len(gmail.sent) == 1
        ran = cli.ok("email", "cancel", "--trash-copy", id[:8], env=env)
        assert "bob@example.org, who keep theirs" in ran.out
        assert [m["labelIds"] for m in gmail.messages.values()] == [["TRASH"]]
        ran = cli(*stage, env={**env, "GMAIL_ACCESS_TOKEN": "old"})
        assert ran.code == 4 and "GMAIL_ACCESS_TOKEN" in ran.out


def test_dropping_a_held_mail_promises_no_question_that_never_comes(cli: Any, smtp: Smtp) -> None:
    """Its undo needs no approval, so none is announced; what does need one still is."""
    cli.ok("checkpoint", "before")
    (cli.project / "a.txt").write_text("one\n")
    staged(cli)
    ran = cli.typing("rollback", "before", answers=[("Apply?", "y\n")])
    assert ran.code == 0 and "asked for next" not in ran.out + ran.err and "Type yes" not in ran.out
    assert cli.ok("email", "pending", "--json").json == {"drafts": []} and not (cli.project / "a.txt").exists()
    (cli.project / "a.txt").write_text("two\n")
    cli.ok("record", "command", "--did", "made it", "--", "true")
    ran = cli.typing("rollback", "before", answers=[("Apply?", "y\n"), ("Type yes", "yes\n")])
    assert ran.code == 0 and "asked for next" in ran.out + ran.err
