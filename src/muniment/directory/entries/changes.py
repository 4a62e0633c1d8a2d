"""Which entries were added, changed or removed, in the order in which that became visible?

``database/positions`` says why the order is that of transactions. The purge keeps the last line that it cuts off, as a
mark: who follows from a position before it has missed something.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import BigId, PreparedStatement, directory_tables, required
from muniment.database.positions import OLDEST_OPEN, START, TRANSACTION_NOW, Position, is_later, parameters
from muniment.directory import audit
from muniment.directory.entries.table import FLAGS, Entry, entry_table, find_by_id
from muniment.ground.clock import Instant

What = Literal["added", "changed", "members", "removed"]
"""``members``: the direct members of a group or role."""

_CUT = "cut"

_changes = sa.Table(
    "entry_changes",
    directory_tables,
    sa.Column("sequence", BigId, primary_key=True),
    required("transaction", sa.BigInteger),
    required("uuid", sa.String(36)),
    required("kind", sa.String(10)),
    sa.Column("partition_uuid", sa.String(36)),
    required("what", sa.String(10)),
    required("noted", sa.BigInteger),
    sa.Index("ix_entry_changes_order", "transaction", "sequence"),
    sqlite_autoincrement=True,
)


class ChangesGone(Exception):
    """Changes after the position have been purged: list the entries anew, and go on from ``latest``."""


class EntryChange(msgspec.Struct, frozen=True):
    """One change of an entry, which may be gone by now. ``partition_uuid`` is None for a partition."""

    position: Position
    uuid: str
    kind: str
    partition_uuid: str | None
    what: What
    noted: Instant


def touch(cx: Connection, entry: Entry, now: Instant, **values: Any) -> None:
    """Change columns of the entry, or nothing of its row but its revision. The row is locked until the commit."""
    # Others may have changed it since the caller read it.
    present = find_by_id(cx, entry.id) if values else None
    written = values | {"modified": now, "revision": entry_table.c.revision + 1}
    cx.execute(entry_table.update().where(entry_table.c.id == entry.id).values(**written))
    note(cx, entry.id, "changed", now)
    if present is not None:
        _record(cx, present, values)


def state(disabled: bool, locked: bool) -> str:
    """For the audit."""
    return ", ".join(name for name, is_set in (("disabled", disabled), ("locked", locked)) if is_set) or "active"


def word(has_secret: bool) -> str:
    """For the audit, instead of a secret."""
    return "set" if has_secret else "none"


def note(cx: Connection, entry_id: int, what: What, now: Instant) -> None:
    """Before the entry goes, if it does."""
    _NOTE[cx.dialect.name].run(cx, entry=entry_id, what=what, noted=now)


def note_all_inside(cx: Connection, unit_id: int, now: Instant) -> None:
    """What lies directly in a unit has changed."""
    cx.execute(_NOTE_INSIDE[cx.dialect.name], {"unit": unit_id, "what": "changed", "noted": now})


def after(cx: Connection, position: Position, limit: int) -> list[EntryChange]:
    """Return the next changes; one is left out if an open transaction can still add another before it.

    Raises ChangesGone.
    """
    rows = cx.execute(_NEXT[cx.dialect.name], parameters(position) | {"most": limit}).all()
    if any(row.what == _CUT for row in rows):
        raise ChangesGone(str(position))
    return [_read(row) for row in rows]


def latest(cx: Connection) -> Position:
    """No later commit can put a change before it."""
    row = cx.execute(_LATEST[cx.dialect.name]).first()
    return Position(row.transaction, row.sequence) if row else START


def purge(cx: Connection, before: Instant, limit: int) -> int:
    """Cut off at most ``limit`` of the oldest changes, of before this instant."""
    oldest = sa.select(*_changes.c["sequence", "noted"]).order_by(_changes.c.transaction, _changes.c.sequence)
    old = [sequence for sequence, noted in cx.execute(oldest.limit(limit)) if noted < before]
    if len(old) < 2:
        return 0
    cx.execute(_changes.delete().where(_changes.c.sequence.in_(old[:-1])))
    cx.execute(_changes.update().where(_changes.c.sequence == old[-1]).values(what=_CUT))
    return len(old) - 1


def settle(cx: Connection) -> None:
    """After a restore: another PostgreSQL cluster's transaction numbers may be lower."""
    cx.execute(_changes.update().values(transaction=0))


