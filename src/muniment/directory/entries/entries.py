"""Which entries are there, where do they lie, and how are they named? Source: given 2.1, 2.7."""

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
    """Name an entry as the wire does."""
    if entry.kind == "partition":
        return _shown_partition(names, entry.name, entry.built_in)
    return names.root_unit if entry.built_in == ROOT else entry.name


def shown_partition(names: DirectoryNames, entry: Entry) -> str:
    """Name an entry's partition as the wire does."""
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
    found = find_first(cx, select_entries().where(rows.c.space == "", rows.c.name_key == partition_key(names, name)))
    if found is None:
        raise UnknownPartition(f"There is no partition {name[:100]!r}.")
    return found


def clients(cx: Connection) -> Entry:
    """Give the partition of OAuth clients. Raises UnknownPartition before initialisation."""
    return find_built_in(cx, CLIENTS)


def administration(cx: Connection) -> Entry:
    """Give the partition of administrators. Raises UnknownPartition before initialisation."""
    return find_built_in(cx, ADMINISTRATION)


def administrators(cx: Connection) -> Entry:
    """Give the group of administrators. Raises UnknownPartition before initialisation."""
    return to_entry(cx.execute(select_named(name_space("members", administration(cx)), ADMINISTRATORS)).one())


def find_user(cx: Connection, names: DirectoryNames, user_id: str) -> Entry:
    """Find a user by ``<name>@<partition>``. Raises UnknownEntry."""
    return _found(cx, names, user_id, "user")


def find_group(cx: Connection, names: DirectoryNames, group_id: str) -> Entry:
    """Find a group by ``<name>@<partition>``. Raises UnknownEntry."""
    return _found(cx, names, group_id, "group")


def find_client(cx: Connection, name: str) -> Entry:
    """Find an OAuth client by its name. Raises UnknownEntry."""
    if found := find_of_client(cx, name):
        return found.user
    raise UnknownEntry(f"There is no client {name[:100]!r}.")


def find_unit(cx: Connection, names: DirectoryNames, location: str) -> Entry:
    """Find a unit by its location. Raises UnknownEntry, UnknownPartition, BadName."""
    if (found := find_location(cx, names, location)).kind == "unit":
        return found
    raise UnknownEntry(f"There is no unit {location[:200]!r}.")


def find_location(cx: Connection, names: DirectoryNames, location: str) -> Entry:
    """Find any entry by its location. Raises UnknownEntry, UnknownPartition, BadName."""
    name, units, partition_name = spelling.split_location(names, location)
    partition = find_partition(cx, names, partition_name)
    if units is None:
        return partition
    entry = unit_at(cx, partition, units[::-1])
    if name is None:
        return entry
    found = find_first(cx, select_named(name_space("members", partition), name))
    if found is None or found.parent_id != entry.id:
        raise UnknownEntry(f"There is no entry {location[:200]!r}.")
    return found


def unit_at(cx: Connection, partition: Entry, path: Sequence[str]) -> Entry:
    """Find a unit by its names, from the outermost below the root inwards (none: the root). Raises UnknownEntry."""
    unit = root_unit(cx, partition)
    for name in path:
        found = find_first(cx, select_named(name_space("units", unit), name))
        if found is None:
            raise UnknownEntry(f"There is no unit {name[:100]!r} in {unit.name[:100]!r}.")
        unit = found
    return unit


def by_id(cx: Connection, entry_id: int) -> Entry | None:
    """Give an entry by its number, or None when it was deleted."""
    return find_first(cx, SELECT_BY_ID, {"entry": entry_id})


def partitions(cx: Connection) -> list[Entry]:
    """List the partitions, in the order they were made; by their space, for SQLite reads all entries for their kind."""
    return [to_entry(row) for row in cx.execute(select_entries().where(rows.c.space == "").order_by(rows.c.id))]


def listing(cx: Connection, partition: Entry, kind: Kind, *, after: str = "", limit: int | None = 1000) -> list[Entry]:
    """List a partition's units, groups or users by name, those after ``after``; ``limit`` at most, None: all."""
    wanted = select_entries().where(
        rows.c.kind == kind, rows.c.partition_id == partition.id, rows.c.name_key > fold_name(after)
    )
    return [to_entry(row) for row in cx.execute(wanted.order_by(rows.c.name_key, rows.c.id).limit(limit))]


def units_in(cx: Connection, container: Entry) -> list[Entry]:
    """List the units that lie in a unit itself, or a partition's root unit; by their space, where no users are."""
    return [to_entry(row) for row in cx.execute(select_entries().where(rows.c.space == name_space("units", container)))]


def acting(at: sa.ColumnElement[int] | int, where: Literal["id", "parent_id"] = "id") -> sa.Exists:
    """Ask whether this entry is a user who may act and has a password, or one lies in it (``parent_id``)."""
    live = sa.and_(rows.c.disabled.is_(False), rows.c.locked.is_(False), rows.c.password_hash.is_not(None))
    return sa.exists().where(rows.c[where] == at, rows.c.kind == "user", live)


def those(wanted: sa.Select[tuple[int]], *kinds: Kind) -> sa.Select[Any]:
    """A query for the entries (of these kinds) whose numbers another noun's query gives; ``read`` reads its rows."""
    of_kind = [rows.c.kind.in_(kinds)] if kinds else []
    return select_entries().where(rows.c.id.in_(wanted), *of_kind).order_by(rows.c.kind, rows.c.name_key, rows.c.id)


def read(cx: Connection, wanted: sa.Select[Any], parameters: dict[str, Any]) -> list[Entry]:
    """Run what ``those`` made; the parameters are the other noun's own."""
    return [to_entry(row) for row in cx.execute(wanted, parameters)]


def units_above(entry: sa.BindParameter[int]) -> sa.Select[tuple[int]]:
    """A query for the units an entry lies in, outwards, and its partition; for use in another noun's statement."""
    units = sa.select(entry_table.c.parent_id.label("id")).where(entry_table.c.id == entry).cte("units", recursive=True)
    outer = entry_table.alias("outer_unit")
    units = units.union(sa.select(outer.c.parent_id).where(outer.c.id == units.c.id))
    return sa.select(units.c.id)


def _found(cx: Connection, names: DirectoryNames, entry_id: str, kind: Kind) -> Entry:
    name, at, partition = entry_id.rpartition("@")
    parameters = {"name": fold_name(name), "partition": partition_key(names, partition), "kind": kind}
    found = find_first(cx, _BY_NAME, parameters) if at else None
    if found is None:
        raise UnknownEntry(f"There is no {kind} {entry_id[:200]!r}.")
    return found


def _shown_partition(names: DirectoryNames, name: str, built_in: str | None) -> str:
    shown = {CLIENTS: names.clients_partition, ADMINISTRATION: names.administration_partition}
    return shown[built_in] if built_in is not None else name


_NAMES: sa.BindParameter[str] = sa.bindparam("names", expanding=True)
BEARING = select_entries().where(IN_NAMED_PARTITION, rows.c.kind.in_(("group", "user")), rows.c.name_key.in_(_NAMES))
_BY_NAME = select_entries().where(NAMED_IN_PARTITION, rows.c.kind == sa.bindparam("kind"))
