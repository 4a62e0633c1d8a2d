"""Find and list entries, and write their names and locations (given 2.1, 2.7)."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, assert_never

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement
from muniment.database.statements import one_of_few, without_index
from muniment.directory.entries import bare_names
from muniment.directory.entries import names as spelling
from muniment.directory.entries.credentials import find_of_client
from muniment.directory.entries.table import (
    ADMINISTRATION,
    ADMINISTRATORS,
    CLIENTS,
    IN_NAMED_PARTITION,
    NAMED_IN_PARTITION,
    ROOT,
    Entry,
    Kind,
    entry_table,
    find_built_in,
    find_by_id,
    find_first,
    means_administrators,
    member_key,
    name_space,
    partition_key,
    root_unit,
    rows,
    select_entries,
    select_named,
    shown_name_columns,
    shown_partition_columns,
    to_entry,
)
from muniment.directory.options import DirectoryNames, DirectoryOptions
from muniment.directory.refusals import NameTaken, UnknownClient, UnknownEntry, UnknownGroup, UnknownPartition
from muniment.ground.naming import fold_name


def shown_name(names: DirectoryNames, entry: Entry) -> str:
    if entry.kind == "partition":
        return _shown_partition(names, entry.name, entry.built_in)
    if entry.built_in == ADMINISTRATORS:
        return names.administrators_group
    return names.root_unit if entry.built_in == ROOT else entry.name


def shown_partition(names: DirectoryNames, entry: Entry) -> str:
    return _shown_partition(names, entry.partition, entry.partition_built_in)


def shown_id(names: DirectoryNames, entry: Entry) -> str:
    return spelling.user_id(shown_name(names, entry), shown_partition(names, entry))


def location(names: DirectoryNames, entry: Entry) -> str:
    partition = shown_partition(names, entry)
    match entry.kind:
        case "user" | "group" | "role":
            return spelling.location(names, partition, entry.units, name=shown_name(names, entry))
        case "unit":
            units = (entry.name, *entry.units) if entry.built_in != ROOT else ()
            return spelling.location(names, partition, units)
        case "partition":
            return spelling.location(names, partition, root=False)
        case _:
            assert_never(entry.kind)


def find_partition(cx: Connection, names: DirectoryNames, name: str) -> Entry:
    """Raises UnknownPartition."""
    row = _PARTITION.first(cx, partition=partition_key(names, name))
    if row is None:
        raise UnknownPartition(f"There is no partition {name[:100]!r}.")
    return to_entry(row)


def clients(cx: Connection) -> Entry:
    return find_built_in(cx, CLIENTS)


def administration(cx: Connection) -> Entry:
    return find_built_in(cx, ADMINISTRATION)


def administrators(cx: Connection) -> Entry:
    return to_entry(cx.execute(select_named(name_space("members", administration(cx)), ADMINISTRATORS)).one())


def check_name(names: DirectoryNames, place: Entry, name: str) -> None:
    """Raises NameTaken if a new name of a user, group or role there is that of the administrators on the wire."""
    if means_administrators(names, f"@{place.partition_built_in}", name):
        raise NameTaken(f"The group of the administrators has the name {name[:100]!r}.")


def check_administrators(cx: Connection, names: DirectoryNames) -> None:
    """Raises NameTaken if somebody else has the name that the settings give to the group of the administrators
    (decision 0114).
    """
    query = select_named(name_space("members", administration(cx)), names.administrators_group)
    other = find_first(cx, query)
    if other is not None and other.built_in != ADMINISTRATORS:
        raise NameTaken(
            f"The {other.kind} {shown_id(names, other)} has the name that directory.names.administrators_group gives "
            f"to the group of the administrators. Give that setting another name, or rename the {other.kind} first: "
            f"muniment --set directory.names.administrators_group={ADMINISTRATORS} {other.kind} rename "
            f"{shown_id(names, other)} NAME"
        )


def stand_in(cx: Connection, resource_id: str) -> Entry | None:
    """Return the user of the administration's partition who stands for a resource."""
    user = find_first(cx, select_named(name_space("members", administration(cx)), resource_id))
    return user if user is not None and user.kind == "user" else None


def find_user(cx: Connection, names: DirectoryNames, user_id: str) -> Entry:
    """Raises UnknownEntry."""
    return find(cx, names, user_id, "user")


def find_group(cx: Connection, names: DirectoryNames, group_id: str) -> Entry:
    """Raises UnknownGroup."""
    return find(cx, names, group_id, "group")


def find(cx: Connection, names: DirectoryNames, entry_id: str, kind: Literal["user", "group", "role"]) -> Entry:
    """Raises UnknownEntry, and UnknownGroup for a group."""
    entry = find_member(cx, names, entry_id, kind)
    if entry is None:
        raise _unknown(entry_id, kind)
    return entry


def find_member(cx: Connection, names: DirectoryNames, entry_id: str, kind: Kind) -> Entry | None:
    """``entry_id`` is ``<name>@<partition>``."""
    name, at, partition = entry_id.rpartition("@")
    key = partition_key(names, partition)
    parameters = {"name": member_key(names, key, name), "partition": key, "kind": kind}
    row = _BY_NAME.first(cx, **parameters) if at else None
    return None if row is None else to_entry(row)


