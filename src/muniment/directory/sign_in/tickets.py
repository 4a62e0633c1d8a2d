"""Who is signed in with this browser? Its cookie holds a ticket, a random value of which only the digest is stored.

It is valid until it is ended or expires. Whoever reads it checks each time whether the user may still act.
"""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import directory_tables, required
from muniment.directory.refusals import NotSignedIn
from muniment.ground.clock import SECOND, Instant

tickets = sa.Table(
    "tickets",
    directory_tables,
    sa.Column("digest", sa.LargeBinary, primary_key=True),
    required("user_id", sa.ForeignKey("entries.id", ondelete="CASCADE"), index=True),
    required("resource_id", sa.String(36)),
    required("created", sa.BigInteger),
    required("expires", sa.BigInteger, index=True),
)


class Ticket(msgspec.Struct, frozen=True):
    """A ticket that has not expired."""

    user_id: int
    resource_id: str


def issue(cx: Connection, user_id: int, resource_id: str, seconds: int, now: Instant) -> str:
    """Return a new ticket's value, which is not stored."""
    value = secrets.token_urlsafe(32)
    cx.execute(
        tickets.insert().values(
            digest=_digest(value),
            user_id=user_id,
            resource_id=resource_id,
            created=now,
            expires=now + seconds * SECOND,
        )
    )
    return value


def read(cx: Connection, value: str, now: Instant) -> Ticket:
    """Raises NotSignedIn when there is none, or it has expired."""
    row = cx.execute(
        sa.select(*tickets.c["user_id", "resource_id"]).where(
            tickets.c.digest == _digest(value), tickets.c.expires > now
        )
    ).one_or_none()
    if row is None:
        raise NotSignedIn("Nobody is signed in with this browser.")
    return Ticket(*row)


def end(cx: Connection, value: str) -> None:
    cx.execute(tickets.delete().where(tickets.c.digest == _digest(value)))


def end_of(cx: Connection, user_id: int, now: Instant) -> int:
    return _end(cx, tickets.c.user_id == user_id, now)


def end_at(cx: Connection, resource_id: str, now: Instant) -> int:
    return _end(cx, tickets.c.resource_id == resource_id, now)


def end_every(cx: Connection, now: Instant) -> int:
    return _end(cx, sa.true(), now)


def end_one(cx: Connection, digests: tuple[bytes, bytes], now: Instant) -> int:
    """``digests`` are the range of the digest, both ends included."""
    return _end(cx, tickets.c.digest.between(*digests), now)


def live_tickets(cx: Connection, user_id: int, now: Instant, limit: int) -> Sequence[Sequence[Any]]:
    """At most ``limit``, the newest first.

    A row: the digest, the id of the resource, when it was made and expires.
    """
    columns = tickets.c["digest", "resource_id", "created", "expires"]
    query = sa.select(*columns).where(tickets.c.user_id == user_id, tickets.c.expires > now)
    return cx.execute(query.order_by(tickets.c.created.desc(), tickets.c.digest).limit(limit)).all()


def purge(cx: Connection, before: Instant, limit: int) -> int:
    expired_digests = sa.select(tickets.c.digest).where(tickets.c.expires < before).limit(limit)
    return cx.execute(tickets.delete().where(tickets.c.digest.in_(expired_digests))).rowcount


def _end(cx: Connection, which: sa.ColumnElement[bool], now: Instant) -> int:
    return cx.execute(tickets.delete().where(which, tickets.c.expires > now)).rowcount


def _digest(value: str) -> bytes:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).digest()
