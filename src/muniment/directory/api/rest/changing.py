"""Change an entry as a body says: its name, place, description, attributes, state and password.

Only what the body names changes. An object that was read may be sent back: what is computed is ignored, and what has
not changed is not written.
"""

from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory import audit
from muniment.directory.administration import decisions
from muniment.directory.api.rest.calls import Call
from muniment.directory.api.rest.dialect import spelled
from muniment.directory.api.rest.entry_objects import AttributeValues
from muniment.directory.entries import attributes, editing, entries
from muniment.directory.entries import names as spelling
from muniment.directory.entries.attributes import CustomAttribute, WrittenAttributes, read_written
from muniment.directory.entries.table import Entry, Kind
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import (
    BadAttribute,
    BadName,
    CannotKnow,
    NameInUse,
    NameTaken,
    NobodyAdministers,
    SignsIn,
    WrongPartition,
)
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.web.answers.responses import ErrorCode, Table


@spelled({"user_partition_id": "userPartitionID"})
class WrittenEntry(msgspec.Struct, kw_only=True):
    """A new entry, or what is to change of one."""

    user_partition_id: str = ""
    name: str = ""
    id: str = ""
    location: str = ""
    description: str | msgspec.UnsetType = msgspec.UNSET
    values: list[AttributeValues] = []
    attributes: dict[str, list[str]] = {}
    custom_attributes: list[CustomAttribute] | msgspec.UnsetType = msgspec.UNSET

    def written(self, names: DirectoryNames) -> WrittenAttributes:
        """Raises BadAttribute."""
        return read_written(names, [*((each.name, each.values) for each in self.values), *self.attributes.items()])

    def of_new(self) -> "WrittenEntry":
        """Return what remains to be done to the new entry."""
        return msgspec.structs.replace(self, user_partition_id="", name="", location="")

    def new_id(self, kind: Kind) -> str:
        """Write ``<name>@<partition>`` of a new entry from what the body says of it. Raises BadName."""
        in_id, at, partition_in_id = (self.id or self.name).rpartition("@")
        partition = self.user_partition_id.strip() or (partition_in_id if at else "")
        name = self.name if self.name and (self.id or self.user_partition_id.strip()) else in_id or self.id
        if not name or not partition:
            raise BadName(f"A new {kind} has a name and a partition, or an id of the form <name>@<partition>.")
        whole = spelling.user_id(name, partition)
        if self.id and fold_name(self.id) not in (fold_name(name), fold_name(whole)):
            raise BadName(f"The id {self.id[:200]!r} says something else than the name and the partition.")
        return whole


REFUSALS: Table = {
    BadName: ErrorCode(400, "bad_name"),
    BadAttribute: ErrorCode(400, "bad_attribute"),
    WrongPartition: ErrorCode(400, "wrong_partition"),
    NameTaken: ErrorCode(409, "name_taken"),
    NameInUse: ErrorCode(409, "name_in_use"),
    SignsIn: ErrorCode(409, "signs_in"),
    CannotKnow: ErrorCode(409, "cannot_know"),
    NobodyAdministers: ErrorCode(409, "nobody_administers"),
}
"""Those of a new entry and of a change."""


def place(cx: Connection, names: DirectoryNames, location: str) -> Entry | None:
    """Find the unit or partition that a location names, or in which the entry lies that it names. None for an empty
    one. Raises UnknownEntry, UnknownPartition, BadName.
    """
    if not location.strip():
        return None
    _, units, partition_name = spelling.split_location(names, location)
    partition = entries.find_partition(cx, names, partition_name)
    return partition if units is None else entries.unit_at(cx, partition, units[::-1])


def rename(cx: Connection, call: Call, entry: Entry, name: str, now: Instant) -> Entry:
    """Raises BadName, NameTaken, NameInUse, SignsIn, CannotKnow."""
    return call.directory.dependencies.rename(cx, entry, name, now)


