"""A schema that is not this release's: a migration killed in the middle is done again; a newer one is left alone."""

import multiprocessing
import os
import signal
from typing import Any, get_args

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from muniment import schema
from muniment.db import Database, Half
from muniment.schema import SchemaMismatch
from tests.conftest import Fresh

PATIENCE = 60


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


@pytest.mark.parametrize("half", get_args(Half))
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


@pytest.mark.parametrize("half", get_args(Half))
def test_a_newer_releases_database_is_refused_and_left_as_it_is(fresh: Fresh, half: Half) -> None:
    database = Database(fresh(half))
    with database.begin() as cx:
        cx.exec_driver_sql(f"UPDATE {schema.version_table(half)} SET version_num = '9999'")
        cx.exec_driver_sql("CREATE TABLE of_the_future (id INTEGER)")
    before = _tables(database)
    with pytest.raises(SchemaMismatch, match="made by a newer release: run that release, or restore a backup"):
        schema.migrate(database, half)
    with pytest.raises(SchemaMismatch, match="9999"):
        schema.check_schema(database, half)
    assert _tables(database) == before
    database.close()
