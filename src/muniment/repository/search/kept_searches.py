"""Searches that were sent as a document, kept for the caller who follows the feed's `next`.

The document is kept in our neutral spelling, so a link outlives a change of names. What one caller may keep is bounded,
in number and in bytes: beyond that their oldest search goes, so that a search is always answered. The `next` of a POST
feed is followed by a plain GET, only by the same caller, on any worker.

Each row says in which format its query is written. A query of another format, or one whose bytes are damaged, is gone
like one that has expired: its caller sends the search again.
"""

import hashlib

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.clock import SECOND, Instant
from muniment.db import repository_tables
from muniment.repository.aql.tree import Query
from muniment.repository.refusals import UnknownLink

FORMAT = 1
"""The format in which this release writes and reads queries: raise it with every change of ``aql.tree``."""

links = sa.Table(
    "links",
    repository_tables,
    sa.Column("digest", sa.LargeBinary(16), primary_key=True),
    sa.Column("repository_id", sa.ForeignKey("repositories.id"), nullable=False),
    sa.Column("caller", sa.String(320), nullable=False),
    sa.Column("document", sa.LargeBinary, nullable=False),
    sa.Column("format", sa.Integer, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("expires", sa.BigInteger, nullable=False, index=True),
    sa.Index("ix_links_caller", "caller", "expires"),
)


class SearchQuota(msgspec.Struct, frozen=True):
    """How many searches are kept for one caller, over all repositories, and how many bytes their documents have."""

    queries: int
    bytes: int


_KEPT = sa.select(links.c.expires).where(
    links.c.digest == sa.bindparam("digest"),
    links.c.format == FORMAT,
    links.c.document == sa.bindparam("document", type_=sa.LargeBinary),
)
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Query)


def encode(query: Query) -> bytes:
    """Write a query as the document that is kept of it."""
    return _encoder.encode(query)


def decode(document: bytes) -> Query:
    """Read a kept document. Raises UnknownLink when its bytes are no query of this format."""
    try:
        return _decoder.decode(document)
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        raise _gone() from error


def name(repository_id: int, caller: str, document: bytes) -> str:
    """Name the link this caller gets for this document: the same each time, and nobody else's (32 hex digits)."""
    return _digest(repository_id, caller, document)[:16].hex()


def kept_until(cx: Connection, link: str, document: bytes) -> Instant:
    """Say until when the link leads to this document, so that no write is needed; 0 when it does not."""
    return cx.execute(_KEPT, {"digest": bytes.fromhex(link), "document": document}).scalar() or 0


def keep(
    cx: Connection, repository_id: int, caller: str, document: bytes, seconds: int, quota: SearchQuota, now: Instant
) -> str:
    """Keep the document for this caller for so many seconds from now, and name the link.

    Where that is more than the caller's quota, their oldest searches go.
    """
    link = name(repository_id, caller, document)
    digest = bytes.fromhex(link)
    expires = now + seconds * SECOND
    kept = {"document": document, "format": FORMAT, "size": len(document), "expires": expires}
    moved = cx.execute(links.update().where(links.c.digest == digest).values(kept))
    if not moved.rowcount:
        _wait_for_others(cx, caller)
        # Two workers may keep the same search at one time: the second finds the first's row.
        cx.execute(_KEEP, {"digest": digest, "repository_id": repository_id, "caller": caller, **kept})
        _drop_oldest(cx, caller, digest, quota)
    return link


def follow(cx: Connection, repository_id: int, link: str, caller: str, now: Instant) -> bytes:
    """Read the document behind a link.

    Raises UnknownLink for another caller's link, one of another format, an expired or an unknown one.
    """
    try:
        digest = bytes.fromhex(link)
    except ValueError:
        digest = b""
    row = cx.execute(
        sa.select(links.c.document).where(
            links.c.digest == digest,
            links.c.repository_id == repository_id,
            links.c.caller == caller,
            links.c.format == FORMAT,
            links.c.expires > now,
        )
    ).first()
    if row is None:
        raise _gone()
    return bytes(row.document)


def purge(cx: Connection, now: Instant, limit: int = 200) -> int:
    """Drop links that have expired, at most so many at a time; says how many."""
    old = sa.select(links.c.digest).where(links.c.expires <= now).limit(limit)
    return cx.execute(links.delete().where(links.c.digest.in_(old))).rowcount


def _wait_for_others(cx: Connection, caller: str) -> None:
    """Let nobody else keep a search for this caller before the commit: the two would not count each other's."""
    if cx.dialect.name == "postgresql":
        key = int.from_bytes(hashlib.sha256(f"links {caller}".encode()).digest()[:8], "big", signed=True)
        cx.execute(sa.select(sa.func.pg_advisory_xact_lock(key)))


def _drop_oldest(cx: Connection, caller: str, newest: bytes, quota: SearchQuota) -> None:
    wanted = sa.select(links.c.digest, links.c.size).where(links.c.caller == caller)
    kept, size, dropped = 0, 0, []
    # The newest first, whatever the clock says of it.
    for row in cx.execute(wanted.order_by(links.c.digest != newest, links.c.expires.desc(), links.c.digest)):
        kept, size = kept + 1, size + row.size
        if row.digest != newest and (kept > quota.queries or size > quota.bytes):
            dropped.append(row.digest)
    if dropped:
        cx.execute(links.delete().where(links.c.digest.in_(dropped)))


_KEEP = sa.text(
    "INSERT INTO links (digest, repository_id, caller, document, format, size, expires) "
    "VALUES (:digest, :repository_id, :caller, :document, :format, :size, :expires) ON CONFLICT DO NOTHING"
)


def _digest(repository_id: int, caller: str, document: bytes) -> bytes:
    # With its format, so that two releases beside each other never write to one row.
    return hashlib.sha256(f"{FORMAT}\n{repository_id}\n{caller}\n".encode() + document).digest()


def _gone() -> UnknownLink:
    return UnknownLink("The search behind this link is gone; send it again.")
