"""Groups and application roles: find, make, change and remove them, and say who is in them.

A role of an application differs from a group in its name alone: both are members of each other's kind where that makes
sense, and neither means anything to the directory itself.
"""

from functools import partial
from typing import NamedTuple

import msgspec
from sqlalchemy.engine import Connection
from starlette.responses import Response

from muniment.directory.administration import decisions
from muniment.directory.api.rest import changing, containment, entry_objects, identifiers, lists
from muniment.directory.api.rest.callers import Caller
from muniment.directory.api.rest.calls import Call, Method, Row
from muniment.directory.api.rest.changing import WrittenEntry
from muniment.directory.api.rest.dialect import spelled
from muniment.directory.api.rest.entry_objects import GroupList, GroupObject, RoleList
from muniment.directory.entries import attributes, entries
from muniment.directory.entries.attributes import CustomAttribute
from muniment.directory.entries.table import Entry, Kind
from muniment.directory.refusals import BadAttribute, UnknownEntry, UnknownGroup
from muniment.ground import events
from muniment.ground.clock import Instant
from muniment.web.answers.responses import ErrorCode, Table

_UNKNOWN: Table = {
    UnknownGroup: ErrorCode(404, "unknown_group"),
    UnknownEntry: ErrorCode(404, "unknown_entry"),
}


@spelled({"user_partition_id": "userPartitionID"})
class WrittenSubgroup(WrittenEntry, kw_only=True):
    """A new group that is a member of another."""

    parent_id: str = ""
    parent: str = ""


class CustomAttributeList(msgspec.Struct):
    """Custom attributes of a role."""

    custom_attribute_list: list[CustomAttribute] = []


class _Shown(NamedTuple):
    shown: GroupObject
    revision: int


async def _list(call: Call, *, kind: Kind) -> Response:
    """List {kind}s."""
    return call.answer(await lists.page(call, kind, GroupList if kind == "group" else RoleList))


@events.tells("user or group")
async def _add(call: Call, *, kind: Kind) -> Response:
    """Make a {kind}."""
    return await _make(call, kind, await call.body(WrittenEntry), "")


@events.tells("user or group")
async def _add_inside(call: Call, *, kind: Kind) -> Response:
    """Make a {kind} that is a member of another."""
    body = await call.body(WrittenSubgroup)
    return await _make(call, kind, body, body.parent_id or body.parent)


async def _make(call: Call, kind: Kind, body: WrittenEntry, parent: str) -> Response:
    group = await call.write(_decide_new, call, kind, body, parent, call.now)
    call.on(group.shown.id)
    return call.answer(group.shown, 201, revision=group.revision)


async def _show(call: Call, *, kind: Kind) -> Response:
    """Show a {kind}."""
    group = await call.read(_look_up, call, kind, as_keys=call.flag("attrsAsKeys"))
    return call.answer(group.shown, revision=group.revision)


@events.tells("user or group")
async def _change(call: Call, *, kind: Kind) -> Response:
    """Change what the body names of a {kind}."""
    group = await call.write(_decide_change, call, kind, await call.body(WrittenEntry), call.now)
    call.on(group.shown.id)
    return call.answer(group.shown, revision=group.revision)


@events.tells("user or group")
async def _remove_group(call: Call) -> Response:
    """Remove a group. Its members stay."""
    call.on(await containment.remove_person(call, "group"))
    return call.done()


@events.tells("user or group")
async def _remove_role(call: Call) -> Response:
    """Remove a role. Its members stay."""
    call.on(await call.write(containment.remove_entry, call, partial(_find, kind="role"), call.now))
    return call.done()


async def _show_custom(call: Call) -> Response:
    """List the custom attributes of a role."""
    return call.answer(CustomAttributeList(await call.read(lambda cx, _: _custom_of(cx, _find(cx, call, "role")))))


@events.tells("user or group")
async def _add_custom(call: Call) -> Response:
    """Add custom attributes to a role; one of the same type and name is replaced."""
    return await _change_custom(call, stays=True)


@events.tells("user or group")
async def _remove_custom(call: Call) -> Response:
    """Take custom attributes of these types and names from a role."""
    return await _change_custom(call, stays=False)


async def _change_custom(call: Call, *, stays: bool) -> Response:
    body = await call.body(CustomAttributeList)
    call.on(await call.write(_decide_custom, call, body.custom_attribute_list, call.now, stays=stays))
    return call.done()


def _find(cx: Connection, call: Call, kind: Kind) -> Entry:
    return identifiers.find(cx, call.directory.options, call.part(kind), kind)


