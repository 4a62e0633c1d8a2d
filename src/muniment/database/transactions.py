"""Run decisions and questions for the event loop: in transactions, and in threads if they may wait."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from contextvars import copy_context
from functools import partial
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeAlias, TypeVar

from sqlalchemy.engine import Connection

from muniment.database import audit, common_transaction
from muniment.database.budgets import Budget
from muniment.database.common_transaction import CommonTransaction
from muniment.database.connections import Busy, Database, Outcome, PreparedStatement, WriteBatch, portions
from muniment.database.fair_queue import HasLeft, Turns, stays
from muniment.database.holds import Holds
from muniment.database.polls import Poll
from muniment.ground.refusals import Malformed, Refusal

Item = TypeVar("Item")
P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

_GROUP_SIZE = 32
_THREADS = 8

FILL_SECONDS = 0.001
"""So long a group of writes waits at most to be as large as the last ones."""

_LONGEST_TURN = 0.0005
"""After so many seconds of a group's decisions, those who wait for the event loop have their turn."""

_AT_ONCE = 2
"""Of these, one caller runs one long question at most that is heavy."""

_SEARCHES_WAITING_EACH, _SEARCH_WAIT_SECONDS = 100, 30.0

_LONG_WAITING_EACH = 8

_BUSY = "The database is busy with other writes."

JointDecision: TypeAlias = Callable[[Connection, Sequence[Item], bool], Sequence[T | Refusal | None]]
"""Decides several requests at less than the cost of one by one.

Each item gets a value, a refusal for its caller alone, or None to be decided alone. If the last argument is true, there
is one item, and no None; then it may wait for locks that other transactions hold.
"""


