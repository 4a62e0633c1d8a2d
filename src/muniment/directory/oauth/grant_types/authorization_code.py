"""The code grant: a client sends the code that its user's browser brought (RFC 6749 4.1.3, RFC 7636 4.5)."""

from collections.abc import Mapping

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import credentials
from muniment.directory.oauth import clients, codes, id_tokens, token_requests, tokens
from muniment.directory.oauth.access import Allowed, Question
from muniment.directory.oauth.clients import Client
from muniment.directory.oauth.codes import Authorization
from muniment.directory.oauth.token_requests import GrantType, SignedIn, TokenAttempt, TokenRequest, TokenResponse
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import InvalidGrant, UsedAgain
from muniment.directory.sign_in import tickets
from muniment.ground.clock import SECOND, Instant

_REFUSED = "The code is not, or no longer, valid for this client and this request."
_USED_AGAIN = "The code was used before. What came of it has ended."


class _Basis(msgspec.Struct, frozen=True):
    digest: bytes
    user_id: int
    resource_id: str


def _look_up(
    cx: Connection, _options: DirectoryOptions, request: TokenRequest, client: Client, _now: Instant
) -> _Basis:
    """Raises InvalidGrant, also for the code of another client."""
    digest = codes.parse(cx, request["code"])
    authorization = None if digest is None else codes.look_up(cx, digest)
    if digest is None or authorization is None or authorization.client_id != client.id:
        raise InvalidGrant(_REFUSED)
    return _Basis(digest, authorization.user_id, authorization.resource_id)


def _signs_in(cx: Connection, options: DirectoryOptions, basis: _Basis) -> SignedIn | None:
    return token_requests.signed_in(cx, options.names, basis.user_id, basis.resource_id)


def _decide(
    cx: Connection, options: DirectoryOptions, attempt: TokenAttempt[_Basis], _password_ok: bool, now: Instant
) -> TokenResponse:
    """Raises InvalidClient, UnauthorizedClient, InvalidGrant, and UsedAgain for a code that comes a second time."""
    # Whatever ends a user's or a client's sessions locks these rows, in this order.
    credentials.lock(cx, attempt.basis.user_id, shared=True)
    client = msgspec.structs.replace(attempt.client, settings=clients.require_unchanged(cx, attempt.client))
    clients.require_grant(client.settings, "authorization_code")
    authorization = codes.look_up(cx, attempt.basis.digest, lock=True)
    if authorization is None:
        raise InvalidGrant(_REFUSED)
    if authorization.grant_id is not None:
        tokens.end_grant(cx, authorization.grant_id, now)
        raise UsedAgain(_USED_AGAIN)
    resource, user = _require(cx, options, attempt.request.parameters, client, authorization, now)
    expires = now + client.refresh_seconds(options) * SECOND
    grant, refresh_token = tokens.open_grant(
        *(cx, authorization.user_id, client.id, authorization.resource_id, now, expires),
        made="authorization_code",
        scopes=authorization.scopes,
        authenticated=authorization.auth_time,
        rotates=client.rotates("authorization_code"),
    )
    codes.redeem(cx, attempt.basis.digest, grant.id)
    response = token_requests.issue(
        *(cx, options, attempt.request, client, grant, refresh_token, now, authorization.told), resource=resource
    )
    return id_tokens.add(cx, response, attempt, user, grant, now, authorization.nonce)


def _require(
    cx: Connection,
    options: DirectoryOptions,
    parameters: Mapping[str, str],
    client: Client,
    authorization: Authorization,
    now: Instant,
) -> Allowed:
    """The user who has allowed it, and the resource. Raises InvalidGrant."""
    if (
        now >= authorization.expires
        or parameters.get("redirect_uri", "") != authorization.redirect_address
        or not codes.fits(authorization.challenge, parameters.get("code_verifier"))
        or not tickets.lives(cx, authorization.ticket, now)
    ):
        raise InvalidGrant(_REFUSED)
    return token_requests.require_user(
        *(cx, options, client, "authorization_code"),
        Question(client.id, authorization.user_id, authorization.resource_id),
        authorization.scopes.split(),
        _REFUSED,
    )


AUTHORIZATION_CODE = GrantType(("code",), _look_up, None, _decide, made="authorization_code", signs_in=_signs_in)
