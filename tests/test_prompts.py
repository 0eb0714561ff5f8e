"""A person at work while an agent asks about a call: none of it is ever the call's for certain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import takeback
from takeback.journal import brackets
from takeback.journal.brackets import Call, Caller
from takeback.look import prompts
from takeback.show import report, report_span
from takeback.system import processes
from test_workspace_model import examples, without_waiting_for_the_disk

assert without_waiting_for_the_disk  # a fixture: here too nobody waits for the disk

CLAUDE = Caller("claude", "s1")
BASH = Call("1", "Bash", "Bash: make")
WRITE = Call("1", "Write", "Write a.txt", (b"a.txt",), scans=False)
START = {"a.txt": "one\ntwo\nthree\n", "d/b.txt": "b\n", "d/c.txt": "c\n"}


@pytest.fixture(autouse=True)
def told_at_once(monkeypatch):
    """Agents tell of the end of a call without delay, so that the tests need not wait for long."""
    monkeypatch.setattr(brackets, "EARLY", 0.02)
    monkeypatch.setattr(brackets, "SEEN", 0.01)
    monkeypatch.setattr(prompts, "_SHARE", 0)  # nor need they be sparing with looks


@pytest.fixture
def ws(tmp_path, monkeypatch):
    monkeypatch.setenv("TAKEBACK_HOME", str(tmp_path / "home"))
    root = tmp_path / "project"
    for path, text in START.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    with takeback.open(root, create=True) as opened:
        opened.keep_watch()
        yield opened


def whose(ws):
    """(path, who), oldest first, with "?" where it is uncertain."""
    found = ((e, path) for e in ws.history().effects if not e.takeback for path in sorted(e.changes))
    return [(path.decode(), ", ".join(sorted(e.actors)) + "?" * e.uncertain) for e, path in found if path != b"d"]


def a_while():
    time.sleep(0.03)  # longer than all that is allowed for


def a_tick():
    time.sleep(0.02)  # files have the time of the kernel's last tick


class Prompt:
    """A call that a person is asked about."""

    def __init__(self, ws, call: Call = BASH, attended: bool = True) -> None:
        self.ws, self.call, self.attended = ws, call, attended
        ws.begin_turn(CLAUDE, "build")
        ws.begin_call(CLAUDE, call)
        ws.ask_about(CLAUDE, call)
        a_while()

    def yes(self) -> None:
        a_while()
        if self.attended:
            self.ws.attend()
        a_while()
        if self.attended:
            self.ws.attend()
        self.begins()

    def begins(self) -> None:
        self.began = time.time()
        if self.attended:
            self.ws.observer.seen_at = self.began  # nobody did anything since it was, however long that took
        a_tick()

    def over(self, failed: bool = False) -> None:
        now = time.time()
        self.ws.end_call(CLAUDE, self.call, failed, ran=now - self.began, at=now)


def put(ws, path: str, text: str) -> None:
    (ws.root / path).write_text(text)


def test_a_file_that_both_edit_goes_back_to_what_the_person_wrote(ws):
    prompt = Prompt(ws)
    put(ws, "a.txt", "ONE\ntwo\nthree\n")
    prompt.yes()
    put(ws, "a.txt", "ONE\ntwo\nTHREE\n")
    prompt.over()
    assert whose(ws) == [("a.txt", ""), ("a.txt", "claude")]
    assert ws.undo().whole
    assert (ws.root / "a.txt").read_text() == "ONE\ntwo\nthree\n"


def test_what_a_person_deletes_in_a_folder_that_the_call_changes_too_stays_deleted(ws):
    prompt = Prompt(ws)
    (ws.root / "d/b.txt").unlink()
    prompt.yes()
    (ws.root / "d/c.txt").unlink()
    put(ws, "d/made.txt", "made\n")
    prompt.over()
    assert whose(ws) == [("d/b.txt", ""), ("d/c.txt", "claude"), ("d/made.txt", "claude")]
    assert ws.undo().whole
    assert sorted(os.listdir(ws.root / "d")) == ["c.txt"]


def _git(ws, *words: str) -> None:
    subprocess.run(["git", *words], cwd=ws.root, check=True, capture_output=True)


def _repository(ws) -> None:
    _git(ws, "init", "-b", "main")
    _git(ws, "config", "user.email", "ada@example.com")
    _git(ws, "config", "user.name", "Ada")
    _git(ws, "commit", "--allow-empty", "-m", "first")
    ws.checkpoint("before")


@pytest.mark.parametrize("attended", [True, False])
def test_what_a_person_stages_and_branches_is_theirs(ws, attended):
    _repository(ws)
    prompt = Prompt(ws, attended=attended)
    _git(ws, "add", "a.txt")
    _git(ws, "branch", "mine")
    prompt.yes()
    _git(ws, "add", "d/b.txt")
    _git(ws, "commit", "--allow-empty", "-m", "second")
    prompt.over()
    found = dict(whose(ws))
    assert found[".git/refs/heads/mine"] == ""
    if attended:
        assert found[".git/index/a.txt"] == ""
        assert found[".git/index/d/b.txt"] == found[".git/refs/heads/main"] == "claude"
    else:
        assert {found[".git/index/a.txt"], found[".git/refs/heads/main"]} == {"claude?"}


def test_a_file_that_a_call_names_keeps_what_the_person_wrote(ws):
    prompt = Prompt(ws, WRITE)
    put(ws, "a.txt", "a person's\n")
    prompt.yes()
    put(ws, "a.txt", "the call's\n")
    prompt.over()
    assert whose(ws) == [("a.txt", ""), ("a.txt", "claude")]
    assert ws.undo().whole
    assert (ws.root / "a.txt").read_text() == "a person's\n"


def test_where_nobody_looked_before_it_began_what_it_changed_is_uncertain(ws):
    prompt = Prompt(ws, attended=False)
    put(ws, "a.txt", "ONE\ntwo\nthree\n")
    put(ws, "mine.txt", "mine\n")
    (ws.root / "d/b.txt").unlink()
    prompt.yes()
    put(ws, "a.txt", "ONE\ntwo\nTHREE\n")
    (ws.root / "d/c.txt").unlink()
    prompt.over()
    assert dict(whose(ws)) == {"mine.txt": "", "a.txt": "claude?", "d/b.txt": "claude?", "d/c.txt": "claude?"}


@pytest.mark.parametrize("is_asked", [True, False])
def test_what_is_answered_at_once_or_never_asked_is_the_calls(ws, is_asked, monkeypatch):
    monkeypatch.setattr(brackets, "EARLY", 1.0)
    ws.begin_turn(CLAUDE, "build")
    ws.begin_call(CLAUDE, BASH._replace(asked=is_asked))
    began = ws.observer.seen_at = time.time()
    a_tick()
    put(ws, "a.txt", "two\n")
    (ws.root / "d/b.txt").unlink()
    now = time.time()
    ws.end_call(CLAUDE, BASH, ran=now - began, at=now)
    assert dict(whose(ws)) == {"a.txt": "claude", "d/b.txt": "claude"}


@pytest.mark.parametrize("call", [BASH, WRITE])
def test_what_changes_before_a_call_began_is_nobodys_though_nobody_was_asked(ws, call):
    """Another hook took its time, or the event of a prompt never came."""
    ws.begin_turn(CLAUDE, "build")
    ws.begin_call(CLAUDE, call)
    a_tick()
    put(ws, "mine.txt", "mine\n")
    (ws.root / "d/b.txt").unlink()
    a_while()
    a_while()
    began = time.time()
    a_tick()
    put(ws, "a.txt", "the call's\n")
    now = time.time()
    ws.end_call(CLAUDE, call, ran=now - began, at=now)
    ws.checkpoint("later")
    assert dict(whose(ws)) == {"mine.txt": "", "d/b.txt": "", "a.txt": "claude"}
    assert ws.undo().whole
    assert (ws.root / "mine.txt").exists() and (ws.root / "a.txt").read_text() == START["a.txt"]


def test_a_file_that_a_person_wrote_before_a_call_began_is_not_the_calls_where_it_did_not_write_it(ws):
    ws.begin_turn(CLAUDE, "build")
    ws.begin_call(CLAUDE, WRITE)
    a_tick()
    put(ws, "a.txt", "a person's\n")
    a_while()
    a_while()
    now = time.time()
    ws.end_call(CLAUDE, WRITE, failed=True, ran=0.0, at=now)
    assert whose(ws) == [("a.txt", "")]


def test_what_was_found_at_the_prompt_is_settled_by_when_the_call_began(ws):
    prompt = Prompt(ws)
    put(ws, "mine.txt", "mine\n")
    ws.checkpoint("a person's, while the prompt is open")
    assert whose(ws) == [("mine.txt", "claude?")], "it may have begun"
    prompt.yes()
    put(ws, "made.txt", "made\n")
    prompt.over()
    assert whose(ws) == [("mine.txt", ""), ("made.txt", "claude")]


@pytest.mark.parametrize("is_looked", [False, True])
@pytest.mark.parametrize("how", ["edit", "delete", "stage"])
def test_what_a_person_does_right_before_the_answer_is_never_the_calls_for_certain(ws, how, is_looked, monkeypatch):
    monkeypatch.setattr(brackets, "EARLY", 1.0)
    _repository(ws)
    prompt = Prompt(ws)
    ws.attend()
    if how == "edit":
        put(ws, "a.txt", "mine\n")
    elif how == "delete":
        (ws.root / "d/b.txt").unlink()
    else:
        _git(ws, "add", "a.txt")
    if is_looked:
        ws.attend()
        with takeback.open(ws.root) as another:
            another.checkpoint("a person's, in another window")
    a_tick()
    prompt.begins()
    put(ws, "made.txt", "made\n")
    prompt.over()
    mine = {"edit": "a.txt", "delete": "d/b.txt", "stage": ".git/index/a.txt"}[how]
    found = dict(whose(ws))
    assert (found[mine], found["made.txt"]) == ("claude?", "claude")


@pytest.mark.parametrize("is_refused", [True, False])
def test_what_a_person_does_to_a_file_that_a_call_names_is_not_the_calls_because_somebody_looked(ws, is_refused):
    prompt = Prompt(ws, WRITE)
    put(ws, "a.txt", "a person's\n")
    ws.checkpoint("a person's, while the prompt is open")
    assert whose(ws) == [("a.txt", "claude?")]
    if is_refused:
        ws.refuse_call(CLAUDE, WRITE, time.time())
    else:
        prompt.yes()
        put(ws, "a.txt", "the call's\n")
        prompt.over()
    assert whose(ws) == [("a.txt", "")] + [("a.txt", "claude")] * (not is_refused)


def test_what_a_call_that_failed_names_may_be_a_persons(ws, monkeypatch):
    """Such as one that is told what to replace, and does not find it any more."""
    monkeypatch.setattr(brackets, "EARLY", 1.0)
    prompt = Prompt(ws, WRITE)
    put(ws, "a.txt", "a person's\n")
    a_tick()
    prompt.begins()
    prompt.over(failed=True)
    assert whose(ws) == [("a.txt", "claude?")]


@pytest.mark.parametrize("mine", [False, True])
def test_what_is_found_right_after_it_ended_is_as_if_it_were_found_by_its_after_event(ws, mine, monkeypatch):
    """Whoever attends to the prompt may look between the end of the command and the event that tells of it."""
    monkeypatch.setattr(brackets, "EARLY", 1.0)
    monkeypatch.setattr(brackets, "SEEN", 0.3)
    prompt = Prompt(ws)
    prompt.yes()
    if mine:
        put(ws, "mine.txt", "a person's, in the last moment\n")
        a_while()
        prompt.began = time.time()
        a_tick()
    put(ws, "made.txt", "made\n")
    ws.attend()
    prompt.over()
    assert dict(whose(ws))["made.txt"] == ("claude?" if mine else "claude")


def test_what_was_found_while_it_ran_is_its_own(ws):
    prompt = Prompt(ws)
    prompt.yes()
    ws.attend()
    put(ws, "made.txt", "made\n")
    ws.attend()
    assert whose(ws) == [("made.txt", "claude?")]
    prompt.over()
    assert whose(ws) == [("made.txt", "claude")]


def test_what_was_found_at_the_prompt_of_a_refused_call_is_nobodys(ws):
    Prompt(ws)
    put(ws, "mine.txt", "mine\n")
    assert ws.attend()
    ws.refuse_call(CLAUDE, BASH, time.time())
    assert whose(ws) == [("mine.txt", "")]
    assert not ws.attend() and not ws.is_asking


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_what_another_agent_does_while_a_prompt_is_open_is_its_own_once_that_is_answered(ws, answer):
    prompt = Prompt(ws, attended=False)
    codex = Caller("codex", "s2")
    ws.begin_turn(codex, "test")
    ws.begin_call(codex, BASH)
    put(ws, "tested.txt", "tested\n")
    ws.end_call(codex, BASH)
    assert whose(ws) == [("tested.txt", "claude, codex?")], "claude may have begun"
    if answer == "no":
        ws.refuse_call(CLAUDE, BASH, time.time())
    else:
        prompt.yes()
        put(ws, "made.txt", "made\n")
        prompt.over()
    assert whose(ws)[0] == ("tested.txt", "codex")
    assert ws.undo("test").whole
    assert not (ws.root / "tested.txt").exists()


class Agent:
    """A process that begins a command, which ends, as a person has it."""

    def __init__(self) -> None:
        script = "read x; sleep 100 & read x; kill $!; wait; read x"
        self._sh = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, text=True)
        self.caller = CLAUDE._replace(pid=self._sh.pid, started=processes.started(self._sh.pid))

    def asks(self, ws) -> None:
        ws.begin_turn(self.caller, "build")
        ws.begin_call(self.caller, BASH)
        ws.ask_about(self.caller, BASH)
        time.sleep(0.05)  # a start is told to a hundredth of a second

    def begins(self) -> None:
        self._press()
        _until(lambda: processes.activity(self._sh.pid, time.time() - 5).begun)

    def ends(self) -> None:
        self._press()
        _until(lambda: not processes.activity(self._sh.pid, 0).begun)

    def _press(self) -> None:
        assert self._sh.stdin is not None
        print(file=self._sh.stdin, flush=True)


@pytest.fixture
def agent():
    made = Agent()
    yield made
    made._sh.kill()
    made._sh.communicate()


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody tells what a process has begun")


@on_linux
def test_nobody_looks_while_its_agent_has_begun_something(ws, agent):
    """The call's own work is not journaled in pieces."""
    agent.asks(ws)
    put(ws, "mine.txt", "mine\n")
    ws.attend()
    assert [path for path, _ in whose(ws)] == ["mine.txt"]
    agent.begins()
    put(ws, "made.txt", "made\n")
    ws.attend()
    assert [path for path, _ in whose(ws)] == ["mine.txt"], "it has begun something"
    agent.ends()
    ws.attend()
    assert [path for path, _ in whose(ws)] == ["mine.txt"], "what it had begun is over since the last time"
    ws.attend()
    assert whose(ws) == [("mine.txt", ""), ("made.txt", "claude?")]


