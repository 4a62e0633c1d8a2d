"""Users: find, make, change and remove them, set their passwords, and say in which groups and roles they are."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy.engine import Connection
from starlette.responses import Response

from muniment.directory import audit
from muniment.directory.administration import decisions
from muniment.directory.api.rest import changing, containment, dialect, entry_objects, identifiers, lists
from muniment.directory.api.rest.callers import Caller, RequiredRight
from muniment.directory.api.rest.calls import Call, JointCreation, Method, Row
from muniment.directory.api.rest.changing import WrittenEntry
from muniment.directory.api.rest.entry_objects import UserList, UserObject
from muniment.directory.entries import attributes, entries, resources
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import (
    BadAttribute,
    NobodyAdministers,
    NotAdministrator,
    SignInRefused,
    UnknownEntry,
    UnknownUser,
)
from muniment.directory.sign_in import attempts
from muniment.directory.sign_in.pauses import Origin
from muniment.ground import events
from muniment.ground.clock import Instant
from muniment.ground.refusals import Malformed
from muniment.web.answers.responses import ErrorCode, Table
from muniment.web.requests.transport import caller_address


class UserSearch(msgspec.Struct, kw_only=True):
    """Which users are asked for."""

    partition_name: str = ""
    state: str = ""


class NewPassword(msgspec.Struct, kw_only=True):
    """A new password; a person who changes their own also sends the one that it replaces."""

    new_password: str = ""
    password: str = ""
    old_password: str = ""


class TwoFactorState(msgspec.Struct, kw_only=True):
    """Whether a second factor is asked for: this directory has none."""

    enabled: bool = False
    supported: bool = False


class _OwnPassword(NamedTuple):
    """A person's wish to change their own password. ``attempt`` is None for an administrator, who need not know it."""

    user_id: str
    attempt: attempts.SignInAttempt | None


async def list_users(call: Call) -> Response:
    """List users."""
    return call.answer(await lists.page(call, "user", UserList))


@events.tells()
async def search(call: Call) -> Response:
    """List users, as a body asks."""
    body = await call.body(UserSearch)
    asked = {"where_partition_name": body.partition_name, "where_state": body.state}
    return call.answer(await lists.page(call, "user", UserList, asked))


@events.tells("user or group")
async def add(call: Call) -> Response:
    """Make a user."""
    body = await call.body(WrittenEntry)
    password = body.written(call.names).password
    password_hash = await call.hash_password(password) if password is not None else None
    now = call.now
    user = await call.write_jointly(_ADDED, lambda cx, _: _add(cx, call, body, password_hash, now))
    call.on(user.shown.id)
    return call.answer(user.shown, 201, revision=user.revision)


async def show(call: Call) -> Response:
    """Show a user."""
    user = await call.read(_show, call, as_keys=call.flag("attrsAsKeys"))
    return call.answer(user.shown, revision=user.revision)


@events.tells("user or group")
async def change(call: Call) -> Response:
    """Change what the body names of a user."""
    body = await call.body(WrittenEntry)
    password = body.written(call.names).password
    password_hash = await call.hash_password(password) if password is not None else None
    user = await call.write(_change, call, body, password_hash, call.now)
    call.on(user.shown.id)
    return call.answer(user.shown, revision=user.revision)


@events.tells("user or group")
async def remove(call: Call) -> Response:
    """Remove a user."""
    call.on(await containment.remove_person(call, "user"))
    return call.done()


@events.tells("user or group", "pause")
async def set_password(call: Call) -> Response:
    """Set a user's password: an administrator anybody's, and a person their own, with the old one."""
    body = await call.body(NewPassword)
    new_password = body.new_password or body.password
    if not new_password:
        raise Malformed(f"The body has no {dialect.key(call.dialect, NewPassword, 'new_password')}.")
    own = await call.read(_whose_password, call, body.old_password, call.now)
    is_right = True
    if own.attempt is not None:
        check = call.directory.gate.check(
            own.attempt.password_hash, body.old_password, own.attempt.asker(own.user_id), call.now
        )
        is_right = await asyncio.wrap_future(check)
    password_hash = await call.hash_password(new_password) if is_right else ""
    try:
        call.on(await call.write(_set_password, call, own, password_hash, is_right, call.now))
    except SignInRefused as refusal:
        if refusal.pauses:
            events.begin(call.request.scope, "pause", result="done", who=own.user_id, how=call.directory.pause)
        raise
    return call.done()


async def show_second_factor(call: Call) -> Response:
    """Show whether a user has a second factor: a stub, as this directory has none yet."""
    await call.read(lambda cx, _: _find(cx, call))
    return call.answer(TwoFactorState())


@events.tells()
async def set_second_factor(call: Call) -> Response:
    """Refuse to turn a second factor on, which this directory does not have yet."""
    body = await call.body(TwoFactorState)
    await call.read(lambda cx, _: _find(cx, call))
    if body.enabled:
        raise Malformed("This directory has no second factor yet: it cannot be turned on.")
    return call.answer(TwoFactorState())


def _find(cx: Connection, call: Call) -> Entry:
    return identifiers.find(cx, call.directory.options, call.part("user"), "user")


class _Shown(NamedTuple):
    shown: UserObject
    revision: int


