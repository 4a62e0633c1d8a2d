"""What do programs ask for, as old clients of directories do (decision 0111)? A ticket: for a name and a password, for
another user, or for one resource; and whether a ticket is good.

Nothing here concerns a browser, and no cookie is set.
"""

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory import audit
from muniment.directory.entries import credentials, resources
from muniment.directory.entries.resources import Resource
from muniment.directory.entries.table import CLIENTS, Entry
from muniment.directory.options import DirectoryNames, DirectoryOptions
from muniment.directory.refusals import AccessEnded, CannotImpersonate, NotSignedIn, UnknownResource, WrongSecret
from muniment.directory.sign_in import attempts, holders, impersonation, tickets
from muniment.directory.sign_in.pauses import Origin
from muniment.directory.sign_in.tickets import Ticket
from muniment.ground.clock import SECOND, Instant


class ProgramTicket(msgspec.Struct, frozen=True):
    """``text`` is None while the user has a further step to take, at the sign-in page. ``resource`` is its target."""

    text: str | None
    user: Entry
    resource: Resource | None = None


class Impersonator(msgspec.Struct, frozen=True):
    """Who asks to act for another: the holder of a ticket, or a resource that has shown its secret."""

    ticket: bytes | None = None
    user: Entry | None = None
    resource: Resource | None = None
    expires: Instant | None = None


def begin(
    cx: Connection, options: DirectoryOptions, target_id: str | None, username: str, origin: Origin, now: Instant
) -> attempts.SignInAttempt:
    """Begin a sign-in with a name, which may be bare, and a password or a client's secret. Raises UnknownResource."""
    resource = resources.administration(cx) if target_id is None else resources.letting_in(cx, target_id)
    opens: attempts.Opens = "everybody" if target_id is None else "role"
    return attempts.begin(cx, options, resource, username, origin, now, opens=opens, bare=True)


def finish(
    cx: Connection,
    options: DirectoryOptions,
    attempt: attempts.SignInAttempt,
    target_id: str | None,
    password_ok: bool,
    now: Instant,
) -> ProgramTicket:
    """Raises SignInRefused, and UnknownResource for a target that was removed meanwhile."""
    target = None if target_id is None else resources.by_id(cx, target_id)
    user = attempts.finish(cx, options, attempt, password_ok, now)
    if attempts.needs_new_password(user):
        return ProgramTicket(None, user, target)
    ticket = Ticket(
        user_id=user.id,
        resource_id=attempt.resource_id,
        expires=now + options.ticket_seconds * SECOND,
        made="credentials",
        target_id=None if target is None else target.id,
    )
    return ProgramTicket(_issue(cx, options, ticket, now), user, target)


def caller_by_ticket(cx: Connection, names: DirectoryNames, text: str, now: Instant) -> Impersonator:
    """Raises NotSignedIn, also if the ticket is not the directory's, and ExpiredTicket."""
    holder = holders.of_directory(cx, names, text, now)
    return Impersonator(tickets.parse(cx, names, text), holder.user, expires=holder.ticket.expires)


def resource_by_secret(cx: Connection, resource_id: str, secret: str) -> Resource:
    """Raises NotSignedIn."""
    try:
        return resources.with_secret(cx, resource_id, secret)
    except (UnknownResource, WrongSecret) as refusal:
        raise NotSignedIn("There is no activated resource with this identifier and secret.") from refusal


def lock_user(cx: Connection, options: DirectoryOptions, username: str) -> Entry | None:
    """Until the commit, nobody disables or locks the user: what does so then also ends the new ticket."""
    found = credentials.find(cx, options, username, bare=True)
    locked = credentials.lock(cx, None if found is None else found.user.id, shared=True)
    return None if locked is None else locked.user


def for_user(
    cx: Connection,
    options: DirectoryOptions,
    caller: Impersonator,
    user: Entry | None,
    target_id: str | None,
    now: Instant,
) -> ProgramTicket:
    """A ticket with which the caller acts as a user, whom ``lock_user`` found. Raises CannotImpersonate,
    UnknownResource.
    """
    target = None if target_id is None else resources.letting_in(cx, target_id)
    latest = now + min(options.ticket_seconds * SECOND, impersonation.LONGEST)
    is_client = caller.user is not None and caller.user.partition_built_in == CLIENTS
    caller_id = None if caller.user is None else caller.user.id
    ticket = Ticket(
        user_id=impersonation.NOBODY if user is None else user.id,
        resource_id=resources.administration(cx).id if target is None else target.id,
        expires=latest if caller.expires is None else min(latest, caller.expires),
        made="for_user",
        target_id=None if target is None else target.id,
        by_user_id=None if is_client else caller_id,
        by_client_id=caller_id if is_client else None,
        by_resource_id=None if caller.resource is None else caller.resource.id,
        by_ticket=caller.ticket,
    )
    impersonation.require(cx, options.names, ticket, target)
    if user is None or (target is not None and not resources.admits(cx, target.id, user.id)):
        raise CannotImpersonate(impersonation.NOT_THIS_USER)
    where = "" if target is None else resources.shown_name(options.names, target)
    audit.record(cx, "ticket made", user.target, None, {"resource": where})
    return ProgramTicket(_issue(cx, options, ticket, now), user, target)


def for_resource(
    cx: Connection, options: DirectoryOptions, text: str, source: Resource | None, target_id: str, now: Instant
) -> ProgramTicket:
    """From a ticket of the directory, one for the target alone, which ends with it; ``source`` asks for it, if a
    resource does. Raises NotSignedIn, ExpiredTicket, UnknownResource, AccessEnded.
    """
    target = resources.letting_in(cx, target_id)
    credentials.lock(cx, tickets.read(cx, options.names, text, now).user_id, shared=True)
    holder = holders.of_directory(cx, options.names, text, now)
    user = resources.require_access(cx, holder.user.id, target.id)
    ticket = Ticket(
        user_id=user.id,
        resource_id=target.id,
        expires=min(holder.ticket.expires, now + options.ticket_seconds * SECOND),
        made="for_resource",
        target_id=target.id,
        by_resource_id=None if source is None else source.id,
        by_ticket=tickets.parse(cx, options.names, text),
    )
    return ProgramTicket(_issue(cx, options, ticket, now), user, target)


def validate(cx: Connection, names: DirectoryNames, text: str, resource: Resource, now: Instant) -> ProgramTicket:
    """Whether a ticket opens a resource, for itself to know. Raises NotSignedIn, ExpiredTicket."""
    ticket = holders.at_resource(cx, names, text, resource, now)
    try:
        return ProgramTicket(text, resources.require_access(cx, ticket.user_id, resource.id), resource)
    except AccessEnded as ended:
        raise NotSignedIn(ended.sentence) from ended


def _issue(cx: Connection, options: DirectoryOptions, ticket: Ticket, now: Instant) -> str:
    return tickets.issue(cx, options.names, ticket, options.live_tickets, now)
