"""Positions become visible in the order of commits: what a reader has passed, no later commit can precede.

Source: design.md 4, "Change log"; issue 3, "The parts, by name".
"""

import threading

import pytest

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.change_log.changes import START, Position
from muniment.repository.store.repositories import Repository
from tests.waiting import PATIENCE

A, B = "a" * 16, "b" * 16


@pytest.fixture
def repository(repository_db: Database, now: Instant) -> Repository:
    with repository_db.begin() as cx:
        return repositories.add(cx, "demo", "11111111-1111-1111-1111-111111111111", "", now)


class Writer(threading.Thread):
    """Takes a position, and commits once it is told to."""

    def __init__(self, database: Database, repository: Repository, object_id: str) -> None:
        super().__init__(daemon=True)
        self._database, self._repository, self._object_id = database, repository, object_id
        self.began, self.noted, self.may_commit, self.committed = (threading.Event() for _ in range(4))
        self.position = START

    def run(self) -> None:
        self.began.set()
        with self._database.begin() as cx:
            self.position = changes.note(cx, self._repository.id, self._object_id, "created", 0)
            self.noted.set()
            self.may_commit.wait(30)
        self.committed.set()


class Reader:
    """Follows the log as the index agent does: from where it stands, moving past what it has read."""

    def __init__(self, database: Database, repository: Repository) -> None:
        self._database, self._repository = database, repository
        self.position: Position = START
        self.read: list[str] = []

    def catch_up(self) -> None:
        with self._database.read() as cx:
            for change in changes.after(cx, self._repository.id, self.position, 100):
                assert change.position > self.position
                self.position = change.position
                self.read.append(change.object_id)


def test_a_writer_that_commits_late_is_not_skipped(repository_db: Database, repository: Repository) -> None:
    first, second = Writer(repository_db, repository, A), Writer(repository_db, repository, B)
    reader = Reader(repository_db, repository)
    first.start()
    assert first.noted.wait(PATIENCE)
    second.may_commit.set()
    second.start()
    if repository_db.dialect == "sqlite":
        # One writer at a time: the second waits for the first, so that the sequence is the order.
        assert second.began.wait(PATIENCE)
        assert not second.noted.wait(0.3)
    else:
        assert second.committed.wait(PATIENCE)
        assert second.position > first.position
    reader.catch_up()
    assert reader.read == [], "what the first writer's line may still precede was read"
    first.may_commit.set()
    assert first.committed.wait(PATIENCE)
    assert second.committed.wait(PATIENCE)
    reader.catch_up()
    assert reader.read == [A, B]
    reader.catch_up()
    assert reader.read == [A, B]


@pytest.mark.only("postgresql", "On SQLite a second writer waits.")
def test_what_a_search_must_not_overlook_is_pending_before_the_agent_may_read_it(
    repository_db: Database, repository: Repository
) -> None:
    first, second = Writer(repository_db, repository, A), Writer(repository_db, repository, B)
    first.start()
    assert first.noted.wait(PATIENCE)
    second.may_commit.set()
    second.start()
    assert second.committed.wait(PATIENCE)
    with repository_db.read() as cx:
        assert changes.after(cx, repository.id, START, 10) == []
        assert changes.pending(cx, repository.id, START, [A, B]) == {B}
    first.may_commit.set()
    assert first.committed.wait(PATIENCE)


def test_many_writers_at_once_are_all_read_once_and_in_order(repository_db: Database, repository: Repository) -> None:
    reader = Reader(repository_db, repository)
    wanted = [f"{n:016x}" for n in range(60)]

    def write(mine: list[str]) -> None:
        for object_id in mine:
            with repository_db.begin() as cx:
                changes.note(cx, repository.id, object_id, "created", 0)

    writers = [threading.Thread(target=write, args=(wanted[n::6],), daemon=True) for n in range(6)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        reader.catch_up()
    reader.catch_up()
    assert sorted(reader.read) == wanted
