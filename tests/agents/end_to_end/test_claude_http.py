"""The real Claude Code again, with hooks that ask the resident process by HTTP instead of starting a command."""

from __future__ import annotations

from agents.drivers.claude_http import ClaudeOverHttp
from agents.model import Turn

from .place import Place
from .scenarios import Scenarios


class TestClaudeOverHttp(Scenarios):
    driver = ClaudeOverHttp

    def test_doctor_says_that_it_asks_by_http_and_whether_it_is_answered(self, place: Place):
        agent = place.driver()
        place.play(Turn("", [agent.write("first.txt", "1\n")]), Turn("done"))
        assert "settings.local.json, by HTTP; firing" in place.takeback("doctor").out
        place.stop()
        assert "where no resident process listens" in place.takeback("doctor", code=1).out

    def test_a_session_starts_the_process_that_is_gone(self, place: Place):
        agent, before = place.driver(), place.world()
        place.stop()
        place.play(Turn("", [agent.write("first.txt", "1\n")]), Turn("done"), prompt="write it")
        assert place.whose() == {"first.txt": {"write it"}}
        place.undo()
        assert place.world() == before

    def test_where_nobody_answers_no_call_runs(self, place: Place):
        agent, before = place.driver(), place.world()
        assert isinstance(agent, ClaudeOverHttp)
        agent.start_nothing()
        place.stop()
        place.play(Turn("", [agent.write("first.txt", "1\n")]), Turn("I may not"))
        assert place.world() == before
