"""Functions as inverses: which names are called and which never are, what an exception means, and that another process
can run what this one recorded."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import takeback
from takeback.config.policy import Policy
from takeback.config.settings import Settings
from takeback.domains import python
from takeback.domains.python import Python, register
from takeback.model.effects import DONE, FAILED, UNKNOWN
from takeback.model.outside import Answer, Credential, Inverse, NewAct, World
from takeback.store.blobs import MemoryBlobs
from takeback.workspace import Workspace

CALLS: list[Any] = []
ME = __name__


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(python, "_registered", {})
    CALLS.clear()
    yield


def world(
    root: Path = Path("/nowhere"),
    functions: tuple[str, ...] = (),
    environ: Mapping[str, str] = {},
    allowed: Any = (),
) -> World:
    settings = Settings(Path("/nowhere"), functions=functions)
    return World(root, settings, environ, MemoryBlobs(), lambda: 1000.0, frozenset(allowed))


def inverse(function: str, more: Mapping[str, Any] = {}, **kwargs: Any) -> Inverse:
    return Inverse("call", {"function": function, "kwargs": kwargs, **more})


def run(given: Inverse, **of_world: Any) -> Answer:
    domain = Python(world(**of_world))
    return domain.run(domain.check(given), "key-1")


def remember(**kwargs: Any) -> dict[str, Any]:
    CALLS.append(kwargs)
    return {"undone": sorted(kwargs)}


def did_nothing() -> None:
    raise takeback.NotDone("the shop is closed")


def broke(how: str) -> None:
    CALLS.append(how)
    raise SystemExit(how) if how == "exit" else RuntimeError(f"half-way: {how}")


def one(order: str) -> None:
    CALLS.append(order)


async def later(order: str) -> str:
    CALLS.append(order)
    return "awaited"


def says_yes(**_: Any) -> bool:
    return True


def says_no(**_: Any) -> bool:
    return False


def says_maybe(**_: Any) -> str:
    return "maybe"


# -- what is refused when recorded ------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"function": "os"},
        {"function": "os:system.x"},
        {"function": "a b:c"},
        {"function": "shop:<lambda>"},
        {"function": "shop:f", "kwargs": [1]},
        {"function": "shop:f", "kwargs": {"x": object()}},
        {"function": "shop:f", "kwargs": {"x": float("nan")}},
        {"function": "shop:f", "args": [1]},
        {"function": "shop:f", "probe": "nonsense"},
        {"function": "shop:f", "idempotent": "yes"},
        {"function": "shop:f", "idempotent": True, "idempotent_for": -1},
        {"function": "shop:f", "kwargs": {"x": "sk_live_0123456789abcdef"}},
    ],
)
def test_what_makes_no_sense_is_refused_when_recorded(args: dict[str, Any]):
    with pytest.raises(takeback.UsageError):
        Python(world()).check(Inverse("call", args))


def test_what_others_wrote_into_the_journal_calls_nothing():
    for args in ({}, {"function": 3}, {"function": "os:system", "kwargs": 3}, {"function": "x:y", "probe": {}}):
        hostile = Inverse("call", args)
        assert Python(world()).credentials(hostile) == ()
        for ask in (Python(world()).describe, lambda given: Python(world()).run(given, "k"), Python(world()).probe):
            with pytest.raises(takeback.TakebackError):
                ask(hostile)


def test_a_function_that_cannot_be_found_by_name_is_no_undo():
    def inside() -> None:
        pass

    for function in (lambda: None, inside, [].append):
        with pytest.raises(takeback.UsageError):
            register(function)
    with pytest.raises(takeback.UsageError):
        register("no name")


def test_it_is_described_without_secrets():
    shown = Python(world()).describe(inverse("shop.orders:cancel", order="o_1", n=2))
    assert shown == 'shop.orders:cancel(order="o_1", n=2)'
    asked = Python(world()).describe(Inverse("call", {"function": "shop.orders:cancel", "probe": "shop.orders:gone"}))
    assert asked == "shop.orders:cancel() · probe: shop.orders:gone, with the same"
    odd = Python(world()).describe(inverse("shop.orders:cancel", order="a\nb\x1b[2J\u202e ü"))
    assert odd.isprintable() and "ü" in odd


# -- which names are called -------------------------------------------------------


def test_a_registered_function_is_called_with_its_arguments():
    register(remember)
    answer = run(inverse(f"{ME}:remember", order="o_1", lines=[1, 2]))
    assert answer == Answer(DONE, "", {"returned": '{"undone": ["lines", "order"]}'})
    assert CALLS == [{"order": "o_1", "lines": [1, 2]}]


@pytest.mark.parametrize(
    "name", ["os:system", "subprocess:run", f"{ME}:remember", "builtins:exec", "shop.orders:cancel"]
)
def test_a_name_that_nobody_registered_or_listed_is_never_called(name: str):
    with pytest.raises(takeback.TakebackError, match="not registered"):
        run(inverse(name, command="touch /tmp/never"))
    assert not CALLS


def test_an_async_function_runs_to_its_end():
    register(later)
    assert run(inverse(f"{ME}:later", order="o_1")).evidence == {"returned": '"awaited"'}
    assert CALLS == ["o_1"]


def test_arguments_that_do_not_fit_call_nothing():
    register(one)
    with pytest.raises(takeback.TakebackError, match="does not take"):
        run(inverse(f"{ME}:one", charge="ch_1"))
    assert not CALLS


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the import path, outside the project, with a package in it."""
    folder = tmp_path / "installed"
    _package(folder, "from the installed one")
    before = dict(sys.modules)
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in set(sys.modules) - set(before):
        del sys.modules[name]


