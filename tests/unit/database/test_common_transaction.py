"""Requests of one task share a write transaction, which is kept whole or not at all (decision 0090)."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.common_transaction import CommonTransaction
from muniment.database.connections import Database, TookTooLong, Unwritable
from muniment.database.holds import Holds
from muniment.database.transactions import Transactions
from muniment.ground.refusals import Malformed, Overloaded
from tests.waiting import PATIENCE, until_on_loop


@pytest.fixture
def transactions(repository_db: Database) -> Iterator[Transactions]:
    with repository_db.begin() as cx:
        cx.execute(sa.text("CREATE TABLE numbers (number INTEGER PRIMARY KEY)"))
    yield Transactions(repository_db, hold_seconds=60)
    with repository_db.begin() as cx:
        cx.execute(sa.text("DROP TABLE numbers"))


def add(cx: Connection, number: int) -> int:
    """Keep a number; refuse one that is divisible by three, after it was kept."""
    cx.execute(sa.text("INSERT INTO numbers VALUES (:number)"), {"number": number})
    if number % 3 == 0:
        raise Malformed(f"{number} is divisible by three.")
    return number


def numbers(cx: Connection) -> list[int]:
    return list(cx.scalars(sa.text("SELECT number FROM numbers ORDER BY number")))


def kept(transactions: Transactions) -> list[int]:
    with transactions.database.read() as cx:
        return numbers(cx)


def test_everything_is_seen_within_and_nothing_outside_before_the_commit(transactions: Transactions) -> None:
    async def ask() -> None:
        done: list[str] = []
        async with transactions.common("anna") as common:
            common.after_commit(lambda: done.append("committed"))
            common.after_rollback(lambda: done.append("rolled back"))
            assert await transactions.write(add, 1) == 1
            with pytest.raises(Malformed):
                await transactions.write(add, 3)
            await transactions.write(add, 4)
            assert await transactions.read(numbers) == [1, 4]
            assert kept(transactions) == []
            with pytest.raises(Malformed):
                await transactions.read_long("anna", numbers)
            with pytest.raises(Malformed):
                await transactions.search("anna", lambda: None, lambda cx, _: numbers(cx))
            assert done == []
            await common.commit()
            assert done == ["committed"]
        assert done == ["committed"]
        assert not transactions.in_common
        assert await transactions.read(numbers) == [1, 4]

    asyncio.run(ask())


@pytest.mark.slow
@pytest.mark.parametrize("leaving", ["returns", "raises", "is cancelled"])
def test_a_block_that_does_not_commit_keeps_nothing(transactions: Transactions, leaving: str) -> None:
    done: list[str] = []
    inside = threading.Event()

    def slowly(cx: Connection) -> None:
        add(cx, 2)
        inside.set()
        threading.Event().wait(0.2)
        add(cx, 4)

    async def block() -> None:
        async with transactions.common("anna") as common:
            common.after_commit(lambda: done.append("committed"))
            common.after_rollback(lambda: done.append("rolled back"))
            await transactions.write(add, 1)
            if leaving == "raises":
                raise LookupError
            if leaving == "is cancelled":
                await transactions.write(slowly)

    async def ask() -> None:
        task = asyncio.create_task(block())
        if leaving == "is cancelled":
            await asyncio.to_thread(inside.wait, 10)
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert done == ["rolled back"]
        # The connection is free, and nobody waits.
        assert await transactions.write(add, 5) == 5

    asyncio.run(ask())
    assert kept(transactions) == [5]


@pytest.mark.parametrize("ending", ["is cancelled", "loses the connection"])
def test_what_a_commit_may_have_stored_is_not_cleaned_up(
    transactions: Transactions, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit succeeds in both cases, but only who was cancelled can know that."""
    done: list[str] = []
    inside, goes_on = threading.Event(), threading.Event()
    commit = CommonTransaction._commit

    def commit_slowly(common: CommonTransaction) -> None:
        inside.set()
        goes_on.wait(PATIENCE)
        commit(common)
        if ending == "loses the connection":
            common._is_committed = False  # the answer to COMMIT never came
            raise Unwritable("The database is gone.") from sa.exc.OperationalError("COMMIT", {}, Exception("lost"))

    async def block() -> None:
        async with transactions.common("anna") as common:
            common.after_commit(lambda: done.append("committed"))
            common.after_rollback(lambda: done.append("rolled back"))
            await transactions.write(add, 1)
            await common.commit()

    async def ask() -> None:
        task = asyncio.create_task(block())
        await asyncio.to_thread(inside.wait, 10)
        if ending == "is cancelled":
            task.cancel()
        goes_on.set()
        outcome = (await asyncio.gather(task, return_exceptions=True))[0]
        assert isinstance(outcome, asyncio.CancelledError if ending == "is cancelled" else Unwritable)

    monkeypatch.setattr(CommonTransaction, "_commit", commit_slowly)
    asyncio.run(ask())
    assert kept(transactions) == [1]
    assert done == (["committed"] if ending == "is cancelled" else [])


ENDLESS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
    "postgresql": "SELECT pg_sleep(30)",
}


