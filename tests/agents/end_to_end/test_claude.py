"""The real Claude Code; scripts/test installs it where npm is there, and then this must run."""

from __future__ import annotations

import json
import sys
import time

import pytest

from agents.drivers import Claude, Codex, why_not
from agents.drivers.driver import Running
from agents.model import Model, Turn

from .ends import Ends, in_a_terminal
from .place import Place
from .scenarios import OwnCommand, Scenarios

UNDO = ("takeback", "takeback_undo", {})


class TestClaude(Scenarios, OwnCommand, Ends):
    driver = Claude
    after_its_time = "nobody"

    def test_a_subagents_work_is_in_the_turn_of_its_agent(self, place: Place):
        agent, before = place.driver(), place.world()
        assert isinstance(agent, Claude)
        place.play(
            Turn("I have it done.", [agent.subagent("write sub.txt")]),
            Turn("I am the subagent.", [agent.write("sub.txt", "sub\n")]),
            Turn("it is written"),
            Turn("I go on.", [agent.shell("echo main > main.txt")]),
            Turn("done"),
        )
        after = place.world()
        assert (place.read("sub.txt"), place.read("main.txt")) == ("sub\n", "main\n")
        brackets = place.history().brackets.values()
        lanes = {b.call.tool: b.caller.lane for b in brackets if b.call.tool in ("Write", "Bash")}
        assert lanes["Write"] and not lanes["Bash"]
        assert len({b.turn for b in brackets}) == 1
        place.undo()
        assert place.world() == before
        place.redo()
        assert place.world() == after

    def test_a_background_command_is_never_blamed_on_the_wrong_call(self, place: Place):
        agent, before = place.driver(), place.world()
        late = agent.shell("until [ -e ../go ]; do sleep 0.02; done; echo late > late.txt")
        late = late._replace(input={**late.input, "run_in_background": True})  # type: ignore[dict-item]

        def go() -> None:
            (place.project.parent / "go").touch()
            place.wait_for("late.txt")

        place.play(
            Turn("", [late]),
            Turn("", [agent.write("other.txt", "other\n")], go),
            Turn("done"),
        )
        place.takeback("rollback", "--all", "--dry-run")  # looks at the tree
        whose = {path: e.calls for e in place.effects() for path in e.changes}
        other = {b.id for b in place.history().brackets.values() if b.call.tool == "Write"}
        assert set(whose[b"other.txt"]) == other
        assert not set(whose[b"late.txt"]) & other
        place.takeback("rollback", "--all", "--yes")
        assert place.world() == before

    @in_a_terminal
    @pytest.mark.skipif(bool(why_not(Codex)), reason="Codex is not installed")
    def test_what_codex_does_while_claude_asks_is_codexs_own(self, place: Place):
        place.takeback("protect", "codex", "--yes")
        Codex(place.home, place.project, "").trust()
        agent = place.driver()
        with place.sit_down(Turn("", [agent.asked("echo 1 > one.txt")]), Turn("done"), asks=True) as terminal:
            terminal.say("do it")
            terminal.see(*agent.asking)
            time.sleep(0.5)
            with Model(
                [Turn("", [Codex(place.home, place.project, "").shell("echo 2 > two.txt")]), Turn("ok")]
            ) as other:
                assert Codex(place.home, place.project, other.url).ask("test it").code == 0
            assert place.whose() == {"two.txt": {"test it"}}
            terminal.press(*agent.yes)
            place.wait_for("one.txt")
            terminal.see("done")
            time.sleep(0.5)
        assert place.whose() == {"two.txt": {"test it"}, "one.txt": {"do it"}}
        place.takeback("undo", "test it", "--yes")
        assert not (place.project / "two.txt").exists() and place.read("one.txt") == "1\n"

    def test_a_push_that_nobody_allowed_leaves_nothing_to_undo(self, place: Place):
        agent, before = place.driver(), place.world()
        place.play(
            Turn("", [agent.write("first.txt", "1\n")]),
            Turn("", [agent.shell("git push -q origin main")]),  # a person is asked, and there is none
            Turn("I may not"),
        )
        assert place.git("ls-remote", "origin") == ""
        assert "push" not in place.undo().out
        assert place.world() == before

    def test_what_nobody_could_be_asked_about_is_refused_and_waits_for_an_approval(self, place: Place):
        agent = place.driver()
        push = agent.shell("git push -q origin main")
        place.play(Turn("", [push]), Turn("", [push]), Turn("", [agent.shell("takeback unprotect")]), Turn("I may not"))
        assert place.decided() == ["refused"] * 3, "each for itself"
        told = place.takeback("log", "kind:gate").out
        assert told.count("refused because nobody was there to be asked: ") == 2
        assert told.count("an agent may never do this to its own undo") == 1
        waits = place.takeback("approve").out
        assert waits.count("claude was refused: Bash: git push") == 1 and "unprotect" not in waits
        place.approve(waits.split()[1])
        place.play(Turn("", [push]), Turn("pushed"), again=True)
        assert place.git("ls-remote", "--heads", "origin").split()[1::2] == ["refs/heads/main"]
        assert "nothing waits" in place.takeback("approve").out and sorted(place.decided())[0] == "passed"

    @in_a_terminal
    def test_what_a_person_says_at_its_prompt_is_on_record(self, place: Place):
        agent = place.driver()
        push = agent.shell("git push -q origin main")
        turns = Turn("", [push]), Turn("", [push]), Turn("it is pushed")
        with place.sit_down(*turns, asks=False) as terminal:
            terminal.say("push it")
            terminal.see(*agent.asking)
            assert place.decided() == ["asked"] and "claude asks you about" in place.takeback("approve").out
            terminal.press(*agent.no)
            terminal.wait(lambda: not any(words in terminal.shown() for words in agent.asking), "it is refused")
            time.sleep(0.5)
            assert place.decided() == ["declined"] and "nothing waits" in place.takeback("approve").out
            terminal.say("do push it")
            terminal.see(*agent.asking)
            time.sleep(1)  # a prompt does not listen at once
            terminal.press(*agent.yes)
            terminal.see("it is pushed")
        assert place.decided() == ["allowed", "declined"]
        assert place.git("ls-remote", "--heads", "origin").split()[1::2] == ["refs/heads/main"]
        told = place.takeback("report").out
        assert "asked about, and allowed by a person at claude's prompt" in told
        assert "asked about, and refused by a person at claude's prompt" in told

    @in_a_terminal
    @pytest.mark.parametrize("answer", ["yes", "no"])
    def test_what_a_person_says_at_its_prompt_to_a_call_that_was_approved_is_on_record(self, place: Place, answer: str):
        agent = place.driver()
        push = agent.shell("git push -q origin main")
        turns = Turn("", [push]), Turn("", [push]), Turn("it is over")
        with place.sit_down(*turns, asks=True) as terminal:
            terminal.say("push it")
            terminal.see(*agent.asking)
            time.sleep(1)  # a prompt does not listen at once
            terminal.press(*agent.no)
            terminal.wait(lambda: not any(words in terminal.shown() for words in agent.asking), "it is refused")
            time.sleep(0.5)
            place.approve(json.loads(place.takeback("log", "kind:gate", "--json").out)["rows"][0]["id"])
            terminal.say("do push it")
            terminal.see(*agent.asking)
            assert place.decided() == ["tried"]
            time.sleep(1)  # a prompt does not listen at once
            terminal.press(*(agent.yes if answer == "yes" else agent.no))
            terminal.wait(lambda: not any(words in terminal.shown() for words in agent.asking), "it is answered")
            if answer == "yes":
                terminal.see("it is over")
            time.sleep(0.5)
            assert place.decided() == ["passed" if answer == "yes" else "declined"]
        assert bool(place.git("ls-remote", "--heads", "origin")) == (answer == "yes")
        said = "and made in turn" if answer == "yes" else "and then refused by a person at claude's prompt"
        assert said in place.takeback("report").out

    def test_a_run_around_it_says_what_its_turns_did(self, place: Place):
        agent = place.driver()
        with Model([Turn("", [agent.write("made.txt", "1\n")]), Turn("done")]) as model:
            driver = place.driver(model)
            argv, environ = driver.command("make it", again=False)
            around = [sys.executable, "-m", "takeback", "run", "--", *argv]
            ran = Running(around, place.project, driver.environ() | environ).wait()
        assert ran.code == 0 and "claude, turn " in ran.err and "“make it”: 1 call: made.txt" in ran.err, ran.err
        assert "takeback log session:" in ran.err

    def test_undo_by_its_mcp_tool_never_takes_the_turn_that_asks(self, place: Place):
        place.protect("--mcp")
        agent, before = place.driver(), place.world()
        place.play(Turn("", [agent.write("first.txt", "1\n")]), Turn("done"), prompt="the first")
        place.play(
            Turn("", [agent.write("second.txt", "2\n")]),
            Turn("", [agent.mcp(*UNDO)]),
            Turn("", [agent.write("third.txt", "3\n")]),
            Turn("taken back"),
            prompt="write another, and take the first back",
            again=True,
        )
        assert not (place.project / "first.txt").exists()
        assert (place.read("second.txt"), place.read("third.txt")) == ("2\n", "3\n")
        asks = {"write another, and take the first back"}
        assert place.whose() == {"first.txt": {"the first"}, "second.txt": asks, "third.txt": asks}
        place.undo()
        assert place.world() == before
