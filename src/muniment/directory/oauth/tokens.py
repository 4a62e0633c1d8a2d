"""Is this string a token of ours, and to which grant does it belong (decision 0021)?

A token is a value of ``minting``; a string that is none "cannot be parsed" (given 7). Only its digest is stored.
"""

import uuid
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import BigId, PreparedStatement, directory_tables, required, required_columns
from muniment.directory import minting, version_stamps
from muniment.directory.entries import system
from muniment.directory.oauth.access import Question
from muniment.directory.refusals import DeadToken, UnparseableToken
from muniment.directory.version_stamps import VersionStamps
from muniment.ground.clock import Instant

Kind = Literal["access", "refresh"]
Party = Literal["user", "client", "resource"]
"""Each has a column for its id in the table of grants."""

_DEAD = "The token has expired or was revoked."
FEW = 64
"""With fewer live access tokens, each refresh counts them anew; else the grant's row may hold an upper bound
(``live_bound``).
"""

_grants = sa.Table(
    "grants",
    directory_tables,
    sa.Column("id", BigId, primary_key=True),
    # There are no foreign keys, so that tokens of a deleted user or client are still known: their access has ended.
    required("user_id", sa.BigInteger, index=True),
    required("client_id", sa.BigInteger, index=True),
    required("resource_id", sa.String(36)),
    required("refresh_digest", sa.LargeBinary, unique=True),
    required("refresh_expires", sa.BigInteger, index=True),
    required("created", sa.BigInteger),
    sa.Column("revoked", sa.BigInteger, index=True),
    # An upper bound of the number of live access tokens, while there are FEW or more. NULL: nobody has counted them.
    sa.Column("live_bound", sa.Integer),
    sqlite_autoincrement=True,
)

_access_tokens = sa.Table(
    "access_tokens",
    directory_tables,
    sa.Column("digest", sa.LargeBinary, primary_key=True),
    required("id", sa.String(36)),
    required("grant_id", sa.ForeignKey("grants.id", ondelete="CASCADE")),
    *required_columns(sa.BigInteger, "issued", "expires"),
    # The first index serves to count and remove the tokens of a grant, the second to remove expired tokens.
    sa.Index("ix_access_tokens_of_grant", "grant_id", "expires"),
    sa.Index("ix_access_tokens_expires", "expires", "digest"),
)


class ParsedToken(msgspec.Struct, frozen=True):
    """A token of ours: its kind and digest."""

    kind: Kind
    digest: bytes


class Grant(msgspec.Struct, frozen=True):
    """One sign-in of a user with a client at a resource. Tokens may be issued until ``expires``."""

    id: int
    user_id: int
    client_id: int
    resource_id: str
    expires: Instant
    revoked: Instant | None

    @property
    def question(self) -> Question:
        return Question(self.client_id, self.user_id, self.resource_id)

    def alive(self, now: Instant) -> bool:
        return self.revoked is None and now < self.expires


class LockedGrant(NamedTuple):
    """A locked grant, with the directory's generation, read in the same snapshot.

    Until ``full_until`` the grant has all the live access tokens that it may have, or more; 0 while it has fewer.
    ``live_bound`` is an upper bound of their number, or None where none is kept.
    """

    grant: Grant
    generation: str
    full_until: Instant
    live_bound: int | None


class PurgeProgress(NamedTuple):
    """The last access token that a purge has looked at, in the order of expiry.

    ``start`` is what ``before`` was at the first one.
    """

    expires: Instant
    digest: bytes
    start: Instant = 0


PURGE_START = PurgeProgress(-1, b"")


class TokenState(msgspec.Struct, frozen=True):
    """An access token's row, its grant, and the directory's marks, from one statement."""

    token_id: str
    expires: Instant
    grant: Grant
    marks: VersionStamps

    def require_alive(self, now: Instant) -> None:
        if now >= self.expires or not self.grant.alive(now):
            raise DeadToken(_DEAD)


def parse(cx: Connection, token: str) -> ParsedToken:
    """Raises UnparseableToken for a string that this directory did not issue (given 7)."""
    key = system.key(cx, "tokens")
    for kind in get_args(Kind):
        if (digest := minting.parse(key, kind, token)) is not None:
            return ParsedToken(kind, digest)
    raise UnparseableToken("The token cannot be parsed.")


def open_grant(
    cx: Connection, user_id: int, client_id: int, resource_id: str, now: Instant, expires: Instant
) -> tuple[Grant, str]:
    token, digest = minting.mint(system.key(cx, "tokens"), "refresh")
    grant_id = cx.execute(
        _grants.insert().returning(_grants.c.id),
        {
            "user_id": user_id,
            "client_id": client_id,
            "resource_id": resource_id,
            "refresh_digest": digest,
            "refresh_expires": expires,
            "created": now,
            "revoked": None,
        },
    ).scalar_one()
    return Grant(grant_id, user_id, client_id, resource_id, expires, None), token


