"""Take decisions from the event loop to the database: each runs in one transaction, in a thread if it may wait."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from sqlalchemy.engine import Connection

from muniment.db import Busy, Database, Outcome, WriteBatch
from muniment.web.refusals import Refusal
from muniment.web.turns import Turns

P = ParamSpec("P")
T = TypeVar("T")

_TOGETHER = 32
_LONG_QUESTIONS = 2
_LONG_WAITING_EACH = 8
"""How many long questions run at one time, and how many of one caller may wait."""

_BUSY = "The database is busy with other writes."


class Transactions:
    """Takes decisions to one database. Writes run in a small pool of threads, reads run in the event loop on SQLite.

    SQLite has one writer, and its commit waits for the disk. So all writes that wait at one time share a transaction:
    they are decided one after the other, and answered when their one commit is on disk (decision 0012). With ``inline``
    they are decided in the event loop: for decisions that take less time than a change of threads.

    Reads have threads of their own, and so go on while writes wait for a locked database. Long questions also have
    threads of their own. Two run at a time, each for at most ``question_seconds``, and callers take turns.
    """

    def __init__(
        self, database: Database, *, threads: int = 8, inline: bool = False, question_seconds: float = 5.0
    ) -> None:
        self.database = database
        self._writers = ThreadPoolExecutor(threads, thread_name_prefix="decision")
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="question")
        self._long_threads = ThreadPoolExecutor(_LONG_QUESTIONS, thread_name_prefix="long question")
        self._turns = Turns(_LONG_QUESTIONS, _LONG_WAITING_EACH)
        self._question_seconds = question_seconds
        self._inline = inline
        self._waiting: deque[_Waiting] = deque()
        self._writing: asyncio.Task[None] | None = None

    async def write(self, decision: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the decision in a write transaction. If it raises, it is undone, and the exception is raised here.

        A refusal that keeps its decision's writes undoes nothing. Raises Busy, also if its turn does not come within
        the database's ``busy_seconds``.
        """
        decided = await self._written_by(partial(_decide, decision, args, kwargs))
        if isinstance(decided, _KeptRefusal):
            raise decided.refusal
        return decided

    async def _written_by(self, run: Callable[[Connection], T]) -> T:
        patience = time.monotonic() + self.database.busy_seconds
        loop = asyncio.get_running_loop()
        if self.database.dialect == "postgresql":
            return await loop.run_in_executor(self._writers, self._write_alone, run, patience)
        waiting = _Waiting(run, patience, loop.create_future())
        self._waiting.append(waiting)
        if self._writing is None or self._writing.done():
            self._writing = loop.create_task(self._write_waiting())
        value: T = await waiting.answer
        return value

    async def read(self, question: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask a question of one snapshot: on SQLite in the event loop, as that is faster than a change of threads."""

        def run() -> T:
            with self.database.read() as cx:
                return question(cx, *args, **kwargs)

        if self.database.dialect == "sqlite":
            return run()
        return await asyncio.get_running_loop().run_in_executor(self._threads, run)

    async def read_long(
        self,
        caller: str,
        question: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Ask a question of one snapshot that may read many rows, in a thread. It takes a turn of ``caller``.

        Raises Busy when it takes too long and is stopped, Overloaded when its turn does not come in time.
        """

        def run() -> T:
            with self.database.read(within=self._question_seconds) as cx:
                return question(cx, *args, **kwargs)

        async with self._turns.turn(caller, self._question_seconds):
            return await asyncio.get_running_loop().run_in_executor(self._long_threads, run)

    async def off_loop(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run work in the pool of threads. It opens its own transactions, if any."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: work(*args, **kwargs))

    def close(self) -> None:
        """Wait for the decisions under way, then close the database."""
        self._writers.shutdown(wait=True)
        self._threads.shutdown(wait=True)
        self._long_threads.shutdown(wait=True)
        self.database.close()

    async def _write_waiting(self) -> None:
        while self._waiting:
            group = [self._waiting.popleft() for _ in range(min(_TOGETHER, len(self._waiting)))]
            late = [waiting for waiting in group if time.monotonic() > waiting.patience]
            for waiting in late:
                waiting.settle(Outcome(None, Busy(_BUSY)))
            group = [waiting for waiting in group if waiting not in late]
            if not group:
                continue
            until, writing = min(waiting.patience for waiting in group), None
            try:
                writing = await self._begin(until)
                outcomes = await self._decide_and_commit(writing, [waiting.decision for waiting in group])
            except Exception as error:  # noqa: BLE001 - every waiting caller gets it as the answer
                if writing is None and type(error) is Busy and time.monotonic() > until:
                    # The next round refuses those who have waited long enough; the others go on waiting.
                    self._waiting.extendleft(reversed(group))
                    continue
                outcomes = [Outcome(None, error)] * len(group)
            for waiting, outcome in zip(group, outcomes, strict=True):
                waiting.settle(outcome)

    async def _begin(self, until: float) -> WriteBatch:
        try:
            return self.database.writing(until=0)
        except Busy:
            wait = partial(self.database.writing, until=until)
            return await asyncio.get_running_loop().run_in_executor(self._writers, wait)

    async def _decide_and_commit(
        self, writing: WriteBatch, decisions: Sequence[Callable[[Connection], Any]]
    ) -> list[Outcome]:
        in_pool = partial(asyncio.get_running_loop().run_in_executor, self._writers)
        if not self._inline:
            return await in_pool(_decide_all_and_commit, writing, decisions)
        outcomes = _decide_all(writing, decisions)
        await in_pool(writing.commit)
        return outcomes

    def _write_alone(self, decision: Callable[[Connection], T], patience: float) -> T:
        if time.monotonic() > patience:
            raise Busy(_BUSY)
        with self.database.begin() as cx:
            return decision(cx)


class _Waiting(NamedTuple):
    decision: Callable[[Connection], Any]
    patience: float
    answer: "asyncio.Future[Any]"

    def settle(self, outcome: Outcome) -> None:
        if self.answer.done():  # its caller has left; the decision stays
            return
        if outcome.raised is None:
            self.answer.set_result(outcome.value)
        else:
            self.answer.set_exception(outcome.raised)


class _KeptRefusal(NamedTuple):
    """A refusal whose decision is committed before it is raised."""

    refusal: Refusal


def _decide(
    decision: Callable[..., T], args: Sequence[Any], kwargs: Mapping[str, Any], cx: Connection
) -> T | _KeptRefusal:
    try:
        return decision(cx, *args, **kwargs)
    except Refusal as refusal:
        if not refusal.keeps_writes:
            raise
        return _KeptRefusal(refusal)


def _decide_all_and_commit(writing: WriteBatch, decisions: Sequence[Callable[[Connection], Any]]) -> list[Outcome]:
    outcomes = _decide_all(writing, decisions)
    writing.commit()
    return outcomes


def _decide_all(writing: WriteBatch, decisions: Sequence[Callable[[Connection], Any]]) -> list[Outcome]:
    try:
        return [writing.decide(decision) for decision in decisions]
    except BaseException:
        writing.roll_back()
        raise
