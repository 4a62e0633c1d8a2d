"""A question that takes the database too long is stopped, and takes nothing from anybody else."""

import asyncio
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import Busy, Database
from muniment.database.transactions import Transactions

ENDLESS = sa.text(
    "WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers) SELECT count(*) FROM numbers"
)


def endless(cx: Connection) -> int:
    counted: int = cx.execute(ENDLESS).scalar_one()
    return counted


def short(cx: Connection) -> int:
    one: int = cx.execute(sa.text("SELECT 1")).scalar_one()
    return one


@pytest.fixture
def transactions(repository_db: Database) -> Iterator[Transactions]:
    made = Transactions(repository_db, question_seconds=0.3)
    yield made
    made.close()


def test_a_statement_is_stopped_and_the_next_reader_has_all_the_time(repository_db: Database) -> None:
    for _ in range(3):
        with pytest.raises(Busy, match="longer than one request"), repository_db.read(within=0.1) as cx:
            endless(cx)
    with repository_db.read() as cx:
        assert short(cx) == 1
    with repository_db.read(within=0.0001) as cx:
        pass
    with repository_db.read() as cx:  # the same connection, whose time is over
        counted = sa.text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) "
                          "SELECT count(*) FROM n")  # fmt: skip
        assert cx.execute(counted).scalar_one() == 300_000


def test_endless_questions_stop_and_the_loop_and_other_questions_go_on(transactions: Transactions) -> None:
    async def ask() -> None:
        crowd = [asyncio.create_task(transactions.read_long("crowd", endless)) for _ in range(4)]
        await asyncio.sleep(0)
        assert await transactions.read(short) == 1
        assert await transactions.off_loop(lambda: 2) == 2
        assert not crowd[0].done()  # both were answered while it ran
        outcomes = await asyncio.gather(*crowd, return_exceptions=True)
        assert all(type(outcome).__name__ in {"TookTooLong", "Overloaded"} for outcome in outcomes)
        assert await transactions.read_long("anybody", short) == 1

    asyncio.run(ask())


def test_light_questions_and_searches_do_not_wait_for_heavy_ones(transactions: Transactions) -> None:
    async def ask() -> None:
        heavy = [asyncio.create_task(transactions.read_long(f"a{n}", endless, heavy=True)) for n in range(3)]
        await asyncio.sleep(0)
        assert await transactions.read_long("b", short) == 1
        assert await transactions.search("b", lambda: 2, lambda cx, taken: taken + short(cx)) == 3
        assert not any(each.done() for each in heavy), "both were answered while the heavy ones ran"
        outcomes = await asyncio.gather(*heavy, return_exceptions=True)
        assert {type(outcome).__name__ for outcome in outcomes} <= {"TookTooLong", "Overloaded"}

    asyncio.run(ask())
