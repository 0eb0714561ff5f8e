"""The real Claude Code again, with hooks that ask the resident process by HTTP instead of starting a command."""

from __future__ import annotations

from agents.drivers.claude_http import ClaudeOverHttp

from .scenarios import Scenarios


class TestClaudeOverHttp(Scenarios):
    driver = ClaudeOverHttp
