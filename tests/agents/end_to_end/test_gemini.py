"""The real program; its tests run where it is installed (scripts/agents gemini)."""

from agents.drivers import Gemini

from .ends import MINE, Ends
from .place import Place
from .scenarios import OwnCommand, Scenarios


class TestGemini(Scenarios, OwnCommand, Ends):
    driver = Gemini
    commands_outlive_it = True

    tells_the_beginning = False

    def whose_after_prompts(self, place: Place) -> None:
        """Nobody says when the prompt was answered: what changed since then may be either's."""
        asked, (first, *later) = {"do it?"}, MINE
        assert place.whose() == {"one.txt": asked, first: asked} | {path: {"nobody"} for path in later}
        place.takeback("undo", "--yes", code=None)
        assert [place.read(path) for path in MINE] == ["by hand\n"] * 4
