"""The change log: what happened to which object, in the order in which it became visible.

A sequence alone does not give that order on PostgreSQL: a transaction that took its number early may commit late, and a
reader that has passed the number would never see it. So each row also carries its transaction's number; a reader takes
only rows whose transaction lies below every transaction still open, ordered by transaction and then by sequence. SQLite
has one writer at a time: there the sequence is the order and the transaction is 0.
"""

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.sql.dml import ReturningInsert

from muniment.db import BigId, Instant, repository_tables

Kind = Literal["created", "properties", "owner", "acl", "content", "text", "deleted"]

changes = sa.Table(
    "changes",
    repository_tables,
    sa.Column("sequence", BigId, primary_key=True),
    sa.Column("transaction", sa.BigInteger, nullable=False),
    sa.Column("repository_id", sa.ForeignKey("repositories.id"), nullable=False),
    sa.Column("object_id", sa.String(16), nullable=False),
    sa.Column("kind", sa.String(10), nullable=False),
    sa.Column("noted", sa.BigInteger, nullable=False),
    sa.Index("ix_changes_order", "repository_id", "transaction", "sequence"),
    sqlite_autoincrement=True,
)

_TRANSACTION_NOW = sa.text("CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)")
_OLDEST_OPEN = sa.text("CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT)")


class Position(NamedTuple):
    """A place in one repository's change log; positions compare in the order of the log."""

    transaction: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.transaction}.{self.sequence}"

    @classmethod
    def parse(cls, text: str) -> "Position":
        """Read what ``str`` wrote. Raises ValueError."""
        transaction, _, sequence = text.partition(".")
        return cls(int(transaction), int(sequence))


START = Position(0, 0)
"""Before the first change."""


class Change(msgspec.Struct, frozen=True):
    """One line of the log."""

    position: Position
    object_id: str
    kind: Kind
    noted: Instant


def note(cx: Connection, repository_id: int, object_id: str, kind: Kind, now: Instant) -> Position:
    """Write a line in the caller's transaction, and say its position."""
    return note_all(cx, repository_id, [object_id], kind, now)[0]


def note_all(cx: Connection, repository_id: int, object_ids: Sequence[str], kind: Kind, now: Instant) -> list[Position]:
    """Write a line for each of these objects, in this order, and say their positions."""
    if not object_ids:
        return []
    lines = [
        {"repository_id": repository_id, "object_id": object_id, "kind": kind, "noted": now} for object_id in object_ids
    ]
    return [Position(row.transaction, row.sequence) for row in cx.execute(_NOTE[cx.dialect.name], lines)]


def after(cx: Connection, repository_id: int, position: Position, limit: int) -> list[Change]:
    """Read the next lines after a position that no later commit can still precede, oldest first."""
    rows = cx.execute(_NEXT[cx.dialect.name], _after(repository_id, position) | {"most": limit})
    return [Change(Position(row.transaction, row.sequence), row.object_id, row.kind, row.noted) for row in rows]


def are_more_than(cx: Connection, repository_id: int, position: Position, count: int) -> bool:
    """Say whether more than so many lines follow the position that no later commit can still precede."""
    wanted = _after(repository_id, position) | {"passed_over": count}
    return cx.execute(_ONE_FURTHER[cx.dialect.name], wanted).first() is not None


def pending(
    cx: Connection, repository_id: int, position: Position, kinds: Collection[Kind]
) -> dict[str, frozenset[Kind]]:
    """Name the objects with a committed change of these kinds after the position, and which kinds."""
    found: dict[str, set[Kind]] = {}
    for row in cx.execute(_PENDING[cx.dialect.name], _after(repository_id, position) | {"kinds": list(kinds)}):
        found.setdefault(row.object_id, set()).add(row.kind)
    return {object_id: frozenset(kinds) for object_id, kinds in found.items()}


def latest(cx: Connection, repository_id: int) -> Position:
    """Say the position of the last visible line; START when there is none."""
    row = cx.execute(
        sa.select(changes.c.transaction, changes.c.sequence)
        .where(changes.c.repository_id == repository_id)
        .order_by(changes.c.transaction.desc(), changes.c.sequence.desc())
        .limit(1)
    ).first()
    return Position(*row) if row else START


def settled(cx: Connection, repository_id: int) -> Position:
    """Say the position of the last line that no later commit can still precede; START when there is none."""
    wanted = (
        sa.select(changes.c.transaction, changes.c.sequence)
        .where(changes.c.repository_id == repository_id)
        .order_by(changes.c.transaction.desc(), changes.c.sequence.desc())
        .limit(1)
    )
    if cx.dialect.name == "postgresql":
        wanted = wanted.where(changes.c.transaction < _OLDEST_OPEN)
    row = cx.execute(wanted).first()
    return Position(*row) if row else START


def _note(dialect: str) -> ReturningInsert[tuple[int, int]]:
    transaction: sa.TextClause | int = _TRANSACTION_NOW if dialect == "postgresql" else 0
    return (
        changes.insert()
        .values(transaction=transaction)
        .returning(changes.c.transaction, changes.c.sequence, sort_by_parameter_order=True)
    )


def _after(repository_id: int, position: Position) -> dict[str, object]:
    return {"repository": repository_id, "passed": position.transaction, "sequence": position.sequence}


def _later(dialect: str) -> sa.Select[tuple[int, int, str, Kind, Instant]]:
    """Ask for the lines after a position so that the index is read from there on, however long the log has grown."""
    passed, sequence = sa.bindparam("passed", type_=sa.BigInteger), sa.bindparam("sequence", type_=sa.BigInteger)
    later: sa.ColumnElement[bool] = sa.tuple_(changes.c.transaction, changes.c.sequence) > sa.tuple_(passed, sequence)
    if dialect == "sqlite":
        # There every transaction is 0, and a row value's second column does not narrow the index.
        later = sa.and_(changes.c.transaction == passed, changes.c.sequence > sequence)
    return sa.select(
        changes.c.transaction, changes.c.sequence, changes.c.object_id, changes.c.kind, changes.c.noted
    ).where(changes.c.repository_id == sa.bindparam("repository"), later)


def _next(dialect: str) -> sa.Select[tuple[int, int, str, Kind, Instant]]:
    wanted = _later(dialect).order_by(changes.c.transaction, changes.c.sequence).limit(sa.bindparam("most"))
    return wanted.where(changes.c.transaction < _OLDEST_OPEN) if dialect == "postgresql" else wanted


_NOTE = {dialect: _note(dialect) for dialect in ("sqlite", "postgresql")}
_NEXT = {dialect: _next(dialect) for dialect in ("sqlite", "postgresql")}
_ONE_FURTHER = {
    dialect: wanted.with_only_columns(changes.c.sequence).limit(1).offset(sa.bindparam("passed_over"))
    for dialect, wanted in _NEXT.items()
}
_PENDING = {
    dialect: _later(dialect).where(changes.c.kind.in_(sa.bindparam("kinds", expanding=True)))
    for dialect in ("sqlite", "postgresql")
}
