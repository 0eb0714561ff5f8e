"""The real program; its tests run where it is installed (scripts/agents gemini)."""

from agents.drivers import Gemini

from .scenarios import OwnCommand, Scenarios


class TestGemini(Scenarios, OwnCommand):
    driver = Gemini
