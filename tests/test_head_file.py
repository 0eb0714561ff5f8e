"""The head, kept beside the journal: whatever tears, deletes or replaces the file, no wrong head is told."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback.journal.head_file import Head, HeadFile, kept_head

HASHES = st.binary(min_size=32, max_size=32)


@pytest.fixture
def file(tmp_path: Path) -> HeadFile:
    return HeadFile(tmp_path / "head")


def test_the_newest_head_is_read(file: HeadFile):
    assert file.read() is None
    for seq in range(1, 6):
        file.write(Head(seq, bytes([seq]) * 32))
        assert file.read() == kept_head(file.path) == Head(seq, bytes([seq]) * 32)


def test_two_that_are_open_see_each_other(file: HeadFile):
    other = HeadFile(file.path)
    file.write(Head(1, b"a" * 32))
    assert other.read() == Head(1, b"a" * 32)
    other.write(Head(2, b"b" * 32))
    assert file.read() == Head(2, b"b" * 32)


def test_one_that_was_deleted_is_missed_and_made_again(file: HeadFile):
    file.write(Head(1, b"a" * 32))
    file.path.unlink()
    assert file.read() is None
    file.write(Head(2, b"b" * 32))
    assert kept_head(file.path) == Head(2, b"b" * 32)


def test_one_that_was_replaced_is_read_anew(file: HeadFile, tmp_path: Path):
    file.write(Head(1, b"a" * 32))
    HeadFile(tmp_path / "new").write(Head(7, b"z" * 32))
    os.replace(tmp_path / "new", file.path)
    assert file.read() == Head(7, b"z" * 32)


@pytest.mark.posix_only("fork")
def test_a_forked_process_that_reads_it_moves_no_write(file: HeadFile):
    for seq in (1, 2):
        file.write(Head(seq, bytes([seq]) * 32))
    if (reader := os.fork()) == 0:
        while True:
            file.read()
    try:
        for seq in range(3, 3000):
            file.write(Head(seq, bytes([seq % 256]) * 32))
            assert kept_head(file.path) == Head(seq, bytes([seq % 256]) * 32)
    finally:
        os.kill(reader, signal.SIGKILL)
        os.waitpid(reader, 0)


def test_one_that_was_moved_aside_is_missed_and_made_again(file: HeadFile, tmp_path: Path):
    file.write(Head(1, b"a" * 32))
    os.rename(file.path, tmp_path / "aside")
    assert file.read() is None
    file.write(Head(2, b"b" * 32))
    assert kept_head(file.path) == Head(2, b"b" * 32) and kept_head(tmp_path / "aside") == Head(1, b"a" * 32)


@given(st.integers(0, 43), st.binary(max_size=44), HASHES, HASHES)
def test_a_torn_write_leaves_the_head_before(
    tmp_path_factory: pytest.TempPathFactory, kept: int, torn: bytes, one: bytes, two: bytes
):
    file = HeadFile(tmp_path_factory.mktemp("torn") / "head")
    file.write(Head(1, one))
    file.write(Head(2, two))  # into the first place
    whole = bytearray(file.path.read_bytes())
    part = bytes(whole[:kept]) + torn[: 44 - kept]
    whole[: len(part)] = part
    file.path.write_bytes(whole)
    file.close()
    assert file.read() in (Head(1, one), Head(2, two))


def test_closed_it_opens_again(file: HeadFile):
    file.write(Head(1, b"a" * 32))
    file.close()
    file.close()
    assert file.read() == Head(1, b"a" * 32)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_one_that_may_only_be_read_is_read(file: HeadFile):
    file.write(Head(1, b"a" * 32))
    file.close()
    file.path.chmod(0o400)
    assert file.read() == Head(1, b"a" * 32)
