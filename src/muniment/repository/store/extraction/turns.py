"""Whose file is read next? The owners of waiting files get turns in order; an owner who was served becomes the last. So
a file waits for at most one file of each other owner. An owner has one place, over all repositories, while one of their
files waits.
"""

from collections.abc import Collection
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import repository_tables, required
from muniment.database.statements import upsert

turns = sa.Table(
    "turns",
    repository_tables,
    sa.Column("owner_key", sa.String(400), primary_key=True),
    required("turn", sa.BigInteger),
    sa.Index("ix_turns_line", "turn", "owner_key"),
)


class Turn(NamedTuple):
    """A place in the line; the lowest number is next."""

    number: int
    owner_key: str


FRONT = Turn(0, "")


def join(cx: Connection, owner_keys: Collection[str]) -> None:
    """Put these owners at the end of the line, in the transaction that makes their files wait; who is in it keeps their
    place.

    Nobody can remove them before this transaction ends.
    """
    for owner_key in sorted(set(owner_keys)):
        while True:
            cx.execute(_JOIN, {"owner_key": owner_key})
            # On PostgreSQL, another transaction that sees no waiting file may be removing the owner at this moment.
            if cx.dialect.name == "sqlite" or cx.execute(_HOLD, {"owner_key": owner_key}).first():
                break


def next_due(cx: Connection, turn: Turn, first_due: sa.ScalarSelect[int], now: int) -> Turn | None:
    """The next owner behind this turn of whom ``in_line`` would tell. Locks the row; those that another extractor locks
    are skipped.
    """
    query = _NEXT.where(_is_due(first_due, now))
    row = cx.execute(query, {"number": turn.number, "owner_key": turn.owner_key}).first()
    return Turn(row.turn, row.owner_key) if row else None


def go_to_the_end(cx: Connection, turn: Turn) -> None:
    cx.execute(turns.update().where(turns.c.owner_key == turn.owner_key).values(turn=_LAST))


def lock(cx: Connection, turn: Turn) -> bool:
    """Do not wait: return False if an open transaction queues a file of theirs."""
    return cx.execute(_LOCK, {"owner_key": turn.owner_key}).first() is not None


def leave(cx: Connection, turn: Turn) -> None:
    """Remove an owner of whom, as the caller has made sure, no file waits."""
    cx.execute(turns.delete().where(turns.c.owner_key == turn.owner_key))


def in_line(first_due: sa.ScalarSelect[int], now: int) -> sa.Select[tuple[int]]:
    """Make a query for one owner whose first file is due, or who has no waiting file.

    The subquery ``first_due`` finds when the first file of the owner in ``OWNER_KEY`` is due.
    """
    return sa.select(turns.c.turn).where(_is_due(first_due, now)).limit(1)


def _is_due(first_due: sa.ScalarSelect[int], now: int) -> sa.ColumnElement[bool]:
    return sa.func.coalesce(first_due, 0) <= now


OWNER_KEY = turns.c.owner_key

_LAST = sa.select(sa.func.coalesce(sa.func.max(turns.c.turn), 0) + 1).scalar_subquery()
_JOIN = upsert(turns).values(owner_key=sa.bindparam("owner_key"), turn=_LAST).on_conflict_do_nothing()
_ONE = sa.select(turns).where(turns.c.owner_key == sa.bindparam("owner_key"))
_HOLD = _ONE.with_for_update(read=True, key_share=True)
_LOCK = _ONE.with_for_update(skip_locked=True)
_NEXT = (
    sa.select(turns)
    .where(
        sa.tuple_(turns.c.turn, turns.c.owner_key)
        > sa.tuple_(sa.bindparam("number", type_=sa.BigInteger), sa.bindparam("owner_key", type_=sa.String))
    )
    .order_by(turns.c.turn, turns.c.owner_key)
    .limit(1)
    .with_for_update(key_share=True, skip_locked=True)
)
