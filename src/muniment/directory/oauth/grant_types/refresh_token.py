"""The refresh grant: a client sends the refresh token of a living grant (given 4.1, RFC 6749 6).

Where a refresh token has successors, each serves once (RFC 9700 4.14.2). An answer may be lost: so for a few seconds
the same token gets the same successor again. Any later use says that two have the token, and ends the grant (decision
0120).
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory import version_stamps
from muniment.directory.oauth import access, clients, scopes, token_requests, tokens
from muniment.directory.oauth.clients import Client, PublicClientCache
from muniment.directory.oauth.token_requests import GrantType, JointRequest, TokenRequest, TokenResponse
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import (
    AccessEnded,
    InvalidClient,
    InvalidGrant,
    InvalidScope,
    InvalidTarget,
    UnknownResource,
    UnparseableToken,
    UsedAgain,
)
from muniment.ground.clock import SECOND, Instant
from muniment.ground.refusals import Overloaded, Refusal

SAME_ANSWER_SECONDS = 10

_REFUSED = "The refresh token is not, or no longer, valid for this client."
_USED_AGAIN = "The refresh token was used before. The sign-in that it came from has ended."


def _decide_each(
    cx: Connection,
    options: DirectoryOptions,
    memory: access.AccessCache,
    remembered_clients: PublicClientCache,
    requests: Sequence[JointRequest],
    now: Instant,
    alone: bool,
) -> list[TokenResponse | Refusal | None]:
    """Each outcome is a response with another access token, a refusal, or None.

    The refusals are InvalidClient, InvalidGrant, InvalidScope and InvalidTarget for more than was granted, and
    Overloaded while the grant has all its live access tokens. None means that an earlier one of these requests
    refreshes the same grant, that another decision has locked it, or that it does not exist: decide again with
    ``alone``, which never gives None.
    """
    outcomes: list[TokenResponse | Refusal | None] = [None] * len(requests)
    places: dict[bytes, int] = {}
    for place, joint_request in enumerate(requests):
        try:
            places.setdefault(_digest(cx, joint_request.request["refresh_token"]), place)
        except InvalidGrant as refusal:
            outcomes[place] = _client_refusal(cx, remembered_clients, joint_request) or refusal
    grants_by_digest = tokens.lock_grants(cx, list(places), options.live_tokens, now, wait=alone)
    grants_by_place: dict[int, tuple[TokenRequest, Client, tokens.LockedGrant]] = {}
    told_by_place: dict[int, str] = {}
    for digest, place in places.items():
        locked_grant = grants_by_digest.get(digest)
        if locked_grant is None:
            if alone:
                outcomes[place] = _answer_former(cx, options, memory, remembered_clients, requests[place], now)
            continue
        try:
            client = _client(cx, remembered_clients, requests[place], locked_grant.generation)
            request = requests[place].request
            locked_grant, told_by_place[place] = _require(cx, options, memory, request, client, locked_grant, now)
            grants_by_place[place] = request, client, locked_grant
        except Refusal as refusal:
            outcomes[place] = refusal
    answers = token_requests.issue_another(cx, options, list(grants_by_place.values()), now)
    for (place, (_, _, locked_grant)), response in zip(grants_by_place.items(), answers, strict=True):
        if locked_grant.has_successors:
            successor, newest = tokens.successor(cx, requests[place].request["refresh_token"])
            tokens.rotate(cx, locked_grant.grant, newest, now)
            response = msgspec.structs.replace(response, refresh_token=successor)
        outcomes[place] = _telling(response, told_by_place[place])
    return outcomes


def _answer_former(
    cx: Connection,
    options: DirectoryOptions,
    memory: access.AccessCache,
    remembered_clients: PublicClientCache,
    joint_request: JointRequest,
    now: Instant,
) -> TokenResponse | Refusal:
    """To a token that serves no grant now, but may have served one before it had a successor."""
    text = joint_request.request["refresh_token"]
    try:
        locked_grant = tokens.lock_family(cx, tokens.parse(cx, text).family, options.live_tokens, now)
        generation = version_stamps.read_generation(cx) if locked_grant is None else locked_grant.generation
        client = _client(cx, remembered_clients, joint_request, generation)
        if locked_grant is None or not locked_grant.grant.alive(now) or locked_grant.grant.client_id != client.id:
            return InvalidGrant(_REFUSED)
        successor = tokens.successor_of_digest(cx, text, locked_grant.newest)
        is_late = now >= (locked_grant.rotated or 0) + SAME_ANSWER_SECONDS * SECOND
        if successor is None or is_late:
            tokens.end_grant(cx, locked_grant.grant.id, now)
            return UsedAgain(_USED_AGAIN)
        locked_grant, told = _require(cx, options, memory, joint_request.request, client, locked_grant, now)
    except Refusal as refusal:
        return refusal
    (response,) = token_requests.issue_another(cx, options, [(joint_request.request, client, locked_grant)], now)
    return _telling(msgspec.structs.replace(response, refresh_token=successor), told)


def _telling(response: TokenResponse, told: str) -> TokenResponse:
    return msgspec.structs.replace(response, scope=told) if told else response


def _client(cx: Connection, memory: PublicClientCache, joint_request: JointRequest, generation: str) -> Client:
    """Raises InvalidClient."""
    if joint_request.attempt is not None:
        return joint_request.attempt.client
    client_id = joint_request.request.client_id
    return memory.recall(client_id, generation) or clients.find(cx, memory, joint_request.request.proof)


def _client_refusal(cx: Connection, memory: PublicClientCache, joint_request: JointRequest) -> InvalidClient | None:
    """A refusal of the client goes before one of the token."""
    try:
        _client(cx, memory, joint_request, version_stamps.read_generation(cx))
    except InvalidClient as refusal:
        return refusal
    return None


def _digest(cx: Connection, refresh_token: str) -> bytes:
    try:
        token = tokens.parse(cx, refresh_token)
    except UnparseableToken as unparseable:
        raise InvalidGrant(_REFUSED) from unparseable
    if token.kind != "refresh":
        raise InvalidGrant(_REFUSED)
    return token.digest


def _require(
    cx: Connection,
    options: DirectoryOptions,
    memory: access.AccessCache,
    request: TokenRequest,
    client: Client,
    locked_grant: tokens.LockedGrant,
    now: Instant,
) -> tuple[tokens.LockedGrant, str]:
    """Return the grant with the scopes that the request leaves it, and what the response has to tell of them."""
    grant = locked_grant.grant
    if not grant.alive(now) or grant.client_id != client.id or not client.settings.allow_refresh_token:
        raise InvalidGrant(_REFUSED)
    try:
        if grant.resource_id:
            access.decide(cx, memory, options.names, grant.question, locked_grant.generation)
        else:
            access.require(cx, grant.question, options.names)
    except (AccessEnded, UnknownResource) as refusal:
        raise InvalidGrant(_REFUSED) from refusal
    if locked_grant.full_until:
        # No token is issued for more than the client's ``access_seconds``. If ``full_until`` is later than that, it
        # comes from an earlier value of the setting, or from a clock that was wrong.
        seconds = min(-(-(locked_grant.full_until - now) // SECOND), client.access_seconds(options))
        raise Overloaded("This sign-in has as many live access tokens as it may have: use one of those.", seconds)
    narrowed, told = _narrowed(cx, options, request, client, grant)
    return locked_grant._replace(grant=narrowed), told


def _narrowed(
    cx: Connection, options: DirectoryOptions, request: TokenRequest, client: Client, grant: tokens.Grant
) -> tuple[tokens.Grant, str]:
    """What is left out is as it was granted (RFC 6749 6, RFC 8707 2.2). Raises InvalidScope, InvalidTarget."""
    scope, target = request.parameters.get("scope"), request.parameters.get("resource")
    if scope is None and target is None:
        return grant, ""
    granted = grant.scopes.split()
    as_granted = msgspec.structs.replace(
        client.settings,
        default_resource=grant.resource_id,
        default_scopes=tuple(scopes.spell_scope(options.names, each) for each in granted),
    )
    asked = scopes.read(cx, options.names, as_granted, grant.made, scope, target, request.find_address)
    if asked.resource_id != grant.resource_id and target is not None:
        raise InvalidTarget("The refresh token was issued for another resource, or for none.")
    if asked.resource_id != grant.resource_id or not set(asked.scopes) <= set(granted):
        raise InvalidScope("The scope is not the one the refresh token was issued for, or a part of it.")
    if scope is None or len(asked.scopes) == len(granted):
        return grant, asked.told if scope is not None else ""
    spelt = scopes.spell(options.names, asked.resource, asked.scopes)
    return msgspec.structs.replace(grant, scopes=asked.text, narrowed=True), spelt


REFRESH_TOKEN = GrantType[None](("refresh_token",), decide_each=_decide_each)