class Transactions:
    """SQLite's writes that wait at one time share a transaction, and are answered when its commit is on disk (decision
    0052).

    With ``inline`` they run in the event loop, with turns for others in between, and the commit in a thread; SQLite's
    short reads always run in the loop. PostgreSQL's have threads of their own, so they go on while writes wait for a
    lock. So have two heavy and two other long questions, and two callers' searches, ``searches_of_each``, for at most
    ``question_seconds``: callers take turns (decision 0087). A common transaction lasts ``hold_seconds`` at most.
    """

    def __init__(
        self,
        database: Database,
        *,
        inline: bool = False,
        question_seconds: float = 5.0,
        hold_seconds: float = 0.5,
        searches_of_each: int = 1,
    ) -> None:
        self.database = database
        self._writers = ThreadPoolExecutor(_THREADS, thread_name_prefix="decision")
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="question")
        searches = _AT_ONCE * searches_of_each
        self._long_threads = ThreadPoolExecutor(2 * _AT_ONCE + searches, thread_name_prefix="long question")
        self._light_turns = Turns(_AT_ONCE, _LONG_WAITING_EACH)
        self._heavy_turns = Turns(_AT_ONCE, _LONG_WAITING_EACH, 1)
        self._search_turns = Turns(searches, _SEARCHES_WAITING_EACH, searches_of_each)
        self._holds = Holds(database)
        self._hold_seconds = hold_seconds
        self._question_seconds = question_seconds
        self._inline = inline
        self._queue: deque[_QueuedWrite] = deque()
        self._queue_task: asyncio.Task[None] | None = None
        self._last_sizes: deque[int] = deque([1, 1], maxlen=2)
        self._filling: tuple[int, asyncio.Future[None]] | None = None
        self._joint_queues: dict[JointDecision[Any, Any], _JointQueue] = {}
        self._alone: set[asyncio.Task[None]] = set()
        self._glances: dict[PreparedStatement, Poll] = {}
        self._shared_polls: dict[PreparedStatement, _SharedPoll] = {}

    async def write(self, decision: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """An exception undoes its writes, a refusal with ``keeps_writes`` commits them.

        ``decision`` itself says who acts (``audit.acting``): nobody does when it begins.

        Within a common transaction this does not wait for the commit. Raises Busy, also if the decision does not begin
        within ``busy_seconds``.
        """
        common = common_transaction.current(self.database)
        write = self._new_write(partial(_decide, decision, args, kwargs))
        if common is not None:
            result: T | _CommittedRefusal = await common.decide(write.decision)
        elif self.database.dialect == "postgresql":
            result = await self._write_in_thread(write)
        else:
            result = await self._enqueue(write)
        if isinstance(result, _CommittedRefusal):
            raise result.refusal
        return result

    async def write_jointly(self, decision: JointDecision[Item, T], item: Item, *, at_once: int = _GROUP_SIZE) -> T:
        """Decide ``item`` with those of others who wait with the same ``decision`` object, or alone if that raises. In
        the event loop, ``at_once`` are decided before others have their turn.

        Raises Busy, the refusal of ``item``, and what ``decision`` raises for it alone.
        """
        write = self._new_write(partial(_decide_alone, decision, item), decision, item, at_once)
        common = common_transaction.current(self.database)
        value: T | _CommittedRefusal
        if common is not None:
            value = await common.decide(write.decision)
        elif self.database.dialect == "postgresql":
            queue = self._joint_queues.get(decision)
            if queue is None:
                queue = self._joint_queues[decision] = _JointQueue(self._write_round)
            value = await queue.answer(write)
        else:
            value = await self._enqueue(write)
        if isinstance(value, _CommittedRefusal):
            raise value.refusal
        return value

    def _new_write(
        self,
        decision: Callable[[Connection], Any],
        joint: JointDecision[Any, Any] | None = None,
        item: object = None,
        at_once: int = 1,
    ) -> "_QueuedWrite":
        deadline = time.monotonic() + self.database.busy_seconds
        return _QueuedWrite(decision, deadline, asyncio.get_running_loop().create_future(), joint, item, at_once)

    async def _enqueue(self, write: "_QueuedWrite") -> Any:
        self._queue.append(write)
        if self._filling is not None and len(self._queue) >= self._filling[0]:
            _wake(self._filling[1])
        if self._queue_task is None or self._queue_task.done():
            self._queue_task = asyncio.get_running_loop().create_task(self._write_queue())
        return await write.answer

    async def _write_in_thread(self, write: "_QueuedWrite") -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._writers, self._write_alone, write)

    async def _write_round(self, writes: "Sequence[_QueuedWrite]") -> None:
        """The next round does not wait for writes that are decided alone."""
        outcomes: Sequence[Outcome | None]
        try:
            outcomes = await asyncio.get_running_loop().run_in_executor(self._writers, self._write_together, writes)
        except Exception:  # noqa: BLE001 - each write is then decided alone, and may raise it again
            outcomes = [None] * len(writes)
        await _settle_each(writes, outcomes)
        for write, outcome in zip(writes, outcomes, strict=True):
            if outcome is None:
                task = asyncio.create_task(self._settle_alone(write))
                self._alone.add(task)
                task.add_done_callback(self._alone.discard)

    async def _settle_alone(self, write: "_QueuedWrite") -> None:
        try:
            outcome = Outcome(await self._write_in_thread(write), None)
        except Exception as error:  # noqa: BLE001 - the caller gets it as the answer
            outcome = Outcome(None, error)
        write.settle(outcome)

    async def read(self, question: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask a question of one snapshot. Raises Busy."""

        def run() -> T:
            with self.database.read() as cx:
                return question(cx, *args, **kwargs)

        common = common_transaction.current(self.database)
        if common is not None and common.has_begun:
            return await common.decide(lambda cx: question(cx, *args, **kwargs))
        if self.database.dialect == "sqlite":
            return run()
        return await asyncio.get_running_loop().run_in_executor(self._threads, run)

    async def glance(self, statement: PreparedStatement) -> Sequence[Any]:
        """Run a statement without parameters, outside of a transaction, for its one row. Raises Busy.

        On PostgreSQL those who wait share a round trip that begins after each has called.
        """
        row = self.glance_without_waiting(statement)
        if row is not None:
            return row
        shared_poll = self._shared_polls.get(statement)
        if shared_poll is None:
            ask = partial(self.off_loop, self.glance_at_once, statement)
            shared_poll = self._shared_polls[statement] = _SharedPoll(ask)
        return await shared_poll.row()

    def glance_without_waiting(self, statement: PreparedStatement) -> Sequence[Any] | None:
        """None on PostgreSQL, where it takes a round trip. Raises Busy."""
        return self.glance_at_once(statement) if self.database.dialect == "sqlite" else None

    def glance_at_once(self, statement: PreparedStatement) -> Sequence[Any]:
        """Any thread may call this. Raises Busy."""
        glance = self._glances.get(statement)
        if glance is None:
            glance = self._glances.setdefault(statement, Poll(self.database, statement))
        return glance.row()

    async def read_long(
        self, caller: str, question: Callable[[Connection], T], *, heavy: bool = False, has_left: HasLeft = stays
    ) -> T:
        """Ask a question when it is the turn of ``caller``; ``heavy`` if no index of the database answers it.

        Raises Busy when it is stopped for its time, Overloaded when no turn comes in time or the caller has left, and
        Malformed in a common transaction that has begun, where it would hold up everybody's writes.
        """
        budget = Budget(self._question_seconds)

        def run() -> T:
            with self.database.read(within=budget.seconds, is_over=budget.is_spent) as cx:
                return question(cx)

        common = common_transaction.current(self.database)
        if common is not None and common.has_begun:
            raise Malformed("In a transactional batch, lists are read before the first write.")
        turns = self._heavy_turns if heavy else self._light_turns
        return await turns.run(caller, budget.seconds, self._long_threads, budget, run, has_left)

    async def search(
        self, caller: str, take: Callable[[], S], question: Callable[[Connection, S], T], has_left: HasLeft = stays
    ) -> T:
        """Call ``take`` in a thread, then ask a question about its result, in a snapshot that begins afterwards and so
        has every commit from before.

        Both share one budget. Raises what ``read_long`` raises, and Malformed within a common transaction, whose writes
        a new snapshot does not show.
        """
        if self.in_common:
            raise Malformed("A search cannot be part of a transaction.")
        budget = Budget(self._question_seconds)

        def run() -> T:
            snapshot = take()
            with self.database.read(within=budget.seconds, is_over=budget.is_spent) as cx:
                return question(cx, snapshot)

        turns = self._search_turns
        return await turns.run(caller, _SEARCH_WAIT_SECONDS, self._long_threads, budget, run, has_left)

    async def off_loop(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        run = partial(copy_context().run, work) if self.in_common else work
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: audit.unnamed(run, *args, **kwargs)
        )

    @property
    def in_common(self) -> bool:
        return common_transaction.current(self.database) is not None

    @asynccontextmanager
    async def common(self, caller: str) -> AsyncIterator[CommonTransaction]:
        """The block's decisions share a transaction, which is rolled back unless the block commits it."""
        common = CommonTransaction(self.database, self._writers, partial(self._holds.hold, caller), self._hold_seconds)
        try:
            with common_transaction.shared(common):
                yield common
        finally:
            await common.roll_back()

    def close(self) -> None:
        self._writers.shutdown(wait=True)
        self._threads.shutdown(wait=True)
        self._long_threads.shutdown(wait=True)
        for glance in self._glances.values():
            glance.close()
        self.database.close()

    async def _write_queue(self) -> None:
        while self._queue:
            until = self._queue[0].deadline
            if time.monotonic() > until:
                self._queue.popleft().settle(Outcome(None, Busy(_BUSY)))
                continue
            group: list[_QueuedWrite] = []
            await self._fill()
            try:
                batch = await self._begin(until)
                # Writes that came while another process had the database join the group.
                group = self._take_group()
                outcomes = await self._decide_and_commit(batch, group)
            except Exception as error:  # noqa: BLE001 - every caller of the group gets it as the answer
                if not group and type(error) is Busy and time.monotonic() > until:
                    # The next round refuses the first write. The others go on waiting.
                    continue
                group = group or self._take_group()
                outcomes = [Outcome(None, error)] * len(group)
            await _settle_each(group, outcomes)

    async def _fill(self) -> None:
        """Callers who were just answered are about to write again (decision 0052).

        After two groups of one write each, nobody waits.
        """
        group_size = max(self._last_sizes)
        if len(self._queue) < group_size:
            loop = asyncio.get_running_loop()
            wake: asyncio.Future[None] = loop.create_future()
            self._filling = group_size, wake
            timer = loop.call_later(FILL_SECONDS, _wake, wake)
            try:
                await wake
            finally:
                timer.cancel()
                self._filling = None

    def _take_group(self) -> "list[_QueuedWrite]":
        size = min(_GROUP_SIZE, len(self._queue))
        self._last_sizes.append(size)
        return [self._queue.popleft() for _ in range(size)]

    async def _begin(self, until: float) -> WriteBatch:
        try:
            return self.database.begin_batch(until=0)
        except Busy:
            wait = partial(self.database.begin_batch, until=until)
            return await asyncio.get_running_loop().run_in_executor(self._writers, wait)

    async def _decide_and_commit(self, batch: WriteBatch, writes: "Sequence[_QueuedWrite]") -> list[Outcome]:
        in_pool = partial(asyncio.get_running_loop().run_in_executor, self._writers)
        if not self._inline:
            return await in_pool(_decide_all_and_commit, batch, writes)
        outcomes, began = [], time.monotonic()
        with closing(_decide_each(batch, writes)) as decided:
            for outcome in decided:
                if outcome is not None:
                    outcomes.append(outcome)
                if time.monotonic() - began > _LONGEST_TURN:
                    await asyncio.sleep(0)
                    began = time.monotonic()
        await in_pool(batch.commit)
        return outcomes

    def _write_alone(self, write: "_QueuedWrite") -> Any:
        if time.monotonic() > write.deadline:
            raise Busy(_BUSY)
        with self.database.begin() as cx:
            return write.decision(cx)

    def _write_together(self, writes: "Sequence[_QueuedWrite]") -> Sequence[Outcome | None]:
        with self.database.begin() as cx:
            return _decide_together(writes, cx)


class _SharedPoll:
    """A caller's row comes from a round trip that begins after their call."""

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, Sequence[Any]]]) -> None:
        self._ask = ask
        self._under_way: asyncio.Task[Sequence[Any]] | None = None
        self._next: asyncio.Task[Sequence[Any]] | None = None

    async def row(self) -> Sequence[Any]:
        if self._next is None:
            self._next = asyncio.create_task(self._round())
        return await asyncio.shield(self._next)

    async def _round(self) -> Sequence[Any]:
        if self._under_way is not None:
            await asyncio.wait([self._under_way])
        # Whoever comes from now on waits for the next round.
        self._under_way, self._next = self._next, None
        return await self._ask()


