"""List entries a page at a time, as the parameters of the query narrow them down (docs/interface.md, ours 23)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy.engine import Connection

from muniment.directory.api.rest import entry_objects, identifiers, paging
from muniment.directory.api.rest.callers import Caller
from muniment.directory.api.rest.calls import Call
from muniment.directory.api.rest.paging import Wanted
from muniment.directory.entries import listing
from muniment.directory.entries.listing import EntryPage, ListPlace
from muniment.directory.entries.table import Entry, Kind
from muniment.directory.refusals import UnknownEntry, UnknownPartition
from muniment.ground.refusals import Malformed
from muniment.web.addresses import Parameter
from muniment.web.answers.responses import ErrorCode, Table

PARTITION = Parameter("where_partition_name", "Name of the partition whose entries are asked for.")
LOCATION = Parameter("where_location", "Location of the unit in which the entries lie.")
STATE = Parameter("where_state", "`enabled` or `disabled`.", {"type": "string", "enum": ["enabled", "disabled"]})
PARAMETERS = (*paging.PARAMETERS, paging.FILTER, PARTITION, LOCATION, entry_objects.AS_KEYS)
PARAMETERS_OF_USERS = (*PARAMETERS, STATE)

UNKNOWN: Table = {
    UnknownPartition: ErrorCode(404, "unknown_partition"),
    UnknownEntry: ErrorCode(404, "unknown_entry"),
}
"""What narrows a list down is not there."""

L = TypeVar("L", bound=paging.PageFields)

_DISABLED = {"": None, "enabled": False, "disabled": True}


async def page(call: Call, kind: Kind, list_type: type[L], asked: Mapping[str, str] | None = None) -> L:
    """``asked`` replaces parameters of the query. Raises Malformed, UnknownPartition, UnknownEntry."""
    query = call.query | dict(asked or {})
    state = query.get("where_state", "").strip().lower()
    if state not in _DISABLED:
        raise Malformed("where_state is enabled or disabled.")
    narrowed = [query.get(each.name, "") for each in (PARTITION, LOCATION)]
    wanted = call.wanted(" ".join((kind, state, *narrowed)))

    def find(cx: Connection, after: ListPlace | None) -> EntryPage:
        partition, unit = _narrow(cx, call, *narrowed)
        which = listing.Which(kind, partition, unit, _DISABLED[state], wanted.filter or "")
        return listing.page_by_shown_names(cx, call.names, which, after, wanted.size)

    return await call.read(describe, call, list_type, wanted, find, as_keys=call.flag("attrsAsKeys"))


def describe(
    cx: Connection,
    _: Caller,
    call: Call,
    list_type: type[L],
    wanted: Wanted,
    find: Callable[[Connection, ListPlace | None], EntryPage],
    *,
    as_keys: bool = False,
) -> L:
    """Find a page of users, groups and roles, and write the lists that ``list_type`` has."""
    found = find(cx, wanted.after(cx))
    fields: dict[str, Any] = _members(cx, call, list_type, found.entries, as_keys=as_keys)
    return list_type(**fields, **wanted.fields(cx, len(found.entries), found.next))


def _members(
    cx: Connection, call: Call, list_type: type[L], several: Sequence[Entry], *, as_keys: bool
) -> dict[str, list[Any]]:
    members: dict[str, list[Any]] = {}
    for kind in ("user", "group", "role"):
        if f"{kind}s" in list_type.__struct_fields__:
            write = entry_objects.users if kind == "user" else entry_objects.groups
            of_kind = [entry for entry in several if entry.kind == kind]
            members[f"{kind}s"] = [*write(cx, call.names, of_kind, as_keys=as_keys)]
    return members


def _narrow(cx: Connection, call: Call, partition: str, location: str) -> tuple[Entry | None, Entry | None]:
    options = call.directory.options
    place = identifiers.find_place(cx, options, location) if location.strip() else None
    if place is not None and place.kind == "unit":
        return None, place
    if partition.strip():
        return identifiers.find_partition(cx, options, partition), None
    return place, None
