"""May this user sign in to this resource? Two decisions with one password check between them.

``begin`` looks up, the edge takes the password to the gate, and ``finish`` decides. Whatever is wrong with the user -
unknown, wrong password, disabled, locked, paused, not in the access role - takes the same statements and one check,
and gets the same sentence.
"""

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.directory import resources
from muniment.directory.entries import credentials
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import SignInRefused
from muniment.directory.resources import Resource
from muniment.directory.sign_in import pauses
from muniment.directory.sign_in.line import Asker
from muniment.directory.sign_in.pauses import Origin
from muniment.naming import fold_name

_NOBODY = -1
_REFUSED = "The user name or the password is wrong, or the user may not sign in to this resource."


class SignInAttempt(msgspec.Struct, frozen=True):
    """A sign-in under way, whose password is still to be checked.

    The edge checks it against ``stored`` (None: a dummy) at the gate, once, always. ``user_id`` is None for a user who
    does not exist. ``known`` says that the browser proved to have signed in as this user before.
    """

    resource_id: str
    user_id: int | None
    stored: str | None
    origin: Origin
    known: bool

    def asker(self, username: str) -> Asker:
        """Say who waits at the gate: by the name as it was typed, whether there is such a user or not."""
        return Asker(pauses.neighbourhood(self.origin.address), fold_name(username), self.known)


def begin(
    cx: Connection, options: DirectoryOptions, resource: Resource, username: str, origin: Origin, now: Instant
) -> SignInAttempt:
    """Look up who signs in, from where. It writes nothing."""
    found = credentials.find(cx, options.names, username)
    standing = pauses.state_of(cx, found, origin, now)
    if found is None:
        return SignInAttempt(resource.id, None, None, origin, False)
    stored = None if standing.paused(options, now) else found.password_hash
    return SignInAttempt(resource.id, found.user.id, stored, origin, standing.by_cookie)


def finish(cx: Connection, options: DirectoryOptions, attempt: SignInAttempt, password_ok: bool, now: Instant) -> Entry:
    """Decide a sign-in (given 5.1, 5.2), count it, and give the user.

    Raises SignInRefused, which keeps the count.
    """
    found = credentials.lock(cx, attempt.user_id)
    standing = pauses.state_of(cx, found, attempt.origin, now)
    in_role = resources.admits(cx, attempt.resource_id, _NOBODY if attempt.user_id is None else attempt.user_id)
    # The hash is compared again: the password may have been changed while the check waited.
    right = (
        password_ok and found is not None and found.password_hash is not None and found.password_hash == attempt.stored
    )
    admitted = found is not None and right and in_role and found.user.live and not standing.paused(options, now)
    tries, begins = pauses.count(options, standing, right or found is None, now)
    places = pauses.remember(standing, now) if admitted else pauses.keep_places(standing)
    credentials.note_sign_in(cx, None if found is None else found.user.id, tries, places, now)
    if found is None or not admitted:
        raise SignInRefused(_REFUSED, pauses=begins)
    return found.user
