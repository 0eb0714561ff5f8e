"""Every view and its twin, read without a browser: what is shown, what is escaped, what is held back."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

import pytest

from scene import fifty_turns
from servers.payments import Payments
from takeback.surfaces.web import sides
from takeback.surfaces.wording import html
from takeback.text.linediff import hunks

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"


def told(served, path):
    answer = served.ask(path)
    assert answer.status == 200 and answer.headers["content-type"] == "application/json", answer
    return json.loads(answer.text)


def ids(served):
    return [turn["id"] for turn in told(served, "/timeline.json")["turns"]]


def attributes(page):
    from html.parser import HTMLParser

    class Reader(HTMLParser):
        def __init__(self):
            super().__init__()
            self.found = set()

        def handle_starttag(self, tag, attrs):
            self.found |= {name for name, _ in attrs}

    reader = Reader()
    reader.feed(page)
    assert "href" in reader.found
    return reader.found


# -- views and their twins -----------------------------------------------------


def test_the_timeline_and_its_twin(ws, scene, served):
    scene.turn("add a form", form_html="<form>\n")
    page = served.ask("/timeline")
    assert "“add a form”" in page.text and "1 file" in page.text
    (newest, *_) = told(served, "/timeline.json")["turns"]
    assert (newest["kind"], newest["title"], newest["totals"]) == ("agent", "add a form", {"files": 1})


def test_a_turn_its_call_and_its_effect(ws, scene, served):
    scene.turn("add a form", form_html="<form>\n")
    turn = ids(served)[0]
    (call,) = told(served, f"/item/{turn}.json")["parts"]
    (effect,) = told(served, f"/item/{call['id']}.json")["parts"]
    for id in (turn, call["id"], effect["id"]):
        page = served.ask(f"/item/{id}")
        assert page.status == 200 and "form.html" in page.text and "&lt;form&gt;" in page.text
        assert told(served, f"/item/{id}.json")["item"]["id"] == id
    assert f'href="/item/{turn}"' in served.ask(f"/item/{effect['id']}").text  # the way up


def test_a_checkpoint_and_what_changed_since(ws, scene, served):
    scene.by_hand("release 1", a_txt="one\n")
    (ws.root / "a.txt").write_text("two\n")
    (found, *_) = [turn for turn in told(served, "/timeline.json")["turns"] if turn["kind"] == "checkpoint"]
    assert "What changed since" in served.ask(f"/item/{found['id']}").text
    assert "a.txt" in served.ask(f"/compare?a={found['id']}").text
    assert [file["path"] for file in told(served, f"/compare.json?a={found['id']}")["files"]] == ["a.txt"]


def test_a_checkpoint_in_a_turn_leads_to_the_turn(ws, scene, served):
    scene.turn("one", a_txt="a\n")
    (turn,) = [t for t in told(served, "/timeline.json")["turns"] if t["kind"] == "agent"]
    for mark in turn["marks"]:
        assert served.ask(f"/item/{mark['id']}").headers["location"] == f"/item/{turn['id']}"
    assert turn["marks"]


def test_a_long_prompt_is_cut_in_headings(ws, scene, served):
    scene.turn("rename it " + "x" * 5_000, a_txt="a\n")
    page = served.ask(f"/item/{ids(served)[0]}").text
    heading = page.partition('<h2 id="heading">')[2].partition("</h2>")[0]
    assert heading.startswith("“rename it xxx") and len(heading) <= 210


def test_search_is_the_filter_language_of_log(ws, scene, served):
    scene.turn("add a form", form_html="<form>\n")
    scene.turn("write the manual", manual_md="# x\n")
    assert [t["title"] for t in told(served, "/timeline.json?filter=path:form.html")["turns"]] == ["add a form"]
    page = served.ask("/timeline?filter=" + quote('"the manual" actor:claude'))
    listed = page.text.partition("<ol>")[2].partition("</ol>")[0]
    assert "write the manual" in listed and "“add a form”" not in listed
    wrong = served.ask("/timeline?filter=nokey:x")
    assert wrong.status == 400 and "unknown key" in wrong.text and "the keys are" in wrong.text
    assert served.ask("/timeline.json?filter=nokey:x").status == 400


def test_fifty_turns_and_more_are_paged(ws, served):
    fifty_turns(ws)
    for number in range(60):
        ws.checkpoint(f"point {number}")
    first = told(served, "/timeline.json")["turns"]
    rest = told(served, f"/timeline.json?before={first[-1]['id']}")["turns"]
    assert len(first) == 100 and rest and not {t["id"] for t in first} & {t["id"] for t in rest}
    assert f"before={first[-1]['id']}" in served.ask("/timeline").text


def test_the_day_at_a_glance_counts_by_domain(ws, scene, served):
    scene.turn("a", a_txt="a\n")
    ws.record_http("POST", "https://shop.example/v1/charges", status=201)
    activity = told(served, "/timeline.json")["activity"]
    assert sum(q.get("files", 0) for q in activity["quarters"]) == 1
    assert sum(q.get("http", 0) for q in activity["quarters"]) == 1
    page = served.ask("/timeline").text
    assert "<rect" in page and "1 files, 1 http" in page
    link = re.search(r'<a href="(/timeline\?[^"]*since[^"]*)"', page)
    assert link and served.ask(link[1].replace("&amp;", "&")).status == 200


def test_a_plan_and_what_came_of_it(ws, scene, served):
    scene.turn("break it", a_txt="broken\n")
    place = served.plan(item=ids(served)[0], how="revert")
    plan = told(served, f"{place}.json")["plan"]
    page = served.ask(place).text
    assert plan["hash"] == place.rpartition("/")[2] and f'value="{plan["hash"]}"' in page
    assert "exact (created since)" in page and "takeback revert" in page
    done = served.ask(f"{place}/apply", "POST", {"form": served.form_token(), "hash": plan["hash"]})
    assert done.status == 303 and not (ws.root / "a.txt").exists()
    outcome = served.ask(done.headers["location"])
    assert "took back" in outcome.text and "Take this back" in outcome.text
    assert told(served, f"{done.headers['location']}.json")["whole"] is True
    assert served.ask(place).status == 404  # done is done
    redo = served.plan(how="redo")
    served.ask(f"{redo}/apply", "POST", {"form": served.form_token(), "hash": redo.rpartition("/")[2]})
    assert (ws.root / "a.txt").read_text() == "broken\n"


def test_nothing_to_undo_offers_nothing_to_apply(served):
    page = served.ask(served.plan(how="redo")).text
    assert "nothing to redo" in page and "Apply" not in page


def test_what_drifted_is_kept_or_merged(ws, scene, served):
    (ws.root / "a.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
    ws.checkpoint("start")
    scene.turn("change the first line", a_txt="ONE\ntwo\nthree\nfour\nfive\n")
    (ws.root / "a.txt").write_text("ONE\ntwo\nthree\nfour\nFIVE\n")
    place = _plan_turn(served)
    page = served.ask(place).text
    assert "drifted" in page and "Merge what others changed since" in page and "there is nothing to apply" in page
    forced = served.plan(again=place.rpartition("/")[2], force="1")
    assert "Take what others changed since, too" in page and "exact" in served.ask(forced).text
    assert "--force" in served.ask(forced).text
    merged = served.plan(again=place.rpartition("/")[2], merge="1")
    assert "merged" in served.ask(merged).text
    served.ask(f"{merged}/apply", "POST", {"form": served.form_token(), "hash": merged.rpartition("/")[2]})
    assert (ws.root / "a.txt").read_text() == "one\ntwo\nthree\nfour\nFIVE\n"


def test_an_undo_that_keeps_uncertain_work_is_done_in_part(ws, scene, served):
    from scene import CLAUDE
    from takeback.journal.brackets import Call

    call = Call("1", "Bash", "Bash: make")
    scene.turn("make it", a_txt="made\n")
    ws.begin_call(CLAUDE, call._replace(asked=True))  # nobody will know when it began
    (ws.root / "whose.txt").write_text("?\n")
    ws.end_call(CLAUDE, call)
    page = served.ask(f"/item/{ids(served)[0]}").text
    assert all(f'<span class="badge {word}">{word}</span>' in page for word in ("exact", "uncertain"))
    place = _plan_turn(served)
    done = served.ask(f"{place}/apply", "POST", {"form": served.form_token(), "hash": place.rpartition("/")[2]})
    assert told(served, f"{done.headers['location']}.json")["whole"] is False
    assert "Done in part" in served.ask(done.headers["location"]).text
    assert (ws.root / "whose.txt").exists() and not (ws.root / "a.txt").exists()


def test_work_of_several_turns_is_kept_and_named_until_the_last_of_them_goes(ws, scene, served):
    from scene import CLAUDE, CODEX

    for caller, path in ((CLAUDE, "c.txt"), (CODEX, "x.txt")):
        ws.begin_turn(caller, f"{caller.agent}, go")
        scene.write(path, "its own\n", caller)
    scene.at_once(CLAUDE, CODEX, both_txt="?\n")
    turns = ids(served)[:2]
    for turn, is_left in zip(turns, (True, False)):
        place = served.plan(item=turn, how="revert")
        assert ("shared work: both.txt" in served.ask(place).text) is is_left
        served.ask(f"{place}/apply", "POST", {"form": served.form_token(), "hash": place.rpartition("/")[2]})
        assert (ws.root / "both.txt").exists() is is_left
    assert not any((ws.root / path).exists() for path in ("c.txt", "x.txt"))


def test_peoples_work_is_taken_too_if_asked(ws, scene, served):
    from scene import CODEX

    scene.by_hand("good", a_txt="one\n")
    good = ids(served)[0]
    scene.turn("mine", a_txt="two\n")
    scene.turn("another's", CODEX, b_txt="b\n")
    (ws.root / "c.txt").write_text("by hand\n")
    ws.checkpoint()
    place = served.plan(item=good, how="rollback")
    page = served.ask(place).text
    assert "Take people&#x27;s work too…" in page and "keep people&#x27;s work" in page
    assert "c.txt" not in repr(told(served, f"{place}.json")["plan"]["steps"])
    every = served.plan(again=place.rpartition("/")[2], also="people")
    assert "c.txt" in repr(told(served, f"{every}.json")["plan"]["steps"]) and "--all" in served.ask(every).text
    kept = served.plan(again=every.rpartition("/")[2], keep="1")
    assert kept == place and "Keep people&#x27;s work…" in served.ask(every).text
    served.ask(f"{every}/apply", "POST", {"form": served.form_token(), "hash": every.rpartition("/")[2]})
    assert not (ws.root / "c.txt").exists() and (ws.root / "a.txt").read_text() == "one\n"


def test_a_failure_keeps_the_place(ws, scene, served):
    scene.turn("break it", a_txt="broken\n")
    form = {"form": served.form_token(), "how": "nothing", "filter": "path:a.txt"}
    answer = served.ask("/plan", "POST", form)
    assert answer.status == 400 and 'value="path:a.txt"' in answer.text
    assert 'value="path:a.txt"' in served.ask("/item/nothing?filter=path:a.txt").text


def test_where_nothing_older_is_left_there_is_a_way_back(ws, scene, served):
    scene.turn("one", a_txt="a\n")
    page = served.ask("/timeline?before=" + "x" * 32).text
    assert "nothing older" in page and "← newest" in page and "nothing has happened" not in page


def _plan_turn(served):
    turn = next(t["id"] for t in told(served, "/timeline.json")["turns"] if t["kind"] == "agent")
    return served.plan(item=turn, how="revert")


# -- checkpoints, and one file ---------------------------------------------------------


def test_a_checkpoint_is_taken_and_pinned(ws, served):
    (ws.root / "a.txt").write_text("one\n")
    token = served.form_token()
    taken = served.ask("/checkpoint", "POST", {"form": token, "label": f" before {EVIL} "})
    assert taken.status == 303
    place = taken.headers["location"]
    page = served.ask(place).text
    assert "before &lt;script&gt;" in page and "<script>alert" not in page
    (found,) = [each for each in ws.history().checkpoints if each.label.startswith("before ")]
    for keep, word in (("yes", "Unpin it"), ("no", "Pin it")):
        answer = served.ask("/pin", "POST", {"form": token, "item": found.id, "keep": keep})
        assert answer.status == 303 and word in served.ask(answer.headers["location"]).text
        assert told(served, f"/item/{found.id}.json")["item"]["marks"][0]["pinned"] is (keep == "yes")
    answer = served.ask("/label", "POST", {"form": token, "item": found.id, "label": f" called {EVIL}"})
    page = served.ask(answer.headers["location"]).text
    assert answer.status == 303 and "called &lt;script&gt;" in page and "before &lt;script&gt;" not in page
    head = ws.store.journal.head().seq
    for path in ("/checkpoint", "/label"):
        assert served.ask(path, "POST", {"form": token, "item": found.id, "label": "a\nb"}).status == 400
    assert served.ask("/pin", "POST", {"form": token, "item": "../../etc", "keep": "yes"}).status == 404
    for path in ("/checkpoint", "/pin", "/label"):
        assert served.ask(path, "POST", {"label": "x", "item": found.id, "keep": "yes"}).status == 403
        assert served.ask(f"{path}?label=x&item={found.id}&keep=yes").status == 404
    assert ws.store.journal.head().seq == head


def test_one_file_is_restored_by_a_plan(ws, scene, served):
    scene.by_hand("good", a_txt="one\n", b_txt="one\n")
    scene.turn("break both", a_txt="two\n", b_txt="two\n")
    good = next(t["id"] for t in told(served, "/timeline.json")["turns"] if t["title"] == "good")
    turn = next(t["id"] for t in told(served, "/timeline.json")["turns"] if t["kind"] == "agent")
    for page in (f"/item/{turn}", f"/compare?a={good}"):
        assert served.ask(page).text.count("This file as in checkpoint") == 2
    place = served.plan(item=good, how="restore", path="a.txt")
    assert "a.txt" in served.ask(place).text and (ws.root / "a.txt").read_text() == "two\n"
    hash = place.rpartition("/")[2]
    done = served.ask(f"{place}/apply", "POST", {"form": served.form_token(), "hash": hash})
    assert done.status == 303
    assert ((ws.root / "a.txt").read_text(), (ws.root / "b.txt").read_text()) == ("one\n", "two\n")


@pytest.mark.parametrize("path", ["", "../own-home", "/etc/passwd", "a.txt/../../x", "no-such-file", "\0"])
def test_nothing_outside_the_project_is_restored(ws, scene, served, path):
    scene.by_hand("good", a_txt="one\n")
    form = {"form": served.form_token(), "how": "restore", "item": ids(served)[0], "path": path}
    assert served.ask("/plan", "POST", form).status in (400, 404)


# -- outside the files -------------------------------------------------------------


@pytest.fixture
def payments():
    from servers.payments import serving

    with serving() as found:
        yield found


def charged(ws, payments: Payments) -> None:
    inverse = {"method": "POST", "url": f"{payments.url}/v1/refunds", "json": {"charge": "{response.body.id}"}}
    ws.record_http("POST", f"{payments.url}/v1/charges", status=201, response_body={"id": "ch_1"}, inverse=inverse)


def test_outside_steps_need_a_typed_yes(ws, scene, served, payments):
    import urllib.request

    request = urllib.request.Request(
        f"{payments.url}/v1/charges", b'{"amount": 1}', {"Content-Type": "application/json"}
    )
    urllib.request.urlopen(request).read()
    charged(ws, payments)
    place = served.plan(item=ids(served)[0], how="revert")
    page = served.ask(place).text
    assert "Type yes to do this outside the files" in page and f"POST {payments.url}/v1/refunds" in page
    hash, token = place.rpartition("/")[2], served.form_token()
    for answers in ([], [""], ["y"], ["no"], ["yes", "yes"]):
        refused = served.ask(f"{place}/apply", "POST", {"form": token, "hash": hash, "yes": answers})
        assert refused.status == 403 and "typed yes" in refused.text and not payments.refunds
    done = served.ask(f"{place}/apply", "POST", {"form": token, "hash": hash, "yes": ["yes"]})
    assert done.status == 303 and len(payments.refunds) == 1
    again = served.ask(f"{place}/apply", "POST", {"form": token, "hash": hash, "yes": ["yes"]})
    assert again.status == 404 and len(payments.refunds) == 1


def test_a_yes_is_to_what_was_listed_alone(ws, served, payments, own_home, tmp_path):
    """The policy let one of two steps pass without a question when the plan was shown, and asks for it by now."""
    config = own_home / "config/takeback/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[policy.http]\ncompensating = "allow"\n')
    charged(ws, payments)
    ws.record_command("made a table", argv=["touch", str(tmp_path / "undone")])
    place = served.plan(item=ids(served)[-1], how="rollback")
    page = served.ask(place).text
    listed = page[page.index('aria-label="Steps outside the files"') :].partition("</pre>")[0]
    assert "touch" in listed and "/v1/refunds" not in listed
    config.write_text('[policy.http]\ncompensating = "ask"\n')
    form = {"form": served.form_token(), "hash": place.rpartition("/")[2], "yes": ["yes"]}
    answer = served.ask(f"{place}/apply", "POST", form)
    assert answer.status == 409 and "has changed meanwhile" in answer.text
    assert not payments.refunds and not (tmp_path / "undone").exists()


# -- what is escaped, and what is held back ------------------------------------------


def test_names_prompts_commands_and_labels_are_text(ws, scene, served):
    name = "x<img src=x onerror=alert(1)>\x1b[31m\u202etxt"
    (ws.root / name).write_text(f"{EVIL}\n\x1b]0;owned\x07\u202e\n")
    ws.checkpoint(f"{EVIL}")
    scene.turn(EVIL, a_txt=f"{EVIL}\n")
    scene.bash(f"echo '{EVIL}'", b_txt="x\n")
    pages = [served.ask("/timeline").text, served.ask("/timeline?filter=" + quote(EVIL.replace(" ", "_"))).text]
    for turn in told(served, "/timeline.json")["turns"]:
        pages.append(served.ask(f"/item/{turn['id']}").text)
        pages += [served.ask(f"/item/{part['id']}").text for part in told(served, f"/item/{turn['id']}.json")["parts"]]
    for page in pages:
        assert "<script>alert" not in page and "<img" not in page
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
        assert re.findall(r"<script[^>]*>", page) == ['<script src="/static/page.js" defer>']
        assert not [name for name in attributes(page) if name.startswith("on") or name == "style"]
    assert any("x&lt;img" in page and "\\x1b[31m\\u202etxt" in page for page in pages)
    assert any("&lt;script&gt;alert(1)" in page for page in pages)


def test_secrets_are_not_shown(ws, scene, served):
    key = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
    scene.turn("set it up", _env=f"STRIPE={key}\n", app_py=f"key = '{key}'\n")
    ws.record_http("POST", "https://shop.example/v1/charges", status=201, request_body={"password": "hunter2hunter2"})
    for turn in told(served, "/timeline.json")["turns"]:
        page, twin = served.ask(f"/item/{turn['id']}"), served.ask(f"/item/{turn['id']}.json")
        assert key not in page.text + twin.text and "hunter2hunter2" not in page.text + twin.text
    assert any("contents masked" in served.ask(f"/item/{id}").text for id in ids(served))
    place = _plan_turn(served)
    assert key not in served.ask(place).text and "masked" in served.ask(place).text


def test_secrets_are_not_shown_where_two_points_are_compared(ws, scene, served):
    key = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
    scene.by_hand("good", a_txt="one\n")
    good = ids(served)[0]
    scene.by_hand("bad", _env=f"STRIPE={key}\n", **{f"app{n}_py": f"key = '{key}'\n" for n in range(6)})
    for path in (f"/compare?a={good}", f"/compare.json?a={good}"):
        seen = served.ask(path).text
        assert key not in seen and ".env" in seen and "masked" in seen
    assert "secrets are masked: .env, app0.py, app1.py, app2.py, app3.py, …" in served.ask(f"/compare?a={good}").text


def test_secrets_in_threads_and_mails_are_not_shown(ws, served):
    key = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
    ws.threads.save("main", {"api_key": "named-secret-1", "note": "a"})
    ws.checkpoint("one")
    ws.threads.save("main", {"api_key": "named-secret-2", "note": f"b {key}", key: 1, "m": {"password": "named-3"}})
    ws.checkpoint("two")
    ws.hold_email(["ada@example.com"], "Order 17", f"the key is {key}")
    seen = ""
    for turn in ids(served):
        for id in [turn, *(part["id"] for part in told(served, f"/item/{turn}.json")["parts"])]:
            seen += served.ask(f"/item/{id}").text + served.ask(f"/item/{id}.json").text
    assert "Thread main" in seen and "Order 17" in seen and "[redacted]" in seen
    assert key not in seen and "named-" not in seen


def test_attributes_that_lead_away_or_run_are_refused():
    for name, value in (("href", "javascript:alert(1)"), ("href", "//evil.example"), ("src", "http://evil.example")):
        with pytest.raises(ValueError, match="leads away"):
            html.tag("a", **{name: value})
    for name in ("onclick", "style"):
        with pytest.raises(ValueError, match="not for these pages"):
            html.tag("a", **{name: "x"})
    assert html.tag("a", "<&\"'", title="<&\"'") == '<a title="&lt;&amp;&quot;&#x27;">&lt;&amp;&quot;&#x27;</a>'
    assert html.url("item", "../x?y", filter="a&b") == "/item/..%2Fx%3Fy?filter=a%26b"


def test_nothing_but_html_makes_markup():
    from pathlib import Path

    made = [file.name for file in Path(html.__file__).parent.glob("*.py") if "Markup(" in file.read_text()]
    assert made == ["html.py"]
    with pytest.raises(ValueError, match="not for these pages"):
        html.tag("a", onclick=True)


def test_lines_stand_beside_each_other():
    (hunk,) = hunks(b"a\nb\nc\nd\n", b"a\nB\nc\nd\ne\n")
    found = [(p.before and p.before.text, p.after and p.after.text, p.changed) for p in sides.pairs(hunk)]
    assert found == [("a", "a", False), ("b", "B", True), ("c", "c", False), ("d", "d", False), (None, "e", True)]


def test_every_line_of_a_difference_is_there_once():
    """Whatever the hunk: the left side is the old text, the right side the new one."""
    from hypothesis import given
    from hypothesis import strategies as st

    text = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n"]), max_size=12).map(b"".join)

    @given(text, text)
    def holds(old, new):
        for hunk in hunks(old, new):
            pairs = list(sides.pairs(hunk))
            left = [p.before for p in pairs if p.before]
            right = [p.after for p in pairs if p.after]
            assert [s.number for s in left] == list(range(hunk.old_start, hunk.old_start + hunk.old_lines))
            assert [s.number for s in right] == list(range(hunk.new_start, hunk.new_start + hunk.new_lines))
            assert [s.text.encode() for s in left] == [line[1:] for line in hunk.lines if line[:1] in b" -"]
            assert [s.text.encode() for s in right] == [line[1:] for line in hunk.lines if line[:1] in b" +"]

    holds()


# -- the day at a glance ------------------------------------------------------------------


def test_what_is_quoted_is_no_time():
    from takeback.surfaces.web.strip import without_times

    assert without_times("since:2h path:src/ until:2026-01-31 x") == "path:src/ x"
    assert without_times('"wait until:  then" since:2h') == '"wait until:  then"'
    assert without_times('label:"a since:1h" -x') == 'label:"a since:1h" -x'


def test_whoever_asks_gets_what_was_asked_for():
    """Two pages at once, narrowed differently: the one that is quicker must not answer for the other."""
    from takeback.surfaces.web.strip import Kept

    kept = Kept()

    def slow():
        kept.of("other", lambda: [(0.0, "http"), (0.0, "http")])
        return [(0.0, "files")]

    (day,) = kept.of("mine", slow).days.values()
    assert day.popitem()[1] == {"files": 1}
    assert kept.of("mine", lambda: pytest.fail("it is known")).days


# -- what is wrong is said ------------------------------------------------------------------


def harm(ws, sql):
    import sqlite3

    db = sqlite3.connect(ws.store.folder / "journal.db")
    db.execute(sql)
    db.commit()
    db.close()


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE log SET at = at + 1 WHERE seq = 2", "journal row 2 was altered or lost: take-backs across it are refused"),
        ("UPDATE log SET at = at + 1 WHERE seq IN (2, 3)", "journal row 2 was altered or lost (1 more are, too)"),
        ("DELETE FROM log WHERE seq = (SELECT max(seq) FROM log)", "the journal&#x27;s tail is cut: rows"),
        ("SELECT 1", ""),
    ],
    ids=["altered", "two", "cut", "whole"],
)  # fmt: skip
def test_every_page_says_that_the_journal_is_damaged(ws, scene, serve, sql, said):
    scene.by_hand("good", a_txt="one\n")
    scene.turn("break it", a_txt="two\n")
    harm(ws, sql)
    with serve() as served:
        found = ids(served)
        assert found
        for page in ("/timeline", f"/item/{found[-1]}", "/timeline?filter=nokey:x", "/item/nothing", "/resume"):
            section = served.ask(page).text.partition('id="now"')[2].partition("</section>")[0]
            assert section and said in section
            assert ("takeback verify names what is lost" in section) is bool(said)
        assert bool(told(served, "/timeline.json")["damaged"]) is bool(said)


def test_what_the_system_refuses_is_no_bug(ws):
    import errno

    from starlette.requests import Request

    from takeback.surfaces.web.guard import Keys
    from takeback.surfaces.web.listing import Place
    from takeback.surfaces.web.site import Site

    heard = []
    site = Site(ws, lambda: ws, Keys(), False, lambda: False, heard.append)
    request = Request({"type": "http", "method": "GET", "path": "/x", "headers": [], "query_string": b""})

    def full():
        raise OSError(errno.ENOSPC, "No space left on device")

    answer = site._told(request, Place(), full)
    assert answer.status_code == 500 and len(heard) == 1
    assert b"No space left on device" in answer.body and b"free space on that disk" in answer.body
    assert b"a bug in takeback" not in answer.body
    assert b"a bug in takeback web" in site._told(request, Place(), lambda: 1 // 0).body


def test_a_journal_that_cannot_be_read_is_told_to_pages_that_are_open():
    from concurrent.futures import ThreadPoolExecutor

    import anyio

    from takeback.errors import Damaged, Locked
    from takeback.surfaces.web.live import Doing, events

    class Broken:
        def __init__(self):
            self.found = [Locked("in use", "wait"), Damaged("the journal is damaged", "run takeback verify")]

        def head(self):
            raise self.found.pop(0)

    async def heard():
        return [line async for line in events(Broken(), 7, Doing(), lambda: False)]

    with ThreadPoolExecutor(1) as elsewhere:  # a browser's own loop may run in this thread
        lines = elsewhere.submit(anyio.run, heard).result()
    assert [line.partition("\n")[0] for line in lines] == ["retry: 2000", "event: failed"]


def test_the_address_as_json(ws):
    import subprocess
    import sys

    with subprocess.Popen(
        [sys.executable, "-m", "takeback", "web", "--no-open", "--read-only", "--json"],
        cwd=ws.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        process.terminate()
    assert said["url"].startswith("http://127.") and "/enter?token=" in said["url"] and said["read_only"] is True


def test_without_the_extra_it_says_what_to_install(ws, tmp_path):
    import os
    import subprocess
    import sys

    (tmp_path / "starlette.py").write_text("raise ModuleNotFoundError('no', name='starlette')\n")
    done = subprocess.run(
        [sys.executable, "-m", "takeback", "web", "--no-open"], cwd=ws.root, capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert (
        done.returncode == 1
        and "[web]'" in done.stderr
        and "install it: " in done.stderr
        and "Traceback" not in done.stderr
    )
