"""Walks through searches are kept. Walks and kept searches note when they were kept: the oldest are dropped first."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Make the table of walks. The existing kept searches get the time 0, so they are dropped first."""
    op.create_table(
        "walks",
        sa.Column("name", sa.LargeBinary(16), nullable=False),
        sa.Column("repository_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("caller", sa.String(320), nullable=False),
        sa.Column("edition", sa.LargeBinary(8), nullable=False),
        sa.Column("counters", sa.LargeBinary(), nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("hits", sa.Integer(), nullable=False),
        sa.Column("cut", sa.Boolean(), nullable=False),
        sa.Column("format", sa.Integer(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("kept", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["repository_id"], ["repositories.id"], name="fk_walks_repository_id_repositories"),
        sa.PrimaryKeyConstraint("name", name="pk_walks"),
    )
    op.create_index("ix_walks_expires", "walks", ["expires"])
    op.create_index("ix_walks_caller", "walks", ["caller", "kept"])
    op.add_column("links", sa.Column("kept", sa.BigInteger(), nullable=False, server_default="0"))
    op.drop_index("ix_links_caller", "links")
    op.create_index("ix_links_caller", "links", ["caller", "kept"])
