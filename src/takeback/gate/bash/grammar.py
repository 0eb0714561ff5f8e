"""The parser for bash, loaded when a command has to be judged.

The two extension modules are loaded by themselves: their packages bring in typing and importlib.resources, which cost
ten times what parsing does.
"""

from __future__ import annotations

import os
import re
from functools import cache
from importlib import machinery, util
from typing import Any


def encoded(text: str) -> bytes:
    """A text as the parser gets it: its scanner reads beyond its tables at letters that are not ASCII, and the process
    would die of it. To bash they are letters like others, so each is written as a name."""
    if text.isascii():
        return text.encode()
    return re.sub(r"[^\x00-\x7f]", lambda found: f"__u{ord(found[0]):x}__", text).encode()


def decoded(data: bytes) -> str:
    """What a part of such a text says."""
    if b"__u" not in data:
        return data.decode()
    return re.sub(r"__u([0-9a-f]{2,6})__", _letter, data.decode())


def _letter(found: re.Match[str]) -> str:
    number = int(found[1], 16)
    return chr(number) if 0x80 <= number <= 0x10FFFF else found[0]


def parser() -> Any:
    """A parser of tree-sitter, for one thread; None where it cannot be loaded."""
    made = _loaded()
    return made() if made is not None else None


@cache
def _loaded() -> Any:
    try:
        try:
            core, bash = _binding("tree_sitter"), _binding("tree_sitter_bash")
        except (ImportError, AttributeError, OSError):
            import tree_sitter as core
            import tree_sitter_bash as bash
        language = core.Language(bash.language())
        core.Parser(language)
        return lambda: core.Parser(language)
    except Exception:  # whatever is wrong with it, commands are still judged, by their words
        return None


def _binding(package: str) -> Any:
    found = util.find_spec(package)
    for folder in found.submodule_search_locations or () if found else ():
        for suffix in machinery.EXTENSION_SUFFIXES:
            path = os.path.join(folder, "_binding" + suffix)
            if os.path.exists(path):
                name = f"{package}._binding"
                loader = machinery.ExtensionFileLoader(name, path)
                spec = util.spec_from_file_location(name, path, loader=loader)
                if spec is not None:
                    module = util.module_from_spec(spec)
                    loader.exec_module(module)
                    return module
    raise ImportError(package)
