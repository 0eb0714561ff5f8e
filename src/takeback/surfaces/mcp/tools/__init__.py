"""The tools, by what they are for. A module has `add(server)`, and a function per tool; agents read its docstring."""

from __future__ import annotations

from mcp_types import ToolAnnotations

# What a tool does to the world, as clients show it to a person.
LOOKS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
KEEPS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
KEEPS_ONCE = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)
SENDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True)
