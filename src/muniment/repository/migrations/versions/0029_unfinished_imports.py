"""How far an import of an export has come."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    """Make the table of unfinished imports."""
    counter = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "unfinished_imports",
        sa.Column("repository_id", counter, nullable=False),
        sa.Column("export", sa.String(64), nullable=False),
        sa.Column("resource_id", sa.String(36), nullable=False),
        sa.Column("stage", sa.String(20), nullable=False),
        sa.Column("line", sa.BigInteger(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name="fk_unfinished_imports_repository_id_repositories"
        ),
        sa.PrimaryKeyConstraint("repository_id", name="pk_unfinished_imports"),
    )
