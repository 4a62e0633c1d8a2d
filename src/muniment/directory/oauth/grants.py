"""Which grants does the token endpoint offer? One row each, and what is decided before and after the gate."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.directory.oauth import clients
from muniment.directory.oauth.access import AccessMemory
from muniment.directory.oauth.grant_types.password import PASSWORD
from muniment.directory.oauth.grant_types.refresh_token import REFRESH_TOKEN
from muniment.directory.oauth.token_requests import (
    GrantType,
    PasswordCheck,
    TokenAttempt,
    TokenRequest,
    TokenResponse,
)
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import UnsupportedGrantType

GRANTS: Mapping[str, GrantType[Any]] = {
    "password": PASSWORD,
    "refresh_token": REFRESH_TOKEN,
}
"""Every grant by its ``grant_type``: a new one is a module in ``grant_types`` and a row here."""


def find(grant_type: str) -> GrantType[Any]:
    """Return the grant of that name. Raises UnsupportedGrantType."""
    if grant_type not in GRANTS:
        raise UnsupportedGrantType(f"The grant types offered are {' and '.join(GRANTS)}.")
    return GRANTS[grant_type]


def look_up(cx: Connection, options: DirectoryOptions, request: TokenRequest, now: Instant) -> TokenAttempt[Any]:
    """Look up who asks for what: the client, then what the grant rests on. It writes nothing.

    Raises InvalidClient, and what the grant raises.
    """
    client = clients.find(cx, request.client_id, request.client_secret)
    return TokenAttempt(request, client, find(request.grant_type).look_up(cx, options, request, client, now))


def check(attempt: TokenAttempt[Any]) -> PasswordCheck | None:
    """Return the user's password, which is to be checked at the gate; None for a grant without one."""
    return find(attempt.request.grant_type).check(attempt)


def decide(
    cx: Connection,
    options: DirectoryOptions,
    memory: AccessMemory,
    attempt: TokenAttempt[Any],
    password_ok: bool,
    now: Instant,
) -> TokenResponse:
    """Decide a token request whose client has authenticated. Raises what the grant raises."""
    return find(attempt.request.grant_type).decide(cx, options, memory, attempt, password_ok, now)
