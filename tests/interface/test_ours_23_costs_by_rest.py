"""Ours 23: what a list and a change cost does not depend on how many entries there are, or a page shows."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
import sqlalchemy as sa

from muniment.database import audit
from muniment.database.connections import directory_tables
from muniment.database.transactions import Transactions
from muniment.directory.entries import editing, entries, memberships
from tests.interface.by_rest import Rest
from tests.interface.test_namesakes import statements
from tests.plans import sent_to
from tests.scenes import Site


@pytest.fixture
def rest(site: Site) -> Rest:
    return Rest(site)


def filled(rest: Rest, count: int) -> str:
    """Make a partition with so many users, each in a group of its own."""
    name = rest.partition()
    world = rest.site.world
    with world.directory_db.begin() as cx:
        partition = entries.find_partition(cx, world.names, name)
        for number in range(count):
            group = editing.add_group(cx, partition, f"group {number:03}", world.clock())
            memberships.add_member(cx, group, editing.add_user(cx, partition, f"user {number:03}", world.clock()))
    return name


@pytest.mark.parametrize("path", ["users", "groups"])
def test_a_page_takes_the_same_statements_whatever_it_holds(rest: Rest, path: str) -> None:
    few, many = filled(rest, 3), filled(rest, 60)
    rest.done("GET", f"/{path}", params={"where_partition_name": few})
    counts = []
    for name, size in ((few, "2"), (many, "2"), (many, "50")):
        with statements() as sent:
            page = rest.done("GET", f"/{path}", params={"where_partition_name": name, "page_size": size})
        assert page["actualPageSize"] == int(size)
        counts.append(len(sent))
    assert counts[0] == counts[1] == counts[2]


def test_of_two_writers_of_one_state_one_is_told(rest: Rest) -> None:
    partition = rest.partition()
    rest.user(partition, "ann")
    read, start = rest("GET", f"/users/ann@{partition}").headers["ETag"], threading.Barrier(4)

    def write(number: int) -> int:
        start.wait()
        headers = rest.matching(read)
        return rest("PATCH", f"/users/ann@{partition}", {"description": str(number)}, headers=headers).status_code

    with ThreadPoolExecutor(4) as threads:
        statuses = sorted(threads.map(write, range(4)))
    assert statuses == [200, 412, 412, 412]


def test_of_two_that_make_the_same_user_one_is_told(rest: Rest) -> None:
    partition, start = rest.partition(), threading.Barrier(4)

    def add(_: int) -> int:
        start.wait()
        return rest("POST", "/users", {"userPartitionID": partition, "name": "ann"}).status_code

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(add, range(4))) == [201, 409, 409, 409]


EVENTS = directory_tables.tables["audit_events"]


def added(rest: Rest, partition: str, name: str, *values: str, headers: dict[str, str] | None = None) -> int:
    body = {"userPartitionID": partition, "name": name, "values": [{"name": "mail", "values": list(values)}]}
    return rest("POST", "/users", body, headers=headers).status_code


@contextmanager
def in_one_transaction(count: int) -> Iterator[None]:
    """So many writes that can share a transaction wait for each other and do."""
    waiting: list[Any] = []
    outcomes: list[Any] = []
    decided = asyncio.Event()

    async def together(self: Transactions, decision: Any, item: Any, **_: Any) -> Any:
        waiting.append(item)
        place = len(waiting) - 1
        if len(waiting) == count:
            with self.database.begin() as cx:
                outcomes.extend(audit.unnamed(decision, cx, waiting, False))
            decided.set()
        await asyncio.wait_for(decided.wait(), 60)
        if isinstance(outcomes[place], Exception):
            raise outcomes[place]
        return outcomes[place]

    with patch.object(Transactions, "write_jointly", together):
        yield


def test_users_made_in_one_transaction_ask_once_who_makes_them_and_where(rest: Rest) -> None:
    partition = rest.partition()
    assert [added(rest, partition, name, "a@demo") for name in ("zoe", "yann")] == [201, 201]

    def sent_for(*names: str) -> int:
        with sent_to() as sent, in_one_transaction(len(names)), ThreadPoolExecutor(len(names)) as threads:
            assert [*threads.map(lambda name: added(rest, partition, name, "a@demo"), names)] == [201] * len(names)
        return len(sent)

    assert sent_for("bea", "cid", "dora") - sent_for("ann") == 2, "one more for each more: its entry"


def test_of_users_made_in_one_transaction_each_is_refused_alone(rest: Rest) -> None:
    partition = rest.partition()
    rest.user(partition, "taken")
    stranger = {"Authorization": "Bearer nobody"}
    asked: list[tuple[str, dict[str, str] | None]] = [("new", None), ("taken", None), ("other", stranger)]
    with in_one_transaction(3), ThreadPoolExecutor(3) as threads:
        statuses = [*threads.map(lambda each: added(rest, partition, each[0], headers=each[1]), asked)]
    assert statuses == [201, 409, 401]
    with rest.site.world.directory_db.read() as cx:
        of_partition = sa.select(EVENTS.c.target, EVENTS.c.who).where(EVENTS.c.target.like(f"%@{partition}"))
        events = cx.execute(of_partition.order_by(EVENTS.c.target)).all()
    assert [target for target, _ in events] == [f"new@{partition}", f"taken@{partition}"]
    assert len({who for _, who in events}) == 1


def test_a_user_refused_after_the_first_write_leaves_nothing_and_the_others_are_made(rest: Rest) -> None:
    partition, start = rest.partition(), threading.Barrier(6)

    def add(number: int) -> int:
        start.wait()
        return added(rest, partition, f"user {number}", "x" * (5000 if number % 2 else 10))

    with ThreadPoolExecutor(6) as threads:
        assert [*threads.map(add, range(6))] == [201, 400] * 3
    listed = rest.listed("/users", "users", where_partition_name=partition)
    assert listed == [f"user {number}@{partition}" for number in (0, 2, 4)]
