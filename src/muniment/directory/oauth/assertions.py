"""Does an assertion show that a client holds its key (RFC 7523 3, OpenID Connect Core 9)?

The keys are those that an administrator gave with the client; nothing is fetched.
"""

import hashlib
from collections.abc import Collection
from typing import Any

import msgspec
import sqlalchemy as sa
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey
from sqlalchemy.engine import Connection

from muniment.database.connections import directory_tables, required
from muniment.database.statements import upsert
from muniment.directory.oauth.clients import REFUSED
from muniment.directory.refusals import BadAttribute, InvalidClient
from muniment.ground.clock import SECOND, Instant
from muniment.ground.naming import is_storable

TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ALGORITHMS = ("RS256", "PS256", "ES256")

_LONGEST_SECONDS = 300
_SKEW_SECONDS = 30
_LONGEST = 8192
_MOST_KEYS = 10
_LONGEST_KEYS = 20_000
_SHORTEST_RSA = 2048
_LONGEST_ID = 255
_HEADERS = {"alg", "typ", "kid", "x5t", "x5t#S256"}
_PRIVATE = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"}

_assertions = sa.Table(
    "assertions",
    directory_tables,
    sa.Column("client_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("digest", sa.LargeBinary, primary_key=True),
    required("expires", sa.BigInteger, index=True),
)


class Assertion(msgspec.Struct, frozen=True):
    """One that is right, if it was not used before: the digest of its ``jti``, and when it expires."""

    digest: bytes
    expires: Instant


def check_keys(text: str) -> None:
    """A JSON Web Key Set of public keys, or nothing. Raises BadAttribute."""
    if not text:
        return
    try:
        keys = _keys(text)
    except (JoseError, ValueError, TypeError, KeyError, AttributeError, msgspec.DecodeError) as error:
        raise BadAttribute(
            'The keys of a client are a JSON Web Key Set, {"keys": [...]}, of 1 to '
            f"{_MOST_KEYS} public keys: RSA of {_SHORTEST_RSA} bits or more, or EC on the curve P-256."
        ) from error
    if not keys:
        raise BadAttribute("The key set of a client has no key.")


def subject(text: str) -> str:
    """Whom an assertion says that it is of, not yet verified; empty if nobody can tell. It names its client (RFC 7523
    3, 3.B).
    """
    try:
        claims = msgspec.json.decode(jws.extract_compact(_checked(text)).payload, type=dict)
    except (JoseError, ValueError, TypeError, msgspec.DecodeError):
        return ""
    found = claims.get("sub")
    return found if isinstance(found, str) and is_storable(found) else ""


def verify(jwks: str, client_id: str, text: str, audiences: Collection[str], now: Instant) -> Assertion:
    """``audiences`` are the names of this server of which the assertion must have one, and no other. Raises
    InvalidClient.
    """
    try:
        return _verify(jwks, client_id, text, audiences, now)
    except (JoseError, ValueError, TypeError, KeyError, msgspec.DecodeError) as error:
        raise InvalidClient(REFUSED) from error


def use(cx: Connection, client_id: int, assertion: Assertion) -> None:
    """Each is taken once. Raises InvalidClient."""
    row = {"client_id": client_id, "digest": assertion.digest, "expires": assertion.expires}
    # PostgreSQL's driver tells no number of inserted rows.
    added = upsert(_assertions).on_conflict_do_nothing().returning(_assertions.c.digest)
    if cx.execute(added, row).first() is None:
        raise InvalidClient(REFUSED)


def purge(cx: Connection, now: Instant, limit: int) -> int:
    """Delete those that also a server whose clock is late refuses."""
    late = now - _SKEW_SECONDS * SECOND
    expired = sa.select(_assertions.c.client_id, _assertions.c.digest).where(_assertions.c.expires < late)
    found = [{"client": row[0], "assertion": row[1], "late": late} for row in cx.execute(expired.limit(limit))]
    if found:
        cx.execute(_DELETE, found)  # one by one: of a list of pairs SQLite looks up the clients alone
    return len(found)


def _verify(jwks: str, client_id: str, text: str, audiences: Collection[str], now: Instant) -> Assertion:
    header = jws.extract_compact(_checked(text)).headers()
    if not header.keys() <= _HEADERS or header["alg"] not in ALGORITHMS:
        raise ValueError
    claims = _signed(jwks, header, text)
    audience = claims["aud"]
    named = [audience] if isinstance(audience, str) else audience
    if claims["iss"] != client_id or claims["sub"] != client_id or len(named) != 1 or named[0] not in audiences:
        raise ValueError
    seconds, expires = now // SECOND, _time(claims, "exp")
    issued = _time(claims, "iat", seconds)
    if "iat" in claims:  # Clients say an hour, which they need not mean (decision 0121).
        expires = min(expires, issued + _LONGEST_SECONDS)
    if not seconds < expires <= max(seconds, issued) + _LONGEST_SECONDS:
        raise ValueError
    if max(issued, _time(claims, "nbf", seconds)) > seconds + _SKEW_SECONDS:
        raise ValueError
    token_id = claims["jti"]
    if not isinstance(token_id, str) or not 1 <= len(token_id) <= _LONGEST_ID:
        raise ValueError
    return Assertion(hashlib.sha256(token_id.encode("utf-8", "surrogatepass")).digest(), expires * SECOND)


def _checked(text: str) -> bytes:
    if len(text) > _LONGEST or not text.isascii() or text.count(".") != 2:
        raise ValueError
    return text.encode()


def _signed(jwks: str, header: dict[str, Any], text: str) -> dict[str, Any]:
    """The claims, if one of the client's keys signed them."""
    algorithm = header["alg"]
    for described, key in _keys(jwks):
        if header.get("kid") not in (None, described.get("kid")) or described.get("alg", algorithm) != algorithm:
            continue
        if (algorithm == "ES256") != isinstance(key, ECKey):
            continue
        try:
            signed = jws.deserialize_compact(text, key, algorithms=[algorithm])
        except JoseError:
            continue
        claims: dict[str, Any] = msgspec.json.decode(signed.payload, type=dict)
        return claims
    raise ValueError


def _time(claims: dict[str, Any], name: str, default: int | None = None) -> int:
    found = claims.get(name, default)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise TypeError
    return int(found)


def _keys(text: str) -> list[tuple[dict[str, Any], RSAKey | ECKey]]:
    if len(text) > _LONGEST_KEYS:
        raise ValueError
    described = msgspec.json.decode(text, type=dict[str, Any])["keys"]
    if not isinstance(described, list) or len(described) > _MOST_KEYS:
        raise ValueError
    return [(each, _key(each)) for each in described]


def _key(described: dict[str, Any]) -> RSAKey | ECKey:
    if not _PRIVATE.isdisjoint(described):
        raise ValueError
    bare: dict[str, Any] = {name: described[name] for name in ("kty", "n", "e", "crv", "x", "y") if name in described}
    if bare["kty"] == "RSA":
        key = RSAKey.import_key(bare)
        if key.public_key.key_size < _SHORTEST_RSA:
            raise ValueError
        return key
    if bare["kty"] != "EC" or bare["crv"] != "P-256":
        raise ValueError
    return ECKey.import_key(bare)


_DELETE = _assertions.delete().where(
    _assertions.c.client_id == sa.bindparam("client"),
    _assertions.c.digest == sa.bindparam("assertion"),
    _assertions.c.expires < sa.bindparam("late"),
)
