"""Add, change and delete entries. ``administration`` decides what ends with them."""

import uuid
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from muniment.clock import Instant
from muniment.directory import names as spelling
from muniment.directory.entries.entries import clients
from muniment.directory.entries.table import (
    ADMINISTRATION,
    ADMINISTRATORS,
    CLIENTS,
    FLAGS,
    ROOT,
    SELECT_BY_ID,
    Entry,
    Kind,
    entry_table,
    name_space,
    root_unit,
    rows,
    to_entry,
)
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadAttribute, BadName, NameTaken
from muniment.naming import fold_name


def initialise(cx: Connection, now: Instant) -> None:
    """Make the built-in partitions with their root units, and the group of administrators, unless they exist."""
    if cx.execute(sa.select(rows.c.id).limit(1)).first():
        return
    partition = _add_partition(cx, f"@{ADMINISTRATION}", "The administrators of this directory.", now, ADMINISTRATION)
    _add_partition(cx, f"@{CLIENTS}", "OAuth clients: users of this partition at its root location.", now, CLIENTS)
    description = "They administer the directory."
    _add(cx, "group", partition, ADMINISTRATORS, now, built_in=ADMINISTRATORS, description=description)


def add_partition(cx: Connection, names: DirectoryNames, name: str, now: Instant, *, description: str = "") -> Entry:
    """Make a user partition with its root unit. Raises BadName, NameTaken."""
    name = spelling.check(name, partition=True)
    if fold_name(name) in map(fold_name, (names.administration_partition, names.clients_partition)):
        raise NameTaken(f"There is a partition {name!r} already.")
    return _add_partition(cx, name, description, now, None)


def add_unit(cx: Connection, parent: Entry, name: str, now: Instant, *, description: str = "") -> Entry:
    """Make an organizational unit in a unit, or at a partition's root. Raises BadName, NameTaken."""
    return _add(cx, "unit", parent, spelling.check(name), now, description=description)


def add_group(cx: Connection, parent: Entry, name: str, now: Instant, *, description: str = "") -> Entry:
    """Make a group in a unit, or at a partition's root. Raises BadName, NameTaken."""
    return _add(cx, "group", parent, spelling.check(name), now, description=description)


def add_user(
    cx: Connection, parent: Entry, name: str, now: Instant, *, password_hash: str | None = None, description: str = ""
) -> Entry:
    """Make a user in a unit, or at a partition's root. Raises BadName, NameTaken."""
    values = {"description": description, "password_hash": password_hash}
    return _add(cx, "user", parent, spelling.check(name), now, **values)


def add_client(
    cx: Connection, name: str, now: Instant, *, password_hash: str | None = None, description: str = ""
) -> Entry:
    """Make an OAuth client (given 2.1), confidential with a password, else public. Raises BadName, NameTaken."""
    return add_user(cx, clients(cx), name, now, password_hash=password_hash, description=description)


def set_password_hash(cx: Connection, user: Entry, password_hash: str | None, now: Instant) -> None:
    """Give a user a password, or none; the pauses of their sign-in end."""
    _change(cx, user, now, password_hash=password_hash, tries=_NO_TRIES, must_change_password=False)


def set_disabled(cx: Connection, user: Entry, disabled: bool, now: Instant) -> None:
    """Disable a user, or enable them again."""
    _change(cx, user, now, disabled=disabled)


def set_locked(cx: Connection, user: Entry, locked: bool, now: Instant) -> None:
    """Lock a user out, or let them in again (which also ends the pauses of their sign-in)."""
    _change(cx, user, now, locked=locked, tries=_NO_TRIES)


def end_pauses(cx: Connection, user: Entry) -> None:
    """End the pauses that wrong passwords caused, so that a user may sign in again."""
    cx.execute(entry_table.update().where(entry_table.c.id == user.id).values(tries=_NO_TRIES))


