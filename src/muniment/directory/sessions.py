"""Who is signed in where, by grants and by tickets, and the end of that.

A session is a grant (a client's tokens for a user and a resource) or a ticket (a user's sign-in with a browser). Its
id is the beginning of a digest: it finds the session, it is no token, and nothing can be made of it.
"""

import re
from typing import Literal

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import SECOND, Instant
from muniment.directory.entries import credentials
from muniment.directory.entries.table import CLIENTS, Entry
from muniment.directory.oauth import tokens
from muniment.directory.oauth.tokens import SweepPlace
from muniment.directory.refusals import UnknownSession
from muniment.directory.sign_in import tickets

_ID_BYTES = 8
_REMEMBERED = 3600 * SECOND
_DIGEST_BYTES = 32
_SPELLED = re.compile(f"[0-9a-f]{{{2 * _ID_BYTES}}}")


class Session(msgspec.Struct, frozen=True):
    """One living session. ``client_id`` is None for a ticket."""

    id: str
    kind: Literal["grant", "ticket"]
    user_id: int
    client_id: int | None
    resource_id: str
    since: Instant
    expires: Instant


class SessionCount(msgspec.Struct, frozen=True):
    """How many grants and tickets have been ended."""

    grants: int = 0
    tickets: int = 0

    def __add__(self, other: "SessionCount") -> "SessionCount":
        return SessionCount(self.grants + other.grants, self.tickets + other.tickets)


def of_user(cx: Connection, user: Entry, now: Instant, limit: int = 1000) -> list[Session]:
    """List a user's sessions, at most ``limit`` grants and as many tickets, the newest first."""
    by_ticket = [
        Session(_id(one.digest), "ticket", user.id, None, one.resource_id, one.created, one.expires)
        for one in tickets.live_tickets(cx, user.id, now, limit)
    ]
    return sorted(_grants(cx, "user", user, now, limit) + by_ticket, key=lambda one: one.since, reverse=True)


def of_client(cx: Connection, client: Entry, now: Instant, limit: int = 1000) -> list[Session]:
    """List the grants issued to a client, at most ``limit``, the newest first."""
    return _grants(cx, "client", client, now, limit)


def end_of(cx: Connection, person: Entry, now: Instant) -> SessionCount:
    """End every grant and every ticket of a user; of a client, also every grant issued to it."""
    # A sign-in under way holds this row: what it gives is there when this goes on, and ends as well.
    credentials.lock(cx, person.id)
    ended = SessionCount(tokens.end(cx, "user", person.id, now), tickets.end_of(cx, person.id))
    if person.partition_built_in == CLIENTS:
        ended += SessionCount(tokens.end(cx, "client", person.id, now))
    return ended


def end_one(cx: Connection, session_id: str, now: Instant) -> SessionCount:
    """End one session by its id. Raises UnknownSession."""
    if not _SPELLED.fullmatch(session_id):
        raise UnknownSession(f"A session's id has {2 * _ID_BYTES} characters, 0 to 9 and a to f.")
    beginning, rest = bytes.fromhex(session_id), _DIGEST_BYTES - _ID_BYTES
    digests = beginning + b"\x00" * rest, beginning + b"\xff" * rest
    ended = SessionCount(tokens.end_one(cx, digests, now), tickets.end_one(cx, digests))
    if ended == SessionCount():
        raise UnknownSession(f"There is no session {session_id!r}.")
    return ended


def end_every(cx: Connection, now: Instant) -> SessionCount:
    """End every grant and every ticket of everybody, as after a restore."""
    return SessionCount(tokens.end_every(cx, now), tickets.end_every(cx))


def purge(cx: Connection, place: SweepPlace, now: Instant, rows: int) -> tuple[int, SweepPlace]:
    """Forget tickets that are over, and what has been over for an hour: grants with their tokens, and expired tokens.

    Until then a dead token of another resource is still told from a dead one of this resource (given 7). No more than
    ``rows`` are removed or looked at of each kind; says how many of the largest one, and where the sweep goes on.
    """
    before = now - _REMEMBERED
    removed = tokens.purge(cx, before, rows)
    seen, place = tokens.sweep(cx, place, before, rows)
    return max(removed, seen, tickets.purge(cx, now, rows)), place


def _grants(cx: Connection, which: tokens.Which, person: Entry, now: Instant, limit: int) -> list[Session]:
    return [
        Session(_id(one.digest), "grant", one.user_id, one.client_id, one.resource_id, one.created, one.expires)
        for one in tokens.live_grants(cx, which, person.id, now, limit)
    ]


def _id(digest: bytes) -> str:
    return digest[:_ID_BYTES].hex()
