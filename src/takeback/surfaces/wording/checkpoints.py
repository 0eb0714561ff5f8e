"""A checkpoint in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .text import counted, safe

if TYPE_CHECKING:
    from typing import TypeVar

    from takeback.model.effects import Checkpoint

    T = TypeVar("T")


def captured_said(checkpoint: Checkpoint, id: str = "") -> str:
    label = f' "{safe(checkpoint.label)}"' if checkpoint.label else ""
    paths = counted(checkpoint.snapshot.files, "path")
    return f"checkpoint {checkpoint.number} {id or checkpoint.id[:8]}{label}: {paths}"
