"""Which authorization does a code stand for (RFC 6749 4.1, RFC 7636)?

A code is a value of ``minting``, and only its digest is stored. It serves its client once, for a minute, and as long as
the ticket lives with which its user allowed it.
"""

import base64
import hashlib
import hmac
import re

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement, directory_tables, required, required_columns
from muniment.directory import minting
from muniment.directory.entries import system
from muniment.ground.clock import SECOND, Instant

LONGEST_SECONDS = 60

_KEPT_FOR = 3600 * SECOND
"""So long a code is known after it has expired, to tell that it comes a second time."""

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")

_codes = sa.Table(
    "authorization_codes",
    directory_tables,
    sa.Column("digest", sa.LargeBinary, primary_key=True),
    # There are no foreign keys: a code that comes again still ends its grant when its user or client is gone.
    required("client_id", sa.BigInteger, index=True),
    *required_columns(sa.BigInteger, "user_id", "auth_time"),
    required("resource_id", sa.String(36)),
    *required_columns(sa.Text, "scopes", "told", "redirect_address"),
    sa.Column("challenge", sa.String(43)),
    sa.Column("nonce", sa.Text),
    required("ticket", sa.LargeBinary),
    required("expires", sa.BigInteger, index=True),
    sa.Column("grant_id", sa.BigInteger),
)


class Authorization(msgspec.Struct, frozen=True, kw_only=True):
    """What a user has allowed a client. ``scopes`` and ``told`` are those of a ``RequestedScope``, as text.

    ``redirect_address`` is the one that the client named, or empty; ``ticket`` the digest of the user's ticket, which
    was made at ``auth_time``. ``grant_id`` is what came of the code.
    """

    client_id: int
    user_id: int
    auth_time: Instant
    resource_id: str
    scopes: str
    told: str
    redirect_address: str
    challenge: str | None
    nonce: str | None
    ticket: bytes
    expires: Instant
    grant_id: int | None = None


def is_challenge(text: str) -> bool:
    """Whether it is one of the method S256 (RFC 7636 4.2)."""
    return _CHALLENGE.fullmatch(text) is not None


def fits(challenge: str | None, verifier: str | None) -> bool:
    """A challenge always takes its verifier, and without one none is taken (RFC 9700 4.8.2)."""
    if challenge is None or verifier is None:
        return challenge is None and verifier is None
    if not _VERIFIER.fullmatch(verifier):
        return False
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    return hmac.compare_digest(digest, challenge)


def issue(cx: Connection, authorization: Authorization) -> str:
    """Return the code, which is not stored."""
    code, digest = minting.mint(system.key(cx, "tokens"), "code")
    _ISSUE.run_for_each(cx, [{"digest": digest, **msgspec.structs.asdict(authorization)}])
    return code


def parse(cx: Connection, code: str) -> bytes | None:
    """The digest, or None if it is no code of this directory."""
    read = (minting.parse(key, "code", code) for key in system.accepted_keys(cx, "tokens"))
    return next((digest for digest in read if digest is not None), None)


def look_up(cx: Connection, digest: bytes, *, lock: bool = False) -> Authorization | None:
    """Also a code that has expired or was redeemed. With ``lock`` until the commit."""
    row = (_LOCK if lock else _LOOK_UP).first(cx, code=digest)
    if row is None:
        return None
    authorization = Authorization(**dict(zip(Authorization.__struct_fields__, row, strict=True)))
    return msgspec.structs.replace(authorization, ticket=bytes(authorization.ticket))


def redeem(cx: Connection, digest: bytes, grant_id: int) -> None:
    _REDEEM.run(cx, code=digest, grant=grant_id)


def end_of(cx: Connection, client_id: int, resource_id: str | None = None) -> int:
    """End the codes that a client has not redeemed: all, or those for a resource."""
    ended = _codes.delete().where(_codes.c.client_id == client_id, _codes.c.grant_id.is_(None))
    return cx.execute(ended if resource_id is None else ended.where(_codes.c.resource_id == resource_id)).rowcount


def end_at(cx: Connection, resource_id: str) -> int:
    """End the codes for a resource that no client has redeemed."""
    return cx.execute(_codes.delete().where(_codes.c.resource_id == resource_id, _codes.c.grant_id.is_(None))).rowcount


def purge(cx: Connection, now: Instant, limit: int) -> int:
    expired = sa.select(_codes.c.digest).where(_codes.c.expires < now - _KEPT_FOR).limit(limit)
    return cx.execute(_codes.delete().where(_codes.c.digest.in_(expired))).rowcount


_ISSUE = PreparedStatement(_codes.insert())
_FOUND = sa.select(*_codes.c[Authorization.__struct_fields__]).where(
    _codes.c.digest == sa.bindparam("code", type_=sa.LargeBinary)
)
_LOOK_UP, _LOCK = PreparedStatement(_FOUND), PreparedStatement(_FOUND.with_for_update())
_REDEEM = PreparedStatement(
    _codes.update()
    .where(_codes.c.digest == sa.bindparam("code", type_=sa.LargeBinary))
    .values(grant_id=sa.bindparam("grant"))
)