def find_meant(cx: Connection, options: DirectoryOptions, text: str, kind: Kind) -> Entry:
    """The partition may be left out (``bare_names``). Raises UnknownEntry, and UnknownGroup for a group."""
    row = bare_names.meant(_MEANT.all(cx, **bare_names.parameters(options, text, kind)))
    if row is None:
        raise _unknown(text, kind)
    return to_entry(row)


def find_client(cx: Connection, name: str) -> Entry:
    """Raises UnknownClient."""
    if found := find_of_client(cx, name):
        return found.user
    raise UnknownClient(f"There is no client {name[:100]!r}.")


def find_unit(cx: Connection, names: DirectoryNames, location: str) -> Entry:
    """Raises UnknownEntry, UnknownPartition, BadName."""
    if (entry := find_location(cx, names, location)).kind == "unit":
        return entry
    raise UnknownEntry(f"There is no unit {location[:200]!r}.")


def find_location(cx: Connection, names: DirectoryNames, location: str) -> Entry:
    """Raises UnknownEntry, UnknownPartition, BadName."""
    name, units, partition_name = spelling.split_location(names, location)
    partition = find_partition(cx, names, partition_name)
    if units is None:
        return partition
    unit = unit_at(cx, partition, units[::-1])
    if name is None:
        return unit
    key = member_key(names, partition_key(names, partition_name), name)
    member = find_first(cx, select_named(name_space("members", partition), key))
    if member is None or member.parent_id != unit.id:
        raise UnknownEntry(f"There is no entry {location[:200]!r}.")
    return member


def unit_at(cx: Connection, partition: Entry, path: Sequence[str]) -> Entry:
    """``path`` begins below the root unit, with the outermost unit. Raises UnknownEntry."""
    unit = root_unit(cx, partition)
    for name in path:
        inner = find_first(cx, select_named(name_space("units", unit), name))
        if inner is None:
            raise UnknownEntry(f"There is no unit {name[:100]!r} in {unit.name[:100]!r}.")
        unit = inner
    return unit


def by_uuid(cx: Connection, identity: str) -> Entry | None:
    return find_first(cx, select_entries().where(rows.c.uuid == identity))


def by_id(cx: Connection, entry_id: int) -> Entry | None:
    return find_by_id(cx, entry_id)


def partitions(cx: Connection) -> list[Entry]:
    """The oldest first."""
    # The query selects by space, because by kind SQLite would read all entries.
    return [to_entry(row) for row in cx.execute(select_entries().where(rows.c.space == "").order_by(rows.c.id))]


def listing(cx: Connection, partition: Entry, kind: Kind, *, after: str = "", limit: int | None = 1000) -> list[Entry]:
    """By name, at most ``limit``, from the first name after ``after``."""
    query = select_entries().where(
        rows.c.kind == kind, rows.c.partition_id == partition.id, rows.c.name_key > fold_name(after)
    )
    return [to_entry(row) for row in cx.execute(query.order_by(rows.c.name_key, rows.c.id).limit(limit))]


class Columns(NamedTuple):
    """For other modules' conditions."""

    id: sa.ColumnElement[int]
    parent_id: sa.ColumnElement[int]
    partition_id: sa.ColumnElement[int]


class ChosenEntries(NamedTuple):
    """``to_entry`` reads its rows. ``number`` is the row's id, ``id`` the id on the wire, ``folded_id`` that one
    folded.
    """

    query: sa.Select[Any]
    number: sa.ColumnElement[int]
    partition_id: sa.ColumnElement[int]
    name: sa.ColumnElement[str]
    folded_name: sa.ColumnElement[str]
    id: sa.ColumnElement[str]
    folded_id: sa.ColumnElement[str]
    description: sa.ColumnElement[str]
    modified: sa.ColumnElement[int]


def choose(
    names: DirectoryNames, kind: Literal["user", "group"], condition: sa.ColumnElement[bool], *, few: bool
) -> ChosenEntries:
    """``few``: the condition names ids, by which rows are read, and not as all of their kind."""
    partition, folded_partition = shown_partition_columns(names)
    # Users are listed in the order of an index.
    name, folded_name = shown_name_columns(names) if kind == "group" else (rows.c.name, rows.c.name_key)
    return ChosenEntries(
        select_entries().where((without_index(rows.c.kind) if few else rows.c.kind) == kind, condition),
        rows.c.id,
        rows.c.partition_id,
        name,
        folded_name,
        name + "@" + partition,
        folded_name + "@" + folded_partition,
        rows.c.description,
        rows.c.modified,
    )


def units_in(cx: Connection, container: Entry) -> list[Entry]:
    """For a partition, return its root unit."""
    # The query selects by name space, so that it reads no users.
    return [to_entry(row) for row in cx.execute(select_entries().where(rows.c.space == name_space("units", container)))]


