"""Is a database at this release's schema, and how does it get there? One history of migrations a half (Alembic)."""

from pathlib import Path

import alembic.command
import alembic.config
import alembic.runtime.migration
import alembic.script
from sqlalchemy.engine import Connection

from muniment.db import Database, Half


class SchemaMismatch(Exception):
    """The database's schema is not the one this release works with; the message says what to do."""


def migrate(database: Database, half: Half) -> None:
    """Bring the half's tables to this release's schema. Raises SchemaMismatch for a newer database."""
    config = _alembic(half)
    with database.engine.connect() as connection:
        revision = _revision(connection, half)
        script = alembic.script.ScriptDirectory.from_config(config)
        if revision is not None and revision not in {known.revision for known in script.walk_revisions()}:
            raise SchemaMismatch(
                f"The {half} database is at schema {revision}, made by a newer release: "
                "run that release, or restore a backup made before it."
            )
        config.attributes["connection"] = connection
        alembic.command.upgrade(config, "head")
        connection.commit()


def check_schema(database: Database, half: Half) -> None:
    """Raise SchemaMismatch unless the half's tables are at this release's schema."""
    head = alembic.script.ScriptDirectory.from_config(_alembic(half)).get_current_head()
    with database.engine.connect() as connection:
        revision = _revision(connection, half)
    if revision != head:
        raise SchemaMismatch(
            f"The {half} database is at schema {revision or 'none'}, this release works with {head}: "
            "run 'muniment migrate' first."
        )


def version_table(half: Half) -> str:
    """Name the table that holds the half's schema revision."""
    return f"{half}_schema"


def _alembic(half: Half) -> alembic.config.Config:
    config = alembic.config.Config()
    config.set_main_option("script_location", str(Path(__file__).parent / half / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["half"] = half
    return config


def _revision(connection: Connection, half: Half) -> str | None:
    context = alembic.runtime.migration.MigrationContext.configure(
        connection, opts={"version_table": version_table(half)}
    )
    return context.get_current_revision()