def _package(folder: Path, said: str) -> None:
    (folder / "tb_shop").mkdir(parents=True)
    (folder / "tb_shop/__init__.py").write_text("")
    (folder / "tb_shop/orders.py").write_text(f"def cancel(**kwargs):\n    return {said!r}\n")


def test_a_listed_function_is_imported(project: Path, installed: Path):
    listed = ("tb_shop.orders:cancel",)
    assert "from the installed one" in str(run(inverse("tb_shop.orders:cancel"), root=project, functions=listed))


def test_a_listed_function_is_never_imported_from_the_project(project: Path, installed: Path, monkeypatch):
    """An agent can write the project: what lies there must not stand in for what the user listed."""
    _package(project, "from the project")
    monkeypatch.syspath_prepend(str(project))
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend("")
    listed = ("tb_shop.orders:cancel",)
    assert "from the installed one" in str(run(inverse("tb_shop.orders:cancel"), root=project, functions=listed))


def test_a_listed_function_that_only_the_project_has_is_refused(project: Path, tmp_path: Path, monkeypatch):
    _package(project, "from the project")
    (tmp_path / "links").mkdir()
    (tmp_path / "links/tb_shop").symlink_to(project / "tb_shop")
    monkeypatch.syspath_prepend(str(tmp_path / "links"))
    monkeypatch.syspath_prepend(str(project))
    with pytest.raises(takeback.TakebackError, match="lies in the project"):
        run(inverse("tb_shop.orders:cancel"), root=project, functions=("tb_shop.orders:cancel",))
    assert "tb_shop" not in sys.modules


def test_a_listed_name_that_is_not_there_says_so(project: Path, installed: Path):
    for name in ("tb_absent:x", "tb_shop.orders:absent", "tb_shop.absent:x", "__main__:x"):
        with pytest.raises(takeback.TakebackError):
            run(inverse(name), root=project, functions=(name,))


@pytest.mark.parametrize("started", ["as a file", "as a module"])
def test_a_function_that_the_program_lacks_is_refused_when_it_is_declared(tmp_path: Path, started: str):
    program = tmp_path / "tb_program.py"
    program.write_text(
        "import sys, takeback\n"
        "def cancel(result): pass\n"
        "try:\n"
        "    takeback.tool(undo=sys.argv[1])(cancel)\n"
        "except takeback.UsageError as error:\n"
        "    print(error.message, '|', error.hint)\n"
    )

    def declared(undo: str) -> str:
        how = [str(program)] if started == "as a file" else ["-m", "tb_program"]
        ran = subprocess.run([sys.executable, *how, undo], cwd=tmp_path, capture_output=True, text=True, check=True)
        return ran.stdout.strip()

    assert declared("__main__:cancel") == ""
    assert declared("__main__:no_such") == (
        "__main__:no_such names no function of __main__ | mend the name, or write the function above what declares it"
    )
    assert "names no function" in declared("__main__:sys")


# -- what an exception means ------------------------------------------------------


def test_not_done_has_failed_and_may_run_again():
    register(did_nothing)
    assert run(inverse(f"{ME}:did_nothing")) == Answer(FAILED, "the shop is closed")


