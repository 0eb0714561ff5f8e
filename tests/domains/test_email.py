"""Mail: held as a draft, cancelled as if it had never been, released once, by a person's yes. Against real servers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import takeback
from servers.gmail import Gmail
from servers.graph import Graph
from servers.mailboxes import Mailboxes
from servers.smtp import Smtp, certificate, only
from support import set_clock
from takeback.domains.email import message, web
from takeback.domains.email.providers import smtp as smtp_client
from takeback.errors import ApprovalNeeded, CredentialNeeded, NotFound, TakebackError, UsageError
from takeback.workspace import Workspace

SECRET = "hunter2-and-more"
Opened = Callable[..., Workspace]


@pytest.fixture
def opened(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """The workspace, under these names in the environment."""
    made: list[Workspace] = []

    def open_with(**environ: str) -> Workspace:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        made.append(takeback.open(project, create=True))
        return made[-1]

    yield open_with
    for ws in made:
        ws.close()


@pytest.fixture
def smtp() -> Iterator[Smtp]:
    with Smtp() as server:
        yield server


@pytest.fixture
def posted(opened: Opened, smtp: Smtp) -> Workspace:
    """A workspace whose mail leaves through a real SMTP server."""
    return opened(TAKEBACK_SMTP_URL=f"smtp://127.0.0.1:{smtp.port}", TAKEBACK_SMTP_FROM="Ann <ann@example.org>")


@pytest.fixture
def gmail() -> Iterator[Gmail]:
    with Gmail() as server:
        yield server


@pytest.fixture
def graph() -> Iterator[Graph]:
    with Graph() as server:
        yield server


def by_gmail(opened: Opened, gmail: Gmail, token: str = Gmail.token) -> Workspace:
    return opened(EMAIL_PROVIDER="gmail", GMAIL_ACCESS_TOKEN=token, GMAIL_API_BASE=gmail.url)


def by_outlook(opened: Opened, graph: Graph, token: str = Graph.token) -> Workspace:
    return opened(EMAIL_PROVIDER="outlook", OUTLOOK_ACCESS_TOKEN=token, OUTLOOK_API_BASE=graph.url + "/v1.0")


@pytest.fixture(params=["gmail", "outlook"])
def remote(request: pytest.FixtureRequest, opened: Opened) -> tuple[Workspace, Any]:
    if request.param == "gmail":
        server: Mailboxes = request.getfixturevalue("gmail")
        return by_gmail(opened, server), server  # type: ignore[arg-type]
    server = request.getfixturevalue("graph")
    return by_outlook(opened, server), server  # type: ignore[arg-type]


# -- the outbox ----------------------------------------------------------------


def test_staging_needs_no_server_and_sends_nothing(ws: Workspace) -> None:
    act = ws.hold_email("bob@example.org", "Report", "It is done.")
    assert (act.domain, act.verdict, act.shown_state) == ("email", "held", "held")
    assert act.target.startswith("draft:smtp:")
    assert act.inverse is not None and act.inverse.op == "cancel"
    assert [a.id for a in ws.pending_email()] == [act.id]
    assert ws.read_email(act) == "It is done.\n"


def test_a_release_sends_it_and_cannot_be_undone(posted: Workspace, smtp: Smtp) -> None:
    act = posted.hold_email("Bob <bob@example.org>", "Report", "It is done.")
    assert smtp.got == []
    sent = posted.release_email(act.id, approved=True)
    [got] = smtp.got
    assert (got.sender, got.to) == ("ann@example.org", ["bob@example.org"])
    assert got.message["From"] == "Ann <ann@example.org>"
    assert got.message["Subject"] == "Report"
    assert got.message.get_content() == "It is done.\n"
    assert got.message["Date"] and got.message["Message-ID"]
    assert (sent.verdict, sent.shown_state) == ("irreversible", "irreversible")
    assert "Bob <bob@example.org>" in sent.did["left_to_do"]
    assert posted.pending_email() == []
    [step] = posted.plan("rollback").steps
    assert (step.verdict, step.taken) == ("irreversible", False)
    assert "sent" in step.note
    with pytest.raises(TakebackError, match="cannot be unsent"):
        posted.cancel_email(act.id)
    with pytest.raises(TakebackError, match="sent already"):
        posted.release_email(act.id, approved=True)
    assert len(smtp.got) == 1


def test_a_cancel_is_a_true_unsend_and_needs_no_approval(posted: Workspace, smtp: Smtp) -> None:
    act = posted.hold_email("bob@example.org", "Report", "It is done.")
    assert posted.cancel_email(act.id).shown_state == "undone"
    assert posted.pending_email() == []
    assert posted.cancel_email(act.id).shown_state == "undone"  # again: nothing more
    with pytest.raises(TakebackError, match="was cancelled"):
        posted.release_email(act.id, approved=True)
    assert smtp.got == []


def test_a_rollback_drops_held_mail_with_the_files(posted: Workspace, project: Path, smtp: Smtp) -> None:
    posted.checkpoint("base")
    (project / "a.txt").write_text("one\n")
    act = posted.hold_email("bob@example.org", "Report", "It is done.")
    (project / "a.txt").write_text("two\n")
    outcome = posted.rollback()
    assert outcome.whole
    assert not (project / "a.txt").exists()
    assert posted.find_effect(act.id).shown_state == "undone"
    assert smtp.got == []


def test_releasing_needs_a_persons_yes_or_a_policy(
    posted: Workspace, smtp: Smtp, own_home: Path, opened: Opened
) -> None:
    act = posted.hold_email("bob@example.org", "Report", "x")
    with pytest.raises(ApprovalNeeded, match="a person has to say yes"):
        posted.release_email(act.id)
    assert smtp.got == []
    (own_home / "config/takeback").mkdir(parents=True)
    config = own_home / "config/takeback/config.toml"
    config.write_text('[policy.email]\nirreversible = "refuse"\n')
    with pytest.raises(TakebackError, match="refused by policy"):
        opened().release_email(act.id, approved=True)
    assert smtp.got == []
    config.write_text('[policy.email]\nirreversible = "allow"\n')
    assert opened().release_email(act.id).shown_state == "irreversible"
    assert len(smtp.got) == 1


def test_a_project_cannot_loosen_the_policy(posted: Workspace, smtp: Smtp, project: Path, opened: Opened) -> None:
    (project / ".takeback.toml").write_text('[policy.email]\nirreversible = "allow"\n')
    act = posted.hold_email("bob@example.org", "Report", "x")
    with pytest.raises(ApprovalNeeded):
        opened().release_email(act.id)
    assert smtp.got == []


def test_identical_mails_do_not_collapse(posted: Workspace, smtp: Smtp) -> None:
    held = [posted.hold_email("bob@example.org", "Report", "the same") for _ in range(3)]
    assert len({act.target for act in held}) == 3
    assert [act.id for act in posted.pending_email()] == [act.id for act in held]
    posted.cancel_email(held[1].id)
    for act in (held[0], held[2]):
        posted.release_email(act.id, approved=True)
    assert len(smtp.got) == 2
    assert smtp.got[0].message["Message-ID"] != smtp.got[1].message["Message-ID"]


def test_without_a_name_only_one_is_meant(posted: Workspace) -> None:
    with pytest.raises(NotFound, match="no mail is held"):
        posted.release_email()
    first = posted.hold_email("bob@example.org", "One", "x")
    assert posted.find_email().id == first.id
    second = posted.hold_email("bob@example.org", "Two", "x")
    with pytest.raises(UsageError) as found:
        posted.release_email(approved=True)
    assert first.id[:8] in found.value.message and second.id[:8] in found.value.message
    for name in (second.id[:10], second.target.rpartition(":")[2]):
        assert posted.find_email(name).id == second.id


def test_the_mail_survives_a_prune(posted: Workspace, project: Path, smtp: Smtp) -> None:
    act = posted.hold_email("bob@example.org", "Report", "still here")
    (project / "later").write_text("x")
    posted.checkpoint("later")
    posted.prune(everything=True)
    posted.release_email(act.id, approved=True)
    assert smtp.got[0].message.get_content() == "still here\n"
    assert posted.verify(data=True).ok


def test_the_async_twins(posted: Workspace, smtp: Smtp) -> None:
    async def all_of_it() -> None:
        act = await posted.ahold_email("bob@example.org", "Report", "x", cc="cy@example.org")
        assert len(await posted.apending_email()) == 1
        await posted.arelease_email(act.id, approved=True)
        other = await posted.ahold_email("bob@example.org", "Other", "x")
        assert (await posted.acancel_email(other.id)).shown_state == "undone"

    asyncio.run(all_of_it())
    assert smtp.got[0].to == ["bob@example.org", "cy@example.org"]


# -- what mail can hold: walkback had one recipient, no cc, bcc, attachments or HTML ----------------


def test_recipients_cc_and_bcc_where_bcc_is_in_no_header(posted: Workspace, smtp: Smtp) -> None:
    posted.hold_email(
        ["Bob <bob@example.org>, cy@example.org", "dee@example.org"], "Report", "x",
        cc=["eve@example.org"], bcc="Hidden <fay@example.org>", reply_to="answers@example.org",
    )  # fmt: skip
    posted.release_email(approved=True)
    [got] = smtp.got
    assert got.to == ["bob@example.org", "cy@example.org", "dee@example.org", "eve@example.org", "fay@example.org"]
    assert got.message["To"] == "Bob <bob@example.org>, cy@example.org, dee@example.org"
    assert got.message["Cc"] == "eve@example.org"
    assert got.message["Reply-To"] == "answers@example.org"
    assert b"fay" not in got.data and b"Bcc" not in got.data


def test_html_comes_as_an_alternative(posted: Workspace, smtp: Smtp) -> None:
    posted.hold_email("bob@example.org", "Report", "plain", html="<b>rich</b>")
    posted.release_email(approved=True)
    found = smtp.got[0].message
    assert found.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in found.iter_parts()] == ["text/plain", "text/html"]
    assert "<b>rich</b>" in found.get_body(("html",)).get_content()


def test_attachments_are_files_of_the_project(posted: Workspace, smtp: Smtp, project: Path) -> None:
    (project / "out").mkdir()
    (project / "out/Übersicht 1.csv").write_bytes(b"a,b\n1,2\n")
    (project / "blob.bin").write_bytes(bytes(range(256)) * 50)
    posted.hold_email("bob@example.org", "Report", "x", attachments=["out/Übersicht 1.csv", str(project / "blob.bin")])
    posted.release_email(approved=True)
    parts = list(smtp.got[0].message.iter_attachments())
    assert [(p.get_filename(), p.get_content_type()) for p in parts] == [
        ("Übersicht 1.csv", "text/csv"),
        ("blob.bin", "application/octet-stream"),
    ]
    assert parts[1].get_content() == bytes(range(256)) * 50


def test_attachments_from_elsewhere_are_refused(ws: Workspace, project: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    (project / "link").symlink_to(tmp_path / "secret")
    (project / "dir").symlink_to(tmp_path)
    os.mkfifo(project / "pipe")
    for path in ("../secret", str(tmp_path / "secret"), "link", "dir/secret", "pipe", ".", "missing"):
        with pytest.raises(TakebackError):
            ws.hold_email("bob@example.org", "Report", "x", attachments=[path])
    assert ws.pending_email() == []


def test_a_non_ascii_subject_is_encoded(posted: Workspace, smtp: Smtp) -> None:
    subject = "Grüße aus Köln, 日本 🎉 " + "lang " * 40
    posted.hold_email("Jürgen Größe <bob@example.org>", subject, "Schöne Grüße\n日本\n.\n..x\n")
    posted.release_email(approved=True)
    [got] = smtp.got
    head, _, body = got.data.partition(b"\r\n\r\n")
    assert head.isascii() and body.isascii()
    assert max(map(len, head.split(b"\r\n"))) <= 78 + 20
    assert got.message["Subject"].rstrip() == subject.rstrip()
    assert got.message["To"].addresses[0].display_name == "Jürgen Größe"
    assert got.message.get_content().replace("\r\n", "\n") == "Schöne Grüße\n日本\n.\n..x\n"


def test_addresses_beyond_ascii_need_a_server_that_knows_them(posted: Workspace, smtp: Smtp) -> None:
    posted.hold_email("bob@münchen.example", "Domain", "x")
    posted.release_email(approved=True)
    assert smtp.got[0].to == ["bob@xn--mnchen-3ya.example"]
    posted.hold_email("jürgen@example.org", "Name", "x")
    posted.release_email(approved=True)
    assert smtp.got[1].to == ["jürgen@example.org"]


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r", "\0", "\x0b", "\x85", "\u2028"])
def test_a_line_break_in_a_header_is_refused(ws: Workspace, end: str) -> None:
    bad = f"Hello{end}Bcc: eve@example.org"
    for field in ("to", "subject", "cc", "bcc", "reply_to"):
        parts: dict[str, Any] = {"to": "bob@example.org", "subject": "Hello", "body": "x", field: bad}
        with pytest.raises(UsageError, match="line break or control character"):
            ws.hold_email(**parts)
    assert ws.pending_email() == []


def test_a_file_name_with_a_line_break_is_refused(ws: Workspace, project: Path) -> None:
    (project / "a\r\nBcc: eve@example.org").write_text("x")
    with pytest.raises(UsageError, match="line break"):
        ws.hold_email("bob@example.org", "S", "x", attachments=["a\r\nBcc: eve@example.org"])


@pytest.mark.parametrize(
    "bad",
    ["", "bob", "bob@", "@example.org", "bob@a@b", "bob example.org", "a@b c@d", "<a@b", "a@b>", "Bob <bob>",
     'x"y@z', "a@b (note)", "a\\@b@c", "Bob, <bob@example.org>", "bob@" + "x" * 300],
)  # fmt: skip
def test_what_is_no_address_is_refused(ws: Workspace, bad: str) -> None:
    with pytest.raises(UsageError):
        ws.hold_email(bad, "S", "x")


@given(
    name=st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), max_size=30),
    subject=st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), max_size=80),
    text=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=200),
)
def test_no_text_becomes_another_header(name: str, subject: str, text: str) -> None:
    from email import message_from_bytes
    from email.policy import SMTP

    shown = str(message.Mailbox(name, "bob@example.org"))
    mail = message.compose(shown, subject, text)
    assert mail.to[0].address == "bob@example.org"
    data = message.mime(mail)
    assert data.isascii()
    found = message_from_bytes(data, policy=SMTP)
    assert set(found.keys()) <= {"To", "Subject", "MIME-Version", "Content-Type", "Content-Transfer-Encoding"}
    assert [a.addr_spec for a in found["To"].addresses] == ["bob@example.org"]


# -- SMTP: what can go wrong -----------------------------------------------------------


def test_starttls_and_a_login(opened: Opened, tmp_path: Path, own_home: Path) -> None:
    context, trusted = certificate(tmp_path)
    server = Smtp(tls_context=context, require_starttls=True, authenticator=only("ann@example.org", SECRET),
                  auth_required=True)  # fmt: skip
    with server:
        at = f"localhost:{server.port}"
        ws = opened(TAKEBACK_SMTP_URL=f"smtp://ann%40example.org:{SECRET}@{at}")
        ws.hold_email("bob@example.org", "Report", "x")
        with pytest.raises(TakebackError, match="certificate"):
            ws.release_email(approved=True)
        ws = opened(SSL_CERT_FILE=str(trusted))
        assert ws.release_email(approved=True).shown_state == "irreversible"
        assert server.got[0].sender == "ann@example.org"
        ws = opened(TAKEBACK_SMTP_URL=f"smtp://ann%40example.org:wrong-{SECRET}@{at}")
        ws.hold_email("bob@example.org", "Report", "x")
        with pytest.raises(TakebackError) as refused:
            ws.release_email(approved=True)
        assert SECRET not in refused.value.message
        assert ws.pending_email()[0].shown_state == "held"
    for file in (own_home / "takeback").rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes()


def test_smtps(opened: Opened, tmp_path: Path) -> None:
    context, trusted = certificate(tmp_path)
    with Smtp(ssl_context=context) as server:
        ws = opened(
            TAKEBACK_SMTP_URL=f"smtps://localhost:{server.port}", TAKEBACK_SMTP_FROM="a@example.org",
            SSL_CERT_FILE=str(trusted),
        )  # fmt: skip
        ws.hold_email("bob@example.org", "Report", "x")
        ws.release_email(approved=True)
        assert len(server.got) == 1


def test_a_refused_recipient_means_that_nobody_gets_it(posted: Workspace, smtp: Smtp) -> None:
    smtp.refuses = {"cy@example.org"}
    act = posted.hold_email("bob@example.org, cy@example.org", "Report", "x")
    with pytest.raises(TakebackError, match=r"cy@example.org: 550.*nothing was sent"):
        posted.release_email(approved=True)
    assert smtp.got == []
    assert posted.find_effect(act.id).shown_state == "held"
    smtp.refuses = set()
    posted.release_email(approved=True)
    assert len(smtp.got) == 1


def test_a_server_that_is_not_there_or_not_set(opened: Opened) -> None:
    ws = opened()
    ws.hold_email("bob@example.org", "Report", "x")
    with pytest.raises(CredentialNeeded, match="no mail server") as told:
        ws.release_email(approved=True)
    assert "TAKEBACK_SMTP_URL" in told.value.hint
    with pytest.raises(CredentialNeeded) as told:
        opened(TAKEBACK_SMTP_URL="smtp://127.0.0.1:9").release_email(approved=True)
    assert "TAKEBACK_SMTP_FROM" in told.value.hint
    with pytest.raises(TakebackError, match="nothing was sent"):
        opened(TAKEBACK_SMTP_FROM="a@example.org").release_email(approved=True)
    assert opened().pending_email()[0].shown_state == "held"


def test_a_lost_answer_is_unknown_and_not_sent_twice(posted: Workspace, smtp: Smtp) -> None:
    smtp.after_data = lambda server: server.transport.abort()
    act = posted.hold_email("bob@example.org", "Report", "x")
    with pytest.raises(TakebackError, match="nobody knows"):
        posted.release_email(approved=True)
    assert len(smtp.got) == 1
    smtp.after_data = lambda server: None
    assert posted.find_effect(act.id).shown_state == "unknown"
    for again in (lambda: posted.release_email(act.id, approved=True), lambda: posted.cancel_email(act.id)):
        with pytest.raises(TakebackError, match="takeback resolve"):
            again()
    [step] = posted.plan("compensate").steps
    assert (step.verdict, step.taken) == ("unknown", False)
    assert "--happened" in step.note and "--did-not-happen" in step.note
    assert len(smtp.got) == 1
    assert posted.resolve(act.id, "happened").shown_state == "irreversible"
    assert len(smtp.got) == 1


def test_a_person_may_say_that_it_was_not_sent(posted: Workspace, smtp: Smtp) -> None:
    smtp.after_data = lambda server: server.transport.abort()
    act = posted.hold_email("bob@example.org", "Report", "x")
    with pytest.raises(TakebackError):
        posted.release_email(approved=True)
    smtp.after_data = lambda server: None
    assert posted.resolve(act.id, "did-not-happen").shown_state == "held"
    with pytest.raises(ApprovalNeeded):
        posted.release_email(act.id)
    posted.release_email(act.id, approved=True)
    assert len(smtp.got) == 2


def test_a_mail_that_may_have_left_is_not_among_those_held(posted: Workspace, smtp: Smtp) -> None:
    unknown, held = (posted.hold_email("bob@example.org", name, "x") for name in ("lost", "held"))
    smtp.after_data = lambda server: server.transport.abort()
    with pytest.raises(TakebackError):
        posted.release_email(unknown.id, approved=True)
    smtp.after_data = lambda server: None
    assert posted.find_email("").id == held.id
    posted.cancel_email("")
    for act in (posted.release_email, posted.cancel_email):
        with pytest.raises(NotFound, match=f"no mail is held, and {unknown.id[:8]}.* is unknown") as said:
            act("")
        assert f"takeback resolve {unknown.id[:8]} --happened or --did-not-happen" in said.value.hint
    posted.hold_email("bob@example.org", "one", "x")
    posted.hold_email("bob@example.org", "two", "x")
    with pytest.raises(UsageError, match="2 mails are held") as several:
        posted.release_email("")
    assert unknown.id[:8] not in str(several.value)


def test_a_server_that_says_nothing_is_unknown(posted: Workspace, smtp: Smtp, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setattr(smtp_client, "TIMEOUT", 0.5)
    smtp.after_data = lambda server: time.sleep(2)  # type: ignore[func-returns-value]
    act = posted.hold_email("bob@example.org", "Report", "x")
    with pytest.raises(TakebackError, match="nobody knows"):
        posted.release_email(approved=True)
    assert posted.find_effect(act.id).shown_state == "unknown"


def test_a_message_that_is_refused_after_data_stays_held(posted: Workspace, smtp: Smtp) -> None:
    smtp.after_data = lambda server: "554 5.7.1 looks like spam"
    act = posted.hold_email("bob@example.org", "Report", "x")
    with pytest.raises(TakebackError, match="554"):
        posted.release_email(approved=True)
    assert posted.find_effect(act.id).shown_state == "held"


_DYING = """
import os, sys, takeback
from takeback.domains.email.providers import smtp
real = smtp.Smtp._hand_over
def dying(self, connection, data):
    if sys.argv[2] == "after":
        real(self, connection, data)
    os._exit(9)
