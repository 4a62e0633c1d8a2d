"""No number of a repository is given out twice: what was sealed for one that is removed is good for no other."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Let SQLite count the repositories on; PostgreSQL's sequence does that already."""
    if op.get_bind().dialect.name == "sqlite":
        with op.batch_alter_table("repositories", recreate="always", table_kwargs={"sqlite_autoincrement": True}):
            pass
