"""Database connections in a step: committed when it succeeds, rolled back when it fails.

Speaks DB-API (sqlite3, psycopg and others), SQLAlchemy's connections and sessions, and, awaited, their async kin.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from takeback.errors import NotDone, TakebackError, UsageError

from . import own_commits
from .own_commits import below_sqlalchemy, is_async, is_sqlalchemy

if TYPE_CHECKING:
    from .recorder import Undo
    from .steps import WorkStep


_REFUSED = ("22", "23", "25", "40", "42", "44")  # SQLSTATE: data, constraints, the transaction, the statement
_NOT_KNOWN = "40003"  # "statement completion unknown"
_IN_ERROR = 3  # PostgreSQL's transaction status: a statement failed, and COMMIT will be answered by ROLLBACK


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
        self._is_over = False  # committed, as the step says
        self._is_in_doubt = False  # nobody knows whether the step's own commit was done, and the ledger says so
        self._watch: own_commits.Watch | None = None  # for commits by other code
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
        self._watch = own_commits.watch(connection)

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
                raise _needs_async()
        elif is_async(self.connection):
            raise _needs_async()
        else:
            with _told_plainly():
                step.do(self._committing, not_done=(_NotCommitted,), **self._how(step))
        self._is_over = True
        self._end_watch()

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
        self._is_over = True
        self._end_watch()

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.end()
            self._watch = None

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
        if _is_aborted(self.connection):  # a commit would not say so
            raise _NotCommitted from NotDone(
                "a statement in the transaction failed, so that PostgreSQL commits nothing of it",
                "let that failure leave the step, or run the statement in an inner step or a savepoint of its own",
            )
        try:
            return self.connection.commit()
        except Exception as error:
            is_open = _is_sqlite(self.connection) and self.connection.in_transaction
            if is_open or _is_refused(error):
                raise _NotCommitted from error
            self._is_in_doubt = True
            raise

    def roll_back(self, step: WorkStep) -> str:
        """Why what was done remains; empty if it is gone, or is an effect of the step like others."""
        try:
            if inspect.isawaitable(found := self._roll_back()):
                getattr(found, "close", lambda: None)()
                return "the connection is async, and the step is not: roll it back yourself"
        except Exception as error:  # the driver's own
            return f"its rollback failed: {type(error).__name__}: {error}"
        if not self._is_committed_by_others():
            return ""
        try:
            step.do(self._committed, **self._how(step))
        except TakebackError as error:
            return _by_others(error)
        return ""

    async def aroll_back(self, step: WorkStep) -> str:
        try:
            if inspect.isawaitable(found := self._roll_back()):
                await found
        except Exception as error:
            return f"its rollback failed: {type(error).__name__}: {error}"
        if not self._is_committed_by_others():
            return ""
        try:
            await step.ado(self._committed, **self._how(step))
        except TakebackError as error:
            return _by_others(error)
        return ""

    def _is_committed_by_others(self) -> bool:
        try:
            return self._watch is not None and self._watch.was_committed() and not self._is_in_doubt
        except Exception:  # the connection is lost, and what was not committed with it
            return False
        finally:
            self._end_watch()

    def _committed(self) -> None:
        """A commit that the step's own code made: it is journaled as the step's, and taken back with it."""

    def _roll_back(self) -> Any:
        if self._is_over:
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


@contextmanager
def _told_plainly() -> Iterator[None]:
    """Whoever uses the connection hears what its driver said."""
    try:
        yield
    except _NotCommitted as error:
        assert error.__cause__ is not None
        raise error.__cause__ from None


def _by_others(error: TakebackError) -> str:
    return f"it was committed by other code in the step, and that could not be journaled: {error.message}"


def _needs_async() -> UsageError:
    return UsageError("the connection is async, and the step is not", "use async with workspace.astep(…)")


def _is_refused(error: Exception) -> bool:
    """Whether the database itself said no to a commit: then nothing was committed. Where the connection was lost, or
    the database says that it does not know, nobody does."""
    said = getattr(error, "orig", error)  # SQLAlchemy wraps what the driver said
    state = getattr(said, "sqlstate", None) or getattr(said, "pgcode", None)
    if isinstance(state, str):
        return state[:2] in _REFUSED and state != _NOT_KNOWN
    return any(kind.__name__ == "IntegrityError" for kind in type(said).__mro__)


def _is_aborted(connection: Any) -> bool:
    """Whether a statement failed in the transaction, in a database that then takes no more of it. Drivers do not raise
    when they commit such a one."""
    return _status(connection) == _IN_ERROR


def _status(connection: Any) -> int:
    """What psycopg says of the transaction, also from below SQLAlchemy; 0 where nobody says anything."""
    try:
        found = getattr(_driver_of(connection), "info", None)
        status = getattr(found, "transaction_status", 0)
    except Exception:  # the connection is gone: whoever uses it next is told so
        return 0
    return status if isinstance(status, int) else 0


def _driver_of(connection: Any) -> Any:
    """The driver's own connection: what it is given, or what SQLAlchemy has taken from its pool."""
    if not is_sqlalchemy(connection):
        return connection
    connection = below_sqlalchemy(connection)
    if not connection.in_transaction():
        return None
    if callable(connection.connection):  # a session
        connection = connection.connection()
    return connection.connection.driver_connection


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
    return _status(connection) != 0
