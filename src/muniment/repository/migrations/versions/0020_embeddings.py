"""Objects may have an embedding, by which searches find what is near in meaning."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Make the table of embeddings."""
    counter = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "embeddings",
        sa.Column("id", counter, nullable=False),
        sa.Column("object_id", sa.String(16), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("vectors", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["object_id"], ["objects.id"], name="fk_embeddings_object_id_objects", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_embeddings"),
        sa.UniqueConstraint("object_id", name="uq_embeddings_object_id"),
        sqlite_autoincrement=True,
    )
