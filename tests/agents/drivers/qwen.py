"""Qwen Code, without a screen."""

from __future__ import annotations

import time

from agents.model import Use

from .driver import Command, Driver
from .settings import add_settings
from .terminal import Terminal


class Qwen(Driver):
    name = program = "qwen"
    ready = ("Type your message",)
    asking = ("Allow execution",)

    def write(self, path: str, text: str) -> Use:
        return Use("write_file", {"file_path": str(self.project / path), "content": text})

    def edit(self, path: str, old: str, new: str) -> Use:
        return Use("edit", {"file_path": str(self.project / path), "old_string": old, "new_string": new})

    def read(self, path: str) -> Use:
        return Use("read_file", {"file_path": str(self.project / path)})

    def shell(self, command: str) -> Use:
        return Use("run_shell_command", {"command": command, "description": "a command", "is_background": False})

    def limited(self, command: str, seconds: float) -> Use:
        given = {"command": command, "description": "a command", "is_background": False, "timeout": int(seconds * 1000)}
        return Use("run_shell_command", given)

    def behind(self, command: str) -> Use:
        return Use("run_shell_command", {"command": command, "description": "a command", "is_background": True})

    def mcp(self, server: str, tool: str, given: dict[str, object]) -> Use:
        return Use(f"mcp__{server}__{tool}", given)

    def command(self, prompt: str, again: bool) -> Command:
        argv = [self.binary, "--yolo", "-m", "scripted", "-o", "json", *(["--continue"] if again else []), "-p", prompt]
        return Command(argv, self._environ())

    def screen(self, asks: bool) -> Command:
        argv = [self.binary, "--approval-mode", "default" if asks else "yolo", "-m", "scripted"]
        return Command(argv, self._environ())

    def settle(self, terminal: Terminal) -> None:
        time.sleep(2)  # it shows where to type before it listens

    def _environ(self) -> dict[str, str]:
        servers = {
            name: {"command": words[0], "args": list(words[1:]), "trust": True} for name, words in self.servers.items()
        }
        add_settings(
            self.home / ".qwen" / "settings.json",
            security={"auth": {"selectedType": "openai"}},
            privacy={"usageStatisticsEnabled": False},
            general={"enableAutoUpdate": False},
            ui={"theme": "Default"},
            memory={"enableManagedAutoMemory": False, "enableManagedAutoDream": False},  # they ask the model, too
            mcpServers=servers,
        )
        return {
            "OPENAI_API_KEY": "dummy",
            "OPENAI_BASE_URL": f"{self.model}/v1",
            "OPENAI_MODEL": "scripted",
            "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
        }
