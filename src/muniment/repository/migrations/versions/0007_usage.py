"""The objects and the bytes of each owner are counted."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table, and count the objects that exist."""
    op.create_table(
        "usage",
        sa.Column("owner_key", sa.String(400), primary_key=True),
        sa.Column("objects", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
    )
    op.execute(
        "INSERT INTO usage (owner_key, objects, bytes) "
        "SELECT owner_key, count(*), sum(content_size) FROM objects GROUP BY owner_key"
    )
