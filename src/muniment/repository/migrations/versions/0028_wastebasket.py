"""Deleted objects may stay in a wastebasket for some days."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Make the tables of the wastebasket."""
    counter = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "wastebasket",
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("repository_id", counter, nullable=False),
        sa.Column("root", sa.String(16), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("owner", sa.String(400), nullable=False),
        sa.Column("owner_key", sa.String(400), nullable=False),
        sa.Column("acl_id", sa.BigInteger(), nullable=False),
        sa.Column("default_acl_id", sa.BigInteger(), nullable=True),
        sa.Column("deleter", sa.String(400), nullable=False),
        sa.Column("deleter_key", sa.String(400), nullable=False),
        sa.Column("deleted", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("content_key", sa.String(32), nullable=True),
        sa.Column("content_size", sa.BigInteger(), nullable=False),
        sa.Column("content_sha256", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name="fk_wastebasket_repository_id_repositories"
        ),
        sa.PrimaryKeyConstraint("seq", name="pk_wastebasket"),
        sa.UniqueConstraint("id", name="uq_wastebasket_id"),
    )
    op.create_index("ix_wastebasket_acl_id", "wastebasket", ["acl_id"])
    op.create_index("ix_wastebasket_default_acl_id", "wastebasket", ["default_acl_id"])
    op.create_index("ix_wastebasket_content_key", "wastebasket", ["content_key"])
    op.create_index("ix_wastebasket_root", "wastebasket", ["root"])
    op.create_index("ix_wastebasket_expires", "wastebasket", ["expires"])
    op.create_index("ix_wastebasket_repository", "wastebasket", ["repository_id", "deleted", "seq"])
    op.create_table(
        "discarded_contents",
        sa.Column("id", counter, nullable=False),
        sa.Column("object_id", sa.String(16), nullable=False),
        sa.Column("is_primary", sa.Boolean(), nullable=False),
        sa.Column("page", sa.Integer(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("format", sa.String(255), nullable=False),
        sa.Column("modifier", sa.String(64), nullable=False),
        sa.Column("added", sa.BigInteger(), nullable=False),
        sa.Column("content_key", sa.String(32), nullable=False),
        sa.Column("content_size", sa.BigInteger(), nullable=False),
        sa.Column("content_sha256", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["object_id"], ["wastebasket.id"], name="fk_discarded_contents_object_id_wastebasket"),
        sa.PrimaryKeyConstraint("id", name="pk_discarded_contents"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_discarded_contents_object_id", "discarded_contents", ["object_id"])
    op.create_index("ix_discarded_contents_content_key", "discarded_contents", ["content_key"])
