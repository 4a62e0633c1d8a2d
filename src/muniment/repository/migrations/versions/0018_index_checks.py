"""The database stores the last report on the check of each index, and the requests for a check."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Make the tables of wanted checks and of reports."""
    counter = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "index_checks",
        sa.Column("repository_id", counter, nullable=False),
        sa.Column("wanted", sa.BigInteger(), nullable=False),
        sa.Column("repairs", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name="fk_index_checks_repository_id_repositories"
        ),
        sa.PrimaryKeyConstraint("repository_id", name="pk_index_checks"),
    )
    op.create_table(
        "index_reports",
        sa.Column("repository_id", counter, nullable=False),
        sa.Column("follower", sa.String(32), nullable=False),
        sa.Column("format", sa.Integer(), nullable=False),
        sa.Column("report", sa.Text(), nullable=True),
        sa.Column("course", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["repository_id"], ["repositories.id"], name="fk_index_reports_repository_id_repositories"
        ),
        sa.PrimaryKeyConstraint("repository_id", "follower", name="pk_index_reports"),
    )
