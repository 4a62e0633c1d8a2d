"""Types and properties have labels. Properties have a length, defaults and allowed values, and may be unsearchable."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

_HIDING = "kind NOT IN ('created', 'text', 'type')"


def upgrade() -> None:
    """Add the columns, the table of reindexings, and a kind of change that a search may overlook."""
    op.add_column("object_types", sa.Column("label", sa.String(255), nullable=False, server_default=""))
    for column in (
        sa.Column("length", sa.Integer, nullable=False, server_default="4000"),
        sa.Column("label", sa.String(255), nullable=False, server_default=""),
        sa.Column("searchable", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("awaiting_index", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("rules", sa.Text, nullable=False, server_default=""),
    ):
        op.add_column("type_properties", column)
    counter = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "reindexings",
        sa.Column("id", counter, nullable=False),
        sa.Column("repository_id", counter, nullable=False),
        sa.Column("property", sa.String(64), nullable=False),
        sa.Column("after", sa.BigInteger, nullable=True),
        sa.Column("transaction", sa.BigInteger, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("begun", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name="fk_reindexings_repository_id_repositories"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_reindexings"),
        sa.UniqueConstraint("repository_id", "property", name="uq_reindexings_repository_id_property"),
    )
    op.drop_index("ix_changes_hiding", "changes")
    op.create_index(
        "ix_changes_hiding",
        "changes",
        ["repository_id", "transaction", "sequence", "object_id", "kind"],
        sqlite_where=sa.text(_HIDING),
        postgresql_where=sa.text(_HIDING),
    )
