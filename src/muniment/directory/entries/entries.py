"""Find and list entries, and write their names and locations. Source: given 2.1, 2.7."""

from collections.abc import Sequence
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.directory import names as spelling
from muniment.directory.entries.credentials import find_of_client
from muniment.directory.entries.table import (
    ADMINISTRATION,
    ADMINISTRATORS,
    CLIENTS,
    IN_NAMED_PARTITION,
    NAMED_IN_PARTITION,
    ROOT,
    SELECT_BY_ID,
    Entry,
    Kind,
    entry_table,
    find_built_in,
    find_first,
    name_space,
    partition_key,
    root_unit,
    rows,
    select_entries,
    select_named,
    to_entry,
)
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import UnknownEntry, UnknownPartition
from muniment.naming import fold_name


def shown_name(names: DirectoryNames, entry: Entry) -> str:
    """Return an entry's name as the wire shows it."""
    if entry.kind == "partition":
        return _shown_partition(names, entry.name, entry.built_in)
    return names.root_unit if entry.built_in == ROOT else entry.name


def shown_partition(names: DirectoryNames, entry: Entry) -> str:
    """Return the name of an entry's partition as the wire shows it."""
    return _shown_partition(names, entry.partition, entry.partition_built_in)


def shown_id(names: DirectoryNames, entry: Entry) -> str:
    """Write a user's or group's id, ``<name>@<partition>`` (given 2.7)."""
    return spelling.user_id(entry.name, shown_partition(names, entry))


def location(names: DirectoryNames, entry: Entry) -> str:
    """Write an entry's distinguished name (given 2.7)."""
    partition = shown_partition(names, entry)
    if entry.kind in ("user", "group"):
        return spelling.location(names, partition, entry.units, name=entry.name)
    units = (entry.name, *entry.units) if entry.kind == "unit" and entry.built_in != ROOT else ()
    return spelling.location(names, partition, units, root=entry.kind == "unit")


def find_partition(cx: Connection, names: DirectoryNames, name: str) -> Entry:
    """Find a partition by its name. Raises UnknownPartition."""
    entry = find_first(cx, select_entries().where(rows.c.space == "", rows.c.name_key == partition_key(names, name)))
    if entry is None:
        raise UnknownPartition(f"There is no partition {name[:100]!r}.")
    return entry


def clients(cx: Connection) -> Entry:
    """Return the partition of OAuth clients. Raises UnknownPartition before initialisation."""
    return find_built_in(cx, CLIENTS)


def administration(cx: Connection) -> Entry:
    """Return the partition of administrators. Raises UnknownPartition before initialisation."""
    return find_built_in(cx, ADMINISTRATION)


def administrators(cx: Connection) -> Entry:
    """Return the group of administrators. Raises UnknownPartition before initialisation."""
    return to_entry(cx.execute(select_named(name_space("members", administration(cx)), ADMINISTRATORS)).one())


def find_user(cx: Connection, names: DirectoryNames, user_id: str) -> Entry:
    """Find a user by ``<name>@<partition>``. Raises UnknownEntry."""
    return _find(cx, names, user_id, "user")


def find_group(cx: Connection, names: DirectoryNames, group_id: str) -> Entry:
    """Find a group by ``<name>@<partition>``. Raises UnknownEntry."""
    return _find(cx, names, group_id, "group")


def find_client(cx: Connection, name: str) -> Entry:
    """Find an OAuth client by its name. Raises UnknownEntry."""
    if credentials := find_of_client(cx, name):
        return credentials.user
    raise UnknownEntry(f"There is no client {name[:100]!r}.")


def find_unit(cx: Connection, names: DirectoryNames, location: str) -> Entry:
    """Find a unit by its location. Raises UnknownEntry, UnknownPartition, BadName."""
    if (entry := find_location(cx, names, location)).kind == "unit":
        return entry
    raise UnknownEntry(f"There is no unit {location[:200]!r}.")


def find_location(cx: Connection, names: DirectoryNames, location: str) -> Entry:
    """Find any entry by its location. Raises UnknownEntry, UnknownPartition, BadName."""
    name, units, partition_name = spelling.split_location(names, location)
    partition = find_partition(cx, names, partition_name)
    if units is None:
        return partition
    unit = unit_at(cx, partition, units[::-1])
    if name is None:
        return unit
    member = find_first(cx, select_named(name_space("members", partition), name))
    if member is None or member.parent_id != unit.id:
        raise UnknownEntry(f"There is no entry {location[:200]!r}.")
    return member


