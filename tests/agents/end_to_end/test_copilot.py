"""The real program; its tests run where it is installed (scripts/agents copilot)."""

from agents.drivers import Copilot

from .ends import Ends
from .scenarios import Scenarios


class TestCopilot(Scenarios, Ends):
    driver = Copilot
