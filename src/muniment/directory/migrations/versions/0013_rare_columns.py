"""Four indexes of grants hold only the few that have something there: a new grant is in none of them."""

import sqlalchemy as sa
from alembic import op

revision = "directory_0013"
down_revision = "directory_0012"


def upgrade() -> None:
    for column in ("revoked", "family", "source_id", "actor_source_id"):
        op.drop_index(f"ix_grants_{column}", "grants")
        there = sa.text(f"{column} IS NOT NULL")
        unique = column == "family"
        op.create_index(
            f"ix_grants_{column}", "grants", [column], unique=unique, sqlite_where=there, postgresql_where=there
        )
