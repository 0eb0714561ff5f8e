"""Setting agents up: one file each says where its configuration lies and what protect writes there."""

from __future__ import annotations

from takeback.agents import part_of

from .targets import Setup


def load(name: str) -> Setup:
    """How the agent of this name is set up."""
    made: Setup = part_of(__name__, name)
    return made
