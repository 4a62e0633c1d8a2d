"""The password grant: a client sends a user's name and password (given 4.1, RFC 6749 4.3)."""

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import resources
from muniment.directory.oauth import clients, scopes, token_requests, tokens
from muniment.directory.options import DirectoryOptions
from muniment.directory.sign_in import attempts
from muniment.directory.sign_in.pauses import Origin
from muniment.ground.clock import SECOND, Instant


class _Basis(attempts.SignInAttempt, frozen=True, kw_only=True):
    scope: scopes.RequestedScope


def _look_up(
    cx: Connection,
    options: DirectoryOptions,
    request: token_requests.TokenRequest,
    client: clients.Client,
    now: Instant,
) -> _Basis:
    """Everybody may sign in without a resource, but no client. Raises InvalidScope, InvalidTarget."""
    scope = token_requests.scope_of(cx, options, request, client, "password")
    origin = Origin(request.address, str(client.id))
    opens: attempts.Opens = "people" if scope.resource is None else "role"
    resource = scope.resource or resources.administration(cx)
    attempt = attempts.begin(cx, options, resource, request["username"], origin, now, opens=opens)
    return _Basis(**msgspec.structs.asdict(attempt), scope=scope)


def _check(attempt: token_requests.TokenAttempt[_Basis]) -> token_requests.PasswordCheck:
    request, sign_in = attempt.request, attempt.basis
    asker = sign_in.asker(request["username"])
    return token_requests.PasswordCheck(
        sign_in.password_hash, request["password"], asker, user_exists=sign_in.user_id is not None
    )


def _decide(
    cx: Connection,
    options: DirectoryOptions,
    attempt: token_requests.TokenAttempt[_Basis],
    password_ok: bool,
    now: Instant,
) -> token_requests.TokenResponse:
    """Decide the sign-in, and issue its tokens (given 5.1, 5.2). Raises SignInRefused, InvalidClient,
    UnauthorizedClient, InvalidScope, InvalidTarget.
    """
    user = attempts.finish(cx, options, attempt.basis, password_ok, now)
    client = msgspec.structs.replace(attempt.client, settings=clients.require_unchanged(cx, attempt.client))
    clients.require_grant(client.settings, "password")
    scope = scopes.as_now(cx, options.names, client.settings, "password", attempt.basis.scope)
    if not client.lets_sign_in(user):
        raise attempts.refused("client for other partitions")
    expires = now + client.refresh_seconds(options) * SECOND
    grant, refresh_token = tokens.open_grant(
        *(cx, user.id, client.id, scope.resource_id, now, expires),
        scopes=scope.text,
        authenticated=now,
        rotates=client.rotates("password"),
    )
    return token_requests.issue(
        cx, options, attempt.request, client, grant, refresh_token, now, scope.told, resource=scope.resource
    )


PASSWORD = token_requests.GrantType(
    ("username", "password", "scope"),
    _look_up,
    _check,
    _decide,
    account="username",
    made="password",
    asked=lambda basis: basis.scope,
)
