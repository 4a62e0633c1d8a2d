"""Ours 23: what a list and a change cost does not depend on how many entries there are, or a page shows."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from muniment.directory.entries import editing, entries, memberships
from tests.interface.by_rest import Rest
from tests.interface.test_namesakes import statements
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
