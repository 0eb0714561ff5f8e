"""Qwen Code, without a screen."""

from __future__ import annotations

from agents.model import Use

from .driver import Command, Driver
from .settings import add_settings


class Qwen(Driver):
    name = program = "qwen"

    def write(self, path: str, text: str) -> Use:
        return Use("write_file", {"file_path": str(self.project / path), "content": text})

    def edit(self, path: str, old: str, new: str) -> Use:
        return Use("edit", {"file_path": str(self.project / path), "old_string": old, "new_string": new})

    def read(self, path: str) -> Use:
        return Use("read_file", {"file_path": str(self.project / path)})

    def shell(self, command: str) -> Use:
        return Use("run_shell_command", {"command": command, "description": "a command", "is_background": False})

    def mcp(self, server: str, tool: str, given: dict[str, object]) -> Use:
        return Use(f"mcp__{server}__{tool}", given)

    def command(self, prompt: str, again: bool) -> Command:
        servers = {
            name: {"command": words[0], "args": list(words[1:]), "trust": True} for name, words in self.servers.items()
        }
        add_settings(
            self.home / ".qwen" / "settings.json",
            security={"auth": {"selectedType": "openai"}},
            privacy={"usageStatisticsEnabled": False},
            general={"enableAutoUpdate": False},
            memory={"enableManagedAutoMemory": False, "enableManagedAutoDream": False},  # they ask the model, too
            mcpServers=servers,
        )
        argv = [self.binary, "--yolo", "-m", "scripted", "-o", "json", *(["--continue"] if again else []), "-p", prompt]
        environ = {
            "OPENAI_API_KEY": "dummy",
            "OPENAI_BASE_URL": f"{self.model}/v1",
            "OPENAI_MODEL": "scripted",
            "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
        }
        return Command(argv, environ)
