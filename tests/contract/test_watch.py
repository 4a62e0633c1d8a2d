"""Whoever watches a database is told of every commit, and of nothing while there is none."""

import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from muniment.database.connections import Database, Unwritable
from muniment.database.polls import CommitWatch
from muniment.ground.clock import Instant
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.repositories import Repository


@pytest.fixture
def repository(repository_db: Database, now: Instant) -> Repository:
    with repository_db.begin() as cx:
        return repositories.add(cx, "demo", "11111111-1111-1111-1111-111111111111", "", now)


def test_a_commit_is_told_once_it_can_be_read(repository_db: Database, repository: Repository) -> None:
    watch = CommitWatch(repository_db)
    try:
        assert watch.has_new_commits(), "whoever begins to watch has seen nothing yet"
        for _ in range(3):
            while watch.has_new_commits():  # PostgreSQL's own chores commit too
                pass
            with repository_db.begin() as cx:
                changes.note(cx, repository.id, "0900000100000001", "created", 0)
            assert watch.has_new_commits()
    finally:
        watch.close()


@pytest.mark.only("sqlite", "PostgreSQL may tell of more than commits.")
def test_nothing_is_told_of_readers_and_of_what_was_undone(repository_db: Database, repository: Repository) -> None:
    watch = CommitWatch(repository_db)
    try:
        watch.has_new_commits()
        with repository_db.read() as cx:
            changes.latest(cx, repository.id)
        try:
            with repository_db.begin() as cx:
                changes.note(cx, repository.id, "0900000100000001", "created", 0)
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        assert not watch.has_new_commits()
    finally:
        watch.close()


def test_a_watch_goes_on_after_its_connection_was_lost(repository_db: Database, repository: Repository) -> None:
    watch = CommitWatch(repository_db)
    try:
        watch.has_new_commits()
        watch.close()
        with repository_db.begin() as cx:
            changes.note(cx, repository.id, "0900000100000001", "created", 0)
        assert watch.has_new_commits()
    finally:
        watch.close()


def test_it_is_asked_less_often_when_nothing_has_been_committed_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(f"sqlite:///{tmp_path}/watched.db")
    waited: list[float] = []
    stop = threading.Event()
    monkeypatch.setattr(stop, "wait", waited.append)
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    watch = CommitWatch(database)
    try:
        watch.has_new_commits()
        clock[0] += 60
        watch.has_new_commits()
        watch.wait(stop, 0.02, 0.05)
        with database.begin() as cx:
            cx.exec_driver_sql("CREATE TABLE anything (id INTEGER)")
        watch.has_new_commits()
        watch.wait(stop, 0.02, 0.05)
        clock[0] += 1
        watch.has_new_commits()
        watch.wait(stop, 0.02, 0.05)
        clock[0] += 60
        watch.wait(stop, 0.02, 0.05)
    finally:
        watch.close()
        database.close()
    assert waited == [0.05, 0.02, 0.02, 0.05]


def test_a_watch_keeps_no_file_open_that_was_found_unwritable(tmp_path: Path) -> None:
    """Memory that SQLite shares stays read-only in a process for as long as one connection of the process is open."""
    file = tmp_path / "watched.db"
    database = Database(f"sqlite:///{file}")
    watch = CommitWatch(database)
    try:
        watch.has_new_commits()
        assert _open(file)
        with pytest.raises(Unwritable), database.begin():
            raise Unwritable("as on a read-only disk")
        assert not _open(file)
        assert watch.has_new_commits()
    finally:
        watch.close()
        database.close()


def _open(file: Path) -> list[Path]:
    found = []
    for handle in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that lists them
            found.append(handle.readlink())
    return [path for path in found if str(path).startswith(str(file))]