smtp.Smtp._hand_over = dying
takeback.open(sys.argv[1]).release_email(approved=True)
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_during_a_release_it_is_unknown_and_not_sent_twice(
    posted: Workspace, smtp: Smtp, project: Path, when: str
) -> None:
    act = posted.hold_email("bob@example.org", "Report", "x")
    done = subprocess.run([sys.executable, "-c", _DYING, str(project), when], check=False)
    assert done.returncode == 9
    assert len(smtp.got) == (when == "after")
    assert posted.find_effect(act.id).shown_state == "unknown"
    with pytest.raises(TakebackError, match="nobody knows"):
        posted.release_email(act.id, approved=True)
    assert len(smtp.got) == (when == "after")


def test_two_releases_at_once_send_once(posted: Workspace, smtp: Smtp, project: Path) -> None:
    posted.hold_email("bob@example.org", "Report", "x")
    script = "import sys, takeback; takeback.open(sys.argv[1]).release_email(approved=True)"
    running = [subprocess.Popen([sys.executable, "-c", script, str(project)], stderr=subprocess.DEVNULL) for _ in "ab"]
    codes = sorted(process.wait(60) for process in running)
    assert codes == [0, 1]
    assert len(smtp.got) == 1


# -- delay -----------------------------------------------------------------------------