def set_flags(cx: Connection, user: Entry, now: Instant, **flags: bool) -> None:
    """Set flags about a user's password: password_never_expires, must_change_password, cannot_change_password."""
    if not flags.keys() <= set(FLAGS[2:]):
        raise BadAttribute(f"The flags are {', '.join(FLAGS[2:])}.")
    _change(cx, user, now, **flags)


def set_description(cx: Connection, entry: Entry, description: str, now: Instant) -> None:
    """Describe an entry in free text."""
    _change(cx, entry, now, description=description)


def delete(cx: Connection, entry: Entry) -> None:
    """Delete a user, a group, an empty unit or an empty partition. Raises BadName for built-in or filled ones."""
    if entry.built_in is not None:
        raise BadName("A built-in entry cannot be deleted.")
    doomed = [root_unit(cx, entry).id, entry.id] if entry.kind == "partition" else [entry.id]
    inside = sa.select(rows.c.kind, sa.func.count()).where(rows.c.parent_id.in_(doomed), rows.c.id.not_in(doomed))
    if counts := cx.execute(inside.group_by(rows.c.kind).order_by(rows.c.kind)).all():
        contents = ", ".join(f"{count} {kind}s" for kind, count in counts)
        raise BadName(f"Only an empty unit or partition can be deleted: this one holds {contents}.")
    for entry_id in doomed:
        cx.execute(entry_table.delete().where(entry_table.c.id == entry_id))


def _partition_of(cx: Connection, entry: Entry) -> Entry:
    return (
        entry if entry.partition_id is None else to_entry(cx.execute(SELECT_BY_ID, {"entry": entry.partition_id}).one())
    )


def _unit_of(cx: Connection, parent: Entry) -> Entry:
    if parent.kind == "partition":
        return root_unit(cx, parent)
    if parent.kind != "unit":
        raise BadName("Entries lie in units and partitions, nowhere else.")
    return parent


def _add_partition(cx: Connection, name: str, description: str, now: Instant, built_in: str | None) -> Entry:
    partition = _insert(cx, now, kind="partition", space="", name=name, description=description, built_in=built_in)
    inside = {"partition_id": partition.id, "parent_id": partition.id}
    _insert(cx, now, kind="unit", space=name_space("units", partition), name="Root", built_in=ROOT, **inside)
    return partition


def _add(cx: Connection, kind: Kind, parent: Entry, name: str, now: Instant, **values: str | None) -> Entry:
    partition, unit = _partition_of(cx, parent), _unit_of(cx, parent)
    if partition.built_in == CLIENTS and (kind == "unit" or unit.built_in != ROOT):
        raise BadName("The clients' partition has its root location only: clients lie there (given 2.1).")
    space = name_space("units", unit) if kind == "unit" else name_space("members", partition)
    units = (unit.name, *unit.units) if unit.built_in != ROOT else ()
    inside = {"partition_id": partition.id, "parent_id": unit.id, "units": msgspec.json.encode(units).decode()}
    return _insert(cx, now, kind=kind, space=space, name=name, **inside, **values)


def _insert(cx: Connection, now: Instant, *, name: str, **values: Any) -> Entry:
    row = _NEW | values | {"uuid": str(uuid.uuid4()), "name": name, "name_key": fold_name(name)}
    try:
        with cx.begin_nested():
            entry_id = cx.scalar(
                entry_table.insert().returning(entry_table.c.id), row | {"created": now, "modified": now}
            )
    except IntegrityError as error:
        raise NameTaken(f"There is an entry {name!r} there already.") from error
    return to_entry(cx.execute(SELECT_BY_ID, {"entry": entry_id}).one())


def _change(cx: Connection, entry: Entry, now: Instant, **values: Any) -> None:
    cx.execute(entry_table.update().where(entry_table.c.id == entry.id).values(modified=now, **values))


_NO_TRIES = "{}"
_NEW: dict[str, Any] = {
    **dict.fromkeys(("partition_id", "parent_id", "built_in", "password_hash")),
    **dict.fromkeys(FLAGS, False),
    "tries": _NO_TRIES,
    "places": "{}",
    "attempted": 0,
    "units": "[]",
    "description": "",
}
