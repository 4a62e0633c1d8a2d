"""Is this string a token of ours, and which grant stands behind it?

A token is 32 random bytes and an 8-byte keyed check (BLAKE2b, RFC 7693), base64url without padding. The check tells a
token of this directory from any other string: "cannot be parsed" (given 7). Only the SHA-256 digest is kept. The
refresh token and all access tokens that came from one sign-in are one grant: one row, which ends them all.
"""

import base64
import hashlib
import hmac
import re
import secrets
import uuid
from typing import Any, Literal, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.db import BigId, PreparedStatement, directory_tables
from muniment.directory import system
from muniment.directory.oauth import access
from muniment.directory.oauth.access import Question
from muniment.directory.refusals import DeadToken, UnparseableToken

Kind = Literal["access", "refresh"]
Which = Literal["user", "client", "resource"]

_DEAD = "The token has expired or was revoked."
_RANDOM = 32
_CHECK = 8
# The last character holds two bits of the check and four of padding. These are zero: a second spelling is no token.
_SPELLED = re.compile(r"[A-Za-z0-9_-]{53}[AQgw]")
_KINDS: dict[Kind, bytes] = {"access": b"access\x00", "refresh": b"refresh\x00"}

_grants = sa.Table(
    "grants",
    directory_tables,
    sa.Column("id", BigId, primary_key=True),
    # No foreign keys: a deleted user's or client's tokens are still known, as tokens whose access has ended.
    sa.Column("user_id", sa.BigInteger, nullable=False, index=True),
    sa.Column("client_id", sa.BigInteger, nullable=False, index=True),
    sa.Column("resource_id", sa.String(36), nullable=False),
    sa.Column("refresh_digest", sa.LargeBinary, nullable=False, unique=True),
    sa.Column("refresh_expires", sa.BigInteger, nullable=False, index=True),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("revoked", sa.BigInteger, index=True),
    sqlite_autoincrement=True,
)

_access_tokens = sa.Table(
    "access_tokens",
    directory_tables,
    sa.Column("digest", sa.LargeBinary, primary_key=True),
    sa.Column("id", sa.String(36), nullable=False),
    sa.Column("grant_id", sa.ForeignKey("grants.id", ondelete="CASCADE"), nullable=False),
    sa.Column("issued", sa.BigInteger, nullable=False),
    sa.Column("expires", sa.BigInteger, nullable=False),
    # The live tokens of a grant are counted, and its tokens removed, along the one; what expired goes along the other.
    sa.Index("ix_access_tokens_of_grant", "grant_id", "expires"),
    sa.Index("ix_access_tokens_expires", "expires", "digest"),
)


class ParsedToken(msgspec.Struct, frozen=True):
    """A string that is a token of ours: its kind and the digest it is known by."""

    kind: Kind
    digest: bytes


class Grant(msgspec.Struct, frozen=True):
    """What one sign-in gave a client: tokens for one user and one resource."""

    id: int
    user_id: int
    client_id: int
    resource_id: str
    expires: Instant
    revoked: Instant | None

    def question(self, generation: str) -> Question:
        """Ask whether its client may still act for its user, in the generation that was read with it."""
        return Question(generation, self.client_id, self.user_id, self.resource_id)

    def alive(self, now: Instant) -> bool:
        """Whether tokens may still come from it."""
        return self.revoked is None and now < self.expires


class GrantSummary(msgspec.Struct, frozen=True):
    """A living grant as a list of sessions shows it. ``digest`` is its refresh token's."""

    digest: bytes
    user_id: int
    client_id: int
    resource_id: str
    created: Instant
    expires: Instant


class SweepPlace(NamedTuple):
    """How far a sweep of expired access tokens has come, in the order in which they expire."""

    expires: Instant
    digest: bytes


SWEEP_START = SweepPlace(-1, b"")
"""Where a sweep begins."""


class TokenState(msgspec.Struct, frozen=True):
    """An access token as the database knows it, read in this generation of the directory."""

    token_id: str
    expires: Instant
    grant: Grant
    generation: str

    def alive(self, now: Instant) -> bool:
        """Whether the token is neither expired nor revoked."""
        return now < self.expires and self.grant.alive(now)

    def require_alive(self, now: Instant) -> None:
        """Go on only with a living token. Raises DeadToken."""
        if not self.alive(now):
            raise DeadToken(_DEAD)


