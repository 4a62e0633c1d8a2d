"""A kept search says in which format its query is written."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the format; every query that was kept before has the first."""
    op.add_column("links", sa.Column("format", sa.Integer(), nullable=False, server_default="1"))
