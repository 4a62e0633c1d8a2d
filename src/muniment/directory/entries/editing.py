"""Add, change and delete entries; ``administration`` ends the sessions that depend on them.

Each ``add_`` raises BadName, NameTaken, BadAttribute.
"""

import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement
from muniment.database.snapshots import of_snapshot
from muniment.database.statements import upsert
from muniment.directory import audit, version_stamps
from muniment.directory.entries import changes
from muniment.directory.entries import names as spelling
from muniment.directory.entries.attributes import stored_values
from muniment.directory.entries.changes import touch
from muniment.directory.entries.entries import clients
from muniment.directory.entries.table import (
    ADMINISTRATION,
    ADMINISTRATORS,
    CLIENTS,
    ENTRY_FIELDS,
    FLAGS,
    ROOT,
    Entry,
    Kind,
    entry_table,
    find_by_id,
    find_root_unit,
    name_space,
    once_named,
    root_unit,
    rows,
    select_entries,
    to_entry,
)
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadAttribute, BadName, NameTaken, Outdated
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name, is_storable


def initialise(cx: Connection, now: Instant) -> None:
    if cx.execute(sa.select(rows.c.id).limit(1)).first():
        return
    partition = _add_partition(cx, f"@{ADMINISTRATION}", "The administrators of this directory.", now, ADMINISTRATION)
    _add_partition(cx, f"@{CLIENTS}", "OAuth clients: users of this partition at its root location.", now, CLIENTS)
    description = "They administer the directory."
    _add(cx, "group", partition, ADMINISTRATORS, now, built_in=ADMINISTRATORS, description=description)


def add_partition(cx: Connection, names: DirectoryNames, name: str, now: Instant, *, description: str = "") -> Entry:
    name = spelling.check(name, partition=True)
    _check_not_built_in(names, name)
    return _add_partition(cx, name, description, now, None)


def add_unit(cx: Connection, parent: Entry, name: str, now: Instant, *, description: str = "") -> Entry:
    return _add(cx, "unit", parent, spelling.check(name), now, description=description)


def add_group(cx: Connection, parent: Entry, name: str, now: Instant, *, description: str = "") -> Entry:
    return _add(cx, "group", parent, spelling.check(name), now, description=description)


def add_role(cx: Connection, parent: Entry, name: str, now: Instant, *, description: str = "") -> Entry:
    """Users, groups and roles can be its members. Its name is no user's or group's of the partition."""
    return _add(cx, "role", parent, spelling.check(name), now, description=description)


def add_user(
    cx: Connection,
    parent: Entry,
    name: str,
    now: Instant,
    *,
    password_hash: str | None = None,
    description: str = "",
    external_id: str | None = None,
    flags: Mapping[str, bool] | None = None,
) -> Entry:
    """``flags`` are some of ``FLAGS``."""
    values: dict[str, Any] = {"description": description, "password_hash": password_hash, **(flags or {})}
    if password_hash is not None:
        values["password_changed"] = now
    _check_external_id(external_id)
    name = spelling.check(name, longest=_longest(parent))
    return _add(cx, "user", parent, name, now, external_id=external_id, **values)


def _longest(entry: Entry) -> int:
    """So long may the name of an entry be that is, or lies where, this one is."""
    return spelling.CLIENT_LENGTH if entry.partition_built_in == CLIENTS else spelling.MAX_LENGTH


def add_client(
    cx: Connection, name: str, now: Instant, *, password_hash: str | None = None, description: str = ""
) -> Entry:
    """Make an OAuth client (given 2.1): with a password confidential, otherwise public."""
    return add_user(cx, clients(cx), name, now, password_hash=password_hash, description=description)


def set_password_hash(cx: Connection, user: Entry, password_hash: str | None, now: Instant) -> None:
    """Also ends the user's pauses, and unsets ``must_change_password``."""
    changed = {"password_hash": password_hash, "password_changed": now}
    touch(cx, user, now, **changed, tries=_NO_TRIES, must_change_password=False)


