"""What every grant type shares: the token request, its phases, the resource of a scope, and the response.

A token request goes through phases (decision 0033).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import resources
from muniment.directory.entries.names import resource_name
from muniment.directory.oauth import tokens
from muniment.directory.oauth.access import AccessCache
from muniment.directory.oauth.clients import Client, PublicClientCache
from muniment.directory.options import DirectoryNames, DirectoryOptions
from muniment.directory.refusals import InvalidScope, UnknownResource
from muniment.directory.sign_in.line import Asker
from muniment.ground.clock import SECOND, Instant
from muniment.ground.refusals import Refusal

B = TypeVar("B")


class TokenRequest(msgspec.Struct, frozen=True):
    """A token request (RFC 6749 3.2), with all parameters that its grant type needs.

    ``address`` is the network address of the sender. ``account`` is the name of the user who signs in, as the client
    wrote it. It is None if nobody signs in.
    """

    grant_type: str
    client_id: str
    client_secret: str | None
    account: str | None
    parameters: Mapping[str, str]
    address: str

    def __getitem__(self, name: str) -> str:
        return self.parameters[name]


class PasswordCheck(msgspec.Struct, frozen=True):
    """The check of a user's password at the gate. ``password_hash`` is None if no password can be right."""

    password_hash: str | None
    password: str
    asker: Asker
    user_exists: bool


_BEARER = "Bearer"


class TokenResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The response of the token endpoint (given 2.4). The response to a refresh holds no refresh token."""

    access_token: str
    expires_in: int
    refresh_token: str | msgspec.UnsetType = msgspec.UNSET
    token_type: str


@dataclass(frozen=True)
class TokenAttempt(Generic[B]):
    """A token request under way, with its client, and with what its grant type has looked up (``basis``)."""

    request: TokenRequest
    client: Client
    basis: B


class JointRequest(NamedTuple):
    """A token request for a joint decision. ``client`` is None if the decision itself must find the client."""

    request: TokenRequest
    client: Client | None


JointGrant: TypeAlias = Callable[
    [Connection, DirectoryOptions, AccessCache, PublicClientCache, Sequence[JointRequest], Instant, bool],
    list[TokenResponse | Refusal | None],
]
"""A joint decision about token requests (``database.transactions``). If its last argument is true, there is only one
request."""


@dataclass(frozen=True)
class GrantType(Generic[B]):
    """One grant type of the token endpoint (RFC 6749 4), with its part of the phases.

    ``parameters`` are the parameters that a request must have. ``look_up`` reads what the grant type needs, and writes
    nothing. ``check`` returns the password check for the gate. ``decide`` is told whether the password was right,
    decides the request, and issues the tokens. ``account`` is the parameter that names the user who signs in. It is
    None if nobody signs in; then a request leaves no security event. A grant type that checks no password has
    ``decide_each`` instead of the three functions: it reads everything, and decides several requests at one time.
    """

    parameters: tuple[str, ...]
    look_up: Callable[[Connection, DirectoryOptions, TokenRequest, Client, Instant], B] | None = None
    check: Callable[[TokenAttempt[B]], PasswordCheck] | None = None
    decide: Callable[[Connection, DirectoryOptions, TokenAttempt[B], bool, Instant], TokenResponse] | None = None
    account: str | None = None
    decide_each: JointGrant | None = None


def resource_of(cx: Connection, names: DirectoryNames, scope: str) -> resources.Resource:
    """Return the activated resource that a scope names, by its name or by its identifier. Raises InvalidScope."""
    name = resource_name(scope)
    try:
        resource = _find_resource(cx, names, name)
    except UnknownResource as unknown:
        raise InvalidScope("The scope names no resource.") from unknown
    if resource.activated is None:
        raise InvalidScope("The resource of this scope has not been activated.")
    return resource


def _find_resource(cx: Connection, names: DirectoryNames, name: str) -> resources.Resource:
    try:
        return resources.find(cx, names, name)
    except UnknownResource:
        return resources.by_id(cx, name)


def issue_another(
    cx: Connection, options: DirectoryOptions, grants: Sequence[tokens.LockedGrant], now: Instant
) -> list[TokenResponse]:
    """It expires with the grant at the latest. No refresh token is issued."""
    expiries = [
        (locked_grant, min(now + options.access_token_seconds * SECOND, locked_grant.grant.expires))
        for locked_grant in grants
    ]
    access_tokens = tokens.add_another(cx, expiries, now)
    return [
        TokenResponse(access_token=access_token, expires_in=(expires - now) // SECOND, token_type=_BEARER)
        for access_token, (_, expires) in zip(access_tokens, expiries, strict=True)
    ]


def issue(
    cx: Connection, options: DirectoryOptions, grant: tokens.Grant, refresh_token: str, now: Instant
) -> TokenResponse:
    """The token expires with the grant at the latest."""
    expires = min(now + options.access_token_seconds * SECOND, grant.expires)
    access_token = tokens.add_access_token(cx, grant, now, expires)
    seconds = (expires - now) // SECOND
    return TokenResponse(access_token=access_token, expires_in=seconds, refresh_token=refresh_token, token_type=_BEARER)
