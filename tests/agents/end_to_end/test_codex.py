"""The real Codex; scripts/test installs it where npm is there, and then this must run."""

from __future__ import annotations

import time

from agents.drivers import Codex, Driver
from agents.model import Turn

from .ends import Ends, in_a_terminal
from .place import Place
from .scenarios import Scenarios


class TestCodex(Scenarios, Ends):
    driver = Codex
    after_its_time = "please?"  # it goes on in the background until its time is over
    test_reading_leaves_no_trace = None  # it reads by its shell, of which nobody can tell beforehand that it only reads

    def look_first(self, agent: Driver, path: str) -> list[Turn]:
        return []

    def test_a_call_that_a_person_stops_owns_what_it_did_until_then(self, place: Place):
        """Esc leaves the command running in the background: what changes from then on may be either's."""
        self.stopped(place)
        assert place.whose() == {"begun.txt": {"go"}, "tick.txt": {"go?"}, "mine.txt": {"go?"}}
        place.takeback("undo", "--yes", code=None)
        assert not (place.project / "begun.txt").exists()
        assert place.read("mine.txt") == "by hand\n"

    def test_each_denial_is_on_record_as_a_refusal(self, place: Place):
        agent = place.driver()
        push = agent.shell("git push -q origin main")
        place.play(Turn("", [push]), Turn("", [push]), Turn("I may not"))
        assert place.decided() == ["refused", "refused"]
        assert place.takeback("log", "kind:gate").out.count("refused because its hooks can ask nobody: ") == 2
        assert place.takeback("approve").out.count("codex was refused: ") == 1

    def is_over(self, place: Place) -> None:
        time.sleep(0.5)

    @in_a_terminal
    def test_what_a_person_allowed_and_then_stopped_is_not_refused(self, place: Place):
        """Until it is over its rollout says the same as of one that was refused."""
        agent, outside = place.driver(), place.project.parent
        command = "echo 1 > begun.txt; until [ -e ../enough ]; do sleep 0.02; done; echo 2 > last.txt"
        with place.sit_down(Turn("", [agent.asked(command)]), Turn("done"), asks=True) as terminal:
            terminal.say("go")
            terminal.see(*agent.asking)
            time.sleep(1.5)
            terminal.press(*agent.yes)
            place.wait_for("begun.txt")
            time.sleep(0.7)
            terminal.press(*agent.stop)
            time.sleep(1)
            place.takeback("undo", "--dry-run", code=None)
            place.takeback("checkpoint")
            (bracket,) = place.history().brackets.values()
            assert not bracket.closed and place.whose() == {"begun.txt": {"go?"}}
            (outside / "enough").touch()
            place.wait_for("last.txt")
            time.sleep(0.5)
            place.put("mine.txt", "by hand\n")
            place.takeback("checkpoint")
        (bracket,) = place.history().brackets.values()
        assert bracket.closed and not bracket.refused
        assert place.whose() == {"begun.txt": {"go?"}, "last.txt": {"go?"}, "mine.txt": {"nobody"}}

    @in_a_terminal
    def test_what_it_leaves_running_is_uncertain_until_its_end_is_known(self, place: Place):
        agent, outside = place.driver(), place.project.parent
        until = "until [ -e ../{0} ]; do sleep 0.02; done; "
        command = until.format("go") + "echo 1 > late.txt; " + until.format("enough") + "echo 2 > last.txt"
        turns = Turn("", [agent.behind(command)]), Turn("", [agent.shell("echo 3 > other.txt")]), Turn("It is served.")
        with place.sit_down(*turns, asks=False) as terminal:
            terminal.say("serve it")
            place.wait_for("other.txt")
            terminal.see("It is served.")
            time.sleep(0.5)  # until its hooks have run
            (outside / "go").touch()
            place.wait_for("late.txt")
            place.put("mine.txt", "by hand\n")
            place.takeback("checkpoint")
            assert place.whose() == {"other.txt": {"serve it"}, "late.txt": {"serve it?"}, "mine.txt": {"serve it?"}}
            (outside / "enough").touch()
            place.wait_for("last.txt")
            time.sleep(0.5)
            place.put("after.txt", "by hand\n")
            place.takeback("checkpoint")
        whose = place.whose()
        assert (whose["last.txt"], whose["after.txt"]) == ({"serve it?"}, {"nobody"})
        place.takeback("undo", "--yes", code=None)
        assert place.read("mine.txt") == place.read("after.txt") == "by hand\n"
        assert not (place.project / "other.txt").exists() and (place.project / "last.txt").exists(), "nobody said so"

    def test_doctor_says_whether_its_hooks_are_trusted(self, place: Place):
        def said() -> str:
            return next(line for line in place.takeback("doctor", code=None).out.splitlines() if "odex" in line)

        agent = place.driver()
        place.play(Turn("", [agent.write("seen.txt", "1\n")]), Turn("done"))
        assert len(place.history().agent_turns) == 1
        trusting = said()
        assert ", trusted; firing" in trusting, "what Codex noted is what we take for it"
        config = place.home / ".codex" / "config.toml"
        config.write_text(config.read_text().partition("[hooks.state")[0])
        place.play(Turn("", [agent.write("unseen.txt", "1\n")]), Turn("done"))
        assert len(place.history().agent_turns) == 1, "Codex skips them without a word"
        assert said() != trusting
        assert "trust" in said()
