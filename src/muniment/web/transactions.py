"""From the event loop into a decision: a plain function run in one transaction, off the loop when it may wait."""

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
"""Long questions under way at one time, and how many of one caller may wait: more would only wait for each other."""

_LATE = "The database is busy with other writes."


class Transactions:
    """Takes decisions to one database: writes in a small pool of threads, reads inline on SQLite.

    SQLite has one writer, and its commit waits for the disk. So the writes that wait for it at one time are decided one
    after the other in one transaction, and answered when its one commit is on disk (decision 0012). With ``inline``
    they are decided in the loop: for decisions that take microseconds, less than a change of threads.

    What does not write has threads of its own: it goes on while writes wait for a locked database. So have questions
    that may take long, each at most ``question_seconds``: two of them at a time, and callers have turns.
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
        """Run the decision in a write transaction. What it raises undoes it and is raised here, once all is on disk.

        A refusal that keeps its decision's writes undoes nothing. Raises Busy, also when its turn did not come within
        the time that the database lets a write wait.
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
        given: T = await waiting.answer
        return given

    async def read(self, question: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask a question of one snapshot. On SQLite it takes microseconds, less than a change of threads."""

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
        """Ask a question of one snapshot that may take long, off the loop: one that the database may have to pass over
        many rows for. ``caller`` is whose turn it takes.

        Raises Busy when a statement takes longer than it may (it is stopped), Overloaded when no turn comes in time.
        """

        def run() -> T:
            with self.database.read(within=self._question_seconds) as cx:
                return question(cx, *args, **kwargs)

        async with self._turns.turn(caller, self._question_seconds):
            return await asyncio.get_running_loop().run_in_executor(self._long_threads, run)

    async def off_loop(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run work that opens its own transactions, or none, in the pool."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: work(*args, **kwargs))

    def close(self) -> None:
        """Wait for the decisions under way, then give the database back."""
        self._writers.shutdown(wait=True)
        self._threads.shutdown(wait=True)
        self._long_threads.shutdown(wait=True)
        self.database.close()

    async def _write_waiting(self) -> None:
        while self._waiting:
            group = [self._waiting.popleft() for _ in range(min(_TOGETHER, len(self._waiting)))]
            late = [waiting for waiting in group if time.monotonic() > waiting.patience]
            for waiting in late:
                waiting.settle(Outcome(None, Busy(_LATE)))
            group = [waiting for waiting in group if waiting not in late]
            if not group:
                continue
            until, writing = min(waiting.patience for waiting in group), None
            try:
                writing = await self._begun(until)
                outcomes = await self._written(writing, [waiting.decision for waiting in group])
            except Exception as error:  # noqa: BLE001 - whoever waits for an answer gets it
                if writing is None and type(error) is Busy and time.monotonic() > until:
                    # Who has waited long enough is told so next; the others wait on, as long as each may.
                    self._waiting.extendleft(reversed(group))
                    continue
                outcomes = [Outcome(None, error)] * len(group)
            for waiting, outcome in zip(group, outcomes, strict=True):
                waiting.settle(outcome)

    async def _begun(self, until: float) -> WriteBatch:
        try:
            return self.database.writing(until=0)
        except Busy:
            wait = partial(self.database.writing, until=until)
            return await asyncio.get_running_loop().run_in_executor(self._writers, wait)

    async def _written(self, writing: WriteBatch, decisions: Sequence[Callable[[Connection], Any]]) -> list[Outcome]:
        in_pool = partial(asyncio.get_running_loop().run_in_executor, self._writers)
        if not self._inline:
            return await in_pool(_kept, writing, decisions)
        outcomes = _decided(writing, decisions)
        await in_pool(writing.commit)
        return outcomes

    def _write_alone(self, decision: Callable[[Connection], T], patience: float) -> T:
        if time.monotonic() > patience:
            raise Busy(_LATE)
        with self.database.begin() as cx:
            return decision(cx)


class _Waiting(NamedTuple):
    decision: Callable[[Connection], Any]
    patience: float
    answer: "asyncio.Future[Any]"

    def settle(self, outcome: Outcome) -> None:
        if self.answer.done():  # its caller has left; what was decided stays
            return
        if outcome.raised is None:
            self.answer.set_result(outcome.given)
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


def _kept(writing: WriteBatch, decisions: Sequence[Callable[[Connection], Any]]) -> list[Outcome]:
    outcomes = _decided(writing, decisions)
    writing.commit()
    return outcomes


def _decided(writing: WriteBatch, decisions: Sequence[Callable[[Connection], Any]]) -> list[Outcome]:
    try:
        return [writing.decide(decision) for decision in decisions]
    except BaseException:
        writing.roll_back()
        raise
