"""A release after this one, in whose schema each half has one migration more."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from muniment.database import schema
from muniment.database.connections import Half

_MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "{half}_next", "{newest}"


def upgrade():
    op.create_table(
        "{half}_shelves",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("of", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.ForeignKey("{table}.id")),
    )
    op.add_column("{table}", sa.Column("shelf", sa.Text, nullable=False, server_default="none"))
    op.execute("UPDATE {table} SET shelf = 'first'")
"""
_TABLES: Mapping[Half, str] = {"directory": "grants", "repository": "repositories"}


@contextmanager
def next_release(folder: Path) -> Iterator[None]:
    """Let the code know the next release's schema for the block. Its migrations lie in this folder.

    The migration of each half makes a table that refers to one of before, and adds a column to that one.
    """
    ours = schema._alembic
    newest = {half: f"{half}_next" for half in schema.NEWEST}
    for half, table in _TABLES.items():
        (folder / half).mkdir(parents=True)
        text = _MIGRATION.format(half=half, newest=schema.NEWEST[half], table=table)
        (folder / half / "next.py").write_text(text)

    def config(half: Half) -> Any:
        made = ours(half)
        places = Path(schema.__file__).parents[1] / half / "migrations" / "versions", folder / half
        made.set_main_option("version_locations", ":".join(map(str, places)))
        return made

    with patch.object(schema, "_alembic", config), patch.object(schema, "NEWEST", newest):
        yield
