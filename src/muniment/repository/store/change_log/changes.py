"""The change log: which objects have changed, and how, in the order in which the changes became visible?

``database/positions`` says why the order is that of transactions.

The transaction that cuts off the oldest lines stores the position of the cut, so that a follower or a search behind it
notices. Source: docs/decisions/0022.
"""

import itertools
from collections.abc import Collection, Sequence
from typing import Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import (
    BigId,
    PreparedStatement,
    repository_column,
    repository_tables,
    required,
    required_columns,
)
from muniment.database.positions import NEXT_TO_OPEN, OLDEST_OPEN, TRANSACTION_NOW, is_later, parameters
from muniment.database.positions import START as START
from muniment.database.positions import Position as Position
from muniment.database.statements import next_keys, upsert
from muniment.ground.clock import Instant
from muniment.repository.refusals import IndexBehind

Kind = Literal["created", "properties", "owner", "acl", "content", "text", "deleted", "again", "type", "version"]
"""``again``: only the index differs from the database, so the object must be indexed again.

``type``: a property of its type became searchable, or ceased to be. ``version``: the object became, or ceased to be,
the current version of its tree.
"""

_HIDING = "kind NOT IN ('created', 'text', 'type')"
"""A search must not overlook these kinds of change; without the others, it misses at worst a new object or text.

Overlooking ``type`` does no harm, because queries may not use a property that is being reindexed. A query must repeat
this text to use the partial index.
"""

_HIDING_WITH_TEXTS = "kind NOT IN ('created', 'type')"

changes = sa.Table(
    "changes",
    repository_tables,
    sa.Column("sequence", BigId, primary_key=True),
    required("transaction", sa.BigInteger),
    repository_column(),
    required("object_id", sa.String(16)),
    required("kind", sa.String(10)),
    required("noted", sa.BigInteger),
    sa.Index("ix_changes_order", "repository_id", "transaction", "sequence"),
    # Changes that a search must not overlook. Most lines are about new objects and texts, and are not in this index.
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
    repository_column(primary_key=True),
    *required_columns(sa.BigInteger, "transaction", "sequence"),
)


class LinesGone(Exception):
    """Lines after the position have been cut off: an index at this position must be rebuilt."""


class Change(msgspec.Struct, frozen=True):
    """One line of the log."""

    position: Position
    object_id: str
    kind: Kind
    noted: Instant


def note(cx: Connection, repository_id: int, object_id: str, kind: Kind, now: Instant) -> Position:
    return note_all(cx, repository_id, [object_id], kind, now)[0]


def note_all(cx: Connection, repository_id: int, object_ids: Sequence[str], kind: Kind, now: Instant) -> list[Position]:
    """Write a line for each of these objects, and return the positions in their order."""
    if not object_ids:
        return []
    line = {"repository_id": repository_id, "kind": kind, "noted": now}
    if cx.dialect.name == "postgresql":
        lines = [line | {"object_id": object_id} for object_id in object_ids]
        return [Position(*row) for row in cx.execute(_NOTE, lines)]
    noted_at = [Position(0, sequence) for sequence in next_keys(cx, changes.c.sequence, len(object_ids))]
    _INSERT.run_for_each(
        cx,
        [
            line | {"transaction": 0, "sequence": position.sequence, "object_id": object_id}
            for position, object_id in zip(noted_at, object_ids, strict=True)
        ],
    )
    return noted_at


def after(cx: Connection, repository_id: int, position: Position, limit: int) -> list[Change]:
    """Return the next lines.

    Raises LinesGone. A line is left out if an open transaction can still add a line before it.
    """
    if position < cut_to(cx, repository_id):
        raise LinesGone(f"The change log no longer holds what followed position {position}.")
    rows = cx.execute(_NEXT[cx.dialect.name], _after(repository_id, position) | {"most": limit})
    return [Change(Position(row.transaction, row.sequence), row.object_id, row.kind, row.noted) for row in rows]


def are_more_than(cx: Connection, repository_id: int, position: Position, count: int) -> bool:
    """Count only lines before which no later commit can put another."""
    parameters = _after(repository_id, position) | {"passed_over": count}
    return cx.execute(_ONE_FURTHER[cx.dialect.name], parameters).first() is not None


