"""Add to grants an upper bound of the number of their live access tokens."""

import sqlalchemy as sa
from alembic import op

revision = "directory_0007"
down_revision = "directory_0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. It is NULL for the existing grants, because nobody has counted their tokens yet."""
    op.add_column("grants", sa.Column("live_bound", sa.Integer))
