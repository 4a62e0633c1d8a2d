"""Give tickets to programs, and say whether one is good (decision 0111).

The body shows who calls: nothing here sets a cookie, or reads one.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from sqlalchemy.engine import Connection
from starlette.responses import Response

from muniment.database.audit import Actor, acting
from muniment.directory.api.rest.callers import RequiredRight
from muniment.directory.api.rest.calls import Answers, Call, Method, Row
from muniment.directory.api.rest.dialect import spelled
from muniment.directory.entries import entries, resources
from muniment.directory.options import DirectoryNames, DirectoryOptions
from muniment.directory.refusals import (
    AccessEnded,
    CannotImpersonate,
    ExpiredTicket,
    NotSignedIn,
    SignInRefused,
    UnknownResource,
)
from muniment.directory.sign_in import holders, programs
from muniment.directory.sign_in.pauses import Origin
from muniment.directory.sign_in.programs import ProgramTicket
from muniment.ground import events
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.ground.refusals import Malformed
from muniment.web.answers.responses import ErrorCode, Table
from muniment.web.requests.transport import caller_address

T = TypeVar("T")

_LONGEST_BODY = 65_536
_NEW_PASSWORD = "newPassword"  # noqa: S105 - the name of a step


class SignInRequest(msgspec.Struct, kw_only=True):
    """Who signs in: a user, or as ``<client_id>@OAuthClients`` a client with its secret."""

    user_name: str | msgspec.UnsetType = msgspec.UNSET
    password: str | msgspec.UnsetType = msgspec.UNSET
    ticket_type: str = ""
    target_resource_id: str = ""


class TicketRequest(msgspec.Struct, kw_only=True):
    """For whom or where a ticket is asked, and by whom: the caller's ticket, or a resource with its secret."""

    user_name: str = ""
    ticket: str = ""
    target_resource_id: str = ""
    resource_id: str = ""
    source_resource_id: str = ""
    secure_secret: str = ""


@spelled(
    rest={"resource_id": "resourceID"},
    v1={
        "resource_id": "resourceID",
        "failure_reason": "failureReason",
        "continuation_context": "continuationContext",
        "continuation_data": "continuationData",
    },
)
class TicketAnswer(msgspec.Struct, kw_only=True):
    """A ticket, or with ``continuation`` none yet: then ``continuation_context`` names the step that is to be taken at
    the sign-in page, whose address is ``continuation_data``.
    """

    token: str | None = None
    user_id: str
    ticket: str | None
    resource_id: str | None = None
    failure_reason: str | None = None
    password_expiration_time: int = 0
    continuation: bool = False
    continuation_context: str | None = None
    continuation_data: str | None = None


@events.tells("sign-in", "pause")
async def sign_in(call: Call) -> Response:
    """Give a ticket for a name and a password."""
    asked = await call.body(SignInRequest, _LONGEST_BODY)
    if isinstance(asked.user_name, msgspec.UnsetType) or isinstance(asked.password, msgspec.UnsetType):
        raise Malformed("The body has a user name and a password.")
    options, target_id = call.directory.options, asked.target_resource_id or None
    event = _event(call, "credentials")
    event.account = fold_name(asked.user_name)
    origin = Origin(caller_address(call.request))
    # As at the sign-in page: the same places, pauses, line and gate.
    attempt = await call.read(_ask, programs.begin, options, target_id, asked.user_name, origin, call.now)
    asker = attempt.asker(asked.user_name)
    check = call.directory.gate.check(attempt.password_hash, asked.password, asker, call.now)
    password_ok = await asyncio.wrap_future(check)
    event.who = None if attempt.user_id is None else asked.user_name
    try:
        given = await call.write(_ask, programs.finish, options, attempt, target_id, password_ok, call.now)
    except SignInRefused as refusal:
        event.reason = refusal.reason
        if refusal.pauses:
            events.begin(call.request.scope, "pause", result="done", who=asked.user_name, how=call.directory.pause)
        raise
    if given.text is None:
        event.result, event.reason = "refused", "needs a new password"
    return _answer(call, given, event)


@events.tells("impersonation")
async def for_user(call: Call) -> Response:
    """Give a ticket with which the caller acts as a user."""
    asked, event = await call.body(TicketRequest, _LONGEST_BODY), _event(call, "ticket for a user")
    options = call.directory.options
    # Who shows nothing that is good does not hold up the database's writer.
    await call.read(_ask, _caller, options, asked, event, call.now)
    return _answer(call, await call.write(_ask, _for_user, call, asked, event, call.now), event)


@events.tells("sign-in")
async def for_resource(call: Call) -> Response:
    """Give a ticket for one resource, from a ticket of the directory."""
    asked, event = await call.body(TicketRequest, _LONGEST_BODY), _event(call, "ticket for a resource")
    options = call.directory.options
    await call.read(_ask, holders.of_directory, call.names, asked.ticket, call.now)
    return _answer(call, await call.write(_ask, _for_resource, options, asked, event, call.now), event)


