"""The client credentials grant: a client acts for itself (RFC 6749 4.4).

Its own entry is the user of the token. There is no refresh token.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory import version_stamps
from muniment.directory.entries import credentials, entries, resources
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import access, clients, scopes, signed_tokens, token_requests, tokens
from muniment.directory.oauth.token_requests import JointRequest, TokenAttempt, TokenOrder, TokenResponse
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import UnauthorizedClient
from muniment.ground.clock import SECOND, Instant
from muniment.ground.refusals import Refusal


class _Basis(NamedTuple):
    """What is asked for, the client's own entry, and whether the client is in the access role of the resource."""

    scope: scopes.RequestedScope
    entry: Entry | None
    is_admitted: bool

    @property
    def signing_resource(self) -> str | None:
        resource = self.scope.resource
        return resource.id if resource is not None and signed_tokens.signs(resource) else None


def _look_up(
    cx: Connection,
    options: DirectoryOptions,
    request: token_requests.TokenRequest,
    client: clients.Client,
    _now: Instant,
) -> _Basis:
    """Raises UnauthorizedClient, InvalidScope, InvalidTarget."""
    if not client.confidential:
        raise UnauthorizedClient("Only a confidential client gets a token for itself.")
    return _basis(cx, client, token_requests.scope_of(cx, options, request, client, "client_credentials"))


def _basis(cx: Connection, client: clients.Client, scope: scopes.RequestedScope) -> _Basis:
    is_admitted = scope.resource is None or resources.admits(cx, scope.resource.id, client.id)
    return _Basis(scope, entries.by_id(cx, client.id), is_admitted)


def _decide_each(
    cx: Connection,
    options: DirectoryOptions,
    _memory: access.AccessCache,
    _remembered_clients: clients.PublicClientCache,
    requests: Sequence[JointRequest],
    now: Instant,
    alone: bool,
) -> list[TokenResponse | Refusal | None]:
    """Under the generation in which a request was looked up, nothing that was found then has changed.

    The refusals are InvalidClient, UnauthorizedClient, InvalidScope and InvalidTarget. None means that something has
    changed or changes now: decide again with ``alone``, which never gives None.
    """
    attempts: list[TokenAttempt[_Basis]] = [joint.attempt for joint in requests if joint.attempt is not None]
    held_clients = credentials.hold_users(cx, {attempt.client.id for attempt in attempts})
    # Whoever waits for a client's row below must hold no resource.
    signing = {attempt.basis.signing_resource for attempt in attempts if attempt.client.id in held_clients}
    held_resources = resources.hold_resources(cx, {each for each in signing if each})
    generation = version_stamps.read_generation(cx)
    outcomes: list[TokenResponse | Refusal | None] = [None] * len(attempts)
    ready: dict[int, TokenAttempt[_Basis]] = {}
    for place, attempt in enumerate(attempts):
        is_held = attempt.client.id in held_clients and attempt.basis.signing_resource in held_resources | {None}
        try:
            if attempt.generation == generation and is_held:
                ready[place] = _require_admitted(attempt)
            elif alone:
                ready[place] = _require_admitted(_as_now(cx, options, attempt))
        except Refusal as refusal:
            outcomes[place] = refusal
    drafts = [_draft(options, attempt, now) for attempt in ready.values()]
    orders = [
        TokenOrder(attempt.request, attempt.client, grant, attempt.basis.scope.resource, attempt.basis.entry)
        for attempt, grant in zip(ready.values(), tokens.open_grants(cx, drafts, now), strict=True)
    ]
    for place, response in zip(ready, token_requests.issue_each(cx, options, orders, now), strict=True):
        told = ready[place].basis.scope.told
        outcomes[place] = msgspec.structs.replace(response, scope=told) if told else response
    return outcomes


def _as_now(cx: Connection, options: DirectoryOptions, attempt: TokenAttempt[_Basis]) -> TokenAttempt[_Basis]:
    """The client, locked, and what it asks for, as they are now. Raises InvalidClient, UnauthorizedClient,
    InvalidScope, Overloaded.
    """
    client = msgspec.structs.replace(attempt.client, settings=clients.require_unchanged(cx, attempt.client))
    clients.require_grant(client.settings, "client_credentials")
    scope = scopes.as_now(cx, options.names, client.settings, "client_credentials", attempt.basis.scope)
    if scope.resource is not None:
        scope = msgspec.structs.replace(scope, resource=token_requests.hold_signing(cx, scope.resource))
    return msgspec.structs.replace(attempt, client=client, basis=_basis(cx, client, scope))


def _require_admitted(attempt: TokenAttempt[_Basis]) -> TokenAttempt[_Basis]:
    """The client must be in the access role (given 5.2). Raises UnauthorizedClient."""
    if not attempt.basis.is_admitted:
        raise UnauthorizedClient("The client is not in the access role of this resource.")
    return attempt


def _draft(options: DirectoryOptions, attempt: TokenAttempt[_Basis], now: Instant) -> tokens.Grant:
    client, scope = attempt.client, attempt.basis.scope
    expires = now + client.access_seconds(options) * SECOND
    return tokens.Grant(0, client.id, client.id, scope.resource_id, expires, None, scope.text, "client_credentials")


CLIENT_CREDENTIALS = token_requests.GrantType[_Basis](
    (),
    _look_up,
    decide_each=_decide_each,
    account="client_id",
    made="client_credentials",
    asked=lambda basis: basis.scope,
)
