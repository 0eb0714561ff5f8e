"""How takeback was installed, so that a hint names a command that works: it is on no package index.

A program installed from a clone knows where that clone was (PEP 610); which tool did it shows in the environment's
path. Read only where something is missing.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import metadata
from importlib.util import find_spec
from urllib.parse import unquote, urlsplit

_PIP = "pip install"
_PACKAGES = {"ui": "textual", "web": "uvicorn", "mcp": "mcp"}  # extras of programs: the other tools make all anew


def with_extra(extra: str) -> str:
    """The command that adds an extra."""
    source, tool = _clone(), _tool()
    there = {name for name, package in _PACKAGES.items() if find_spec(package)} if tool != _PIP else set()
    command = f"{tool} '{source or '.'}[{','.join(sorted({extra, *there}))}]'"
    return command if source else f"{command} in your clone of takeback"


def upgraded() -> str:
    """The commands that bring a newer version."""
    source = _clone()
    if not source:
        return f"update your clone of takeback, then {_tool()} . in it"
    return f"update your clone of takeback ({source}), then {_tool()} '{source}'"


def _tool() -> str:
    inside = sys.prefix.replace(os.sep, "/")
    if "/pipx/venvs/" in inside:
        return "pipx install --force"
    if "/uv/tools/" in inside:
        return "uv tool install --force"
    return _PIP


def _clone() -> str:
    """The folder it was installed from; empty where that is not known, or gone."""
    try:
        told = json.loads(metadata.distribution("takeback").read_text("direct_url.json") or "{}")
        where = urlsplit(told.get("url", ""))
    except (metadata.PackageNotFoundError, ValueError, OSError, AttributeError):
        return ""
    folder = unquote(where.path) if where.scheme == "file" else ""
    return folder if os.path.isfile(os.path.join(folder, "pyproject.toml")) else ""
