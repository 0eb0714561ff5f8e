"""What is sealed reads as docs/walrus.md says, by other means than ours."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from servers.walrus import serving
from takeback.errors import Damaged
from takeback.threads.stores.sealed import Seal
from takeback.threads.stores.walrus import Walrus

KEY = bytes(range(32))
PAGE = Path(__file__).parents[2] / "docs/walrus.md"


def test_the_program_in_the_documentation_reads_a_blob() -> None:
    program = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[-1]
    with serving() as server:
        blob_id = Walrus(server.url, server.url, key=KEY).put(b"what is kept")
        names: dict[str, Any] = {"aggregator": server.url, "blob_id": blob_id, "key_text": KEY.hex()}
        exec(program, names)
    assert names["data"] == b"what is kept"


def test_what_was_sealed_once_opens_for_ever() -> None:
    sealed = bytes.fromhex(
        "544b4253010b021373bb2e6024e0611a63f81ff1ae476711407391e14d6bfee5629cc5f579f63b308ff5"
        "0b564d36ba433828bfc72928ee1a8df7b111ff96fd"
    )
    assert Seal(KEY).open(sealed, "blob x") == b"from the first version"


def test_the_header_is_authenticated_with_the_data() -> None:
    """A blob cannot be given out as that of another key, nor its parts be mixed."""
    one, other = Seal(KEY).seal(b"one"), Seal(KEY).seal(b"two")
    with pytest.raises(Damaged):
        Seal(KEY).open(one[:25] + other[25:], "blob x")
    foreign = Seal(bytes(32))
    with pytest.raises(Damaged):
        Seal(KEY).open(one[:5] + Seal(KEY).fingerprint + foreign.seal(b"one")[13:], "blob x")
