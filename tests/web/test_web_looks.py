"""Whether everybody can use it: names for all that can be reached, contrast, order, focus, a phone, light and dark.

The checks are our own, in the page itself; each is held against a page that breaks it.
"""

from __future__ import annotations

import pytest

from scene import Scene

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "device_scale_factor": 2}
WAYS = {"light": {"color_scheme": "light"}, "dark": {"color_scheme": "dark"}, "phone": PHONE}

# What is wrong with a page, as sentences. Contrast is counted as WCAG 2.2 has it: 4.5, or 3 for large text.
CHECKS = r"""
() => {
  const wrong = [];
  const seen = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !e.closest(".hidden, .skip");
  const called = (e) => {
    const by = e.getAttribute("aria-labelledby");
    const label = e.getAttribute("aria-label") || (by && document.getElementById(by)?.textContent)
      || (e.labels && [...e.labels].map((l) => l.textContent).join(" ")) || e.textContent || e.getAttribute("title");
    return (label || "").trim();
  };
  const told = (e) => e.outerHTML.slice(0, 90);

  for (const e of document.querySelectorAll("a[href], button, input:not([type=hidden]), summary, [tabindex='0'], svg[role], nav, section"))
    if (seen(e) && !called(e)) wrong.push(`no name: ${told(e)}`);
  const names = [...document.querySelectorAll("nav")].filter(seen).map(called);
  if (new Set(names).size !== names.length) wrong.push(`two landmarks of one name: ${names}`);
  for (const mark of ["header", "main"])
    if (document.querySelectorAll(`body > ${mark}, body > .two > ${mark}`).length !== 1) wrong.push(`not one ${mark}`);
  if (!document.querySelector("html[lang]")) wrong.push("no language");
  if (!document.title) wrong.push("no title");
  if (!document.querySelector("[aria-live]")) wrong.push("nobody hears of what is new");

  let level = 0;
  for (const h of [...document.querySelectorAll("h1, h2, h3, h4")].filter(seen)) {
    const own = Number(h.tagName[1]);
    if (own > level + 1) wrong.push(`heading leaps to h${own}: ${told(h)}`);
    level = own;
  }
  if (document.querySelectorAll("h1").length !== 1) wrong.push("not one h1");
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push(`id twice: ${id}`);
  for (const e of document.querySelectorAll("[aria-labelledby], [aria-describedby]"))
    for (const name of ["aria-labelledby", "aria-describedby"])
      if (e.getAttribute(name) && !document.getElementById(e.getAttribute(name))) wrong.push(`leads nowhere: ${told(e)}`);
  for (const e of document.querySelectorAll("table")) if (!e.querySelector("th")) wrong.push(`no heads: ${told(e)}`);
  for (const e of document.querySelectorAll("[tabindex]")) if (Number(e.getAttribute("tabindex")) > 0) wrong.push(`own order: ${told(e)}`);

  const parts = (c) => (c.match(/[\d.]+/g) || []).map(Number);
  const over = (top, below) => {
    const a = top[3] === undefined ? 1 : top[3];
    return [0, 1, 2].map((n) => top[n] * a + below[n] * (1 - a));
  };
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) {
      const c = parts(getComputedStyle(at).backgroundColor);
      layers.push(c);
      if (c.length === 3 || c[3] === 1) break;
    }
    const canvas = matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
    return layers.reverse().reduce((below, top) => over(top, below), canvas);
  };
  const reader = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (reader.nextNode()) {
    const e = reader.currentNode.parentElement;
    if (!reader.currentNode.data.trim() || !seen(e) || e.closest("[aria-hidden=true], [aria-disabled=true]")) continue;
    const style = getComputedStyle(e);
    const below = ground(e);
    const [a, b] = [light(over(parts(style.color), below)), light(below)].sort((x, y) => y - x);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (large ? 3 : 4.5)) wrong.push(`contrast ${ratio.toFixed(2)} of ${JSON.stringify(reader.currentNode.data.slice(0, 40))} in ${told(e)}`);
  }
  if (document.documentElement.scrollWidth > innerWidth + 1) wrong.push(`wider than the screen: ${document.documentElement.scrollWidth}`);
  return wrong;
}
"""


