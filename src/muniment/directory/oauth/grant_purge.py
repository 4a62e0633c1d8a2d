"""Delete what ended long enough ago: grants and access tokens (decision 0021)."""

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.directory.oauth.table import grant_table, token_table
from muniment.ground.clock import Instant


class PurgeProgress(NamedTuple):
    """The last access token that a purge has looked at, in the order of expiry.

    ``start`` is what ``before`` was at the first one.
    """

    expires: Instant
    digest: bytes
    start: Instant = 0


PURGE_START = PurgeProgress(-1, b"")


def oldest_expiry(cx: Connection) -> Instant | None:
    """When the access token expires, or expired, that does first of all that are stored."""
    found: Instant | None = cx.scalar(sa.select(sa.func.min(token_table.c.expires)))
    return found


def purge(cx: Connection, before: Instant, rows: int) -> int:
    """At most ``rows`` rows: grants that ended before this instant, after their tokens.

    A grant's deletion would delete all of its tokens at once.
    """
    rows_left, empty_grant_ids = rows, list[int]()
    for grant_id in _ended_grants(cx, before, rows):
        rows_left -= cx.execute(_DELETE_TOKENS_OF, {"grant": grant_id, "rows": rows_left}).rowcount
        if rows_left:
            empty_grant_ids.append(grant_id)
            rows_left -= 1
        if not rows_left:
            break
    if empty_grant_ids:
        cx.execute(grant_table.delete().where(grant_table.c.id.in_(empty_grant_ids)))
    return rows - rows_left


def purge_expired(cx: Connection, after: PurgeProgress, before: Instant, rows: int) -> tuple[int, PurgeProgress]:
    """Delete access tokens that expired before this instant, except each grant's last, with which its holder can still
    end the grant.

    Looks at no more than ``rows`` expired tokens, from ``after`` on. Returns how many, and the progress.
    """
    expired_rows = cx.execute(
        _EXPIRED, {"after": after.expires, "digest": after.digest, "before": before, "rows": rows}
    ).all()
    if not expired_rows:
        return 0, after
    cx.execute(_DELETE_ALL_BUT_NEWEST, {"digests": [row.digest for row in expired_rows]})
    start = before if after == PURGE_START else after.start
    return len(expired_rows), PurgeProgress(expired_rows[-1].expires, bytes(expired_rows[-1].digest), start)


def _ended_grants(cx: Connection, before: Instant, limit: int) -> list[int]:
    """On PostgreSQL, grants that another decision has locked are skipped."""
    grant_ids: dict[int, None] = {}
    # One query for each index: a query with both conditions may make the database read every grant.
    for column in (grant_table.c.refresh_expires, grant_table.c.revoked):
        statement = sa.select(grant_table.c.id).where(column < before).order_by(column).limit(limit)
        grant_ids |= dict.fromkeys(cx.scalars(statement.with_for_update(skip_locked=True)))
    return list(grant_ids)[:limit]


_DELETE_TOKENS_OF = token_table.delete().where(
    token_table.c.digest.in_(
        sa.select(token_table.c.digest)
        .where(token_table.c.grant_id == sa.bindparam("grant"))
        .order_by(token_table.c.expires)
        .limit(sa.bindparam("rows"))
    )
)
_EXPIRED = (
    sa.select(*token_table.c["expires", "digest"])
    .where(
        sa.tuple_(token_table.c.expires, token_table.c.digest)
        > sa.tuple_(sa.bindparam("after", type_=sa.BigInteger), sa.bindparam("digest", type_=sa.LargeBinary)),
        token_table.c.expires < sa.bindparam("before", type_=sa.BigInteger),
    )
    .order_by(token_table.c.expires, token_table.c.digest)
    .limit(sa.bindparam("rows"))
    .with_for_update(skip_locked=True)
)
_newer = token_table.alias("newer")
_DELETE_ALL_BUT_NEWEST = token_table.delete().where(
    token_table.c.digest.in_(sa.bindparam("digests", expanding=True)),
    sa.exists().where(_newer.c.grant_id == token_table.c.grant_id, _newer.c.expires > token_table.c.expires),
)
