"""Which objects must be indexed again because a property became searchable, or ceased to be?

Objects that have a value of it are noted in the change log, some at a time, by counter. The same transaction writes the
last counter to ``reindexings``: so the work goes on after a kill, any number of processes may do it, and each knows
which properties a document holds.

Until the work ends, queries that use the property are refused (docs/decisions/0076).
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import BigId, repository_column, repository_tables, required, required_columns
from muniment.ground.clock import Instant
from muniment.repository.store.change_log import changes
from muniment.repository.store.objects import table
from muniment.repository.store.objects.table import StoredObject, objects, type_properties
from muniment.repository.store.objects.types import object_types

reindexings = sa.Table(
    "reindexings",
    repository_tables,
    sa.Column("id", BigId, primary_key=True),
    repository_column(),
    required("property", sa.String(64)),
    # The counter of the last object that was looked at; null if all were.
    sa.Column("after", sa.BigInteger),
    # The position in the change log at which the last object was noted.
    *required_columns(sa.BigInteger, "transaction", "sequence", "begun"),
    sa.UniqueConstraint("repository_id", "property"),
)

LOOKED_AT, NOTED = 2000, 400


class Reindexing(NamedTuple):
    """``after`` is the counter of the last object looked at, None if all were; ``position`` that of the last change
    noted.
    """

    id: int
    repository_id: int
    property: str
    after: int | None
    position: changes.Position


def begin(cx: Connection, repository_id: int, name: str, now: Instant, *, searchable: bool) -> None:
    """Make a property searchable, or not, in every type that has it.

    The caller has called ``object_types.lock_all``, and then seen that it is not being reindexed.
    """
    of_repository = sa.select(table.object_types.c.id).where(table.object_types.c.repository_id == repository_id)
    rows = sa.and_(type_properties.c.name == name, type_properties.c.type_id.in_(of_repository))
    cx.execute(type_properties.update().where(rows).values(searchable=searchable, awaiting_index=True))
    # A property of this name may have been removed while it was being reindexed.
    cx.execute(reindexings.delete().where(_of(repository_id, name)))
    row = {"repository_id": repository_id, "property": name, "after": 0, "begun": now}
    cx.execute(reindexings.insert().values(**row, transaction=0, sequence=0))


def under_way(cx: Connection) -> list[Reindexing]:
    """List them over all repositories, in the order in which they began."""
    return [_read(row) for row in cx.execute(sa.select(reindexings).order_by(reindexings.c.id))]


def advance(cx: Connection, reindexing_id: int, now: Instant) -> Reindexing | None:
    """Note the next objects; return None if another process has finished.

    The row is locked until the commit: others wait, then go on after these objects.
    """
    row = cx.execute(sa.select(reindexings).where(reindexings.c.id == reindexing_id).with_for_update()).first()
    if row is None:
        return None
    current = _read(row)
    if current.after is None:
        return current
    types = object_types.catalogue(cx, current.repository_id).having(current.property)
    # JSON escapes a quotation mark within a text, so only the name of a property matches.
    has_value = sa.and_(
        objects.c.type.in_(sorted(types)), objects.c.properties.contains(f'"{current.property}":', autoescape=True)
    )
    query = sa.select(objects.c.seq, objects.c.id, has_value.label("has_value"))
    query = query.where(objects.c.repository_id == current.repository_id, objects.c.seq > current.after)
    looked_at = cx.execute(query.order_by(objects.c.seq).limit(LOOKED_AT)).all()
    ids: list[str] = []
    after = current.after
    for seq, object_id, is_wanted in looked_at:
        if is_wanted and len(ids) == NOTED:
            break
        after = seq
        ids += [object_id] if is_wanted else []
    positions = changes.note_all(cx, current.repository_id, ids, "type", now)
    further = current._replace(
        after=after if looked_at else None, position=positions[-1] if positions else current.position
    )
    columns = {"after": further.after, **further.position._asdict()}
    cx.execute(reindexings.update().where(reindexings.c.id == current.id).values(columns))
    return further


def finish(cx: Connection, done: Reindexing) -> None:
    """End a reindexing; the caller has seen that the index has reached ``done.position``.

    Without the ``object_types.lock_all`` in here, a property added to a type at the same time could wait for the index
    for ever. Nothing changes if another process was first.
    """
    object_types.lock_all(cx, done.repository_id)
    # SQLite may give the id to a later reindexing, perhaps of the same property.
    same = (reindexings.c.id == done.id, _of(done.repository_id, done.property), reindexings.c.after.is_(None))
    at = (reindexings.c.transaction == done.position.transaction, reindexings.c.sequence == done.position.sequence)
    unchanged = sa.and_(*same, *at)
    if not cx.execute(reindexings.delete().where(unchanged)).rowcount:
        return
    of_repository = sa.select(table.object_types.c.id).where(table.object_types.c.repository_id == done.repository_id)
    rows = sa.and_(type_properties.c.name == done.property, type_properties.c.type_id.in_(of_repository))
    cx.execute(type_properties.update().where(rows).values(awaiting_index=False))


def _of(repository_id: int, name: str) -> sa.ColumnElement[bool]:
    return sa.and_(reindexings.c.repository_id == repository_id, reindexings.c.property == name)


class IndexedProperties:
    """Which properties does an object's document hold, as of one read?"""

    def __init__(self, catalogue: object_types.Catalogue, reached: Mapping[str, int | None]) -> None:
        self._unsearchable, self._reached = catalogue.unsearchable, reached

    @classmethod
    def read(cls, cx: Connection, repository_id: int, catalogue: object_types.Catalogue) -> "IndexedProperties":
        """Send no statement if no property is being reindexed."""
        reached: dict[str, int | None] = {}
        if catalogue.awaiting_index:
            query = sa.select(reindexings.c.property, reindexings.c.after)
            rows = cx.execute(query.where(reindexings.c.repository_id == repository_id))
            # A row of a property that was removed, and perhaps added anew, stays until it is finished.
            reached = {row.property: row.after for row in rows if row.property in catalogue.awaiting_index}
        return cls(catalogue, reached)

    def lacking(self, stored: StoredObject) -> AbstractSet[str]:
        if not self._reached:
            return self._unsearchable
        lacking = set(self._unsearchable)
        for name, after in self._reached.items():
            if after is not None and stored.seq > after:  # its document was made before the change
                lacking ^= {name}
        return lacking


def _read(row: sa.Row[tuple[int, int, str, int | None, int, int, Instant]]) -> Reindexing:
    return Reindexing(
        row.id, row.repository_id, row.property, row.after, changes.Position(row.transaction, row.sequence)
    )
