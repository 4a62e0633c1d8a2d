"""Objects may have comments."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Make the table of comments."""
    counter = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "comments",
        sa.Column("seq", counter, nullable=False),
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("repository_id", counter, nullable=False),
        sa.Column("object_id", sa.String(16), nullable=False),
        sa.Column("replies_to", sa.String(16), nullable=True),
        sa.Column("depth", sa.SmallInteger(), nullable=False),
        sa.Column("author", sa.String(400), nullable=False),
        sa.Column("author_name", sa.String(400), nullable=False),
        sa.Column("author_key", sa.String(400), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("modified", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["repository_id"], ["repositories.id"], name="fk_comments_repository_id_repositories"),
        sa.ForeignKeyConstraint(
            ["object_id"], ["objects.id"], name="fk_comments_object_id_objects", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["replies_to"], ["comments.id"], name="fk_comments_replies_to_comments", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("seq", name="pk_comments"),
        sa.UniqueConstraint("id", name="uq_comments_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_comments_object", "comments", ["object_id", "replies_to", "seq"])
    op.create_index("ix_comments_replies", "comments", ["replies_to", "seq"])
    op.create_index("ix_comments_repository", "comments", ["repository_id", "seq"])
    op.create_index("ix_comments_author_key", "comments", ["author_key"])
