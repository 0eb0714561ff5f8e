"""Claude Code, without a screen."""

from __future__ import annotations

import json

from agents.model import Use

from .driver import Command, Driver


class Claude(Driver):
    name = program = "claude"
    ready = ("? for shortcuts", "shift+tab to cycle")
    asking = ("Do you want to proceed",)

    def write(self, path: str, text: str) -> Use:
        return Use("Write", {"file_path": str(self.project / path), "content": text})

    def edit(self, path: str, old: str, new: str) -> Use:
        return Use("Edit", {"file_path": str(self.project / path), "old_string": old, "new_string": new})

    def read(self, path: str) -> Use:
        return Use("Read", {"file_path": str(self.project / path)})

    def shell(self, command: str) -> Use:
        return Use("Bash", {"command": command, "description": "a command"})

    def limited(self, command: str, seconds: float) -> Use:
        return _with(self.shell(command), timeout=int(seconds * 1000))

    def behind(self, command: str) -> Use:
        return _with(self.shell(command), run_in_background=True)

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
        return Command(argv, self._environ())

    def screen(self, asks: bool) -> Command:
        """What it asks at its first start, and about a new folder and key, is answered."""
        file = self.home / ".claude.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        known |= {"hasCompletedOnboarding": True, "theme": "dark", "bypassPermissionsModeAccepted": True}
        known["customApiKeyResponses"] = {"approved": ["dummy"], "rejected": []}
        known["projects"] = {str(self.project): {"hasTrustDialogAccepted": True}}
        file.write_text(json.dumps(known))
        return Command([self.binary, "--permission-mode", "default" if asks else "bypassPermissions"], self._environ())

    def _environ(self) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": self.model,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",  # without it, it refuses to bypass permissions for root
        }


def _with(use: Use, **more: object) -> Use:
    assert isinstance(use.input, dict)
    return use._replace(input={**use.input, **more})
