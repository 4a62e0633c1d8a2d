"""The change log: what happened to which object, in the order in which it became visible.

A sequence alone does not give that order on PostgreSQL: a transaction that took its number early may commit late, and a
reader that has passed the number would never see it. So each row also carries its transaction's number; a reader takes
only rows whose transaction lies below every transaction still open, ordered by transaction and then by sequence. SQLite
has one writer at a time: there the sequence is the order and the transaction is 0.

The oldest lines are cut off. How far is noted in the same transaction, so whoever stands before that place is told,
and never takes what is left for all there was.
"""

import itertools
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.sql.dml import ReturningInsert

from muniment.clock import Instant
from muniment.db import BigId, repository_tables
from muniment.repository.refusals import IndexBehind

Kind = Literal["created", "properties", "owner", "acl", "content", "text", "deleted"]

_HIDING = "kind NOT IN ('created', 'text')"
"""Kinds of change that a search must not overlook. What was created since is not in the index, and text that was
extracted since is at worst not found yet. A partial index is used only where a query says the very same."""

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
    # What a search must not overlook: most lines are of objects and texts that are new, and are not in here.
    sa.Index(
        "ix_changes_hiding",
        "repository_id",
        "transaction",
        "sequence",
        "object_id",
        "kind",
        sqlite_where=sa.text(_HIDING),
        postgresql_where=sa.text(_HIDING),
    ),
    sqlite_autoincrement=True,
)

cuts = sa.Table(
    "cuts",
    repository_tables,
    sa.Column("repository_id", sa.ForeignKey("repositories.id"), primary_key=True),
    sa.Column("transaction", sa.BigInteger, nullable=False),
    sa.Column("sequence", sa.BigInteger, nullable=False),
)

_TRANSACTION_NOW = sa.text("CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)")
_OLDEST_OPEN = sa.text("CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT)")
_NEXT_TO_OPEN = sa.text("CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT)")


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


class LinesGone(Exception):
    """Lines after the position have been cut off: an index that is true to it must be made anew."""


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
    """Read the next lines after a position that no later commit can still precede, oldest first. Raises LinesGone."""
    if position < cut_to(cx, repository_id):
        raise LinesGone(f"The change log no longer holds what followed position {position}.")
    rows = cx.execute(_NEXT[cx.dialect.name], _after(repository_id, position) | {"most": limit})
    return [Change(Position(row.transaction, row.sequence), row.object_id, row.kind, row.noted) for row in rows]


def are_more_than(cx: Connection, repository_id: int, position: Position, count: int) -> bool:
    """Say whether more than so many lines follow the position that no later commit can still precede."""
    wanted = _after(repository_id, position) | {"passed_over": count}
    return cx.execute(_ONE_FURTHER[cx.dialect.name], wanted).first() is not None


def hiding(cx: Connection, repository_id: int, position: Position, most: int) -> dict[str, frozenset[Kind]]:
    """Name the objects with a committed change after the position that a search must not overlook, and which kinds.

    At most two lines more than ``most`` are read, in one statement. Raises IndexBehind when there are more than that,
    and when lines after the position are gone.
    """
    rows = cx.execute(_HIDING_AFTER[cx.dialect.name], _after(repository_id, position) | {"most": most + 2}).all()
    found: dict[str, set[Kind]] = {}
    for row in rows:
        if row.object_id:
            found.setdefault(row.object_id, set()).add(row.kind)
        elif position < Position(row.transaction, row.sequence):
            raise IndexBehind("The index is so far behind that it is being made anew: try again later.")
    if len(rows) > most and sum(1 for row in rows if row.object_id) > most:
        raise IndexBehind(f"The index is more than {most} changes behind: try again in a moment.")
    return {object_id: frozenset(kinds) for object_id, kinds in found.items()}


def pending(cx: Connection, repository_id: int, position: Position) -> frozenset[str]:
    """Name the objects with any committed change after the position. Raises IndexBehind when lines are gone."""
    if position < cut_to(cx, repository_id):
        raise IndexBehind("The index is so far behind that it must be made anew.")
    wanted = _later(cx.dialect.name).with_only_columns(changes.c.object_id).distinct()
    return frozenset(cx.scalars(wanted, _after(repository_id, position)))


def latest(cx: Connection, repository_id: int) -> Position:
    """Say the position of the last visible line, be it cut off; START when there was none."""
    return _last(cx, repository_id, sa.true())


def settled(cx: Connection, repository_id: int) -> Position:
    """Say the position of the last line that no later commit can still precede; START when there was none."""
    return _last(
        cx, repository_id, changes.c.transaction < _OLDEST_OPEN if cx.dialect.name == "postgresql" else sa.true()
    )


