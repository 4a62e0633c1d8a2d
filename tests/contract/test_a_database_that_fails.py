"""A database that is full, read-only, locked or gone is told from a bug, by name, and used again once it is well."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy.engine import Connection

from muniment.database.connections import Busy, Database, Unwritable
from tests.conftest import Fresh


def _raised(state: str) -> Callable[[Connection], None]:
    def fail(cx: Connection) -> None:
        cx.exec_driver_sql(f"DO $$ BEGIN RAISE EXCEPTION 'as it would be' USING ERRCODE = '{state}'; END $$")

    return fail


def _full(cx: Connection) -> None:
    if cx.dialect.name == "postgresql":
        _raised("53100")(cx)
    cx.exec_driver_sql("PRAGMA max_page_count = 1")
    cx.exec_driver_sql("CREATE TABLE much AS SELECT zeroblob(1000000) AS bytes")


def _read_only(cx: Connection) -> None:
    read_only = "SET TRANSACTION READ ONLY" if cx.dialect.name == "postgresql" else "PRAGMA query_only = ON"
    cx.exec_driver_sql(read_only)
    cx.exec_driver_sql("CREATE TABLE one (id INTEGER)")


@pytest.mark.parametrize(("trouble", "sentence"), [(_full, "disk is full"), (_read_only, "read-only")])
def test_a_database_that_takes_no_writes_is_unwritable_and_taken_into_use_again(
    repository_db: Database, trouble: Callable[[Connection], None], sentence: str
) -> None:
    with pytest.raises(Unwritable, match=sentence), repository_db.begin() as cx:
        trouble(cx)
    with repository_db.begin() as cx:
        cx.exec_driver_sql("CREATE TABLE one (id INTEGER)")


@pytest.mark.only("postgresql", "A file does not go away while it is open.")
def test_a_database_that_is_gone_is_busy_and_found_again(fresh: Fresh) -> None:
    database = Database(fresh("repository"))
    with pytest.raises(Busy, match="cannot be reached"), database.begin() as cx:
        cx.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")
    with database.begin() as cx:
        assert cx.exec_driver_sql("SELECT 1").scalar() == 1
    database.close()
    nobody = Database("postgresql+psycopg://postgres@127.0.0.1:1/none")
    with pytest.raises(Busy, match="cannot be reached"), nobody.read() as cx:
        pass
    nobody.close()


@contextmanager
def held(url: str) -> Iterator[None]:
    """Hold the database's one write, or PostgreSQL's table, as another process would."""
    other = Database(url)
    with other.begin() as cx:
        if other.dialect == "postgresql":
            cx.exec_driver_sql("LOCK TABLE repositories")
        yield
    other.close()


def test_a_locked_database_is_busy_after_the_time_allowed_and_is_read_meanwhile(fresh: Fresh) -> None:
    url = fresh("repository")
    database = Database(url, busy_seconds=0.2)
    with held(url):
        with pytest.raises(Busy, match="busy with other writes"), database.begin() as cx:
            cx.exec_driver_sql("DELETE FROM repositories")
        with database.read() as cx:
            assert cx.exec_driver_sql("SELECT count(*) FROM changes").scalar() == 0
    with database.begin() as cx:
        cx.exec_driver_sql("DELETE FROM repositories")
    database.close()


@pytest.mark.only("sqlite", "PostgreSQL gives the lock to whoever waits for it.")
def test_a_write_that_waits_begins_as_soon_as_the_other_ends(fresh: Fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a process that writes all the time keeps another's writes waiting: SQLite's own wait looks every 100 ms."""
    url = fresh("repository")
    database, pauses, sleep = Database(url), list[float](), time.sleep

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        sleep(seconds)
        if sum(pauses) > 0.3:
            ended.set()

    here, ended = threading.Event(), threading.Event()
    monkeypatch.setattr(time, "sleep", pause)

    def hold() -> None:
        with held(url):
            here.set()
            assert ended.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert here.wait(60)
    with database.begin() as cx:
        cx.exec_driver_sql("DELETE FROM repositories")
        assert cx.exec_driver_sql("PRAGMA busy_timeout").scalar() == 0, "SQLite waits in its own way"
    holder.join()
    assert 0 < max(pauses) <= 0.02, "it looks again so soon"
    database.close()


def test_a_mistake_of_ours_is_a_bug(repository_db: Database) -> None:
    with pytest.raises(Exception, match="nothing_here") as raised, repository_db.begin() as cx:
        cx.exec_driver_sql("SELECT * FROM nothing_here")
    assert not isinstance(raised.value, Busy)
