"""Add the indexes with which the purge finds a grant's tokens, expired tokens, and revoked grants."""

from alembic import op

revision = "directory_0003"
down_revision = "directory_0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the indexes. The first one replaces the old index of a grant's tokens."""
    op.create_index("ix_access_tokens_of_grant", "access_tokens", ["grant_id", "expires"])
    op.create_index("ix_access_tokens_expires", "access_tokens", ["expires", "digest"])
    op.create_index("ix_grants_revoked", "grants", ["revoked"])
    op.drop_index("ix_access_tokens_grant_id", "access_tokens")
