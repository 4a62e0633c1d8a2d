"""Organizational units, by their locations: find, make, change and remove them, and list what is in them."""

from typing import NamedTuple

import msgspec
from sqlalchemy.engine import Connection
from starlette.responses import Response

from muniment.directory.api.rest import changing, containment, entry_objects, identifiers, lists, paging
from muniment.directory.api.rest.callers import Caller
from muniment.directory.api.rest.calls import Call, Method, Row
from muniment.directory.api.rest.changing import WrittenEntry
from muniment.directory.api.rest.entry_objects import RoleList, UnitList, UnitObject, UserList
from muniment.directory.api.rest.paging import Wanted
from muniment.directory.entries import editing, entries, listing
from muniment.directory.entries.listing import EntryPage, ListPlace
from muniment.directory.entries.table import Entry
from muniment.directory.refusals import BadName, UnknownEntry
from muniment.ground import events
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.web.answers.responses import ErrorCode, Table


class _Shown(NamedTuple):
    shown: UnitObject
    revision: int


async def list_units(call: Call) -> Response:
    """List the units of a partition, or of all; a partition's outermost unit is its root."""
    return call.answer(await call.read(_list, call, call.wanted(f"units {call.query.get(lists.PARTITION.name, '')}")))


@events.tells("user or group")
async def add(call: Call) -> Response:
    """Make a unit in the one at the body's location, or in the root unit of its partition."""
    unit = await call.write(_add, call, await call.body(WrittenEntry), call.now)
    call.on(unit.shown.location)
    return call.answer(unit.shown, 201, revision=unit.revision)


async def show(call: Call) -> Response:
    """Show a unit."""
    unit = await call.read(lambda cx, _: _shown(call, _find(cx, call)))
    return call.answer(unit.shown, revision=unit.revision)


@events.tells("user or group")
async def change(call: Call) -> Response:
    """Change a unit's name or description."""
    unit = await call.write(_change, call, await call.body(WrittenEntry), call.now)
    call.on(unit.shown.location)
    return call.answer(unit.shown, revision=unit.revision)


@events.tells("user or group")
async def remove(call: Call) -> Response:
    """Remove an empty unit."""
    call.on(await call.write(containment.remove_entry, call, _find, call.now))
    return call.done()


async def children(call: Call) -> Response:
    """List the units directly in a unit."""
    return call.answer(await call.read(_children, call, call.wanted(f"units in {call.part('unit')}")))


async def parents(call: Call) -> Response:
    """List the units around a unit, the innermost first."""
    return call.answer(await call.read(_parents, call, call.wanted(f"units around {call.part('unit')}")))


async def users(call: Call) -> Response:
    """List the users directly in a unit."""
    wanted = call.wanted(f"users in {call.part('unit')}")

    def find(cx: Connection, after: ListPlace | None) -> EntryPage:
        which = listing.Which("user", unit=_find(cx, call), pattern=wanted.filter or "")
        return listing.page(cx, which, after, wanted.size)

    return call.answer(await call.read(lists.describe, call, UserList, wanted, find))


async def roles(call: Call) -> Response:
    """List the roles directly in a unit."""
    wanted = call.wanted(f"roles in {call.part('unit')}")

    def find(cx: Connection, after: ListPlace | None) -> EntryPage:
        which = listing.Which("role", unit=_find(cx, call), pattern=wanted.filter or "")
        return listing.page(cx, which, after, wanted.size)

    return call.answer(await call.read(lists.describe, call, RoleList, wanted, find))


def _find(cx: Connection, call: Call) -> Entry:
    """A partition's location stands for its root unit."""
    found = identifiers.find_place(cx, call.directory.options, call.part("unit"))
    return entries.units_in(cx, found)[0] if found.kind == "partition" else found


def _shown(call: Call, unit: Entry) -> _Shown:
    return _Shown(entry_objects.unit(call.names, unit), unit.revision)


def _list(cx: Connection, _: Caller, call: Call, wanted: Wanted) -> UnitList:
    name = call.query.get(lists.PARTITION.name, "").strip()
    partition = identifiers.find_partition(cx, call.directory.options, name) if name else None
    which = listing.Which("unit", partition, pattern=wanted.filter or "")
    return _page(cx, call, wanted, listing.page(cx, which, wanted.after(cx), wanted.size))


