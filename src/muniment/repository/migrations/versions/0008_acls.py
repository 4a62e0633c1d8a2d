"""ACLs have an id that tells nothing, a name that is one owner's, and the number of their entries.

``common`` stays open for those that somebody owns: who is an administrator is not in this database, so whoever asked
for the migration says it (``acls.settle``).
"""

import unicodedata
from typing import Literal

import sqlalchemy as sa
from alembic import op

from muniment.repository import keys  # the ids are those of this release

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_acls = sa.table(
    "acls",
    sa.column("id", sa.BigInteger),
    sa.column("shown_id", sa.String),
    sa.column("owner", sa.String),
    sa.column("owner_name", sa.String),
    sa.column("owner_key", sa.String),
    sa.column("common", sa.Boolean),
    sa.column("entry_count", sa.Integer),
)


def upgrade() -> None:
    """Add the columns, fill them, then make what they are found by. On SQLite no key is given out twice from now on."""
    connection = op.get_bind()
    recreate: Literal["always", "auto"] = "always" if connection.dialect.name == "sqlite" else "auto"
    with op.batch_alter_table("acls", recreate=recreate, table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.add_column(sa.Column("shown_id", sa.String(16), nullable=False, server_default=""))
        batch.add_column(sa.Column("owner_name", sa.String(400), nullable=False, server_default=""))
        batch.add_column(sa.Column("owner_key", sa.String(400), nullable=False, server_default=""))
        batch.add_column(sa.Column("common", sa.Boolean, nullable=True))
        batch.add_column(sa.Column("entry_count", sa.Integer, nullable=False, server_default="0"))
        batch.drop_constraint("uq_acls_repository_id_name", type_="unique")
    last = 0
    while rows := connection.execute(_next(last)).all():
        last = rows[-1].id
        connection.execute(
            _acls.update()
            .where(_acls.c.id == sa.bindparam("of"))
            .values(shown_id=sa.bindparam("shown"), owner_name=sa.bindparam("key"), owner_key=sa.bindparam("key")),
            [
                {"of": row.id, "shown": f"45{keys.scramble(connection, keys.ACLS, row.id)}", "key": _key(row.owner)}
                for row in rows
            ],
        )
    op.execute("UPDATE acls SET common = true WHERE owner = ''")
    op.execute("UPDATE acls SET entry_count = (SELECT count(*) FROM acl_entries WHERE acl_entries.acl_id = acls.id)")
    op.create_index("ix_acls_shown_id", "acls", ["shown_id"], unique=True)
    op.create_index("ix_acls_owner", "acls", ["repository_id", "owner_key", "name"], unique=True)
    op.create_index("ix_acls_name", "acls", ["repository_id", "name", "shown_id"])
    op.create_index("ix_acls_owner_name", "acls", ["repository_id", "owner_name", "name"])
    op.create_index(
        "ix_acls_common",
        "acls",
        ["repository_id", "name"],
        unique=True,
        sqlite_where=sa.text("common = 1"),
        postgresql_where=sa.text("common"),
    )


def _next(last: int) -> sa.Select[int, str]:
    return sa.select(_acls.c.id, _acls.c.owner).where(_acls.c.id > last).order_by(_acls.c.id).limit(500)


def _key(owner: str) -> str:
    """Spell an owner as names were compared when this was released."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", owner).casefold())