def endless(cx: Connection) -> None:
    """Write a number, then do what never ends."""
    add(cx, 2)
    cx.execute(sa.text(ENDLESS[cx.dialect.name])).all()


def short_statements(cx: Connection) -> None:
    """Write short statements without an end."""
    number = 1
    while True:
        number += 3
        add(cx, number)


# On PostgreSQL a transaction of many short statements keeps nobody waiting.
@pytest.mark.parametrize(
    "how", ["a long statement", pytest.param("many short ones", marks=pytest.mark.only("sqlite")), "no decision"]
)
def test_a_transaction_that_holds_the_writer_too_long_is_rolled_back(transactions: Transactions, how: str) -> None:
    transactions._hold_seconds = 0.05
    done: list[str] = []

    async def ask() -> None:
        async with transactions.common("anna") as common:
            common.after_rollback(lambda: done.append("rolled back"))
            await transactions.write(add, 1)
            if how == "no decision":
                await until_on_loop(lambda: common._connection is None, "the transaction does not end")
            else:
                with pytest.raises((TookTooLong, Overloaded)):
                    await transactions.write(endless if how == "a long statement" else short_statements)
            # The writer is free before the block ends.
            with transactions.database.begin() as cx:
                add(cx, 5)
            with pytest.raises(Overloaded):
                common.check_time()
            with pytest.raises(Overloaded):
                await transactions.write(add, 4)
            with pytest.raises(Overloaded):
                await common.commit()
        assert done == ["rolled back"]

    asyncio.run(ask())
    assert kept(transactions) == [5]


def test_nothing_is_held_before_the_first_write(transactions: Transactions) -> None:
    async def ask() -> None:
        async with transactions.common("anna") as common:
            assert await transactions.read(numbers) == []
            assert await transactions.read_long("anna", numbers) == []
            assert not common.has_begun
            with transactions.database.begin() as cx:
                add(cx, 5)
            async with transactions.common("bert"):
                assert await transactions.write(add, 1) == 1
            assert await transactions.read(numbers) == [5]
            await common.commit()

    asyncio.run(ask())


@pytest.mark.slow
@pytest.mark.only("sqlite", "On PostgreSQL a transaction keeps nobody waiting.")
def test_who_held_the_writer_waits_and_others_go_first(
    transactions: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller waits four times as long, and everybody else's batches once, also those of another process."""
    elsewhere = Transactions(Database(transactions.database.engine.url.render_as_string()), hold_seconds=60)

    ends, rest = list[float](), Holds._rest

    def noted(self: Holds, *about: Any) -> None:
        ends.append(time.monotonic())
        rest(self, *about)

    monkeypatch.setattr(Holds, "_rest", noted)

    async def hold_too_long() -> None:
        with suppress(TookTooLong, Overloaded):
            async with transactions.common("anna"):
                await transactions.write(endless)

    async def batch(where: Transactions, caller: str, number: int) -> float:
        async with where.common(caller) as common:
            await where.write(add, number)
            began = time.monotonic()
            await common.commit()
        return began

    async def ask() -> None:
        transactions._hold_seconds = 0.05
        await hold_too_long()
        transactions._hold_seconds = 60
        anna, bert = await asyncio.gather(batch(transactions, "anna", 4), batch(elsewhere, "bert", 7))
        assert bert - ends[0] > 0.04
        assert anna - ends[0] > 0.19

    asyncio.run(ask())
    elsewhere.close()
    assert kept(transactions) == [4, 7]


def test_one_is_open_at_a_time_and_others_wait_for_their_turn(transactions: Transactions) -> None:
    order: list[str] = []

    async def one(name: str, number: int) -> None:
        async with transactions.common(name) as common:
            await transactions.write(add, number)
            order.append(f"{name} in")
            await transactions.read(numbers)
            await common.commit()
            order.append(f"{name} out")

    async def ask() -> None:
        many = [one("anna", number) for number in (1, 4, 7, 10)]
        outcomes = await asyncio.gather(*many, one("bert", 2), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes].count(Overloaded) == 1

    asyncio.run(ask())
    assert kept(transactions) == [1, 2, 4, 7]
    assert all(place.endswith(("in", "out")[at % 2]) for at, place in enumerate(order))
    assert order.index("bert in") < order.index("anna in", order.index("anna in", 2) + 1)


@pytest.mark.only("sqlite", "PostgreSQL keeps a transaction that failed, and refuses its commit.")
def test_where_the_database_gives_up_the_transaction_nothing_is_kept(transactions: Transactions) -> None:
    def lose(cx: Connection) -> None:
        cx.connection.driver_connection.rollback()  # type: ignore[union-attr]
        raise LookupError

    async def ask() -> None:
        async with transactions.common("anna") as common:
            await transactions.write(add, 1)
            with pytest.raises(LookupError):
                await transactions.write(lose)
            with pytest.raises(Unwritable):
                await transactions.write(add, 2)
            with pytest.raises(Unwritable):
                await common.commit()
        assert await transactions.write(add, 4) == 4

    asyncio.run(ask())
    assert kept(transactions) == [4]
