"""What every agent must survive: it makes a mess by its own tools, and `takeback undo` brings all of it back."""

from __future__ import annotations

import re

from agents.drivers import Driver
from agents.model import Model, Turn
from takeback.config.agents_own_files import HOOKS

from .place import Place, wait_until


class Scenarios:
    driver: type[Driver]

    def test_what_it_writes_edits_and_runs_is_taken_back(self, place: Place):
        agent, before = place.driver(), place.world()
        place.play(
            Turn("I write.", [agent.write("src/new.py", "new\n")]),
            *self.look_first(agent, "kept.txt"),
            Turn("I edit.", [agent.edit("kept.txt", "two", "2")]),
            Turn(
                "I run.",
                [agent.shell("rm .env; chmod 600 run.sh; mv src/app.py src/main.py; mkdir -p a/b; ln -s kept.txt l")],
            ),
            Turn("done"),
            prompt="make a mess",
        )
        after = place.world()
        assert place.read("kept.txt") == "one\n2\nthree\n"
        assert not (place.project / ".env").exists()
        turns = place.history().agent_turns
        assert [(t.caller.agent, t.prompt) for t in turns.values()] == [(self.driver.name, "make a mess")]
        changed = ("src/new.py", "kept.txt", ".env", "run.sh", "src/app.py", "src/main.py", "a", "a/b", "l")
        assert place.whose() == {path: {"make a mess"} for path in changed}
        log = place.takeback("log").out
        assert "make a mess" in log
        place.undo()
        assert place.world() == before
        place.redo()
        assert place.world() == after

    def test_what_a_failing_command_left_is_taken_back(self, place: Place):
        agent, before = place.driver(), place.world()
        place.play(Turn("", [agent.shell("echo half > half.txt; echo oops >&2; exit 3")]), Turn("it failed"))
        after = place.world()
        assert place.read("half.txt") == "half\n"
        place.undo()
        assert place.world() == before
        place.redo()
        assert place.world() == after

    def test_a_commit_on_a_branch_of_its_own_is_taken_back(self, place: Place):
        agent, before = place.driver(), place.world()
        place.play(
            Turn("", [agent.write("new.txt", "new\n")]),
            Turn(
                "",
                [
                    agent.shell(
                        "git checkout -q -b mine && git add new.txt kept.txt && git commit -qm mine && git tag v1"
                    )
                ],
            ),
            Turn("", [agent.shell("git branch -q -f old HEAD && git rm -q --cached run.sh")]),
            Turn("done"),
        )
        after = place.world()
        assert after.head == "refs/heads/mine"
        assert "refs/tags/v1" in after.refs and "refs/heads/old" in after.refs
        assert "run.sh" not in after.index
        place.undo()
        assert place.world() == before
        place.redo()
        assert place.world() == after

    def test_a_hard_reset_is_taken_back(self, place: Place):
        agent = place.driver()
        place.put("kept.txt", "one\ntwo\nthree\nby hand\n")
        before = place.world()
        place.play(Turn("", [agent.shell("git commit -qm wip && git reset -q --hard HEAD~1")]), Turn("gone"))
        assert not (place.project / "staged.txt").exists()
        place.undo()
        assert place.world() == before

    def test_branches_and_stashes_it_threw_away_come_back(self, place: Place):
        agent = place.driver()
        place.git("branch", "old")
        place.put("kept.txt", "stashed by hand\n")
        place.git("stash", "push", "-q", "-m", "by hand", "kept.txt")
        place.put("src/app.py", "print('by hand')\n")
        before = place.world()
        place.play(
            Turn("", [agent.shell("git stash drop -q && git branch -q -D old && git stash -q && git stash drop -q")]),
            Turn("", [agent.shell("git commit -q --amend --allow-empty -m amended")]),
            Turn("gone"),
        )
        after = place.world()
        assert (after.stash, place.read("src/app.py")) == ("", "print('hello')\n")
        assert place.git("log", "-1", "--format=%s") == "amended"
        place.undo()
        assert place.world() == before
        place.redo()
        assert place.world() == after

    def test_a_branch_that_a_person_moved_since_stays_where_he_put_it(self, place: Place):
        agent = place.driver()
        place.play(Turn("", [agent.shell("git commit -q -m its && echo its > its.txt")]), Turn("done"))
        place.put("mine.txt", "by hand\n")
        place.git("add", "mine.txt")
        place.git("commit", "-q", "-m", "by hand")
        moved = place.git("rev-parse", "HEAD")
        told = place.takeback("undo", "--yes", code=3)
        assert "main" in told.out + told.err
        assert not (place.project / "its.txt").exists()
        assert (place.git("rev-parse", "HEAD"), place.git("symbolic-ref", "HEAD")) == (moved, "refs/heads/main")
        assert place.read("mine.txt") == "by hand\n"

    def test_hooks_that_it_cleaned_up_come_back(self, place: Place):
        agent, hooks = place.driver(), place.project / HOOKS[self.driver.name]
        before = place.world()
        place.play(Turn("", [agent.shell("git clean -qfdx")]), Turn("clean"))
        assert not hooks.exists() and not (place.project / ".env").exists()
        assert f"the hooks of {self.driver.name} are gone" in place.takeback("status").out
        place.undo()
        assert place.world() == before
        assert f"installed in {hooks}" in place.takeback("doctor").out

    def test_a_push_is_denied_until_a_person_approves_it(self, place: Place):
        agent = place.driver()
        place.put(".takeback.toml", "[policy]\nautopilot = true\n")
        model = place.play(Turn("", [agent.shell("git push -q origin main")]), Turn("I may not"))
        assert place.git("ls-remote", "origin") == ""
        answered = model.seen[-1].text
        found = re.search(r"takeback approve ([k-z]+)", answered)
        assert found is not None, answered
        place.approve(found[1])
        place.play(
            Turn("", [agent.shell("git push -q origin main")]),
            Turn("", [agent.shell("git push -q origin main:again")]),
            Turn("once"),
            again=True,
        )
        assert place.git("ls-remote", "--heads", "origin").split()[1::2] == ["refs/heads/main"], "that command alone"
        assert "git push" in place.takeback("log").out

    def test_a_command_whose_program_is_missing_is_known_to_have_done_nothing(self, place: Place):
        agent = place.driver()
        config = place.home / ".config/takeback/config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text('[policy.calls]\nall = "allow"\n')
        place.play(Turn("", [agent.shell("stripe charges create --amount 500")]), Turn("there is no stripe"))
        (act,) = place.history().ledger()
        assert act.shown_state == "failed" and "never run" in act.did["left_to_do"], act

    def test_what_an_mcp_server_did_is_taken_back(self, place: Place):
        agent, before = place.driver(), place.world()
        place.play(
            Turn("", [agent.mcp("notes", "jot", {"name": "note.txt", "text": "a note\n"})]),
            Turn("", [agent.mcp("notes", "fail", {"name": "half.txt", "text": "half\n"})]),
            Turn("done"),
            servers=True,
        )
        after = place.world()
        assert place.read("note.txt") == "a note\n"
        assert place.read("half.txt") == "half\n"
        assert place.whose() == {"note.txt": {"please"}, "half.txt": {"please"}}
        place.undo()
        assert place.world() == before
        place.redo()
        assert place.world() == after

    def test_reading_leaves_no_trace(self, place: Place):
        place.play(*self.look_first(place.driver(), "kept.txt"), Turn("read"))
        assert not place.history().brackets
        assert not place.effects()

    def test_what_a_killed_agent_had_done_is_taken_back(self, place: Place):
        agent, before = place.driver(), place.world()
        with Model([Turn("", [agent.shell("echo 1 > one.txt; sleep 100; echo 2 > two.txt")])]) as model:
            running = place.driver(model).start("slowly")
            place.wait_for("one.txt")
            running.kill()
        # Its command may live on, and the call is open until that ends: what was done before goes back all the same.
        wait_until(lambda: place.whose() == {"one.txt": {"slowly"}}, "its death is journaled")
        place.undo()
        assert place.world() == before
        place.redo()
        assert place.read("one.txt") == "1\n"

    def test_two_at_once_are_told_apart(self, place: Place):
        one, other = place.driver(), place.driver()
        before = place.world()
        first = Model(
            [Turn("", [one.shell("echo 1 > begun.txt; until [ -e ../go ]; do sleep 0.02; done; echo 2 > ended.txt")])]
        )
        second = Model(
            [
                Turn("", [other.write("other.txt", "other\n")], lambda: place.wait_for("begun.txt")),
                Turn("done"),
            ]
        )
        with first, second:
            slow, quick = place.driver(first).start("slow"), place.driver(second).start("quick")
            assert quick.wait().code == 0
            assert place.read("other.txt") == "other\n"
            (place.project.parent / "go").touch()
            assert slow.wait().code == 0
        after = place.world()
        assert place.whose() == {"begun.txt": {"slow"}, "ended.txt": {"slow"}, "other.txt": {"quick"}}
        place.undo()
        place.undo()
        assert place.world() == before
        place.redo()
        place.redo()
        assert place.world() == after

    def test_a_session_that_goes_on_has_a_turn_for_each_prompt(self, place: Place):
        agent, before = place.driver(), place.world()
        place.play(Turn("", [agent.write("first.txt", "1\n")]), Turn("done"), prompt="the first")
        between = place.world()
        place.play(Turn("", [agent.write("second.txt", "2\n")]), Turn("done"), prompt="the second", again=True)
        turns = place.history().agent_turns.values()
        assert [t.prompt for t in turns] == ["the first", "the second"]
        assert len({t.caller.session for t in turns}) == 1
        place.undo()
        assert place.world() == between
        place.undo()
        assert place.world() == before

    def test_what_a_person_does_between_two_calls_stays_his(self, place: Place):
        agent = place.driver()

        def by_hand() -> None:
            place.put("mine.txt", "by hand\n")
            place.put("src/app.py", "print('by hand')\n")

        place.play(
            Turn("", [agent.write("its.txt", "its\n")]),
            Turn("", [agent.shell("echo more >> its.txt")], by_hand),
            Turn("done"),
        )
        assert place.whose() == {"its.txt": {"please"}, "mine.txt": {"nobody"}, "src/app.py": {"nobody"}}
        place.undo()
        assert not (place.project / "its.txt").exists()
        assert place.read("mine.txt") == "by hand\n"
        assert place.read("src/app.py") == "print('by hand')\n"

    def test_after_an_undo_it_is_told_once(self, place: Place):
        agent = place.driver()
        place.play(Turn("", [agent.write("gone.txt", "1\n")]), Turn("done"), prompt="write it")
        place.undo()
        told = place.play(Turn("I see"), prompt="go on", again=True)
        assert told.times_told("takeback took back") == 1
        assert "gone.txt" in told.seen[-1].text.partition("takeback took back")[2]
        assert place.play(Turn("yes"), prompt="and on", again=True).times_told("takeback took back") == 1

    def look_first(self, agent: Driver, path: str) -> list[Turn]:
        """The turn that reads a file; some agents want that before they edit it."""
        return [Turn("I look.", [agent.read(path)])]


class OwnCommand:
    """For agents whose own commands can be given on the command line."""

    def test_undo_by_its_own_command_takes_the_turn_before_the_one_that_asks(self, place: Place):
        agent, before = place.driver(), place.world()
        place.play(Turn("", [agent.write("first.txt", "1\n")]), Turn("done"), prompt="write it")
        after, effects = place.world(), place.effects()
        place.play(Turn("taken back"), prompt="/takeback:undo", again=True)
        assert place.world() == before
        assert place.effects() == effects, "nothing of a take-back is anybody's work"
        place.redo()
        assert place.world() == after
