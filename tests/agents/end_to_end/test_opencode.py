"""The real program; its tests run where it is installed (scripts/agents opencode)."""

from agents.drivers import Opencode

from .scenarios import Scenarios


class TestOpencode(Scenarios):
    driver = Opencode