def test_a_delay_lets_approved_mail_go_by_itself(posted: Workspace, smtp: Smtp) -> None:
    now = [1_800_000_000.0]
    set_clock(posted, lambda: now[0])
    act = posted.hold_email("bob@example.org", "Report", "x", delay="30s", approved=True)
    asked = posted.hold_email("cy@example.org", "Report", "x", delay="30s")
    posted.hold_email("dee@example.org", "Report", "x")
    assert act.did["due"] == now[0] + 30
    assert posted.due_mail() == [] and posted.release_due() == []
    with pytest.raises(ApprovalNeeded):
        posted.release_email(act.id)  # its yes holds from then on
    now[0] += 31
    assert [a.id for a in posted.due_mail()] == [act.id, asked.id]
    assert posted.status().due == 2
    [(went, nothing), (stays, why)] = posted.release_due()
    assert (went.id, went.shown_state, nothing) == (act.id, "irreversible", None)
    assert stays.id == asked.id and isinstance(why, ApprovalNeeded)
    assert [got.to for got in smtp.got] == [["bob@example.org"]]
    assert [a.id for a in posted.due_mail()] == [asked.id]


def test_a_mail_can_be_cancelled_within_its_window(posted: Workspace, smtp: Smtp) -> None:
    now = [1_800_000_000.0]
    set_clock(posted, lambda: now[0])
    posted.hold_email("bob@example.org", "Report", "x", delay="1m", approved=True)
    posted.undo()
    now[0] += 61
    assert posted.release_due() == []
    assert smtp.got == []