def set_disabled(cx: Connection, user: Entry, disabled: bool, now: Instant) -> None:
    touch(cx, user, now, disabled=disabled)


def set_locked(cx: Connection, user: Entry, locked: bool, now: Instant) -> None:
    """Either way, the pauses of their sign-in end."""
    touch(cx, user, now, locked=locked, tries=_NO_TRIES)


def end_pauses(cx: Connection, user: Entry) -> None:
    with_tries = entry_table.update().where(entry_table.c.id == user.id, entry_table.c.tries != _NO_TRIES)
    if cx.execute(with_tries.values(tries=_NO_TRIES)).rowcount:
        audit.record(cx, "pauses ended", user.target)


def set_flags(cx: Connection, user: Entry, now: Instant, **flags: bool) -> None:
    """Raises BadAttribute for any other flag."""
    if not flags.keys() <= set(FLAGS[2:]):
        raise BadAttribute(f"The flags are {', '.join(FLAGS[2:])}.")
    touch(cx, user, now, **flags)


def set_description(cx: Connection, entry: Entry, description: str, now: Instant) -> None:
    """Raises BadAttribute."""
    touch(cx, entry, now, description=spelling.check_description(description))


def set_external_id(cx: Connection, entry: Entry, external_id: str | None, now: Instant) -> None:
    """Another system's identifier, unique in the partition in its exact spelling. Raises BadAttribute, NameTaken."""
    _check_external_id(external_id)
    with once_named(cx, f"an entry with the external id {external_id!r} in this partition"):
        touch(cx, entry, now, external_id=external_id)


def require_revision(cx: Connection, entry: Entry, revision: int) -> None:
    """Lock the entry until the commit. Raises Outdated if it has another revision by now, or is gone."""
    query = sa.select(entry_table.c.revision).where(entry_table.c.id == entry.id).with_for_update()
    if cx.scalar(query) != revision:
        raise Outdated("The entry has changed since: read it again.")


def rename(cx: Connection, names: DirectoryNames, entry: Entry, name: str, now: Instant) -> Entry:
    """A unit's name is part of locations. Raises NameTaken, and BadName, also for a built-in entry."""
    if entry.built_in is not None:
        raise BadName("A built-in entry keeps its name: the settings say how it is shown.")
    name = spelling.check(name, partition=entry.kind == "partition", longest=_longest(entry))
    if entry.kind == "partition":
        _check_not_built_in(names, name)
    return _place(cx, entry, now, name=name, name_key=fold_name(name))


def move(cx: Connection, entry: Entry, parent: Entry, now: Instant) -> Entry:
    """Into a partition's root unit if that is the ``parent``. Raises BadName for a built-in entry or one that may not
    lie there, and NameTaken if another unit of its name does.
    """
    if entry.built_in is not None or entry.kind == "partition":
        raise BadName("A partition, and a built-in entry, stays where it is.")
    unit = _unit_of(cx, parent)
    if unit.partition_id != entry.partition_id:
        raise BadName("An entry stays in its partition, which is a part of its id.")
    if entry.partition_built_in == CLIENTS:
        raise BadName("Clients lie at the root location of their partition (given 2.1).")
    space = {"space": name_space("units", unit)} if entry.kind == "unit" else {}
    if entry.kind == "unit" and unit.id in {entry.id, *_units_below(cx, entry)}:
        raise BadName("A unit cannot be moved into itself.")
    return _place(cx, entry, now, parent_id=unit.id, units=_path_below(unit), **space)


def count_members(cx: Connection, partition: Entry) -> list[tuple[str, int]]:
    """A kind without entries is left out."""
    return _count_kinds(cx, rows.c.partition_id == partition.id, rows.c.kind.in_(("group", "role", "user")))


