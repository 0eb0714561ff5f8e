"""What only a person settles, in a browser: an undo in doubt, a mail that is held, a take-back that was interrupted."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from test_web_pages import EVIL

import takeback
from servers.smtp import Smtp

_SEND = "import sys, takeback; takeback.open(sys.argv[1]).release_email(sys.argv[2], approved=True)"
KEY = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"


def seen(served: Any, place: str) -> str:
    """What the page's form confirms."""
    found = re.search(r'name="seen" value="([0-9a-f]{64})"', served.ask(place).text)
    assert found, served.ask(place)
    return found[1]


def confirm(served: Any, place: str, **fields: Any) -> Any:
    """As the button on that page does."""
    path, _, query = place.partition("?")
    asked = dict(pair.split("=") for pair in query.split("&") if pair)
    return served.ask(path, "POST", {"form": served.form_token(), "seen": seen(served, place), **asked, **fields})


@pytest.fixture
def doubted(ws: Any) -> Any:
    """An undo that was begun and never heard of again."""
    act = ws.record_command("made a bucket", argv=["sleep", "60"], timeout=0.2)
    ws.approve(plan := ws.plan("revert", act.id))
    ws.apply(plan)
    assert ws.find_effect(act.id).shown_state == "unknown"
    return act


@pytest.fixture
def smtp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Smtp]:
    with Smtp() as server:
        monkeypatch.setenv("TAKEBACK_SMTP_URL", f"smtp://127.0.0.1:{server.port}")
        monkeypatch.setenv("TAKEBACK_SMTP_FROM", "shop@example.com")
        yield server


@pytest.fixture
def hold(ws: Any, smtp: Smtp) -> Callable[..., Any]:
    def held(*mail: Any, **more: Any) -> Any:
        with takeback.open(ws.root) as own:
            return own.hold_email(*mail, **more)

    return held


@pytest.fixture
def cut_off(ws: Any, scene: Any) -> Any:
    """An undo that was interrupted after it had deleted a file."""
    scene.turn("break it", a_txt="broken\n", b_txt="broken\n")

    def stop(steps: Any, results: Any) -> None:
        raise KeyboardInterrupt

    ws.told = stop
    with pytest.raises(KeyboardInterrupt):
        ws.undo()
    ws.told = None
    assert ws.interrupted()
    return ws


# -- an undo that nobody heard of again -----------------------------------------------


@pytest.mark.parametrize(
    ("word", "state", "said"),
    [
        ("undone", "undone", "was taken back"),
        ("not-undone", "live", "was not taken back: it stands, and may be taken back again"),
    ],
)
def test_an_unknown_is_resolved(ws: Any, doubted: Any, served: Any, word: str, state: str, said: str) -> None:
    page = served.ask(f"/item/{doubted.id}").text
    assert f'href="/resolve/{doubted.id}?said={word}"' in page and "happened" not in page
    place = f"/resolve/{doubted.id}?said={word}"
    asks = served.ask(place).text
    assert f"made a bucket {said}" in asks and "takeback resolve" in asks
    assert "sleep 60" in asks  # the undo that it is about
    assert ws.find_effect(doubted.id).shown_state == "unknown"  # nothing is noted yet
    answer = confirm(served, place)
    assert answer.status == 303 and ws.find_effect(doubted.id).shown_state == state
    told = served.ask(answer.headers["location"])
    assert f"noted: made a bucket {said}" in told.text
    assert json.loads(served.ask(f"{answer.headers['location']}.json").text)["effect"]["id"] == doubted.id
    assert served.ask(place).status == 400  # it is not in doubt any more


def test_an_effect_in_doubt_is_asked_about_itself_and_for_its_result(ws: Any, served: Any) -> None:
    undo = {"inverse_url": "/refunds", "inverse_json": {"charge": "{response.body.id}"}}
    act = ws.record_http("POST", "https://pay.example/charges", status=None, **undo)
    page = served.ask(f"/item/{act.id}").text
    assert "It happened…" in page and "It did not happen…" in page and "taken back…" not in page
    place = f"/resolve/{act.id}?said=happened"
    asks = served.ask(place).text
    assert "<textarea" in asks and f"takeback resolve {act.id[:8]} --happened --result JSON" in asks
    assert "<textarea" not in served.ask(f"/resolve/{act.id}?said=did-not-happen").text
    assert confirm(served, place, result="{oops").status == 400
    assert confirm(served, place, result='{"number": 1}').status == 400  # not what its undo refers to
    assert ws.find_effect(act.id).shown_state == "unknown"
    assert confirm(served, place, result='{"id": "ch_1"}').status == 303
    found = ws.find_effect(act.id)
    assert found.shown_state == "live" and found.inverse.args["json"] == {"charge": "ch_1"}


