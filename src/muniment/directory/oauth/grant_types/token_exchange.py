"""Token exchange: a client gets a token with which it acts as a user, or for one (RFC 8693, facts 3.1).

It may act as whom it could take a ticket for (decision 0111), which is asked again at each use. With the token of an
actor, the new token names them (``act``). There is no refresh token, and nobody is signed in.
"""

from typing import Final

import msgspec
from sqlalchemy.engine import Connection

from muniment.database.audit import Actor, acting
from muniment.directory import audit
from muniment.directory.entries import credentials, entries, resources
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import access, clients, scopes, token_requests, tokens
from muniment.directory.oauth.clients import Client
from muniment.directory.oauth.token_requests import GrantType, TokenAttempt, TokenRequest, TokenResponse
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import (
    AccessEnded,
    CannotImpersonate,
    DeadToken,
    InvalidScope,
    InvalidTarget,
    InvalidTokenRequest,
    UnauthorizedClient,
    UnparseableToken,
)
from muniment.directory.sign_in import impersonation
from muniment.ground.clock import SECOND, Instant

ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - the name of a kind
_JWT: Final = "urn:ietf:params:oauth:token-type:jwt"

_BAD_TOKEN = "The subject_token or actor_token is not valid for this client."  # noqa: S105 - a sentence


class _Basis(msgspec.Struct, frozen=True):
    """``user_id`` is that of nobody for an unknown user, whom the decision refuses as one whom the client may not be.

    ``until`` is when what it rests on expires, if it does; ``source_id`` is the grant of the subject's token, and
    ``actor_source_id`` that of the actor's.
    """

    scope: scopes.RequestedScope
    user_id: int
    shown_user: str | None
    until: Instant | None = None
    source_id: int | None = None
    actor_id: int | None = None
    actor_source_id: int | None = None

    @property
    def sources(self) -> list[int]:
        return [grant_id for grant_id in (self.source_id, self.actor_source_id) if grant_id is not None]


def _look_up(cx: Connection, options: DirectoryOptions, request: TokenRequest, client: Client, now: Instant) -> _Basis:
    """Raises InvalidTokenRequest, InvalidScope, InvalidTarget, UnauthorizedClient."""
    parameters = request.parameters
    if not client.confidential:
        raise UnauthorizedClient("Only a confidential client exchanges tokens.")
    if parameters.get("requested_token_type", ACCESS_TOKEN) != ACCESS_TOKEN:
        raise InvalidTokenRequest("Only access tokens are issued in exchange.")
    if "audience" in parameters:
        raise InvalidTarget("Name the resource by the parameter resource, or by the scope.")
    scope = token_requests.scope_of(cx, options, request, client, "token_exchange")
    if "openid" in scope.scopes:
        raise InvalidScope("An exchange signs nobody in: openid is not for it.")
    actor = _actor(cx, request, client, now)
    by_actor = () if actor is None else (actor.grant.user_id, actor.grant.id)
    kind = request["subject_token_type"]
    if kind == options.names.user_id_type:
        found = credentials.find(cx, options, request["subject_token"], bare=True)
        user = None if found is None else found.user
        shown = None if user is None else entries.shown_id(options.names, user)
        until = None if actor is None else actor.expires
        return _Basis(scope, impersonation.NOBODY if user is None else user.id, shown, until, None, *by_actor)
    if kind not in (ACCESS_TOKEN, _JWT):
        raise InvalidTokenRequest(f"The subject_token_type is {options.names.user_id_type} or {ACCESS_TOKEN}.")
    subject = _living(cx, request["subject_token"], now)
    own = client.settings.default_resource
    if subject.grant.client_id != client.id and not (own and subject.grant.resource_id == own):
        raise InvalidTokenRequest(_BAD_TOKEN)
    user = entries.by_id(cx, subject.grant.user_id)
    shown = None if user is None else entries.shown_id(options.names, user)
    until = min(each.expires for each in (subject, actor) if each is not None)
    return _Basis(scope, subject.grant.user_id, shown, until, subject.grant.id, *by_actor)


