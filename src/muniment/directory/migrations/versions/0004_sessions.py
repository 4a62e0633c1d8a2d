"""Index grants by their client."""

from alembic import op

revision = "directory_0004"
down_revision = "directory_0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the index that serves to end all grants of a client."""
    op.create_index("ix_grants_client_id", "grants", ["client_id"])
