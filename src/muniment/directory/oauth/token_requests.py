"""What every grant type shares: the token request, its phases (decision 0032), the resource of a scope, and the
response.
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
    """A token request (RFC 6749 3.2).

    ``address`` is the sender's network address, ``account`` the name of the user who signs in, if any, as the client
    wrote it.
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
    """A check at the gate. Without ``password_hash`` no password is right."""

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
    """``basis`` is what its grant type has looked up."""

    request: TokenRequest
    client: Client
    basis: B


class JointRequest(NamedTuple):
    """Without a ``client`` the joint decision itself must find it."""

    request: TokenRequest
    client: Client | None


JointGrant: TypeAlias = Callable[
    [Connection, DirectoryOptions, AccessCache, PublicClientCache, Sequence[JointRequest], Instant, bool],
    list[TokenResponse | Refusal | None],
]
"""A joint decision about token requests (``database.transactions``), about one if its last argument is true."""


@dataclass(frozen=True)
class GrantType(Generic[B]):
    """One grant type of the token endpoint (RFC 6749 4).

    ``parameters`` are those that a request must have. ``look_up`` writes nothing. ``check`` returns the password check
    for the gate. ``decide`` is told whether the password was right, and issues the tokens. The parameter ``account``
    names who signs in; without it nobody does, and no security event is left. A type that checks no password has
    ``decide_each`` instead of the three, for several requests at one time.
    """

    parameters: tuple[str, ...]
    look_up: Callable[[Connection, DirectoryOptions, TokenRequest, Client, Instant], B] | None = None
    check: Callable[[TokenAttempt[B]], PasswordCheck] | None = None
    decide: Callable[[Connection, DirectoryOptions, TokenAttempt[B], bool, Instant], TokenResponse] | None = None
    account: str | None = None
    decide_each: JointGrant | None = None


def resource_of(cx: Connection, names: DirectoryNames, scope: str) -> resources.Resource:
    """Activated, by the name or identifier in the scope. Raises InvalidScope."""
    name = resource_name(scope)
    try:
        resource = _find_resource(cx, names, name)
    except UnknownResource as unknown:
        raise InvalidScope("The scope names no resource.") from unknown
    if resource.activated is None:
        raise InvalidScope("The resource of this scope has not been activated.")
    if not resource.authentication_enabled:
        raise InvalidScope("Nobody can sign in to the resource of this scope now.")
    return resource


def _find_resource(cx: Connection, names: DirectoryNames, name: str) -> resources.Resource:
    try:
        return resources.find(cx, names, name)
    except UnknownResource:
        return resources.by_id(cx, name)


def issue_another(
    cx: Connection, options: DirectoryOptions, grants: Sequence[tuple[Client, tokens.LockedGrant]], now: Instant
) -> list[TokenResponse]:
    """The token expires with the grant at the latest. There is no new refresh token."""
    expiries = [
        (locked_grant, min(now + client.access_seconds(options) * SECOND, locked_grant.grant.expires))
        for client, locked_grant in grants
    ]
    access_tokens = tokens.add_another(cx, expiries, now)
    return [
        TokenResponse(access_token=access_token, expires_in=(expires - now) // SECOND, token_type=_BEARER)
        for access_token, (_, expires) in zip(access_tokens, expiries, strict=True)
    ]


def issue(
    cx: Connection, options: DirectoryOptions, client: Client, grant: tokens.Grant, refresh_token: str, now: Instant
) -> TokenResponse:
    """The token expires with the grant at the latest. The client may be one that gets no refresh tokens."""
    expires = min(now + client.access_seconds(options) * SECOND, grant.expires)
    return TokenResponse(
        access_token=tokens.add_access_token(cx, grant, now, expires),
        expires_in=(expires - now) // SECOND,
        refresh_token=refresh_token if client.settings.allow_refresh_token else msgspec.UNSET,
        token_type=_BEARER,
    )
