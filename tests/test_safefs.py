"""The one door to the user's tree: through it nothing leads outside, whichever way it is opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support import PORTABLE
from takeback.errors import UsageError
from takeback.system.safefs import components, open_root
from takeback.system.safefs.descent import Descent

if not PORTABLE:
    from takeback.system.safefs import linux


@pytest.fixture(params=["openat2", "name by name"] if not PORTABLE else ["by path"])
def root(project: Path, tmp_path: Path, request, monkeypatch):
    outside = tmp_path / "outside"
    (outside / "sub").mkdir(parents=True)
    (outside / "secret").write_text("secret")
    (project / "d/e").mkdir(parents=True)
    (project / "d/f").write_text("1")
    (project / "link").symlink_to(outside)
    (project / "d/up").symlink_to("../../outside")
    (project / "file link").symlink_to(outside / "secret")
    if request.param == "name by name":
        monkeypatch.setattr(linux, "_have", {"openat2": False})
    with open_root(str(project), PORTABLE) as folder:
        yield folder


@pytest.mark.parametrize("path", [b"link", b"link/sub", b"d/up", b"d/up/sub", b"d/e/../../link"])
def test_no_folder_is_reached_through_a_link(root, path: bytes):
    with pytest.raises(OSError):
        root.descend(path.split(b"/"))


def test_a_child_is_never_a_link(root):
    for name in (b"link", b"file link", b"d/f"):
        with pytest.raises(OSError):
            here = root
            for part in name.split(b"/"):
                here = here.child(part)


def test_descent_through_a_link_is_refused(root):
    with Descent(root) as descent:
        assert descent.to(b"d/e").path == b"d/e"
        with pytest.raises(OSError):
            descent.to(b"d/up/sub")
        with pytest.raises(OSError):
            descent.to(b"link")


def test_links_are_neither_read_nor_written_through(root, project: Path, tmp_path: Path):
    with pytest.raises(OSError):
        os.close(root.open_read(b"file link"))
    with pytest.raises(OSError):
        os.close(root.create(b"file link"))
    root.utime(b"file link", 5)
    assert os.lstat(project / "file link").st_mtime_ns == 5
    assert (tmp_path / "outside/secret").stat().st_mtime_ns != 5
    assert root.readlink(b"file link").endswith(b"secret")
    root.unlink(b"file link")
    assert (tmp_path / "outside/secret").read_text() == "secret"


def test_move_never_replaces(root, project: Path):
    (project / "a").write_text("a")
    (project / "b").write_text("b")
    for target in (b"b", b"link", b"d"):
        with pytest.raises(OSError):
            root.move(b"a", target)
    assert (project / "a").read_text() == "a" and (project / "b").read_text() == "b"
    root.move(b"a", b"c")
    assert (project / "c").read_text() == "a" and not (project / "a").exists()
    root.move(b"d", b"moved")
    assert (project / "moved/f").read_text() == "1"


def test_new_files_and_folders_are_private_until_they_get_their_mode(root, project: Path):
    os.close(root.create(b"new"))
    root.mkdir(b"folder")
    assert (project / "new").stat().st_mode & 0o777 == 0o600
    assert (project / "folder").stat().st_mode & 0o777 == 0o700


def test_the_listing_is_sorted_by_bytes_and_says_what_is_a_link(root):
    found = root.listing()
    assert [name for name, _ in found] == sorted(name for name, _ in found)
    assert all(isinstance(name, bytes) for name, _ in found)


@pytest.mark.parametrize("path", [b"/abs", b"..", b"a/../b", b"a//b", b"./a", b"a/.", b"a\0b", b"a/"])
def test_paths_that_could_lead_elsewhere_are_refused(path: bytes):
    with pytest.raises(UsageError):
        components(path)


def test_plain_paths_are_taken_apart():
    assert components(b"") == [] and components(b"a/b c/\xff") == [b"a", b"b c", b"\xff"]
