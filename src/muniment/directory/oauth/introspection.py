"""Tell a client or a resource whether a token lives, and of what (RFC 7662), and a client of its user (OpenID Connect
Core 5.3).

The bytes of an answer about a living token are remembered under both of the directory's marks (decision 0057), if the
asker's secret was made by a computer: a digest of the question tells nobody such a secret.
"""

import hashlib
from typing import Any, NamedTuple

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import entries, resources
from muniment.directory.entries.resources import Resource
from muniment.directory.oauth import access, claims, clients, scopes, signed_tokens, tokeninfo, tokens
from muniment.directory.oauth.clients import Client, ClientProof, PublicClientCache
from muniment.directory.oauth.tokeninfo import AnswerCache, QuestionDigest
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import (
    AccessEnded,
    DeadToken,
    InsufficientScope,
    InvalidClient,
    UnknownResource,
    UnparseableToken,
    WrongSecret,
)
from muniment.directory.sign_in import passwords
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


class AskedToken(NamedTuple):
    """A token that somebody asks about; the issuer is this directory."""

    token: str
    issuer: str


def question_digest(header: bytes, body: bytes) -> QuestionDigest:
    """Under which the answer to a request with this Authorization header and this body is remembered. It is of another
    kind than tokeninfo's digests, beside which it is kept.
    """
    asked = b"%d %b%b" % (len(header), header, body)
    return QuestionDigest(hashlib.blake2b(asked, digest_size=32, person=b"introspection").digest())


def introspect_by_secret(
    cx: Connection,
    options: DirectoryOptions,
    memories: tuple[PublicClientCache, AnswerCache],
    digest: QuestionDigest,
    proof: ClientProof,
    asked: AskedToken,
    now: Instant,
) -> bytes | None:
    """The answer as JSON, to who shows a secret that a computer made, and None to all others, who may be somebody yet.

    It is remembered under the ``digest`` of the question.
    """
    remembered_clients, answers = memories
    asker = _by_made_secret(cx, remembered_clients, proof)
    if asker is None:
        return None
    state, told = _introspect(cx, options, asker, asked, now)
    document = msgspec.json.encode(told)
    if state is not None:
        tokeninfo.remember(answers, digest, document, state)
    return document


def introspect(cx: Connection, options: DirectoryOptions, asker: Inquirer, asked: AskedToken, now: Instant) -> bytes:
    """The answer as JSON: the members of RFC 7662 2.2, and those of facts 3.5 that the token's scopes open."""
    return msgspec.json.encode(_introspect(cx, options, asker, asked, now)[1])


def _by_made_secret(cx: Connection, memory: PublicClientCache, proof: ClientProof) -> Inquirer | None:
    readings = [reading for reading in (proof, proof.raw) if reading is not None and reading.secret]
    for reading in readings:
        try:
            return Inquirer(resource=resources.with_secret(cx, reading.client_id, reading.secret or ""))
        except (UnknownResource, WrongSecret):
            continue
    for reading in readings:
        try:
            client = clients.find(cx, memory, reading)
        except InvalidClient:
            continue
        if client.secret_hash is not None and passwords.is_made_of(client.secret_hash, reading.secret or ""):
            return Inquirer(client)
    return None


def _introspect(
    cx: Connection, options: DirectoryOptions, asker: Inquirer, asked: AskedToken, now: Instant
) -> tuple[tokens.TokenState | None, dict[str, Any]]:
    """What there is to tell, and the state of a token that lives and is the asker's business."""
    try:
        state = tokens.state_of(cx, asked.token)
        state.require_alive(now)
        grant = state.grant
        if not asker.may_know(grant):
            return None, INACTIVE
        allowed = access.require(cx, grant.question, options.names)
    except (UnparseableToken, DeadToken, AccessEnded, UnknownResource):
        return None, INACTIVE
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
        "iss": asked.issuer,
        "jti": state.token_id,
    }
    if allowed.resource is not None:
        told["aud"] = signed_tokens.audience(allowed.resource)
    if grant.actor_id is not None and (actor := entries.by_id(cx, grant.actor_id)) is not None:
        told["act"] = {"sub": actor.uuid}
    return state, told


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