def add_access_token(cx: Connection, grant: Grant, now: Instant, expires: Instant) -> str:
    return _add_access_tokens(cx, [(grant, expires)], now)[0]


def add_another(cx: Connection, expiries: Sequence[tuple[LockedGrant, Instant]], now: Instant) -> list[str]:
    """``expiries`` has for each grant the instant when its new token expires."""
    if not expiries:
        return []
    bounds = [
        {"grant": locked_grant.grant.id, "bound": locked_grant.live_bound + 1}
        for locked_grant, _ in expiries
        if locked_grant.live_bound is not None
    ]
    if bounds:
        _KEEP_BOUND.run_for_each(cx, bounds)
    return _add_access_tokens(cx, [(locked_grant.grant, expires) for locked_grant, expires in expiries], now)


def lock_grants(
    cx: Connection, refresh_digests: Sequence[bytes], limit: int, now: Instant, *, wait: bool
) -> dict[bytes, LockedGrant]:
    """Lock those that exist until the commit, by the digests of their refresh tokens.

    A grant with ``limit`` live access tokens is full. On PostgreSQL, without ``wait``, grants that another decision has
    locked are left out.
    """
    if not refresh_digests:
        return {}
    statement = _LOCK_GRANTS if wait else _LOCK_FREE_GRANTS
    rows = statement.all(cx, refresh=refresh_digests, now=now, others=min(limit, FEW) - 1)
    return {bytes(row[0]): _to_locked_grant(cx, row, limit, now) for row in rows}


def look_up(cx: Connection, digest: bytes) -> TokenState | None:
    """One statement finds the token with its grant, unless it was purged."""
    row = _TOKEN_STATE.first(cx, access=digest)
    return None if row is None else TokenState(row[0], row[1], Grant(*row[4:]), VersionStamps(row[2], row[3]))


def state_of(cx: Connection, token: str) -> TokenState:
    """The token may have expired. Raises UnparseableToken, also for a refresh token, and DeadToken if it was purged."""
    parsed = parse(cx, token)
    if parsed.kind != "access":
        raise UnparseableToken("The token is no access token.")
    state = look_up(cx, parsed.digest)
    if state is None:
        raise DeadToken(_DEAD)
    return state


def revoke(cx: Connection, token: ParsedToken, now: Instant) -> Grant | None:
    """None, and no change, if the grant had ended before or the token was purged."""
    row = cx.execute(_REVOKE[token.kind].returning(*_GRANT), {"token_digest": token.digest, "now": now}).first()
    return None if row is None else Grant(*row)


def end(cx: Connection, party: Party, party_id: int | str, now: Instant) -> int:
    """One statement marks the grants, so even a user with a million tokens is signed out at once. The purge deletes the
    rows.
    """
    return cx.execute(_END[party], {"party": party_id, "now": now}).rowcount


def end_every(cx: Connection, now: Instant) -> int:
    return cx.execute(_revoke(sa.true()), {"now": now}).rowcount


def end_one(cx: Connection, digests: tuple[bytes, bytes], now: Instant) -> int:
    """``digests`` are the range of the refresh token's digest, both ends included."""
    return cx.execute(_revoke(_grants.c.refresh_digest.between(*digests)), {"now": now}).rowcount


def live_grants(cx: Connection, party: Party, party_id: int | str, now: Instant, limit: int) -> Sequence[Sequence[Any]]:
    """At most ``limit``, the newest first.

    A row: the digest of the refresh token, the ids of user, client and resource, when it was made and expires.
    """
    query = (
        sa.select(*_grants.c["refresh_digest", "user_id", "client_id", "resource_id", "created", "refresh_expires"])
        .where(_grants.c[f"{party}_id"] == party_id, _grants.c.revoked.is_(None), _grants.c.refresh_expires > now)
        .order_by(_grants.c.id.desc())
        .limit(limit)
    )
    return cx.execute(query).all()


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
        cx.execute(_grants.delete().where(_grants.c.id.in_(empty_grant_ids)))
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
    for column in (_grants.c.refresh_expires, _grants.c.revoked):
        statement = sa.select(_grants.c.id).where(column < before).order_by(column).limit(limit)
        grant_ids |= dict.fromkeys(cx.scalars(statement.with_for_update(skip_locked=True)))
    return list(grant_ids)[:limit]


def _add_access_tokens(cx: Connection, expiries: Sequence[tuple[Grant, Instant]], now: Instant) -> list[str]:
    key, texts, rows = system.key(cx, "tokens"), list[str](), list[dict[str, Any]]()
    for grant, expires in expiries:
        token, digest = minting.mint(key, "access")
        texts.append(token)
        token_id = str(uuid.uuid4())
        rows.append({"digest": digest, "id": token_id, "grant_id": grant.id, "issued": now, "expires": expires})
    _ADD_ACCESS_TOKEN.run_for_each(cx, rows)
    return texts


