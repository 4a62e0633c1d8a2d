"""List, end and purge sessions.

A session is a grant (a client's tokens for a user and a resource) or a ticket (a user's sign-in with a browser). Its id
is no token (decision 0021). What a user has allowed, and no client has fetched, is in no list, and ends with the user's
ticket, or with the sessions of its client or resource.
"""

import re
from typing import Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.directory import audit
from muniment.directory.entries import credentials, resources
from muniment.directory.entries.oauth_clients import ClientSettings
from muniment.directory.entries.resources import Resource
from muniment.directory.entries.table import CLIENTS, Entry
from muniment.directory.oauth import assertions, codes, device_codes, grant_purge, scopes, signing_keys, tokens
from muniment.directory.oauth.grant_purge import PurgeProgress
from muniment.directory.oauth.table import grant_table
from muniment.directory.refusals import UnknownSession
from muniment.directory.sign_in import tickets
from muniment.ground.clock import SECOND, Instant

_ID_BYTES = 8
_KEPT_FOR = 3600 * SECOND
_DIGEST_BYTES = 32
_ID_PATTERN = re.compile(f"[0-9a-f]{{{2 * _ID_BYTES}}}")


class Session(msgspec.Struct, frozen=True):
    """``client_id`` is None for a ticket."""

    id: str
    kind: Literal["grant", "ticket"]
    user_id: int
    client_id: int | None
    resource_id: str
    since: Instant
    expires: Instant


class SessionCount(msgspec.Struct, frozen=True):
    """How many were ended."""

    grants: int = 0
    tickets: int = 0

    def __add__(self, other: "SessionCount") -> "SessionCount":
        return SessionCount(self.grants + other.grants, self.tickets + other.tickets)


def of_user(cx: Connection, user: Entry, now: Instant, limit: int = 1000) -> list[Session]:
    """The newest first, at most ``limit`` grants and ``limit`` tickets."""
    user_tickets = [
        Session(_id(row[0]), "ticket", user.id, None, *row[1:]) for row in tickets.live_tickets(cx, user.id, now, limit)
    ]
    return sorted(_grants(cx, "user", user, now, limit) + user_tickets, key=lambda session: session.since, reverse=True)


def of_client(cx: Connection, client: Entry, now: Instant, limit: int = 1000) -> list[Session]:
    """At most ``limit`` living grants, the newest first."""
    return _grants(cx, "client", client, now, limit)


def end_of(cx: Connection, person: Entry, now: Instant) -> SessionCount:
    """For a client, also end every grant that was issued to it."""
    # A sign-in under way holds this lock until its session is committed. So the session is there now, and ends too.
    credentials.lock(cx, person.id)
    grant_count = tokens.end(cx, "user", person.id, now)
    if person.partition_built_in == CLIENTS:
        grant_count += tokens.end(cx, "client", person.id, now)
        codes.end_of(cx, person.id)
        device_codes.end_of(cx, person.id)
    return _record(cx, person.target, SessionCount(grant_count, tickets.end_of(cx, person.id, now)))


def end_unmarked(cx: Connection, client: Entry, settings: ClientSettings, now: Instant) -> SessionCount:
    """End what a client with these settings may have no more at the administration's resource (``may_administer``)."""
    resource = resources.administration(cx)
    query = sa.select(*grant_table.c["id", "made"]).where(
        grant_table.c.client_id == client.id,
        grant_table.c.resource_id == resource.id,
        grant_table.c.revoked.is_(None),
    )
    ids = [row[0] for row in cx.execute(query) if not scopes.may_administer(settings, row[1])]
    codes.end_of(cx, client.id, resource.id)
    device_codes.end_of(cx, client.id, resource.id)
    ended = SessionCount(sum(tokens.end_grant(cx, grant_id, now) for grant_id in ids))
    return _record(cx, client.target, ended)


def end_at(cx: Connection, resource: Resource, now: Instant) -> SessionCount:
    count = SessionCount(tokens.end(cx, "resource", resource.id, now), tickets.end_at(cx, resource.id, now))
    codes.end_at(cx, resource.id)
    device_codes.end_at(cx, resource.id)
    return _record(cx, resource.target, count)


def end_one(cx: Connection, session_id: str, now: Instant) -> SessionCount:
    """Raises UnknownSession."""
    if not _ID_PATTERN.fullmatch(session_id):
        raise UnknownSession(f"A session's id has {2 * _ID_BYTES} characters, 0 to 9 and a to f.")
    beginning, rest = bytes.fromhex(session_id), _DIGEST_BYTES - _ID_BYTES
    digests = beginning + b"\x00" * rest, beginning + b"\xff" * rest
    count = SessionCount(tokens.end_one(cx, digests, now), tickets.end_one(cx, digests, now))
    if count == SessionCount():
        raise UnknownSession(f"There is no session {session_id!r}.")
    return _record(cx, audit.Target("session", session_id), count)


def end_every(cx: Connection, now: Instant) -> SessionCount:
    device_codes.end_every(cx)
    count = SessionCount(tokens.end_every(cx, now), tickets.end_every(cx, now))
    return _record(cx, audit.Target("session", "every session"), count)


def purge(cx: Connection, progress: PurgeProgress, now: Instant, rows: int) -> tuple[int, PurgeProgress]:
    """Delete expired tickets, codes, devices and assertions, and the grants and access tokens that ended more than an
    hour ago.

    For that hour tokeninfo can still say whether a dead token belonged to another resource (given 7). A grant's last
    access token to expire stays as long as the grant. A call deletes at most ``rows`` of each of the first four, as
    many ended grants and tokens of these, and looks at as many expired access tokens. Returns the largest of these
    counts, and the progress.
    """
    before = now - _KEPT_FOR
    row_count = grant_purge.purge(cx, before, rows)
    signing_keys.purge(cx, now, grant_purge.oldest_expiry(cx))
    looked_at, progress = grant_purge.purge_expired(cx, progress, before, rows)
    # A token that stayed because it was its grant's last may have a successor by now: begin anew once an hour.
    if looked_at < rows and progress != grant_purge.PURGE_START and before - progress.start >= _KEPT_FOR:
        progress = grant_purge.PURGE_START
    tables = (tickets, codes, device_codes, assertions)
    counts = [table.purge(cx, now, rows) for table in tables]
    return max(row_count, looked_at, *counts), progress


def _record(cx: Connection, target: audit.Target, count: SessionCount) -> SessionCount:
    if count != SessionCount():
        audit.record(cx, "sessions ended", target, msgspec.structs.asdict(count))
    return count


def _grants(cx: Connection, party: tokens.Party, person: Entry, now: Instant, limit: int) -> list[Session]:
    grants = tokens.live_grants(cx, party, person.id, now, limit)
    return [Session(_id(row[0]), "grant", *row[1:]) for row in grants]


def _id(digest: bytes) -> str:
    return digest[:_ID_BYTES].hex()
