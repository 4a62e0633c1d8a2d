"""How does a user sign in with a browser? To which resource, with which ticket in the end (given 5.2)?"""

from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.directory import resources
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import AccessEnded, NotSignedIn, UnknownResource
from muniment.directory.resources import Resource
from muniment.directory.sign_in import attempts, tickets
from muniment.directory.sign_in.attempts import SignInAttempt
from muniment.directory.sign_in.pauses import Origin


def resource_of(cx: Connection, resource_id: str | None) -> Resource:
    """Return the resource that a browser signs in to (None: the administration), activated as given 2.2 requires.

    Raises UnknownResource.
    """
    resource = resources.administration(cx) if resource_id is None else resources.by_id(cx, resource_id)
    if resource.activated is None:
        raise UnknownResource("This resource has not been activated yet: its administrator does that once.")
    return resource


def begin(
    cx: Connection, options: DirectoryOptions, resource_id: str | None, username: str, origin: Origin, now: Instant
) -> SignInAttempt:
    """Look up who signs in with a browser, for which resource (None: the administration). It writes nothing.

    Raises UnknownResource.
    """
    return attempts.begin(cx, options, resource_of(cx, resource_id), username, origin, now)


def finish(
    cx: Connection,
    options: DirectoryOptions,
    attempt: SignInAttempt,
    password_ok: bool,
    old_ticket: str,
    now: Instant,
) -> str:
    """Decide a sign-in with a browser, and give the ticket that takes the old one's place. Raises SignInRefused."""
    user = attempts.finish(cx, options, attempt, password_ok, now)
    tickets.end(cx, old_ticket)
    return tickets.issue(cx, user.id, attempt.resource_id, options.ticket_seconds, now)


def user_of(cx: Connection, ticket: str, now: Instant) -> tuple[Entry, str]:
    """Return who is signed in by this ticket, and to which resource; asks the database each time.

    Raises NotSignedIn when the ticket is over, or the user may not sign in to that resource any more.
    """
    held = tickets.read(cx, ticket, now)
    try:
        return resources.require_access(cx, held.user_id, held.resource_id), held.resource_id
    except AccessEnded as ended:
        raise NotSignedIn(ended.sentence) from ended


def administrator_of(cx: Connection, ticket: str, now: Instant) -> Entry:
    """Return the administrator who is signed in by this ticket. Raises NotSignedIn for anybody else."""
    user, resource_id = user_of(cx, ticket, now)
    if resource_id != resources.administration(cx).id:
        raise NotSignedIn("Sign in to the administration first.")
    return user