@on_linux
def test_what_others_do_while_a_command_is_not_begun_is_theirs_at_once(ws, agent):
    agent.asks(ws)
    ws.attend()
    codex = Caller("codex", "s2")
    ws.begin_turn(codex, "test")
    ws.begin_call(codex, BASH)
    put(ws, "tested.txt", "tested\n")
    ws.end_call(codex, BASH)
    put(ws, "mine.txt", "mine\n")
    ws.checkpoint("a person's")
    assert whose(ws) == [("tested.txt", "codex"), ("mine.txt", "")]
    ws.begin_call(codex, BASH)
    agent.begins()
    put(ws, "shared.txt", "shared\n")
    ws.end_call(codex, BASH)
    agent.ends()
    put(ws, "later.txt", "whose?\n")
    ws.checkpoint("a person's")
    shared, later = whose(ws)[2:]
    assert shared == ("shared.txt", "claude, codex?"), "it may have begun"
    assert later[1] in ("claude?", ""), "never anybody's for certain: its process may have ended unseen"


@on_linux
@pytest.mark.parametrize("is_shown", [True, False], ids=["its prompt is told of", "it is not"])
def test_what_a_person_does_while_the_gate_has_it_asked_is_theirs_at_once(ws, agent, is_shown):
    """The hook that said so is over only after the first look; one that tells of the prompt may come after it."""
    ws.begin_turn(agent.caller, "push")
    ws.begin_call(agent.caller, BASH._replace(asked=True))
    time.sleep(0.05)
    ws.attend()
    agent.begins()
    agent.ends()  # the hook
    if is_shown:
        time.sleep(prompts._SETTLING)
        ws.ask_about(agent.caller, BASH)
    ws.attend()
    put(ws, "mine.txt", "mine\n")
    ws.attend()
    ws.checkpoint("a person's")
    assert whose(ws) == [("mine.txt", "")]