class _QueuedWrite(NamedTuple):
    """Waits for its transaction until ``deadline`` (``time.monotonic``).

    With ``joint``, ``item`` may be decided together with others, ``at_once`` of them.
    """

    decision: Callable[[Connection], Any]
    deadline: float
    answer: "asyncio.Future[Any]"
    joint: JointDecision[Any, Any] | None
    item: Any
    at_once: int

    def settle(self, outcome: Outcome) -> None:
        if self.answer.done():  # the caller has left; the decision is committed nevertheless
            return
        if outcome.raised is None:
            self.answer.set_result(outcome.value)
        else:
            self.answer.set_exception(outcome.raised)


async def _settle_each(writes: Sequence[_QueuedWrite], outcomes: Sequence[Outcome | None]) -> None:
    """Their answers take time as well: after as many as are decided at once, others have their turn."""
    for place, (write, outcome) in enumerate(zip(writes, outcomes, strict=True), 1):
        if outcome is not None:
            write.settle(outcome)
        if place % write.at_once == 0:
            await asyncio.sleep(0)


class _JointQueue:
    def __init__(self, write_round: Callable[[Sequence[_QueuedWrite]], Coroutine[Any, Any, None]]) -> None:
        self._write_round = write_round
        self._waiting: deque[_QueuedWrite] = deque()
        self._rounds: asyncio.Task[None] | None = None

    async def answer(self, write: _QueuedWrite) -> Any:
        self._waiting.append(write)
        if self._rounds is None or self._rounds.done():
            self._rounds = asyncio.create_task(self._run())
        return await write.answer

    async def _run(self) -> None:
        while self._waiting:
            await self._write_round([self._waiting.popleft() for _ in range(min(_GROUP_SIZE, len(self._waiting)))])


