"""Searches that callers posted as a document, kept for the caller who follows the feed's ``next``.

Queries have neutral names, so a link outlives changed names on the wire. Beyond the quota, the caller's oldest searches
and walks are dropped.

A query of another format, or with damaged bytes, counts as expired: its caller must send the search again.
"""

import hashlib

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import (
    PreparedStatement,
    repository_column,
    repository_tables,
    required,
    required_columns,
)
from muniment.ground.clock import SECOND, Instant
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import UnknownLink
from muniment.repository.search.answering.ordering import scrolls
from muniment.repository.search.aql.tree import Query
from muniment.repository.store import named_locks

FORMAT = 3
"""Raise it with every change of ``aql.tree``."""

links = sa.Table(
    "links",
    repository_tables,
    sa.Column("digest", sa.LargeBinary(16), primary_key=True),
    repository_column(),
    required("caller", sa.String(320)),
    required("document", sa.LargeBinary),
    *required_columns(sa.Integer, "format", "size"),
    required("kept", sa.BigInteger),
    required("expires", sa.BigInteger, index=True),
    sa.Index("ix_links_caller", "caller", "kept"),
)


_EXPIRY = PreparedStatement(
    sa.select(links.c.expires).where(
        links.c.digest == sa.bindparam("digest"),
        links.c.format == FORMAT,
        links.c.document == sa.bindparam("document", type_=sa.LargeBinary),
    )
)
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Query)


def encode(query: Query) -> bytes:
    return _encoder.encode(query)


def decode(document: bytes) -> Query:
    """Raises UnknownLink when its bytes are not a query of this format."""
    try:
        return _decoder.decode(document)
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        raise _unknown_link() from error


def name(holder: scrolls.Holder, document: bytes) -> str:
    """Return this caller's link to the document: 32 hex digits, the same each time."""
    # The digest covers the format, so that two releases that run side by side never write to the same row.
    whose = f"{FORMAT}\n{holder.repository_id}\n{holder.caller}\n".encode()
    return hashlib.sha256(whose + document).digest()[:16].hex()


def kept_until(cx: Connection, link: str, document: bytes) -> Instant:
    """Return 0 if the document is not kept."""
    row = _EXPIRY.first(cx, digest=bytes.fromhex(link), document=document)
    return 0 if row is None else int(row[0])


def is_lasting(cx: Connection, link: str, document: bytes, options: RepositoryOptions, now: Instant) -> bool:
    return kept_until(cx, link, document) >= now + options.link_seconds * SECOND // 2


def keep_search(
    cx: Connection, holder: scrolls.Holder, document: bytes, options: RepositoryOptions, now: Instant
) -> str:
    """If the caller exceeds the quota, their oldest searches and walks are dropped."""
    link = name(holder, document)
    digest = bytes.fromhex(link)
    expires = now + options.link_seconds * SECOND
    columns = {"document": document, "format": FORMAT, "size": len(document), "kept": now, "expires": expires}
    update = links.update().where(links.c.digest == digest).values(columns)
    if not cx.execute(update).rowcount:
        _wait_for_others(cx, holder.caller)
        # Two workers may keep the same search at one time: then the second insert does nothing.
        cx.execute(_KEEP, {"digest": digest, **holder._asdict(), **columns})
        _drop_oldest(cx, holder.caller, digest, options)
    return link


def keep_walk(
    cx: Connection, holder: scrolls.Holder, walk: scrolls.Scroll, options: RepositoryOptions, now: Instant
) -> bool:
    """Return False if a walk of its name is kept already."""
    _wait_for_others(cx, holder.caller)
    if not scrolls.keep_scroll(cx, holder, walk, options.walk_seconds, now):
        return False
    _drop_oldest(cx, holder.caller, walk.name, options)
    return True


def follow(cx: Connection, holder: scrolls.Holder, link: str, now: Instant) -> bytes:
    """Raises UnknownLink if the link is unknown, has expired, or is another caller's or repository's, or if the query
    has another format.
    """
    try:
        digest = bytes.fromhex(link)
    except ValueError:
        digest = b""
    row = cx.execute(
        sa.select(links.c.document).where(
            links.c.digest == digest,
            links.c.repository_id == holder.repository_id,
            links.c.caller == holder.caller,
            links.c.format == FORMAT,
            links.c.expires > now,
        )
    ).first()
    if row is None:
        raise _unknown_link()
    return bytes(row.document)


def purge(cx: Connection, now: Instant, limit: int = 200) -> int:
    expired_digests = sa.select(links.c.digest).where(links.c.expires <= now).limit(limit)
    return cx.execute(links.delete().where(links.c.digest.in_(expired_digests))).rowcount + scrolls.purge(
        cx, now, limit
    )


def _wait_for_others(cx: Connection, caller: str) -> None:
    """Take turns with the caller's other transactions, or they could exceed the quota."""
    named_locks.take(cx, f"links {caller}")


def _drop_oldest(cx: Connection, caller: str, newest: bytes, options: RepositoryOptions) -> None:
    searches = cx.execute(sa.select(links.c.kept, links.c.size, links.c.digest).where(links.c.caller == caller))
    shares = [scrolls.QuotaShare(*row) for row in searches]
    shares += scrolls.shares(cx, caller)
    # The newest comes first, even if the clock was set back.
    shares.sort(key=lambda each: (each.name == newest, each.kept, each.name), reverse=True)
    count, size, surplus = 0, 0, []
    for each in shares:
        count, size = count + 1, size + each.size
        if each.name != newest and (count > options.kept_queries or size > options.kept_query_bytes):
            surplus.append(each.name)
    if surplus:
        cx.execute(links.delete().where(links.c.digest.in_(surplus)))
        scrolls.drop(cx, surplus)


_KEEP = sa.text(
    "INSERT INTO links (digest, repository_id, caller, document, format, size, kept, expires) "
    "VALUES (:digest, :repository_id, :caller, :document, :format, :size, :kept, :expires) ON CONFLICT DO NOTHING"
)


def _unknown_link() -> UnknownLink:
    return UnknownLink("The search behind this link is gone; send it again.")
