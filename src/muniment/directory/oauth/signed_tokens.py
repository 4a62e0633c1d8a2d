"""Write access tokens as JWTs, for resources that verify them by keys (RFC 9068, facts 3.5).

The same row as for an opaque token says whether one lives: whoever asks tokeninfo learns of its end with the next
request, whoever verifies by keys when it expires.
"""

import weakref
from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy.engine import Connection, Engine

from muniment.directory.entries import entries, resources
from muniment.directory.entries.resources import ADMINISTRATION, Resource
from muniment.directory.oauth import claims, scopes, signing_keys, tokens
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import InvalidGrant, InvalidScope
from muniment.ground.clock import SECOND, Instant

_USUAL_SECONDS = 300

_signing: weakref.WeakKeyDictionary[Engine, tuple[str, Mapping[str, Resource]]] = weakref.WeakKeyDictionary()


class Party(NamedTuple):
    """Between whom a token is: this directory by its issuer, and the client by its name."""

    issuer: str
    client_id: str


def signs(resource: Resource) -> bool:
    """Whether the access tokens of a resource are JWTs. Those of the administration never are."""
    return resource.token_format != "opaque" and resource.built_in != ADMINISTRATION  # noqa: S105 - no password


def seconds(resource: Resource) -> int:
    """So long does a JWT live at most."""
    return min(resource.token_seconds or _USUAL_SECONDS, signing_keys.LONGEST_SECONDS)


def resources_that_sign(cx: Connection, generation: str) -> Mapping[str, Resource]:
    """By identifier. ``generation`` must come from the same transaction: under it, they are remembered."""
    known = _signing.get(cx.engine)
    if known is None or known[0] != generation:
        signing = {resource.id: resource for resource in resources.signing(cx) if signs(resource)}
        known = _signing[cx.engine] = generation, signing
    return known[1]


def audience(resource: Resource) -> str:
    """Its address, or its identifier as a URN: as a client may name it (RFC 8707)."""
    return resource.address or f"urn:uuid:{resource.id}"


def issue(
    cx: Connection,
    names: DirectoryNames,
    party: Party,
    grant: tokens.Grant,
    resource: Resource,
    now: Instant,
    expires: Instant,
) -> str:
    """Raises InvalidGrant for a user who is gone, and InvalidScope for a token that would be too long to be read."""
    user = entries.by_id(cx, grant.user_id)
    if user is None:
        raise InvalidGrant("The user is not there any more.")
    token_id = tokens.add_signed_token(cx, grant, now, expires)
    granted = grant.scopes.split()
    spelt = scopes.spell(names, resource, granted).split(" ")
    told = claims.of_user(cx, names, user, granted) | {
        "iss": party.issuer,
        "aud": audience(resource),
        "client_id": party.client_id,
        "jti": token_id,
        "iat": now // SECOND,
        "exp": expires // SECOND,
        "scope": " ".join(spelt),
        "scp": spelt,
    }
    if grant.authenticated is not None:
        told["auth_time"] = grant.authenticated // SECOND
    if grant.actor_id is not None and (actor := entries.by_id(cx, grant.actor_id)) is not None:
        told["act"] = {"sub": actor.uuid}
    algorithm: signing_keys.Algorithm = "ES256" if resource.token_format == "ES256" else "RS256"  # noqa: S105
    text = signing_keys.sign(cx, told, signing_keys.ACCESS_TOKEN, now, algorithm)
    if len(text) > signing_keys.LONGEST_JWT:
        raise InvalidScope("The user has too many groups and roles for a signed token: ask for fewer scopes.")
    return text
