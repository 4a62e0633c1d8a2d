"""Sign a user in with a browser, and find the user of a ticket (given 5.2).

Every user may sign in to the administration (decision 0101), but an OAuth client must be in its access role; the
console checks the role at each use.
"""

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import entries, resources
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import NotSignedIn, UnknownResource
from muniment.directory.sign_in import attempts, tickets
from muniment.directory.sign_in.pauses import Origin
from muniment.ground.clock import Instant


class TicketHolder(msgspec.Struct, frozen=True):
    """``in_role`` is the access role of that resource."""

    user: Entry
    resource_id: str
    in_role: bool


def resource_of(cx: Connection, resource_id: str | None) -> resources.Resource:
    """``resource_id`` is None for the administration. Raises UnknownResource, also before activation (given 2.2)."""
    resource = resources.administration(cx) if resource_id is None else resources.by_id(cx, resource_id)
    if resource.activated is None:
        raise UnknownResource("This resource has not been activated yet: its administrator does that once.")
    return resource


def begin(
    cx: Connection, options: DirectoryOptions, resource_id: str | None, username: str, origin: Origin, now: Instant
) -> attempts.SignInAttempt:
    """``resource_id`` is None for the administration. Raises UnknownResource."""
    resource = resource_of(cx, resource_id)
    needs_role = resource.built_in != resources.ADMINISTRATION
    return attempts.begin(cx, options, resource, username, origin, now, needs_role=needs_role)


def finish(
    cx: Connection,
    options: DirectoryOptions,
    attempt: attempts.SignInAttempt,
    password_ok: bool,
    old_ticket: str,
    now: Instant,
) -> tuple[str, bool]:
    """A new ticket, and whether its user is in the access role. Raises SignInRefused; then the old ticket stays."""
    user = attempts.finish(cx, options, attempt, password_ok, now)
    tickets.end(cx, old_ticket)
    ticket = tickets.issue(cx, user.id, attempt.resource_id, options.ticket_seconds, now)
    return ticket, resources.admits(cx, attempt.resource_id, user.id)


def holder_of(cx: Connection, ticket: str, now: Instant) -> TicketHolder:
    """Raises NotSignedIn when the ticket has ended, the user may no longer act, or is not in the resource's access
    role, unless it is the administration's.
    """
    live_ticket = tickets.read(cx, ticket, now)
    user = entries.by_id(cx, live_ticket.user_id)
    in_role = resources.admits(cx, live_ticket.resource_id, live_ticket.user_id)
    if user is None or not user.live or not (in_role or live_ticket.resource_id == resources.administration(cx).id):
        raise NotSignedIn("The user has no access to the resource.")
    return TicketHolder(user, live_ticket.resource_id, in_role)


def administrator_of(cx: Connection, ticket: str, now: Instant) -> Entry:
    """Raises NotSignedIn if there is none."""
    holder = holder_of(cx, ticket, now)
    if not holder.in_role or holder.resource_id != resources.administration(cx).id:
        raise NotSignedIn("Sign in to the administration first.")
    return holder.user
