"""One statement, asked again and again: it says what holds now, and survives a lost connection."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
import sqlalchemy as sa

from muniment.database.connections import Busy, Database
from muniment.database.polls import Poll
from muniment.database.transactions import Transactions, _SharedPoll
from muniment.directory import version_stamps
from muniment.ground.clock import Instant
from tests.office import Office


def test_a_glance_sees_each_commit_and_nothing_that_was_undone(office: Office, now: Instant) -> None:
    glance = Poll(office.db, version_stamps.BOTH)
    try:
        before = tuple(glance.row())
        assert tuple(glance.row()) == before
        issued = office.issue(now)
        assert tuple(glance.row()) == before
        with suppress(ZeroDivisionError), office.db.begin() as cx:
            cx.execute(sa.text("UPDATE grants SET revoked = 1"))
            raise ZeroDivisionError
        assert tuple(glance.row()) == before
        office.revoke(issued.access_token, now)
        after = tuple(glance.row())
        assert (after[0] == before[0], after[1] == before[1]) == (True, False)
        office.disable(office.alice, True, now)
        assert glance.row()[0] != before[0]
        assert glance.opened == 1
    finally:
        glance.close()


@pytest.mark.only("postgresql", "SQLite has no server.")
def test_a_glance_goes_on_after_the_server_has_closed_its_connection(office: Office) -> None:
    glance = Poll(office.db, version_stamps.BOTH)
    try:
        before = tuple(glance.row())
        with office.db.begin() as cx:
            cx.execute(
                sa.text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            )
        assert tuple(glance.row()) == before
        assert glance.opened == 2
    finally:
        glance.close()


def test_a_database_that_cannot_be_reached_is_busy() -> None:
    database = Database("postgresql+psycopg://nobody@127.0.0.1:1/nothing")
    glance = Poll(database, version_stamps.BOTH)
    with pytest.raises(Busy):
        glance.row()
    database.close()


def test_callers_who_wait_share_a_question_that_began_after_they_came() -> None:
    began: list[int] = []

    async def work() -> list[Sequence[Any]]:
        gates = [asyncio.Event() for _ in range(3)]

        async def ask() -> Sequence[Any]:
            number = len(began)
            began.append(number)
            await gates[number].wait()
            return (number,)

        shared = _SharedPoll(ask)
        first = asyncio.create_task(shared.row())
        while not began:
            await asyncio.sleep(0)
        late = [asyncio.create_task(shared.row()) for _ in range(5)]
        await asyncio.sleep(0)
        assert began == [0], "whoever came during a question waits for the next"
        late[0].cancel()
        for gate in gates:
            gate.set()
        return [await first, *await asyncio.gather(*late[1:])]

    assert asyncio.run(asyncio.wait_for(work(), 30)) == [(0,)] + [(1,)] * 4
    assert began == [0, 1]


def test_both_ways_to_ask_say_the_same(office: Office) -> None:
    transactions = Transactions(Database(office.db.engine.url.render_as_string(hide_password=False)))

    async def work() -> list[Sequence[Any]]:
        return await asyncio.gather(*(transactions.glance(version_stamps.BOTH) for _ in range(3)))

    try:
        rows = [*asyncio.run(work()), transactions.glance_at_once(version_stamps.BOTH)]
        assert len({tuple(row) for row in rows}) == 1
    finally:
        transactions.close()
