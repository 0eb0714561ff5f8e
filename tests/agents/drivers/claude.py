"""Claude Code, without a screen."""

from __future__ import annotations

import json

from agents.model import Use

from .driver import Command, Driver


class Claude(Driver):
    name = program = "claude"

    def write(self, path: str, text: str) -> Use:
        return Use("Write", {"file_path": str(self.project / path), "content": text})

    def edit(self, path: str, old: str, new: str) -> Use:
        return Use("Edit", {"file_path": str(self.project / path), "old_string": old, "new_string": new})

    def read(self, path: str) -> Use:
        return Use("Read", {"file_path": str(self.project / path)})

    def shell(self, command: str) -> Use:
        return Use("Bash", {"command": command, "description": "a command"})

    def mcp(self, server: str, tool: str, given: dict[str, object]) -> Use:
        return Use(f"mcp__{server}__{tool}", given)

    def subagent(self, task: str) -> Use:
        given = {
            "description": "a part",
            "prompt": task,
            "subagent_type": "general-purpose",
            "run_in_background": False,
        }
        return Use("Agent", given)

    def command(self, prompt: str, again: bool) -> Command:
        argv = [self.binary, "-p", prompt, "--permission-mode", "bypassPermissions", "--output-format", "stream-json"]
        argv.append("--verbose")
        if self.servers:
            servers = {name: {"command": words[0], "args": list(words[1:])} for name, words in self.servers.items()}
            argv += ["--mcp-config", json.dumps({"mcpServers": servers})]
        if again:
            argv.append("--continue")
        environ = {
            "ANTHROPIC_BASE_URL": self.model,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",  # without it, it refuses to bypass permissions for root
        }
        return Command(argv, environ)
