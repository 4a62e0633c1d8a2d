"""Writes that wait at one time are kept by one commit, and each is answered as if it were alone (decision 0052)."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database import connections
from muniment.database import transactions as web_transactions
from muniment.database.connections import Busy, Database, WriteBatch
from muniment.database.transactions import JointDecision, Transactions
from muniment.ground.refusals import Malformed, Refusal
from tests.waiting import PATIENCE

Answers = list[int | BaseException]


@pytest.fixture(params=["inline", "in threads"])
def transactions(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Transactions]:
    database = Database(f"sqlite:///{tmp_path / 'numbers.db'}", busy_seconds=0.3)
    made = Transactions(database, inline=request.param == "inline")
    with database.begin() as cx:
        cx.execute(sa.text("CREATE TABLE numbers (number INTEGER PRIMARY KEY)"))
    yield made
    made.close()


def add(cx: Connection, number: int) -> int:
    """Keep a number; refuse one that is divisible by three, after it was kept."""
    cx.execute(sa.text("INSERT INTO numbers VALUES (:number)"), {"number": number})
    if number % 3 == 0:
        raise Malformed(f"{number} is divisible by three.")
    return number


def kept(transactions: Transactions) -> list[int]:
    with transactions.database.read() as cx:
        return [row[0] for row in cx.execute(sa.text("SELECT number FROM numbers ORDER BY number"))]


def together(transactions: Transactions, *numbers: int, decision: Callable[[Connection, int], int] = add) -> Answers:
    """Write the numbers at one time, each for a caller of its own."""

    async def ask() -> Answers:
        asked: list[Awaitable[int]] = [transactions.write(decision, number) for number in numbers]
        return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(ask())


def commits(monkeypatch: pytest.MonkeyPatch, before: Callable[[], None] = lambda: None) -> list[WriteBatch]:
    """List the commits from now on; each waits for ``before``, which may raise in its place."""
    seen: list[WriteBatch] = []
    commit = WriteBatch.commit

    def noted(self: WriteBatch) -> None:
        seen.append(self)
        try:
            before()
        except BaseException:
            self.roll_back()
            raise
        commit(self)

    monkeypatch.setattr(WriteBatch, "commit", noted)
    return seen


def test_writes_that_wait_share_a_commit(transactions: Transactions, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = commits(monkeypatch)
    numbers = [number for number in range(100) if number % 3]
    assert together(transactions, *numbers) == numbers
    assert kept(transactions) == numbers
    assert len(seen) < len(numbers) / 5


def test_between_long_decisions_of_a_group_others_have_their_turn(transactions: Transactions) -> None:
    decided_at_turns: list[int] = []
    decided = 0

    def long(cx: Connection, number: int) -> int:
        nonlocal decided
        time.sleep(4 * web_transactions._LONGEST_TURN)
        decided += 1
        return add(cx, number)

    async def ask() -> list[int]:
        written = asyncio.gather(*(transactions.write(long, number) for number in (1, 2, 4, 5)))
        while not written.done():
            await asyncio.sleep(0)
            decided_at_turns.append(decided)
        return await written

    assert asyncio.run(ask()) == [1, 2, 4, 5]
    assert {1, 2, 3} <= {*decided_at_turns}
    assert kept(transactions) == [1, 2, 4, 5]


def test_a_refused_decision_undoes_itself_and_no_other(transactions: Transactions) -> None:
    answers = together(transactions, 1, 2, 3, 4, 5, 6, 7)
    assert [answer for answer in answers if isinstance(answer, int)] == [1, 2, 4, 5, 7] == kept(transactions)
    assert [str(answer) for answer in answers if isinstance(answer, Malformed)] == [
        "3 is divisible by three.",
        "6 is divisible by three.",
    ]


class Counted(Malformed):
    """A refusal that is kept count of."""

    keeps_writes = True


def test_a_refusal_that_keeps_writes_is_raised_once_they_are_committed(transactions: Transactions) -> None:
    def decide(cx: Connection, number: int) -> int:
        add(cx, number)
        raise Counted("No, and it counts.") if number % 2 else Malformed("No.")

    answers = together(transactions, 1, 2, 4, 5, decision=decide)
    assert [type(answer) for answer in answers] == [Counted, Malformed, Malformed, Counted]
    assert kept(transactions) == [1, 5]


def test_a_decision_that_the_database_refuses_disturbs_no_other(transactions: Transactions) -> None:
    answers = together(transactions, 1, 2, 2, 4)
    assert [isinstance(answer, sa.exc.IntegrityError) for answer in answers] == [False, False, True, False]
    assert kept(transactions) == [1, 2, 4]


def test_nobody_is_answered_before_the_commit(transactions: Transactions, monkeypatch: pytest.MonkeyPatch) -> None:
    reached, release = threading.Event(), threading.Event()

    def wait() -> None:
        reached.set()
        assert release.wait(PATIENCE)

    commits(monkeypatch, wait)

    async def ask() -> Answers:
        tasks = [asyncio.ensure_future(transactions.write(add, number)) for number in (1, 3, 4)]
        await asyncio.to_thread(reached.wait, 10)
        for _ in range(10):  # an answer given before the commit is under way to the loop by now
            await asyncio.sleep(0)
        assert not any(task.done() for task in tasks)
        assert kept(transactions) == []
        release.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, refused, last = asyncio.run(ask())
    assert (first, type(refused), last) == (1, Malformed, 4)


def test_a_commit_that_fails_is_answered_to_each_and_keeps_nothing(
    transactions: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_driver = connections.on_driver

    def fail(cx: Connection, sql: str, values: Mapping[str, object] | None = None, **how: Any) -> object:
        if sql == "COMMIT":
            raise OSError("no space left")
        return on_driver(cx, sql, values, **how)

    with monkeypatch.context() as patched:
        patched.setattr(connections, "on_driver", fail)
        assert [type(answer) for answer in together(transactions, 1, 2, 3)] == [OSError] * 3
    assert kept(transactions) == []
    assert together(transactions, 1, 2) == [1, 2] == kept(transactions)


def test_where_the_database_gives_up_the_transaction_each_is_told_and_nothing_is_kept(
    transactions: Transactions,
) -> None:
    def full(cx: Connection, number: int) -> int:
        add(cx, number)
        if number == 2:
            driver = cx.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            driver.rollback()  # as SQLite itself does when the disk is full
            raise OSError("no space left")
        return number

    assert [type(answer) for answer in together(transactions, 1, 2, 4, decision=full)] == [OSError] * 3
    assert kept(transactions) == []
    assert together(transactions, 1, 2) == [1, 2] == kept(transactions)


def test_a_caller_who_leaves_disturbs_no_other(transactions: Transactions) -> None:
    async def ask() -> Answers:
        tasks = [asyncio.ensure_future(transactions.write(add, number)) for number in (1, 2, 4)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, left, last = asyncio.run(ask())
    assert (first, type(left), last) == (1, asyncio.CancelledError, 4)
    assert kept(transactions) == [1, 2, 4]


@pytest.mark.slow
def test_while_another_process_writes_it_waits_and_then_says_busy(transactions: Transactions) -> None:
    other = Database(str(transactions.database.engine.url))
    with other.begin() as cx:
        add(cx, 1)
        assert [type(answer) for answer in together(transactions, 2, 4)] == [Busy] * 2
    other.close()
    assert together(transactions, 2, 4) == [2, 4]
    assert kept(transactions) == [1, 2, 4]


@pytest.mark.slow
def test_each_waits_for_another_process_as_long_as_a_write_may_and_no_longer(
    transactions: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who comes while others wait is not told with them, and does not wait a second time."""
    ends, deadlines = list[float](), list[float]()
    begin_batch, enqueue = Database.begin_batch, Transactions._enqueue

    def noted(self: Database, *, until: float | None = None) -> WriteBatch:
        ends.append(until or 0.0)
        return begin_batch(self, until=until)

    def queued(self: Transactions, write: Any) -> Any:
        deadlines.append(write.deadline)
        return enqueue(self, write)

    monkeypatch.setattr(Database, "begin_batch", noted)
    monkeypatch.setattr(Transactions, "_enqueue", queued)

    async def timed(number: int, after: float) -> tuple[type, float]:
        await asyncio.sleep(after)
        began = time.monotonic()
        try:
            await transactions.write(add, number)
        except Busy as busy:
            return type(busy), time.monotonic() - began
        return int, time.monotonic() - began

    async def ask() -> list[tuple[type, float]]:
        return await asyncio.gather(*(timed(number, 0.01 * number) for number in (2, 4, 5)))

    other = Database(str(transactions.database.engine.url))
    with other.begin() as cx:
        add(cx, 1)
        ends.clear()
        for answer, took in asyncio.run(ask()):
            assert answer is Busy
            assert took >= 0.3
    other.close()
    assert max(ends) <= max(deadlines), "nobody waits up to a moment that is later than their own"
    assert kept(transactions) == [1]