def parse(cx: Connection, token: str) -> ParsedToken:
    """Read a token. Raises UnparseableToken for whatever this directory did not write (given 7)."""
    if not _SPELLED.fullmatch(token):
        raise UnparseableToken("The token cannot be parsed.")
    raw = base64.urlsafe_b64decode(token + "==")
    key = system.key(cx, "tokens")
    random, check = raw[:_RANDOM], raw[_RANDOM:]
    for kind in _KINDS:
        if hmac.compare_digest(check, _check(key, kind, random)):
            return ParsedToken(kind, _digest(random))
    raise UnparseableToken("The token cannot be parsed.")


def open_grant(
    cx: Connection, user_id: int, client_id: int, resource_id: str, now: Instant, expires: Instant
) -> tuple[Grant, str]:
    """Begin a grant: it, and its refresh token, told here once."""
    token, digest = _mint(cx, "refresh")
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
    """Make an access token of a grant, told here once."""
    token, digest = _mint(cx, "access")
    _ADD.run(cx, digest=digest, id=str(uuid.uuid4()), grant_id=grant.id, issued=now, expires=expires)
    return token


def lock_grant(cx: Connection, refresh_digest: bytes, most: int, now: Instant) -> tuple[Grant, str, Instant] | None:
    """Find the grant of a refresh token, the directory's generation, and from when on a token more is within ``most``.

    That instant is the end of the oldest of the grant's ``most`` newest live access tokens; it is 0 while there are
    fewer. Other decisions about the grant wait until this one is committed.
    """
    row = _LOCK_GRANT.first(cx, refresh=refresh_digest, now=now, others=most - 1)
    return None if row is None else (Grant(*row[2:]), row[0], row[1] or 0)


def look_up(cx: Connection, digest: bytes) -> TokenState | None:
    """Find an access token with its grant: one statement. None when it was purged."""
    row = _STANDING.first(cx, access=digest)
    return None if row is None else TokenState(row[0], row[1], Grant(*row[3:]), row[2])


def state_of(cx: Connection, token: str) -> TokenState:
    """Read an access token and look it up; it may have expired. Raises UnparseableToken, DeadToken (purged)."""
    parsed = parse(cx, token)
    if parsed.kind != "access":
        raise UnparseableToken("The token is no access token.")
    standing = look_up(cx, parsed.digest)
    if standing is None:
        raise DeadToken(_DEAD)
    return standing


def revoke(cx: Connection, token: ParsedToken, now: Instant) -> Grant | None:
    """End the grant that a token belongs to, and give it; None for one ended before, or purged (given 3)."""
    row = cx.execute(_REVOKE[token.kind].returning(*_GRANT), {"token_digest": token.digest, "now": now}).first()
    return None if row is None else Grant(*row)


def end(cx: Connection, which: Which, number: int | str, now: Instant) -> int:
    """End every grant of a user, or issued to a client, or for a resource; say how many. One indexed statement.

    The rows are marked, not deleted: who has a million tokens is out at once, and the purge takes the rows in its turn.
    """
    return cx.execute(_END[which], {"of": number, "now": now}).rowcount


def end_every(cx: Connection, now: Instant) -> int:
    """End every grant there is, and say how many."""
    return cx.execute(_revoke(sa.true()), {"now": now}).rowcount


def end_one(cx: Connection, digests: tuple[bytes, bytes], now: Instant) -> int:
    """End the grant whose refresh token's digest lies between the two, both included; say how many there were."""
    return cx.execute(_revoke(_grants.c.refresh_digest.between(*digests)), {"now": now}).rowcount


def live_grants(cx: Connection, which: Which, number: int, now: Instant, limit: int) -> list[GrantSummary]:
    """List at most ``limit`` living grants of a user, or issued to a client, or for a resource: the newest first."""
    wanted = (
        sa.select(
            _grants.c.refresh_digest,
            _grants.c.user_id,
            _grants.c.client_id,
            _grants.c.resource_id,
            _grants.c.created,
            _grants.c.refresh_expires,
        )
        .where(_WHICH[which] == number, _grants.c.revoked.is_(None), _grants.c.refresh_expires > now)
        .order_by(_grants.c.id.desc())
        .limit(limit)
    )
    return [GrantSummary(*row) for row in cx.execute(wanted)]


def purge(cx: Connection, before: Instant, rows: int) -> int:
    """Forget grants that ended before that instant, with their tokens; say how many rows went, ``rows`` at most.

    The tokens of a grant go before it, so that no single statement takes more rows than that.
    """
    left, empty = rows, list[int]()
    for grant_id in _ended(cx, before, rows):
        taken = cx.execute(_DELETE_TOKENS_OF, {"grant": grant_id, "rows": left}).rowcount
        left -= taken
        if left:
            empty.append(grant_id)
            left -= 1
        if not left:
            break
    if empty:
        cx.execute(_grants.delete().where(_grants.c.id.in_(empty)))
    return rows - left


