"""An ACL gets an opaque id, a name that is unique among its owner's ACLs, and the number of its entries.

``common`` stays null for the ACLs that somebody owns. This database does not know who is an administrator, so the
caller of the migration sets ``common`` afterwards (``acls.settle``).
"""

import hashlib
import unicodedata
from typing import Literal

import sqlalchemy as sa
from alembic import op

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
    """Add the columns, fill them, then make their indexes. From now on SQLite never reuses the key of a removed row."""
    connection = op.get_bind()
    recreate: Literal["always", "auto"] = "always" if connection.dialect.name == "sqlite" else "auto"
    with op.batch_alter_table("acls", recreate=recreate, table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.add_column(sa.Column("shown_id", sa.String(16), nullable=False, server_default=""))
        batch.add_column(sa.Column("owner_name", sa.String(400), nullable=False, server_default=""))
        batch.add_column(sa.Column("owner_key", sa.String(400), nullable=False, server_default=""))
        batch.add_column(sa.Column("common", sa.Boolean, nullable=True))
        batch.add_column(sa.Column("entry_count", sa.Integer, nullable=False, server_default="0"))
        batch.drop_constraint("uq_acls_repository_id_name", type_="unique")
    secret = connection.execute(sa.text("SELECT key FROM repository_keys WHERE purpose = 'acls'")).scalar_one()
    last = 0
    while rows := connection.execute(_next(last)).all():
        last = rows[-1].id
        connection.execute(
            _acls.update()
            .where(_acls.c.id == sa.bindparam("of"))
            .values(shown_id=sa.bindparam("shown"), owner_name=sa.bindparam("key"), owner_key=sa.bindparam("key")),
            [{"of": row.id, "shown": f"45{_scramble(bytes(secret), row.id)}", "key": _key(row.owner)} for row in rows],
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


def _scramble(secret: bytes, counter: int) -> str:
    """Write the 14 hexadecimal digits that stand for a counter: a keyed Feistel network over 56 bits."""
    number = _permute(secret, (1 << 48) + counter)
    while number < 1 << 48:
        number = _permute(secret, number)
    return f"{number:014x}"


def _permute(secret: bytes, number: int) -> int:
    mask = (1 << 28) - 1
    left_half, right_half = number >> 28, number & mask
    for round_number in range(10):
        message = bytes([round_number]) + right_half.to_bytes(4, "big")
        digest = hashlib.blake2b(message, digest_size=4, key=secret).digest()
        left_half, right_half = right_half, left_half ^ (int.from_bytes(digest, "big") & mask)
    return left_half << 28 | right_half


def _key(owner: str) -> str:
    """Fold an owner's name to the form by which this release compared names."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", owner).casefold())