def _record(cx: Connection, entry: Entry, values: Mapping[str, Any]) -> None:
    names = [name for name in _RECORDED if name in values and values[name] != getattr(entry, name)]
    before, after = {name: getattr(entry, name) for name in names}, {name: values[name] for name in names}
    rights: list[audit.Right] = []
    if not {"disabled", "locked"}.isdisjoint(names):
        flags = (values.get(name, getattr(entry, name)) for name in ("disabled", "locked"))
        rights.append(audit.Right("state", entry.uuid, "", state(entry.disabled, entry.locked), state(*flags)))
    if "password_hash" in values:
        before["password"], after["password"] = word(entry.has_password), word(values["password_hash"] is not None)
    if "parent_id" in values and values["parent_id"] != entry.parent_id:
        units = entry.parent_id, values["parent_id"]
        found = cx.execute(sa.select(*entry_table.c["id", "uuid", "name"]).where(entry_table.c.id.in_(units)))
        about = {row.id: row for row in found}
        before["unit"], after["unit"] = (about[each].name for each in units)
        former, new = (about[each].uuid for each in units)
        rights.append(audit.Right("location", entry.uuid, new, former, new))
    if before:
        audit.record(cx, f"{entry.target.kind} changed", entry.target, before, after, rights=rights)


def _read(row: sa.Row[Any]) -> EntryChange:
    position = Position(row.transaction, row.sequence)
    return EntryChange(position, row.uuid, row.kind, row.partition_uuid, row.what, row.noted)


def _note(dialect: str, which: sa.ColumnElement[bool]) -> sa.Insert:
    partition = entry_table.alias("partition")
    source = entry_table.outerjoin(partition, partition.c.id == entry_table.c.partition_id)
    number: sa.ColumnElement[int] = (
        sa.literal_column(TRANSACTION_NOW.text, sa.BigInteger) if dialect == "postgresql" else sa.literal(0)
    )
    line = sa.select(
        number,
        entry_table.c.uuid,
        entry_table.c.kind,
        partition.c.uuid,
        sa.bindparam("what", type_=sa.String),
        sa.bindparam("noted", type_=sa.BigInteger),
    )
    columns = ["transaction", "uuid", "kind", "partition_uuid", "what", "noted"]
    return _changes.insert().from_select(columns, line.select_from(source).where(which))


def _next(dialect: str) -> sa.Select[tuple[int, int, str, str, str | None, What, Instant]]:
    columns = _changes.c["transaction", "sequence", "uuid", "kind", "partition_uuid", "what", "noted"]
    query = sa.select(*columns).where(is_later(dialect, _changes))
    query = query.order_by(_changes.c.transaction, _changes.c.sequence).limit(sa.bindparam("most"))
    return query.where(_changes.c.transaction < OLDEST_OPEN) if dialect == "postgresql" else query


def _latest(dialect: str) -> sa.Select[tuple[int, int]]:
    query = sa.select(_changes.c.transaction, _changes.c.sequence)
    query = query.order_by(_changes.c.transaction.desc(), _changes.c.sequence.desc()).limit(1)
    return query.where(_changes.c.transaction < OLDEST_OPEN) if dialect == "postgresql" else query


_RECORDED = (*FLAGS, "name", "description", "external_id")
_DIALECTS = ("sqlite", "postgresql")
_NOTE = {
    dialect: PreparedStatement(_note(dialect, entry_table.c.id == sa.bindparam("entry", type_=sa.BigInteger)))
    for dialect in _DIALECTS
}
_NOTE_INSIDE = {
    dialect: _note(dialect, entry_table.c.parent_id == sa.bindparam("unit", type_=sa.BigInteger))
    for dialect in _DIALECTS
}
_NEXT = {dialect: _next(dialect) for dialect in _DIALECTS}
_LATEST = {dialect: _latest(dialect) for dialect in _DIALECTS}
