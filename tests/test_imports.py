"""Imports go one way, the core keeps quiet, and the capture of files runs nothing. Read from the source, not trusted."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import takeback

SOURCE = Path(takeback.__file__).parent

# From the ground up: a module imports from its own layer and those below it.
LAYERS = [
    {
        "effects",
        "errors",
        "ids",
        "marks",
        "installed",
        "typed",
        "units",
        "acts",
        "redact",
        "policy",
        "patterns",
        "digests",
        "head_file",
        "quickjson",
        "regular",
        "ancestry",
        "handed",
        "variables",
    },
    {
        "journal",
        "blobs",
        "chunked",
        "packs",
        "large",
        "records",
        "trees",
        "changes",
        "index",
        "index_file",
        "reading",
        "safefs",
        "locks",
        "store",
        "textdiff",
        "workers",
        "exchange",
        "state_stores",
        "states",
        "values",
        "plain",
        "thread_index",
        "held_values",
        "agent_files",
        "hook_record",
        "sessions",
        "callers",
        "git_index",
        "repository",
    },
    {"planner", "executor", "history", "brackets", "merging", "git_steps"},
    {"domains", "mail"},
    {
        "workspace",
        "guarded",
        "hooked",
        "twins",
        "budget",
        "inherited",
        "observer",
        "requests",
        "takebacks",
        "views",
        "turns",
        "board",
        "timeline",
        "account",
        "span",
        "report",
        "blame",
        "masking",
        "steps",
        "doing",
        "transactions",
        "own_commits",
        "outbox",
        "recording",
        "moments",
        "calls",
        "ends",
        "prompts",
        "stops",
        "unseen",
        "announced",
        "toolcalls",
        "conversation",
        "consent",
        "thread_turns",
        "results",
        "declared",
        "agents",
        "gate",
        "prune",
        "threads",
        "thread_twins",
        "thread_reads",
        "thread_views",
        "thread_prune",
        "lineage",
        "handoffs",
        "verify",
        "salvage",
        "names",
        "reach",
        "capture",
        "settings",
        "setting_files",
        "setting_place",
        "rules",
        "filters",
    },
    {"surfaces", "integrations", "__init__", "__main__"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
MODULES = sorted(p for p in SOURCE.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> list[tuple[str, str]]:
    """(top-level part of takeback, whole name) for every import inside the package, those for types alone left out."""
    tree = ast.parse(path.read_text())
    package = ["takeback", *path.relative_to(SOURCE).parent.parts]
    found = []
    only_types = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.unparse(branch.test)
        for node in ast.walk(branch)
    }
    for node in ast.walk(tree):
        if id(node) in only_types:
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found += [f"{module}.{alias.name}" for alias in node.names]
    return [(name.split(".")[1], name) for name in found if name.startswith("takeback.")]


def test_every_part_has_a_layer():
    assert {part_of(p) for p in MODULES} <= set(RANK)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_down_only(path: Path):
    mine = RANK[part_of(path)]
    wrong = [name for part, name in imports(path) if part in RANK and RANK[part] > mine]
    assert not wrong, f"{path.name} imports from a layer above it"


def test_domains_do_not_import_each_other():
    for path in (SOURCE / "domains").glob("*.py"):
        assert not [name for part, name in imports(path) if part == "domains"], path


CORE = [p for p in MODULES if RANK[part_of(p)] < 5]


@pytest.mark.parametrize("path", CORE, ids=lambda p: str(p.relative_to(SOURCE)))
def test_the_core_never_prints_prompts_or_reads_the_environment(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("print", "input", "breakpoint"), f"line {node.lineno}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert (node.value.id, node.attr) not in {
                ("os", "environ"),
                ("os", "getenv"),
                ("os", "putenv"),
                ("sys", "stdout"),
                ("sys", "stderr"),
                ("sys", "stdin"),
                ("sys", "argv"),
            }, f"line {node.lineno}"


# What acts outside the files, when a person has said yes: loaded by nothing that captures or restores them.
OUTSIDE = [p for p in CORE if part_of(p) in ("mail", "exchange") or (part_of(p) == "domains" and p.name != "files.py")]
OUTSIDE += [SOURCE / "capture" / name for name in ("run.py", "isolate.py")]  # runs what its owner asked it to run
OUTSIDE += [SOURCE / "agents" / "forgetting.py"]  # asks an agent's own program, when a person says so
OUTSIDE += [SOURCE / "installed.py"]  # reads an address of its own folder, and asks nobody


@pytest.mark.parametrize("path", sorted({*CORE} - {*OUTSIDE}), ids=lambda p: str(p.relative_to(SOURCE)))
def test_the_core_runs_no_process_and_opens_no_connection(path: Path):
    """No shell, no git and no network on the capture path of files; no pickle of stored data anywhere."""
    forbidden = {
        "subprocess",
        "socket",
        "http",
        "urllib",
        "ssl",
        "pickle",
        "shelve",
        "asyncio.subprocess",
        "multiprocessing",
    }
    tree = ast.parse(path.read_text())
    names = {alias.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    names |= {(n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and not n.level}
    assert not names & forbidden
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            assert not node.attr.startswith(("system", "popen", "exec", "spawn", "posix_spawn")), f"line {node.lineno}"


def test_only_the_journal_and_the_index_of_threads_know_sql():
    for path in CORE:
        if path.name not in ("journal.py", "locks.py", "thread_index.py"):
            names = {
                alias.name
                for n in ast.walk(ast.parse(path.read_text()))
                if isinstance(n, ast.Import)
                for alias in n.names
            }
            assert not {"sqlite3", "_sqlite3"} & set(names), path


def test_the_reader_of_imports_sees_a_wrong_one(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("test_imports.SOURCE", tmp_path)
    (tmp_path / "trees.py").write_text(
        "from . import workspace\nfrom .surfaces.cli import main\nimport takeback.show.views\n"
    )
    assert imports(tmp_path / "trees.py") == [
        ("workspace", "takeback.workspace"),
        ("surfaces", "takeback.surfaces.cli.main"),
        ("views", "takeback.show.views"),
    ]