@pytest.mark.parametrize("how", ["error", "exit"])
def test_another_exception_is_unknown_unless_it_was_vouched_for(how: str):
    register(broke)
    assert run(inverse(f"{ME}:broke", how=how)).result == UNKNOWN
    assert run(inverse(f"{ME}:broke", {"idempotent": True}, how=how)).result == FAILED


def test_a_probe_says_yes_no_or_nothing():
    def probed(probe: str) -> bool | None:
        if probe != "absent":  # it was there when it was recorded
            register(f"{ME}:{probe}")
        return Python(world()).probe(inverse(f"{ME}:one", {"probe": f"{ME}:{probe}"}, order="o_1"))

    assert [probed(p) for p in ("says_yes", "says_no", "says_maybe", "did_nothing", "absent")] == [
        True, False, None, None, None,
    ]  # fmt: skip
    assert Python(world()).probe(inverse(f"{ME}:one")) is None


def test_who_vouched_may_repeat_within_a_time():
    domain = Python(world())
    vouched = domain.check(inverse("shop:f", {"idempotent": True, "idempotent_for": 60}))
    assert domain.may_repeat(vouched, 990.0) and not domain.may_repeat(vouched, 900.0)
    assert not domain.may_repeat(inverse("shop:f"), 990.0)


# -- credentials ------------------------------------------------------------------


def test_a_credential_is_filled_in_when_it_is_called_and_goes_nowhere_else():
    register(remember)
    given = inverse(f"{ME}:remember", token="${env:TOKEN}")
    wanted = Credential("TOKEN", f"python://{ME}:remember")
    assert Python(world()).credentials(given) == (wanted,)
    with pytest.raises(takeback.TakebackError, match="nobody let TOKEN"):
        run(given, environ={"TOKEN": "value-0123456789"})
    with pytest.raises(takeback.TakebackError, match="is not set"):
        run(given, allowed=[wanted])
    run(given, environ={"TOKEN": "value-0123456789"}, allowed=[wanted])
    assert CALLS == [{"token": "value-0123456789"}]


# -- in a workspace ---------------------------------------------------------------


def test_it_runs_only_under_approval(ws: Workspace):
    register(remember)
    ws.record(NewAct("python", "ordered", "", inverse(f"{ME}:remember", order="o_1")))
    with pytest.raises(takeback.ApprovalNeeded):
        ws.rollback()
    assert not CALLS
    plan = ws.plan("rollback")
    ws.approve(plan)
    assert ws.apply(plan).whole and CALLS == [{"order": "o_1"}]


def test_another_process_runs_it_tomorrow(ws: Workspace, project: Path, tmp_path: Path):
    """Recorded here by name; run there, where the harness has registered the same name."""
    harness = tmp_path / "tb_harness.py"
    harness.write_text(
        "import pathlib, sys, takeback\n"
        "from takeback.config.policy import Policy\n"
        "def cancel(order):\n"
        "    pathlib.Path(sys.argv[2]).write_text(order)\n"
        "@takeback.tool(undo=cancel, undo_args={'order': '{result}'})\n"
        "def place():\n"
        "    return 'o_1'\n"
        "if __name__ == '__main__':\n"
        "    import tb_harness\n"
        "    ws = takeback.open(sys.argv[1])\n"
        "    ws.settings = ws.observer.settings = ws.settings._replace(policy=Policy({'python.compensating': 'allow'}))\n"
        "    print([r.result for r in ws.rollback().results])\n"
    )
    ws.record(NewAct("python", "ordered", "", inverse("tb_harness:cancel", order="o_7")))
    trace = tmp_path / "trace"
    allowed = Policy({"python.compensating": "allow"})
    ws.settings = ws.observer.settings = ws.settings._replace(policy=allowed)
    assert [r.result for r in ws.rollback().results] == [FAILED], "nobody registered it here"
    ran = subprocess.run(
        [sys.executable, str(harness), str(project), str(trace)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "['done']" and trace.read_text() == "o_7"


def test_nothing_is_pickled(ws: Workspace):
    register(remember)
    ws.record(NewAct("python", "ordered", "", inverse(f"{ME}:remember", order={"deep": [1, None, True]})))
    (row,) = [r for r in ws.store.journal.rows() if r.kind == "act"]
    assert json.loads(json.dumps(row.body)) == row.body
