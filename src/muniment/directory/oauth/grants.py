"""Which grant types does the token endpoint offer?

Usually ``look_up`` finds a request's client, and what its type needs; the type's ``check`` returns the password check
that the caller must run; ``decide`` decides.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory import version_stamps
from muniment.directory.entries.oauth_clients import GRANT_TYPES
from muniment.directory.oauth import clients
from muniment.directory.oauth.grant_types.authorization_code import AUTHORIZATION_CODE
from muniment.directory.oauth.grant_types.client_credentials import CLIENT_CREDENTIALS
from muniment.directory.oauth.grant_types.device_code import DEVICE_CODE
from muniment.directory.oauth.grant_types.password import PASSWORD
from muniment.directory.oauth.grant_types.refresh_token import REFRESH_TOKEN
from muniment.directory.oauth.grant_types.token_exchange import TOKEN_EXCHANGE
from muniment.directory.oauth.token_requests import (
    AttemptCache,
    AttemptQuestion,
    GrantType,
    TokenAttempt,
    TokenRequest,
    TokenResponse,
)
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import UnsupportedGrantType
from muniment.directory.sign_in import passwords
from muniment.ground.clock import Instant

GRANTS: Mapping[str, GrantType[Any]] = {
    "password": PASSWORD,
    "refresh_token": REFRESH_TOKEN,
    "client_credentials": CLIENT_CREDENTIALS,
    "authorization_code": AUTHORIZATION_CODE,
    GRANT_TYPES["device_code"]: DEVICE_CODE,
    GRANT_TYPES["token_exchange"]: TOKEN_EXCHANGE,
}
"""A new grant type is a module in ``grant_types`` and a row in this table."""


def find(grant_type: str) -> GrantType[Any]:
    """Raises UnsupportedGrantType."""
    if grant_type not in GRANTS:
        raise UnsupportedGrantType(f"The grant types offered are {' and '.join(GRANTS)}.")
    return GRANTS[grant_type]


def recall_attempt(attempts: AttemptCache, request: TokenRequest, generation: str) -> TokenAttempt[Any] | None:
    """What ``look_up`` has found for an equal request. Who sends this one is not checked yet, as after ``look_up``."""
    question = _question(request)
    found = None if question is None else attempts.recall(question, generation)
    return None if found is None else msgspec.structs.replace(found, request=request)


def remember_attempt(attempts: AttemptCache, attempt: TokenAttempt[Any]) -> None:
    """For ``recall_attempt``, once the client has shown its secret, if a computer made that."""
    question, secret_hash = _question(attempt.request), attempt.client.secret_hash
    if question is None or not attempt.generation or secret_hash is None or not passwords.is_made(secret_hash):
        return
    if attempts.recall(question, attempt.generation) is not None:
        return
    weight = _ATTEMPT + len(msgspec.json.encode((question, attempt.client, attempt.basis)))
    attempts.keep(question, msgspec.structs.replace(attempt, request=_NO_REQUEST), weight, attempt.generation)


def look_up(
    cx: Connection,
    options: DirectoryOptions,
    memory: clients.PublicClientCache,
    request: TokenRequest,
    now: Instant,
) -> TokenAttempt[Any]:
    """Writes nothing. Raises InvalidClient, UnsupportedGrantType, UnauthorizedClient, and the refusals of the grant
    type.
    """
    client = clients.find(cx, memory, request.proof)
    grant = find(request.grant_type)
    if grant.made is not None:
        clients.require_grant(client.settings, grant.made)
    basis = None if grant.look_up is None else grant.look_up(cx, options, request, client, now)
    signs_in = None if grant.signs_in is None else grant.signs_in(cx, options, basis)
    generation = "" if grant.decide_each is None else version_stamps.read_generation(cx)
    return TokenAttempt(request, client, basis, signs_in, generation)


def decide(
    cx: Connection, options: DirectoryOptions, attempt: TokenAttempt[Any], password_ok: bool, now: Instant
) -> TokenResponse:
    """Raises the refusals of the grant type."""
    decision = find(attempt.request.grant_type).decide
    assert decision is not None  # noqa: S101 - all other grant types decide jointly
    return decision(cx, options, attempt, password_ok, now)


_ATTEMPT = 2000
"""About how many bytes a remembered attempt takes beside what is in its texts."""
_LONGEST_QUESTION = 1000
_NO_REQUEST = TokenRequest("", "", None, None, {}, "")


def _question(request: TokenRequest) -> AttemptQuestion | None:
    # Without a look-up of the grant type the client is all that was found.
    scope = None if find(request.grant_type).look_up is None else request.parameters.get("scope")
    if request.assertion is not None or "resource" in request.parameters:
        return None
    if len(request.client_id) + len(scope or "") > _LONGEST_QUESTION:
        return None
    return AttemptQuestion(request.grant_type, request.client_id, bool(request.client_secret), scope)