@pytest.fixture
def busy(ws):
    """A bit of everything."""
    scene = Scene(ws)
    (ws.root / "src").mkdir()
    scene.turn("add a form", src__form_html="<form>\n  <input>\n</form>\n", notes_md="# Notes\n\nfirst\n")
    scene.by_hand(
        "release 1", notes_md="# Notes\n\nsecond, by hand, a line that is long enough to be wrapped on a phone\n"
    )
    inverse = {"method": "DELETE", "url": "https://shop.example/v1/charges/{response.body.id}"}
    ws.record_http("POST", "https://shop.example/v1/charges", status=201, response_body={"id": "c1"}, inverse=inverse)
    ws.record_http("POST", "https://shop.example/v1/mails", status=202)
    ws.hold_email("bob@example.com", "Order 17", "Dear Bob,\n\nthank you for your order.\n")
    act = ws.record_command("made a bucket", argv=["sleep", "60"], timeout=0.1)
    ws.approve(plan := ws.plan("revert", act.id))
    ws.apply(plan)
    scene.turn("change the form", src__form_html="<form>\n  <input name=q>\n</form>\n")
    ws.undo()
    ws.pin("release 1")
    return ws


def places(page):
    """Every kind of view, by its address."""
    items = page.locator("#timeline li > a").evaluate_all("all => all.map(each => each.href)")
    yield from (page.url, *items)
    page.goto(items[-2])
    yield from page.locator(".parts a").evaluate_all("all => all.map(each => each.href)")


@pytest.mark.parametrize("way", WAYS)
def test_every_view_can_be_used_by_everybody(busy, look, served, way):
    page = look(**WAYS[way]).enter(served)
    found = {}
    for place in list(places(page)):
        page.goto(place)
        if wrong := page.evaluate(CHECKS):
            found[place] = wrong
    page.goto(served.origin + served.plan(item=_turn(served), how="rollback"))
    found |= {"plan": wrong} if (wrong := page.evaluate(CHECKS)) else {}
    page.goto(served.origin + served.plan(how="redo"))
    found |= {"redo": wrong} if (wrong := page.evaluate(CHECKS)) else {}
    page.click("button.apply")
    page.wait_for_url("**/outcome/*")
    found |= {"outcome": wrong} if (wrong := page.evaluate(CHECKS)) else {}
    page.goto(served.origin + "/timeline?filter=nokey:x")
    found |= {"wrong filter": wrong} if (wrong := page.evaluate(CHECKS)) else {}
    acts = {act.shown_state: act.id for act in busy.effects()}
    for asks in (f"/item/{acts['held']}", f"/release/{acts['held']}", f"/resolve/{acts['unknown']}?said=not-undone"):
        page.goto(served.origin + asks)
        assert page.locator("main .button, main button.apply").count()
        found |= {asks: wrong} if (wrong := page.evaluate(CHECKS)) else {}
    assert not found


@pytest.mark.parametrize("way", WAYS)
def test_so_can_the_page_of_what_was_interrupted(busy, look, served, way):
    def stop(steps, results):
        raise KeyboardInterrupt

    busy.told = stop
    with pytest.raises(KeyboardInterrupt):
        busy.redo()
    page = look(**WAYS[way]).enter(served)
    assert page.locator("#now .button").count() == 2 and page.evaluate(CHECKS) == []
    page.click("#now >> text=go back…")
    page.wait_for_url("**/resume?abort=yes")
    assert page.locator("button.apply").is_visible() and page.evaluate(CHECKS) == []


