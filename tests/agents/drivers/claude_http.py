"""Claude Code that asks the resident process by HTTP, set up by hand as docs/resident.md says."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .claude import Claude


class ClaudeOverHttp(Claude):
    def trust(self) -> None:
        """A port, the process that listens there, and each hook by HTTP but the one that Claude Code asks by none."""
        with socket.socket() as line:
            line.bind(("127.0.0.1", 0))
            port = line.getsockname()[1]
        config = self.home / ".config/takeback/config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f"[hooks]\nhttp_port = {port}\n")
        start = [sys.executable, "-m", "takeback", "resident", "start"]
        subprocess.run(start, cwd=self.project, env=super().environ(), check=True, stdout=subprocess.DEVNULL)

        def by_http(hooks: dict[str, Any]) -> None:
            for event in hooks.keys() - {"SessionStart"}:
                for group in hooks[event]:
                    group["hooks"] = [_handler(port, event)]

        self._change(by_http)

    def start_nothing(self) -> None:
        """Takes out the one command, which would start the resident process."""
        self._change(lambda hooks: hooks.pop("SessionStart"))

    def _change(self, how: Callable[[dict[str, Any]], object]) -> None:
        path = self.project / ".claude/settings.local.json"
        settings = json.loads(path.read_text())
        how(settings["hooks"])
        path.write_text(json.dumps(settings))

    def environ(self) -> dict[str, str]:
        token = Path(os.environ["XDG_RUNTIME_DIR"], "takeback/token").read_text().strip()
        return {**super().environ(), "TAKEBACK_TOKEN": token}


def _handler(port: int, event: str) -> dict[str, object]:
    return {
        "type": "http",
        "url": f"http://127.0.0.1:{port}/claude",
        "headers": {"Authorization": "Bearer $TAKEBACK_TOKEN"},
        "allowedEnvVars": ["TAKEBACK_TOKEN"],
        **({"onFailure": "block"} if event == "PreToolUse" else {}),
    }
