"""The queue of files to read goes by the counter of the objects: their ids tell no order any more."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Note each file's counter, save where its text is there: it is asked for no more, and would be written again."""
    op.add_column("texts", sa.Column("seq", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute(
        "UPDATE texts SET seq = coalesce((SELECT seq FROM objects WHERE objects.id = texts.object_id), 0) "
        "WHERE state <> 'done'"
    )
    op.drop_index("ix_texts_queue", "texts")
    op.create_index("ix_texts_queue", "texts", ["state", "owner_key", "due", "seq"])