def _turn(served):
    import json

    turns = json.loads(served.ask("/timeline.json").text)["turns"]
    return [turn["id"] for turn in turns if turn["kind"] == "agent"][-1]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("document.querySelector('#filter').labels[0].remove(); document.querySelector('#filter').title = ''", "no name"),
        ("document.querySelector('.facts').setAttribute('style', 'color: #999'); "
         "document.styleSheets[0].insertRule('.facts { color: #aaa !important }')", "contrast"),
        ("document.querySelector('main h2').replaceWith(document.createElement('h4')); "
         "document.querySelector('main h4').textContent = 'x'", "leaps"),
        ("document.querySelector('main').id = 'timeline'", "id twice"),
        ("document.querySelector('main p').textContent = 'x'.repeat(9000); "
         "document.styleSheets[0].insertRule('main, .two { overflow: visible !important; display: block }'); "
         "document.styleSheets[0].insertRule('main p { overflow-wrap: normal !important; max-width: none !important; white-space: nowrap }', 0)", "wider"),
    ],
)  # fmt: skip
def test_the_checks_see_what_is_broken(busy, look, served, broken, said):
    person = look()
    page = person.enter(served)
    assert page.evaluate(CHECKS) == []
    page.evaluate(f"() => {{ {broken} }}")
    assert any(said in line for line in page.evaluate(CHECKS))
    person.wrong.clear()  # a style attribute is against the policy


def test_the_keyboard_is_enough_and_focus_is_seen(busy, look, served):
    """From the first key to the applied plan: no click, no trap, and it always shows where one is."""
    page = look().enter(served)
    reached = []
    for _ in range(80):
        page.keyboard.press("Tab")
        at = page.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e), hour = e.querySelector && e.querySelector(".hour");
            const ring = s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2;
            return [e.tagName, e.id || e.getAttribute("href") || e.textContent.slice(0, 40), ring || (hour && getComputedStyle(hour).stroke !== "none")]; }"""
        )
        if at[0] == "BODY":
            break
        assert at[2], f"focus is not seen on {at}"
        reached.append(at[1])
    else:
        raise AssertionError(f"the keyboard never gets out again: {reached[-5:]}")
    assert reached[0] == "#detail" and "filter" in reached and any(r.startswith("t-") for r in reached)
    page.locator("#timeline li > a").first.focus()
    first = page.evaluate("document.activeElement.id")
    page.keyboard.press("ArrowDown")
    second = page.evaluate("document.activeElement.id")
    assert second.startswith("t-") and second != first
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.id") == first
    page.keyboard.press("Enter")
    page.wait_for_url("**/item/*")
    page.locator("text=Take this").or_(page.locator("text=Take back this")).first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/plan/*")
    page.locator("button.apply").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/outcome/*")


def test_letters_mean_nothing_outside_the_list(busy, look, served):
    page = look().enter(served)
    page.locator("#filter").focus()
    page.keyboard.type("jk")
    assert page.locator("#filter").input_value() == "jk"


def test_a_phone_shows_one_thing_at_a_time(busy, look, served):
    page = look(**PHONE).enter(served)
    assert page.locator("#timeline").is_visible()
    page.locator("#timeline li > a", has_text="add a form").tap()
    page.wait_for_selector(".sides")
    page.wait_for_load_state()  # with its style
    assert not page.locator("#timeline").is_visible() and page.locator("text=← timeline").is_visible()
    for button in page.locator("main button, main .button").all():
        assert button.bounding_box()["height"] >= 44
    page.locator("text=← timeline").tap()
    page.wait_for_selector("#timeline")
    assert page.locator("#timeline").is_visible()


def test_dark_is_dark(busy, look, served):
    shades = {}
    for way in ("light", "dark"):
        page = look(color_scheme=way).enter(served)
        shades[way] = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert shades["light"] == "rgb(255, 255, 255)" and shades["dark"] != shades["light"]


def test_it_works_offline(busy, look, served):
    """Nothing is loaded from anywhere else."""
    person = look()
    asked = []
    person.page.on("request", lambda request: asked.append(request.url))
    page = person.enter(served)
    page.click("#timeline li:first-child a")
    page.wait_for_load_state()
    assert asked and all(url.startswith(served.origin) for url in asked)
