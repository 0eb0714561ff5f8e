"""Each line is blamed on the edit that last wrote it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import takeback
from sampling import examples
from takeback.errors import NotFound, UsageError
from takeback.journal.brackets import Call, Caller

CALLERS = {name: Caller(name, f"session of {name}") for name in ("claude", "codex")}


@pytest.fixture
def ws(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    with takeback.open(root, create=True, store="memory") as opened:
        yield opened


class Keys:
    last = 0


def turn(ws, agent: str, prompt: str, changes: dict[str, str | None]):
    """One turn with one call; its id, and that of the call."""
    Keys.last += 1
    call = Call(str(Keys.last), "Bash", "Bash: edit")
    begun = ws.begin_turn(CALLERS[agent], prompt)
    opened = ws.begin_call(CALLERS[agent], call)
    for path, content in changes.items():
        if content is None:
            (ws.root / path).unlink()
        else:
            (ws.root / path).write_text(content)
    ws.end_call(CALLERS[agent], call)
    return begun.turn.number, opened.bracket.id


def blamed(ws, path: str = "a.txt") -> list[tuple[str, str]]:
    """(prompt, actor or kind of origin; line) for each line."""
    return [
        (region.origin.prompt or region.origin.actor or region.origin.kind, line.decode())
        for region in ws.blame(path).regions
        for line in region.lines
    ]


def test_each_line_names_its_turn_call_and_prompt(ws):
    turn_id, call_id = turn(ws, "claude", "shout", {"a.txt": "one\nTWO\nthree\n"})
    turn(ws, "codex", "add", {"a.txt": "one\nTWO\nthree\nfour\n"})
    assert blamed(ws) == [("before", "one"), ("shout", "TWO"), ("before", "three"), ("add", "four")]
    origin = ws.blame("a.txt").regions[1].origin
    assert (origin.turns, origin.calls, origin.actor) == ((turn_id,), (call_id,), "claude")
    assert origin.sessions == ("session of claude",)


def test_what_nobody_has_captured_yet_is_pending_and_journals_nothing(ws):
    (ws.root / "a.txt").write_text("one\n2\nthree\n")
    head = ws.store.journal.head()
    assert blamed(ws) == [("before", "one"), ("pending", "2"), ("before", "three")]
    (ws.root / "new.txt").write_text("x\n")
    assert blamed(ws, "new.txt") == [("pending", "x")]
    assert ws.store.journal.head() == head


def test_a_persons_edit_is_nobody_elses(ws):
    turn(ws, "claude", "shout", {"a.txt": "ONE\ntwo\nthree\n"})
    (ws.root / "a.txt").write_text("ONE\ntwo\n3\n")
    ws.checkpoint(named=False)
    assert blamed(ws) == [("shout", "ONE"), ("before", "two"), ("effect", "3")]


def test_what_a_take_back_brings_back_is_whose_it_was(ws):
    turn(ws, "claude", "first", {"a.txt": "ONE\ntwo\nthree\n"})
    turn(ws, "codex", "second", {"a.txt": "uno\ndos\nthree\n"})
    ws.undo()
    assert blamed(ws) == [("first", "ONE"), ("before", "two"), ("before", "three")]
    ws.redo()
    assert blamed(ws) == [("second", "uno"), ("second", "dos"), ("before", "three")]


def test_lines_that_a_take_back_found_as_it_wanted_them_are_whose_they_are(ws):
    turn(ws, "claude", "make it", {"n.txt": "x\n"})
    ws.undo()
    (ws.root / "n.txt").write_text("x\n")
    ws.checkpoint("mine")
    before = blamed(ws, "n.txt")
    ws.redo()
    assert blamed(ws, "n.txt") == before == [("effect", "x")]


def test_a_merged_take_back_keeps_what_others_wrote_theirs(ws):
    long = [f"line {n}" for n in range(9)]
    (ws.root / "a.txt").write_text("\n".join(long) + "\n")
    ws.checkpoint("long")
    turn(ws, "claude", "top", {"a.txt": "\n".join(["TOP", *long[1:]]) + "\n"})
    turn(ws, "codex", "end", {"a.txt": "\n".join(["TOP", *long[1:8], "END"]) + "\n"})
    ws.revert(next(r.id for r in ws.log("actor:claude kind:effect")), merge=True)
    found = blamed(ws)
    assert found[0] == ("effect", "line 0") and found[-1] == ("end", "END")  # line 0 was a person's


def test_a_renamed_file_goes_on_under_its_new_name(ws):
    turn(ws, "claude", "shout", {"a.txt": "one\nTWO\nthree\n"})
    turn(ws, "codex", "move", {"a.txt": None, "b.txt": "one\nTWO\nthree\nfour\n"})
    assert blamed(ws, "b.txt") == [("before", "one"), ("shout", "TWO"), ("before", "three"), ("move", "four")]
    assert ws.blame("b.txt").names == ("a.txt",)
    with pytest.raises(NotFound, match=r"renamed to b\.txt"):
        ws.blame("a.txt")


def test_what_has_no_lines_is_refused_by_name(ws):
    (ws.root / "bin").write_bytes(b"\0\1\2")
    (ws.root / "folder").mkdir()
    (ws.root / "link").symlink_to("a.txt")
    ws.checkpoint("odd")
    for path, why in (("bin", "binary"), ("folder", "no file"), ("link", "no file"), (".", "no file")):
        with pytest.raises(UsageError, match=why):
            ws.blame(path)
    with pytest.raises(NotFound, match="there is no file"):
        ws.blame("never")
    turn(ws, "claude", "drop", {"a.txt": None})
    with pytest.raises(NotFound, match="is gone"):
        ws.blame("a.txt")


def test_what_was_pruned_is_from_before(ws):
    turn(ws, "claude", "shout", {"a.txt": "ONE\ntwo\nthree\n"})
    ws.checkpoint("here")
    ws.prune(keep=1)
    turn(ws, "codex", "more", {"a.txt": "ONE\ntwo\n3\n"})
    assert blamed(ws) == [("before", "ONE"), ("before", "two"), ("more", "3")]


# Lines are all different, so that there is one truth about who wrote each.
edit = st.tuples(st.sampled_from(("insert", "replace", "delete", "move file")), st.integers(0, 9), st.integers(1, 3))
stories = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(("claude", "codex")), st.lists(edit, min_size=1, max_size=3)),
        st.sampled_from(("undo", "redo")),
    ),
    max_size=10,
)


@examples(30, 300)
@given(stories)
def test_each_line_is_blamed_on_the_edit_that_last_wrote_it(tmp_path_factory, story):
    root = tmp_path_factory.mktemp("blame")
    name, lines = "a.txt", [("before", f"old {n}") for n in range(5)]
    (root / name).write_text("".join(f"{line}\n" for _, line in lines))
    versions, undone = [(name, lines)], []  # of turns; what undo and redo step over
    with takeback.open(root, create=True, store="memory") as ws:
        for number, step in enumerate(story):
            if step == "undo" and len(versions) > 1:
                undone.append(versions.pop())
                ws.undo()
            elif step == "redo" and undone:
                versions.append(undone.pop())
                ws.redo()
            elif isinstance(step, tuple):
                agent, edits = step
                undone.clear()
                name, lines = versions[-1][0], list(versions[-1][1])
                moved = name
                for at, (kind, place, count) in enumerate(edits):
                    place = min(place, len(lines))
                    new = [(f"prompt {number}", f"line {number}.{at}.{n}") for n in range(count)]
                    if kind == "insert":
                        lines[place:place] = new
                    elif kind == "replace":
                        lines[place : place + count] = new
                    elif kind == "delete":
                        del lines[place : place + count]
                    elif lines:
                        moved = f"moved {number}"
                content = "".join(f"{line}\n" for _, line in lines)
                # A file with nothing left of it is not recognised under another name.
                old = {line for _, line in versions[-1][1]}
                if moved != name and sum(line in old for _, line in lines) * 4 < 3 * max(len(lines), len(old)):
                    moved = name
                changes = {moved: content} if moved == name else {name: None, moved: content}
                turn(ws, agent, f"prompt {number}", changes)
                if (moved, lines) != versions[-1]:
                    versions.append((moved, lines))
            name, lines = versions[-1]
            assert blamed(ws, name) == lines
