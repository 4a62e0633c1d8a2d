"""Has anything changed since an answer was worked out? Two random marks tell, which the database's triggers renew.

Every write that may change who a user is or what they may do renews *generation*, and every write that may end a token
*endings*; sign-ins, refreshes and the purge renew neither (decision 0057).
"""

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement, directory_tables, required

_generation = sa.Table(
    "generation", directory_tables, sa.Column("id", sa.Integer, primary_key=True), required("mark", sa.String(36))
)
_endings = sa.Table(
    "endings", directory_tables, sa.Column("id", sa.Integer, primary_key=True), required("mark", sa.String(36))
)

BOTH = PreparedStatement(
    sa.select(_generation.c.mark, _endings.c.mark).select_from(_generation.join(_endings, sa.true()))
)

GENERATION, ENDINGS = (sa.select(table.c.mark).scalar_subquery() for table in (_generation, _endings))

_LOCK = PreparedStatement(sa.select(_generation.c.mark).with_for_update())
_GENERATION = PreparedStatement(sa.select(_generation.c.mark))


class VersionStamps(NamedTuple):
    """The two marks of one snapshot."""

    generation: str
    endings: str


def read_generation(cx: Connection) -> str:
    row = _GENERATION.first(cx)
    assert row is not None  # noqa: S101 - a migration makes the row, and nothing deletes it
    mark: str = row[0]
    return mark


def lock_rights(cx: Connection) -> None:
    """Other decisions that change a right wait until the commit.

    What is read after the call is up to date. On SQLite no other write transaction runs anyway.
    """
    _LOCK.first(cx)
