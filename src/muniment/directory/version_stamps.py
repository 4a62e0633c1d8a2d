"""Has anything changed since an answer was worked out? Two random marks tell. The database itself renews them.

Every write that may change who a user is or what they may do renews the mark *generation* (decision 0057). Every write
that may end a token renews the mark *endings*. Sign-ins, refreshes and the purge end no living token, so they do not
renew *endings* (decision 0057). One statement reads both marks. An answer that was worked out under marks is true
until a mark changes or its token expires.
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
"""The statement that reads both marks. Its row has the columns of ``VersionStamps``."""

GENERATION, ENDINGS = (sa.select(table.c.mark).scalar_subquery() for table in (_generation, _endings))
"""Subqueries for the two marks, for the statements of other modules."""

_GENERATION = PreparedStatement(sa.select(_generation.c.mark))


class VersionStamps(NamedTuple):
    """The directory's two marks, read in one snapshot."""

    generation: str
    endings: str


def read_generation(cx: Connection) -> str:
    row = _GENERATION.first(cx)
    assert row is not None  # noqa: S101 - a migration makes the row, and nothing deletes it
    mark: str = row[0]
    return mark


def lock_rights(cx: Connection) -> None:
    """Lock all rights: other decisions that change a right wait until this one is committed.

    What the decision reads after the call is up to date. On SQLite no other write transaction runs anyway.
    """
    cx.execute(sa.select(_generation.c.mark).with_for_update())
