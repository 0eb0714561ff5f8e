"""watch, as a person runs it: a process that follows the tree while others work in it."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from repositories import Repo
from support import PORTABLE, picture

PROGRAM = (sys.executable, "-m", "takeback")
LONG = 60.0
Cli = Any  # of conftest.py


def until(is_so: Callable[[], object]) -> None:
    limit = time.monotonic() + LONG
    while not is_so():
        assert time.monotonic() < limit, "still waiting"
        time.sleep(0.02)


class Watched:
    """A running watch, and the lines it has printed so far."""

    def __init__(self, project: Path, *words: str, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [*PROGRAM, "watch", *words],
            cwd=project,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.out: list[str] = []
        self.err: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(stream, lines), daemon=True)
            for stream, lines in ((self.process.stdout, self.out), (self.process.stderr, self.err))
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream: Any, lines: list[str]) -> None:
        for line in stream:
            lines.append(line.decode("utf-8", "surrogateescape").rstrip("\n"))

    def ready(self) -> Watched:
        until(lambda: any("watching" in line for line in self.out + self.err) or self.process.poll() is not None)
        assert self.process.poll() is None, self.err
        return self

    @property
    def moments(self) -> list[dict[str, Any]]:
        return [found for line in self.out if "changes" in (found := json.loads(line))]

    def told(self) -> dict[str, str]:
        """Path → its last change, over all moments so far."""
        return {c["path"]: c["change"] for moment in self.moments for c in moment["changes"]}

    def until_told(self, **paths: str) -> None:
        wanted = {path.replace("__", "/"): change for path, change in paths.items()}
        until(lambda: wanted.items() <= self.told().items())

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        code = self.process.wait(timeout=LONG)
        for reader in self._readers:
            reader.join(LONG)
        return code


@pytest.fixture
def watch(bare: Cli) -> Iterator[Callable[..., Watched]]:
    begun: list[Watched] = []

    def start(*words: str, **how: Any) -> Watched:
        begun.append(Watched(bare.project, *words, **how))
        return begun[-1]

    yield start
    for one in begun:
        one.process.kill()
        one.wait()


@pytest.fixture
def watched(cli: Cli, watch: Callable[..., Watched]) -> Watched:
    """A running watch of the small protected project, in JSON."""
    return watch("--json").ready()


def test_each_quiet_moment_is_an_effect_that_undo_steps_over(cli: Cli, watched: Watched):
    project = cli.project
    pictures = [picture(project)]
    (project / "README.md").write_text("changed\n")
    watched.until_told(**{"README.md": "modified"})
    pictures.append(picture(project))
    (project / "src/auth.py").chmod(0o700)
    (project / "src/legacy.py").rename(project / "moved.py")
    watched.until_told(**{"src/auth.py": "mode", "src/legacy.py": "deleted", "moved.py": "new"})
    pictures.append(picture(project))
    shutil.rmtree(project / "src")
    (project / "made").mkdir()
    (project / "made/x").write_text("x")
    watched.until_told(**{"src": "deleted", "src/auth.py": "deleted", "made": "new", "made/x": "new"})
    pictures.append(picture(project))
    count = len(watched.moments)
    assert [m["actor"] for m in watched.moments] == ["watch"] * count
    assert cli.ok("log", "--json", "kind:effect").json["rows"][0]["id"] == watched.moments[-1]["id"]

    for _ in watched.moments:
        cli.ok("undo", "--yes")
    assert picture(project) == pictures[0]
    cli.ok("redo", "--yes", str(count))
    assert picture(project) == pictures[-1]
    assert watched.end() == 130
    assert len(watched.moments) == count  # what takebacks did is theirs


def test_it_protects_the_folder_first(bare: Cli, watch: Callable[..., Watched]):
    (bare.project / "a").write_text("1")
    watched = watch("--json").ready()
    assert json.loads(watched.out[0])["checkpoint"]["label"] == "start"
    (bare.project / "a").write_text("2")
    watched.until_told(a="modified")
    assert watched.end(signal.SIGTERM) == 143
    bare.ok("undo", "--yes")
    assert (bare.project / "a").read_text() == "1"


def test_it_begins_with_a_named_checkpoint_and_finds_what_happened_while_it_was_not_running(
    cli: Cli, watch: Callable[..., Watched]
):
    watch("--json").ready().end()
    (cli.project / "meanwhile").write_text("1")
    watched = watch("--json").ready()
    begun = json.loads(watched.out[0])["checkpoint"]
    assert (begun["label"], begun["named"]) == ("watch", True)
    assert watched.end() == 130 and watched.moments == []
    cli.ok("undo", "--yes")
    assert not (cli.project / "meanwhile").exists()


def test_the_end_captures_what_has_not_settled(cli: Cli, watch: Callable[..., Watched]):
    slow = {"TAKEBACK_WATCH_SETTLE": "1h", "TAKEBACK_WATCH_BUSY": "1h"}
    watched = watch("--json", env=slow).ready()
    (cli.project / "last").write_text("1")
    assert watched.end() == 130
    assert watched.told() == {"last": "new"}


def test_a_tree_that_is_never_still_is_captured_all_the_same(cli: Cli, watch: Callable[..., Watched]):
    watched = watch("--json", env={"TAKEBACK_WATCH_SETTLE": "1h", "TAKEBACK_WATCH_BUSY": "0.1"}).ready()
    numbers = iter(range(1_000_000))

    def is_captured() -> bool:
        (cli.project / "busy").write_text(str(next(numbers)))
        return len(watched.moments) >= 2

    until(is_captured)


def test_once_waits_for_the_first_moment(cli: Cli, watch: Callable[..., Watched]):
    watched = watch("--once", "--json").ready()
    (cli.project / "x").write_text("1")
    assert watched.wait() == 0 and watched.told() == {"x": "new"}
    assert [row["label"] for row in cli.ok("log", "--json", "kind:checkpoint").json["rows"]] == ["start"]


def test_once_takes_what_differs_now(changed: Cli, watch: Callable[..., Watched]):
    watched = watch("--once", "--json")
    assert watched.wait() == 0
    assert watched.told() == {"src/auth.py": "modified", "src/legacy.py": "deleted", "src/new.py": "new"}


def test_once_can_be_interrupted(cli: Cli, watch: Callable[..., Watched]):
    assert watch("--once").ready().end() == 130


def test_the_line_a_person_reads(cli: Cli, watch: Callable[..., Watched]):
    watched = watch().ready()
    shutil.rmtree(cli.project / "src")
    (cli.project / "README.md").write_text("2\n")
    (cli.project / "b.txt").write_text("b")
    until(lambda: any("README.md" in line for line in watched.out))
    until(lambda: any("- src/" in line for line in watched.out))
    watched.end()
    lines = [line for line in watched.out if "undo with takeback undo" in line]
    told = " ".join(lines)
    assert "~ README.md" in told and "+ b.txt" in told and "src/auth.py" not in told
    assert lines[0][2] == lines[0][5] == ":" and " file" in lines[0]


def test_git_is_told_in_words_and_not_counted_as_files(cli: Cli, watch: Callable[..., Watched]):
    repo = Repo.new(cli.project)
    repo.commit("one")
    watched = watch().ready()
    repo.commit("two", made="m\n")
    until(lambda: any("git: " in line for line in watched.out))
    watched.end()
    told = " ".join(watched.out)
    assert ".git/" not in told and "+ made" in told and "2 files" not in told
    assert "main" in told and "1 index entry" in told


def test_quiet_says_nothing(cli: Cli, watch: Callable[..., Watched]):
    watched = watch("--quiet", "--once")
    until(lambda: _is_following(cli) or watched.process.poll() is not None)

    def ended() -> bool:
        (cli.project / "x").write_text(str(time.monotonic()))
        time.sleep(1)
        return watched.process.poll() is not None

    until(ended)
    assert watched.wait() == 0 and (watched.out, watched.err) == ([], [])


def _is_following(cli: Cli) -> bool:
    return any(Path(os.environ["TAKEBACK_HOME"]).glob("*/watching")) or PORTABLE


def test_a_folder_moved_in_with_all_it_holds(cli: Cli, tmp_path: Path, watched: Watched):
    (tmp_path / "elsewhere/in").mkdir(parents=True)
    (tmp_path / "elsewhere/in/f").write_text("1")
    (tmp_path / "elsewhere").rename(cli.project / "moved")
    watched.until_told(**{"moved": "new", "moved/in": "new", "moved/in/f": "new"})
    (cli.project / "moved/in/f").write_text("22")
    watched.until_told(**{"moved/in/f": "modified"})


def test_a_burst_of_a_thousand_files_is_undone_and_redone(cli: Cli, watched: Watched):
    before = picture(cli.project)
    for n in range(1000):
        folder = cli.project / f"many/{n % 37}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{n}.txt").write_text(str(n))
    after = picture(cli.project)
    until(lambda: len(watched.told()) == 1000 + 37 + 1)
    turns = str(len(watched.moments))
    cli.ok("undo", turns, "--yes")
    assert picture(cli.project) == before
    cli.ok("redo", "--yes")
    assert picture(cli.project) == after


def test_events_that_were_lost_are_made_up_for_by_looking(cli: Cli, watched: Watched):
    watched.process.send_signal(signal.SIGSTOP)
    for n in range(9000):  # more events than the queue holds, while nobody reads it
        (cli.project / f"f{n % 100}").unlink(missing_ok=True)
        (cli.project / f"f{n % 100}").touch()
    (cli.project / "late").mkdir()
    watched.process.send_signal(signal.SIGCONT)
    until(lambda: {"late", *(f"f{n}" for n in range(100))} <= watched.told().keys())
    (cli.project / "late/x").write_text("1")
    watched.until_told(**{"late/x": "new"})


def test_a_write_through_a_memory_map_is_found_at_the_end(cli: Cli, watch: Callable[..., Watched]):
    (cli.project / "mapped").write_bytes(b"." * 4096)
    watched = watch("--json").ready()
    with (cli.project / "mapped").open("r+b") as file, mmap.mmap(file.fileno(), 4096) as memory:
        memory[0] = ord("x")
        assert watched.end() == 130
    assert watched.told() == {"mapped": "modified"}


def test_what_is_left_out_raises_no_moment(cli: Cli, watched: Watched):
    (cli.project / "node_modules/x").mkdir(parents=True)
    (cli.project / "node_modules/x/y").write_text("1")
    (cli.project / ".git").mkdir()
    (cli.project / ".git/HEAD").write_text("ref")
    (cli.project / "seen").write_text("1")
    watched.until_told(seen="new")
    assert watched.end() == 130 and watched.told() == {"seen": "new"}


def test_rules_that_change_count_at_once(cli: Cli, watched: Watched):
    (cli.project / ".takebackignore").write_text("*.tmp\n")
    watched.until_told(**{".takebackignore": "new"})
    (cli.project / "x.tmp").write_text("1")
    (cli.project / "x.txt").write_text("1")
    watched.until_told(**{"x.txt": "new"})
    assert watched.end() == 130 and "x.tmp" not in watched.told()


def test_names_that_are_no_text(cli: Cli, watched: Watched):
    os.mkdir(os.fsencode(cli.project) + b"/\xff d")
    Path(os.fsdecode(os.fsencode(cli.project) + b"/\xff d/\xfe\n")).write_text("1")
    until(lambda: {"\udcff d", "\udcff d/\udcfe\n"} <= watched.told().keys())
    cli.ok("undo", "--yes", str(len(watched.moments)))
    assert not os.path.exists(os.fsencode(cli.project) + b"/\xff d")


def test_two_watchers_at_once_capture_each_change_once(cli: Cli, tmp_path: Path, watch: Callable[..., Watched]):
    one, two = watch("--json").ready(), watch("--json").ready()
    for n in range(5):
        (tmp_path / "whole").write_text("1")  # written in place it is two changes: one may look before its content
        (tmp_path / "whole").rename(cli.project / f"f{n}")
        until(lambda n=n: f"f{n}" in {**one.told(), **two.told()})
    assert (one.end(), two.end()) == (130, 130)
    told = [c["path"] for w in (one, two) for m in w.moments for c in m["changes"]]
    assert sorted(told) == [f"f{n}" for n in range(5)]
    assert cli.ok("verify", "--json").json["ok"]


def test_a_rollback_at_the_same_time_is_never_watchs_work(cli: Cli, watched: Watched):
    for n in range(300):
        (cli.project / f"f{n}").write_text(str(n))
    until(lambda: len(watched.told()) == 300)
    start = picture(cli.project)
    before = len(watched.moments)
    for _ in range(3):
        cli.ok("rollback", "--yes", "start")
        assert not (cli.project / "f1").exists()
        cli.ok("redo", "--yes")
        assert picture(cli.project) == start
    (cli.project / "after").write_text("1")
    watched.until_told(after="new")
    assert watched.end() == 130
    assert [c["path"] for m in watched.moments[before:] for c in m["changes"]] == ["after"]


def test_others_may_take_checkpoints_meanwhile(cli: Cli, watched: Watched):
    for n in range(3):
        (cli.project / f"f{n}").write_text("1")
        cli.ok("checkpoint", f"by hand {n}")
    (cli.project / "mine").write_text("1")
    watched.until_told(mine="new")
    assert watched.end() == 130
    effects = cli.ok("log", "--json", "kind:effect").json["rows"]
    assert sorted(p for row in effects for p in row["paths"]) == ["f0", "f1", "f2", "mine"]


def test_an_interrupted_take_back_is_said_once_and_waited_for(
    cli: Cli, watched: Watched, killed_rollback: Callable[[Cli], None]
):
    (cli.project / "a").write_text("1")
    (cli.project / "b").write_text("1")
    watched.until_told(a="new", b="new")
    killed_rollback(cli)
    until(lambda: any("interrupted" in line for line in watched.err))
    cli.ok("resume", "--yes")
    (cli.project / "c").write_text("1")
    watched.until_told(c="new")
    assert watched.end() == 130
    assert sum("interrupted" in line for line in watched.err) == 1
    assert [c["path"] for m in watched.moments for c in m["changes"]].count("a") == 1


@pytest.mark.parametrize("how", ["moved", "deleted", "replaced"])
def test_a_root_that_goes_away_ends_it_with_a_word(cli: Cli, tmp_path: Path, watched: Watched, how: str):
    if how == "deleted":
        shutil.rmtree(cli.project)
    else:
        cli.project.rename(tmp_path / "elsewhere")
    if how == "replaced":
        cli.project.mkdir()
    assert watched.wait() == 1
    assert any(str(cli.project) in line for line in watched.err) and any("→" in line for line in watched.err)
    assert not any("bug" in line for line in watched.err)
    cli.project.mkdir(exist_ok=True)  # for the fixtures


def test_what_an_agent_may_have_done_is_nobodys(cli: Cli, watched: Watched):
    (cli.project / "mine").write_text("1")
    watched.until_told(mine="new")
    cli.ok("checkpoint", env={"TAKEBACK_ACTOR": "claude"})  # it did nothing so far
    (cli.project / "more").write_text("1")
    watched.until_told(more="new")
    (cli.project / "claude").write_text("1")
    cli.ok("track", "claude", env={"TAKEBACK_ACTOR": "claude"})
    (cli.project / "anyone").write_text("1")
    watched.until_told(anyone="new")
    whose = {c["path"]: m["actor"] for m in watched.moments for c in m["changes"]}
    assert (whose["mine"], whose["more"], whose["anyone"]) == ("watch", "watch", "")
    if "claude" not in whose:  # else watch was faster than the word of who did it
        cli.ok("undo", "--yes")
        assert not (cli.project / "claude").exists() and (cli.project / "anyone").exists()
    cli.ok("checkpoint", "a new beginning")
    (cli.project / "again").write_text("1")
    watched.until_told(again="new")
    assert watched.moments[-1]["actor"] == "watch"


def test_off_and_unwise_folders_are_refused(bare: Cli, own_home: Path):
    assert bare("watch", env={"TAKEBACK": "off"}).code == 1
    own_home.mkdir(exist_ok=True)
    refused = bare("watch", cwd=own_home)
    assert refused.code == 2 and "home folder" in refused.err