def change(
    cx: Connection, call: Call, entry: Entry, body: WrittenEntry, now: Instant, *, password_hash: str | None = None
) -> Entry:
    """Raises the refusals of the decisions that it takes."""
    names = call.names
    partition = entries.shown_partition(names, entry)
    if body.user_partition_id.strip() and fold_name(body.user_partition_id.strip()) != fold_name(partition):
        raise WrongPartition(f"{entries.shown_id(names, entry)} stays in its partition, which is a part of its id.")
    with audit.decision(cx, f"{entry.target.kind} changed", entry.target):
        _change(cx, call, entry, body, password_hash, now)
    return entries.by_id(cx, entry.id) or entry


def _change(
    cx: Connection, call: Call, entry: Entry, body: WrittenEntry, password_hash: str | None, now: Instant
) -> None:
    names = call.names
    written = body.written(names)
    _check_location_name(names, entry, body)
    new_values = _new_values(cx, names, entry, written.stored)
    if body.name and body.name != entries.shown_name(names, entry):
        entry = rename(cx, call, entry, body.name, now)
    entry = _move(cx, names, entry, body.location, now)
    description = body.description if body.description is not msgspec.UNSET else written.description
    if description is not None and description != entry.description:
        editing.set_description(cx, entry, description, now)
    if new_values:
        attributes.put(cx, names, entry, new_values, now)
    if body.custom_attributes is not msgspec.UNSET:
        _change_custom(cx, entry, body.custom_attributes, now)
    if entry.kind == "user":
        _change_state(cx, entry, written.flags, now)
    if password_hash is not None:
        decisions.set_password(cx, entry, password_hash, now)


def _change_custom(cx: Connection, entry: Entry, wanted: list[CustomAttribute], now: Instant) -> None:
    if wanted != attributes.custom_of(cx, [entry.id]).get(entry.id, []):
        attributes.put_custom(cx, entry, wanted, now)


def _check_location_name(names: DirectoryNames, entry: Entry, body: WrittenEntry) -> None:
    """Only ``name`` renames an entry. Raises BadName."""
    if not body.location.strip():
        return
    name, _, _ = spelling.split_location(names, body.location)
    shown = entries.shown_name(names, entry)
    if name is not None and fold_name(name) not in map(fold_name, (shown, body.name)):
        raise BadName(f"The location names {name[:100]!r}, not {shown[:100]!r}: the key name renames an entry.")


def _move(cx: Connection, names: DirectoryNames, entry: Entry, location: str, now: Instant) -> Entry:
    """Raises BadName, UnknownEntry, UnknownPartition, WrongPartition."""
    if not location.strip() or fold_name(location) == fold_name(entries.location(names, entry)):
        return entry
    parent = place(cx, names, location)
    if parent is not None and parent.kind == "partition":
        (parent,) = entries.units_in(cx, parent)
    if parent is None or entry.parent_id == parent.id:
        return entry
    return decisions.move(cx, names, entry, parent, now)


def _new_values(
    cx: Connection, names: DirectoryNames, entry: Entry, wanted: Mapping[str, Sequence[str | int]]
) -> dict[str, Sequence[str | int]]:
    """Leave out what the entry shows already, be it stored or not."""
    if not wanted:
        return {}
    shown = attributes.of_entry(names, entry, attributes.stored_values(cx, entry.id), "", "", {})
    present = {each.name: [*map(str, each.values)] for each in shown}
    return {
        name: values
        for name, values in wanted.items()
        if [*map(str, values)] != present.get(names.attributes.get(name, name), [])
    }


def _change_state(cx: Connection, user: Entry, flags: Mapping[str, bool], now: Instant) -> None:
    """Raises NobodyAdministers."""
    if flags.get("disabled", user.disabled) != user.disabled:
        decisions.set_disabled(cx, user, not user.disabled, now)
    if flags.get("locked", user.locked) != user.locked:
        decisions.set_locked(cx, user, flags["locked"], now)
    elif not flags.get("locked", True):
        editing.end_pauses(cx, user)
    others = {
        name: value
        for name, value in flags.items()
        if name not in ("disabled", "locked") and value != getattr(user, name)
    }
    if others:
        editing.set_flags(cx, user, now, **others)