def sweep(cx: Connection, after: SweepPlace, before: Instant, rows: int) -> tuple[int, SweepPlace]:
    """Forget access tokens that expired before that instant; look at ``rows`` at most, those after ``after``.

    The newest of each grant stays as long as the grant: whoever revokes the last token that they were given ends the
    grant. Says how many were looked at, and where to go on.
    """
    seen = cx.execute(_EXPIRED, {"after": after.expires, "digest": after.digest, "before": before, "rows": rows}).all()
    if not seen:
        return 0, after
    cx.execute(_DELETE_OUTLIVED, {"digests": [row.digest for row in seen]})
    return len(seen), SweepPlace(seen[-1].expires, bytes(seen[-1].digest))


def _ended(cx: Connection, before: Instant, limit: int) -> list[int]:
    """Find grants that ended before that instant; another process that purges takes others."""
    found: dict[int, None] = {}
    # One index after the other: asked for both at once, a database may read every grant there is.
    for column in (_grants.c.refresh_expires, _grants.c.revoked):
        over = sa.select(_grants.c.id).where(column < before).order_by(column).limit(limit)
        found |= dict.fromkeys(cx.execute(over.with_for_update(skip_locked=True)).scalars())
    return list(found)[:limit]


def _mint(cx: Connection, kind: Kind) -> tuple[str, bytes]:
    random = secrets.token_bytes(_RANDOM)
    return _text(random, _check(system.key(cx, "tokens"), kind, random)), _digest(random)


def _check(key: bytes, kind: Kind, random: bytes) -> bytes:
    return hashlib.blake2b(_KINDS[kind] + random, digest_size=_CHECK, key=key).digest()


def _text(random: bytes, check: bytes) -> str:
    return base64.urlsafe_b64encode(random + check).decode().rstrip("=")


def _digest(random: bytes) -> bytes:
    return hashlib.sha256(random).digest()


_GRANT = (
    _grants.c.id,
    _grants.c.user_id,
    _grants.c.client_id,
    _grants.c.resource_id,
    _grants.c.refresh_expires,
    _grants.c.revoked,
)
_ADD = PreparedStatement(_access_tokens.insert())
_LIVE_OF_GRANT = (
    sa.select(_access_tokens.c.expires)
    .where(_access_tokens.c.grant_id == _grants.c.id, _access_tokens.c.expires > sa.bindparam("now"))
    .order_by(_access_tokens.c.expires.desc())
)
_LOCK_GRANT = PreparedStatement(
    sa.select(
        access.generation(),
        _LIVE_OF_GRANT.limit(1).offset(sa.bindparam("others")).scalar_subquery(),
        *_GRANT,
    )
    .where(_grants.c.refresh_digest == sa.bindparam("refresh"))
    .with_for_update(of=_grants)
)
_STANDING = PreparedStatement(
    sa.select(_access_tokens.c.id, _access_tokens.c.expires, access.generation(), *_GRANT)
    .select_from(_access_tokens.join(_grants))
    .where(_access_tokens.c.digest == sa.bindparam("access"))
)


def _revoke(grant: sa.ColumnElement[bool]) -> sa.Update:
    return _grants.update().where(grant, _grants.c.revoked.is_(None)).values(revoked=sa.bindparam("now"))


_REVOKE = {
    "access": _revoke(
        _grants.c.id
        == sa.select(_access_tokens.c.grant_id)
        .where(_access_tokens.c.digest == sa.bindparam("token_digest"))
        .scalar_subquery()
    ),
    "refresh": _revoke(_grants.c.refresh_digest == sa.bindparam("token_digest")),
}

_WHICH: dict[Which, sa.ColumnElement[Any]] = {
    "user": _grants.c.user_id,
    "client": _grants.c.client_id,
    "resource": _grants.c.resource_id,
}
_END = {which: _revoke(column == sa.bindparam("of")) for which, column in _WHICH.items()}

_DELETE_TOKENS_OF = _access_tokens.delete().where(
    _access_tokens.c.digest.in_(
        sa.select(_access_tokens.c.digest)
        .where(_access_tokens.c.grant_id == sa.bindparam("grant"))
        .order_by(_access_tokens.c.expires)
        .limit(sa.bindparam("rows"))
    )
)
_EXPIRED = (
    sa.select(_access_tokens.c.expires, _access_tokens.c.digest)
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
_DELETE_OUTLIVED = _access_tokens.delete().where(
    _access_tokens.c.digest.in_(sa.bindparam("digests", expanding=True)),
    sa.exists().where(_newer.c.grant_id == _access_tokens.c.grant_id, _newer.c.expires > _access_tokens.c.expires),
)
