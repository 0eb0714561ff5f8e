"""The real program; its tests run where it is installed (scripts/agents qwen)."""

from agents.drivers import Qwen

from .scenarios import OwnCommand, Scenarios


class TestQwen(Scenarios, OwnCommand):
    driver = Qwen
