"""The refresh grant: a client sends the refresh token of a living grant (given 4.1, RFC 6749 6)."""

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from muniment.clock import SECOND, Instant
from muniment.directory.oauth import access, token_requests, tokens
from muniment.directory.oauth.access import AccessMemory
from muniment.directory.oauth.token_requests import GrantType, TokenAttempt, TokenResponse
from muniment.directory.oauth.tokens import LockedGrant
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import (
    AccessEnded,
    InvalidGrant,
    InvalidScope,
    UnknownResource,
    UnparseableToken,
)
from muniment.web.refusals import Overloaded, Refusal

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
    """Issue another access token of the grant, as ``_decide_each`` does."""
    (outcome,) = _decide_each(cx, options, memory, [attempt], now, True)
    assert outcome is not None  # noqa: S101 - what is decided alone is decided
    if isinstance(outcome, Refusal):
        raise outcome
    return outcome


def _decide_each(
    cx: Connection,
    options: DirectoryOptions,
    memory: AccessMemory,
    attempts: Sequence[TokenAttempt[None]],
    now: Instant,
    alone: bool,
) -> list[TokenResponse | Refusal | None]:
    """Issue another access token of each grant, if the user is still live and in the access role.

    The refusals are InvalidGrant, InvalidScope for a scope of another resource, and Overloaded while the grant has as
    many live access tokens as a grant may have. None stands for what has to be decided ``alone``: a second refresh of a
    grant, and a grant that another decision has locked.
    """
    outcomes: list[TokenResponse | Refusal | None] = [None] * len(attempts)
    places: dict[bytes, int] = {}
    for place, attempt in enumerate(attempts):
        try:
            places.setdefault(_digest(cx, attempt.request["refresh_token"]), place)
        except InvalidGrant as refusal:
            outcomes[place] = refusal
    locked = tokens.lock_grants(cx, list(places), options.live_tokens, now, wait=alone)
    granted: dict[int, LockedGrant] = {}
    for digest, place in places.items():
        found = locked.get(digest)
        if found is None:
            outcomes[place] = InvalidGrant(_REFUSED) if alone else None
            continue
        try:
            _require(cx, options, memory, attempts[place], found, now)
            granted[place] = found
        except Refusal as refusal:
            outcomes[place] = refusal
    issued = token_requests.issue_another(cx, options, list(granted.values()), now)
    for place, response in zip(granted, issued, strict=True):
        outcomes[place] = response
    return outcomes


def _digest(cx: Connection, refresh_token: str) -> bytes:
    try:
        parsed = tokens.parse(cx, refresh_token)
    except UnparseableToken as unparseable:
        raise InvalidGrant(_REFUSED) from unparseable
    if parsed.kind != "refresh":
        raise InvalidGrant(_REFUSED)
    return parsed.digest


def _require(
    cx: Connection,
    options: DirectoryOptions,
    memory: AccessMemory,
    attempt: TokenAttempt[None],
    locked: LockedGrant,
    now: Instant,
) -> None:
    """Raise a refusal unless the grant may have another access token now."""
    grant = locked.grant
    if not grant.alive(now) or grant.client_id != attempt.client.id:
        raise InvalidGrant(_REFUSED)
    scope = attempt.request.parameters.get("scope")
    if scope is not None and token_requests.resource_of(cx, options.names, scope).id != grant.resource_id:
        raise InvalidScope("The scope is not the one the refresh token was issued for.")
    try:
        access.decide(cx, memory, options.names, grant.question, locked.generation)
    except (AccessEnded, UnknownResource) as refusal:
        raise InvalidGrant(_REFUSED) from refusal
    if locked.full_until:
        # No token is issued for longer than this. A later end comes from an earlier setting, or from a clock that was
        # wrong.
        seconds = min(-(-(locked.full_until - now) // SECOND), options.access_token_seconds)
        raise Overloaded("This sign-in has as many live access tokens as it may have: use one of those.", seconds)


REFRESH_TOKEN = GrantType(("refresh_token",), None, _check, _decide, decide_each=_decide_each)
