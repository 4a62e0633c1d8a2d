"""An object's edit counter is now called its revision, because a version is an object of its own."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rename the column."""
    op.execute("ALTER TABLE objects RENAME COLUMN version TO revision")
