"""Let ACLs have a description."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    op.add_column("acls", sa.Column("description", sa.Text, nullable=True))
