"""What follows a position in a log of changes, in the order in which the changes became visible?

On PostgreSQL, a transaction may take its number in a sequence early and commit late, and a reader who has passed the
number would miss the row. So each row has its transaction's number too: a follower takes only rows whose transaction is
older than every open one, by transaction, then sequence. SQLite has one writer: the sequence is the order, and the
transaction is 0. Source: docs/decisions/0022.
"""

from typing import Any, NamedTuple

import sqlalchemy as sa

TRANSACTION_NOW = sa.text("CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)")
OLDEST_OPEN = sa.text("CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT)")
NEXT_TO_OPEN = sa.text("CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT)")


class Position(NamedTuple):
    """A place in one log; positions compare in its order."""

    transaction: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.transaction}.{self.sequence}"

    @classmethod
    def parse(cls, text: str) -> "Position":
        """Raises ValueError."""
        transaction, _, sequence = text.partition(".")
        return cls(int(transaction), int(sequence))


START = Position(0, 0)


def is_later(dialect: str, log: sa.FromClause) -> sa.ColumnElement[bool]:
    """The condition that a row follows the position given by the parameters ``passed`` and ``sequence``."""
    transaction, sequence = sa.bindparam("passed", type_=sa.BigInteger), sa.bindparam("sequence", type_=sa.BigInteger)
    if dialect == "sqlite":
        # On SQLite every transaction is 0, and the second column of a row value does not narrow the index.
        return sa.and_(log.c.transaction == transaction, log.c.sequence > sequence)
    later: sa.ColumnElement[bool] = sa.tuple_(log.c.transaction, log.c.sequence) > sa.tuple_(transaction, sequence)
    return later


def parameters(position: Position) -> dict[str, Any]:
    """For ``is_later``."""
    return {"passed": position.transaction, "sequence": position.sequence}
