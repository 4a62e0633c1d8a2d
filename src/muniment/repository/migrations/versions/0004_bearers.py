"""Who stands behind a name: each name that the repository's rows hold waits to be bound to its bearer."""

import sqlalchemy as sa
from alembic import op

from muniment.naming import fold_name

revision = "0004"
down_revision = "0003"

_AT_A_TIME = 500


def upgrade() -> None:
    """Make the table, and a row without an identity for every name there is."""
    op.create_table(
        "bearers",
        sa.Column("key", sa.String(400), primary_key=True),
        sa.Column("name", sa.String(400), nullable=False),
        sa.Column("identity", sa.String(200), nullable=True, unique=True),
        sa.Column("bound", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_bearers_name", "bearers", ["name"])
    cx = op.get_bind()
    names = set(cx.execute(sa.text("SELECT DISTINCT owner_key FROM objects")).scalars())
    names |= {fold_name(owner) for owner in cx.execute(sa.text("SELECT DISTINCT owner FROM acls")).scalars()}
    names |= set(cx.execute(sa.text("SELECT DISTINCT accessor FROM acl_entries")).scalars())
    table = sa.table("bearers", sa.column("key"), sa.column("name"), sa.column("bound"))
    rows = [{"key": name, "name": name, "bound": 0} for name in sorted(names - {"", "owner", "world"})]
    for begin in range(0, len(rows), _AT_A_TIME):
        cx.execute(table.insert(), rows[begin : begin + _AT_A_TIME])
