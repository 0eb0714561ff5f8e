"""A person with a browser: sees the timeline, opens a diff, takes back the one bad turn, and watches it live."""

from __future__ import annotations

import re

import pytest
from test_web_pages import EVIL

from scene import fifty_turns

MOST_CLICKS = 5


def test_the_one_bad_turn_among_fifty(ws, look, served):
    """Seen, opened, planned, applied, and taken back again: in a few clicks, and the rest stays."""
    fifty_turns(ws)
    person = look()
    page = person.enter(served)
    assert page.locator("#timeline ol > li").count() > 50
    person.click("text=make the failing licence test pass")
    assert page.locator(".sides").first.is_visible()
    assert "return key in KEYS" in page.locator(".sides td.del").first.inner_text()
    assert "return True" in page.locator(".sides td.ins").first.inner_text()
    person.click("text=Take back this turn…")
    page.wait_for_url("**/plan/*")
    assert "Take back" in page.locator("main h2").inner_text() or "Revert" in page.locator("main h2").inner_text()
    assert "exact (was deleted)" in page.locator("main").inner_text()
    assert (ws.root / "licence.py").read_text().endswith("return True\n")  # nothing is done yet
    person.click("text=Apply these 2 steps")
    page.wait_for_url("**/outcome/*")
    assert person.clicks <= MOST_CLICKS
    assert "took back" in page.locator("main").inner_text()
    assert (ws.root / "licence.py").read_text().endswith("return key in KEYS\n")
    assert (ws.root / "test_licence.py").exists() and (ws.root / "docs/page49.md").exists()
    person.click("text=Take this back…")
    person.click("text=Apply these 2 steps")
    page.wait_for_url("**/outcome/*")
    assert not (ws.root / "test_licence.py").exists()


def test_it_is_found_by_search_too(ws, look, served):
    fifty_turns(ws)
    page = look().enter(served)
    page.fill("#filter", "path:licence.py")
    page.keyboard.press("Enter")
    page.wait_for_url("**filter=path*")
    assert "licence test pass" in page.locator("#timeline").inner_text()
    assert "page 49" not in page.locator("#timeline").inner_text()
    page.click("text=make the failing licence test pass")
    assert "filter=path" in page.url and page.locator("#timeline ol > li").count() < 5
    page.fill("#filter", "nokey:x")
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=alert]")
    assert "unknown key" in page.locator("[role=alert]").inner_text()


def test_a_second_tab_sees_it_live(ws, scene, look, served):
    scene.turn("first", a_txt="a\n")
    person = look()
    page = person.enter(served)
    second = person.second()
    second.goto(served.origin + "/timeline")
    second.wait_for_selector("html.is-live")
    scene.turn("came while you looked", b_txt="b\n")
    for tab in (page, second):
        tab.wait_for_selector("#timeline >> text=came while you looked")
    assert "came while you looked" in second.locator("#live").inner_text()
    second.click("#timeline >> text=came while you looked")
    second.wait_for_selector("text=Take back this turn…")
    person.click("text=Undo the last turn…")
    person.click("button.apply")
    page.wait_for_url("**/outcome/*")
    second.wait_for_selector("#timeline >> text=take-back")
    second.wait_for_selector("main >> text=taken back by")  # the item that is open is renewed, too
    assert not (ws.root / "b.txt").exists()


def test_beside_a_plan_only_the_list_is_renewed(ws, scene, look, served):
    scene.turn("break it", a_txt="broken\n")
    person = look()
    page = person.enter(served)
    person.click("text=Undo the last turn…")
    page.wait_for_selector("html.is-live")
    hash = page.url.rpartition("/")[2]
    served.ask(f"/plan/{hash}/apply", "POST", {"form": served.form_token(), "hash": hash})  # from another tab
    page.wait_for_selector("#timeline >> text=take-back")
    assert page.locator("button.apply").is_visible()
    page.click("button.apply")
    page.wait_for_selector("[role=alert]")
    assert "not kept any more" in page.locator("[role=alert]").inner_text()
    assert all("status of 404" in line for line in person.wrong)
    person.wrong.clear()


