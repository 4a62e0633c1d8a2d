"""The OAuth surface: tokens issued and refreshed, verified, and ended (given 4.1, 4.3, 4.4)."""

import asyncio
import base64
from collections.abc import Mapping

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muniment import events
from muniment.directory.console import sign_in
from muniment.directory.context import Directory
from muniment.directory.endpoints import spelling
from muniment.directory.names import resource_name
from muniment.directory.oauth import grants
from muniment.directory.oauth.grants import TokenResponse
from muniment.directory.refusals import (
    AccessEnded,
    DeadToken,
    Forged,
    InvalidClient,
    InvalidGrant,
    InvalidScope,
    InvalidTokenRequest,
    UnknownResource,
    UnparseableToken,
    UnsupportedGrantType,
    WrongResource,
)
from muniment.directory.sign_in.line import Asker
from muniment.directory.sign_in.pauses import neighbourhood
from muniment.naming import fold_name
from muniment.web import bodies
from muniment.web.refusals import (
    InsecureTransport,
    Malformed,
    MethodNotAllowed,
    NotStored,
    Overloaded,
    TimedOut,
    TooLarge,
    UnsupportedMediaType,
)
from muniment.web.responses import ErrorCode, Table, json_response
from muniment.web.transport import caller_address

LOGIN: Table = {
    InvalidTokenRequest: ErrorCode(400, "invalid_request"),
    InvalidClient: ErrorCode(401, "invalid_client"),
    InvalidGrant: ErrorCode(400, "invalid_grant"),
    InvalidScope: ErrorCode(400, "invalid_scope"),
    UnsupportedGrantType: ErrorCode(400, "unsupported_grant_type"),
    UnknownResource: ErrorCode(400, "invalid_request"),
    Forged: ErrorCode(403, "invalid_request"),
    Malformed: ErrorCode(400, "invalid_request"),
    UnsupportedMediaType: ErrorCode(400, "invalid_request"),
    MethodNotAllowed: ErrorCode(405, "invalid_request"),
    InsecureTransport: ErrorCode(403, "invalid_request"),
    TimedOut: ErrorCode(408, "invalid_request"),
    TooLarge: ErrorCode(413, "invalid_request"),
    Overloaded: ErrorCode(503, "temporarily_unavailable"),
    NotStored: ErrorCode(507, "temporarily_unavailable"),
}

TOKENINFO: Table = {
    UnknownResource: ErrorCode(400, "invalid_resource_id"),
    UnparseableToken: ErrorCode(401, "unparseable_token"),
    WrongResource: ErrorCode(401, "wrong_resource"),
    DeadToken: ErrorCode(410, "dead_token"),
    AccessEnded: ErrorCode(401, "access_ended"),
}

REVOCATION: Table = {UnparseableToken: ErrorCode(401, "unparseable_token")}

_SHARED_WITH_BROWSERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "DELETE, HEAD, GET, OPTIONS, POST, PUT",
    "Access-Control-Allow-Headers": "Content-Type",
    "Access-Control-Max-Age": "3600",
}


class Verification(msgspec.Struct, frozen=True, rename={"resource_id_too": "resourceId"}):
    """What tokeninfo is asked (given 2.5); keys it does not know do no harm."""

    token: str
    resource_id: str | None = None
    resource_id_too: str | None = None


_VERIFICATION = msgspec.json.Decoder(Verification)


@events.tells("sign-in", "sign-out", "pause")
async def login(request: Request, directory: Directory) -> Response:
    """POST /login: with the sign-in form's own field it is the form, anything else is a token request."""
    form = await bodies.form(request)
    if sign_in.is_form(form, directory):
        return await sign_in.submit(request, directory, form)
    return await token(request, directory, form)


async def token(request: Request, directory: Directory, form: Mapping[str, str]) -> Response:
    """Issue or refresh a token (given 4.1, RFC 6749 4.3 and 6)."""
    # RFC 6749 3.2: a parameter without a value counts as left out.
    asked = {name: value for name, value in form.items() if value}
    client_id, client_secret = client(request, asked)
    grant = _needed(asked, "grant_type")
    if grant == "password":
        issued = await _password(request, directory, client_id, client_secret, asked)
    elif grant == "refresh_token":
        issued = await _refresh(directory, client_id, client_secret, asked, caller_address(request))
    else:
        raise UnsupportedGrantType("The grant types offered are password and refresh_token.")
    return json_response(issued, headers=spelling.NEVER_STORED)


@events.tells()
async def tokeninfo(request: Request, directory: Directory) -> Response:
    """POST /v1/authentication/oauth/tokeninfo: whose token is this (given 4.3)?"""
    asked = await bodies.json(request, _VERIFICATION)
    resource_id = asked.resource_id if asked.resource_id is not None else asked.resource_id_too
    if resource_id is None:
        raise Malformed("The JSON cannot be read: Object missing required field `resource_id`.")
    found = await directory.transactions.read(
        grants.tokeninfo, directory.options, directory.memory, asked.token, resource_id, directory.clock()
    )
    return json_response(found, headers=spelling.NEVER_STORED)


