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
from typing import Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.db import BigId, Instant, Prepared, directory_tables
from muniment.directory import access, system
from muniment.directory.access import Question
from muniment.directory.refusals import UnparseableToken

Kind = Literal["access", "refresh"]

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
    sa.Column("client_id", sa.BigInteger, nullable=False),
    sa.Column("resource_id", sa.String(36), nullable=False),
    sa.Column("refresh_digest", sa.LargeBinary, nullable=False, unique=True),
    sa.Column("refresh_expires", sa.BigInteger, nullable=False, index=True),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("revoked", sa.BigInteger),
    sqlite_autoincrement=True,
)

_access_tokens = sa.Table(
    "access_tokens",
    directory_tables,
    sa.Column("digest", sa.LargeBinary, primary_key=True),
    sa.Column("id", sa.String(36), nullable=False),
    sa.Column("grant_id", sa.ForeignKey("grants.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("issued", sa.BigInteger, nullable=False),
    sa.Column("expires", sa.BigInteger, nullable=False),
)


class Parsed(msgspec.Struct, frozen=True):
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


class Standing(msgspec.Struct, frozen=True):
    """An access token as the database knows it, read in this generation of the directory."""

    token_id: str
    expires: Instant
    grant: Grant
    generation: str

    def alive(self, now: Instant) -> bool:
        """Whether the token is neither expired nor revoked."""
        return now < self.expires and self.grant.alive(now)


def parse(cx: Connection, token: str) -> Parsed:
    """Read a token. Raises UnparseableToken for whatever this directory did not write (given 7)."""
    if not _SPELLED.fullmatch(token):
        raise UnparseableToken("The token cannot be parsed.")
    raw = base64.urlsafe_b64decode(token + "==")
    key = system.key(cx, "tokens")
    random, check = raw[:_RANDOM], raw[_RANDOM:]
    for kind in _KINDS:
        if hmac.compare_digest(check, _check(key, kind, random)):
            return Parsed(kind, _digest(random))
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


def lock_grant(cx: Connection, refresh_digest: bytes) -> tuple[Grant, str] | None:
    """Find the grant of a refresh token, and the directory's generation.

    Other decisions about the grant wait until this one is committed.
    """
    row = _LOCK_GRANT.first(cx, refresh=refresh_digest)
    return None if row is None else (Grant(*row[1:]), row[0])


def standing(cx: Connection, digest: bytes) -> Standing | None:
    """Find an access token with its grant: one statement. None when it was purged."""
    row = _STANDING.first(cx, access=digest)
    return None if row is None else Standing(row[0], row[1], Grant(*row[3:]), row[2])


def revoke(cx: Connection, token: Parsed, now: Instant) -> None:
    """End the grant that a token belongs to; one ended before, or purged, stays so (given 3)."""
    cx.execute(_REVOKE[token.kind], {"token_digest": token.digest, "now": now})


def purge(cx: Connection, before: Instant, limit: int) -> int:
    """Forget at most ``limit`` grants that died before that instant, with all their tokens; say how many.

    An expired access token of a living grant is kept: whoever revokes it ends the grant.
    """
    dead = sa.select(_grants.c.id).where(sa.or_(_grants.c.refresh_expires < before, _grants.c.revoked < before))
    return cx.execute(_grants.delete().where(_grants.c.id.in_(dead.limit(limit)))).rowcount


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
_ADD = Prepared(_access_tokens.insert())
_LOCK_GRANT = Prepared(
    sa.select(access.generation(), *_GRANT)
    .where(_grants.c.refresh_digest == sa.bindparam("refresh"))
    .with_for_update(of=_grants)
)
_STANDING = Prepared(
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