def test_focus_and_place_stay_when_the_list_is_renewed(ws, look, served):
    scene = fifty_turns(ws)
    page = look().enter(served)
    link = page.locator("#timeline li > a").nth(30)
    link.focus()
    before = page.evaluate("document.activeElement.id")
    scene.turn("one more", z_txt="z\n")
    page.wait_for_selector("#timeline >> text=one more")
    assert page.evaluate("document.activeElement.id") == before
    assert page.locator("#timeline").evaluate("each => each.scrollTop") > 0


def test_an_item_keeps_its_place_in_the_list(ws, look, served):
    fifty_turns(ws)
    page = look().enter(served)
    page.click("text=make the failing licence test pass")
    page.wait_for_selector("[aria-current]")
    assert page.locator("#timeline [aria-current]").evaluate(
        """each => { const r = each.getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; }"""
    )
    page.reload()
    assert "licence test pass" in page.locator("main h2").inner_text()  # its address is its own
    assert page.locator("#timeline [aria-current]").count() == 1


def test_no_name_prompt_command_or_label_runs(ws, scene, look, served):
    (ws.root / "x<img src=x onerror=alert(1)>\x1b[31m\u202etxt").write_text(f"{EVIL}\n")
    ws.checkpoint(EVIL)
    scene.turn(EVIL, a_txt=f"{EVIL}\n")
    scene.bash(f"echo '{EVIL}'", b_txt="x\n")
    page = look().enter(served)  # a dialog or a breach of the policy fails the test
    links = page.locator("#timeline li > a").evaluate_all("all => all.map(each => each.href)")
    for link in [*links, served.origin + "/timeline?filter=%22%3E%3Cscript%3Ealert(9)%3C/script%3E"]:
        page.goto(link)
        assert page.locator("main img, main script, #timeline img, #timeline script").count() == 0
        for part in page.locator(".parts a").evaluate_all("all => all.map(each => each.href)"):
            page.goto(part)
            assert page.locator("img").count() == 0
    assert page.evaluate("document.scripts.length") == 1


def test_injected_markup_could_not_run_either(ws, look, served):
    """Were something not escaped after all: the policy stops inline code, and the sinks that parse text."""
    person = look()
    page = person.enter(served)
    stopped = page.evaluate(
        """() => { try { document.body.innerHTML = '<img src=x onerror="window.ran = 1">'; return false; } catch { return true; } }"""
    )
    assert stopped and page.evaluate("window.ran") is None
    assert person.wrong and all("TrustedHTML" in line or "Trusted Type" in line for line in person.wrong)
    person.wrong.clear()


def test_a_page_of_somebody_else_gets_nothing(ws, scene, look, served, tmp_path):
    """Another site in the same browser: it can neither read, nor frame, nor post a form."""
    import http.server
    import threading

    scene.turn("break it", a_txt="broken\n")
    evil = tmp_path / "evil"
    evil.mkdir()
    (evil / "index.html").write_text(
        f"""<link rel=icon href="data:,"><iframe id=f src="{served.origin}/timeline"></iframe>
        <form id=g method=post action="{served.origin}/plan"><input name=how value=undo></form>
        <script>
        fetch("{served.origin}/timeline.json", {{credentials: "include"}}).then(r => r.text()).then(
          t => document.title = "read " + t.length, () => document.title = "refused");
        </script>"""
    )
    handler = lambda *a: http.server.SimpleHTTPRequestHandler(*a, directory=str(evil))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        person = look()
        person.enter(served)
        tab = person.second()
        tab.goto(f"http://127.0.0.1:{server.server_address[1]}/")
        tab.wait_for_function("document.title != ''")
        assert tab.title() == "refused"
        assert all("broken" not in frame.content() and "takeback" not in frame.content() for frame in tab.frames[1:])
        asked = tab.evaluate("document.cookie")
        assert "takeback" not in asked
        tab.evaluate("document.getElementById('g').submit()")
        tab.wait_for_url(served.origin + "/plan")
        assert "takeback:" in tab.content() and (ws.root / "a.txt").exists()
        assert person.wrong
        person.wrong.clear()  # what the browser itself says of that page
        server.shutdown()
    assert not [row for row in ws.log() if row.kind == "takeback"]


