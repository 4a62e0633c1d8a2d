"""Tell a client or a resource whether a token lives, and of what (RFC 7662), and a client of its user (OpenID Connect
Core 5.3).
"""

from typing import Any

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import entries, resources
from muniment.directory.entries.resources import Resource
from muniment.directory.oauth import access, claims, scopes, signed_tokens, tokens
from muniment.directory.oauth.clients import Client, ClientProof
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import (
    AccessEnded,
    DeadToken,
    InsufficientScope,
    UnknownResource,
    UnparseableToken,
    WrongSecret,
)
from muniment.ground.clock import SECOND, Instant

INACTIVE: dict[str, Any] = {"active": False}
"""All that is said of a token that does not live, or is not the asker's business."""


class Inquirer(msgspec.Struct, frozen=True):
    """Who asks: a confidential client, or a resource that has shown its secret.

    A client learns of its own tokens, and of those for its default resource, whose API it may be.
    """

    client: Client | None = None
    resource: Resource | None = None

    def may_know(self, grant: tokens.Grant) -> bool:
        if self.resource is not None:
            return grant.resource_id == self.resource.id
        if self.client is None:
            return False
        own = self.client.settings.default_resource
        return grant.client_id == self.client.id or bool(own and grant.resource_id == own)


def resource_by_secret(cx: Connection, proof: ClientProof) -> Resource | None:
    """The resource that shows its identifier and its secret as a client does; None if there is none."""
    for reading in (proof, proof.raw):
        if reading is not None and reading.secret:
            try:
                return resources.with_secret(cx, reading.client_id, reading.secret)
            except (UnknownResource, WrongSecret):
                continue
    return None


def introspect(
    cx: Connection,
    options: DirectoryOptions,
    asker: Inquirer,
    token: str,
    issuer: str,
    now: Instant,
) -> dict[str, Any]:
    """The members of RFC 7662 2.2, and those of facts 3.5 that the token's scopes open."""
    try:
        state = tokens.state_of(cx, token)
        state.require_alive(now)
        grant = state.grant
        if not asker.may_know(grant):
            return INACTIVE
        allowed = access.require(cx, grant.question, options.names)
    except (UnparseableToken, DeadToken, AccessEnded, UnknownResource):
        return INACTIVE
    client = entries.by_id(cx, grant.client_id)
    granted = grant.scopes.split()
    spelt = scopes.spell(options.names, allowed.resource, granted)
    told = {
        **claims.of_user(cx, options.names, allowed.user, granted),
        "active": True,
        "scope": spelt,
        "scp": spelt.split(" ") if spelt else [],
        "client_id": "" if client is None else client.name,
        "username": entries.shown_id(options.names, allowed.user),
        "token_type": "Bearer",
        "exp": min(state.expires, grant.expires) // SECOND,
        "iat": state.issued // SECOND,
        "iss": issuer,
        "jti": state.token_id,
    }
    if allowed.resource is not None:
        told["aud"] = signed_tokens.audience(allowed.resource)
    if grant.actor_id is not None and (actor := entries.by_id(cx, grant.actor_id)) is not None:
        told["act"] = {"sub": actor.uuid}
    return told


def userinfo(cx: Connection, options: DirectoryOptions, token: str, now: Instant) -> dict[str, Any]:
    """The claims that the token's scopes open. Raises UnparseableToken, DeadToken, AccessEnded, and InsufficientScope
    without ``openid``.
    """
    state = tokens.state_of(cx, token)
    state.require_alive(now)
    granted = state.grant.scopes.split()
    try:
        user = access.require(cx, state.grant.question, options.names).user
    except UnknownResource as unknown:
        raise AccessEnded(unknown.sentence) from unknown
    if "openid" not in granted:
        raise InsufficientScope("This address needs a token with the scope openid.")
    return claims.of_user(cx, options.names, user, granted)