class _CommittedRefusal(NamedTuple):
    refusal: Refusal


def _wake(waiting: "asyncio.Future[None]") -> None:
    if not waiting.done():
        waiting.set_result(None)


def _decide(
    decision: Callable[..., T], args: Sequence[Any], kwargs: Mapping[str, Any], cx: Connection
) -> T | _CommittedRefusal:
    try:
        return audit.unnamed(decision, cx, *args, **kwargs)
    except Refusal as refusal:
        if not refusal.keeps_writes:
            raise
        return _CommittedRefusal(refusal)


def _decide_alone(decision: JointDecision[Item, T], item: Item, cx: Connection) -> T | _CommittedRefusal:
    (value,) = audit.unnamed(decision, cx, [item], True)
    assert value is not None  # noqa: S101 - a decision about one item alone returns no None
    if not isinstance(value, Refusal):
        return value
    if not value.keeps_writes:
        raise value
    return _CommittedRefusal(value)


def _decide_all_and_commit(batch: WriteBatch, writes: Sequence[_QueuedWrite]) -> list[Outcome]:
    outcomes = [outcome for outcome in _decide_each(batch, writes) if outcome is not None]
    batch.commit()
    return outcomes


def _decide_each(batch: WriteBatch, writes: Sequence[_QueuedWrite]) -> Generator[Outcome | None, None, None]:
    """The outcomes in the order of the writes, and None wherever others may have their turn. Rolls back if it does not
    come to its end.
    """
    outcomes: list[Outcome | None] = [None] * len(writes)
    places: dict[JointDecision[Any, Any], list[int]] = {}
    for place, write in enumerate(writes):
        if write.joint is not None:
            places.setdefault(write.joint, []).append(place)
    try:
        for places_of_group in places.values():
            for portion in portions(places_of_group, writes[places_of_group[0]].at_once):
                if len(portion) > 1:
                    joint_outcome = batch.decide(partial(_decide_together, [writes[place] for place in portion]))
                    for place, outcome in zip(portion, joint_outcome.value or (), strict=False):
                        outcomes[place] = outcome
                    yield None
        for write, outcome in zip(writes, outcomes, strict=True):
            yield outcome or batch.decide(write.decision)
    except BaseException:
        batch.roll_back()
        raise


def _decide_together(writes: Sequence[_QueuedWrite], cx: Connection) -> list[Outcome | None]:
    """None stands for a write that must be decided alone."""
    joint = writes[0].joint
    assert joint is not None  # noqa: S101 - the callers pass only writes with a joint decision
    values = audit.unnamed(joint, cx, [write.item for write in writes], False)
    return [
        None if value is None else Outcome(None, value) if isinstance(value, Refusal) else Outcome(value, None)
        for value in values
    ]
