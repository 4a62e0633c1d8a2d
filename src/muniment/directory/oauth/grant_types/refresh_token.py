"""The refresh grant: a client sends the refresh token of a living grant (given 4.1, RFC 6749 6)."""

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import SECOND, Instant
from muniment.directory.oauth import access, token_requests, tokens
from muniment.directory.oauth.access import AccessMemory
from muniment.directory.oauth.token_requests import GrantType, TokenAttempt, TokenResponse
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


def _check(_attempt: TokenAttempt[None]) -> None:
    """Return None: this grant type checks no password."""


def _decide(
    cx: Connection,
    options: DirectoryOptions,
    memory: AccessMemory,
    attempt: TokenAttempt[None],
    _password_ok: bool,
    now: Instant,
) -> TokenResponse:
    """Issue another access token of the grant, if the user is still live and in the access role.

    Raises InvalidGrant. Raises InvalidScope for a scope of another resource, and Overloaded while the grant has as many
    live access tokens as a grant may have.
    """
    grant, generation, full_until = _grant_of(cx, options, attempt.request["refresh_token"], now)
    if not grant.alive(now) or grant.client_id != attempt.client.id:
        raise InvalidGrant(_REFUSED)
    scope = attempt.request.parameters.get("scope")
    if scope is not None and token_requests.resource_of(cx, options.names, scope).id != grant.resource_id:
        raise InvalidScope("The scope is not the one the refresh token was issued for.")
    try:
        access.decide(cx, memory, options.names, grant.question, generation)
    except (AccessEnded, UnknownResource) as refusal:
        raise InvalidGrant(_REFUSED) from refusal
    if full_until:
        # No token is issued for longer than this. A later end comes from an earlier setting, or from a clock that was
        # wrong.
        seconds = min(-(-(full_until - now) // SECOND), options.access_token_seconds)
        raise Overloaded("This sign-in has as many live access tokens as it may have: use one of those.", seconds)
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
    locked = tokens.lock_grant(cx, parsed.digest, options.live_tokens, now)
    if locked is None:
        raise InvalidGrant(_REFUSED)
    return locked


REFRESH_TOKEN = GrantType(("refresh_token",), None, _check, _decide)
