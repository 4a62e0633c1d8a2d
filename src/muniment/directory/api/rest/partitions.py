"""Partitions of users: find, make, change and remove them."""

from typing import NamedTuple

import msgspec
from sqlalchemy.engine import Connection
from starlette.responses import Response

from muniment.directory.api.rest import changing, containment, entry_objects, identifiers, paging
from muniment.directory.api.rest.callers import Caller
from muniment.directory.api.rest.calls import Call, Method, Row
from muniment.directory.api.rest.entry_objects import PartitionObject
from muniment.directory.api.rest.paging import Wanted
from muniment.directory.entries import editing, entries, listing
from muniment.directory.entries.table import Entry
from muniment.directory.refusals import UnknownPartition
from muniment.ground import events
from muniment.ground.clock import Instant
from muniment.web.answers.responses import ErrorCode, Table


class WrittenPartition(msgspec.Struct, kw_only=True):
    """A new partition, or what is to change of one."""

    name: str = ""
    description: str | msgspec.UnsetType = msgspec.UNSET


class PartitionList(paging.PageFields, kw_only=True):
    """A page of partitions."""

    partitions: list[PartitionObject]


class _Shown(NamedTuple):
    shown: PartitionObject
    revision: int


async def list_partitions(call: Call) -> Response:
    """List partitions."""
    return call.answer(await call.read(_list, call, call.wanted("partitions")))


@events.tells("user or group")
async def add(call: Call) -> Response:
    """Make a partition."""
    partition = await call.write(_add, call, await call.body(WrittenPartition), call.now)
    call.on(partition.shown.name)
    return call.answer(partition.shown, 201, revision=partition.revision)


async def show(call: Call) -> Response:
    """Show a partition."""
    partition = await call.read(lambda cx, _: _shown(call, _find(cx, call)))
    return call.answer(partition.shown, revision=partition.revision)


@events.tells("user or group")
async def change(call: Call) -> Response:
    """Change a partition's name, while it has no users and groups, or its description."""
    partition = await call.write(_change, call, await call.body(WrittenPartition), call.now)
    call.on(partition.shown.name)
    return call.answer(partition.shown, revision=partition.revision)


@events.tells("user or group")
async def remove(call: Call) -> Response:
    """Remove an empty partition."""
    call.on(await call.write(containment.remove_entry, call, _find, call.now))
    return call.done()


def _find(cx: Connection, call: Call) -> Entry:
    return identifiers.find_partition(cx, call.directory.options, call.part("partition"))


def _shown(call: Call, partition: Entry) -> _Shown:
    return _Shown(entry_objects.partition(call.names, partition), partition.revision)


def _list(cx: Connection, _: Caller, call: Call, wanted: Wanted) -> PartitionList:
    page = listing.page(cx, listing.Which("partition", pattern=wanted.filter or ""), wanted.after(cx), wanted.size)
    shown = [entry_objects.partition(call.names, each) for each in page.entries]
    return PartitionList(partitions=shown, **wanted.fields(cx, len(shown), page.next))


def _add(cx: Connection, _: Caller, call: Call, body: WrittenPartition, now: Instant) -> _Shown:
    description = "" if body.description is msgspec.UNSET else body.description
    return _shown(call, editing.add_partition(cx, call.names, body.name, now, description=description))


def _change(cx: Connection, _: Caller, call: Call, body: WrittenPartition, now: Instant) -> _Shown:
    partition = _find(cx, call)
    call.matches(cx, partition)
    if body.name and body.name != entries.shown_name(call.names, partition):
        partition = changing.rename(cx, call, partition, body.name, now)
    if body.description is not msgspec.UNSET and body.description != partition.description:
        editing.set_description(cx, partition, body.description, now)
    return _shown(call, entries.by_id(cx, partition.id) or partition)


_UNKNOWN: Table = {UnknownPartition: ErrorCode(404, "unknown_partition")}


def _rows(path: str) -> tuple[Row, ...]:
    return (
        Row(
            path,
            {
                "GET": Method(list_partitions, PartitionList, parameters=(*paging.PARAMETERS, paging.FILTER)),
                "POST": Method(add, PartitionObject, status=201, body=WrittenPartition, of_entry=True),
            },
            changing.REFUSALS,
        ),
        Row(
            f"{path}/{{partition}}",
            {
                "GET": Method(show, PartitionObject, of_entry=True),
                "PUT": Method(change, PartitionObject, body=WrittenPartition, of_entry=True),
                "PATCH": Method(change, PartitionObject, body=WrittenPartition, of_entry=True),
                "DELETE": Method(remove, of_entry=True),
            },
            {**changing.REFUSALS, **containment.REMOVAL, **_UNKNOWN},
        ),
    )


ROWS = (*_rows("/partitions"), *_rows("/partition"))
"""Some programs of the field write the singular."""