def test_a_delay_must_be_one(ws: Workspace) -> None:
    with pytest.raises(UsageError, match="not a duration"):
        ws.hold_email("bob@example.org", "S", "x", delay="soon")


# -- Gmail and Outlook --------------------------------------------------------------------


def test_a_draft_is_made_released_and_counted_once(remote: tuple[Workspace, Any]) -> None:
    ws, server = remote
    act = ws.hold_email("Bob <bob@example.org>", "Grüße", "x", cc="cy@example.org", bcc="dee@example.org")
    assert act.shown_state == "held" and server.sent == []
    assert act.target == f"draft:{act.did['provider']}:{act.inverse.args['draft']}"  # type: ignore[union-attr]
    with pytest.raises(ApprovalNeeded):
        ws.release_email(act.id)
    sent = ws.release_email(act.id, approved=True)
    assert sent.shown_state == "irreversible"
    assert "--trash-copy" in sent.did["left_to_do"]
    assert server.sent[0].to == ["bob@example.org", "cy@example.org", "dee@example.org"]
    with pytest.raises(TakebackError, match="cannot be unsent"):
        ws.cancel_email(act.id)
    assert len(server.sent) == 1 and server.counted("/send") == 1


def test_outlooks_202_with_an_empty_body_is_a_release(opened: Opened, graph: Graph) -> None:
    ws = by_outlook(opened, graph)
    act = ws.hold_email("bob@example.org", "Report", "x")
    assert ws.release_email(act.id, approved=True).shown_state == "irreversible"
    assert ws.pending_email() == []
    assert len(graph.sent) == 1


