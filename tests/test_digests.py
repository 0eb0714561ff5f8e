"""Both ways to a digest lead to the same one, and the one that is costly to load is loaded by who hashes much."""

from __future__ import annotations

import hashlib
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from takeback import digests


@given(st.lists(st.binary(max_size=5_000), max_size=30), st.integers(1, 20_000))
def test_every_digest_is_the_one_of_hashlib(contents: list[bytes], few: int) -> None:
    """Before, at and after the moment from which on the other one hashes."""
    digests._left, digests._made = few, digests._small()
    assert [digests.sha256(data).digest() for data in contents] == [hashlib.sha256(data).digest() for data in contents]
    piecewise = digests.sha256()
    whole = digests.stream()
    for data in contents:
        piecewise.update(data)
        whole.update(data)
    assert piecewise.hexdigest() == whole.hexdigest() == hashlib.sha256(b"".join(contents)).hexdigest()


def test_who_hashes_little_need_not_load_openssl() -> None:
    code = """if True:
        import sys
        from takeback.digests import sha256
        for number in range(20):
            sha256(b"%d" % number * 1000).digest()
        print("_hashlib" in sys.modules, "hashlib" in sys.modules)
        for number in range(200):
            sha256(b"%d" % number * 1000).digest()
        print("hashlib" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True"]
