"""A schema that is not this release's: a migration killed in the middle is done again; a newer one is left alone."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

import alembic.command
import alembic.script
import pytest
import sqlalchemy as sa
from sqlalchemy import event

from muniment.database import schema
from muniment.database.connections import Database, Half
from muniment.database.schema import SchemaMismatch
from muniment.ground.clock import Instant
from tests.conftest import Fresh
from tests.releases import next_release

PATIENCE = 60


@pytest.fixture
def next_migrations(tmp_path: Path) -> Iterator[None]:
    """Give each half a second migration, as the next release will."""
    with next_release(tmp_path / "next"):
        yield


def _migrate_until_killed(url: str, half: Half, last: int) -> None:
    database = Database(url)
    left = iter(range(last))

    @event.listens_for(database.engine, "after_cursor_execute")
    def count(*_about: Any) -> None:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    schema.migrate(database, half)


def _statements(url: str, half: Half) -> int:
    database = Database(url)
    sent: list[str] = []
    event.listen(database.engine, "after_cursor_execute", lambda _c, _k, statement, *_rest: sent.append(statement))
    schema.migrate(database, half)
    database.close()
    return len(sent)


def _tables(database: Database) -> dict[str, list[str]]:
    seen = sa.inspect(database.engine)
    return {table: sorted(column["name"] for column in seen.get_columns(table)) for table in seen.get_table_names()}


@pytest.mark.campaign_on("postgresql")
@pytest.mark.parametrize("half", get_args(Half))
@pytest.mark.usefixtures("next_migrations")
def test_a_migration_killed_at_any_statement_is_finished_by_the_next(fresh: Fresh, half: Half) -> None:
    whole = Database(fresh())
    count = _statements(whole.engine.url.render_as_string(hide_password=False), half)
    assert count > 20
    for last in sorted({0, 3, 4, *range(5, count, max(1, count // 4)), count - 2, count - 1}):
        url = fresh()
        arguments = (url, half, last)
        child = multiprocessing.get_context("fork").Process(target=_migrate_until_killed, args=arguments)
        child.start()
        child.join(PATIENCE)
        assert child.exitcode == -signal.SIGKILL, f"statement {last} of {count}"
        database = Database(url)
        schema.migrate(database, half)
        schema.check_schema(database, half)
        assert _tables(database) == _tables(whole), f"killed after statement {last} of {count}"
        database.close()
    whole.close()


def _migrate(url: str, half: Half) -> None:
    database = Database(url)
    schema.migrate(database, half)
    database.close()


@pytest.mark.only("postgresql", "On SQLite a process has the data folder to itself.")
@pytest.mark.parametrize("half", get_args(Half))
@pytest.mark.usefixtures("next_migrations")
def test_machines_that_migrate_at_one_time_do_it_one_after_the_other(fresh: Fresh, half: Half) -> None:
    url = fresh()
    children = [multiprocessing.get_context("fork").Process(target=_migrate, args=(url, half)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(PATIENCE)
    assert [child.exitcode for child in children] == [0, 0, 0]
    database = Database(url)
    schema.check_schema(database, half)
    database.close()


@pytest.mark.only("postgresql", "SQLite limits no statement.")
def test_a_migration_of_a_large_table_has_as_long_as_it_needs(fresh: Fresh) -> None:
    database, limits = Database(fresh()), list[str]()

    def look(config: Any, _to: str) -> None:
        limits.append(config.attributes["connection"].exec_driver_sql("SHOW statement_timeout").scalar_one())

    with patch.object(alembic.command, "upgrade", look):
        schema.migrate(database, "repository")
    with database.read() as cx:
        limits.append(cx.exec_driver_sql("SHOW statement_timeout").scalar_one())
    database.close()
    assert limits == ["0", "1min"]


@pytest.mark.parametrize("half", get_args(Half))
def test_the_newest_schema_is_that_of_the_last_migration(half: Half) -> None:
    script = alembic.script.ScriptDirectory.from_config(schema._alembic(half))
    assert script.get_heads() == [schema.NEWEST[half]]


@pytest.mark.parametrize("half", get_args(Half))
def test_a_newer_releases_database_is_refused_and_left_as_it_is(fresh: Fresh, half: Half) -> None:
    database = Database(fresh(half))
    with database.begin() as cx:
        cx.exec_driver_sql(f"UPDATE {schema.version_table(half)} SET version_num = '9999'")
        cx.exec_driver_sql("CREATE TABLE of_the_future (id INTEGER)")
    before = _tables(database)
    with pytest.raises(SchemaMismatch, match="made by a newer release: run that release, or restore a backup"):
        schema.migrate(database, half)
    with pytest.raises(SchemaMismatch, match="9999, made by a newer release"):
        schema.check_schema(database, half)
    assert _tables(database) == before
    database.close()


@pytest.mark.parametrize("half", get_args(Half))
def test_a_database_of_this_release_goes_on_with_its_rows_in_the_next(
    fresh: Fresh, tmp_path: Path, half: Half, now: Instant
) -> None:
    database = Database(fresh(half))
    with database.begin() as cx:
        cx.exec_driver_sql(
            f"INSERT INTO repositories (name, description, resource_id, created) VALUES ('main', '', 'r', {now})"
            if half == "repository"
            else "INSERT INTO grants (user_id, client_id, resource_id, refresh_digest, refresh_expires, created)"
            f" VALUES (1, 2, 'r', '', {now}, {now})"
        )
    with next_release(tmp_path / "next"):
        with pytest.raises(SchemaMismatch, match="run 'muniment migrate' first"):
            schema.check_schema(database, half)
        schema.migrate(database, half)
        schema.check_schema(database, half)
    table = "repositories" if half == "repository" else "grants"
    with database.read() as cx:
        assert cx.exec_driver_sql(f"SELECT created, shelf FROM {table}").all() == [(now, "first")]
    with pytest.raises(SchemaMismatch, match="made by a newer release"):
        schema.migrate(database, half)
    database.close()


@pytest.mark.parametrize(
    ("half", "former"),
    [("directory", "directory_0001"), ("directory", "directory_0006"), ("repository", "0001"), ("repository", "0029")],
)
def test_a_database_from_before_the_first_migration_is_refused_and_left_as_it_is(
    fresh: Fresh, half: Half, former: str
) -> None:
    database = Database(fresh(half))
    with database.begin() as cx:
        cx.exec_driver_sql(f"UPDATE {schema.version_table(half)} SET version_num = '{former}'")
    before = _tables(database)
    for act in (schema.migrate, schema.check_schema):
        with pytest.raises(SchemaMismatch) as refused:
            act(database, half)
        assert str(refused.value) == (
            f"The {half} database is at schema {former}, older than any that this release migrates: "
            "migrate it with the commit tagged 'before-light' first."
        )
    assert _tables(database) == before
    database.close()