def delete(cx: Connection, entry: Entry, now: Instant, ended: audit.Rights = ()) -> None:
    """``ended`` finds the rights that end with it. Raises BadName for what is built in, or not empty."""
    if entry.built_in is not None:
        raise BadName("A built-in entry cannot be deleted.")
    entry_ids = [root_unit(cx, entry).id, entry.id] if entry.kind == "partition" else [entry.id]
    if counts := _count_kinds(cx, rows.c.parent_id.in_(entry_ids), rows.c.id.not_in(entry_ids)):
        contents = ", ".join(f"{count} {kind}s" for kind, count in counts)
        raise BadName(f"Only an empty unit or partition can be deleted: this one holds {contents}.")
    former, removed = changes.state(entry.disabled, entry.locked), f"{entry.target.kind} removed"
    rights = [*ended, audit.Right("state", entry.uuid, "", former, "removed")]
    before = {**stored_values(cx, entry.id), "state": former, "description": entry.description}
    audit.record(cx, removed, entry.target, before, rights=rights)
    for entry_id in entry_ids:
        changes.note(cx, entry_id, "removed", now)
        cx.execute(entry_table.delete().where(entry_table.c.id == entry_id))


def _check_external_id(external_id: str | None) -> None:
    if external_id is not None and not (0 < len(external_id) <= _LONGEST_ID and is_storable(external_id)):
        raise BadAttribute(f"An external id has 1 to {_LONGEST_ID} characters.")


def _count_kinds(cx: Connection, *conditions: sa.ColumnElement[bool]) -> list[tuple[str, int]]:
    query = sa.select(rows.c.kind, sa.func.count()).where(*conditions).group_by(rows.c.kind).order_by(rows.c.kind)
    return [(kind, count) for kind, count in cx.execute(query)]


def _check_not_built_in(names: DirectoryNames, partition: str) -> None:
    if fold_name(partition) in map(fold_name, (names.administration_partition, names.clients_partition)):
        raise NameTaken(f"There is a partition {partition!r} already.")


class _Partition(NamedTuple):
    id: int
    name: str
    built_in: str | None


def _unit_of(cx: Connection, parent: Entry) -> Entry:
    """Its path stays until this decision is committed. Raises BadName for other kinds of entry."""
    return of_snapshot(cx, (_unit_of, parent.id), lambda cx: _find_unit(cx, parent))


def _find_unit(cx: Connection, parent: Entry) -> Entry:
    version_stamps.lock_rights(cx)
    if parent.kind not in ("partition", "unit"):
        raise BadName("Entries lie in units and partitions, nowhere else.")
    if parent.kind == "unit":
        return _find_again(cx, parent)
    unit = find_root_unit(cx, parent)
    if unit is None:
        raise _gone(parent)
    return unit


def _find_again(cx: Connection, entry: Entry) -> Entry:
    """Raises BadName if it was removed meanwhile."""
    present = find_by_id(cx, entry.id)
    if present is None:
        raise _gone(entry)
    return present


def _gone(entry: Entry) -> BadName:
    return BadName(f"The {entry.kind} {entry.name!r} was removed meanwhile.")


def _add_partition(cx: Connection, name: str, description: str, now: Instant, built_in: str | None) -> Entry:
    partition = _insert(
        cx, None, now, kind="partition", space="", name=name, description=description, built_in=built_in
    )
    space = name_space("units", partition)
    inside = _Partition(partition.id, partition.name, partition.built_in)
    _insert(cx, inside, now, kind="unit", space=space, name="Root", built_in=ROOT, parent_id=partition.id)
    return partition


def _add(cx: Connection, kind: Kind, parent: Entry, name: str, now: Instant, **values: Any) -> Entry:
    unit = _unit_of(cx, parent)
    assert unit.partition_id is not None  # noqa: S101 - a unit lies in a partition
    partition = _Partition(unit.partition_id, unit.partition, unit.partition_built_in)
    if partition.built_in == CLIENTS and (kind == "unit" or unit.built_in != ROOT):
        raise BadName("The clients' partition has its root location only: clients lie there (given 2.1).")
    space = name_space("units", unit) if kind == "unit" else name_space("members", partition)
    inside = {"parent_id": unit.id, "units": _path_below(unit)}
    return _insert(cx, partition, now, kind=kind, space=space, name=name, **inside, **values)


