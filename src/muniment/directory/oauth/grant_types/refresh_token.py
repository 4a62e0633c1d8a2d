"""The refresh grant: a client shows the refresh token of a grant that still holds (given 4.1, RFC 6749 6)."""

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import SECOND, Instant
from muniment.directory.oauth import access, token_requests, tokens
from muniment.directory.oauth.access import AccessMemory
from muniment.directory.oauth.clients import Client
from muniment.directory.oauth.token_requests import GrantType, TokenAttempt, TokenRequest, TokenResponse
from muniment.directory.oauth.tokens import Grant
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import (
    AccessEnded,
    InvalidGrant,
    InvalidScope,
    UnknownResource,
    UnparseableToken,
)
from muniment.web.refusals import Overloaded

_REFUSED = "The refresh token is not, or no longer, valid for this client."


def _look_up(
    _cx: Connection, _options: DirectoryOptions, _request: TokenRequest, _client: Client, _now: Instant
) -> None:
    """Look up nothing: the grant is read once its row is locked."""


def _check(_attempt: TokenAttempt[None]) -> None:
    """Check no password."""


def _decide(
    cx: Connection,
    options: DirectoryOptions,
    memory: AccessMemory,
    attempt: TokenAttempt[None],
    _password_ok: bool,
    now: Instant,
) -> TokenResponse:
    """Issue a further access token of a grant: the user must still be live and in the role.

    Raises InvalidGrant, InvalidScope for a scope that is not the grant's, and Overloaded while as many access tokens of
    the grant live as a grant may have.
    """
    grant, generation, full_until = _grant_of(cx, options, attempt.request["refresh_token"], now)
    if not grant.alive(now) or grant.client_id != attempt.client.id:
        raise InvalidGrant(_REFUSED)
    scope = attempt.request.parameters.get("scope")
    if scope is not None and token_requests.resource_of(cx, options.names, scope).id != grant.resource_id:
        raise InvalidScope("The scope is not the one the refresh token was issued for.")
    try:
        access.decide(cx, memory, options.names, grant.question(generation))
    except (AccessEnded, UnknownResource) as ended:
        raise InvalidGrant(_REFUSED) from ended
    if full_until:
        # Tokens that an earlier setting let live longer, or that are from before the clock went back, count no longer.
        seconds = min(-(-(full_until - now) // SECOND), options.access_token_seconds)
        raise Overloaded("This sign-in has as many live access tokens as it may have: use one of them.", seconds)
    return token_requests.issue(cx, options, grant, msgspec.UNSET, now)


def _grant_of(
    cx: Connection, options: DirectoryOptions, refresh_token: str, now: Instant
) -> tuple[Grant, str, Instant]:
    try:
        parsed = tokens.parse(cx, refresh_token)
    except UnparseableToken as unparseable:
        raise InvalidGrant(_REFUSED) from unparseable
    if parsed.kind != "refresh":
        raise InvalidGrant(_REFUSED)
    found = tokens.lock_grant(cx, parsed.digest, options.live_tokens, now)
    if found is None:
        raise InvalidGrant(_REFUSED)
    return found


REFRESH_TOKEN = GrantType(("refresh_token",), _look_up, _check, _decide)