def test_a_short_wait_for_another_process_is_no_refusal(transactions: Transactions) -> None:
    other = Database(str(transactions.database.engine.url))
    batch = other.begin_batch()
    soon = threading.Timer(0.1, batch.commit)
    soon.start()
    assert together(transactions, 2, 4) == [2, 4]
    soon.join()
    other.close()


def test_whoever_comes_while_another_process_writes_joins_the_group(
    transactions: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Database(str(transactions.database.engine.url))
    batch = other.begin_batch()

    async def ask() -> Answers:
        writes = [asyncio.create_task(transactions.write(add, 2))]
        await asyncio.sleep(0.05)
        writes += [asyncio.create_task(transactions.write(add, number)) for number in (4, 5)]
        await asyncio.sleep(0)
        batch.commit()
        return await asyncio.gather(*writes)

    seen = commits(monkeypatch)
    assert asyncio.run(ask()) == [2, 4, 5]
    assert len(seen) == 2, "the other process's commit, and one"
    other.close()


def test_a_group_waits_for_as_many_writes_as_the_last_ones_had(
    transactions: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_transactions, "FILL_SECONDS", 60.0)
    seen = commits(monkeypatch)

    async def later(number: int, turns: int) -> int:
        for _ in range(turns):
            await asyncio.sleep(0)
        return await transactions.write(add, number)

    async def ask() -> None:
        assert await asyncio.gather(*(transactions.write(add, number) for number in (1, 2, 4))) == [1, 2, 4]
        assert await asyncio.gather(*(later(number, 5 * number) for number in (5, 7, 8))) == [5, 7, 8]

    asyncio.run(ask())
    assert len(seen) == 2


def test_a_caller_who_writes_alone_waits_for_nobody_and_a_group_only_for_a_moment(
    transactions: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask() -> None:
        await asyncio.gather(*(transactions.write(add, number) for number in (1, 2, 4)))
        for number in (5, 7):
            await transactions.write(add, number)
        monkeypatch.setattr(web_transactions, "FILL_SECONDS", 60.0)
        for number in (8, 10, 11):
            await asyncio.wait_for(transactions.write(add, number), 30)

    asyncio.run(ask())
    assert kept(transactions) == [1, 2, 4, 5, 7, 8, 10, 11]


Decided = list[tuple[tuple[int, ...], bool]]


def jointly(seen: Decided) -> JointDecision[int, int]:
    """Keep numbers together. Refuse those divisible by three; 5 is decided alone; 7 and 49 together fail."""

    def decide(cx: Connection, numbers: Sequence[int], alone: bool) -> list[int | Refusal | None]:
        seen.append((tuple(numbers), alone))
        outcomes: list[int | Refusal | None] = []
        for number in numbers:
            if number % 3 == 0:
                outcomes.append(Malformed(f"{number} is divisible by three."))
            elif number == 5 and not alone:
                outcomes.append(None)
            else:
                cx.execute(sa.text("INSERT INTO numbers VALUES (:number)"), {"number": number})
                outcomes.append(number)
        if {7, 49} <= set(numbers):
            raise ZeroDivisionError
        return outcomes

    return decide


def joined(transactions: Transactions, decision: JointDecision[int, int], *numbers: int) -> Answers:
    """Write the numbers at one time, each for a caller of its own, by one joint decision."""

    async def ask() -> Answers:
        asked = [transactions.write_jointly(decision, number) for number in numbers]
        return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(ask())


def test_a_joint_decision_is_taken_once_for_those_who_wait(transactions: Transactions) -> None:
    seen: Decided = []
    answers = joined(transactions, jointly(seen), 1, 3, 5, 4)
    assert [answer if isinstance(answer, int) else type(answer) for answer in answers] == [1, Malformed, 5, 4]
    assert seen == [((1, 3, 5, 4), False), ((5,), True)]
    assert kept(transactions) == [1, 4, 5]


def test_a_joint_decision_that_fails_is_taken_for_each_alone(transactions: Transactions) -> None:
    seen: Decided = []
    assert joined(transactions, jointly(seen), 1, 7, 49) == [1, 7, 49]
    assert seen == [((1, 7, 49), False), ((1,), True), ((7,), True), ((49,), True)]
    assert kept(transactions) == [1, 7, 49]


def test_so_many_of_a_joint_decision_are_taken_before_others_have_their_turn(transactions: Transactions) -> None:
    seen: Decided = []
    decision = jointly(seen)

    async def ask() -> list[int]:
        return await asyncio.gather(
            *(transactions.write_jointly(decision, number, at_once=2) for number in (1, 2, 4, 8, 10))
        )

    assert asyncio.run(ask()) == [1, 2, 4, 8, 10]
    assert seen == [((1, 2), False), ((4, 8), False), ((10,), True)]
    assert kept(transactions) == [1, 2, 4, 8, 10]


def test_a_refusal_of_a_joint_decision_alone_keeps_its_writes_if_it_says_so(directory_db: Database) -> None:
    def decide(cx: Connection, numbers: Sequence[int], alone: bool) -> list[int | Refusal | None]:
        if not alone:
            return [None] * len(numbers)
        (number,) = numbers
        cx.execute(sa.text("INSERT INTO numbers VALUES (:number)"), {"number": number})
        return [Counted("No, and it counts.") if number % 2 else Malformed("No.")]

    transactions = Transactions(directory_db)
    with directory_db.begin() as cx:
        cx.execute(sa.text("CREATE TABLE numbers (number INTEGER PRIMARY KEY)"))
    assert [type(answer) for answer in joined(transactions, decide, 1, 2)] == [Counted, Malformed]
    assert [type(answer) for answer in joined(transactions, decide, 3)] == [Counted]
    assert kept(transactions) == [1, 3]
    with directory_db.begin() as cx:
        cx.execute(sa.text("DROP TABLE numbers"))


def test_on_postgresql_too_a_joint_decision_is_taken_for_those_who_wait(directory_db: Database) -> None:
    transactions = Transactions(directory_db)
    with directory_db.begin() as cx:
        cx.execute(sa.text("CREATE TABLE numbers (number INTEGER PRIMARY KEY)"))
    seen: Decided = []
    answers = joined(transactions, jointly(seen), 1, 3, 5, 4)
    assert [answer if isinstance(answer, int) else type(answer) for answer in answers] == [1, Malformed, 5, 4]
    assert seen == [((1, 3, 5, 4), False), ((5,), True)]
    assert joined(transactions, jointly(seen), 2, 7, 49) == [2, 7, 49]
    assert kept(transactions) == [1, 2, 4, 5, 7, 49]
    assert [type(answer) for answer in joined(transactions, jointly(seen), 2)] != [int], "it is there already"
    with directory_db.begin() as cx:
        cx.execute(sa.text("DROP TABLE numbers"))


def test_a_question_sees_what_was_committed_before_its_preparation_ended(transactions: Transactions) -> None:
    def take() -> int:
        with transactions.database.begin() as cx:
            return add(cx, 2)

    def question(cx: Connection, taken: int) -> tuple[int, int]:
        return taken, cx.execute(sa.text("SELECT count(*) FROM numbers")).scalar_one()

    assert asyncio.run(transactions.search("anna", take, question)) == (2, 1)


def test_on_postgresql_too_a_refused_decision_undoes_itself_and_no_other(directory_db: Database) -> None:
    transactions = Transactions(directory_db)
    with directory_db.begin() as cx:
        cx.execute(sa.text("CREATE TABLE numbers (number INTEGER PRIMARY KEY)"))
    answers = together(transactions, 1, 2, 3, 4)
    assert [type(answer) for answer in answers] == [int, int, Malformed, int]
    assert kept(transactions) == [1, 2, 4]
    with directory_db.begin() as cx:
        cx.execute(sa.text("DROP TABLE numbers"))
