"""A small MCP server over stdio: `jot` writes a file into the project, `recall` reads one, `fail` fails half-way."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_GIVEN = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "text": {"type": "string"}},
    "required": ["name"],
}
_TOOLS = [
    {"name": "jot", "description": "writes a note", "inputSchema": _GIVEN},
    {"name": "recall", "description": "reads a note", "inputSchema": _GIVEN, "annotations": {"readOnlyHint": True}},
    {"name": "fail", "description": "writes half a note", "inputSchema": _GIVEN},
]


def answer(folder: Path, method: str, given: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        info = {"name": "notes", "version": "1"}
        return {"protocolVersion": given["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": _TOOLS}
    if method == "tools/call":
        return call(folder, given["name"], given["arguments"])
    return {}


def call(folder: Path, tool: str, given: dict[str, str]) -> dict[str, Any]:
    note = folder / given["name"]
    if tool == "recall":
        said = note.read_text()
    else:
        note.write_text(given["text"])
        said = f"{tool}: {given['name']}"
    return {"content": [{"type": "text", "text": said}], "isError": tool == "fail"}


def main(folder: Path) -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            result = answer(folder, asked["method"], asked.get("params") or {})
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
