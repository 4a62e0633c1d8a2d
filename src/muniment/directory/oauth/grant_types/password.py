"""The password grant: a client sends a user's name and password (given 4.1, RFC 6749 4.3)."""

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.oauth import clients, token_requests, tokens
from muniment.directory.options import DirectoryOptions
from muniment.directory.sign_in import attempts
from muniment.directory.sign_in.pauses import Origin
from muniment.ground.clock import SECOND, Instant


def _look_up(
    cx: Connection,
    options: DirectoryOptions,
    request: token_requests.TokenRequest,
    client: clients.Client,
    now: Instant,
) -> attempts.SignInAttempt:
    """Raises InvalidScope."""
    resource = token_requests.resource_of(cx, options.names, request["scope"])
    origin = Origin(request.address, str(client.id))
    return attempts.begin(cx, options, resource, request["username"], origin, now)


def _check(attempt: token_requests.TokenAttempt[attempts.SignInAttempt]) -> token_requests.PasswordCheck:
    request, sign_in = attempt.request, attempt.basis
    asker = sign_in.asker(request["username"])
    return token_requests.PasswordCheck(
        sign_in.password_hash, request["password"], asker, user_exists=sign_in.user_id is not None
    )


def _decide(
    cx: Connection,
    options: DirectoryOptions,
    attempt: token_requests.TokenAttempt[attempts.SignInAttempt],
    password_ok: bool,
    now: Instant,
) -> token_requests.TokenResponse:
    """Decide the sign-in, and issue its tokens (given 5.1, 5.2). Raises SignInRefused, InvalidClient."""
    user = attempts.finish(cx, options, attempt.basis, password_ok, now)
    client = msgspec.structs.replace(attempt.client, settings=clients.require_unchanged(cx, attempt.client))
    if not client.lets_sign_in(user):
        raise attempts.refused("client for other partitions")
    expires = now + client.refresh_seconds(options) * SECOND
    grant, refresh_token = tokens.open_grant(cx, user.id, client.id, attempt.basis.resource_id, now, expires)
    return token_requests.issue(cx, options, client, grant, refresh_token, now)


PASSWORD = token_requests.GrantType(("username", "password", "scope"), _look_up, _check, _decide, account="username")
