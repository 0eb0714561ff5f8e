"""Copilot CLI, without a screen and offline."""

from __future__ import annotations

import json
import time

from agents.model import Use

from .driver import Command, Driver
from .settings import add_settings
from .terminal import Terminal


class Copilot(Driver):
    name = program = "copilot"
    ready = ("? help",)
    asking = ("Do you want to run",)
    stop = ("C-c",)

    def write(self, path: str, text: str) -> Use:
        return Use("create", {"path": str(self.project / path), "file_text": text})

    def edit(self, path: str, old: str, new: str) -> Use:
        return Use("edit", {"path": str(self.project / path), "old_str": old, "new_str": new})

    def read(self, path: str) -> Use:
        return Use("view", {"path": str(self.project / path)})

    def shell(self, command: str) -> Use:
        return Use("bash", {"command": command, "description": "a command"})

    def limited(self, command: str, seconds: float) -> Use:
        return Use(
            "bash", {"command": command, "description": "a command", "mode": "sync", "initial_wait": int(seconds)}
        )

    def behind(self, command: str) -> Use:
        return Use("bash", {"command": command, "description": "a command", "mode": "async", "detach": False})

    def mcp(self, server: str, tool: str, given: dict[str, object]) -> Use:
        return Use(f"{server}-{tool}", given)

    def command(self, prompt: str, again: bool) -> Command:
        argv = [self.binary, "--allow-all", "--no-color", "--log-level", "none", *(["--continue"] if again else [])]
        return Command([*argv, "-p", prompt], self._environ() | {"COPILOT_ALLOW_ALL": "true"})

    def screen(self, asks: bool) -> Command:
        trusted = {"trusted_folders": [str(self.project)], "trustedFolders": [str(self.project)]}
        (self.home / ".copilot").mkdir(exist_ok=True)
        (self.home / ".copilot" / "config.json").write_text(json.dumps(trusted))
        return Command([self.binary, *([] if asks else ["--allow-all"]), "--log-level", "none"], self._environ())

    def settle(self, terminal: Terminal) -> None:
        time.sleep(2)  # it shows where to type before it listens

    def _environ(self) -> dict[str, str]:
        servers = {
            name: {"type": "local", "command": words[0], "args": list(words[1:]), "tools": ["*"]}
            for name, words in self.servers.items()
        }
        add_settings(self.home / ".copilot" / "mcp-config.json", mcpServers=servers)
        return {
            "COPILOT_PROVIDER_BASE_URL": f"{self.model}/v1",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_WIRE_API": "completions",
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": "claude-sonnet-4.5",
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        }
