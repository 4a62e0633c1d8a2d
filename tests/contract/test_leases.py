"""A lease in the database: one holder at a time, over all machines, and no longer than it is renewed."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
import structlog

from muniment.database.connections import Database
from muniment.ground.clock import SECOND, Instant
from muniment.repository.refusals import InUse
from muniment.repository.search.agent import agent
from muniment.repository.search.index.tantivy import generations
from muniment.repository.search.index.tantivy.generations import FolderEngine
from muniment.repository.store import leases
from muniment.repository.store.leases import HeldLease, Lease
from tests.clock import Clock
from tests.shelf import Shelf
from tests.unit.repository.search.agent.test_agent import keys, reached, reader
from tests.waiting import until

WORK = Lease("agent", "index")


@pytest.fixture
def second(repository_db: Database) -> Iterator[Database]:
    """The same database, as another process has it."""
    other = Database(repository_db.engine.url.render_as_string(hide_password=False))
    yield other
    other.close()


def test_one_holder_at_a_time_until_its_time_is_over(repository_db: Database, second: Database, now: Instant) -> None:
    with repository_db.begin() as cx:
        assert leases.take(cx, WORK, "one", now, 30)
    with second.begin() as cx:
        assert not leases.take(cx, WORK, "two", now + 30 * SECOND - 1, 30)
        assert not leases.renew(cx, WORK, "two", now, 30)
        assert leases.take(cx, Lease("rebuild", "index"), "two", now, 30)
        assert leases.take(cx, Lease("agent", "other index"), "two", now, 30)
    with repository_db.begin() as cx:
        assert leases.renew(cx, WORK, "one", now + 29 * SECOND, 30)
    with second.begin() as cx:
        assert not leases.take(cx, WORK, "two", now + 58 * SECOND, 30)
        assert leases.take(cx, WORK, "two", now + 59 * SECOND, 30), "it ran out"
    with repository_db.begin() as cx:
        assert not leases.renew(cx, WORK, "one", now + 59 * SECOND, 30), "it was lost"
        leases.release(cx, WORK, "one")
        assert not leases.take(cx, WORK, "one", now + 60 * SECOND, 30), "who lost it does not give it back"
        leases.release(cx, WORK, "two")
        assert leases.take(cx, WORK, "one", now + 60 * SECOND, 30)


def test_the_same_holder_takes_its_own_at_once(repository_db: Database, second: Database, now: Instant) -> None:
    with repository_db.begin() as cx:
        assert leases.take(cx, WORK, "one", now, 30)
    with second.begin() as cx:
        assert leases.take(cx, WORK, "one", now + 1, 30)


def test_of_many_that_take_it_at_one_time_one_gets_it(repository_db: Database, now: Instant) -> None:
    barrier, got = threading.Barrier(6), list[str]()

    def take(holder: str) -> None:
        barrier.wait()
        with repository_db.begin() as cx:
            if leases.take(cx, WORK, holder, now, 30):
                got.append(holder)

    threads = [threading.Thread(target=take, args=(str(number),)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 1


def test_a_tenure_asks_the_database_now_and_then_and_says_once_that_it_waits(
    repository_db: Database, second: Database
) -> None:
    clock, statements = Clock(), list[str]()
    one, two = HeldLease(repository_db, WORK, "one", clock), HeldLease(second, WORK, "two", clock)
    assert one.holds()
    sa.event.listen(repository_db.engine, "after_cursor_execute", lambda _c, _k, sql, *_rest: statements.append(sql))
    assert all(one.holds() for _ in range(100))
    assert statements == [], "it was renewed a moment ago"
    with structlog.testing.capture_logs() as said:
        assert not any(two.holds() for _ in range(5))
    assert [line["event"] for line in said] == ["another process does this work: waiting for its lease"]
    for _ in range(10):
        clock.advance(leases.SECONDS / 2)
        assert one.holds()
        assert not two.holds()
    clock.advance(leases.SECONDS + 1)
    assert two.holds()
    assert not one.holds(), "it stops when it was lost"
    two.release()
    assert one.holds()
    one.release()


class Elsewhere(FolderEngine):
    """The same indexes, as a process of another machine has them: its locks of files are not seen here."""

    def __init__(self, folder: Path, place: str) -> None:
        super().__init__(folder)
        self.place = place

    def holder(self) -> str:
        return self.place

    def follower(self) -> str:
        return "one for all"


def test_of_two_agents_of_one_index_one_works_and_the_other_takes_over(
    shelf: Shelf, second: Database, tmp_path: Path
) -> None:
    clock = Clock()
    folders, stops, threads = [tmp_path / "first", tmp_path / "second"], [], []
    for database, folder in zip((shelf.database, second), folders, strict=True):
        stop = threading.Event()
        work = (database, Elsewhere(folder, folder.name), stop, clock)
        thread = threading.Thread(target=agent.run, args=work)
        index = reader(folders[0], shelf)
        thread.start()
        stops.append(stop)
        threads.append(thread)
        until(lambda index=index: reached(index, shelf))  # type: ignore[misc]
    own = folders[1] / str(shelf.repository.id)
    try:
        made = shelf.add("pump")
        until(lambda: reached(index, shelf))
        assert keys(index) == [made]
        assert generations.current(own) is None, "the other one waits"
        with shelf.database.begin() as cx:  # what a killed machine leaves
            stops[0].set()
            cx.execute(leases.leases.update().values(holder="a machine that is gone"))
        threads[0].join(30)
        assert generations.current(own) is None
        clock.advance(leases.SECONDS + 1)
        other = reader(folders[1], shelf)
        until(lambda: reached(other, shelf))
        assert keys(other) == [made]
    finally:
        for stop, thread in zip(stops, threads, strict=True):
            stop.set()
            thread.join(30)
    with shelf.database.read() as cx:
        assert cx.execute(sa.select(sa.func.count()).select_from(leases.leases)).scalar_one() == 0, "given back"


def test_an_agent_that_was_killed_goes_on_at_once_at_its_place(shelf: Shelf, tmp_path: Path) -> None:
    engine, clock = FolderEngine(tmp_path / "indexes"), Clock()
    with engine.sole_agent() as holder:
        lost = HeldLease(shelf.database, Lease("agent", engine.follower()), holder, clock)
        assert lost.holds()
    stop = threading.Event()
    thread = threading.Thread(target=agent.run, args=(shelf.database, engine, stop, clock))
    thread.start()
    try:
        index = reader(tmp_path / "indexes", shelf)
        until(lambda: reached(index, shelf), seconds=leases.SECONDS / 2)
    finally:
        stop.set()
        thread.join(30)


def test_a_rebuild_that_lost_its_lease_stops_and_leaves_the_index_as_it_was(shelf: Shelf, tmp_path: Path) -> None:
    folder, clock = tmp_path / "indexes", Clock()
    made = shelf.add("pump")
    engine = Elsewhere(folder, "here")
    agent.rebuild(shelf.database, shelf.repository, engine, clock)
    before = generations.current(folder / str(shelf.repository.id))

    def lose(_indexed: int) -> None:
        clock.advance(leases.SECONDS + 1)
        with shelf.database.begin() as cx:
            cx.execute(leases.leases.update().values(holder="there", until=clock() + 30 * SECOND))

    with pytest.raises(InUse, match="did not renew its lease"):
        agent.rebuild(shelf.database, shelf.repository, engine, clock, lose)
    assert generations.current(folder / str(shelf.repository.id)) == before
    with pytest.raises(InUse, match="being rebuilt already"):
        agent.rebuild(shelf.database, shelf.repository, engine, clock)
    clock.advance(leases.SECONDS + 1)
    agent.rebuild(shelf.database, shelf.repository, engine, clock)
    assert keys(reader(folder, shelf)) == [made]
