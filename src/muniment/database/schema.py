"""Check that a database is at this release's schema, and migrate it.

Alembic is loaded only to migrate: it takes a tenth of a command's start.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import Database, Half

NEWEST: Mapping[Half, str] = {"directory": "directory_0014", "repository": "0034"}

_FORMER: Mapping[Half, frozenset[str]] = {
    "directory": frozenset(f"directory_{number:04}" for number in range(1, 7)),
    "repository": frozenset(f"{number:04}" for number in range(1, 30)),
}
"""Each half's schemas before its first migration: no release had them (docs/decisions/0052)."""

_LOCK = 0x6D75_6E69_736D_6163
"""The PostgreSQL lock that a process holds while it migrates."""


class SchemaMismatch(Exception):
    """The message says what to do."""


def migrate(database: Database, half: Half) -> None:
    """Raises SchemaMismatch for a newer or a former database. On PostgreSQL, waits for another such process."""
    import alembic.command

    config = _alembic(half)
    with database.engine.connect() as connection, _alone(connection), _without_foreign_keys(connection):
        at = revision(connection, half)
        _refuse_former(half, at)
        if at is not None:
            _refuse_newer(half, at)
        config.attributes["connection"] = connection
        alembic.command.upgrade(config, "head")
        connection.commit()


def check_schema(database: Database, half: Half) -> None:
    with database.engine.connect() as connection:
        at = revision(connection, half)
    if at is None:
        raise SchemaMismatch(f"The {half} database has no tables yet: run 'muniment init' first.")
    _refuse_former(half, at)
    if at != NEWEST[half]:
        _refuse_newer(half, at)
        raise SchemaMismatch(
            f"The {half} database is at schema {at}, this release works with {NEWEST[half]}: "
            "run 'muniment migrate' first."
        )


def revision(connection: Connection, half: Half) -> str | None:
    table = sa.table(version_table(half), sa.column("version_num", sa.String))
    return connection.scalar(sa.select(table)) if sa.inspect(connection).has_table(table.name) else None


def is_former(half: Half, revision: str | None) -> bool:
    """From before the first migration, so that nothing here leads on from it."""
    return revision in _FORMER[half]


def knows(half: Half, revision: str) -> bool:
    import alembic.script

    script = alembic.script.ScriptDirectory.from_config(_alembic(half))
    return revision in {migration.revision for migration in script.walk_revisions()}


def version_table(half: Half) -> str:
    return f"{half}_schema"


def _refuse_newer(half: Half, at: str) -> None:
    if not knows(half, at):
        raise SchemaMismatch(
            f"The {half} database is at schema {at}, made by a newer release: "
            "run that release, or restore a backup made before it."
        )


def _refuse_former(half: Half, at: str | None) -> None:
    if is_former(half, at):
        raise SchemaMismatch(
            f"The {half} database is at schema {at}, older than any that this release migrates: "
            "migrate it with the commit tagged 'before-light' first."
        )


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    """On SQLite the process has the data folder to itself."""
    if connection.dialect.name == "sqlite":
        yield
        return
    connection.exec_driver_sql("SET statement_timeout = 0")
    connection.exec_driver_sql("SET lock_timeout = 0")
    connection.exec_driver_sql(f"SELECT pg_advisory_lock({_LOCK})")
    connection.exec_driver_sql("RESET lock_timeout")
    connection.commit()
    try:
        yield
    finally:
        connection.invalidate()  # the lock and the settings end with the connection


@contextmanager
def _without_foreign_keys(connection: Connection) -> Iterator[None]:
    """SQLite allows the switch only outside of a transaction."""
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name != "sqlite":
        yield
        return
    driver.execute("PRAGMA foreign_keys=OFF")
    try:
        yield
    finally:
        driver.rollback()
        driver.execute("PRAGMA foreign_keys=ON")


def _alembic(half: Half) -> Any:
    import alembic.config

    config = alembic.config.Config()
    config.set_main_option("script_location", str(Path(__file__).parents[1] / half / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["half"] = half
    return config