def _refused(call: Call) -> None:
    """As Claude Code writes it down."""
    result = {"type": "tool_result", "tool_use_id": call.key, "is_error": True}
    line = {"type": "user", "toolDenialKind": "user-rejected", "permissionDecision": {"decision": "reject"}}
    Path(call.transcript).write_text(json.dumps({**line, "message": {"content": [result]}}) + "\n")


def test_who_only_reads_is_told_at_once_that_a_refused_call_owns_nothing(ws, tmp_path):
    """As any take-back is, which closes it: nothing is journaled by reading."""
    asked = BASH._replace(key="toolu_1", asked=True, transcript=str(tmp_path / "session.jsonl"))
    ws.begin_turn(CLAUDE, "push")
    ws.begin_call(CLAUDE, asked)
    put(ws, "mine.txt", "mine\n")
    ws.attend()
    assert _told(ws) == [True] * 4, "nobody knows while the prompt is open"
    _refused(asked)
    head = ws.store.journal.head()
    assert _told(ws) == [False] * 4
    assert ws.store.journal.head() == head
    ws.checkpoint("closes it")
    assert whose(ws) == [("mine.txt", "")]


def _told(ws) -> list[bool]:
    """Whether status, log, blame and the report call it uncertain."""
    (changed,) = ws.status().changes
    (row,) = (row for row in ws.log() if row.kind == "effect")
    (region,) = ws.blame("mine.txt").regions
    told = report.make(ws, report_span.find(ws, "", "", ""))
    return [changed.uncertain, row.uncertain, region.origin.uncertain, "uncertain" in repr(told.turns)]


