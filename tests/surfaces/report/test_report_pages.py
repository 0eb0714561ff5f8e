"""The report as a page and as Markdown, of a project whose every name wants to be something else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from scene import Scene
from takeback.journal.brackets import Call, Caller
from takeback.model.outside import NewAct
from takeback.show import report, report_span, report_values
from takeback.surfaces.report import markdown, page, picture
from takeback.surfaces.report.shape import shape
from takeback.workspace import Workspace

SCRIPT = "<script>alert(1)</script>"
EVIL = f"\"'>{SCRIPT}<img src=x onerror=alert(1)>](javascript:x) ``` # h \x1b[31m\u202e"
NAMES = (
    "<b onclick=x>",
    "a`b",
    "*em* [l](www.e.example)",
    "\u202etxt.exe",
    "new\nline",
    "esc\x1b[2J",
    "| t |",
    "# head",
)


@pytest.fixture
def evil(ws: Workspace) -> report_values.Report:
    """A prompt, an agent, a session, names, contents, labels, acts and state, all hostile."""
    scene = Scene(ws)
    caller = Caller(f"agent{SCRIPT}", EVIL)
    ws.checkpoint(EVIL.replace("\n", " "))
    ws.begin_turn(caller, EVIL)
    for name in NAMES:
        scene.write(name, f"{EVIL}\n```\n# not a heading\n</pre>{SCRIPT}\n", caller)
    ws.record_http("POST", "https://shop.example/x", status=200, request_body=EVIL, response_body=EVIL, summary=EVIL,
                   by={"actor": caller.agent})  # fmt: skip
    ws.threads.save(f"t{SCRIPT}", {EVIL: EVIL})
    ws.checkpoint("one")
    ws.threads.save(f"t{SCRIPT}", {EVIL: EVIL + "!"})
    ws.checkpoint("two")
    ws.undo()
    return report.make(ws, report_span.find(ws))


class Seen(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def test_the_page_has_our_tags_only_and_leads_nowhere(evil: report_values.Report) -> None:
    text = page.written(evil)
    seen = Seen(text)
    assert not {"script", "img", "b", "iframe", "link", "object", "form", "base", "use", "image"} & {
        t for t, _ in seen.tags
    }
    for tag, attributes in seen.tags:
        assert not [
            name for name in attributes if name.startswith("on") or name in ("style", "src", "srcdoc", "xlink:href")
        ]
        assert attributes.get("href", "#").startswith("#"), tag  # type: ignore[union-attr]
    assert SCRIPT in "".join(seen.said), "it is shown as text"
    assert not re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]", text)
    assert "url(" not in text and "@import" not in text


def test_links_in_the_page_lead_to_something_in_it(evil: report_values.Report) -> None:
    seen = Seen(page.written(evil))
    ids = [attributes["id"] for _, attributes in seen.tags if "id" in attributes]
    wanted = {attributes["href"][1:] for tag, attributes in seen.tags if tag == "a" and attributes.get("href")}
    assert wanted and wanted <= set(ids)
    assert len(ids) == len(set(ids)), "an id is there once"


def test_a_take_back_of_what_is_not_in_the_span_names_it_without_a_link(ws: Workspace) -> None:
    scene = Scene(ws)
    scene.turn("first", a_txt="a\n")
    ws.checkpoint("middle")
    scene.turn("second", b_txt="b\n")
    ws.rollback("start", everything=True)
    found = report.make(ws, report_span.find(ws, "..middle"))
    (back,) = found.takebacks
    assert len(back.took) == 2 and len([turn for turn in found.turns if turn.kind == "agent"]) == 1
    seen = Seen(page.written(found))
    ids = {attributes.get("id") for _, attributes in seen.tags}
    assert {attributes["href"][1:] for tag, attributes in seen.tags if tag == "a" and attributes.get("href")} <= ids
    assert all(id[:8] in "".join(seen.said) for id in back.took)


def test_what_two_turns_share_is_told_of_once(ws: Workspace) -> None:
    scene = Scene(ws)
    one, other = Caller("claude", "s1"), Caller("codex", "s2")
    for caller, prompt in ((one, "first"), (other, "second")):
        ws.begin_turn(caller, prompt)
        ws.begin_call(caller, Call(prompt, "Bash", f"Bash: {prompt}"))
    (scene.root / "shared.txt").write_text("by both\n")
    ws.end_call(one, Call("first", "Bash", "Bash: first"))
    ws.end_call(other, Call("second", "Bash", "Bash: second"))
    found = report.make(ws, report_span.find(ws))
    assert (found.totals.effects, found.totals.files, found.totals.lines) == (1, 1, (1, 0))
    assert [(turn.agent, turn.domains, turn.lines, turn.shared) for turn in found.turns] == [
        ("claude", {"files": 1}, (1, 0), 1),
        ("codex", {"files": 1}, (1, 0), 1),
    ]
    assert all("shared by claude, codex" in written(found) for written in (page.written, markdown.written))
    ids = [attributes["id"] for _, attributes in Seen(page.written(found)).tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_its_policy_allows_its_own_style_and_nothing_else(evil: report_values.Report) -> None:
    text = page.written(evil)
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = [a["content"] for tag, a in Seen(text).tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'"
    assert "prefers-color-scheme: dark" in style and "@media print" in style


def test_markdown_shows_everything_as_it_is(evil: report_values.Report) -> None:
    """Without code spans and fences nothing of it is left that Markdown could read."""
    text = markdown.written(evil)
    assert SCRIPT in text
    assert not re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    left, fence = [], ""
    for line in text.split("\n"):
        if fence:
            fence = "" if line.strip() == fence else fence
        elif opened := re.match(r" *(`{3,})(?:diff)?$", line):
            fence = opened[1]
        else:
            left.append(re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", line))
    assert not fence
    rest = "\n".join(left)
    assert not re.search(r"[<\[\]`]|https?:|javascript", rest), re.search(r".*([<\[\]`]|https?:).*", rest)
    headings = {line.lstrip("# ").strip() for line in left if line.startswith("#")}
    assert not [h for h in headings if h == "h" or "head" in h]


def test_code_spans_hold_whatever_is_in_them() -> None:
    assert markdown.code("a") == "`a`"
    assert markdown.code("a`b``c") == "```a`b``c```"
    assert markdown.code("`a") == "`` `a ``"
    assert markdown.code(" ") == "` `"
    assert markdown.code("a\nb\x1b") == "`a\\nb\\x1b`"
    assert markdown.fenced("x\n````\n") == ["`````", "x", "````", "", "`````"]


def test_json_has_the_same_and_is_plain(evil: report_values.Report) -> None:
    found = json.loads(json.dumps(shape(evil)))
    assert found["report"] == 1
    assert set(found) == {"report", *report_values.Report._fields}
    agent = next(turn for turn in found["turns"] if turn["kind"] == "agent")
    assert agent["prompt"].startswith("\"'><script>") and len(agent["calls"]) == len(NAMES)
    assert {file["path"] for file in agent["files"]} == set(NAMES)
    for text in (page.written(evil), markdown.written(evil)):
        for turn in found["turns"]:
            assert turn["id"].rpartition("-")[2][:8] in text
        for each in (*found["takebacks"], *found["checkpoints"]):
            assert each["id"][:8] in text
        for each in found["remains"]:
            assert each["effect"][:8] in text or each["turn"].rpartition("-")[2][:8] in text
        assert found["integrity"]["hash"] in text


def test_an_empty_span_has_a_report_too(ws: Workspace, project: Path) -> None:
    (project / "a").write_text("a")
    ws.checkpoint("late")
    found = report.make(ws, report_span.find(ws, "late"))
    assert not found.turns and not found.activity.bins
    assert "Nothing was done in this span." in page.written(found) and "Nothing was" in markdown.written(found)


def test_what_is_left_to_do_and_where_is_in_every_format(ws: Workspace) -> None:
    ws.record(NewAct("ledger", "booked", "thing://1", None, "irreversible", {"left_to_do": "call the bank"}))
    found = report.make(ws, report_span.find(ws))
    for text in (page.written(found), markdown.written(found)):
        assert text.count("call the bank") == 2, "with the effect, and with what could not be taken back"
        assert "thing://1" in text


def test_the_picture_has_a_lane_for_each_domain_and_a_bar_for_each_moment() -> None:
    bins = tuple(
        report_values.Bin(1e9 + 60 * n, {"files": n, "zeta": 1} if n in (1, 4) else {}, int(n == 3)) for n in range(6)
    )
    activity = report_values.Activity(60.0, bins)
    assert picture.domains(activity) == ["files", "zeta"]
    drawn = picture.drawn(activity)
    seen = Seen(drawn)
    assert len([tag for tag, _ in seen.tags if tag == "rect"]) == 4
    assert {"files", "zeta", "taken back", "↩"} <= set(seen.said)
    assert "1 take-back" in drawn and "4 effects, files" in drawn
    heights = [float(a["height"] or 0) for tag, a in seen.tags if tag == "rect" and a.get("class") == "d-files"]
    assert heights == sorted(heights) and heights[0] * 3 < heights[1]
    assert picture.written(activity)[:3] == ["files       ▃  █", "zeta        █  █", "taken back    ↩"]
