"""Searches that were sent as a document, kept for the caller who follows the feed's `next`.

The document is kept in our neutral spelling, so a link outlives a change of names. Source: issue 3, step 3: the `next`
of a POST feed is followed by a plain GET, only by the same caller, on any worker.
"""

import hashlib

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.db import SECOND, Instant, repository_tables
from muniment.repository.refusals import UnknownLink

links = sa.Table(
    "links",
    repository_tables,
    sa.Column("digest", sa.LargeBinary(16), primary_key=True),
    sa.Column("repository_id", sa.ForeignKey("repositories.id"), nullable=False),
    sa.Column("caller", sa.String(320), nullable=False),
    sa.Column("document", sa.LargeBinary, nullable=False),
    sa.Column("expires", sa.BigInteger, nullable=False, index=True),
)


_KEPT = sa.select(links.c.expires).where(links.c.digest == sa.bindparam("digest"))


def name(repository_id: int, caller: str, document: bytes) -> str:
    """Name the link this caller gets for this document: the same each time, and nobody else's (32 hex digits)."""
    return _digest(repository_id, caller, document)[:16].hex()


def kept_until(cx: Connection, link: str) -> Instant:
    """Say until when the link is kept, so that no write is needed; 0 when it is not."""
    return cx.execute(_KEPT, {"digest": bytes.fromhex(link)}).scalar() or 0


def keep(cx: Connection, repository_id: int, caller: str, document: bytes, seconds: int, now: Instant) -> str:
    """Keep the document for this caller for so many seconds from now, and name the link."""
    link = name(repository_id, caller, document)
    digest = bytes.fromhex(link)
    expires = now + seconds * SECOND
    moved = cx.execute(links.update().where(links.c.digest == digest).values(expires=expires))
    if not moved.rowcount:
        # Two workers may keep the same search at one time: the second finds the first's row.
        cx.execute(
            sa.text(
                "INSERT INTO links (digest, repository_id, caller, document, expires) "
                "VALUES (:digest, :repository_id, :caller, :document, :expires) ON CONFLICT DO NOTHING"
            ),
            {
                "digest": digest,
                "repository_id": repository_id,
                "caller": caller,
                "document": document,
                "expires": expires,
            },
        )
    return link


def follow(cx: Connection, repository_id: int, link: str, caller: str, now: Instant) -> bytes:
    """Read the document behind a link. Raises UnknownLink for another caller's, an expired or an unknown one."""
    try:
        digest = bytes.fromhex(link)
    except ValueError:
        digest = b""
    row = cx.execute(
        sa.select(links.c.document).where(
            links.c.digest == digest,
            links.c.repository_id == repository_id,
            links.c.caller == caller,
            links.c.expires > now,
        )
    ).first()
    if row is None:
        raise UnknownLink("The search behind this link is gone; send it again.")
    return bytes(row.document)


def purge(cx: Connection, now: Instant, limit: int = 1000) -> int:
    """Drop links that have expired, at most so many at a time; says how many."""
    old = sa.select(links.c.digest).where(links.c.expires <= now).limit(limit)
    return cx.execute(links.delete().where(links.c.digest.in_(old))).rowcount


def _digest(repository_id: int, caller: str, document: bytes) -> bytes:
    return hashlib.sha256(f"{repository_id}\n{caller}\n".encode() + document).digest()
