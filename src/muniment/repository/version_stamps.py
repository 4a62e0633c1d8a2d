"""Under which marks may a process remember what the database says of types and ACLs?

A mark is random. A trigger renews it in each transaction that writes to one of the mark's tables. Whoever reads a mark
in a snapshot may use what was remembered under this mark, because the tables have not changed since.
"""

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement, repository_tables
from muniment.database.snapshots import of_snapshot

_marks = sa.Table(
    "marks",
    repository_tables,
    sa.Column("name", sa.String(10), primary_key=True),
    sa.Column("mark", sa.String(36), nullable=False),
)


class SearchStamps(NamedTuple):
    """The marks of one snapshot: of all ACLs with their entries, and of all types."""

    acls: str
    types: str


_BY_NAME = PreparedStatement(sa.select(_marks.c.mark).order_by(_marks.c.name))


def read(cx: Connection) -> SearchStamps:
    """``cx`` must be a snapshot."""
    return of_snapshot(cx, SearchStamps, _read)


def _read(cx: Connection) -> SearchStamps:
    return SearchStamps(*[row[0] for row in _BY_NAME.all(cx)])
