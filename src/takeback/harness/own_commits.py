"""Commits that other code makes in a transaction which a step wants to roll back.

    watch(connection)  ─► a mark that a rollback takes away, or an ear for commits ─► was_committed()

SQLite and PostgreSQL are marked inside the transaction: what commits it, commits the mark. SQLAlchemy tells of commits
by itself; of every other connection the method `commit` is followed.
"""

from __future__ import annotations

import functools
import inspect
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple


class Watch(NamedTuple):
    """On one connection, until it is ended."""

    was_committed: Callable[[], bool]  # asked after the rollback: whether something was committed before it
    end: Callable[[], None] = lambda: None


def watch(connection: Any) -> Watch:
    """From now on, in a transaction that has just begun, or begins with the next statement."""
    if _is_of(connection, "sqlite3"):
        return _watch_sqlite(connection)
    if is_sqlalchemy(connection):
        return _watch_sqlalchemy(connection)
    if hasattr(getattr(connection, "info", None), "transaction_status") and not is_async(connection):
        return _watch_postgresql(connection)
    return _watch_method(connection)


def is_sqlalchemy(connection: Any) -> bool:
    return _is_of(connection, "sqlalchemy")


def _is_of(connection: Any, library: str) -> bool:
    return any(kind.__module__.partition(".")[0] == library for kind in type(connection).__mro__)


def below_sqlalchemy(connection: Any) -> Any:
    """The session or connection that is not awaited, and belongs to no registry."""
    if callable(registry := getattr(connection, "registry", None)):
        connection = registry()
    return getattr(connection, "sync_session", None) or getattr(connection, "sync_connection", connection)


def is_async(connection: Any) -> bool:
    return inspect.iscoroutinefunction(connection.commit)


def _watch_sqlite(connection: Any) -> Watch:
    def mark() -> int:
        cursor = connection.cursor()
        cursor.row_factory = None
        return int(cursor.execute("PRAGMA temp.user_version").fetchone()[0])

    before = mark()
    connection.execute(f"PRAGMA temp.user_version = {(before + 1) % 2**31}")  # in the database of this connection alone
    return Watch(lambda: mark() != before)


def _watch_postgresql(connection: Any) -> Watch:
    mark = secrets.token_hex(8)

    def was_committed() -> bool:
        cursor = connection.cursor()
        try:
            cursor.execute(f"SELECT 1 WHERE current_setting('takeback.mark', true) = '{mark}'")
            return bool(cursor.rowcount == 1)
        finally:
            cursor.close()
            connection.rollback()

    try:
        cursor = connection.cursor()
        cursor.execute(f"SET takeback.mark = '{mark}'")
        cursor.close()
    except Exception:  # another database that speaks its protocol
        connection.rollback()
        return _watch_method(connection)
    return Watch(was_committed)


def _watch_sqlalchemy(connection: Any) -> Watch:
    from sqlalchemy import event

    found: list[bool] = []

    def committed(told: Any) -> None:
        found.append(not is_session or not told.in_nested_transaction())

    target = below_sqlalchemy(connection)
    is_session = callable(getattr(target, "connection", None))
    name = "after_commit" if is_session else "commit"
    event.listen(target, name, committed)
    return Watch(lambda: any(found), lambda: event.remove(target, name, committed))


def _watch_method(connection: Any) -> Watch:
    found: list[bool] = []
    plain = connection.commit

    @functools.wraps(plain)
    def commit(*args: Any, **kwargs: Any) -> Any:
        result = plain(*args, **kwargs)
        found.append(True)
        return result

    @functools.wraps(plain)
    async def acommit(*args: Any, **kwargs: Any) -> Any:
        result = await plain(*args, **kwargs)
        found.append(True)
        return result

    try:
        connection.commit = acommit if is_async(connection) else commit
    except AttributeError:  # of a type that is written in C
        return Watch(lambda: False)
    return Watch(lambda: any(found), lambda: connection.__dict__.pop("commit", None))