def test_nothing_is_resolved_that_was_not_shown(ws: Any, doubted: Any, served: Any) -> None:
    head, place = ws.store.journal.head().seq, f"/resolve/{doubted.id}"
    right = seen(served, f"{place}?said=undone")
    for form, status in (
        ({"said": "undone"}, 409),
        ({"said": "undone", "seen": "0" * 64}, 409),
        ({"said": "not-undone", "seen": right}, 409),  # the other page was confirmed
        ({"seen": right}, 400),
        ({"said": "maybe", "seen": right}, 400),
        ({"said": "happened", "seen": right}, 400),  # that is not what is in doubt
        ({"done": "yes", "seen": right}, 400),
    ):
        assert served.ask(place, "POST", {"form": served.form_token(), **form}).status == status, form
    assert served.ask(f"{place}x?said=undone").status == 404 and served.ask(place).status == 400
    assert ws.store.journal.head().seq == head


# -- a mail that is held -----------------------------------------------------------------


def test_a_held_mail_is_sent_after_a_typed_yes(ws: Any, smtp: Smtp, hold: Any, served: Any) -> None:
    mail = hold("bob@example.com", "Order 17", "Dear Bob,\n\nthank you.\n", cc="eve@example.com")
    page = served.ask(f"/item/{mail.id}").text
    assert f'href="/release/{mail.id}"' in page and "Cancel it: it never leaves…" in page
    place = f"/release/{mail.id}"
    asks = served.ask(place).text
    for words in ("to: bob@example.com", "cc: eve@example.com", "subject: Order 17", "| thank you.",
                  "Type yes to send it to bob@example.com, eve@example.com (this cannot be undone):"):  # fmt: skip
        assert words in asks
    for answers in ([], [""], ["y"], ["no"], ["yes", "yes"]):
        assert confirm(served, place, yes=answers).status == 403 and not smtp.got
    answer = confirm(served, place, yes="yes")
    assert answer.status == 303 and [got.to for got in smtp.got] == [["bob@example.com", "eve@example.com"]]
    told = served.ask(answer.headers["location"]).text
    assert ">Sent<" in told and "to bob@example.com, eve@example.com" in told
    assert json.loads(served.ask(f"{answer.headers['location']}.json").text)["draft"]["state"] == "sent"
    assert ws.find_effect(mail.id).did["released_by"] == {"surface": "web"}
    assert served.ask(place).status == 400  # it goes once
    assert served.ask(place, "POST", {"form": served.form_token(), "seen": "x", "yes": "yes"}).status == 400
    assert len(smtp.got) == 1


def test_another_mail_than_the_one_shown_is_not_sent(ws: Any, smtp: Smtp, hold: Any, served: Any) -> None:
    one, other = hold("bob@example.com", "Order 17", "Dear Bob,\n"), hold("eve@example.com", "Order 18", "Dear Eve,\n")
    form = {"form": served.form_token(), "seen": seen(served, f"/release/{one.id}"), "yes": "yes"}
    answer = served.ask(f"/release/{other.id}", "POST", form)
    assert answer.status == 409 and "not as it was shown" in answer.text
    # a row that somebody wrote since: the same mail, to somebody else
    ws.acted(one.id, did={"mail": {**one.did["mail"], "to": ["mallory@example.com"]}})
    assert served.ask(f"/release/{one.id}", "POST", form).status == 409
    assert not smtp.got


def test_a_held_mail_is_cancelled_by_a_plan(ws: Any, smtp: Smtp, hold: Any, served: Any) -> None:
    mail = hold("bob@example.com", "Order 17", "Dear Bob,\n")
    place = served.plan(item=mail.id, how="revert")
    assert "drop the draft for bob@example.com" in served.ask(place).text
    assert ws.find_effect(mail.id).shown_state == "held"
    form = {"form": served.form_token(), "hash": place.rpartition("/")[2]}
    assert served.ask(f"{place}/apply", "POST", form).status == 303
    assert ws.find_effect(mail.id).shown_state == "undone" and not smtp.got


