"""scripts/bench: measures, prints the table, says where takeback loses."""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import takeback

from . import calm, command, hooks, memory, plot, report, rounds, shadow_git, state
from .samples import SIZES, Size

_CHECKOUT = Path(__file__).resolve().parent.parent
_PER_ROUND, _BESIDES = 9, 10  # copies of a tree that both sides make, with git's objects


def main() -> int:
    asked = _arguments()
    about = {"date": time.strftime("%Y-%m-%d"), "machine": _machine(asked.folder), "versions": _versions()}
    print(f"takeback against a shadow git repository\n{about['machine']} · {about['versions']}", flush=True)
    rows: list[report.Line] = []
    raw: dict[str, dict[str, object]] = {}
    with _folder(asked.folder) as work:  # emptied only at the end: mass deletes slow ext4 for minutes
        if "core" in asked.parts:
            _must_fit(work, asked.sizes)
        for size in asked.sizes if {"core", "hooks"} & set(asked.parts) else ():
            found = []
            raw[size.name] = {}
            (work / size.name).mkdir()
            if "core" in asked.parts:
                times, most = _measure(size, work / size.name)
                found += report.lines(size.name, times, max(most.values(), default=0))
                raw[size.name] |= {"seconds": times, "memory": most}
            if "hooks" in asked.parts and not size.large:
                times = hooks.measure(size, work / size.name, _progress(size))
                found += report.hook_lines(size.name, times)
                raw[size.name] |= {"hooks": times}
            rows += found
            print(report.table(found), flush=True)
            _save(about, rows, raw)
        if "state" in asked.parts and state.is_there():
            times = state.measure(work / "state", 1 if asked.quick else 5, _progress(None))
            raw[report.STATE] = times
            rows += report.state_lines(times)
            print(report.table(report.state_lines(times)), flush=True)
        elif "state" in asked.parts:
            print("\nLangGraph is not installed here: its threads were not measured.")
    if "core" not in asked.parts:
        pass
    elif argv := command.found():
        times = command.startup(argv, 7 if asked.quick else 25)
        raw[command.STARTUP] = times
        rows.append(report.startup_line(times))
        print(report.table(rows[-1:]))
    else:
        print("\nThe command does not run here: its start-up and whole time were not measured.")
    print("\n" + report.losses(rows))
    if calm.gave_up():
        print("The machine was busy with something else for most of the run: doubt these numbers.")
    _save(about, rows, raw)
    if asked.write_docs:
        (_CHECKOUT / "docs" / "bench.svg").write_text(plot.draw(rows))
        (_CHECKOUT / "docs" / "bench.md").write_text(report.markdown(about, rows))
        print("\nwrote docs/bench.md and docs/bench.svg")
    return 0


def _must_fit(work: Path, sizes: list[Size]) -> None:
    """A disk may have room for bytes, and none for so many files: better known now than after half an hour."""
    needed = sum(size.files * (_PER_ROUND * size.bulk_rounds + _BESIDES) for size in sizes)
    room = os.statvfs(work) if hasattr(os, "statvfs") else None
    if room is not None and room.f_files and room.f_favail < needed:
        raise SystemExit(
            f"{work} has room for {room.f_favail:,} more files, and all of it together makes {needed:,}: "
            "choose another with --folder, or fewer --sizes"
        )


def _measure(size: Size, work: Path) -> tuple[rounds.Times, dict[str, int]]:
    say = _progress(size)
    times = rounds.measure(size, work, say)
    most = {}
    if Path("/proc/self/smaps_rollup").exists():
        say("watching the memory")
        most = memory.peak(work / "master", work / "memory")
    say("")
    return times, most


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--sizes", default="1k,10k,big,100k", help="some of 1k,10k,100k,big (default: all)")
    parser.add_argument("--parts", default="core,hooks,state", help="some of core,hooks,state (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds; 1k and 10k unless --sizes is given")
    parser.add_argument("--folder", type=Path, default=None, help="where to work: 15 GB (default: the temporary one)")
    parser.add_argument("--write-docs", action="store_true", help="write docs/bench.md and docs/bench.svg")
    asked = parser.parse_args()
    names = asked.sizes.split(",")
    asked.parts = asked.parts.split(",")
    if unknown := [part for part in asked.parts if part not in ("core", "hooks", "state")]:
        parser.error(f"no such part: {', '.join(unknown)}")
    if asked.quick and asked.sizes == parser.get_default("sizes"):
        names = ["1k", "10k"]
    if unknown := [name for name in names if name not in SIZES]:
        parser.error(f"no such size: {', '.join(unknown)}")
    asked.sizes = [_quicker(size) if asked.quick else size for name, size in SIZES.items() if name in names]
    return asked


def _quicker(size: Size) -> Size:
    return replace(size, bulk_rounds=1, small_rounds=min(size.small_rounds, 5))


@contextlib.contextmanager
def _folder(parent: Path | None) -> Iterator[Path]:
    work = Path(tempfile.mkdtemp(prefix="takeback-bench-", dir=parent))
    try:
        yield work
    finally:
        shutil.rmtree(work)


def _progress(size: Size | None) -> rounds.Say:
    """One line that is written over, on a terminal only."""
    title = size.title if size else "state of LangGraph's threads"

    def say(text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{f'{title}: {text}' if text else ''}", end="", file=sys.stderr, flush=True)

    return say


def _save(about: dict[str, str], rows: list[report.Line], raw: dict[str, dict[str, object]]) -> None:
    names = "-".join(name for name in raw if name in SIZES)
    report.write_json(_CHECKOUT / "bench" / "out" / f"{names or 'start-up'}.json", about, rows, raw)


def _machine(folder: Path | None) -> str:
    """The class of machine, never its name."""
    parts = [f"{os.cpu_count()} cores"]
    with contextlib.suppress(ValueError, OSError):
        parts.append(f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB")
    with contextlib.suppress(OSError):
        place = os.path.realpath(folder or tempfile.gettempdir())
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
        parts.append(max((m for m in mounts if place.startswith(m[0])), key=lambda m: len(m[0]))[1])
    return ", ".join([*parts, f"{platform.system()} {platform.machine()}"])


def _versions() -> str:
    whose = " of the system" if sys.base_prefix == "/usr" else ""
    python = f"Python {platform.python_version()}{whose}"
    return f"takeback {takeback.__version__}, {python}, git {shadow_git.version()}"


if __name__ == "__main__":
    sys.exit(main())
