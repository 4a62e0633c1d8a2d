"""Tell a client who signed in, in a JWT that it reads itself (OpenID Connect Core 2, 3.1.3.6)."""

from typing import Any

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries.table import Entry
from muniment.directory.oauth import signing_keys
from muniment.directory.oauth.token_requests import TokenAttempt, TokenResponse, UnsignedResponse
from muniment.directory.oauth.tokens import Grant
from muniment.ground.clock import SECOND, Instant

LIFE_SECONDS = 300
"""A client looks at it once, when it comes."""

_TYP = "JWT"
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
    """The response to a sign-in; with an id_token for the ``user`` if their ``grant`` has ``openid``."""
    if "openid" not in grant.scopes.split():
        return response
    claims: dict[str, Any] = {
        "iss": attempt.request.issuer,
        "sub": user.uuid,
        "aud": attempt.client.name,
        "iat": now // SECOND,
        "exp": now // SECOND + LIFE_SECONDS,
    }
    if grant.authenticated is not None:
        claims |= {"auth_time": grant.authenticated // SECOND, "amr": _PASSWORD}
    if nonce is not None:
        claims["nonce"] = nonce
    identity = signing_keys.UnsignedToken(signing_keys.signer(cx, now), _TYP, claims)
    return UnsignedResponse(**(msgspec.structs.asdict(response) | {"identity": identity}))


def subject(cx: Connection, text: str) -> str:
    """Whose id_token it is, by their ``entryUUID``; it may have expired. Raises UnparseableToken."""
    return str(signing_keys.read(cx, text, _TYP).get("sub"))
