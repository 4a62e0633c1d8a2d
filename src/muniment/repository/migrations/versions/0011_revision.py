"""An object's edit counter is called its revision: a version would be another object beside it."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rename the column; what it counts stays."""
    op.execute("ALTER TABLE objects RENAME COLUMN version TO revision")
