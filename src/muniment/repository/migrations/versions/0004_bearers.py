"""Each name in the repository's rows gets a row in a new table. The row waits until the name is bound to its bearer."""

import re
import unicodedata

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_AT_A_TIME = 500


def upgrade() -> None:
    """Make the table, and add a row without an identity for every name."""
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
    names |= {_fold(owner) for owner in cx.execute(sa.text("SELECT DISTINCT owner FROM acls")).scalars()}
    names |= set(cx.execute(sa.text("SELECT DISTINCT accessor FROM acl_entries")).scalars())
    table = sa.table("bearers", sa.column("key"), sa.column("name"), sa.column("bound"))
    rows = [{"key": name, "name": name, "bound": 0} for name in sorted(names - {"", "owner", "world"})]
    for begin in range(0, len(rows), _AT_A_TIME):
        cx.execute(table.insert(), rows[begin : begin + _AT_A_TIME])


def _fold(name: str) -> str:
    """Fold a name to the form by which this release compared names."""
    folded = unicodedata.normalize("NFC", name).casefold()
    return unicodedata.normalize("NFC", re.sub("[\x00\ud800-\udfff]", "\ufffd", folded))
