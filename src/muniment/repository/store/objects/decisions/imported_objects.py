"""How do objects with ids and dates, such as those of an export, come into a repository?

No right is checked, and nobody sees the objects before the repository is opened.
"""

from collections.abc import Collection, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import portions
from muniment.database.statements import next_keys
from muniment.ground.clock import Instant
from muniment.repository.store.change_log import changes
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.objects import objects, table
from muniment.repository.store.objects.contents import further_contents, stored_contents, usage
from muniment.repository.store.objects.folders import filing
from muniment.repository.store.objects.listing.view import RepositoryView

_objects = table.objects


class Arrival(msgspec.Struct, frozen=True):
    """An object without a counter yet."""

    stored: table.StoredObject
    further: tuple[further_contents.ObjectContent, ...] = ()


def keep_arrivals(
    cx: Connection, view: RepositoryView, arrivals: Sequence[Arrival], shared: Collection[str], now: Instant
) -> list[StoredContent]:
    """Store objects; return the contents that their rows name, in order.

    ``shared`` are keys that rows name already; of other contents only the store has the bytes. For equal bytes, a row
    names the stored content. The folders of an object are there already, or before it.

    Raises UnknownType, and VersionConflict if something that an object refers to is gone.
    """
    contents = [each for arrival in arrivals for each in _contents(arrival)]
    kept = [each for each in stored_contents.keep_or_share(cx, contents, shared) if each is not None]
    by_digest = {each.sha256: each for each in kept}
    stored_objects = [
        msgspec.structs.replace(
            arrival.stored,
            seq=seq,
            content=None if arrival.stored.content is None else by_digest[arrival.stored.content.sha256],
        )
        for arrival, seq in zip(arrivals, next_keys(cx, table.objects.c.seq, len(arrivals)), strict=True)
    ]
    objects.put_back(cx, view, stored_objects, now)
    further = [
        msgspec.structs.replace(each, content=by_digest[each.content.sha256])
        for arrival in arrivals
        for each in arrival.further
    ]
    further_contents.put_back(cx, further)
    sizes = {arrival.stored.id: sum(each.content.size for each in arrival.further) for arrival in arrivals}
    usage.add_usage(cx, usage.amounts(stored_objects, sizes), None)
    return kept


def link(cx: Connection, stored: table.StoredObject, folder_ids: Sequence[str], now: Instant) -> None:
    """Put an object just kept into exactly these folders; its modification date and revision stay.

    Raises IntegrityError if a folder is missing.
    """
    columns = filing.write(cx, stored, folder_ids)
    cx.execute(_objects.update().where(_objects.c.seq == stored.seq).values(**columns))
    changes.note(cx, stored.repository_id, stored.id, "properties", now)


def present(cx: Connection, repository_id: int, ids: Collection[str]) -> set[str]:
    return {row[0] for row in _rows(cx, ids) if row[1] == repository_id}


def taken(cx: Connection, ids: Collection[str]) -> list[str]:
    """Return those that objects of any repository have, sorted."""
    return sorted(row[0] for row in _rows(cx, ids))


def foreign_trees(cx: Connection, repository_id: int, chronicle_ids: Collection[str]) -> set[str]:
    foreign = {row[0] for row in _rows(cx, chronicle_ids) if row[1] != repository_id}
    for portion in portions(sorted(set(chronicle_ids))):
        query = sa.select(_objects.c.chronicle_id).where(
            _objects.c.chronicle_id.in_(portion), _objects.c.repository_id != repository_id
        )
        foreign.update(cx.scalars(query.distinct()))
    return foreign


def broken_tree(cx: Connection, repository_id: int) -> str | None:
    """Return the chronicle id of a tree without exactly one current version, or None."""
    current = sa.func.sum(sa.case((_objects.c.former == 0, 1), else_=0))
    trees = sa.select(_objects.c.chronicle_id).where(
        _objects.c.repository_id == repository_id, _objects.c.chronicle_id.is_not(None)
    )
    row = cx.execute(trees.group_by(_objects.c.chronicle_id).having(current != 1).limit(1)).first()
    return None if row is None else str(row[0])


def _contents(arrival: Arrival) -> list[StoredContent]:
    return further_contents.with_main(arrival.stored.content, arrival.further)


def _rows(cx: Connection, ids: Collection[str]) -> list[tuple[str, int]]:
    rows: list[tuple[str, int]] = []
    for portion in portions(sorted(set(ids))):
        query = sa.select(_objects.c.id, _objects.c.repository_id).where(_objects.c.id.in_(portion))
        rows += [(row[0], row[1]) for row in cx.execute(query)]
    return rows