def waiting_since(cx: Connection, repository_id: int, position: Position) -> Instant | None:
    row = cx.execute(_NEXT[cx.dialect.name], _after(repository_id, position) | {"most": 1}).first()
    return None if row is None else row.noted


def hiding(
    cx: Connection, repository_id: int, position: Position, limit: int, *, texts: bool = False
) -> dict[str, frozenset[Kind]]:
    """Return the committed changes that a search must not overlook; with ``texts``, those of kind `text` too. One
    statement reads at most ``limit`` + 2 lines. Raises IndexBehind beyond ``limit``, or if lines after the position
    have been cut off.
    """
    rows = _HIDING_AFTER[cx.dialect.name, texts].all(cx, **_after(repository_id, position), most=limit + 2)
    kinds_by_object: dict[str, set[Kind]] = {}
    for transaction, sequence, object_id, kind in rows:
        if object_id:
            kinds_by_object.setdefault(object_id, set()).add(kind)
        elif position < Position(transaction, sequence):
            raise IndexBehind("The index is so far behind that it is being made anew: try again later.")
    if len(rows) > limit and sum(1 for row in rows if row[2]) > limit:
        raise IndexBehind(f"The index is more than {limit} changes behind: try again in a moment.")
    return {object_id: frozenset(kinds) for object_id, kinds in kinds_by_object.items()}


def pending(cx: Connection, repository_id: int, position: Position, object_ids: Collection[str]) -> frozenset[str]:
    if position < cut_to(cx, repository_id):
        raise IndexBehind("The index is so far behind that it must be made anew.")
    if not object_ids:
        return frozenset()
    query = _later(cx.dialect.name).with_only_columns(changes.c.object_id).distinct()
    query = query.where(changes.c.object_id.in_(object_ids))
    return frozenset(cx.scalars(query, _after(repository_id, position)))


def latest(cx: Connection, repository_id: int) -> Position:
    """Return the last line that this transaction sees, even if cut off."""
    return _last(cx, repository_id, sa.true())


def settled_position(cx: Connection, repository_id: int) -> Position:
    """A line is settled if no later commit can put another before it."""
    return _last(
        cx, repository_id, changes.c.transaction < OLDEST_OPEN if cx.dialect.name == "postgresql" else sa.true()
    )


def cut_to(cx: Connection, repository_id: int) -> Position:
    row = cx.execute(_CUT_TO[cx.dialect.name], {"repository": repository_id}).first()
    return Position(row.transaction, row.sequence) if row else START


def cut(cx: Connection, repository_id: int, to: Position, before: Instant, newest: int, limit: int) -> int:
    """Cut off at most ``limit`` of the oldest lines up to ``to``; return how many. A line may go if it was noted before
    ``before``, or if ``newest`` others follow it; the first that may not ends the cut. Two processes at once cut the
    same lines.
    """
    query = sa.select(changes.c.transaction, changes.c.sequence).where(changes.c.repository_id == repository_id)
    forwards = query.add_columns(changes.c.noted).order_by(changes.c.transaction, changes.c.sequence).limit(limit)
    oldest = [(Position(row.transaction, row.sequence), row.noted) for row in cx.execute(forwards)]
    lines = [(position, noted_at) for position, noted_at in oldest if position <= to]
    old_lines = list(itertools.takewhile(lambda line: line[1] < before, lines))
    # The condition keeps this from counting all remaining lines.
    if len(old_lines) < len(lines) and _span(cx, repository_id, lines[0][0]) >= newest:
        backwards = query.order_by(changes.c.transaction.desc(), changes.c.sequence.desc())
        row = cx.execute(backwards.offset(newest).limit(1)).first()
        surplus = Position(*row) if row else START
        old_lines = list(itertools.takewhile(lambda line: line[1] < before or line[0] <= surplus, lines))
    if not old_lines:
        return 0
    cx.execute(_MARK[cx.dialect.name], {"repository_id": repository_id, **old_lines[-1][0]._asdict()})
    # By key: with a pair of columns SQLite would read every line.
    cx.execute(changes.delete().where(changes.c.sequence.in_([position.sequence for position, _ in old_lines])))
    return len(old_lines)


