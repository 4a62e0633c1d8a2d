"""How do users, groups, roles, units and partitions look on the wire (docs/interface.md, ours 23)?

A page of entries takes the same few statements, however many they are.
"""

from collections.abc import Sequence
from typing import Any, assert_never

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.api.rest import paging
from muniment.directory.api.rest.dialect import spelled
from muniment.directory.entries import attributes, entries, memberships
from muniment.directory.entries.attributes import CustomAttribute
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryNames
from muniment.web.addresses import Parameter

AS_KEYS = Parameter(
    "attrsAsKeys", "With `true`, attributes are keys of the object `attributes`, and `values` is empty."
)

EVERY = Parameter("attrs", "`*` asks for all attributes, which are always there.")

_WRITTEN = {"user_partition_id": "userPartitionID", "origin_uuid": "originUUID"}


class AttributeValues(msgspec.Struct):
    """An attribute. Every value is a text."""

    name: str
    values: list[str] = []


@spelled(_WRITTEN)
class EntryObject(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An entry of a partition. Where attributes are keys, it has ``attributes`` instead of ``values``."""

    user_partition_id: str
    name: str
    location: str
    id: str
    values: list[AttributeValues] | None
    attributes: dict[str, list[str]] | None = None
    description: str
    custom_attributes: list[CustomAttribute] | None
    object_class: str
    uuid: str
    origin_uuid: str
    url_id: str
    url_location: str


@spelled(_WRITTEN)
class UserObject(EntryObject, kw_only=True):
    """A user."""


@spelled(_WRITTEN)
class GroupObject(EntryObject, kw_only=True):
    """A group, or an application role."""

    num_members: int


@spelled(_WRITTEN)
class UnitObject(EntryObject, kw_only=True):
    """An organizational unit."""


@spelled({"origin_uuid": "originUUID"})
class PartitionObject(msgspec.Struct, kw_only=True):
    """A partition of users."""

    name: str
    id: str
    description: str
    location: str
    uuid: str
    object_class: str


class UserList(paging.PageFields, kw_only=True):
    """A page of users."""

    users: list[UserObject]


class GroupList(paging.PageFields, kw_only=True):
    """A page of groups."""

    groups: list[GroupObject]


class RoleList(paging.PageFields, kw_only=True):
    """A page of application roles."""

    roles: list[GroupObject]


class MemberList(paging.PageFields, kw_only=True):
    """A page of a group's or role's direct members."""

    users: list[UserObject]
    groups: list[GroupObject]
    roles: list[GroupObject]


class UnitList(paging.PageFields, kw_only=True):
    """A page of organizational units."""

    organizational_units: list[UnitObject]


class StringList(msgspec.Struct):
    """Names of entries: ids or locations."""

    string_list: list[str] = []


def users(
    cx: Connection, names: DirectoryNames, several: Sequence[Entry], *, as_keys: bool = False
) -> list[UserObject]:
    return [UserObject(**fields) for fields in _describe(cx, names, several, as_keys=as_keys)]


def groups(
    cx: Connection, names: DirectoryNames, several: Sequence[Entry], *, as_keys: bool = False
) -> list[GroupObject]:
    """Also of roles."""
    counts = memberships.count_members(cx, [each.id for each in several])
    described = _describe(cx, names, several, as_keys=as_keys)
    return [
        GroupObject(**fields, num_members=counts.get(entry.id, 0))
        for entry, fields in zip(several, described, strict=True)
    ]


def unit(names: DirectoryNames, entry: Entry) -> UnitObject:
    return UnitObject(**_common(names, entry), values=[], custom_attributes=None)


def partition(names: DirectoryNames, entry: Entry) -> PartitionObject:
    name = entries.shown_name(names, entry)
    return PartitionObject(
        name=name,
        id=name,
        description=entry.description,
        location=entries.location(names, entry),
        uuid=entry.uuid,
        object_class=_object_class(names, entry),
    )


def _describe(
    cx: Connection, names: DirectoryNames, several: Sequence[Entry], *, as_keys: bool
) -> list[dict[str, Any]]:
    numbers = [entry.id for entry in several]
    stored, custom = attributes.stored_values_of(cx, numbers), attributes.custom_of(cx, numbers)
    around = memberships.groups_of_each(cx, numbers)
    described = []
    for entry in several:
        common = _common(names, entry)
        groups_around = {entries.location(names, group): group.uuid for group in around[entry.id]}
        place = common["user_partition_id"], common["location"]
        every = attributes.of_entry(names, entry, stored.get(entry.id, {}), *place, groups_around)
        values = {each.name: [str(value) for value in each.values] for each in every}
        shown: dict[str, Any] = {"values": [AttributeValues(*each) for each in values.items()]}
        if as_keys:
            shown = {"values": [] if entry.kind == "user" else None, "attributes": values}
        described.append({**common, **shown, "custom_attributes": custom.get(entry.id)})
    return described


def _common(names: DirectoryNames, entry: Entry) -> dict[str, Any]:
    location = entries.location(names, entry)
    entry_id = location if entry.kind == "unit" else entries.shown_id(names, entry)
    return {
        "user_partition_id": entries.shown_partition(names, entry),
        "name": entries.shown_name(names, entry),
        "location": location,
        "id": entry_id,
        "description": entry.description,
        "object_class": _object_class(names, entry),
        "uuid": entry.uuid,
        "origin_uuid": entry.uuid,
        "url_id": entry_id,
        "url_location": location,
    }


def _object_class(names: DirectoryNames, entry: Entry) -> str:
    match entry.kind:
        case "user":
            return names.object_class
        case "group":
            return names.group_class
        case "role":
            return names.role_class
        case "unit":
            return "organizationalUnit"
        case "partition":
            return "partition"
        case _:
            assert_never(entry.kind)