@events.tells()
async def validate(call: Call) -> Response:
    """Say whether a ticket opens the resource that asks, and whose it is."""
    asked = await call.body(TicketRequest, _LONGEST_BODY)
    return _answer(call, await call.read(_ask, _validate, call.names, asked, call.now), None)


def _caller(
    cx: Connection, options: DirectoryOptions, asked: TicketRequest, event: events.Event, now: Instant
) -> programs.Impersonator:
    if asked.source_resource_id and asked.secure_secret:
        resource = programs.resource_by_secret(cx, asked.source_resource_id, asked.secure_secret)
        event.who = resources.scope(options.names, resource)
        return programs.Impersonator(resource=resource)
    caller = programs.caller_by_ticket(cx, options.names, asked.ticket, now)
    assert caller.user is not None  # noqa: S101 - a ticket has one
    event.who = entries.shown_id(options.names, caller.user)
    return caller


def _for_user(cx: Connection, call: Call, asked: TicketRequest, event: events.Event, now: Instant) -> ProgramTicket:
    options = call.directory.options
    caller = _caller(cx, options, asked, event, now)
    user = programs.lock_user(cx, options, asked.user_name)
    event.on = None if user is None else entries.shown_id(options.names, user)
    target_id = asked.target_resource_id or asked.resource_id or None
    identity = caller.user.uuid if caller.user else caller.resource.id if caller.resource else None
    actor = Actor(event.who or "", caller_address(call.request), identity)
    with acting(actor, call.directory.clock):
        return programs.for_user(cx, options, caller, user, target_id, now)


def _for_resource(
    cx: Connection, options: DirectoryOptions, asked: TicketRequest, event: events.Event, now: Instant
) -> ProgramTicket:
    source = None
    if asked.source_resource_id and asked.secure_secret:
        source = programs.resource_by_secret(cx, asked.source_resource_id, asked.secure_secret)
    event.client = None if source is None else resources.scope(options.names, source)
    given = programs.for_resource(cx, options, asked.ticket, source, asked.target_resource_id, now)
    event.who = entries.shown_id(options.names, given.user)
    return given


def _validate(cx: Connection, names: DirectoryNames, asked: TicketRequest, now: Instant) -> ProgramTicket:
    resource = programs.resource_by_secret(cx, asked.source_resource_id, asked.secure_secret)
    return programs.validate(cx, names, asked.ticket, resource, now)


def _ask(cx: Connection, _: object, question: Callable[..., T], *args: Any) -> T:
    return question(cx, *args)


def _event(call: Call, how: str) -> events.Event:
    assert call.event is not None  # noqa: S101 - the skeleton begins it for whatever tells of one
    call.event.how = how
    return call.event


def _answer(call: Call, given: ProgramTicket, event: events.Event | None) -> Response:
    resource = given.resource
    if event is not None and resource is not None:
        event.resource = resources.shown_name(call.names, resource)
    answer = TicketAnswer(
        user_id=entries.shown_id(call.names, given.user),
        ticket=given.text,
        resource_id=None if resource is None else resource.id,
    )
    if given.text is None:
        page = f"{call.request.scope.get('muniment.base', '')}/{call.names.prefix}/login"
        answer = msgspec.structs.replace(
            answer, continuation=True, continuation_context=_NEW_PASSWORD, continuation_data=page
        )
    return call.answer(answer)


_TICKETS: Table = {
    NotSignedIn: ErrorCode(401, "not_signed_in"),
    ExpiredTicket: ErrorCode(400, "expired_ticket"),
    UnknownResource: ErrorCode(400, "invalid_resource_id"),
}
_FOR_USER: Table = {**_TICKETS, CannotImpersonate: ErrorCode(403, "cannot_impersonate")}
_FOR_RESOURCE: Table = {**_TICKETS, AccessEnded: ErrorCode(403, "no_access")}
_SIGN_IN: Table = {SignInRefused: ErrorCode(401, "sign_in_refused"), UnknownResource: _TICKETS[UnknownResource]}


def _row(path: str, function: Answers, body: type[msgspec.Struct], refusals: Table) -> Row:
    method = Method(function, TicketAnswer, right=RequiredRight.OPEN, body=body)
    return Row(f"/authentication/{path}", {"POST": method}, refusals)


ROWS = (
    _row("credentials", sign_in, SignInRequest, _SIGN_IN),
    _row("ticketforuser", for_user, TicketRequest, _FOR_USER),
    _row("resource/ticketforuser", for_user, TicketRequest, _FOR_USER),
    _row("ticketforresource", for_resource, TicketRequest, _FOR_RESOURCE),
    _row("resource/ticketforresource", for_resource, TicketRequest, _FOR_RESOURCE),
    _row("resource/validation", validate, TicketRequest, _TICKETS),
)
