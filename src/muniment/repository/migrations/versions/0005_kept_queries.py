"""What a caller's kept searches take together is counted."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Note how large each kept search is, and find those of a caller by their age."""
    op.add_column("links", sa.Column("size", sa.Integer, nullable=False, server_default="0"))
    op.execute("UPDATE links SET size = length(document)")
    op.create_index("ix_links_caller", "links", ["caller", "expires"])
