"""A repository may have a language of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the language. An empty text means the language of the installation."""
    op.add_column("repositories", sa.Column("language", sa.String(20), nullable=False, server_default=""))