def cut_to(cx: Connection, repository_id: int) -> Position:
    """Say the position of the last line that was cut off; START when none was."""
    row = cx.execute(_CUT_TO[cx.dialect.name], {"repository": repository_id}).first()
    return Position(row.transaction, row.sequence) if row else START


def cut(cx: Connection, repository_id: int, to: Position, before: Instant, newest: int, limit: int) -> int:
    """Cut off the oldest lines, none after the position ``to``, at most so many at a time; says how many.

    A line goes that was noted before the instant, or that ``newest`` others follow. Whoever cuts at the same time cuts
    the same.
    """
    counted = sa.select(changes.c.transaction, changes.c.sequence).where(changes.c.repository_id == repository_id)
    forwards = counted.add_columns(changes.c.noted).order_by(changes.c.transaction, changes.c.sequence).limit(limit)
    read = [(Position(row.transaction, row.sequence), row.noted) for row in cx.execute(forwards)]
    lines = [(position, noted) for position, noted in read if position <= to]
    gone = list(itertools.takewhile(lambda line: line[1] < before, lines))
    if len(gone) < len(lines):  # only then: it goes through all that stay
        backwards = counted.order_by(changes.c.transaction.desc(), changes.c.sequence.desc())
        row = cx.execute(backwards.offset(newest).limit(1)).first()
        surplus = Position(row.transaction, row.sequence) if row else START
        gone = list(itertools.takewhile(lambda line: line[1] < before or line[0] <= surplus, lines))
    if not gone:
        return 0
    last = gone[-1][0]
    mark = {"repository_id": repository_id, "transaction": last.transaction, "sequence": last.sequence}
    cx.execute(_MARK[cx.dialect.name], mark)
    # By their keys: SQLite would compare a pair of columns with every line there is.
    cx.execute(changes.delete().where(changes.c.sequence.in_([position.sequence for position, _ in gone])))
    return len(gone)


def settle(cx: Connection) -> None:
    """Let every line, and every mark of a cut, lie before whatever is written from now on, as after a restore.

    Another cluster of PostgreSQL counts its transactions anew, and may be behind those in the lines.
    """
    for table in (changes, cuts):
        cx.execute(table.update().values(transaction=0))


def _last(cx: Connection, repository_id: int, visible: sa.ColumnElement[bool]) -> Position:
    row = cx.execute(
        sa.select(changes.c.transaction, changes.c.sequence)
        .where(changes.c.repository_id == repository_id, visible)
        .order_by(changes.c.transaction.desc(), changes.c.sequence.desc())
        .limit(1)
    ).first()
    return max(Position(*row) if row else START, cut_to(cx, repository_id))


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


def _cut_to(dialect: str) -> sa.Select[tuple[int, int]]:
    wanted = sa.select(cuts.c.transaction, cuts.c.sequence).where(cuts.c.repository_id == sa.bindparam("repository"))
    # A place of a cluster that the database was restored from says nothing of this one's transactions.
    return wanted.where(cuts.c.transaction < _NEXT_TO_OPEN) if dialect == "postgresql" else wanted


_CUT_TO = {dialect: _cut_to(dialect) for dialect in ("sqlite", "postgresql")}


def _hiding_after(dialect: str) -> sa.CompoundSelect[tuple[int, int, str, Kind]]:
    """Ask for the place to which the log is cut (a line without an object) and for the lines, of one moment."""
    lines = (
        _later(dialect)
        .with_only_columns(changes.c.transaction, changes.c.sequence, changes.c.object_id, changes.c.kind)
        .where(sa.text(_HIDING))
    )
    nothing = sa.literal_column("''", sa.String)
    cut_off = _CUT_TO[dialect].add_columns(nothing.label("object_id"), nothing.label("kind"))
    return sa.union_all(cut_off, lines).limit(sa.bindparam("most"))


_HIDING_AFTER = {dialect: _hiding_after(dialect) for dialect in ("sqlite", "postgresql")}


def _mark(insert: postgresql.Insert | sqlite.Insert, replaced: sa.ColumnElement[bool]) -> sa.Executable:
    further = sa.tuple_(cuts.c.transaction, cuts.c.sequence) < sa.tuple_(
        insert.excluded.transaction, insert.excluded.sequence
    )
    fresh = {name: insert.excluded[name] for name in ("transaction", "sequence")}
    return insert.on_conflict_do_update(index_elements=["repository_id"], set_=fresh, where=sa.or_(further, replaced))


_MARK = {
    "postgresql": _mark(postgresql.insert(cuts), cuts.c.transaction >= _NEXT_TO_OPEN),
    "sqlite": _mark(sqlite.insert(cuts), sa.false()),
}
