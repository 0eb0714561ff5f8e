"""An agent's own settings in a home of its own; what others wrote there stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def add_settings(file: Path, **settings: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(file.read_text()) if file.exists() else {}
    for key, value in settings.items():
        if value:
            known[key] = {**known.get(key, {}), **value}
    file.write_text(json.dumps(known, indent=2))
