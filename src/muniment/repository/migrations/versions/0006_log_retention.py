"""The change log can be cut: two new tables say who follows the log, and up to which position it was cut."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_HIDING = sa.text("kind NOT IN ('created', 'text')")


def upgrade() -> None:
    """Make the tables ``cuts`` and ``followers``, and an index over the changes that a search must not overlook."""
    big_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "cuts",
        sa.Column("repository_id", big_id, sa.ForeignKey("repositories.id"), primary_key=True),
        sa.Column("transaction", sa.BigInteger, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "followers",
        sa.Column("repository_id", big_id, sa.ForeignKey("repositories.id"), primary_key=True),
        sa.Column("name", sa.String(32), primary_key=True),
        sa.Column("transaction", sa.BigInteger, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("seen", sa.BigInteger, nullable=False),
    )
    op.create_index(
        "ix_changes_hiding",
        "changes",
        ["repository_id", "transaction", "sequence", "object_id", "kind"],
        sqlite_where=_HIDING,
        postgresql_where=_HIDING,
    )
