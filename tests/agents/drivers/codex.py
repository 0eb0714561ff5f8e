"""Codex, by `codex exec`. Its settings come on the command line, so that its files stay as takeback left them."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from agents.model import Use

from .driver import Command, Driver


class Codex(Driver):
    name = program = "codex"
    ready = ("? for shortcuts",)
    asking = ("Would you like to run",)

    def write(self, path: str, text: str) -> Use:
        added = "".join(f"+{line}\n" for line in text.splitlines())
        return self._patch(f"*** Add File: {path}\n{added}")

    def edit(self, path: str, old: str, new: str) -> Use:
        return self._patch(f"*** Update File: {path}\n@@\n-{old}\n+{new}\n")

    def _patch(self, body: str) -> Use:
        return Use("apply_patch", f"*** Begin Patch\n{body}*** End Patch\n")

    def shell(self, command: str) -> Use:
        return Use("exec_command", {"cmd": command, "yield_time_ms": 30000})

    def asked(self, command: str) -> Use:
        may = {"sandbox_permissions": "require_escalated", "justification": "may I?"}
        return Use("exec_command", {"cmd": command, "yield_time_ms": 30000, **may})

    def limited(self, command: str, seconds: float) -> Use:
        return Use("exec_command", {"cmd": command, "yield_time_ms": int(seconds * 1000)})

    def behind(self, command: str) -> Use:
        return self.limited(command, 0.25)  # the least

    def mcp(self, server: str, tool: str, given: dict[str, object]) -> Use:
        return Use(tool, given, space=f"mcp__{server}")

    def trust(self) -> None:
        """As a person does: the folder, then its hooks by /hooks. Without it, Codex skips them and says nothing."""
        config = self.home / ".codex" / "config.toml"
        config.parent.mkdir(exist_ok=True)
        with config.open("a") as file:
            file.write(f'[projects."{self.project}"]\ntrust_level = "trusted"\n')
        with subprocess.Popen(
            [self.binary, "app-server"],
            cwd=self.project,
            env=self.environ(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            try:
                self._trust_by(process)
            finally:
                process.kill()

    def _trust_by(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        answers = map(json.loads, process.stdout)

        def call(method: str, **params: Any) -> Any:
            process.stdin.write(json.dumps({"id": method, "method": method, "params": params}).encode() + b"\n")
            process.stdin.flush()
            return next(answer for answer in answers if answer.get("id") == method)["result"]

        call("initialize", clientInfo={"name": "person", "version": "1"})
        (found,) = call("hooks/list", cwds=[str(self.project)])["data"]
        trusted = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in found["hooks"]}
        assert trusted, found
        call("config/batchWrite", edits=[{"keyPath": "hooks.state", "value": trusted, "mergeStrategy": "upsert"}])

    def command(self, prompt: str, again: bool) -> Command:
        argv = [self.binary, "exec", *(["resume", "--last"] if again else [])]
        argv += ["--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", *self._settings()]
        return Command([*argv, prompt], {"SCRIPTED_KEY": "dummy"})

    def screen(self, asks: bool) -> Command:
        how = ["-a", "on-request", "-s", "workspace-write"] if asks else ["--dangerously-bypass-approvals-and-sandbox"]
        no_news = ["-c", 'notice.model_migrations={"gpt-5.5"="gpt-6-sol"}']
        return Command([self.binary, *how, *no_news, *self._settings()], {"SCRIPTED_KEY": "dummy"})

    def _settings(self) -> list[str]:
        settings: dict[str, object] = {
            "model": "gpt-5.5",
            "model_provider": "scripted",
            "check_for_update_on_startup": False,
            "analytics.enabled": False,
            "model_providers.scripted.name": "scripted",
            "model_providers.scripted.base_url": f"{self.model}/v1",
            "model_providers.scripted.wire_api": "responses",
            "model_providers.scripted.env_key": "SCRIPTED_KEY",
            "model_providers.scripted.supports_websockets": False,
            "model_providers.scripted.stream_max_retries": 0,
        }
        for name, words in self.servers.items():
            settings[f"mcp_servers.{name}.command"] = words[0]
            settings[f"mcp_servers.{name}.args"] = list(words[1:])
        return [word for key, value in settings.items() for word in ("-c", f"{key}={json.dumps(value)}")]
