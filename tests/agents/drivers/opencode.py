"""opencode, by `opencode run`."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

from agents.model import Model, Turn, Use

from .driver import INSTALLED, Command, Driver
from .terminal import Terminal

_PACKAGES = ("home/.config/opencode", "project/.opencode")


class Opencode(Driver):
    name = program = "opencode"
    ready = ("Ask anything",)
    asking = ("Permission required",)
    stop = ("Escape", "Escape")

    def write(self, path: str, text: str) -> Use:
        return Use("write", {"filePath": str(self.project / path), "content": text})

    def edit(self, path: str, old: str, new: str) -> Use:
        return Use("edit", {"filePath": str(self.project / path), "oldString": old, "newString": new})

    def read(self, path: str) -> Use:
        return Use("read", {"filePath": str(self.project / path)})

    def shell(self, command: str) -> Use:
        return Use("bash", {"command": command, "description": "a command"})

    def limited(self, command: str, seconds: float) -> Use:
        return Use("bash", {"command": command, "description": "a command", "timeout": int(seconds * 1000)})

    def mcp(self, server: str, tool: str, given: dict[str, object]) -> Use:
        return Use(f"{server}_{tool}", given)

    def trust(self) -> None:
        """Where there are plugins, it installs packages at its first start. Done once, and copied from then on."""
        first = INSTALLED / self.name / "first-start"
        if not first.exists():
            with tempfile.TemporaryDirectory(prefix="tb-", ignore_cleanup_errors=True) as folder:
                self._start_first(Path(folder))
                mine = first.with_name(f"first-start.{os.getpid()}")
                for part in _PACKAGES:
                    shutil.copytree(Path(folder, part), mine / part, symlinks=True)
                with contextlib.suppress(OSError):  # another did it meanwhile
                    mine.rename(first)
        for part, here in zip(_PACKAGES, (self.home / ".config" / "opencode", self.project / ".opencode")):
            shutil.copytree(first / part, here, symlinks=True, dirs_exist_ok=True)

    def _start_first(self, folder: Path) -> None:
        home, project = folder / "home", folder / "project"
        plugin = project / ".opencode" / "plugins" / "nothing.js"
        plugin.parent.mkdir(parents=True)
        plugin.write_text("export const Nothing = async () => ({})\n")
        home.mkdir()
        with Model([Turn("hello")]) as model:
            Opencode(home, project, model.url).ask("hello")
        plugin.unlink()

    def command(self, prompt: str, again: bool) -> Command:
        argv = [self.binary, "run", "--format", "json", *(["--continue"] if again else [])]
        return Command([*argv, *prompt.split()], self._environ())  # a word with a space in it would get quotes

    def screen(self, asks: bool) -> Command:
        return Command([self.binary], self._environ(asks))

    def settle(self, terminal: Terminal) -> None:
        time.sleep(2)  # it shows where to type before it listens

    def _environ(self, asks: bool = False) -> dict[str, str]:
        model = {"name": "scripted", "tool_call": True, "limit": {"context": 100000, "output": 8000}}
        config = {
            "autoupdate": False,
            "share": "disabled",
            "model": "scripted/scripted",
            "small_model": "scripted/scripted",
            "provider": {
                "scripted": {
                    "npm": "@ai-sdk/openai-compatible",
                    "name": "scripted",
                    "options": {"baseURL": f"{self.model}/v1", "apiKey": "dummy"},
                    "models": {"scripted": model},
                }
            },
            "permission": {"*": "allow", "bash": "ask" if asks else "allow"},
            "mcp": {
                name: {"type": "local", "command": list(words), "enabled": True} for name, words in self.servers.items()
            },
        }
        return {
            "OPENCODE_CONFIG_CONTENT": json.dumps(config),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        }
