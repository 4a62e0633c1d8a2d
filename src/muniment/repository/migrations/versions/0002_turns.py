"""Owners take turns in the queue of files to read."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Note the owner of each waiting file, and give each owner a turn."""
    op.create_table(
        "turns",
        sa.Column("owner_key", sa.String(400), primary_key=True),
        sa.Column("turn", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_turns_line", "turns", ["turn", "owner_key"])
    op.add_column("texts", sa.Column("owner_key", sa.String(400), nullable=False, server_default=""))
    op.execute(
        "UPDATE texts SET owner_key = coalesce((SELECT owner_key FROM objects WHERE objects.id = texts.object_id), '') "
        "WHERE state = 'waiting'"
    )
    op.execute(
        "INSERT INTO turns (owner_key, turn) SELECT owner_key, row_number() OVER (ORDER BY first) FROM "
        "(SELECT owner_key, min(due) AS first FROM texts WHERE state = 'waiting' GROUP BY owner_key) AS waiting"
    )
    op.drop_index("ix_texts_queue", "texts")
    op.create_index("ix_texts_queue", "texts", ["state", "owner_key", "due", "object_id"])
