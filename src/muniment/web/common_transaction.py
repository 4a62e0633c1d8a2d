"""How do several requests, which one task answers one after the other, share one write transaction?

While a common transaction is open, ``Transactions`` runs every decision and every question of that task in it. So a
later request sees what an earlier request wrote. All of it is committed at the end, or none of it.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from sqlalchemy.engine import Connection

from muniment.db import Database, Unwritable, WriteBatch, driver_of, translated_errors
from muniment.troubles import is_undone

T = TypeVar("T")

_STEPS_BETWEEN_LOOKS = 20_000
_STATEMENT_SECONDS = 60

_current: ContextVar["CommonTransaction | None"] = ContextVar("muniment.common_transaction", default=None)


def current(database: Database | None = None) -> "CommonTransaction | None":
    """Return this task's common transaction, or None if the task has none.

    With ``database``, return None also if the transaction is in another database.
    """
    common = _current.get()
    return common if common is not None and (database is None or common.database is database) else None


@contextmanager
def shared(common: "CommonTransaction") -> Iterator[None]:
    """Make ``common`` the task's common transaction within the block."""
    token = _current.set(common)
    try:
        yield
    finally:
        _current.reset(token)


class CommonTransaction:
    """A write transaction that several requests of one task share. If a decision raises, only its writes are undone.

    ``after_commit`` and ``after_rollback`` take work that must wait for the end of the transaction, such as the removal
    of content. The work is done in a thread, in the order in which it was given.
    """

    def __init__(self, database: Database, threads: Executor) -> None:
        self.database = database
        self._threads = threads
        self._batch: WriteBatch | None = None
        self._connection: Connection | None = None
        self._opening = ExitStack()
        self._is_lost = False
        self._is_committed = False
        self._work: dict[bool, list[Callable[[], object]]] = {True: [], False: []}

    async def begin(self) -> None:
        """Open the transaction. Raises Busy, Unwritable."""
        await self._in_thread(self._begin)

    async def decide(self, decision: Callable[[Connection], T], *, within: float | None = None) -> T:
        """Take a decision or ask a question in the transaction, in a thread. Raises what ``decision`` raises.

        Raises TookTooLong if ``decision`` takes longer than ``within`` seconds; on PostgreSQL, if one of its statements
        does. Raises Unwritable after the database has given up the whole transaction.
        """
        return await self._in_thread(lambda: self._decide(decision, within))

    async def commit(self) -> None:
        """Store everything, then do the work of ``after_commit``.

        Raises Busy or Unwritable if the commit fails. Then the work of ``after_rollback`` is done if it is certain that
        nothing was stored. If that is not certain, no work is done.
        """
        try:
            await self._in_thread(self._commit)
        except BaseException as error:
            if self._is_committed or is_undone(error):
                await self._settle(committed=self._is_committed)
            raise
        await self._settle(committed=True)

    async def roll_back(self) -> None:
        """Undo everything, then do the work of ``after_rollback``. After ``commit`` this does nothing."""
        if self._connection is None:
            return
        try:
            await self._in_thread(self._roll_back)
        finally:
            await self._settle(committed=False)

    def after_commit(self, work: Callable[[], object]) -> None:
        """Do this work after the commit; never if the transaction is rolled back."""
        self._work[True].append(work)

    def after_rollback(self, work: Callable[[], object]) -> None:
        """Do this work after a rollback; never if the transaction is committed."""
        self._work[False].append(work)

    async def _settle(self, *, committed: bool) -> None:
        work, self._work = self._work[committed], {True: [], False: []}
        if work:
            await self._in_thread(lambda: [each() for each in work])

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run work in a thread. If the task is cancelled, this still waits until the thread has finished the work."""
        under_way = asyncio.get_running_loop().run_in_executor(self._threads, work)
        try:
            return await asyncio.shield(under_way)
        except asyncio.CancelledError:
            await asyncio.wait([under_way])
            raise

    def _begin(self) -> None:
        if self.database.dialect == "sqlite":
            self._batch = self.database.begin_batch()
            self._connection = self._batch.connection
        else:
            self._connection = self._opening.enter_context(self.database.begin())

    def _decide(self, decision: Callable[[Connection], T], within: float | None) -> T:
        if self._is_lost or self._connection is None:
            raise Unwritable("The database gave the transaction up.")
        if self._batch is None:
            with translated_errors(), self._connection.begin_nested():
                return _ask_postgresql(self._connection, decision, within)
        try:
            outcome = self._batch.decide(lambda cx: _ask_sqlite(cx, decision, within))
        except Exception:
            self._is_lost = True  # after this, each statement would be committed alone
            raise
        if outcome.raised is not None:
            raise outcome.raised
        value: T = outcome.value
        return value

    def _commit(self) -> None:
        if self._is_lost:
            self._roll_back()
            raise Unwritable("The database gave the transaction up.")
        if self._batch is not None:
            batch, self._batch, self._connection = self._batch, None, None
            batch.commit()
        else:
            self._connection = None
            self._opening.close()
        self._is_committed = True

    def _roll_back(self) -> None:
        is_open, self._connection = self._connection is not None, None
        if self._batch is not None:
            batch, self._batch = self._batch, None
            batch.roll_back(broken=self._is_lost)
        elif is_open:
            with suppress(_Undone):
                self._opening.__exit__(_Undone, _Undone(), None)


class _Undone(Exception):
    """Ends the block of a transaction that is not to be committed."""


def _ask_sqlite(cx: Connection, question: Callable[[Connection], T], within: float | None) -> T:
    if within is None:
        return question(cx)
    driver, until = driver_of(cx), time.monotonic() + within
    driver.set_progress_handler(lambda: time.monotonic() > until, _STEPS_BETWEEN_LOOKS)
    try:
        return question(cx)
    finally:
        driver.set_progress_handler(None, 0)


def _ask_postgresql(cx: Connection, question: Callable[[Connection], T], within: float | None) -> T:
    if within is None:
        return question(cx)
    _limit_statements(cx, within)
    value = question(cx)
    _limit_statements(cx, _STATEMENT_SECONDS)
    return value


def _limit_statements(cx: Connection, seconds: float) -> Any:
    return cx.exec_driver_sql(f"SET LOCAL statement_timeout = {max(1, int(seconds * 1000))}")
