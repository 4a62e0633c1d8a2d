"""A repository's number is never used again, so what was sealed for a removed repository is valid in no other one."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Let SQLite never repeat a repository's number; PostgreSQL's sequence never does."""
    if op.get_bind().dialect.name == "sqlite":
        with op.batch_alter_table("repositories", recreate="always", table_kwargs={"sqlite_autoincrement": True}):
            pass
