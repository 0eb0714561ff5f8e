"""The tree reads as the flow: imports go one way, the core keeps quiet, and the capture of files runs nothing.

Read from the source, not trusted. Imports for types alone and those inside functions count like all others.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import takeback

SOURCE = Path(takeback.__file__).parent

# From the ground up: a room imports from itself and from those before it.
ROOMS = (
    "errors", "system", "model", "text", "privacy", "config", "journal", "store", "threads", "look", "plan", "domains",
    "apply", "run", "care", "agents", "gate", "show", "workspace_locks", "aio", "workspace", "harness", "integrations",
    "surfaces", "__init__", "__main__",
)  # fmt: skip
# What still points upward, by rooms. It only shrinks: a pair that is mended is taken out here.
UPWARD = {
    ("agents", "gate"), ("agents", "harness"), ("agents", "surfaces"), ("agents", "workspace_locks"),
    ("aio", "workspace"), ("apply", "workspace"), ("apply", "workspace_locks"), ("care", "workspace"),
    ("care", "workspace_locks"), ("config", "domains"), ("config", "journal"), ("config", "store"),
    ("domains", "harness"), ("domains", "workspace"), ("errors", "apply"), ("gate", "workspace"),
    ("gate", "workspace_locks"), ("journal", "look"), ("journal", "store"), ("look", "agents"), ("look", "apply"),
    ("look", "domains"), ("look", "surfaces"), ("look", "workspace_locks"), ("model", "config"), ("model", "privacy"),
    ("model", "store"), ("privacy", "show"), ("show", "workspace"), ("system", "privacy"), ("threads", "apply"),
    ("threads", "care"), ("threads", "look"), ("threads", "workspace"), ("threads", "workspace_locks"),
    ("workspace", "harness"), ("workspace_locks", "harness"),
}  # fmt: skip
# Modules that import each other, one of them inside a function. They only become fewer.
CYCLES = [
    {"care.moved_folder", "workspace"},
    {"surfaces.resident.alone", "surfaces.resident.client", "surfaces.resident.server", "surfaces.resident.starting"},
]
# A surface imports no other: a verb launches one, and the hooks are answered where the resident process lives.
LAUNCHES = {
    ("cli", "hook"), ("cli", "mcp"), ("cli", "report"), ("cli", "resident"), ("cli", "tui"), ("cli", "web"),
    ("resident", "hook"),
}  # fmt: skip

TYPES, INSIDE, TOP = "for types", "inside a function", "at the top"


class Import(NamedTuple):
    module: str  # that imports, below takeback; "" is takeback itself
    name: str  # whole: takeback.model.effects, json
    how: str
    line: int

    @property
    def is_ours(self) -> bool:
        return self.name == "takeback" or self.name.startswith("takeback.")

    @property
    def target(self) -> str:
        return self.name.removeprefix("takeback").removeprefix(".")


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


def room_of(module: str) -> str:
    return module.split(".")[0] or "__init__"


def inside(tree: ast.AST, kinds: tuple[type[ast.AST], ...]) -> set[int]:
    return {id(n) for node in ast.walk(tree) if isinstance(node, kinds) for n in ast.walk(node) if n is not node}


def imports(module: str, path: Path) -> Iterator[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    branches = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
    for_types = {id(n) for branch in branches for statement in branch.body for n in ast.walk(statement)}
    in_functions = inside(tree, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    package = ["takeback", *path.relative_to(SOURCE).parent.parts]
    for node in ast.walk(tree):
        how = TYPES if id(node) in for_types else INSIDE if id(node) in in_functions else TOP
        if isinstance(node, ast.Import):
            yield from (Import(module, alias.name, how, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{name}.{alias.name}"
                yield Import(module, whole if whole.removeprefix("takeback.") in MODULES else name, how, node.lineno)


IMPORTS = [found for module, path in MODULES.items() for found in imports(module, path)]


def test_every_room_has_its_place():
    assert {room_of(module) for module in MODULES} <= set(ROOMS)


def upward() -> dict[tuple[str, str], list[Import]]:
    found = defaultdict(list)
    for each in IMPORTS:
        here, there = room_of(each.module), room_of(each.target)
        if each.is_ours and each.target and ROOMS.index(there) > ROOMS.index(here):
            found[here, there].append(each)
    return found


def test_imports_go_down_only():
    assert {pair: found for pair, found in upward().items() if pair not in UPWARD} == {}


def test_what_no_longer_points_upward_is_not_listed():
    assert set(upward()) >= UPWARD


def knots(edges: dict[str, set[str]]) -> list[set[str]]:
    """The groups of modules that reach each other."""
    reached = {module: reach(edges, module) for module in edges}
    found: list[set[str]] = []
    for module, there in reached.items():
        knot = {other for other in there if module in reached.get(other, ())}
        if len(knot) > 1 and knot not in found:
            found.append(knot)
    return found


def reach(edges: dict[str, set[str]], module: str) -> set[str]:
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        for each in edges.get(waiting.pop(), ()):
            if each not in seen:
                seen.add(each)
                waiting.append(each)
    return seen


def test_no_module_imports_one_that_imports_it():
    edges = defaultdict(set)
    for each in IMPORTS:
        if each.is_ours and each.how != TYPES and each.target in MODULES and each.target != each.module:
            edges[each.module].add(each.target)
    edges.pop("", None)  # the door loads what is asked for
    assert sorted(map(sorted, knots(edges))) == sorted(map(sorted, CYCLES))


def test_domains_do_not_import_each_other():
    for each in IMPORTS:
        here, there = each.module.split("."), each.target.split(".")
        if here[0] == there[0] == "domains" and len(here) > 1 and len(there) > 1 and here[1] != "recording":
            assert here[1] == there[1] or there[1] in ("outside", "recording"), each


def test_no_surface_imports_another_except_one_that_it_launches():
    found = set()
    for each in IMPORTS:
        here, there = each.module.split("."), each.target.split(".")
        if here[0] == there[0] == "surfaces" and len(here) > 1 and len(there) > 1 and here[1] != there[1]:
            found.add((here[1], there[1]))
    assert {pair for pair in found if pair[1] != "wording"} == LAUNCHES


# What may be imported inside a function: libraries of others, what not every system has, a verb's own surface.
_SYSTEMS = {"ctypes", "fcntl", "grp", "msvcrt", "posix", "pwd", "readline", "resource", "termios", "winreg", "_winapi"}
_SURFACES = ("surfaces.tui", "surfaces.web", "surfaces.mcp", "surfaces.report", "surfaces.resident", "integrations")
# Modules whose imports inside functions have another reason.
_REASONS = {
    "": "the door loads what is asked for",
    "surfaces.resident.client": "starts bare, since an agent waits for it",
    "surfaces.resident.start": "starts bare, since an agent waits for it",
    "surfaces.resident.command": "is read by the client",
    "surfaces.resident.alone": "is what the client loads where nobody answers it",
    "surfaces.resident.starting": "is read by the client",
    "care.moved_folder": "one of the two cycles that are left",
    "workspace": "one of the two cycles that are left",
}


def is_reasonable(found: Import) -> bool:
    root = found.name.split(".")[0]
    if not found.is_ours:
        return root not in sys.stdlib_module_names or root in _SYSTEMS
    return found.target.startswith(_SURFACES) or found.module in _REASONS


# Those that are left, with the reason that a name would be taken twice at the top. They only become fewer.
LEFT = 34


def test_an_import_inside_a_function_has_a_reason():
    wrong = [each for each in IMPORTS if each.how == INSIDE and each.module not in _REASONS and not is_reasonable(each)]
    assert len(wrong) == LEFT, "\n".join(map(str, wrong))


# -- what the core may not do ----------------------------------------------------

_AROUND = ("surfaces", "integrations", "__init__", "__main__")
CORE = [path for module, path in MODULES.items() if room_of(module) not in _AROUND]


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
OUTSIDE = [p for p in CORE if p.is_relative_to(SOURCE / "domains") and p != SOURCE / "domains" / "files.py"]
OUTSIDE += [SOURCE / "system" / "http.py"]
OUTSIDE += [SOURCE / "run" / name for name in ("command.py", "isolate.py")]  # runs what its owner asked it to run
OUTSIDE += [SOURCE / "agents" / "sessions" / "forgetting.py"]  # asks an agent's own program, when a person says so
OUTSIDE += [SOURCE / "system" / "installed.py"]  # reads an address of its own folder, and asks nobody


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
    known = {SOURCE / name for name in ("journal/journal.py", "system/locks.py", "threads/index.py")}
    wrong = [each for each in IMPORTS if each.name in ("sqlite3", "_sqlite3") and room_of(each.module) not in _AROUND]
    assert {MODULES[each.module] for each in wrong} <= known


def test_the_reader_of_imports_sees_a_wrong_one(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("test_imports.SOURCE", tmp_path)
    (tmp_path / "store").mkdir()
    path = tmp_path / "store" / "records.py"
    path.write_text(
        "from takeback import workspace\n\n\ndef late():\n    from . import blobs\n    import takeback.show.views\n"
    )
    found = [(each.target, each.how) for each in imports("store.records", path)]
    assert found == [("workspace", TOP), ("store.blobs", INSIDE), ("show.views", INSIDE)]
