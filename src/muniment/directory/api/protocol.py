"""What standard clients ask of an authorization server beside tokens: introspection (RFC 7662), revocation (RFC 7009),
userinfo (OpenID Connect Core 5.3), the keys (RFC 7517) and the metadata (RFC 8414, OpenID Connect Discovery).
"""

import asyncio
from collections.abc import Collection, Mapping

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from muniment.directory.api import client_authentication, spelling
from muniment.directory.context import Directory
from muniment.directory.oauth import discovery, introspection, revocation, signing_keys
from muniment.directory.oauth.clients import REFUSED
from muniment.directory.oauth.introspection import AskedToken, Inquirer
from muniment.directory.oauth.tokeninfo import QuestionDigest
from muniment.directory.refusals import (
    AccessEnded,
    DeadToken,
    InsufficientScope,
    InvalidClient,
    InvalidTokenRequest,
    NotSignedIn,
    UnparseableToken,
)
from muniment.ground import events
from muniment.web.answers.responses import ErrorCode, Table
from muniment.web.requests import bodies
from muniment.web.requests.transport import caller_address

ASKED: Table = {
    **spelling.OF_TRANSPORT,
    InvalidTokenRequest: ErrorCode(400, "invalid_request"),
    InvalidClient: ErrorCode(401, "invalid_client"),
}

USERINFO: Table = {
    NotSignedIn: ErrorCode(401, "not_signed_in"),
    UnparseableToken: ErrorCode(401, "invalid_token"),
    DeadToken: ErrorCode(401, "invalid_token"),
    AccessEnded: ErrorCode(401, "invalid_token"),
    InsufficientScope: ErrorCode(403, "insufficient_scope"),
}

_FORM = "application/x-www-form-urlencoded"
_CACHED = {
    "Cache-Control": f"public, max-age={signing_keys.CACHED_SECONDS}",
    "Access-Control-Allow-Origin": "*",
}
"""What is public may be remembered, and read by scripts of any page."""


@events.tells()
async def introspect(request: Request, directory: Directory) -> Response:
    """Tell a confidential client, or a resource, whether a token lives."""
    body = await bodies.raw_form(request)
    parameters = _read(body)
    proof = client_authentication.read(request, parameters)
    asked, now = AskedToken(parameters["token"], directory.issuer), directory.clock()
    document = None
    if proof.secret:
        memories, digest = (directory.clients, directory.answers), question_digest(request.scope, body)
        document = await directory.transactions.read(
            introspection.introspect_by_secret, directory.options, memories, digest, proof, asked, now
        )
    if document is None:
        client = await client_authentication.identify(directory, proof, caller_address(request))
        if not client.confidential:
            raise InvalidClient(REFUSED)
        document = await directory.transactions.read(
            introspection.introspect, directory.options, Inquirer(client), asked, now
        )
    return _json(document)


def question_digest(scope: Scope, body: bytes) -> QuestionDigest:
    """That of all of a request by which its introspection is answered: the Authorization header, and the body.

    ``transport`` refuses a second such header.
    """
    header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    return introspection.question_digest(header, body)


@events.tells("revocation")
async def revoke(request: Request, directory: Directory) -> Response:
    """End the grant of a token, for the client that holds it; any other text is answered alike."""
    parameters = _read(await bodies.raw_form(request))
    proof = client_authentication.read(request, parameters)
    client = await client_authentication.identify(directory, proof, caller_address(request))
    event = events.begin(request.scope, "revocation")
    ended = await directory.transactions.write(
        revocation.revoke_own, directory.options.names, parameters["token"], client.id, directory.clock()
    )
    if ended is None:
        event.result, event.how = "refused", "ended before, or of another client"
    else:
        event.who, event.client, event.resource = ended.user, ended.client, ended.resource
    return Response(status_code=200, headers=spelling.NEVER_STORED)


@events.tells()
async def userinfo(request: Request, directory: Directory) -> Response:
    """Tell of the user of an access token what its scopes open."""
    scheme, _, token = request.headers.get("authorization", "").strip().partition(" ")
    token = token.strip() if scheme.lower() == "bearer" else ""
    if not token and request.method == "POST" and bodies.media_type(request) == _FORM:
        token = (await bodies.form(request)).get("access_token", "")
    if not token:
        raise NotSignedIn("This address needs an access token with the scope openid.")
    told = await directory.transactions.read(introspection.userinfo, directory.options, token, directory.clock())
    return _json(msgspec.json.encode(told))


async def keys(_request: Request, directory: Directory) -> Response:
    """Show the public keys with which signed tokens are verified."""
    now = directory.clock()
    lacking = await directory.transactions.read(signing_keys.missing)
    if lacking:
        made = [await asyncio.to_thread(signing_keys.generate, algorithm) for algorithm in lacking]
        await directory.transactions.write(signing_keys.add_missing, made, now)
    shown = await directory.transactions.read(signing_keys.key_set, now)
    return Response(msgspec.json.encode(shown), headers=_CACHED, media_type="application/json")


def metadata(directory: Directory, paths: Collection[str]) -> Response:
    """``paths`` are the addresses below the prefix that are offered."""
    document = discovery.document(directory.issuer, directory.options.names, paths)
    return Response(msgspec.json.encode(document), headers=_CACHED, media_type="application/json")


def _read(form: bytes) -> Mapping[str, str]:
    """A parameter without a value counts as missing. Raises InvalidTokenRequest."""
    parameters = {name: value for name, value in bodies.form_fields(form, "The form").items() if value}
    if "token" not in parameters:
        raise InvalidTokenRequest("The parameter token is missing.")
    return parameters


def _json(document: bytes) -> Response:
    return Response(document, headers=spelling.NEVER_STORED, media_type="application/json")