def test_outlook_gets_every_part(opened: Opened, graph: Graph, project: Path) -> None:
    (project / "a.pdf").write_bytes(b"%PDF")
    ws = by_outlook(opened, graph)
    ws.hold_email("Bob <bob@example.org>", "Grüße", "x", reply_to="r@example.org", html="<b>", attachments=["a.pdf"])
    [draft] = graph.messages.values()
    assert draft["subject"] == "Grüße"
    assert draft["body"] == {"contentType": "html", "content": "<b>"}
    assert draft["toRecipients"] == [{"emailAddress": {"address": "bob@example.org", "name": "Bob"}}]
    assert draft["replyTo"][0]["emailAddress"]["address"] == "r@example.org"
    assert (draft["attachments"][0]["name"], draft["attachments"][0]["contentBytes"]) == ("a.pdf", "JVBERg==")
    (project / "big").write_bytes(b"x" * (4 << 20))
    with pytest.raises(UsageError, match="Outlook takes"):
        ws.hold_email("bob@example.org", "S", "x", attachments=["big"])


def test_gmail_gets_bcc_and_recipients_do_not_see_it(opened: Opened, gmail: Gmail) -> None:
    ws = by_gmail(opened, gmail)
    ws.hold_email("bob@example.org", "Grüße", "hällo", bcc="dee@example.org", html="<b>")
    ws.release_email(approved=True)
    [sent] = gmail.sent
    assert sent.to == ["bob@example.org", "dee@example.org"]
    assert sent.message["Subject"] == "Grüße" and "Bcc" not in sent.message
    assert sent.message.get_body(("plain",)).get_content() == "hällo\n"