def _look_up(cx: Connection, _: Caller, call: Call, kind: Kind, *, as_keys: bool) -> _Shown:
    return _shown(cx, call, _find(cx, call, kind), as_keys=as_keys)


def _shown(cx: Connection, call: Call, group: Entry, *, as_keys: bool = False) -> _Shown:
    (shown,) = entry_objects.groups(cx, call.names, [group], as_keys=as_keys)
    return _Shown(shown, group.revision)


def _decide_new(
    cx: Connection, _: Caller, call: Call, kind: Kind, body: WrittenEntry, parent: str, now: Instant
) -> _Shown:
    container = identifiers.find(cx, call.directory.options, parent, kind) if parent else None
    unit = changing.place(cx, call.names, body.location)
    add = decisions.add_group if kind == "group" else decisions.add_role
    group = add(cx, call.names, body.new_id(kind), unit, now)
    if container is not None:
        decisions.add_members(cx, container, [group], now)
    return _shown(cx, call, changing.change(cx, call, group, body.of_new(), now))


def _decide_change(cx: Connection, _: Caller, call: Call, kind: Kind, body: WrittenEntry, now: Instant) -> _Shown:
    group = _find(cx, call, kind)
    call.matches(cx, group)
    return _shown(cx, call, changing.change(cx, call, group, body, now))


def _decide_custom(
    cx: Connection, _: Caller, call: Call, listed: list[CustomAttribute], now: Instant, *, stays: bool
) -> str:
    role = _find(cx, call, "role")
    call.matches(cx, role)
    named = {(each.type, each.name) for each in listed}
    kept = [each for each in _custom_of(cx, role) if (each.type, each.name) not in named]
    attributes.put_custom(cx, role, [*kept, *(listed if stays else [])], now)
    return entries.shown_id(call.names, role)


def _custom_of(cx: Connection, role: Entry) -> list[CustomAttribute]:
    return attributes.custom_of(cx, [role.id]).get(role.id, [])


_KEYS = (entry_objects.AS_KEYS,)


def _rows(kind: Kind, removal: Method) -> tuple[Row, ...]:
    path, list_type = f"/{kind}s", GroupList if kind == "group" else RoleList
    return (
        Row(
            path,
            {
                "GET": Method(partial(_list, kind=kind), list_type, parameters=lists.PARAMETERS),
                "POST": Method(partial(_add, kind=kind), GroupObject, status=201, body=WrittenEntry, of_entry=True),
            },
            {**changing.REFUSALS, **lists.UNKNOWN},
        ),
        Row(
            f"{path}/{{{kind}}}",
            {
                "GET": Method(
                    partial(_show, kind=kind), GroupObject, parameters=(entry_objects.AS_KEYS,), of_entry=True
                ),
                "PUT": Method(partial(_change, kind=kind), GroupObject, body=WrittenEntry, of_entry=True),
                "PATCH": Method(partial(_change, kind=kind), GroupObject, body=WrittenEntry, of_entry=True),
                "DELETE": removal,
            },
            {**changing.REFUSALS, **lists.UNKNOWN, **containment.REMOVAL, **_UNKNOWN},
        ),
        *containment.rows_inside(f"{path}/{{{kind}}}", kind, "members", _UNKNOWN),
        *containment.rows_inside(f"{path}/{{{kind}}}", kind, "users", _UNKNOWN),
        *containment.rows_inside(f"{path}/{{{kind}}}", kind, "groups", _UNKNOWN),
        *containment.rows_around(f"{path}/{{{kind}}}", kind, "roles", _UNKNOWN),
    )


ROWS = (
    *_rows("group", Method(_remove_group, of_entry=True)),
    *containment.rows_around("/groups/{group}", "group", "memberof", _UNKNOWN),
    Row(
        "/groups/subgroup",
        {
            "POST": Method(
                partial(_add_inside, kind="group"), GroupObject, status=201, body=WrittenSubgroup, of_entry=True
            )
        },
        {**changing.REFUSALS, **lists.UNKNOWN, **_UNKNOWN},
    ),
    *_rows("role", Method(_remove_role, of_entry=True)),
    *containment.rows_around("/roles/{role}", "role", "memberof", _UNKNOWN),
    Row(
        "/roles/{role}/attribute",
        {
            "GET": Method(_show_custom, CustomAttributeList),
            "POST": Method(_add_custom, body=CustomAttributeList),
        },
        {**_UNKNOWN, BadAttribute: ErrorCode(400, "bad_attribute")},
    ),
    Row(
        "/roles/{role}/attribute/deletionset",
        {"POST": Method(_remove_custom, body=CustomAttributeList)},
        {**_UNKNOWN, BadAttribute: ErrorCode(400, "bad_attribute")},
    ),
)
