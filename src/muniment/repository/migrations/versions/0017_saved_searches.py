"""Add saved searches and search templates, and the results that callers have stored."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "saved_searches",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("repository_id", _ID, sa.ForeignKey("repositories.id"), nullable=False),
        sa.Column("is_template", sa.Boolean, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.String(1000), nullable=False),
        sa.Column("owner", sa.String(400), nullable=False),
        sa.Column("owner_name", sa.String(400), nullable=False),
        sa.Column("owner_key", sa.String(400), nullable=False),
        sa.Column("public", sa.Boolean, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("modified", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("format", sa.Integer, nullable=False),
        sa.Column("spelling", sa.String(4), nullable=False),
        sa.Column("names", sa.Text, nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
    )
    op.create_index("ix_saved_searches_owner", "saved_searches", ["owner_key", "repository_id", "is_template"])
    op.create_index("ix_saved_searches_created", "saved_searches", ["repository_id", "is_template", "created"])
    op.create_table(
        "saved_results",
        sa.Column("search_id", sa.String(16), sa.ForeignKey("saved_searches.id"), primary_key=True),
        sa.Column("caller", sa.String(400), primary_key=True),
        sa.Column("stored", sa.BigInteger, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("format", sa.Integer, nullable=False),
        sa.Column("object_ids", sa.Text, nullable=False),
    )
    op.create_index("ix_saved_results_caller", "saved_results", ["caller"])