def test_a_cancel_deletes_the_draft(remote: tuple[Workspace, Any]) -> None:
    ws, server = remote
    act = ws.hold_email("bob@example.org", "Report", "x")
    ws.undo()
    assert ws.find_effect(act.id).shown_state == "undone"
    left = (
        server.drafts
        if isinstance(server, Gmail)
        else [m for m in server.messages.values() if m["parentFolderId"] != "deleted-id"]
    )
    assert not left
    with pytest.raises(TakebackError):
        ws.release_email(act.id, approved=True)
    assert server.sent == []


def test_one_who_sent_it_by_hand_cannot_cancel_it(remote: tuple[Workspace, Any]) -> None:
    ws, server = remote
    act = ws.hold_email("bob@example.org", "Report", "x")
    _by_hand(server, act)
    with pytest.raises(TakebackError, match="was sent already"):
        ws.cancel_email(act.id)
    assert len(server.sent) == 1
    assert not any(a.method == "DELETE" and "messages" in a.path for a in server.asked)  # one's own copy stays
    assert ws.release_email(act.id, approved=True).shown_state == "irreversible"
    assert len(server.sent) == 1


def _by_hand(server: Any, act: Any) -> None:
    draft = act.inverse.args["draft"]
    if isinstance(server, Gmail):
        server._send(draft)
    else:
        server.answer("POST", f"/v1.0/me/messages/{draft}/send", None)


def test_a_draft_that_was_deleted_by_hand(remote: tuple[Workspace, Any]) -> None:
    ws, server = remote
    act = ws.hold_email("bob@example.org", "Report", "x")
    (server.drafts if isinstance(server, Gmail) else server.messages).clear()
    with pytest.raises(TakebackError, match="sent or deleted elsewhere"):  # 404
        ws.release_email(act.id, approved=True)
    assert ws.cancel_email(act.id).shown_state == "undone"
    assert server.sent == []


def test_a_copy_is_trashed_and_recipients_keep_theirs(remote: tuple[Workspace, Any]) -> None:
    ws, server = remote
    act = ws.hold_email("bob@example.org", "Report", "x")
    with pytest.raises(UsageError, match="was not sent"):
        ws.cancel_email(act.id, trash_copy=True)
    ws.release_email(act.id, approved=True)
    found = ws.cancel_email(act.id, trash_copy=True)
    assert found.shown_state == "irreversible"
    assert "bob@example.org, who keep theirs" in found.did["left_to_do"]
    if isinstance(server, Gmail):
        assert [m["labelIds"] for m in server.messages.values()] == [["TRASH"]]
    else:
        assert [m["parentFolderId"] for m in server.messages.values()] == ["deleted-id"]


def test_smtp_has_no_copy_to_trash(posted: Workspace) -> None:
    act = posted.hold_email("bob@example.org", "Report", "x")
    posted.release_email(act.id, approved=True)
    with pytest.raises(UsageError, match="no copy"):
        posted.cancel_email(act.id, trash_copy=True)


def test_an_expired_token_names_its_setting(opened: Opened, gmail: Gmail, graph: Graph) -> None:
    for ws, setting in (
        (by_gmail(opened, gmail, "ya29.expired"), "GMAIL_ACCESS_TOKEN"),
        (by_outlook(opened, graph, "expired"), "OUTLOOK_ACCESS_TOKEN"),
    ):
        with pytest.raises(CredentialNeeded, match="401") as told:
            ws.hold_email("bob@example.org", "Report", "x")
        assert setting in told.value.hint and told.value.exit_code == 4
        assert "expired" not in told.value.hint
        assert ws.pending_email() == []
        assert ws.effects()[0].shown_state == "failed"


