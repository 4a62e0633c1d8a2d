"""Tell a client who signed in, in a JWT that it reads itself (OpenID Connect Core 2, 3.1.3.6)."""

import base64
import hashlib
from typing import Any

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries.table import Entry
from muniment.directory.oauth import signing_keys
from muniment.directory.oauth.token_requests import TokenAttempt, TokenResponse
from muniment.directory.oauth.tokens import Grant
from muniment.ground.clock import SECOND, Instant

LIFE_SECONDS = 300
"""A client looks at it once, when it comes."""

_TYP = "JWT"
_HALF = 16
_PASSWORD = ("pwd",)
"""How users authenticate (RFC 8176 2)."""


def add(
    cx: Connection,
    response: TokenResponse,
    attempt: TokenAttempt[Any],
    user: Entry,
    grant: Grant,
    now: Instant,
    nonce: str | None = None,
) -> TokenResponse:
    """The response to a sign-in, with an id_token for the ``user`` if their ``grant`` has ``openid``."""
    if "openid" not in grant.scopes.split():
        return response
    claims: dict[str, Any] = {
        "iss": attempt.request.issuer,
        "sub": user.uuid,
        "aud": attempt.client.name,
        "iat": now // SECOND,
        "exp": now // SECOND + LIFE_SECONDS,
        "at_hash": half_hash(response.access_token),
    }
    if grant.authenticated is not None:
        claims |= {"auth_time": grant.authenticated // SECOND, "amr": _PASSWORD}
    if nonce is not None:
        claims["nonce"] = nonce
    return msgspec.structs.replace(response, id_token=signing_keys.signer(cx, now).sign(claims, _TYP))


def subject(cx: Connection, text: str) -> str:
    """Whose id_token it is, by their ``entryUUID``; it may have expired. Raises UnparseableToken."""
    return str(signing_keys.read(cx, text, _TYP).get("sub"))


def half_hash(text: str) -> str:
    """The left half of the digest that the algorithm RS256 uses, in base64url (OpenID Connect Core 3.1.3.6)."""
    digest = hashlib.sha256(text.encode()).digest()[:_HALF]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