def _insert(cx: Connection, partition: _Partition | None, now: Instant, *, name: str, **values: Any) -> Entry:
    row = _NEW | values | {"uuid": str(uuid.uuid4()), "name": name, "name_key": fold_name(name)}
    row |= {"partition_id": partition.id if partition else None, "created": now, "modified": now}
    spelling.check_description(row["description"])
    new = _INSERT.all(cx, **row)
    if not new:
        external_id = row["external_id"]
        or_known = "" if external_id is None else f", or one with the external id {external_id!r},"
        raise NameTaken(f"There is an entry {name!r} there{or_known} already.")
    changes.note(cx, new[0][0], "added", now)
    values = row | {"id": new[0][0], "has_password": row["password_hash"] is not None}
    values["partition"], values["partition_built_in"] = (
        (partition.name, partition.built_in) if partition else (name, row["built_in"])
    )
    entry = to_entry([values[field] for field in ENTRY_FIELDS])
    if entry.built_in != ROOT:  # it comes with its partition
        password = {"password": changes.word(entry.has_password)} if entry.kind == "user" else {}
        audit.record(
            cx, f"{entry.target.kind} made", entry.target, None, {"description": entry.description, **password}
        )
    return entry


def _place(cx: Connection, entry: Entry, now: Instant, **values: Any) -> Entry:
    """Raises NameTaken, and BadName if the entry was removed meanwhile."""
    with once_named(cx, f"an entry {values.get('name', entry.name)!r} there"):
        touch(cx, entry, now, **values)
    entry_now = _find_again(cx, entry)
    if entry_now.kind == "unit":
        _refresh_units(cx, entry_now, now)
    return entry_now


def _path_below(unit: Entry) -> str:
    """The column ``units`` of what lies in a unit: its name and those around it, but not the root unit's."""
    return msgspec.json.encode((unit.name, *unit.units) if unit.built_in != ROOT else ()).decode()


def _refresh_units(cx: Connection, unit: Entry, now: Instant) -> None:
    moved = {"units": _path_below(unit), "revision": entry_table.c.revision + 1}
    cx.execute(entry_table.update().where(entry_table.c.parent_id == unit.id).values(**moved))
    changes.note_all_inside(cx, unit.id, now)
    for inner in _units_in(cx, unit.id):
        _refresh_units(cx, inner, now)


def _units_below(cx: Connection, unit: Entry) -> set[int]:
    units = _units_in(cx, unit.id)
    return {inner.id for inner in units}.union(*(_units_below(cx, inner) for inner in units))


def _units_in(cx: Connection, unit_id: int) -> list[Entry]:
    query = select_entries().where(rows.c.parent_id == unit_id, rows.c.kind == "unit")
    return [to_entry(row) for row in cx.execute(query)]


_LONGEST_ID = 255
_NO_TRIES = "{}"
_UNSET = ("partition_id", "parent_id", "built_in", "password_hash", "external_id", "password_changed", "signed_in")
_NEW: dict[str, Any] = {
    **dict.fromkeys(_UNSET),
    **dict.fromkeys(FLAGS, False),
    "tries": _NO_TRIES,
    "places": "{}",
    "attempted": 0,
    "units": "[]",
    "revision": 1,
    "description": "",
}
# A name that is taken costs no savepoint.
_INSERT = PreparedStatement(
    upsert(entry_table)
    .values({name: sa.bindparam(name, type_=column.type) for name, column in entry_table.c.items() if name != "id"})
    .on_conflict_do_nothing()
    .returning(entry_table.c.id)
)
