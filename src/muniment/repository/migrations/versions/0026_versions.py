"""Objects have versions, and can be checked out. Every existing object becomes version 1.0 of its own tree.

The new columns are null or have defaults, so no row is written. The database index for the lists of objects in folders
is replaced.
"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Add the columns and the indexes."""
    for column in (
        sa.Column("chronicle_id", sa.String(16), nullable=True),
        sa.Column("antecedent_id", sa.String(16), nullable=True),
        sa.Column("labels", sa.Text(), nullable=True),
        sa.Column("former", sa.SmallInteger(), nullable=False, server_default="0"),
        sa.Column("superseded", sa.SmallInteger(), nullable=False, server_default="0"),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("lock_owner", sa.String(400), nullable=True),
        sa.Column("lock_owner_key", sa.String(400), nullable=True),
        sa.Column("locked", sa.BigInteger(), nullable=True),
    ):
        op.add_column("objects", column)
    op.drop_index("ix_objects_folder", "objects")
    op.create_index("ix_objects_folder", "objects", ["folder_id", "former", "name", "seq"])
    _partial("ix_objects_chronicle", ["chronicle_id", "seq"], "chronicle_id IS NOT NULL")
    _partial("ix_objects_locked", ["repository_id", "lock_owner_key", "seq"], "lock_owner_key IS NOT NULL")


def _partial(name: str, columns: list[str], where: str) -> None:
    op.create_index(name, "objects", columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
