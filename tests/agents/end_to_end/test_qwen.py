"""The real program; its tests run where it is installed (scripts/agents qwen)."""

from agents.drivers import Qwen

from .ends import Ends
from .scenarios import OwnCommand, Scenarios


class TestQwen(Scenarios, OwnCommand, Ends):
    driver = Qwen
