"""What a user has allowed a client is found without the grants that either has in other ways."""

import sqlalchemy as sa
from alembic import op

revision = "directory_0014"
down_revision = "directory_0013"


def upgrade() -> None:
    allowed = sa.text("made = 'authorization_code' AND revoked IS NULL")
    columns = ["user_id", "client_id", "resource_id"]
    op.create_index("ix_grants_allowed", "grants", columns, sqlite_where=allowed, postgresql_where=allowed)