def test_a_token_that_expires_before_the_release_leaves_it_held(remote: tuple[Workspace, Any]) -> None:
    ws, server = remote
    act = ws.hold_email("bob@example.org", "Report", "x")
    server.token = "another"
    with pytest.raises(CredentialNeeded):
        ws.release_email(act.id, approved=True)
    assert ws.find_effect(act.id).shown_state == "held"
    assert server.sent == []


def test_without_a_token_nothing_is_staged(opened: Opened) -> None:
    ws = opened()
    for provider, setting in (("gmail", "GMAIL_ACCESS_TOKEN"), ("outlook", "OUTLOOK_ACCESS_TOKEN")):
        with pytest.raises(CredentialNeeded) as told:
            ws.hold_email("bob@example.org", "Report", "x", provider=provider)
        assert setting in told.value.hint
    with pytest.raises(UsageError, match="no mail provider"):
        ws.hold_email("bob@example.org", "Report", "x", provider="fax")
    assert ws.effects() == []


def test_a_short_retry_after_is_waited_for(remote: tuple[Workspace, Any]) -> None:
    ws, server = remote
    act = ws.hold_email("bob@example.org", "Report", "x")
    with server.then(("status", 429, {"Retry-After": "0"})):
        assert ws.release_email(act.id, approved=True).shown_state == "irreversible"
    assert len(server.sent) == 1


def test_a_long_retry_after_fails_clearly(remote: tuple[Workspace, Any]) -> None:
    ws, server = remote
    act = ws.hold_email("bob@example.org", "Report", "x")
    with server.then(("status", 429, {"Retry-After": "120"})), pytest.raises(TakebackError, match="wait for 120 s"):
        ws.release_email(act.id, approved=True)
    assert ws.find_effect(act.id).shown_state == "held"
    assert server.sent == []


@pytest.mark.parametrize("how", ["reset", "500"])
def test_an_answer_that_is_lost_after_the_work_is_found_out(remote: tuple[Workspace, Any], how: str) -> None:
    ws, server = remote
    act = ws.hold_email("bob@example.org", "Report", "x")
    with server.then(how):
        assert ws.release_email(act.id, approved=True).shown_state == "irreversible"
    assert len(server.sent) == 1 and server.counted("/send") == 1


def test_a_request_that_was_lost_is_unknown_until_somebody_looks(remote: tuple[Workspace, Any]) -> None:
    ws, server = remote
    act = ws.hold_email("bob@example.org", "Report", "x")
    with server.then("drop"), pytest.raises(TakebackError, match="nobody knows"):
        ws.release_email(act.id, approved=True)
    assert ws.find_effect(act.id).shown_state == "unknown"
    assert ws.release_email(act.id, approved=True).shown_state == "irreversible"  # the draft was still there
    assert len(server.sent) == 1


def test_a_release_in_doubt_can_be_cancelled_if_it_never_left(remote: tuple[Workspace, Any]) -> None:
    ws, server = remote
    act = ws.hold_email("bob@example.org", "Report", "x")
    with server.then("drop"), pytest.raises(TakebackError):
        ws.release_email(act.id, approved=True)
    assert ws.cancel_email(act.id).shown_state == "undone"
    assert server.sent == []


def test_a_lost_answer_to_a_cancel_is_settled(remote: tuple[Workspace, Any]) -> None:
    ws, server = remote
    act = ws.hold_email("bob@example.org", "Report", "x")
    server.next = ["reset"] if isinstance(server, Gmail) else [None, None, "reset"]
    with pytest.raises(TakebackError, match="not cancelled"):
        ws.cancel_email(act.id)
    assert ws.find_effect(act.id).shown_state == "unknown"
    with pytest.raises(TakebackError, match="nobody knows"):
        ws.release_email(act.id, approved=True)
    assert ws.cancel_email(act.id).shown_state == "undone"
    assert server.sent == []


def test_a_draft_that_was_lost_while_staging_is_unknown(remote: tuple[Workspace, Any]) -> None:
    ws, server = remote
    with server.then("reset"), pytest.raises(TakebackError, match="nobody knows whether there is a draft"):
        ws.hold_email("bob@example.org", "Report", "x")
    [act] = ws.effects()
    assert act.shown_state == "unknown"
    with pytest.raises(TakebackError):
        ws.release_email(act.id, approved=True)
    assert server.sent == []


def test_a_draft_that_a_person_found_keeps_its_place(remote: tuple[Workspace, Any]) -> None:
    """To go back to a checkpoint after it drops it no more than if the server had answered."""
    ws, server = remote
    with server.then("reset"), pytest.raises(TakebackError):
        ws.hold_email("bob@example.org", "Report", "x")
    [act] = ws.effects()
    ws.checkpoint("after")
    found = ws.resolve(act.id, "happened", {"draft": "d1"})
    assert (found.seq, found.shown_state) == (act.seq, "held") and not ws.plan("rollback", "after").steps


