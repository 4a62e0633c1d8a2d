"""Which results of a saved search did a caller store?

They belong to the caller, because they were found with the caller's rights; what the caller may not browse any more is
left out when they are read (``objects.lists``).

Source: docs/interface.md, ours 12.
"""

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.repository.refusals import NoStoredResults
from muniment.repository.store.saved.table import saved_results

FORMAT = 1
"""Results of another format are not read."""


class StoredResults(msgspec.Struct, frozen=True):
    """The ids of the hits, a JSON list in order."""

    object_ids: str
    stored: Instant


def write(object_ids: Sequence[str]) -> str:
    return msgspec.json.encode(object_ids).decode()


def keep_results(cx: Connection, search_id: str, caller: str, text: str, now: Instant) -> None:
    """Replace a caller's results; ``caller`` is a key."""
    remove(cx, search_id, caller)
    columns = {"stored": now, "size": len(text), "format": FORMAT, "object_ids": text}
    cx.execute(saved_results.insert().values(search_id=search_id, caller=caller, **columns))


def read(cx: Connection, search_id: str, caller: str) -> StoredResults:
    """Raises NoStoredResults."""
    row = cx.execute(
        sa.select(saved_results.c.object_ids, saved_results.c.stored).where(*_of(search_id, caller))
    ).first()
    if row is None:
        raise NoStoredResults("You have stored no results of this search: PUT stores them.")
    return StoredResults(row.object_ids, row.stored)


def searches_with_results(cx: Connection, search_ids: Collection[str], caller: str) -> frozenset[str]:
    """Return those with results that this caller stored."""
    of_caller = sa.select(saved_results.c.search_id).where(
        saved_results.c.search_id.in_(search_ids), saved_results.c.caller == caller, saved_results.c.format == FORMAT
    )
    return frozenset(cx.scalars(of_caller)) if search_ids else frozenset()


def size(cx: Connection, caller: str) -> int:
    """Sum all results of a caller."""
    total = sa.select(sa.func.coalesce(sa.func.sum(saved_results.c.size), 0)).where(saved_results.c.caller == caller)
    return int(cx.execute(total).scalar_one())


def remove(cx: Connection, search_id: str, caller: str) -> None:
    of_caller = sa.and_(saved_results.c.search_id == search_id, saved_results.c.caller == caller)
    cx.execute(saved_results.delete().where(of_caller))


def remove_among(cx: Connection, search_ids: sa.Select[Any], caller: str) -> None:
    of_searches = saved_results.c.search_id.in_(search_ids)
    cx.execute(saved_results.delete().where(of_searches, saved_results.c.caller == caller))


def remove_all(cx: Connection, search_id: str, *, but: str | None = None) -> None:
    statement = saved_results.delete().where(saved_results.c.search_id == search_id)
    cx.execute(statement if but is None else statement.where(saved_results.c.caller != but))


def forget(cx: Connection, caller: str) -> int:
    return cx.execute(saved_results.delete().where(saved_results.c.caller == caller)).rowcount


def _of(search_id: str, caller: str) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        saved_results.c.search_id == search_id,
        saved_results.c.caller == caller,
        saved_results.c.format == FORMAT,
    )
