"""What lets a browser or a program go on after a sign-in, and what does its row say (decision 0111)?

A ticket is a prefix, a value of ``minting`` and a star; only its digest is stored. It is valid until it is ended or
expires, and if it came from another ticket, as long as that one lives. ``holders`` asks at each use whether its user
may still act.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement, directory_tables, required
from muniment.directory import minting
from muniment.directory.entries import system
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import ExpiredTicket, NotSignedIn
from muniment.ground.clock import Instant

Made = Literal["page", "credentials", "for_user", "for_resource"]
"""At the sign-in page; by a program, with a password; by a caller for a user; from another one, for a resource."""

tickets = sa.Table(
    "tickets",
    directory_tables,
    sa.Column("digest", sa.LargeBinary, primary_key=True),
    required("user_id", sa.ForeignKey("entries.id", ondelete="CASCADE")),
    required("resource_id", sa.String(36)),
    required("created", sa.BigInteger),
    required("expires", sa.BigInteger, index=True),
    required("made", sa.String(20)),
    sa.Column("target_id", sa.String(36)),
    sa.Column("by_user_id", sa.BigInteger),
    sa.Column("by_client_id", sa.BigInteger),
    sa.Column("by_resource_id", sa.String(36)),
    sa.Column("by_ticket", sa.LargeBinary),
    sa.Index("ix_tickets_of_user", "user_id", "made", "created"),
)


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """A ticket's row. ``issue`` sets ``created``.

    ``resource_id`` is the resource that the sign-in was for. With ``target_id`` it opens this resource alone. Its
    caller is ``by_user_id`` (an administrator), ``by_client_id`` or ``by_resource_id``; ``by_ticket`` is the digest of
    the ticket that it came from.
    """

    user_id: int
    resource_id: str
    expires: Instant
    made: Made = "page"
    target_id: str | None = None
    by_user_id: int | None = None
    by_client_id: int | None = None
    by_resource_id: str | None = None
    by_ticket: bytes | None = None
    created: Instant = 0


def issue(cx: Connection, names: DirectoryNames, ticket: Ticket, most: int, now: Instant) -> str:
    """Return its text, which is not stored. Of a user's ``most`` tickets made in the same way, the oldest ends."""
    key = {"user": ticket.user_id, "made": ticket.made, "kept": most - 1}
    cx.execute(_END_SURPLUS, key)
    value, digest = minting.mint(system.key(cx, "tokens"), "ticket")
    cx.execute(tickets.insert(), {"digest": digest, **msgspec.structs.asdict(ticket), "created": now})
    return f"{names.ticket_prefix}{value}*"


def parse(cx: Connection, names: DirectoryNames, text: str) -> bytes:
    """Return the digest. Raises NotSignedIn for a text that this directory did not issue."""
    value = text.removeprefix(names.ticket_prefix)
    if value != text and value.endswith("*"):
        for key in system.accepted_keys(cx, "tokens"):
            if (digest := minting.parse(key, "ticket", value[:-1])) is not None:
                return digest
    raise NotSignedIn("This is no ticket of this directory.")


def read(cx: Connection, names: DirectoryNames, text: str, now: Instant) -> Ticket:
    """Raises NotSignedIn if it is none, and ExpiredTicket if it has expired or was ended."""
    row = _LIVE_TICKET.first(cx, digest=parse(cx, names, text), now=now)
    if row is None:
        raise ExpiredTicket(names.expired_ticket)
    return Ticket(**dict(zip(Ticket.__struct_fields__, row, strict=True)))


def lives(cx: Connection, digest: bytes, now: Instant) -> bool:
    """Whether the ticket of this digest has neither ended nor expired."""
    return _LIVE_TICKET.first(cx, digest=digest, now=now) is not None


def end(cx: Connection, names: DirectoryNames, text: str) -> None:
    """Nothing happens to a text that is no ticket."""
    try:
        digest = parse(cx, names, text)
    except NotSignedIn:
        return
    cx.execute(tickets.delete().where(tickets.c.digest == digest))


def end_of(cx: Connection, user_id: int, now: Instant) -> int:
    """Tickets that the user had made for others end with the ticket that they came from."""
    return _end(cx, tickets.c.user_id == user_id, now)


def end_at(cx: Connection, resource_id: str, now: Instant) -> int:
    """Also those with which the resource acts for others."""
    return _end(cx, sa.or_(tickets.c.resource_id == resource_id, tickets.c.by_resource_id == resource_id), now)


def end_acting(cx: Connection, now: Instant, *, client_id: int | None = None, resource_id: str | None = None) -> int:
    """With which a client or a resource acts for others: what it allowed, it allows no more."""
    caller = tickets.c.by_client_id == client_id if resource_id is None else tickets.c.by_resource_id == resource_id
    return _end(cx, sa.and_(tickets.c.made == "for_user", caller), now)


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
    query = sa.select(*columns).where(tickets.c.user_id == user_id, *_LIVE)
    query = query.order_by(tickets.c.created.desc(), tickets.c.digest).limit(limit)
    return cx.execute(query, {"now": now}).all()


def purge(cx: Connection, before: Instant, limit: int) -> int:
    expired_digests = sa.select(tickets.c.digest).where(tickets.c.expires < before).limit(limit)
    return cx.execute(tickets.delete().where(tickets.c.digest.in_(expired_digests))).rowcount


def _end(cx: Connection, which: sa.ColumnElement[bool], now: Instant) -> int:
    return cx.execute(tickets.delete().where(which, tickets.c.expires > now)).rowcount


_NOW = sa.bindparam("now", type_=sa.BigInteger)
_source = tickets.alias("source")
_LIVE = (
    tickets.c.expires > _NOW,
    sa.or_(
        tickets.c.by_ticket.is_(None),
        sa.exists().where(_source.c.digest == tickets.c.by_ticket, _source.c.expires > _NOW),
    ),
)
_LIVE_TICKET = PreparedStatement(
    sa.select(*tickets.c[Ticket.__struct_fields__]).where(
        tickets.c.digest == sa.bindparam("digest", type_=sa.LargeBinary), *_LIVE
    )
)
_SURPLUS = (
    sa.select(tickets.c.digest)
    .where(
        tickets.c.user_id == sa.bindparam("user", type_=sa.BigInteger),
        tickets.c.made == sa.bindparam("made", type_=sa.String),
    )
    .order_by(tickets.c.created.desc(), tickets.c.digest)
    .offset(sa.bindparam("kept", type_=sa.Integer))
)
_END_SURPLUS = tickets.delete().where(tickets.c.digest.in_(_SURPLUS))
