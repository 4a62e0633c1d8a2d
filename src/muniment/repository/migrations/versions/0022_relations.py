"""Objects may be related, and relations have types."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Make the tables of relations and of their types."""
    counter = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "relation_types",
        sa.Column("repository_id", counter, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("description", sa.String(250), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name="fk_relation_types_repository_id_repositories"
        ),
        sa.PrimaryKeyConstraint("repository_id", "name", name="pk_relation_types"),
    )
    op.create_table(
        "relations",
        sa.Column("seq", counter, nullable=False),
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("repository_id", counter, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("parent_id", sa.String(16), nullable=False),
        sa.Column("child_id", sa.String(16), nullable=False),
        sa.Column("maker", sa.String(400), nullable=False),
        sa.Column("maker_key", sa.String(400), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["repository_id"], ["repositories.id"], name="fk_relations_repository_id_repositories"),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["objects.id"], name="fk_relations_parent_id_objects", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["child_id"], ["objects.id"], name="fk_relations_child_id_objects", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("seq", name="pk_relations"),
        sa.UniqueConstraint("id", name="uq_relations_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_relations_repository", "relations", ["repository_id", "seq"])
    op.create_index("ix_relations_name", "relations", ["repository_id", "name", "seq"])
    op.create_index("ix_relations_parent", "relations", ["parent_id", "seq"])
    op.create_index("ix_relations_child", "relations", ["child_id", "seq"])
    op.create_index("ix_relations_maker_key", "relations", ["maker_key"])
