"""The repository's secret keys, one for each purpose."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table with a random key for each purpose."""
    keys = op.create_table(
        "repository_keys",
        sa.Column("purpose", sa.String(20), nullable=False),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("purpose", name="pk_repository_keys"),
    )
    op.bulk_insert(
        keys,
        [{"purpose": purpose, "key": secrets.token_bytes(32)} for purpose in ("objects", "acls", "seals")],
    )