def _span(cx: Connection, repository_id: int, first: Position) -> int:
    """At most so many lines of the repository follow the first: those of others are counted, too."""
    last = sa.select(changes.c.sequence).where(changes.c.repository_id == repository_id)
    newest_first = last.order_by(changes.c.transaction.desc(), changes.c.sequence.desc()).limit(1)
    return int(cx.scalar(newest_first) or first.sequence) - first.sequence


def settle(cx: Connection) -> None:
    """Set the transaction of all lines and cuts to 0 after a restore: another PostgreSQL cluster's transaction numbers
    may be lower.
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


def _after(repository_id: int, position: Position) -> dict[str, object]:
    return {"repository": repository_id, **parameters(position)}


def _later(dialect: str) -> sa.Select[tuple[int, int, str, Kind, Instant]]:
    return sa.select(
        changes.c.transaction, changes.c.sequence, changes.c.object_id, changes.c.kind, changes.c.noted
    ).where(changes.c.repository_id == sa.bindparam("repository"), is_later(dialect, changes))


def _next(dialect: str) -> sa.Select[tuple[int, int, str, Kind, Instant]]:
    query = _later(dialect).order_by(changes.c.transaction, changes.c.sequence).limit(sa.bindparam("most"))
    return query.where(changes.c.transaction < OLDEST_OPEN) if dialect == "postgresql" else query


_INSERT = PreparedStatement(changes.insert())
_NOTE = (
    changes.insert()
    .values(transaction=TRANSACTION_NOW)
    .returning(changes.c.transaction, changes.c.sequence, sort_by_parameter_order=True)
)
_NEXT = {dialect: _next(dialect) for dialect in ("sqlite", "postgresql")}
_ONE_FURTHER = {
    dialect: query.with_only_columns(changes.c.sequence).limit(1).offset(sa.bindparam("passed_over"))
    for dialect, query in _NEXT.items()
}


def _cut_to(dialect: str) -> sa.Select[tuple[int, int]]:
    query = sa.select(cuts.c.transaction, cuts.c.sequence).where(cuts.c.repository_id == sa.bindparam("repository"))
    # A cut that was made in another cluster, before a restore, has no meaning for this one's transactions.
    return query.where(cuts.c.transaction < NEXT_TO_OPEN) if dialect == "postgresql" else query


_CUT_TO = {dialect: _cut_to(dialect) for dialect in ("sqlite", "postgresql")}


def _hiding_after(dialect: str, condition: str) -> sa.CompoundSelect[tuple[int, int, str, Kind]]:
    lines = (
        _later(dialect)
        .with_only_columns(changes.c.transaction, changes.c.sequence, changes.c.object_id, changes.c.kind)
        .where(sa.text(condition))
    )
    empty_text = sa.literal_column("''", sa.String)
    cut_off = _CUT_TO[dialect].add_columns(empty_text.label("object_id"), empty_text.label("kind"))
    return sa.union_all(cut_off, lines).limit(sa.bindparam("most"))


_HIDING_AFTER = {
    (dialect, texts): PreparedStatement(_hiding_after(dialect, _HIDING_WITH_TEXTS if texts else _HIDING))
    for dialect in ("sqlite", "postgresql")
    for texts in (False, True)
}


_NEW = upsert(cuts)
_IS_FURTHER = sa.tuple_(cuts.c.transaction, cuts.c.sequence) < sa.tuple_(
    _NEW.excluded.transaction, _NEW.excluded.sequence
)
_MARK = {
    dialect: _NEW.on_conflict_do_update(
        index_elements=["repository_id"],
        set_=_NEW.excluded["transaction", "sequence"],
        where=sa.or_(_IS_FURTHER, is_replaced),
    )
    for dialect, is_replaced in (("postgresql", cuts.c.transaction >= NEXT_TO_OPEN), ("sqlite", sa.false()))
}
