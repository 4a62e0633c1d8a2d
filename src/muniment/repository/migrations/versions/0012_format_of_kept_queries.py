"""A kept search names the format of its query."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the format. All existing queries have format 1."""
    op.add_column("links", sa.Column("format", sa.Integer(), nullable=False, server_default="1"))