def _until(is_so) -> None:
    end = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


# -- any order of edits ------------------------------------------------------------

PATHS = ("a.txt", "d/b.txt", "d/c.txt", "d/new.txt", "new.txt")
edits = st.lists(st.tuples(st.sampled_from(("put", "delete")), st.sampled_from(PATHS)), max_size=3)


def _edit(ws, edit: tuple[str, str], text: str) -> str:
    """The path that was changed; nothing where there was nothing to change."""
    how, path = edit
    if how == "delete" and not (ws.root / path).exists():
        return ""
    if how == "delete":
        (ws.root / path).unlink()
    else:
        put(ws, path, text)
    return path


@examples(0.4)
@given(edits, edits, edits, st.booleans(), st.booleans())
def test_no_edit_of_a_person_before_a_call_began_is_the_calls_for_certain(before, asked, ran, is_asked, attended):
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as place:
        root = Path(place, "project")
        for path, text in START.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        with takeback.open(root, create=True, store=str(Path(place, "home"))) as ws:
            ws.keep_watch()
            ws.begin_turn(CLAUDE, "build")
            theirs = {_edit(ws, edit, f"before {n}\n") for n, edit in enumerate(before)}
            ws.begin_call(CLAUDE, BASH)
            if is_asked:
                ws.ask_about(CLAUDE, BASH)
                a_while()
                theirs |= {_edit(ws, edit, f"asked {n}\n") for n, edit in enumerate(asked)}
                a_while()
                for _ in range(2 * attended):
                    ws.attend()
            then = {path: (root / path).read_text() if (root / path).exists() else None for path in PATHS}
            began = time.time()
            if attended:
                ws.observer.seen_at = began
            a_tick()
            made = {_edit(ws, edit, f"made {n}\n") for n, edit in enumerate(ran)}
            over = time.time()
            ws.end_call(CLAUDE, BASH, ran=over - began, at=over)
            now = {path: (root / path).read_text() if (root / path).exists() else None for path in PATHS}
            surely = {path for path, who in whose(ws) if who == "claude"}
            changed = {path for path in made if path and then[path] != now[path]}
            assert surely <= made, "what only a person did is never the call's"
            if attended or not is_asked:
                assert changed <= surely, "what the call did is its own"
            else:
                assert not surely & theirs, "both may have"
                assert changed <= {path for path, who in whose(ws) if who.startswith("claude")}
            ws.undo()  # without a person to ask, what is uncertain stays
            for path in PATHS:
                left = (root / path).read_text() if (root / path).exists() else None
                assert left == (then[path] if path in surely else now[path])