def test_a_server_that_hangs_is_unknown(opened: Opened, gmail: Gmail, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    ws = by_gmail(opened, gmail)
    act = ws.hold_email("bob@example.org", "Report", "x")
    monkeypatch.setattr(web, "TIMEOUT", 0.5)
    answer = gmail.answer
    monkeypatch.setattr(gmail, "answer", lambda *a: (time.sleep(1.5), answer(*a))[1])
    with pytest.raises(TakebackError, match="nobody knows"):
        ws.release_email(act.id, approved=True)
    assert ws.find_effect(act.id).shown_state == "unknown"


def test_a_token_is_not_sent_in_the_clear(opened: Opened) -> None:
    ws = opened(EMAIL_PROVIDER="gmail", GMAIL_ACCESS_TOKEN="t", GMAIL_API_BASE="http://mail.example.org")
    with pytest.raises(UsageError, match="readable"):
        ws.hold_email("bob@example.org", "Report", "x")


def test_a_project_cannot_send_the_token_elsewhere(opened: Opened, gmail: Gmail, project: Path) -> None:
    with Gmail() as other:
        (project / ".takeback.toml").write_text(f'[email]\ngmail_api_base = "{other.url}"\nprovider = "gmail"\n')
        ws = by_gmail(opened, gmail)
        ws.hold_email("bob@example.org", "Report", "x")
        assert other.asked == [] and len(gmail.drafts) == 1


def test_a_redirect_is_not_followed(opened: Opened, gmail: Gmail) -> None:
    ws = by_gmail(opened, gmail)
    with Gmail() as other:
        with gmail.then(("status", 302, {"Location": other.url})), pytest.raises(TakebackError, match="302"):
            ws.hold_email("bob@example.org", "Report", "x")
        assert other.asked == []


def test_tokens_are_nowhere_in_the_store(remote: tuple[Workspace, Any], own_home: Path) -> None:
    ws, server = remote
    ws.hold_email("bob@example.org", "Report", "x")
    ws.release_email(approved=True)
    for row in ws.store.journal.rows():
        assert server.token not in str(row.body)
    for id in ws.store.blobs.ids():
        assert server.token.encode() not in ws.store.blobs.get(id)


def test_a_staged_mail_is_content_and_stays_as_it_was_written(posted: Workspace, smtp: Smtp) -> None:
    text = "the key was ghp_" + "a" * 36 + "\n"
    act = posted.hold_email("bob@example.org", "Report", text)
    assert posted.read_email(act) == text
    posted.release_email(approved=True)
    assert smtp.got[0].message.get_content() == text


# -- which provider -----------------------------------------------------------------------------


def test_the_provider_is_the_one_asked_for_then_set_then_configured(opened: Opened, gmail: Gmail, graph: Graph) -> None:
    def held(ws: Workspace, **how: str) -> str:
        return str(ws.hold_email("bob@example.org", "S", "x", **how).did["provider"])

    assert held(opened()) == "smtp"
    assert held(opened(OUTLOOK_ACCESS_TOKEN=Graph.token, OUTLOOK_API_BASE=graph.url + "/v1.0")) == "outlook"
    ws = opened(GMAIL_ACCESS_TOKEN=Gmail.token, GMAIL_API_BASE=gmail.url, EMAIL_PROVIDER="outlook")
    assert held(ws) == "outlook"
    assert held(ws, provider="gmail") == "gmail"
    assert held(ws, provider="smtp") == "smtp"


# -- rows that somebody else wrote ------------------------------------------------------------------


@pytest.mark.parametrize(
    "did",
    [{}, {"mail": 3}, {"mail": {"to": 3}}, {"mail": {"to": [3]}}, {"mail": {}, "due": "now"}, {"mail": {}, "blobs": 3},
     {"mail": {"attachments": [1]}}, {"mail": {"to": ["a@b\r\nDATA"]}, "provider": "smtp", "blobs": ["zz"]},
     {"mail": {"to": ["bob@example.org"]}, "provider": "../smtp"}, {"mail": {}, "due": 1, "approved": True}],
)  # fmt: skip
def test_a_hostile_row_sends_nothing(posted: Workspace, smtp: Smtp, did: dict[str, Any]) -> None:
    from takeback.journal.journal import New
    from takeback.model.ids import new_id

    inverse = {"op": "cancel", "args": {"provider": "smtp", "draft": "x", "blob": "ff"}}
    body = {"domain": "email", "summary": "s", "target": "t", "verdict": "held", "inverse": inverse, "did": did}
    id = new_id()
    posted.store.journal.append([New("act", id, body)], posted.clock())
    posted.status()
    posted.pending_email()
    posted.prune(everything=True)
    with pytest.raises(TakebackError):
        posted.release_email(id, approved=True)
    assert all(error is not None for _, error in posted.release_due())
    assert smtp.got == []


# -- what callers get wrong, and what a person reads ---------------------------------


@pytest.mark.parametrize(
    "wrong",
    [{"to": None}, {"to": [None]}, {"to": 3}, {"subject": None}, {"body": None}, {"html": 1}, {"delay": -1},
     {"delay": 30}],
)  # fmt: skip
def test_wrong_types_are_told_and_nothing_is_held(posted: Workspace, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        posted.hold_email(**{"to": "bob@example.org", "subject": "s", "body": "b", **wrong})
    assert posted.pending_email() == []


def test_a_step_is_described_by_whom_it_would_have_reached(posted: Workspace) -> None:
    act = posted.hold_email("bob@example.org", "Lunch?", "b", cc="Eve <eve@example.org>")
    assert posted.describe(act) == 'drop the draft for bob@example.org, Eve <eve@example.org>: "Lunch?"'