def unit_at(cx: Connection, partition: Entry, path: Sequence[str]) -> Entry:
    """Find a unit by its path below the root unit, the outermost first; no names: the root. Raises UnknownEntry."""
    unit = root_unit(cx, partition)
    for name in path:
        inner = find_first(cx, select_named(name_space("units", unit), name))
        if inner is None:
            raise UnknownEntry(f"There is no unit {name[:100]!r} in {unit.name[:100]!r}.")
        unit = inner
    return unit


def by_id(cx: Connection, entry_id: int) -> Entry | None:
    """Return the entry with this number, or None if it was deleted."""
    return find_first(cx, SELECT_BY_ID, {"entry": entry_id})


def partitions(cx: Connection) -> list[Entry]:
    """List the partitions, oldest first. It selects by space: by kind, SQLite would read all entries."""
    return [to_entry(row) for row in cx.execute(select_entries().where(rows.c.space == "").order_by(rows.c.id))]


def listing(cx: Connection, partition: Entry, kind: Kind, *, after: str = "", limit: int | None = 1000) -> list[Entry]:
    """List a partition's units, groups or users by name, those after ``after``; at most ``limit``, or all with None."""
    query = select_entries().where(
        rows.c.kind == kind, rows.c.partition_id == partition.id, rows.c.name_key > fold_name(after)
    )
    return [to_entry(row) for row in cx.execute(query.order_by(rows.c.name_key, rows.c.id).limit(limit))]


def units_in(cx: Connection, container: Entry) -> list[Entry]:
    """List the units directly in a unit, or a partition's root unit; by their space, so that no users are read."""
    return [to_entry(row) for row in cx.execute(select_entries().where(rows.c.space == name_space("units", container)))]


def acting(at: sa.ColumnElement[int] | int, where: Literal["id", "parent_id"] = "id") -> sa.Exists:
    """Make the condition that an entry is a user who may act and has a password, or contains one (``parent_id``)."""
    live = sa.and_(rows.c.disabled.is_(False), rows.c.locked.is_(False), rows.c.password_hash.is_not(None))
    return sa.exists().where(rows.c[where] == at, rows.c.kind == "user", live)


def select_by_ids(ids: sa.Select[tuple[int]], *kinds: Kind) -> sa.Select[Any]:
    """Make a query for the entries (of these kinds) with the ids of another module's query; ``read`` runs it."""
    of_kind = [rows.c.kind.in_(kinds)] if kinds else []
    return select_entries().where(rows.c.id.in_(ids), *of_kind).order_by(rows.c.kind, rows.c.name_key, rows.c.id)


def read(cx: Connection, query: sa.Select[Any], parameters: dict[str, Any]) -> list[Entry]:
    """Run a query of ``select_by_ids`` with the other module's parameters."""
    return [to_entry(row) for row in cx.execute(query, parameters)]


def units_above(entry: sa.BindParameter[int]) -> sa.Select[tuple[int]]:
    """Make a subquery for the units around an entry, from the inside out, and its partition."""
    units = sa.select(entry_table.c.parent_id.label("id")).where(entry_table.c.id == entry).cte("units", recursive=True)
    outer = entry_table.alias("outer_unit")
    units = units.union(sa.select(outer.c.parent_id).where(outer.c.id == units.c.id))
    return sa.select(units.c.id)


def _find(cx: Connection, names: DirectoryNames, entry_id: str, kind: Kind) -> Entry:
    name, at, partition = entry_id.rpartition("@")
    parameters = {"name": fold_name(name), "partition": partition_key(names, partition), "kind": kind}
    entry = find_first(cx, _BY_NAME, parameters) if at else None
    if entry is None:
        raise UnknownEntry(f"There is no {kind} {entry_id[:200]!r}.")
    return entry


def _shown_partition(names: DirectoryNames, name: str, built_in: str | None) -> str:
    names_on_the_wire = {CLIENTS: names.clients_partition, ADMINISTRATION: names.administration_partition}
    return names_on_the_wire[built_in] if built_in is not None else name


_NAMES: sa.BindParameter[str] = sa.bindparam("names", expanding=True)
BEARING = select_entries().where(IN_NAMED_PARTITION, rows.c.kind.in_(("group", "user")), rows.c.name_key.in_(_NAMES))
_BY_NAME = select_entries().where(NAMED_IN_PARTITION, rows.c.kind == sa.bindparam("kind"))