def test_a_mail_that_nobody_heard_of_again_is_told_as_such(ws: Any, smtp: Smtp, hold: Any, served: Any) -> None:
    mail = hold("bob@example.com", "Order 17", "Dear Bob,\n")
    smtp.after_data = lambda server: server.transport.abort()
    answer = confirm(served, f"/release/{mail.id}", yes="yes")
    assert answer.status == 303 and ws.find_effect(mail.id).shown_state == "unknown"
    told = served.ask(answer.headers["location"]).text
    assert "Nobody knows whether it was sent" in told and "That was not done" not in told
    page = served.ask(f"/item/{mail.id}").text
    assert "It was sent…" in page and "It was not sent…" in page
    assert "is held as before" in served.ask(f"/resolve/{mail.id}?said=did-not-happen").text
    assert confirm(served, f"/resolve/{mail.id}?said=did-not-happen").status == 303
    assert ws.find_effect(mail.id).shown_state == "held"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="nobody can tell here which process lives")
def test_a_mail_is_being_sent_as_long_as_its_sender_lives(ws: Any, smtp: Smtp, hold: Any, served: Any) -> None:
    """A second tab, while the first one sends: nobody has to find out anything. Not so once the sender was killed."""
    mail, arrived, answered = hold("bob@example.com", "Order 17", "Dear Bob,\n"), Event(), Event()

    def wait(server: Any) -> None:
        arrived.set()
        answered.wait(60)

    smtp.after_data = wait
    sending = subprocess.Popen(
        [sys.executable, "-c", _SEND, str(ws.root), mail.id], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        assert arrived.wait(60)
        page = served.ask(f"/item/{mail.id}").text
        assert "It is being sent just now" in page and "Nobody knows" not in page
        assert "It was sent…" not in page and 'class="badge sending"' in page
        assert json.loads(served.ask("/timeline.json").text)["unknown"] == 0
        assert served.ask(f"/resolve/{mail.id}?said=did-not-happen").status == 400
        assert ws.find_effect(mail.id).shown_state == "sending"
        assert [row.id for row in ws.log("state:sending")] == [mail.id]
    finally:
        sending.kill()
        sending.wait()
        answered.set()
    page = served.ask(f"/item/{mail.id}").text
    assert "Nobody knows what came of it" in page and "It was sent…" in page and 'class="badge unknown"' in page
    assert json.loads(served.ask("/timeline.json").text)["unknown"] == 1
    assert ws.find_effect(mail.id).shown_state == "unknown"
    assert confirm(served, f"/resolve/{mail.id}?said=did-not-happen").status == 303


def test_a_mail_that_is_refused_stays_held(ws: Any, smtp: Smtp, hold: Any, served: Any) -> None:
    mail = hold("bob@example.com", "Order 17", "Dear Bob,\n")
    smtp.after_data = lambda server: "554 5.7.1 looks like spam"
    answer = confirm(served, f"/release/{mail.id}", yes="yes")
    assert answer.status == 500 and "That was not done" in answer.text and "spam" in answer.text
    assert ws.find_effect(mail.id).shown_state == "held"


def test_what_a_mail_says_is_text_and_its_secrets_are_masked(ws: Any, smtp: Smtp, hold: Any, served: Any) -> None:
    mail = hold("bob@example.com", f"Order {EVIL}", f"{EVIL}\n\x1b[31m\u202e the key is {KEY}\n", html=f"<p>{EVIL}")
    page, twin = served.ask(f"/release/{mail.id}").text, served.ask(f"/release/{mail.id}.json").text
    assert KEY not in page + twin and "masked here, and is sent as it is" in page
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in page
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    assert confirm(served, f"/release/{mail.id}", yes="yes").status == 303
    assert KEY.encode() in smtp.got[0].data


# -- a take-back that was interrupted --------------------------------------------------


def test_an_interrupted_take_back_is_finished(cut_off: Any, served: Any) -> None:
    page = served.ask("/timeline").text
    assert "an undo was interrupted" in page and 'href="/resume"' in page and 'href="/resume?abort=yes"' in page
    asks = served.ask("/resume").text
    assert "Finish the undo that was interrupted?" in asks and "a.txt" in asks and "b.txt" in asks
    assert cut_off.interrupted()
    answer = confirm(served, "/resume")
    assert answer.status == 303 and not cut_off.interrupted()
    assert not (cut_off.root / "a.txt").exists() and not (cut_off.root / "b.txt").exists()
    told = served.ask(answer.headers["location"]).text
    assert "finished the undo that was interrupted" in told and "Take this back…" in told
    assert served.ask("/resume").status == 404
    assert "was interrupted" not in served.ask("/timeline").text


def test_or_it_is_gone_back_from(cut_off: Any, served: Any) -> None:
    asks = served.ask("/resume?abort=yes").text
    assert "Go back from the interrupted undo?" in asks
    answer = confirm(served, "/resume?abort=yes")
    assert answer.status == 303 and not cut_off.interrupted()
    assert (cut_off.root / "a.txt").read_text() == (cut_off.root / "b.txt").read_text() == "broken\n"
    assert (
        "went back from the interrupted undo: the tree is as before it" in served.ask(answer.headers["location"]).text
    )


def test_neither_is_done_by_the_page_of_the_other(cut_off: Any, served: Any) -> None:
    form = {"form": served.form_token(), "seen": seen(served, "/resume")}
    assert served.ask("/resume", "POST", {**form, "abort": "yes"}).status == 409
    assert served.ask("/resume", "POST", {"form": form["form"]}).status == 409
    assert cut_off.interrupted()


def test_what_is_left_outside_the_files_is_listed_in_full(ws: Any, served: Any, tmp_path: Any) -> None:
    for name in ("one", "two"):
        ws.record_command(f"made {name}", argv=["touch", str(tmp_path / f"{name}-undone")])
    first, *_ = ws.effects()[::-1]
    plan = ws.plan("rollback", first.id)
    ws.approve(plan)

    def stop(steps: Any, results: Any) -> None:
        if results:
            raise KeyboardInterrupt

    ws.told = stop
    with pytest.raises(KeyboardInterrupt):
        ws.apply(plan)
    ws.told = None
    asks = served.ask("/resume").text
    listed = asks.partition('aria-label="What it is about"')[2].partition("</pre>")[0]
    assert f"touch {tmp_path}/one-undone" in listed and not (tmp_path / "one-undone").exists()
    assert confirm(served, "/resume").status == 303
    assert (tmp_path / "one-undone").exists() and not ws.interrupted()


# -- all of them -----------------------------------------------------------------------


def test_read_only_shows_the_commands_and_no_way(ws: Any, doubted: Any, hold: Any, cut_off: Any, serve: Any) -> None:
    mail = hold("bob@example.com", "Order 17", "Dear Bob,\n")
    with serve("--read-only") as served:
        pages = [served.ask(f"/item/{id}").text for id in (doubted.id, mail.id)]
        pages.append(served.ask("/timeline").text)
        for page, command in zip(pages, ("takeback resolve", "takeback email release", "takeback resume")):
            assert command in page and not re.search('href="/(resolve|release|resume)', page)
        for place in (f"/resolve/{doubted.id}?said=undone", f"/release/{mail.id}", "/resume"):
            page = served.ask(place)
            assert page.status == 200 and "<button" not in page.text.partition("<main")[2]
        assert "Dear Bob" in page.text or "Dear Bob" in served.ask(f"/release/{mail.id}").text


def test_each_has_a_twin(ws: Any, doubted: Any, hold: Any, served: Any) -> None:
    mail = hold("bob@example.com", "Order 17", "Dear Bob,\n")
    twin = json.loads(served.ask(f"/release/{mail.id}.json").text)
    assert twin["confirms"] == seen(served, f"/release/{mail.id}") and "Dear Bob" in twin["shown"]
    twin = json.loads(served.ask(f"/resolve/{doubted.id}.json?said=not-undone").text)
    assert twin["command"] == f"takeback resolve {doubted.id[:8]} --not-undone"
    assert served.ask("/resume.json").status == 404


def test_a_person_sends_a_mail_and_settles_a_doubt(
    ws: Any, doubted: Any, smtp: Smtp, hold: Any, look: Any, served: Any
) -> None:
    mail = hold("bob@example.com", "Order 17", "Dear Bob,\n")
    person = look()
    page = person.enter(served)
    page.goto(f"{served.origin}/item/{mail.id}")
    person.click("text=Send it…")
    page.wait_for_url("**/release/*")
    page.click("button.apply")  # the field is required: nothing is sent
    assert not smtp.got
    page.get_by_label(re.compile("Type yes to send it")).fill("yes")
    person.click("button.apply")
    page.wait_for_url("**/outcome/*")
    assert len(smtp.got) == 1 and page.locator("main h2").inner_text() == "Sent"
    page.goto(f"{served.origin}/item/{doubted.id}")
    person.click("text=It was taken back…")
    person.click("text=Yes, note it")
    page.wait_for_url("**/outcome/*")
    assert "noted: made a bucket was taken back" in page.locator("main").inner_text()
