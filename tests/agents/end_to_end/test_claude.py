"""The real Claude Code; scripts/test installs it where npm is there, and then this must run."""

from __future__ import annotations

from agents.drivers import Claude
from agents.model import Turn

from .ends import Ends
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
