"""Gemini CLI, without a screen."""

from __future__ import annotations

import time

from agents.model import Use

from .driver import Command, Driver
from .settings import add_settings
from .terminal import Terminal


class Gemini(Driver):
    name = program = "gemini"
    ready = ("Type your message",)
    asking = ("Allow execution",)

    def write(self, path: str, text: str) -> Use:
        return Use("write_file", {"file_path": str(self.project / path), "content": text})

    def limited(self, command: str, seconds: float) -> Use:
        add_settings(self.home / ".gemini" / "settings.json", tools={"shell": {"inactivityTimeout": int(seconds)}})
        return self.shell(command)

    def edit(self, path: str, old: str, new: str) -> Use:
        given = {"file_path": str(self.project / path), "old_string": old, "new_string": new}
        return Use("replace", given | {"instruction": "change it"})

    def read(self, path: str) -> Use:
        return Use("read_file", {"file_path": str(self.project / path)})

    def shell(self, command: str) -> Use:
        return Use("run_shell_command", {"command": command, "description": "a command"})

    def behind(self, command: str) -> Use:
        return Use("run_shell_command", {"command": command, "description": "a command", "is_background": True})

    def mcp(self, server: str, tool: str, given: dict[str, object]) -> Use:
        return Use(f"mcp_{server}_{tool}", given)

    def command(self, prompt: str, again: bool) -> Command:
        argv = [self.binary, "--approval-mode", "yolo", "--skip-trust", "-m", "gemini-2.5-flash", "-o", "json"]
        argv += [*(["--resume", "latest"] if again else []), "-p", prompt]
        return Command(argv, self._environ())

    def screen(self, asks: bool) -> Command:
        mode = "default" if asks else "yolo"
        argv = [self.binary, "--approval-mode", mode, "--skip-trust", "-m", "gemini-2.5-flash"]
        return Command(argv, self._environ())

    def settle(self, terminal: Terminal) -> None:
        time.sleep(3)  # it shows where to type long before it listens

    def _environ(self) -> dict[str, str]:
        servers = {
            name: {"command": words[0], "args": list(words[1:]), "trust": True} for name, words in self.servers.items()
        }
        add_settings(
            self.home / ".gemini" / "settings.json",
            security={"auth": {"selectedType": "gemini-api-key"}},
            privacy={"usageStatisticsEnabled": False},
            general={"enableAutoUpdate": False},
            ui={"theme": "Default"},
            mcpServers=servers,
        )
        return {
            "GEMINI_API_KEY": "dummy",
            "GOOGLE_GEMINI_BASE_URL": self.model,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_TELEMETRY_ENABLED": "false",
        }
