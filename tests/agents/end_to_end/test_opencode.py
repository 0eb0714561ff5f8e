"""The real program; its tests run where it is installed (scripts/agents opencode)."""

from agents.drivers import Opencode

from .ends import Ends
from .scenarios import Scenarios


class TestOpencode(Scenarios, Ends):
    driver = Opencode
    commands_outlive_it = True
