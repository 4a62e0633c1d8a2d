"""Each kept search has a size, so that all kept searches of one caller can be measured together."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the size of each kept search. Add an index that orders the kept searches of a caller by their expiry."""
    op.add_column("links", sa.Column("size", sa.Integer, nullable=False, server_default="0"))
    op.execute("UPDATE links SET size = length(document)")
    op.create_index("ix_links_caller", "links", ["caller", "expires"])