def _actor(cx: Connection, request: TokenRequest, client: Client, now: Instant) -> tokens.TokenState | None:
    """Whose token the client shows as the actor's: one that was issued to itself."""
    parameters = request.parameters
    if "actor_token" not in parameters and "actor_token_type" not in parameters:
        return None
    if parameters.get("actor_token_type") not in (ACCESS_TOKEN, _JWT) or "actor_token" not in parameters:
        raise InvalidTokenRequest(f"An actor_token comes with the actor_token_type {ACCESS_TOKEN}.")
    state = _living(cx, parameters["actor_token"], now)
    if state.grant.client_id != client.id:
        raise InvalidTokenRequest(_BAD_TOKEN)
    return state


def _living(cx: Connection, token: str, now: Instant) -> tokens.TokenState:
    """What came of an exchange is not exchanged again, so it ends with its source."""
    try:
        state = tokens.state_of(cx, token)
        state.require_alive(now)
    except (UnparseableToken, DeadToken) as refusal:
        raise InvalidTokenRequest(_BAD_TOKEN) from refusal
    if state.grant.made == "token_exchange":
        raise InvalidTokenRequest(_BAD_TOKEN)
    return state


def _decide(
    cx: Connection, options: DirectoryOptions, attempt: TokenAttempt[_Basis], _password_ok: bool, now: Instant
) -> TokenResponse:
    """Raises InvalidClient, UnauthorizedClient, InvalidScope, InvalidTarget, InvalidTokenRequest, CannotImpersonate."""
    basis = attempt.basis
    # Whatever ends a user's or a client's sessions locks these rows, in this order.
    credentials.lock(cx, basis.user_id, shared=True)
    client = msgspec.structs.replace(attempt.client, settings=clients.require_unchanged(cx, attempt.client))
    clients.require_grant(client.settings, "token_exchange")
    scope = scopes.as_now(cx, options.names, client.settings, "token_exchange", basis.scope)
    if basis.sources and not tokens.live(cx, basis.sources, now):
        raise InvalidTokenRequest(_BAD_TOKEN)
    user = _require(cx, options, client, basis, scope)
    latest = now + min(client.access_seconds(options) * SECOND, impersonation.LONGEST)
    expires = latest if basis.until is None else min(latest, basis.until)
    grant, _ = tokens.open_grant(
        *(cx, user.id, client.id, scope.resource_id, now, expires),
        made="token_exchange",
        scopes=scope.text,
        actor_id=basis.actor_id,
        source_id=basis.source_id,
        actor_source_id=basis.actor_source_id,
    )
    entry = entries.by_id(cx, client.id)
    who = Actor(attempt.request.client_id, attempt.request.address, None if entry is None else entry.uuid)
    where = "" if scope.resource is None else resources.shown_name(options.names, scope.resource)
    with acting(who, lambda: now):
        audit.record(cx, "token exchanged", user.target, None, {"resource": where, "scopes": scope.text})
    response = token_requests.issue(
        *(cx, options, attempt.request, client, grant, None, now, scope.told), resource=scope.resource
    )
    return msgspec.structs.replace(response, issued_token_type=ACCESS_TOKEN)


def _require(
    cx: Connection, options: DirectoryOptions, client: Client, basis: _Basis, scope: scopes.RequestedScope
) -> Entry:
    """At a resource, the refusal is the sentence that clients of the field know; of the user it tells nothing."""
    resource = scope.resource
    question = access.Question(client.id, basis.user_id, scope.resource_id, True, basis.actor_id)
    try:
        return access.require(cx, question, options.names).user
    except (AccessEnded, CannotImpersonate) as refusal:
        if resource is None:
            raise CannotImpersonate(refusal.sentence) from refusal
        shown = resource.display_name or resources.shown_name(options.names, resource)
        raise CannotImpersonate(f"User cannot be impersonated in resource {shown}") from refusal


TOKEN_EXCHANGE = GrantType(
    ("subject_token", "subject_token_type"),
    _look_up,
    decide=_decide,
    made="token_exchange",
    asked=lambda basis: basis.scope,
    acts_as=lambda basis: basis.shown_user,
)
