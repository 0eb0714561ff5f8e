"""How a call may end, or never begin, with a person in the folder: whose each file is then, and what `undo` takes."""

from __future__ import annotations

import time

import pytest

from agents.drivers import Driver
from agents.drivers.terminal import has_tmux
from agents.model import Model, Turn

from .place import Place

# Writes all the time until it is stopped; the file beside the project ends it where nobody else does.
TICKING = "while ! [ -e ../enough ]; do echo tick >> {}; sleep 0.05; done"
MINE = ("at the prompt.txt", "at the second.txt", "after no.txt", "kept.txt")
_PERSON = 1.5  # seconds that a person takes to make up his mind; more than what is allowed for a late hook

in_a_terminal = pytest.mark.skipif(not has_tmux(), reason="tmux is not installed")


class Ends:
    driver: type[Driver]
    commands_outlive_it = False  # where it is ended by SIGTERM
    after_its_time = "please"  # whose what a command that took too long still does is
    tells_the_beginning = True  # of a command that a person was asked about

    @in_a_terminal
    def test_a_prompt_that_is_open_and_a_call_that_is_refused_own_nothing(self, place: Place):
        agent = place.driver()
        turns = Turn("", [agent.asked("echo 1 > one.txt")]), Turn("", [agent.asked("echo 2 > two.txt")]), Turn("done")
        with place.sit_down(*turns, asks=True) as terminal:
            terminal.say("do it")
            terminal.see(*agent.asking)
            place.put("at the prompt.txt", "by hand\n")
            time.sleep(_PERSON)
            terminal.press(*agent.yes)
            place.wait_for("one.txt")
            terminal.see("two.txt")
            terminal.see(*agent.asking)
            place.put("at the second.txt", "by hand\n")
            terminal.press(*agent.no)
            terminal.wait(lambda: not any(words in terminal.shown() for words in agent.asking), "it is refused")
            time.sleep(0.5)
            place.put("after no.txt", "by hand\n")
            place.put("kept.txt", "by hand\n")
            place.takeback("checkpoint")
        self.whose_after_prompts(place)

    def whose_after_prompts(self, place: Place) -> None:
        assert place.whose() == {"one.txt": {"do it"}} | {path: {"nobody"} for path in MINE}
        place.undo()
        assert not (place.project / "one.txt").exists()
        assert [place.read(path) for path in MINE] == ["by hand\n"] * 4

    @in_a_terminal
    def test_what_a_person_changes_at_a_prompt_stays_theirs_where_the_command_changes_it_too(self, place: Place):
        agent, ours = place.driver(), "kept.txt"
        command = f"echo more >> {ours}; rm run.sh; git add .gitignore src; echo 1 > one.txt"
        place.put(".gitignore", ".env\nbuild\n")
        with place.sit_down(Turn("", [agent.asked(command)]), Turn("done"), asks=True) as terminal:
            terminal.say("do it")
            terminal.see(*agent.asking)
            place.put(ours, "mine\ntwo\nthree\n")
            place.put("mine.txt", "by hand\n")
            (place.project / "src/app.py").unlink()
            place.git("add", "mine.txt")
            time.sleep(2 * _PERSON)
            terminal.press(*agent.yes)
            place.wait_for("one.txt")
            terminal.see("done")
            time.sleep(0.5)
            place.takeback("checkpoint")
        whose = {path: who for path, who in place.whose().items() if path[0] != "." or path == ".gitignore"}
        if not self.tells_the_beginning:
            assert not any(who == {"do it"} for who in whose.values()), whose
            return
        staged = {path: e.is_agents for e in place.history().effects for path in e.changes if e.domain == "git"}
        assert whose == {
            ".gitignore": {"nobody"}, "mine.txt": {"nobody"}, "src/app.py": {"nobody"},
            ours: {"nobody", "do it"}, "run.sh": {"do it"}, "one.txt": {"do it"},
        }  # fmt: skip
        assert staged == {
            b".git/index/mine.txt": False, b".git/index/.gitignore": True, b".git/index/src/app.py": True
        }  # fmt: skip
        place.undo()
        assert place.read(ours) == "mine\ntwo\nthree\n" and (place.project / "run.sh").exists()
        assert not (place.project / "one.txt").exists() and not (place.project / "src/app.py").exists()
        assert place.git("diff", "--cached", "--name-only").split() == ["mine.txt", "staged.txt"]

    @in_a_terminal
    def test_what_a_person_does_right_before_the_answer_is_never_the_calls_for_certain(self, place: Place):
        agent = place.driver()
        turns = Turn("", [agent.asked("sleep 0.4; echo 1 > one.txt; rm kept.txt")]), Turn("done")
        with place.sit_down(*turns, asks=True) as terminal:
            terminal.say("do it")
            terminal.see(*agent.asking)
            time.sleep(_PERSON)
            place.put("mine.txt", "by hand\n")
            (place.project / "src/app.py").unlink()
            place.git("add", "mine.txt")
            terminal.press(*agent.yes)
            place.wait_for("one.txt")
            terminal.see("done")
            time.sleep(0.5)
            place.takeback("checkpoint")
        whose = {path: who for path, who in place.whose().items() if not path.startswith(".git/index/")}
        staged = {e.is_agents and not e.uncertain for e in place.history().effects if e.domain == "git"}
        assert staged == {False}
        assert [who for path, who in whose.items() if path in ("mine.txt", "src/app.py") and who == {"do it"}] == []
        assert whose["one.txt"] <= {"do it", "do it?"}, "nobody may have looked since"
        place.takeback("undo", "--yes", code=None)
        assert place.read("mine.txt") == "by hand\n" and not (place.project / "src/app.py").exists()
        assert "mine.txt" in place.git("diff", "--cached", "--name-only")

    @in_a_terminal
    def test_a_call_that_a_person_stops_owns_what_it_did_until_then(self, place: Place):
        self.stopped(place)
        whose = place.whose()
        last = whose.pop("tick.txt")  # it may be written once more after the end that is told
        assert whose == {"begun.txt": {"go"}, "mine.txt": {"nobody"}} and last <= {"go", "go?"}
        place.takeback("undo", "--yes", code=3 if "go?" in last else 0)
        assert not (place.project / "begun.txt").exists()
        assert (place.project / "tick.txt").exists() == ("go?" in last)
        assert place.read("mine.txt") == "by hand\n"

    def stopped(self, place: Place) -> None:
        """A command is stopped at work; then the person writes something, too."""
        agent = place.driver()
        command = "echo 1 > begun.txt; " + TICKING.format("tick.txt")
        with place.sit_down(Turn("", [agent.shell(command)]), Turn("done"), asks=False) as terminal:
            terminal.say("go")
            place.wait_for("tick.txt")
            time.sleep(0.7)  # not in its first moment, in which it may be another thing
            terminal.press(*agent.stop)
            self.is_over(place)
            place.put("mine.txt", "by hand\n")
            (place.project.parent / "enough").touch()  # where it went on all the same
            time.sleep(0.3)
            place.takeback("checkpoint")

    def test_what_changes_after_its_agent_was_killed_is_not_the_calls(self, place: Place):
        agent = place.driver()
        with Model([Turn("", [agent.shell("echo 1 > one.txt; sleep 100")])]) as model:
            running = place.driver(model).start("slowly")
            place.wait_for("one.txt")
            running.kill()
        time.sleep(1)
        place.put("mine.txt", "by hand\n")
        place.takeback("checkpoint")
        assert place.whose()["one.txt"] <= {"slowly", "slowly?"}
        assert place.whose()["mine.txt"] <= {"nobody", "slowly?"}, "never the call's for certain"
        place.takeback("undo", "--yes", code=None)
        assert place.read("mine.txt") == "by hand\n"
        if place.whose()["one.txt"] == {"slowly"}:  # somebody saw its end
            assert not (place.project / "one.txt").exists()

    def test_what_a_command_writes_that_outlives_its_agent_is_not_a_persons(self, place: Place):
        agent = place.driver()
        waits = "until [ -e ../{} ]; do sleep 0.02; done"
        command = f"echo 1 > one.txt; {waits.format('go')}; echo late > late.txt; {waits.format('enough')}"
        with Model([Turn("", [agent.shell(command)])]) as model:
            running = place.driver(model).start("slowly")
            place.wait_for("one.txt")
            running.kill()
        place.takeback("checkpoint")
        (place.project.parent / "go").touch()
        time.sleep(1)
        place.takeback("checkpoint")
        (place.project.parent / "enough").touch()
        assert place.whose().get("late.txt") in (None, {"slowly?"}), "None: it died with its agent"

    def test_what_changes_after_its_agent_was_ended(self, place: Place):
        agent = place.driver()
        command = "echo 1 > begun.txt; " + TICKING.format("tick.txt")
        with Model([Turn("", [agent.shell(command)])]) as model:
            running = place.driver(model).start("go")
            place.wait_for("tick.txt")
            time.sleep(0.7)
            running.end()
        time.sleep(1)
        place.put("mine.txt", "by hand\n")
        (place.project.parent / "enough").touch()  # where it went on all the same
        time.sleep(0.5)
        place.takeback("checkpoint")
        whose = place.whose()
        if self.commands_outlive_it:  # its death may have been seen, or not
            assert whose["mine.txt"] <= {"nobody", "go?"}, "the command was at work when it was written"
            assert whose["begun.txt"] <= {"go", "go?"} and whose["tick.txt"] <= {"go", "go?", "nobody"}
        else:
            assert whose["mine.txt"] == {"nobody"}
            assert whose["begun.txt"] == {"go"}
            assert whose["tick.txt"] <= {"go", "go?"}, "it may be written once more after the end that is told"
        place.takeback("undo", "--yes", code=None)
        assert place.read("mine.txt") == "by hand\n"

    def test_a_command_that_takes_too_long(self, place: Place):
        agent = place.driver()
        command = f"echo 1 > begun.txt; timeout 6 sh -c '{TICKING.format('tick.txt')}'"

        def later() -> None:
            time.sleep(0.5)
            (place.project.parent / "enough").touch()  # where it went on
            time.sleep(0.5)
            place.put("mine.txt", "by hand\n")

        place.play(Turn("", [agent.limited(command, 2)]), Turn("done", [], later))
        place.takeback("checkpoint")
        whose = place.whose()
        assert whose.pop("tick.txt") <= {"please", self.after_its_time}
        assert whose == {"begun.txt": {"please"}, "mine.txt": {"nobody"}}
        place.takeback("undo", "--yes", code=None)
        assert place.read("mine.txt") == "by hand\n"

    def test_what_a_command_writes_in_the_background_is_never_another_calls(self, place: Place):
        agent = place.driver()
        late = "until [ -e ../go ]; do sleep 0.02; done; echo late > late.txt"

        def go() -> None:
            (place.project.parent / "go").touch()
            place.wait_for("late.txt")

        place.play(Turn("", [agent.behind(late)]), Turn("", [agent.write("other.txt", "other\n")], go), Turn("done"))
        place.takeback("checkpoint")
        whose = {path: effect.calls for effect in place.effects() for path in effect.changes}
        assert place.whose()["other.txt"] == {"please"}
        assert not set(whose[b"late.txt"]) & set(whose[b"other.txt"])
        place.takeback("undo", "--yes", code=None)
        assert not (place.project / "other.txt").exists()
        assert (place.project / "late.txt").exists() or place.whose()["late.txt"] == {"please"}

    def is_over(self, place: Place) -> None:
        """Waits until nothing is written any more, and then as long as a person takes."""
        file, size = place.project / "tick.txt", -1
        while size != (size := file.stat().st_size):
            time.sleep(0.3)
        time.sleep(0.5)
