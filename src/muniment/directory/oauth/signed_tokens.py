"""Write access tokens as JWTs, for resources that verify them by keys (RFC 9068, facts 3.5).

The same row as for an opaque token says whether one lives: whoever asks tokeninfo learns of its end with the next
request, whoever verifies by keys when it expires.
"""

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy.engine import Connection, Engine

from muniment.directory.entries import entries, resources
from muniment.directory.entries.resources import ADMINISTRATION, Resource
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import claims, scopes, signing_keys, tokens
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import InvalidGrant, InvalidScope
from muniment.ground.clock import SECOND, Instant

_USUAL_SECONDS = 300
_AROUND_CLAIMS = 600
"""A token's header and signature have fewer characters."""
_LONGEST_CLAIMS = (signing_keys.LONGEST_JWT - _AROUND_CLAIMS) * 3 // 4

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


class ToSign(NamedTuple):
    """A token that is not there yet. Without the grant's ``user``, they are read."""

    party: Party
    grant: tokens.Grant
    resource: Resource
    expires: Instant
    user: Entry | None = None


def prepare_tokens(
    cx: Connection, names: DirectoryNames, drafts: Sequence[ToSign], now: Instant
) -> list[signing_keys.UnsignedToken]:
    """Raises InvalidGrant for a user who is gone, and InvalidScope for a token that would be too long to be read."""
    ids = tokens.add_signed_tokens(cx, [(draft.grant, draft.expires) for draft in drafts], now)
    signers: dict[signing_keys.Algorithm, signing_keys.Signer] = {}
    unsigned = []
    for token_id, draft in zip(ids, drafts, strict=True):
        algorithm: signing_keys.Algorithm = "ES256" if draft.resource.token_format == "ES256" else "RS256"  # noqa: S105
        signer = signers.get(algorithm)
        if signer is None:
            signer = signers[algorithm] = signing_keys.signer(cx, now, algorithm)
        told = _claims(cx, names, draft, token_id, now)
        if len(msgspec.json.encode(told)) > _LONGEST_CLAIMS:
            raise InvalidScope("The user has too many groups and roles for a signed token: ask for fewer scopes.")
        unsigned.append(signing_keys.UnsignedToken(signer, signing_keys.ACCESS_TOKEN, told))
    return unsigned


def _claims(cx: Connection, names: DirectoryNames, draft: ToSign, token_id: str, now: Instant) -> dict[str, Any]:
    grant = draft.grant
    user = draft.user or entries.by_id(cx, grant.user_id)
    if user is None:
        raise InvalidGrant("The user is not there any more.")
    granted = grant.scopes.split()
    spelt = scopes.spell(names, draft.resource, granted).split(" ")
    told = claims.of_user(cx, names, user, granted) | {
        "iss": draft.party.issuer,
        "aud": audience(draft.resource),
        "client_id": draft.party.client_id,
        "jti": token_id,
        "iat": now // SECOND,
        "exp": draft.expires // SECOND,
        "scope": " ".join(spelt),
        "scp": spelt,
    }
    if grant.authenticated is not None:
        told["auth_time"] = grant.authenticated // SECOND
    if grant.actor_id is not None and (actor := entries.by_id(cx, grant.actor_id)) is not None:
        told["act"] = {"sub": actor.uuid}
    return told