SAYS = """document.addEventListener("DOMContentLoaded", () => {
  const live = document.getElementById("live");
  window.said = [];
  if (live) new MutationObserver(() => window.said.push(live.textContent)).observe(live, { childList: true });
});"""


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            'event: progress\ndata: {"done": 1, "of": 3}\n\nevent: progress\ndata: {"done": 3, "of": 3}\n\n',
            ["Applying: 1 of 3 steps done", ""],
        ),
        ('event: failed\ndata: {"message": "the journal is damaged <b>"}\n\n', ["the journal is damaged <b>"]),
    ],
    ids=["a take-back elsewhere", "a journal that cannot be read"],
)
def test_what_is_told_from_elsewhere_is_said_while_it_is_so(look, served, told, said):
    page = look().page
    stream = {"content_type": "text/event-stream", "body": f"retry: 60000\n\n{told}"}
    page.add_init_script(SAYS)
    page.route("**/events*", lambda route: route.fulfill(**stream))
    page.goto(served.entry)
    page.wait_for_url("**/timeline")
    page.wait_for_function("count => window.said && window.said.length >= count", arg=len(said))
    assert page.evaluate("window.said")[: len(said)] == said


def test_a_page_says_when_the_server_is_gone(ws, look, serve):
    person = look()
    with serve() as served:
        page = person.enter(served)
    page.wait_for_function("() => document.getElementById('live').textContent.includes('lost')")
    person.wrong.clear()  # the browser's own complaint of a refused connection


def test_outside_steps_ask_for_a_typed_yes(ws, look, served):
    from servers.payments import serving

    with serving() as payments:
        inverse = {"method": "POST", "url": f"{payments.url}/v1/refunds", "json": {"charge": "ch_1"}}
        ws.record_http("POST", f"{payments.url}/v1/charges", status=201, response_body={"id": "ch_1"}, inverse=inverse)
        person = look()
        page = person.enter(served)
        person.click("#timeline li:first-child a")
        person.click("text=Take back this")
        page.wait_for_url("**/plan/*")
        assert f"POST {payments.url}/v1/refunds" in page.locator(".confirm pre").inner_text()
        page.click("button.apply")  # the field is required: nothing is sent
        assert "/plan/" in page.url and not payments.refunds
        page.get_by_label(re.compile("Type yes")).fill("yes")
        page.click("button.apply")
        page.wait_for_url("**/outcome/*")
    assert page.locator("main h2").inner_text() in ("Done", "Done in part")


def test_read_only_has_no_buttons(ws, scene, look, serve):
    scene.turn("break it", a_txt="broken\n")
    with serve("--read-only") as served:
        page = look().enter(served)
        page.click("#timeline >> text=break it")
        page.wait_for_selector(".sides")
        assert page.locator("form[method=post]").count() == 0 and page.locator("main button").count() == 0
        assert "read-only" in page.locator("header").inner_text()


@pytest.mark.parametrize("script", [True, False], ids=["with scripts", "without scripts"])
def test_links_and_forms_are_enough(ws, scene, chromium, served, script):
    scene.turn("break it", a_txt="broken\n")
    context = chromium.new_context(java_script_enabled=script)
    page = context.new_page()
    page.goto(served.entry)
    page.wait_for_url("**/timeline")
    page.click("#timeline >> text=break it")
    page.click("text=Take back this turn…")
    page.click("button.apply")
    page.wait_for_url("**/outcome/*")
    context.close()
    assert not (ws.root / "a.txt").exists()
