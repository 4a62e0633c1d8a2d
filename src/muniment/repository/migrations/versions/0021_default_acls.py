"""A folder may have a default ACL for new objects in it."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Add the default ACL; without one, new objects get the folder's own ACL."""
    # Alembic cannot add a column with a foreign key on SQLite.
    kind = "INTEGER" if op.get_bind().dialect.name == "sqlite" else "BIGINT"
    op.execute(
        f"ALTER TABLE objects ADD COLUMN default_acl_id {kind} "
        "CONSTRAINT fk_objects_default_acl_id_acls REFERENCES acls (id)"
    )
    where = sa.text("default_acl_id IS NOT NULL")
    op.create_index("ix_objects_default_acl", "objects", ["default_acl_id"], sqlite_where=where, postgresql_where=where)
