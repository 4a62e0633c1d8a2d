"""Access roles: whom does a resource let in? Each resource has one, called ``Access to <resource name>``."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
from sqlalchemy.engine import Connection
from starlette.responses import Response

from muniment.directory import audit
from muniment.directory.administration import resource_decisions
from muniment.directory.api.rest import identifiers, paging
from muniment.directory.api.rest.callers import Caller
from muniment.directory.api.rest.calls import Call, Method, Row
from muniment.directory.api.rest.dialect import spelled
from muniment.directory.entries import access_roles, entries, resources
from muniment.directory.entries.access_roles import AccessRole
from muniment.directory.entries.resources import Resource
from muniment.directory.entries.table import Entry, Kind
from muniment.directory.options import DirectoryNames, DirectoryOptions
from muniment.directory.refusals import (
    BadAttribute,
    NobodyAdministers,
    UnknownEntry,
    UnknownPartition,
    UnknownResource,
)
from muniment.ground import events
from muniment.ground.refusals import TooLarge
from muniment.web.answers.responses import ErrorCode, Table

MOST = 5000
"""So many members may one request name, and a role have by such requests: what is shown can be sent back."""

_PLACES: tuple[Kind, ...] = ("unit", "partition")


class RoleAttribute(msgspec.Struct, kw_only=True):
    """An attribute of an access role: kept and shown."""

    name: str = ""
    values: list[str] = []


class RoleOfResource(msgspec.Struct, kw_only=True):
    """The access role of a resource."""

    id: str
    name: str
    description: str
    status: str = "enabled"


class RoleMember(msgspec.Struct, kw_only=True):
    """A member of an access role. Without a location, its name says who it is."""

    name: str = ""
    display_name: str = ""
    user_partition: str = ""
    location: str = ""
    description: str = ""


class RoleMembers(msgspec.Struct, kw_only=True):
    """The members of an access role, by kind."""

    user_partitions: list[RoleMember] = []
    organizational_units: list[RoleMember] = []
    groups: list[RoleMember] = []
    users: list[RoleMember] = []
    roles: list[RoleMember] = []


@spelled({"resource_id": "resourceID"})
class ResourceOfRole(msgspec.Struct, kw_only=True):
    """The resource that an access role belongs to."""

    name: str
    resource_id: str


class AccessRoleObject(RoleOfResource, kw_only=True):
    """An access role. Every list of members is there."""

    access_role_members: RoleMembers
    resources: list[ResourceOfRole]
    attribute_list: list[RoleAttribute]


class AccessRoleList(paging.PageFields, kw_only=True):
    """A page of access roles."""

    access_roles: list[AccessRoleObject]


class WrittenMembers(msgspec.Struct, kw_only=True):
    """Members of some kinds."""

    user_partitions: list[RoleMember] | msgspec.UnsetType = msgspec.UNSET
    organizational_units: list[RoleMember] | msgspec.UnsetType = msgspec.UNSET
    groups: list[RoleMember] | msgspec.UnsetType = msgspec.UNSET
    users: list[RoleMember] | msgspec.UnsetType = msgspec.UNSET
    roles: list[RoleMember] | msgspec.UnsetType = msgspec.UNSET


class WrittenAccessRole(msgspec.Struct, kw_only=True):
    """What is to change of an access role. A list of members replaces the members of its kind."""

    description: str | msgspec.UnsetType = msgspec.UNSET
    access_role_members: WrittenMembers | msgspec.UnsetType = msgspec.UNSET
    attributes: list[RoleAttribute] | msgspec.UnsetType = msgspec.UNSET
    attribute_list: list[RoleAttribute] | msgspec.UnsetType = msgspec.UNSET


class WrittenRoleAttributes(msgspec.Struct, kw_only=True):
    """Attributes of an access role, of which each replaces the one of its name."""

    attributes: list[RoleAttribute] = []


_ATTRIBUTES = msgspec.json.Decoder(list[RoleAttribute])

_KINDS: dict[str, tuple[Kind, ...]] = {
    "user_partitions": ("partition",),
    "organizational_units": ("unit",),
    "groups": ("group",),
    "users": ("user",),
    "roles": ("role",),
}


async def list_roles(call: Call) -> Response:
    """List access roles, by the names of their resources."""
    return call.answer(await call.read(_list, call, call.wanted("access roles")))


async def show(call: Call) -> Response:
    """Show an access role with its members."""
    return call.answer(await call.read(_show, call))


@events.tells("resource")
async def change(call: Call) -> Response:
    """Change what the body names of an access role: its description, its attributes, its members by kind."""
    body = await call.body(WrittenAccessRole)
    shown = await call.write(_change, call, body)
    call.on(shown.name)
    return call.answer(shown)


@events.tells("resource")
async def add_members(call: Call) -> Response:
    """Put entries into an access role."""
    body = await call.body(RoleMembers)
    call.on(await call.write(_add_members, call, body))
    return call.done()


@events.tells("resource")
async def remove_members(call: Call) -> Response:
    """Take entries out of an access role. Their tokens for the resource give no access any more."""
    body = await call.body(RoleMembers)
    call.on(await call.write(_remove_members, call, body))
    return call.done()


@events.tells("resource")
async def set_attributes(call: Call) -> Response:
    """Set attributes of an access role."""
    body = await call.body(WrittenRoleAttributes)
    shown = await call.write(_set_attributes, call, body)
    call.on(shown.name)
    return call.answer(shown)


def of_resource(names: DirectoryNames, resource: Resource, role: AccessRole) -> RoleOfResource:
    return RoleOfResource(**_fields(names, resource, role))


def _fields(names: DirectoryNames, resource: Resource, role: AccessRole) -> dict[str, Any]:
    name = access_roles.name(names, resource)
    return {"id": name, "name": name, "description": role.description}


def _find(cx: Connection, call: Call) -> Resource:
    """Raises UnknownResource."""
    *readings, last = identifiers.readings(call.part("access_role"))
    for reading in readings:
        with suppress(UnknownResource):
            return access_roles.find_resource(cx, call.names, reading)
    return access_roles.find_resource(cx, call.names, last)


def _describe(cx: Connection, names: DirectoryNames, several: Sequence[Resource]) -> list[AccessRoleObject]:
    roles = access_roles.read(cx, names, several)
    entries_in = access_roles.members(cx, several)
    described = []
    for resource in several:
        members: dict[str, list[RoleMember]] = {each: [] for each in RoleMembers.__struct_fields__}
        for entry in entries_in[resource.id]:
            key = next(each for each, kinds in _KINDS.items() if entry.kind in kinds)
            members[key].append(_member(names, entry))
        described.append(
            AccessRoleObject(
                **_fields(names, resource, roles[resource.id]),
                access_role_members=RoleMembers(**members),
                resources=[ResourceOfRole(name=resources.shown_name(names, resource), resource_id=resource.id)],
                attribute_list=_ATTRIBUTES.decode(roles[resource.id].attributes),
            )
        )
    return described


def _member(names: DirectoryNames, entry: Entry) -> RoleMember:
    """The display name of a user, group or role is its id, by which clients find it again."""
    name = entries.shown_name(names, entry)
    return RoleMember(
        name=name,
        display_name=name if entry.kind in _PLACES else entries.shown_id(names, entry),
        user_partition=entries.shown_partition(names, entry),
        location=entries.location(names, entry),
        description=entry.description,
    )


def _list(cx: Connection, _: Caller, call: Call, wanted: paging.Wanted) -> AccessRoleList:
    after = wanted.after(cx)
    found, end = resources.page(
        *(cx, call.names, wanted.filter or "", after.key if after else None, wanted.size),
        beginning=access_roles.BEGINNING,
    )
    shown = _describe(cx, call.names, found)
    return AccessRoleList(access_roles=shown, **wanted.fields(cx, len(shown), paging.after_key(end)))


def _show(cx: Connection, _: Caller, call: Call) -> AccessRoleObject:
    return _describe(cx, call.names, [_find(cx, call)])[0]


def _change(cx: Connection, _: Caller, call: Call, body: WrittenAccessRole) -> AccessRoleObject:
    resource = _find(cx, call)
    with audit.decision(cx, "access role changed", resource.target):
        _change_parts(cx, call, resource, body)
    return _describe(cx, call.names, [resource])[0]


def _change_parts(cx: Connection, call: Call, resource: Resource, body: WrittenAccessRole) -> None:
    role = access_roles.read(cx, call.names, [resource])[resource.id]
    if body.description is not msgspec.UNSET and body.description != role.description:
        access_roles.change(cx, resource, description=body.description)
    attributes = body.attribute_list if body.attributes is msgspec.UNSET else body.attributes
    if attributes is not msgspec.UNSET:
        _put_attributes(cx, resource, attributes)
    if body.access_role_members is not msgspec.UNSET:
        given = {
            key: listed for key in _KINDS if (listed := getattr(body.access_role_members, key)) is not msgspec.UNSET
        }
        kinds = [kind for key in given for kind in _KINDS[key]]
        members = _read_members(cx, call.directory.options, given)
        with _bounded(cx, resource):
            resource_decisions.set_role_members(cx, resource, members, kinds)


def _add_members(cx: Connection, _: Caller, call: Call, body: RoleMembers) -> str:
    resource = _find(cx, call)
    entries_named = _read_members(cx, call.directory.options, msgspec.structs.asdict(body))
    with audit.decision(cx, "access role changed", resource.target), _bounded(cx, resource):
        for entry in entries_named:
            resources.add_to_role(cx, resource, entry)
    return access_roles.name(call.names, resource)


def _remove_members(cx: Connection, _: Caller, call: Call, body: RoleMembers) -> str:
    resource = _find(cx, call)
    entries_named = _read_members(cx, call.directory.options, msgspec.structs.asdict(body))
    with audit.decision(cx, "access role changed", resource.target):
        for entry in entries_named:
            resource_decisions.remove_from_role(cx, resource, entry)
    return access_roles.name(call.names, resource)


def _set_attributes(cx: Connection, _: Caller, call: Call, body: WrittenRoleAttributes) -> AccessRoleObject:
    resource = _find(cx, call)
    present = _ATTRIBUTES.decode(access_roles.read(cx, call.names, [resource])[resource.id].attributes)
    written = {each.name: each for each in (*present, *body.attributes)}
    _put_attributes(cx, resource, list(written.values()))
    return _describe(cx, call.names, [resource])[0]


def _put_attributes(cx: Connection, resource: Resource, attributes: Sequence[RoleAttribute]) -> None:
    access_roles.change(cx, resource, attributes=msgspec.json.encode(attributes).decode())


def _read_members(cx: Connection, options: DirectoryOptions, given: dict[str, Sequence[RoleMember]]) -> list[Entry]:
    """Raises UnknownEntry, UnknownPartition, TooLarge."""
    if sum(map(len, given.values())) > MOST:
        raise TooLarge(f"One request names at most {MOST} members of an access role.")
    return [_read_member(cx, options, _KINDS[key], member) for key, listed in given.items() for member in listed]


@contextmanager
def _bounded(cx: Connection, resource: Resource) -> Iterator[None]:
    """Raises TooLarge if the block makes a role larger than may be; one that is may get smaller."""
    before = access_roles.count_members(cx, resource)
    yield
    if access_roles.count_members(cx, resource) > max(MOST, before):
        raise TooLarge(f"An access role has at most {MOST} direct members: let in a group, a unit or a partition.")


def _read_member(cx: Connection, options: DirectoryOptions, kinds: tuple[Kind, ...], member: RoleMember) -> Entry:
    """Among units there may be a partition, which clients name by its location."""
    text = member.location.strip() or member.name
    if kinds == ("partition",):
        return identifiers.find_partition(cx, options, text)
    if kinds == ("unit",):
        return identifiers.find_place(cx, options, text)
    return identifiers.find(cx, options, text, *kinds)


_UNKNOWN: Table = {UnknownResource: ErrorCode(404, "unknown_access_role")}
_MEMBERS: Table = {
    **_UNKNOWN,
    UnknownEntry: ErrorCode(404, "unknown_entry"),
    UnknownPartition: ErrorCode(404, "unknown_partition"),
    NobodyAdministers: ErrorCode(409, "nobody_administers"),
}
_WRONG: Table = {BadAttribute: ErrorCode(400, "bad_attribute")}

ROWS = (
    Row(
        "/accessroles",
        {"GET": Method(list_roles, AccessRoleList, parameters=(*paging.PARAMETERS, paging.FILTER))},
    ),
    Row(
        "/accessroles/{access_role}",
        {"GET": Method(show, AccessRoleObject), "PUT": Method(change, AccessRoleObject, body=WrittenAccessRole)},
        {**_MEMBERS, **_WRONG},
    ),
    Row("/accessroles/{access_role}/members", {"POST": Method(add_members, body=RoleMembers)}, _MEMBERS),
    Row("/accessroles/{access_role}/members/deletionset", {"POST": Method(remove_members, body=RoleMembers)}, _MEMBERS),
    Row(
        "/accessroles/{access_role}/attributes",
        {"PUT": Method(set_attributes, AccessRoleObject, body=WrittenRoleAttributes)},
        {**_UNKNOWN, **_WRONG},
    ),
)
