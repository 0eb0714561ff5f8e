"""The real Codex; scripts/test installs it where npm is there, and then this must run."""

from __future__ import annotations

import time

from agents.drivers import Codex, Driver
from agents.model import Turn

from .ends import Ends
from .place import Place
from .scenarios import Scenarios


class TestCodex(Scenarios, Ends):
    driver = Codex
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

    def is_over(self, place: Place) -> None:
        time.sleep(0.5)

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