def _to_locked_grant(cx: Connection, row: Sequence[Any], limit: int, now: Instant) -> LockedGrant:
    """Live tokens are counted only if the row does not show whether the grant is full."""
    full_until, live_bound, grant = row[2] or 0, row[3], Grant(*row[4:])
    if not full_until:
        live_bound = None
    elif limit > FEW:
        full_until = 0
        if live_bound is None or live_bound >= limit:
            count_row = _COUNT_LIVE.first(cx, grant=grant.id, now=now, others=limit - 1)
            assert count_row is not None  # noqa: S101 - a statement that counts has one row
            live_bound, full_until = count_row[0], count_row[1] or 0
    return LockedGrant(grant, row[1], full_until, live_bound)


_GRANT = _grants.c["id", "user_id", "client_id", "resource_id", "refresh_expires", "revoked"]
_ADD_ACCESS_TOKEN = PreparedStatement(_access_tokens.insert())
_LIVE_OF_GRANT = (
    sa.select(_access_tokens.c.expires)
    .where(_access_tokens.c.grant_id == _grants.c.id, _access_tokens.c.expires > sa.bindparam("now"))
    .order_by(_access_tokens.c.expires.desc())
)
_REFRESHED = sa.select(
    _grants.c.refresh_digest,
    version_stamps.GENERATION,
    _LIVE_OF_GRANT.limit(1).offset(sa.bindparam("others")).scalar_subquery(),
    _grants.c.live_bound,
    *_GRANT,
).where(_grants.c.refresh_digest.in_(sa.bindparam("refresh", expanding=True)))
_LOCK_GRANTS = PreparedStatement(_REFRESHED.with_for_update(of=_grants))
_LOCK_FREE_GRANTS = PreparedStatement(_REFRESHED.with_for_update(of=_grants, skip_locked=True))
_live = _access_tokens.alias("live")
_IS_LIVE = sa.and_(_live.c.grant_id == sa.bindparam("grant"), _live.c.expires > sa.bindparam("now"))
_COUNT_LIVE = PreparedStatement(
    sa.select(
        sa.select(sa.func.count()).where(_IS_LIVE).scalar_subquery(),
        sa.select(_live.c.expires)
        .where(_IS_LIVE)
        .order_by(_live.c.expires.desc())
        .limit(1)
        .offset(sa.bindparam("others"))
        .scalar_subquery(),
    )
)
_KEEP_BOUND = PreparedStatement(
    _grants.update().where(_grants.c.id == sa.bindparam("grant")).values(live_bound=sa.bindparam("bound"))
)
_TOKEN_STATE = PreparedStatement(
    sa.select(*_access_tokens.c["id", "expires"], version_stamps.GENERATION, version_stamps.ENDINGS, *_GRANT)
    .select_from(_access_tokens.join(_grants))
    .where(_access_tokens.c.digest == sa.bindparam("access"))
)


def _revoke(grant: sa.ColumnElement[bool]) -> sa.Update:
    # No token outlives its grant, so a grant that has expired has nothing left to end.
    living = (_grants.c.revoked.is_(None), _grants.c.refresh_expires > sa.bindparam("now"))
    return _grants.update().where(grant, *living).values(revoked=sa.bindparam("now"))


_REVOKE = {
    "access": _revoke(
        _grants.c.id
        == sa.select(_access_tokens.c.grant_id)
        .where(_access_tokens.c.digest == sa.bindparam("token_digest"))
        .scalar_subquery()
    ),
    "refresh": _revoke(_grants.c.refresh_digest == sa.bindparam("token_digest")),
}

_END = {party: _revoke(_grants.c[f"{party}_id"] == sa.bindparam("party")) for party in get_args(Party)}

_DELETE_TOKENS_OF = _access_tokens.delete().where(
    _access_tokens.c.digest.in_(
        sa.select(_access_tokens.c.digest)
        .where(_access_tokens.c.grant_id == sa.bindparam("grant"))
        .order_by(_access_tokens.c.expires)
        .limit(sa.bindparam("rows"))
    )
)
_EXPIRED = (
    sa.select(*_access_tokens.c["expires", "digest"])
    .where(
        sa.tuple_(_access_tokens.c.expires, _access_tokens.c.digest)
        > sa.tuple_(sa.bindparam("after", type_=sa.BigInteger), sa.bindparam("digest", type_=sa.LargeBinary)),
        _access_tokens.c.expires < sa.bindparam("before", type_=sa.BigInteger),
    )
    .order_by(_access_tokens.c.expires, _access_tokens.c.digest)
    .limit(sa.bindparam("rows"))
    .with_for_update(skip_locked=True)
)
_newer = _access_tokens.alias("newer")
_DELETE_ALL_BUT_NEWEST = _access_tokens.delete().where(
    _access_tokens.c.digest.in_(sa.bindparam("digests", expanding=True)),
    sa.exists().where(_newer.c.grant_id == _access_tokens.c.grant_id, _newer.c.expires > _access_tokens.c.expires),
)
