"""What was acknowledged stands after losing every write that had not reached the disk."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from runs import holds, python, quick_folder

from sampling import WHOLE


def _why_not() -> str:
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root on Linux may mount a disk image"
    tried = subprocess.run(
        ["unshare", "-m", "sh", "-ec", "mkfs.ext4 -V; d=$(mktemp -d); trap 'umount $d; rmdir $d' EXIT; mount -t tmpfs none $d; losetup -f"],
        capture_output=True, check=False,
    )  # fmt: skip
    return "" if tried.returncode == 0 else f"mounting is not possible here: {tried.stderr.decode().strip()}"


@pytest.fixture(scope="module", autouse=True)
def can_mount() -> None:
    if why := _why_not():
        pytest.skip(why)


@pytest.mark.parametrize("world", ["everything", "swap"])
def test_power_lost_at_every_sync(world: str) -> None:
    with quick_folder() as base:
        report = python("power.py", world, base, 1 if WHOLE else 5, before=("unshare", "-m"), timeout=1200)
    holds(report)
    assert report["copies"] >= 40, report["where"]
    for sync in ("fdatasync", " sync", "sql COMMIT", "commit of names", "acknowledged"):
        assert any(sync in where for where in report["where"]), f"the disk was never copied around a {sync}"


@pytest.mark.parametrize("what", ["store", "tree"])
def test_a_disk_that_is_really_full(what: str) -> None:
    with quick_folder() as base:
        report = python("full_disk.py", what, base, before=("unshare", "-m"))
    holds(report)
    assert report["refusals"], "the disk was never full"
