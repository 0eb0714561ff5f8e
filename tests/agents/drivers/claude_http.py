"""Claude Code that asks the resident process by HTTP, set up by hand as docs/resident.md says."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from .claude import Claude


class ClaudeOverHttp(Claude):
    def trust(self) -> None:
        """A port and the process that listens there; then each hook but the one that Claude Code asks by no HTTP."""
        with socket.socket() as line:
            line.bind(("127.0.0.1", 0))
            port = line.getsockname()[1]
        config = self.home / ".config/takeback/config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f"[hooks]\nhttp_port = {port}\n")
        start = [sys.executable, "-m", "takeback", "resident", "start"]
        subprocess.run(start, cwd=self.project, env=super().environ(), check=True, stdout=subprocess.DEVNULL)
        path = self.project / ".claude/settings.local.json"
        settings = json.loads(path.read_text())
        for event, groups in settings["hooks"].items():
            if event != "SessionStart":
                for group in groups:
                    group["hooks"] = [handler(port)]
        path.write_text(json.dumps(settings))

    def environ(self) -> dict[str, str]:
        token = Path(os.environ["XDG_RUNTIME_DIR"], "takeback/token").read_text().strip()
        return {**super().environ(), "TAKEBACK_TOKEN": token}


def handler(port: int) -> dict[str, object]:
    return {
        "type": "http",
        "url": f"http://127.0.0.1:{port}/claude",
        "headers": {"Authorization": "Bearer $TAKEBACK_TOKEN"},
        "allowedEnvVars": ["TAKEBACK_TOKEN"],
    }
