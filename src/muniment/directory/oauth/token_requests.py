"""What does every grant share? The token request, its phases, the resource of its scope, the tokens it gets.

A token request goes through the same phases for every grant (decision 0033). A grant fills in its part of them: the
parameters it needs, what it looks up, which password is checked, and how it is decided.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import SECOND, Instant
from muniment.directory import resources
from muniment.directory.names import resource_name
from muniment.directory.oauth import tokens
from muniment.directory.oauth.access import AccessMemory
from muniment.directory.oauth.clients import Client
from muniment.directory.oauth.tokens import Grant
from muniment.directory.options import DirectoryNames, DirectoryOptions
from muniment.directory.refusals import InvalidScope, UnknownResource
from muniment.directory.resources import Resource
from muniment.directory.sign_in.line import Asker

B = TypeVar("B")


class TokenRequest(msgspec.Struct, frozen=True):
    """What a token request says (RFC 6749 3.2), and the address it came from. It has the parameters its grant needs.

    ``account`` is the user who signs in, as the client names them; None where nobody signs in.
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
    """A user's password to be checked at the gate; a user who does not exist costs the same."""

    stored: str | None
    password: str
    asker: Asker
    user_exists: bool


class TokenResponse(msgspec.Struct, frozen=True):
    """What the token endpoint replies (given 2.4), ready to encode; a refresh gives no refresh token (given 4.1)."""

    access_token: str
    expires_in: int
    refresh_token: str | msgspec.UnsetType
    token_type: str


@dataclass(frozen=True)
class TokenAttempt(Generic[B]):
    """A token request under way, with its client and with the basis that its grant has looked up."""

    request: TokenRequest
    client: Client
    basis: B


@dataclass(frozen=True)
class GrantType(Generic[B]):
    """One way to ask for tokens (RFC 6749 4), which fills in its part of the phases.

    ``parameters`` are those that the request must have. ``look_up`` writes nothing. ``check`` gives the password to be
    checked at the gate, if there is one. ``decide`` is told whether it was right. ``account`` is the parameter that
    names the user who signs in, which leaves a security event.
    """

    parameters: tuple[str, ...]
    look_up: Callable[[Connection, DirectoryOptions, TokenRequest, Client, Instant], B]
    check: Callable[[TokenAttempt[B]], PasswordCheck | None]
    decide: Callable[[Connection, DirectoryOptions, AccessMemory, TokenAttempt[B], bool, Instant], TokenResponse]
    account: str | None = None


def resource_of(cx: Connection, names: DirectoryNames, scope: str) -> Resource:
    """Return the activated resource that a scope names. Raises InvalidScope."""
    try:
        resource = resources.find(cx, names, resource_name(scope))
    except UnknownResource as unknown:
        raise InvalidScope("The scope names no resource.") from unknown
    if resource.activated is None:
        raise InvalidScope("The resource of this scope has not been activated.")
    return resource


def issue(
    cx: Connection, options: DirectoryOptions, grant: Grant, refresh_token: str | msgspec.UnsetType, now: Instant
) -> TokenResponse:
    """Issue an access token of a grant, which it does not outlive."""
    expires = min(now + options.access_token_seconds * SECOND, grant.expires)
    access_token = tokens.add_access_token(cx, grant, now, expires)
    return TokenResponse(access_token, (expires - now) // SECOND, refresh_token, "Bearer")
