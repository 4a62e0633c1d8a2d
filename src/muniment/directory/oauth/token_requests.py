"""What every grant type shares: the token request, its phases (decision 0032), and the response."""

import base64
import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import entries, resources
from muniment.directory.entries.oauth_clients import Made
from muniment.directory.entries.resources import Resource
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import access, scopes, signed_tokens, tokens
from muniment.directory.oauth.access import AccessCache, Question
from muniment.directory.oauth.clients import Client, ClientProof, PublicClientCache
from muniment.directory.oauth.signing_keys import UnsignedToken
from muniment.directory.options import DirectoryNames, DirectoryOptions
from muniment.directory.refusals import AccessEnded, InvalidGrant, InvalidScope, UnknownResource
from muniment.directory.sign_in.line import Asker
from muniment.ground.caches import Cache
from muniment.ground.clock import SECOND, Instant
from muniment.ground.refusals import Overloaded, Refusal

B = TypeVar("B")


class TokenRequest(msgspec.Struct, frozen=True):
    """A token request (RFC 6749 3.2).

    ``address`` is the sender's network address, ``account`` the name of the user who signs in, if any, as the client
    wrote it. ``issuer`` names this directory in signed tokens; ``find_address`` knows the addresses of repositories.
    """

    grant_type: str
    client_id: str
    client_secret: str | None
    account: str | None
    parameters: Mapping[str, str]
    address: str
    assertion: str | None = None
    raw: ClientProof | None = None
    issuer: str = ""
    find_address: scopes.AddressFinder | None = None

    @property
    def proof(self) -> ClientProof:
        return ClientProof(self.client_id, self.client_secret, self.assertion, self.raw)

    def __getitem__(self, name: str) -> str:
        return self.parameters[name]


class PasswordCheck(msgspec.Struct, frozen=True):
    """A check at the gate. Without ``password_hash`` no password is right."""

    password_hash: str | None
    password: str
    asker: Asker
    user_exists: bool


_BEARER = "Bearer"
_HALF = 16


class TokenResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The response of the token endpoint (given 2.4). ``scope`` is there if the client asked otherwise (RFC 6749 5.1),
    ``issued_token_type`` after a token exchange (RFC 8693 2.2.1), and ``id_token`` after a sign-in with ``openid``.
    """

    access_token: str
    expires_in: int
    refresh_token: str | msgspec.UnsetType = msgspec.UNSET
    token_type: str
    scope: str | msgspec.UnsetType = msgspec.UNSET
    issued_token_type: str | msgspec.UnsetType = msgspec.UNSET
    id_token: str | msgspec.UnsetType = msgspec.UNSET

    def signed(self) -> "TokenResponse":
        """With its JWTs."""
        return self


class UnsignedResponse(TokenResponse, frozen=True, kw_only=True):
    """A response without its JWTs: to sign takes long, and is done when the transaction has ended."""

    access: UnsignedToken | None = None
    identity: UnsignedToken | None = None

    def signed(self) -> TokenResponse:
        fields = {name: getattr(self, name) for name in TokenResponse.__struct_fields__}
        if self.access is not None:
            fields["access_token"] = self.access.sign()
        if self.identity is not None:
            fields["id_token"] = self.identity.sign({"at_hash": _half_hash(fields["access_token"])})
        return TokenResponse(**fields)


def _half_hash(text: str) -> str:
    """The left half of the digest that the algorithm RS256 uses, in base64url (OpenID Connect Core 3.1.3.6)."""
    digest = hashlib.sha256(text.encode()).digest()[:_HALF]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class SignedIn(NamedTuple):
    """For a security event: who signs in, and to which resource, if any."""

    user: str
    resource: str | None


class TokenAttempt(msgspec.Struct, Generic[B], frozen=True):
    """``basis`` is what its grant type has looked up, ``signs_in`` the user whose word it found there. ``generation``
    is the directory's, from the same snapshot.
    """

    request: TokenRequest
    client: Client
    basis: B
    signs_in: SignedIn | None = None
    generation: str = ""


class AttemptQuestion(NamedTuple):
    """All of a request on which its look-up depends, if neither an assertion nor the parameter ``resource`` is sent."""

    grant_type: str
    client_id: str
    shows_secret: bool
    scope: str | None


AttemptCache: TypeAlias = Cache[AttemptQuestion, TokenAttempt[Any]]
"""Look-ups for joint decisions, each with its generation: of clients whose secret was made by a computer."""


class JointRequest(NamedTuple):
    """Without an ``attempt`` the joint decision itself must find the client."""

    request: TokenRequest
    attempt: TokenAttempt[Any] | None = None


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
    names who signs in, and ``signs_in`` says who has done so before, in a browser; without both nobody does, and no
    security event is left. A type without a password check may have ``decide_each`` instead, for several requests at
    one time. ``made`` is how its grants are made, by which a client's settings deny it; None if it makes none.
    ``acts_as`` says as which user the client then acts, if they exist, and ``asked`` for what, both for security
    events.
    """

    parameters: tuple[str, ...]
    look_up: Callable[[Connection, DirectoryOptions, TokenRequest, Client, Instant], B] | None = None
    check: Callable[[TokenAttempt[B]], PasswordCheck] | None = None
    decide: Callable[[Connection, DirectoryOptions, TokenAttempt[B], bool, Instant], TokenResponse] | None = None
    account: str | None = None
    decide_each: JointGrant | None = None
    made: Made | None = None
    acts_as: Callable[[B], str | None] | None = None
    asked: Callable[[B], scopes.RequestedScope] | None = None
    signs_in: Callable[[Connection, DirectoryOptions, B], SignedIn | None] | None = None