def _shown(cx: Connection, call: Call, user: Entry, *, as_keys: bool = False) -> _Shown:
    return _show_all(cx, call.names, [user], as_keys=as_keys)[0]


def _show_all(cx: Connection, names: DirectoryNames, users: Sequence[Entry], *, as_keys: bool = False) -> list[_Shown]:
    shown = entry_objects.users(cx, names, users, as_keys=as_keys)
    return [_Shown(*each) for each in zip(shown, (user.revision for user in users), strict=True)]


def _show(cx: Connection, _: Caller, call: Call, *, as_keys: bool) -> _Shown:
    return _shown(cx, call, _find(cx, call), as_keys=as_keys)


def _add(cx: Connection, call: Call, body: WrittenEntry, password_hash: str | None, now: Instant) -> Entry:
    parent = changing.place(cx, call.names, body.location)
    written = body.written(call.names)
    with audit.decision(cx):
        user = decisions.add_user(
            *(cx, call.names, body.new_id("user"), parent, now),
            password_hash=password_hash,
            description=body.description or written.description or "",
            flags=written.flags,
            values=written.stored,
        )
        if body.custom_attributes:
            attributes.put_custom(cx, user, body.custom_attributes, now)
            user = entries.by_id(cx, user.id) or user
    return user


_ADDED = JointCreation(_show_all)


def _change(
    cx: Connection, _: Caller, call: Call, body: WrittenEntry, password_hash: str | None, now: Instant
) -> _Shown:
    user = _find(cx, call)
    call.matches(cx, user)
    return _shown(cx, call, changing.change(cx, call, user, body, now, password_hash=password_hash))


def _whose_password(cx: Connection, caller: Caller, call: Call, old_password: str, now: Instant) -> _OwnPassword:
    options = call.directory.options
    user_id = entries.shown_id(call.names, caller.user)
    if caller.administers:
        return _OwnPassword(user_id, None)
    _require_own(cx, caller, call)
    if not old_password:
        raise NotAdministrator("Whoever changes their own password sends the present one too, as oldPassword.")
    origin = Origin(caller_address(call.request))
    resource = resources.administration(cx)
    return _OwnPassword(user_id, attempts.begin(cx, options, resource, user_id, origin, now, opens="people"))


def _set_password(
    cx: Connection, caller: Caller, call: Call, own: _OwnPassword, password_hash: str, is_right: bool, now: Instant
) -> str:
    if own.attempt is None and not caller.administers:
        raise NotAdministrator("Only an administrator of the directory sets somebody's password.")
    user = _find(cx, call) if own.attempt is None else _require_own(cx, caller, call)
    call.matches(cx, user)
    if own.attempt is not None:
        attempts.finish(cx, call.directory.options, own.attempt, is_right, now)
    decisions.set_password(cx, user, password_hash, now)
    return entries.shown_id(call.names, user)


def _require_own(cx: Connection, caller: Caller, call: Call) -> Entry:
    """Raises NotAdministrator, also if there is no such user: a caller learns nothing of others."""
    try:
        user = _find(cx, call)
    except UnknownEntry:
        user = None
    if user is None or user.id != caller.user.id:
        raise NotAdministrator("Only an administrator of the directory sets somebody else's password.")
    if user.cannot_change_password:
        raise NotAdministrator("An administrator has set that this user cannot change their password.")
    return user


_UNKNOWN: Table = {**lists.UNKNOWN, UnknownUser: ErrorCode(404, "unknown_user")}
_WRONG: Table = {**changing.REFUSALS, **_UNKNOWN}

ROWS = (
    Row(
        "/users",
        {
            "GET": Method(list_users, UserList, parameters=lists.PARAMETERS_OF_USERS),
            "POST": Method(add, UserObject, status=201, body=WrittenEntry, of_entry=True),
        },
        {**changing.REFUSALS, **lists.UNKNOWN},
    ),
    Row(
        "/users/search",
        {"POST": Method(search, UserList, body=UserSearch, parameters=lists.PARAMETERS_OF_USERS)},
        lists.UNKNOWN,
    ),
    Row(
        "/users/{user}",
        {
            "GET": Method(show, UserObject, parameters=(entry_objects.AS_KEYS, entry_objects.EVERY), of_entry=True),
            "PATCH": Method(change, UserObject, body=WrittenEntry, of_entry=True),
            "PUT": Method(change, UserObject, body=WrittenEntry, of_entry=True),
            "DELETE": Method(remove, of_entry=True),
        },
        {**_WRONG, **containment.REMOVAL},
    ),
    Row(
        "/users/{user}/password",
        {"PUT": Method(set_password, body=NewPassword, right=RequiredRight.SIGNED_IN, of_entry=True)},
        {
            **_UNKNOWN,
            SignInRefused: ErrorCode(403, "wrong_password"),
            BadAttribute: ErrorCode(400, "bad_attribute"),
            NobodyAdministers: ErrorCode(409, "nobody_administers"),
        },
    ),
    Row(
        "/users/{user}/twofactorstate",
        {
            "GET": Method(show_second_factor, TwoFactorState),
            "PUT": Method(set_second_factor, TwoFactorState, body=TwoFactorState),
        },
        _UNKNOWN,
    ),
    *containment.rows_around("/users/{user}", "user", "memberof", _UNKNOWN),
    *containment.rows_around("/users/{user}", "user", "roles", _UNKNOWN),
)
