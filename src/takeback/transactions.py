"""Database connections in a step: committed when it succeeds, rolled back when it fails.

Speaks DB-API (sqlite3, psycopg and others), SQLAlchemy's connections and sessions, and, awaited, their async kin.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .errors import UsageError

if TYPE_CHECKING:
    from .doing import Undo
    from .steps import WorkStep


_REFUSED = ("22", "23", "25", "40", "42", "44")  # SQLSTATE: data, constraints, the transaction, the statement
_NOT_KNOWN = "40003"  # "statement completion unknown"
_COMMITTED = "committed"


class _NotCommitted(Exception):
    """It is known that a commit took no effect; its cause says why."""


class Transaction:
    """What is done on one connection during a step. Speaks DB-API, and SQLAlchemy's connections and sessions."""

    def __init__(self, connection: Any, inside: bool, undo: Undo | None, undo_args: Mapping[str, Any] | None) -> None:
        self.connection = connection
        self._undo = undo
        self._undo_args = undo_args
        self._savepoint = ""
        self._nested: Any = None  # SQLAlchemy's own savepoint
        self._ended = ""
        for verb in ("commit", "rollback"):
            if not callable(getattr(connection, verb, None)):
                raise UsageError(f"{type(connection).__name__} has no {verb}()", "pass a database connection")
        if inside:
            self._nest()
        else:
            self._start()

    def _start(self) -> None:
        connection = self.connection
        if _is_autocommit(connection):
            raise UsageError(
                "the connection commits by itself, so that nothing could be rolled back", "turn its autocommit off"
            )
        if _is_busy(connection):
            raise UsageError(
                "the connection is in a transaction already, which a failed step would lose",
                "commit or roll back first",
            )
        if _is_sqlite(connection) and not connection.in_transaction:
            connection.execute("BEGIN")  # sqlite3 itself begins none before CREATE TABLE and the like

    def _nest(self) -> None:
        if callable(getattr(self.connection, "begin_nested", None)):
            self._nested = self.connection.begin_nested()
            return
        self._savepoint = f"takeback_{id(self)}"
        if inspect.isawaitable(found := self._execute(f"SAVEPOINT {self._savepoint}")):
            getattr(found, "close", lambda: None)()
            raise UsageError("an async connection is in the hands of an enclosing step", "use it in one step at a time")

    def _execute(self, statement: str) -> Any:
        cursor = self.connection.cursor()
        found = cursor.execute(statement)
        if inspect.isawaitable(found):
            return found
        cursor.close()
        return None

    def commit(self, step: WorkStep) -> None:
        if self._is_inner:
            if inspect.isawaitable(found := self._release()):
                getattr(found, "close", lambda: None)()
                raise _is_async()
        elif inspect.iscoroutinefunction(self.connection.commit):
            raise _is_async()
        else:
            with _told_plainly():
                step.do(self._committing, not_done=(_NotCommitted,), **self._how(step))
        self._ended = _COMMITTED

    async def acommit(self, step: WorkStep) -> None:
        async def commit() -> None:
            if inspect.isawaitable(found := self._committing()):
                await found

        if self._is_inner:
            if inspect.isawaitable(found := self._release()):
                await found
        else:
            with _told_plainly():
                await step.ado(commit, not_done=(_NotCommitted,), **self._how(step))
        self._ended = _COMMITTED

    @property
    def _is_inner(self) -> bool:
        """A savepoint, which the enclosing step commits."""
        return self._nested is not None or bool(self._savepoint)

    def _release(self) -> Any:
        if self._nested is not None:
            return self._nested.commit()
        return self._execute(f"RELEASE SAVEPOINT {self._savepoint}")

    def _how(self, step: WorkStep) -> dict[str, Any]:
        """What is journaled of a commit: with an undo it can be taken back, without one it stands."""
        undo = {"undo": self._undo, "undo_args": self._undo_args or {}} if self._undo is not None else {}
        return {"summary": f"commit of {self.name} in step {step.name!r}", **undo}

    def _committing(self) -> Any:
        try:
            return self.connection.commit()
        except Exception as error:
            is_open = _is_sqlite(self.connection) and self.connection.in_transaction
            if is_open or _is_refused(error):
                raise _NotCommitted from error
            raise

    def roll_back(self) -> str:
        """Why what was done remains; empty if it is gone."""
        try:
            if inspect.isawaitable(found := self._roll_back()):
                getattr(found, "close", lambda: None)()
                return "the connection is async, and the step is not: roll it back yourself"
        except Exception as error:  # the driver's own
            return f"its rollback failed: {type(error).__name__}: {error}"
        return self._left()

    async def aroll_back(self) -> str:
        try:
            if inspect.isawaitable(found := self._roll_back()):
                await found
        except Exception as error:
            return f"its rollback failed: {type(error).__name__}: {error}"
        return self._left()

    def _roll_back(self) -> Any:
        if self._ended:
            return None
        if not self._savepoint and self._nested is None and _is_sqlite(self.connection):
            if not self.connection.in_transaction:
                self._ended = "committed by other code in the step"
                return None
        if self._nested is not None:
            return self._nested.rollback()
        if self._savepoint:
            self._execute(f"ROLLBACK TO SAVEPOINT {self._savepoint}")
            return self._execute(f"RELEASE SAVEPOINT {self._savepoint}")
        return self.connection.rollback()

    @property
    def name(self) -> str:
        return f"a transaction ({type(self.connection).__module__.partition('.')[0]})"

    def _left(self) -> str:
        if self._ended in ("", _COMMITTED):  # a commit is an effect like others
            return ""
        return f"it was {self._ended}, and no undo was given"


@contextmanager
def _told_plainly() -> Iterator[None]:
    """Whoever uses the connection hears what its driver said."""
    try:
        yield
    except _NotCommitted as error:
        assert error.__cause__ is not None
        raise error.__cause__ from None


def _is_async() -> UsageError:
    return UsageError("the connection is async, and the step is not", "use async with workspace.astep(…)")


def _is_refused(error: Exception) -> bool:
    """Whether the database itself said no to a commit: then nothing was committed. Where the connection was lost, or
    the database says that it does not know, nobody does."""
    said = getattr(error, "orig", error)  # SQLAlchemy wraps what the driver said
    state = getattr(said, "sqlstate", None) or getattr(said, "pgcode", None)
    if isinstance(state, str):
        return state[:2] in _REFUSED and state != _NOT_KNOWN
    return any(kind.__name__ == "IntegrityError" for kind in type(said).__mro__)


def _is_sqlite(connection: Any) -> bool:
    return type(connection).__module__.partition(".")[0] == "sqlite3" or isinstance(
        getattr(connection, "in_transaction", None), bool
    )


def _is_autocommit(connection: Any) -> bool:
    if getattr(connection, "autocommit", False) is True:
        return True
    options = getattr(connection, "get_execution_options", None)
    return bool(callable(options) and str(options().get("isolation_level", "")).upper() == "AUTOCOMMIT")


def _is_busy(connection: Any) -> bool:
    """Whether something was done on it that is not committed."""
    if _is_sqlite(connection):
        began = bool(connection.in_transaction)
        return began and getattr(connection, "autocommit", None) is not False  # which is always in one
    if callable(inside := getattr(connection, "in_transaction", None)):
        return bool(inside())
    status = getattr(getattr(connection, "info", None), "transaction_status", 0)
    return isinstance(status, int) and status != 0
