"""An object's edit counter is now called its revision, because the word version means another object."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rename the column."""
    op.execute("ALTER TABLE objects RENAME COLUMN version TO revision")
