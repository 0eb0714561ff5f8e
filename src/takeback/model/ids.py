"""Ids: 128 random bits in the letters k–z, so that no id can be mistaken for a number or a hash."""

from __future__ import annotations

import os

_LETTERS = bytes.maketrans(b"0123456789abcdef", b"klmnopqrstuvwxyz")


def new_id() -> str:
    return os.urandom(16).hex().encode().translate(_LETTERS).decode()


def is_id(name: str) -> bool:
    return len(name) == 32 and not name.strip("klmnopqrstuvwxyz")
