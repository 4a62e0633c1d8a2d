"""How do several requests, which one task answers one after the other, share one write transaction (decision 0090)?"""

import asyncio
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, contextmanager, suppress
from contextvars import ContextVar
from typing import TypeVar

from sqlalchemy.engine import Connection

from muniment.database.connections import Database, Unwritable, WriteBatch, driver_of, translated_errors
from muniment.database.driver_errors import is_undone
from muniment.ground.refusals import Overloaded

T = TypeVar("T")

_STEPS_BETWEEN_LOOKS = 50
"""Each statement's steps are counted alone: a larger number would let many short ones go on."""

_current: ContextVar["CommonTransaction | None"] = ContextVar("muniment.common_transaction", default=None)


def current(database: Database | None = None) -> "CommonTransaction | None":
    """Return this task's common transaction, if it has one, and in ``database`` if that is given."""
    common = _current.get()
    return common if common is not None and (database is None or common.database is database) else None


@contextmanager
def shared(common: "CommonTransaction") -> Iterator[None]:
    token = _current.set(common)
    try:
        yield
    finally:
        _current.reset(token)


class CommonTransaction:
    """The first decision that may write opens it.

    After ``seconds`` without a commit it is rolled back, even in the middle of a decision (on PostgreSQL: of a
    statement). ``after_commit`` and ``after_rollback`` take work, such as the removal of content, for a thread to do in
    this order at its end.
    """

    def __init__(
        self,
        database: Database,
        threads: Executor,
        turn: Callable[[], AbstractAsyncContextManager[None]],
        seconds: float,
    ) -> None:
        self.database = database
        self._threads = threads
        self._turn = turn
        self._seconds = seconds
        self._until: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._held = AsyncExitStack()
        self._using = threading.Lock()
        self._batch: WriteBatch | None = None
        self._connection: Connection | None = None
        self._opening = ExitStack()
        self._is_lost = False
        self._is_late = False
        self._is_committed = False
        self._is_settled = False
        self._work: dict[bool, list[Callable[[], object]]] = {True: [], False: []}

    @property
    def has_begun(self) -> bool:
        return self._until is not None

    async def decide(self, decision: Callable[[Connection], T]) -> T:
        """Raises Overloaded when the transaction's time is up, and what ``turn`` raises; Busy (TookTooLong for a
        stopped statement) and Unwritable once the database has given up the whole transaction.
        """
        if self._until is None:
            await self._open()
        return await self._in_thread(lambda: self._decide(decision))

    def check_time(self) -> None:
        """Raises Overloaded if the transaction's time was up."""
        if self._is_late:
            raise Overloaded(
                f"The batch was rolled back: its writes took longer than the {self._seconds:g} seconds allowed. Send "
                "fewer operations at a time.",
                math.ceil(4 * self._seconds),
            )

    async def commit(self) -> None:
        """Raises Overloaded if its time was up, and Busy or Unwritable.

        Then the work of ``after_rollback`` is done only if it is certain that nothing was stored.
        """
        try:
            await self._in_thread(self._commit)
        except BaseException as error:
            if self._is_committed or is_undone(error):
                await self._settle(committed=self._is_committed)
            self._is_settled = True
            raise
        await self._settle(committed=True)

    async def roll_back(self) -> None:
        """After ``commit`` only the turn is given back."""
        if self._timer is not None:
            self._timer.cancel()
        async with self._held:
            if self._is_settled:
                return
            try:
                await self._in_thread(self._roll_back)
            finally:
                await self._settle(committed=False)

    def after_commit(self, work: Callable[[], object]) -> None:
        self._work[True].append(work)

    def after_rollback(self, work: Callable[[], object]) -> None:
        self._work[False].append(work)

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._turn())
            await self._in_thread(self._begin)
            self._held = stack.pop_all()
        self._until = time.monotonic() + self._seconds
        self._timer = loop.call_later(self._seconds, loop.run_in_executor, self._threads, self._end_late)

    async def _settle(self, *, committed: bool) -> None:
        work, self._work, self._is_settled = self._work[committed], {True: [], False: []}, True
        if work:
            await self._in_thread(lambda: [each() for each in work])

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """A cancelled task still waits until the thread has finished the work."""
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

    def _decide(self, decision: Callable[[Connection], T]) -> T:
        with self._using:
            self.check_time()
            if self._is_lost or self._connection is None or self._until is None:
                raise Unwritable("The database gave the transaction up.")
            try:
                if self._batch is None:
                    with translated_errors(), self._connection.begin_nested():
                        return _ask_postgresql(self._connection, decision, self._until)
                return self._decide_in_batch(self._batch, decision, self._until)
            finally:
                if time.monotonic() > self._until:
                    self._roll_back_late()

    def _decide_in_batch(self, batch: WriteBatch, decision: Callable[[Connection], T], until: float) -> T:
        try:
            outcome = batch.decide(lambda cx: _ask_sqlite(cx, decision, until))
        except Exception:
            self._is_lost = True  # after this, each statement would be committed alone
            raise
        if outcome.raised is not None:
            raise outcome.raised
        value: T = outcome.value
        return value

    def _end_late(self) -> None:
        with self._using:
            if self._connection is not None:
                self._roll_back_late()

    def _roll_back_late(self) -> None:
        self._is_late = True
        self._undo()

    def _commit(self) -> None:
        with self._using:
            self.check_time()
            if self._is_lost:
                self._undo()
                raise Unwritable("The database gave the transaction up.")
            batch, self._batch, self._connection = self._batch, None, None
            if batch is not None:
                batch.commit()
            else:
                self._opening.close()
            self._is_committed = True

    def _roll_back(self) -> None:
        with self._using:
            self._undo()

    def _undo(self) -> None:
        is_open, self._connection = self._connection is not None, None
        if self._batch is not None:
            batch, self._batch = self._batch, None
            batch.roll_back(broken=self._is_lost and not self._is_late)
        elif is_open:
            with suppress(_Undone):
                self._opening.__exit__(_Undone, _Undone(), None)


class _Undone(Exception): ...


def _ask_sqlite(cx: Connection, question: Callable[[Connection], T], until: float) -> T:
    driver = driver_of(cx)
    driver.set_progress_handler(lambda: time.monotonic() > until, _STEPS_BETWEEN_LOOKS)
    try:
        return question(cx)
    finally:
        driver.set_progress_handler(None, 0)


def _ask_postgresql(cx: Connection, question: Callable[[Connection], T], until: float) -> T:
    milliseconds = max(1, math.ceil(1000 * (until - time.monotonic())) + 1)
    cx.exec_driver_sql(f"SET LOCAL statement_timeout = {milliseconds}")
    return question(cx)