def inside(cx: Connection, container: Entry) -> list[Entry]:
    """What lies directly in a unit, or a partition's root unit: units, groups, roles, users, each by name.

    Raises UnknownEntry for a user or a group.
    """
    if container.kind not in ("unit", "partition"):
        raise UnknownEntry(f"{container.name[:100]!r} is a {container.kind}: only units and partitions hold entries.")
    unit = root_unit(cx, container) if container.kind == "partition" else container
    order = sa.case({"unit": 0, "group": 1, "role": 2}, value=rows.c.kind, else_=3)
    query = select_entries().where(rows.c.parent_id == unit.id).order_by(order, rows.c.name_key, rows.c.id)
    return [to_entry(row) for row in cx.execute(query)]


def acting(entry_id: sa.ColumnElement[int]) -> sa.Exists:
    """The condition that an entry is a user who may act and has a password."""
    live = sa.and_(rows.c.disabled.is_(False), rows.c.locked.is_(False), rows.c.password_hash.is_not(None))
    return sa.exists().where(rows.c.id == entry_id, rows.c.kind == "user", live)


def select_by_ids(ids: sa.Select[tuple[int]], *kinds: Kind) -> sa.Select[Any]:
    """``read`` runs it. With ``kinds`` it finds only entries of these."""
    of_kind = [sa.or_(*(without_index(rows.c.kind) == kind for kind in kinds))] if kinds else []
    return (
        select_entries()
        .where(one_of_few(rows.c.id, ids.scalar_subquery()), *of_kind)
        .order_by(rows.c.kind, rows.c.name_key, rows.c.id)
    )


def select_with(
    key: sa.ColumnElement[int], entry_id: sa.ColumnElement[int], pairs: sa.FromClause, kind: Kind
) -> sa.Select[Any]:
    """Entries of one kind, each with a key of the pairs at the end of its row."""
    ids = sa.select(entry_id).scalar_subquery()
    query = select_entries(key).select_from(pairs).where(entry_id == rows.c.id, rows.c.kind == kind)
    query = query.where(one_of_few(rows.c.id, ids))
    return query.order_by(key, rows.c.name_key, rows.c.id)


def read(cx: Connection, query: sa.Select[Any], parameters: dict[str, Any]) -> list[Entry]:
    return [to_entry(row) for row in cx.execute(query, parameters)]


def units_above(entry: sa.BindParameter[int]) -> sa.Select[tuple[int]]:
    units = sa.select(entry_table.c.parent_id.label("id")).where(entry_table.c.id == entry).cte("units", recursive=True)
    outer = entry_table.alias("outer_unit")
    units = units.union(sa.select(outer.c.parent_id).where(outer.c.id == units.c.id))
    return sa.select(units.c.id)


def with_units_inside(containers: sa.Select[tuple[int]]) -> sa.Select[tuple[int]]:
    inside = sa.select(sa.cast(containers.subquery().c[0], sa.BigInteger).label("id")).cte(
        "units_inside", recursive=True
    )
    unit = entry_table.alias("inner_unit")
    space = sa.literal("units ") + sa.cast(inside.c.id, sa.String)
    inside = inside.union(sa.select(unit.c.id).where(unit.c.space == space))
    return sa.select(inside.c.id)


def has_members(entry_id: sa.ColumnElement[int]) -> sa.Exists:
    """Only groups and roles do."""
    group = entry_table.alias("inner_group")
    return sa.exists().where(group.c.id == entry_id, group.c.kind.in_(("group", "role")))


def parents_of(cx: Connection, unit: Entry) -> list[Entry]:
    """The units around a unit, the innermost first, and its partition."""
    above = read(cx, _AROUND, {"entry": unit.id})
    return sorted(above, key=lambda entry: (entry.kind == "partition", entry.built_in == ROOT, -len(entry.units)))


def _unknown(text: str, kind: str) -> UnknownEntry:
    refusal = UnknownGroup if kind == "group" else UnknownEntry
    return refusal(f"There is no {kind} {text[:200]!r}.")


def _shown_partition(names: DirectoryNames, name: str, built_in: str | None) -> str:
    names_on_the_wire = {CLIENTS: names.clients_partition, ADMINISTRATION: names.administration_partition}
    return names_on_the_wire[built_in] if built_in is not None else name


CHOSEN = Columns(rows.c.id, rows.c.parent_id, rows.c.partition_id)
_NAMES: sa.BindParameter[str] = sa.bindparam("names", expanding=True)
BEARING = select_entries().where(IN_NAMED_PARTITION, rows.c.kind.in_(("group", "user")), rows.c.name_key.in_(_NAMES))
_PARTITION = PreparedStatement(
    select_entries().where(rows.c.space == "", rows.c.name_key == sa.bindparam("partition", type_=sa.String))
)
_MEANT = PreparedStatement(bare_names.select_meant())
_AROUND = select_by_ids(units_above(sa.bindparam("entry", type_=sa.BigInteger)))
_BY_NAME = PreparedStatement(select_entries().where(NAMED_IN_PARTITION, rows.c.kind == sa.bindparam("kind")))