@events.tells("revocation")
async def revoke(request: Request, directory: Directory) -> Response:
    """DELETE /v1/authentication/oauth/<token>: end the whole grant (given 4.4)."""
    event = events.begin(request.scope, "revocation")
    revoked = await directory.transactions.write(
        grants.revoke, directory.options.names, request.path_params["token"], directory.clock()
    )
    if revoked is None:
        event.result, event.how = "refused", "over already"
    else:
        event.who, event.client, event.resource = revoked.user, revoked.client, revoked.resource
    return Response(status_code=204, headers=_SHARED_WITH_BROWSERS)


async def preflight(_request: Request, _directory: Directory) -> Response:
    """OPTIONS on a token: what a browser asks before it sends the DELETE."""
    return Response(status_code=204, headers=_SHARED_WITH_BROWSERS)


def client(request: Request, asked: Mapping[str, str]) -> tuple[str, str | None]:
    """Read who the client says it is: in the body or by HTTP Basic, never both (RFC 6749 2.3).

    Raises InvalidTokenRequest, InvalidClient.
    """
    basic = _basic(request)
    if basic is None:
        return _needed(asked, "client_id"), asked.get("client_secret")
    client_id, secret = basic
    if "client_secret" in asked:
        raise InvalidTokenRequest("The client authenticates twice: use the body or the Authorization header, not both.")
    if asked.get("client_id", client_id) != client_id:
        raise InvalidTokenRequest("The client_id of the body is not the one of the Authorization header.")
    return client_id, secret or None


async def _password(
    request: Request, directory: Directory, client_id: str, client_secret: str | None, asked: Mapping[str, str]
) -> TokenResponse:
    username, password, scope = (_needed(asked, name) for name in ("username", "password", "scope"))
    event = events.begin(request.scope, "sign-in", how="password grant", account=fold_name(username))
    attempt = await directory.transactions.read(
        grants.begin_password_sign_in,
        directory.options,
        client_id,
        client_secret,
        username,
        scope,
        caller_address(request),
        directory.clock(),
    )
    event.client, event.resource = client_id, resource_name(scope)
    event.who = None if attempt.user_id is None else username
    client_ok = await _client_ok(directory, attempt.client, client_id, client_secret, caller_address(request))
    check = directory.gate.check(attempt.stored, password, attempt.asker(username), directory.clock())
    password_ok = await asyncio.wrap_future(check)
    decided = await directory.transactions.write(
        grants.finish_password_grant,
        directory.options,
        attempt,
        password_ok,
        directory.clock(),
        client_ok=client_ok,
    )
    if isinstance(decided, InvalidGrant):
        if decided.pauses:
            events.begin(request.scope, "pause", result="done", who=username, how=directory.pause)
        raise decided
    return decided


async def _refresh(
    directory: Directory, client_id: str, client_secret: str | None, asked: Mapping[str, str], address: str
) -> TokenResponse:
    refresh_token = _needed(asked, "refresh_token")
    known = await directory.transactions.read(grants.begin_refresh, client_id, client_secret)
    client_ok = await _client_ok(directory, known, client_id, client_secret, address)
    return await directory.transactions.write(
        grants.refresh,
        directory.options,
        directory.memory,
        known,
        refresh_token,
        asked.get("scope"),
        directory.clock(),
        client_ok=client_ok,
    )


async def _client_ok(
    directory: Directory, known: grants.Client | None, client_id: str, client_secret: str | None, address: str
) -> bool:
    if known is None or known.stored is None:
        return True
    asker = Asker(neighbourhood(address), f"client {client_id}")
    return await asyncio.wrap_future(directory.gate.check(known.stored, client_secret or "", asker, directory.clock()))


def _needed(asked: Mapping[str, str], name: str) -> str:
    if name not in asked:
        raise InvalidTokenRequest(f"The parameter {name} is missing.")
    return asked[name]


def _basic(request: Request) -> tuple[str, str] | None:
    values = [value.strip() for value in request.headers.getlist("authorization")]
    shown = [value for value in values if value and value.partition(" ")[0].lower() != "bearer"]
    if not shown:
        return None
    scheme, _, encoded = shown[0].partition(" ")
    if len(shown) > 1 or scheme.lower() != "basic":
        raise InvalidClient("The client may authenticate by HTTP Basic or in the body, in no other way.")
    try:
        client_id, colon, secret = base64.b64decode(encoded.strip(), validate=True).decode("utf-8").partition(":")
        # RFC 6749 2.3.1: both parts are form-encoded before they are joined.
        client_id, secret = (
            bodies.form_value(part.encode("utf-8"), "The Authorization header") for part in (client_id, secret)
        )
    except (ValueError, Malformed) as error:
        raise InvalidClient("The Authorization header cannot be read as HTTP Basic.") from error
    if not colon or not client_id:
        raise InvalidClient("The Authorization header names no client.")
    return client_id, secret
