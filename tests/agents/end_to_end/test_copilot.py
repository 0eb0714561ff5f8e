"""The real program; its tests run where it is installed (scripts/agents copilot)."""

from agents.drivers import Copilot

from .scenarios import Scenarios


class TestCopilot(Scenarios):
    driver = Copilot