def _children(cx: Connection, _: Caller, call: Call, wanted: Wanted) -> UnitList:
    which = listing.Which("unit", unit=_find(cx, call), pattern=wanted.filter or "")
    return _page(cx, call, wanted, listing.page(cx, which, wanted.after(cx), wanted.size))


def _parents(cx: Connection, _: Caller, call: Call, wanted: Wanted) -> UnitList:
    return _page(cx, call, wanted, EntryPage(_around(cx, _find(cx, call)), None))


def _around(cx: Connection, inner: Entry) -> list[Entry]:
    around: list[Entry] = []
    unit: Entry | None = inner
    while unit is not None and unit.parent_id is not None:
        unit = entries.by_id(cx, unit.parent_id)
        around += [unit] if unit is not None and unit.kind == "unit" else []
    return around


def _page(cx: Connection, call: Call, wanted: Wanted, page: EntryPage) -> UnitList:
    shown = [entry_objects.unit(call.names, unit) for unit in page.entries]
    return UnitList(organizational_units=shown, **wanted.fields(cx, len(shown), page.next))


def _add(cx: Connection, _: Caller, call: Call, body: WrittenEntry, now: Instant) -> _Shown:
    parent = changing.place(cx, call.names, body.location)
    if parent is None:
        parent = entries.find_partition(cx, call.names, body.user_partition_id)
    description = "" if body.description is msgspec.UNSET else body.description
    return _shown(call, editing.add_unit(cx, parent, body.name, now, description=description))


def _change(cx: Connection, _: Caller, call: Call, body: WrittenEntry, now: Instant) -> _Shown:
    unit = _find(cx, call)
    call.matches(cx, unit)
    _check_place(cx, call, unit, body.location.strip())
    if body.name and body.name != entries.shown_name(call.names, unit):
        unit = changing.rename(cx, call, unit, body.name, now)
    if body.description is not msgspec.UNSET and body.description != unit.description:
        editing.set_description(cx, unit, body.description, now)
    return _shown(call, entries.by_id(cx, unit.id) or unit)


def _check_place(cx: Connection, call: Call, unit: Entry, location: str) -> None:
    """It is the unit's own, or that of the one around it. Raises BadName."""
    present = [entries.location(call.names, each) for each in (unit, *_around(cx, unit)[:1])]
    if location and fold_name(location) not in map(fold_name, present):
        raise BadName("A unit stays where it is: only the command line moves it.")


_UNKNOWN: Table = {UnknownEntry: ErrorCode(404, "unknown_entry")}
_LIST = (*paging.PARAMETERS, paging.FILTER)

ROWS = (
    Row(
        "/orgunits",
        {
            "GET": Method(list_units, UnitList, parameters=(*_LIST, lists.PARTITION)),
            "POST": Method(add, UnitObject, status=201, body=WrittenEntry, of_entry=True),
        },
        {**changing.REFUSALS, **lists.UNKNOWN},
    ),
    Row(
        "/orgunits/{unit}",
        {
            "GET": Method(show, UnitObject, of_entry=True),
            "PUT": Method(change, UnitObject, body=WrittenEntry, of_entry=True),
            "PATCH": Method(change, UnitObject, body=WrittenEntry, of_entry=True),
            "DELETE": Method(remove, of_entry=True),
        },
        {**changing.REFUSALS, **containment.REMOVAL, **lists.UNKNOWN},
    ),
    Row("/orgunits/{unit}/children", {"GET": Method(children, UnitList, parameters=_LIST)}, _UNKNOWN),
    Row("/orgunits/{unit}/parents", {"GET": Method(parents, UnitList)}, _UNKNOWN),
    Row("/orgunits/{unit}/users", {"GET": Method(users, UserList, parameters=_LIST)}, _UNKNOWN),
    Row("/orgunits/{unit}/roles", {"GET": Method(roles, RoleList, parameters=_LIST)}, _UNKNOWN),
)
