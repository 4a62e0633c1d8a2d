"""Who is in which group or role, in both directions? And what does the removal of an entry take?"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from sqlalchemy.engine import Connection
from starlette.responses import Response

from muniment.directory import version_stamps
from muniment.directory.administration import decisions
from muniment.directory.api.rest import identifiers, lists, paging
from muniment.directory.api.rest.callers import Caller
from muniment.directory.api.rest.calls import Answers, Call, Method, Row
from muniment.directory.api.rest.entry_objects import GroupList, MemberList, RoleList, StringList, UserList
from muniment.directory.entries import entries, listing
from muniment.directory.entries.table import Entry, Kind
from muniment.directory.refusals import (
    BadName,
    CannotKnow,
    ClosesLoop,
    HasDependents,
    NameInUse,
    NobodyAdministers,
    SignsIn,
    UnknownEntry,
    UnknownUser,
)
from muniment.ground import events
from muniment.ground.clock import Instant
from muniment.ground.refusals import TooLarge
from muniment.web.answers.responses import ErrorCode, Table

MOST = 500
"""So many entries may one request name."""

REMOVAL: Table = {
    HasDependents: ErrorCode(409, "has_dependents"),
    NameInUse: ErrorCode(409, "name_in_use"),
    SignsIn: ErrorCode(409, "signs_in"),
    CannotKnow: ErrorCode(409, "cannot_know"),
    NobodyAdministers: ErrorCode(409, "nobody_administers"),
}

_CHANGE: Table = {
    UnknownEntry: ErrorCode(404, "unknown_entry"),
    UnknownUser: ErrorCode(404, "unknown_user"),
    ClosesLoop: ErrorCode(409, "closes_loop"),
    BadName: ErrorCode(400, "bad_name"),
    NobodyAdministers: ErrorCode(409, "nobody_administers"),
}

_AROUND: dict[str, tuple[Kind, type[paging.PageFields]]] = {
    "memberof": ("group", GroupList),
    "roles": ("role", RoleList),
}

_INSIDE: dict[str, tuple[tuple[Kind, ...], type[paging.PageFields]]] = {
    "members": (identifiers.MEMBERS, MemberList),
    "users": (identifiers.PERSONS, UserList),
    "groups": (identifiers.GROUPS, GroupList),
}


def rows_around(path: str, kind: Kind, part: Literal["memberof", "roles"], unknown: Table) -> tuple[Row, ...]:
    """Make the addresses of the groups (``memberof``) or roles in which an entry is."""
    container, list_type = _AROUND[part]
    return _rows(
        f"{path}/{part}",
        partial(_list_around, kind=kind, containers=container),
        partial(_enter, kind=kind, containers=container),
        partial(_leave, kind=kind, containers=container),
        list_type,
        unknown,
    )


def rows_inside(path: str, kind: Kind, part: Literal["members", "users", "groups"], unknown: Table) -> tuple[Row, ...]:
    """Make the addresses of the members of a group or role, or of those of one kind."""
    return _rows(
        f"{path}/{part}",
        partial(_list_inside, kind=kind, what=part),
        partial(_add, kind=kind, what=part),
        partial(_remove, kind=kind, what=part),
        _INSIDE[part][1],
        unknown,
    )


async def remove_person(
    call: Call, kind: Literal["user", "group"], find: Callable[[Connection, Call], Entry] | None = None
) -> str:
    """Remove a user or group, whom the path names or ``find`` finds, by the rules that bind both halves, in
    transactions of their own. Return the id.
    """

    def find_again(cx: Connection) -> Entry:
        return _find(cx, call, kind) if find is None else find(cx, call)

    shown = await call.read(lambda cx, _: entries.shown_id(call.names, find_again(cx)))

    def remove(ask: Callable[[Connection], Caller]) -> None:
        def check_right(cx: Connection) -> None:
            version_stamps.lock_rights(cx)
            ask(cx)
            entry = find_again(cx)
            if entries.shown_id(call.names, entry) != shown:
                raise (UnknownUser if kind == "user" else UnknownEntry)(f"{shown} was removed meanwhile.")
            call.matches(cx, entry)

        try:
            call.directory.dependencies.remove_person(kind, shown, check_right)
        except BadName as refusal:
            raise HasDependents(refusal.sentence) from refusal

    await call.apart(remove)
    return shown


def remove_entry(cx: Connection, _: Caller, call: Call, find: Callable[[Connection, Call], Entry], now: Instant) -> str:
    """Remove a role, a unit or a partition, and return as what an event tells it. Raises HasDependents,
    NobodyAdministers, Outdated.
    """
    entry = find(cx, call)
    call.matches(cx, entry)
    told = {"unit": entries.location, "partition": entries.shown_name}.get(entry.kind, entries.shown_id)
    shown = told(call.names, entry)
    try:
        decisions.remove(cx, entry, now)
    except BadName as refusal:
        raise HasDependents(refusal.sentence) from refusal
    return shown


async def _list_around(call: Call, *, kind: Kind, containers: Kind) -> Response:
    """List the {containers}s of which a {kind} is a direct member."""

    def find(cx: Connection, after: listing.ListPlace | None) -> listing.EntryPage:
        return listing.containers_of(cx, _find(cx, call, kind), containers, after, wanted.size)

    list_type = GroupList if containers == "group" else RoleList
    wanted = call.wanted(f"{containers}s around {call.part(kind)}")
    return call.answer(await call.read(lists.describe, call, list_type, wanted, find))


async def _list_inside(call: Call, *, kind: Kind, what: str) -> Response:
    """List the {what} that are direct members of a {kind}."""

    members, list_type = _INSIDE[what]

    def find(cx: Connection, after: listing.ListPlace | None) -> listing.EntryPage:
        return listing.members_of(cx, _find(cx, call, kind), members, after, wanted.size)

    wanted = call.wanted(f"{what} in {call.part(kind)}")
    return call.answer(await call.read(lists.describe, call, list_type, wanted, find))


@events.tells("user or group")
async def _enter(call: Call, *, kind: Kind, containers: Kind) -> Response:
    """Put a {kind} into {containers}s."""
    return await _change(call, kind, (containers,), _enter_all)


@events.tells("user or group")
async def _leave(call: Call, *, kind: Kind, containers: Kind) -> Response:
    """Take a {kind} out of {containers}s."""
    return await _change(call, kind, (containers,), _leave_all)


@events.tells("user or group")
async def _add(call: Call, *, kind: Kind, what: str) -> Response:
    """Put {what} into a {kind}."""
    return await _change(call, kind, _INSIDE[what][0], _add_all)


@events.tells("user or group")
async def _remove(call: Call, *, kind: Kind, what: str) -> Response:
    """Take {what} out of a {kind}."""
    return await _change(call, kind, _INSIDE[what][0], _remove_all)


Change = Callable[[Connection, Entry, Sequence[Entry], Instant], None]


async def _change(call: Call, kind: Kind, others: tuple[Kind, ...], change: Change) -> Response:
    body = await call.body(StringList)
    if len(body.string_list) > MOST:
        raise TooLarge(f"One request names at most {MOST} entries.")
    call.on(await call.write(_decide, call, kind, others, body.string_list, change, call.now))
    return call.done()


def _decide(
    cx: Connection,
    _: Caller,
    call: Call,
    kind: Kind,
    others: tuple[Kind, ...],
    listed: Sequence[str],
    change: Change,
    now: Instant,
) -> str:
    entry = _find(cx, call, kind)
    call.matches(cx, entry)
    change(cx, entry, [identifiers.find(cx, call.directory.options, each, *others) for each in listed], now)
    return entries.shown_id(call.names, entry)


def _enter_all(cx: Connection, entry: Entry, containers: Sequence[Entry], now: Instant) -> None:
    for container in containers:
        decisions.add_members(cx, container, [entry], now, refuse_loops=True)


def _leave_all(cx: Connection, entry: Entry, containers: Sequence[Entry], now: Instant) -> None:
    for container in containers:
        decisions.remove_members(cx, container, [entry], now)


def _add_all(cx: Connection, entry: Entry, members: Sequence[Entry], now: Instant) -> None:
    decisions.add_members(cx, entry, members, now, refuse_loops=True)


def _remove_all(cx: Connection, entry: Entry, members: Sequence[Entry], now: Instant) -> None:
    decisions.remove_members(cx, entry, members, now)


def _find(cx: Connection, call: Call, kind: Kind) -> Entry:
    return identifiers.find(cx, call.directory.options, call.part(kind), kind)


def _rows(
    path: str, read: Answers, add: Answers, remove: Answers, list_type: type[paging.PageFields], unknown: Table
) -> tuple[Row, ...]:
    listed = Method(read, list_type, parameters=paging.PARAMETERS)
    refusals = {**_CHANGE, **unknown}
    return (
        Row(path, {"GET": listed, "POST": Method(add, body=StringList)}, refusals),
        Row(f"{path}/deletionset", {"POST": Method(remove, body=StringList)}, refusals),
    )
