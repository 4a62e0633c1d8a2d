"""The queue of files to read is ordered by the objects' counter, because their ids no longer show an order."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Note the counter of each file whose text has not been read yet. The queue needs no other counters."""
    op.add_column("texts", sa.Column("seq", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute(
        "UPDATE texts SET seq = coalesce((SELECT seq FROM objects WHERE objects.id = texts.object_id), 0) "
        "WHERE state <> 'done'"
    )
    op.drop_index("ix_texts_queue", "texts")
    op.create_index("ix_texts_queue", "texts", ["state", "owner_key", "due", "seq"])
