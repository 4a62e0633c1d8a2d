"""The client credentials grant: a client acts for itself (RFC 6749 4.4).

Its own entry is the user of the token. There is no refresh token.
"""

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import resources
from muniment.directory.oauth import clients, scopes, token_requests, tokens
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import UnauthorizedClient
from muniment.ground.clock import SECOND, Instant


def _look_up(
    cx: Connection,
    options: DirectoryOptions,
    request: token_requests.TokenRequest,
    client: clients.Client,
    _now: Instant,
) -> scopes.RequestedScope:
    """Raises UnauthorizedClient, InvalidScope, InvalidTarget."""
    if not client.confidential:
        raise UnauthorizedClient("Only a confidential client gets a token for itself.")
    return token_requests.scope_of(cx, options, request, client, "client_credentials")


def _decide(
    cx: Connection,
    options: DirectoryOptions,
    attempt: token_requests.TokenAttempt[scopes.RequestedScope],
    _password_ok: bool,
    now: Instant,
) -> token_requests.TokenResponse:
    """The client must be in the access role (given 5.2). Raises InvalidClient, UnauthorizedClient, InvalidScope,
    InvalidTarget.
    """
    client = msgspec.structs.replace(attempt.client, settings=clients.require_unchanged(cx, attempt.client))
    clients.require_grant(client.settings, "client_credentials")
    scope = scopes.as_now(cx, options.names, client.settings, "client_credentials", attempt.basis)
    if scope.resource is not None and not resources.admits(cx, scope.resource.id, client.id):
        raise UnauthorizedClient("The client is not in the access role of this resource.")
    expires = now + client.access_seconds(options) * SECOND
    grant, _ = tokens.open_grant(
        cx, client.id, client.id, scope.resource_id, now, expires, made="client_credentials", scopes=scope.text
    )
    return token_requests.issue(
        cx, options, attempt.request, client, grant, None, now, scope.told, resource=scope.resource
    )


CLIENT_CREDENTIALS = token_requests.GrantType(
    (), _look_up, decide=_decide, account="client_id", made="client_credentials", asked=lambda basis: basis
)
