"""Add the places of accounts, their wrong passwords by place, and the key with which places are hashed."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "directory_0005"
down_revision = "directory_0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, move the present counts into them, and make the key.

    The key is made here, because its first use is in a sign-in's snapshot, which cannot write.
    """
    for column in ("tries", "places"):
        op.add_column("entries", sa.Column(column, sa.Text, nullable=False, server_default="{}"))
    op.execute(
        "UPDATE entries SET tries = '{\"\":[' || failures || ',' || paused_until || ']}'"
        " WHERE failures > 0 AND kind = 'user'"
    )
    for column in ("failures", "paused_until"):
        op.drop_column("entries", column)
    op.execute(
        sa.text("INSERT INTO keys (purpose, key) VALUES ('places', :key)").bindparams(
            sa.bindparam("key", secrets.token_bytes(32), type_=sa.LargeBinary)
        )
    )