def scope_of(
    cx: Connection, options: DirectoryOptions, request: TokenRequest, client: Client, made: Made
) -> scopes.RequestedScope:
    """What a token request asks for. Raises InvalidScope, InvalidTarget."""
    parameters = request.parameters
    return scopes.read(
        *(cx, options.names, client.settings, made),
        *(parameters.get("scope"), parameters.get("resource"), request.find_address),
    )


def require_user(
    cx: Connection,
    options: DirectoryOptions,
    client: Client,
    made: Made,
    question: Question,
    granted: Collection[str],
    sentence: str,
) -> access.Allowed:
    """The user for whom a grant that they have allowed may be opened now, with these scopes, and its resource. Raises
    InvalidGrant with ``sentence``.
    """
    try:
        resource, user = allowed = access.require(cx, question, options.names)
        scopes.require_may_have(options.names, client.settings, made, resource, granted)
    except (AccessEnded, InvalidScope, UnknownResource) as refusal:
        raise InvalidGrant(sentence) from refusal
    if not client.lets_sign_in(user):
        raise InvalidGrant(sentence)
    return allowed


def signed_in(cx: Connection, names: DirectoryNames, user_id: int, resource_id: str) -> SignedIn | None:
    """``resource_id`` is that of a grant. None for a user or a resource that is gone."""
    user = entries.by_id(cx, user_id)
    try:
        resource = resources.by_id(cx, resource_id) if resource_id else None
    except UnknownResource:
        return None
    shown = None if resource is None else resources.shown_name(names, resource)
    return None if user is None else SignedIn(entries.shown_id(names, user), shown)


def issue_another(
    cx: Connection,
    options: DirectoryOptions,
    grants: Sequence[tuple[TokenRequest, Client, tokens.LockedGrant]],
    now: Instant,
) -> list[TokenResponse]:
    """There is no new refresh token. Raises what ``issue_each`` raises."""
    if not grants:
        return []
    signing = signed_tokens.resources_that_sign(cx, grants[0][2].generation)
    tokens.count_another(cx, [locked_grant for _, _, locked_grant in grants])
    orders = [
        TokenOrder(request, client, locked_grant.grant, signing.get(locked_grant.grant.resource_id))
        for request, client, locked_grant in grants
    ]
    return issue_each(cx, options, orders, now)


def issue(
    cx: Connection,
    options: DirectoryOptions,
    request: TokenRequest,
    client: Client,
    grant: tokens.Grant,
    refresh_token: str | None,
    now: Instant,
    told: str = "",
    *,
    resource: Resource | None = None,
) -> TokenResponse:
    """The client may be one that gets no refresh tokens. ``told`` is what ``scopes.RequestedScope`` has to tell.
    Without the grant's ``resource``, it is read. Raises Overloaded while it changes, if its tokens are signed, and what
    ``issue_each`` raises.
    """
    if resource is None and grant.resource_id:
        resource = resources.by_id(cx, grant.resource_id)
    if resource is not None:
        resource = hold_signing(cx, resource)
    (response,) = issue_each(cx, options, [TokenOrder(request, client, grant, resource)], now)
    return msgspec.structs.replace(
        response,
        refresh_token=refresh_token if refresh_token and client.settings.allow_refresh_token else msgspec.UNSET,
        scope=told or msgspec.UNSET,
    )


def hold_signing(cx: Connection, resource: Resource) -> Resource:
    """One whose tokens are signed is read anew, and stays so until the commit. Raises Overloaded while it changes.

    Whoever makes its tokens opaque finds the new grant, and ends it, or was there first. To wait for them, with locks
    that they want, could take for ever.
    """
    if not signed_tokens.signs(resource):
        return resource
    if not resources.hold_resources(cx, {resource.id}):
        raise Overloaded("The resource changes at this moment.", 1)
    return resources.by_id(cx, resource.id)


class TokenOrder(NamedTuple):
    """An access token to issue. The ``resource`` is the grant's, held until the commit if its tokens are signed; then
    the ``user`` is read if they are not here.
    """

    request: TokenRequest
    client: Client
    grant: tokens.Grant
    resource: Resource | None
    user: Entry | None = None


def issue_each(
    cx: Connection, options: DirectoryOptions, orders: Sequence[TokenOrder], now: Instant
) -> list[TokenResponse]:
    """Each token expires with its grant at the latest. Raises what ``signed_tokens.prepare_tokens`` raises."""
    expiries: list[Instant] = []
    opaque: list[int] = []
    signed: dict[int, signed_tokens.ToSign] = {}
    for place, (request, client, grant, resource, user) in enumerate(orders):
        expires = min(now + client.access_seconds(options) * SECOND, grant.expires)
        if resource is not None and signed_tokens.signs(resource):
            expires = min(expires, now + signed_tokens.seconds(resource) * SECOND)
            party = signed_tokens.Party(request.issuer, request.client_id)
            signed[place] = signed_tokens.ToSign(party, grant, resource, expires, user)
        else:
            opaque.append(place)
        expiries.append(expires)
    texts = iter(tokens.add_access_tokens(cx, [(orders[place].grant, expiries[place]) for place in opaque], now))
    unsigned = iter(signed_tokens.prepare_tokens(cx, options.names, list(signed.values()), now) if signed else ())
    issued: list[TokenResponse] = []
    for place, expires in enumerate(expiries):
        seconds = (expires - now) // SECOND
        if place in signed:
            issued.append(
                UnsignedResponse(access_token="", expires_in=seconds, token_type=_BEARER, access=next(unsigned))
            )
        else:
            issued.append(TokenResponse(access_token=next(texts), expires_in=seconds, token_type=_BEARER))
    return issued
