"""takeback report, as a person runs it."""

from __future__ import annotations

import json
import os
import stat

import pytest

from takeback.surfaces.cli.verbs.see import report


@pytest.fixture
def reported(drifted):
    drifted.ok("undo", "--yes", "--merge")
    return drifted


def test_markdown_on_standard_output_unless_a_format_is_named(reported) -> None:
    out = reported.ok("report").out
    assert out.startswith("# Report on `project`\n") and "## Whether the journal holds" in out
    assert reported.ok("report", "--format", "html").out.startswith("<!doctype html>")
    found = reported("report", "--json").json
    assert (
        found["integrity"]["ok"] and found["totals"]["takebacks"] == 1 and found["span"] == "everything that is known"
    )


def test_a_file_gets_the_format_of_its_name_and_is_for_its_owner(reported, tmp_path) -> None:
    for name, begins in (("r.html", "<!doctype"), ("r.md", "# Report"), ("r.json", "{"), ("r", "<!doctype")):
        ran = reported.ok("report", "--output", str(tmp_path / name))
        text = (tmp_path / name).read_text()
        assert text.startswith(begins)
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        assert ran.out.startswith(f"wrote {tmp_path / name}: ") and "1 take-back" in ran.out
        assert "before you hand it on" in ran.err
    assert json.loads((tmp_path / "r.json").read_text())["report"] == 1
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".takeback-report")]


def test_nothing_is_replaced_without_force(reported, tmp_path) -> None:
    there = tmp_path / "r.md"
    there.write_text("precious")
    ran = reported("report", "--output", str(there))
    assert ran.code == 1 and "is there already" in ran.err and there.read_text() == "precious"
    reported.ok("report", "--output", str(there), "--force", "--quiet")
    assert there.read_text().startswith("# Report")
    assert reported("report", "--output", str(tmp_path / "no/such/folder/r.md")).code == 1


def test_spans(reported) -> None:
    assert "`since base" not in reported.ok("report").out
    out = reported.ok("report", "base").out
    assert '"base"`' in out.splitlines()[2] and "made.py" in out and "legacy" not in out
    assert reported("report", "start..base", "--json").json["totals"]["turns"] == 1
    assert reported("report", "--since", "1h", "--json").json["totals"]["takebacks"] == 1
    for words in (["nothing"], ["--session", "s9"], ["--since", "never"]):
        ran = reported("report", *words)
        assert ran.code == 2 and "  → " in ran.err
    for words in (["base", "--since", "1h"], ["--format", "pdf"], ["--output", ""]):
        assert reported("report", *words).code == 2


def test_without_diffs(reported) -> None:
    assert "+by claude" in reported.ok("report").out
    out = reported.ok("report", "--no-diffs").out
    assert "+by claude" not in out and "are left out as asked" in out


def test_a_damaged_store_is_reported_and_ends_with_1(reported, store_folder) -> None:
    pack = next((store_folder() / "packs").glob("*.pack"))
    pack.chmod(0o600)
    data = bytearray(pack.read_bytes())
    data[-2] ^= 0xFF
    pack.write_bytes(data)
    ran = reported("report", "--data", "--no-diffs")
    assert ran.code == 1
    assert "the journal is damaged, and the report says so" in ran.err
    assert "- result: `damaged`" in ran.out


def test_it_is_paged_on_a_terminal_and_works_when_off(reported) -> None:
    assert "paged:# Report" in reported.typing("report", env={"PAGER": "sed s/^/paged:/"}).out
    assert reported.ok("report", env={"TAKEBACK": "off"}).out.startswith("# Report")


def is_now(path) -> tuple[int, int, int]:
    found = path.lstat()
    return found.st_ino, found.st_mode, found.st_mtime_ns


def test_only_a_file_is_replaced(reported, tmp_path) -> None:
    """As root, --force on a device would take it from everybody."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "link", "pipe"):
        before = is_now(tmp_path / name)
        ran = reported("report", "--output", str(tmp_path / name), "--force")
        assert ran.code == 1 and "no file" in ran.err and is_now(tmp_path / name) == before
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".takeback-report")]


def test_what_appears_meanwhile_is_not_replaced(tmp_path) -> None:
    made, there = tmp_path / "made", tmp_path / "r.md"
    made.write_text("report")
    there.write_text("precious")
    with pytest.raises(FileExistsError):
        report._put(str(made), str(there), force=False)
    assert there.read_text() == "precious"
