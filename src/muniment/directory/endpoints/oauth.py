"""The OAuth surface: tokens issued and refreshed, verified, and ended (given 4.1, 4.3, 4.4)."""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muniment import events
from muniment.directory.console import sign_in
from muniment.directory.context import Directory
from muniment.directory.endpoints import spelling
from muniment.directory.names import resource_name
from muniment.directory.oauth import clients, grants, revocation
from muniment.directory.oauth import tokeninfo as token_verification
from muniment.directory.oauth.token_requests import PasswordCheck, TokenAttempt, TokenRequest
from muniment.directory.refusals import (
    AccessEnded,
    DeadToken,
    Forged,
    InvalidClient,
    InvalidGrant,
    InvalidScope,
    InvalidTokenRequest,
    SignInRefused,
    UnknownResource,
    UnparseableToken,
    UnsupportedGrantType,
    WrongResource,
)
from muniment.events import Event
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
    SignInRefused: ErrorCode(400, "invalid_grant"),
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
    """Issue or refresh a token (given 4.1, RFC 6749 3.2), in the same phases for every grant (decision 0033)."""
    options = directory.options
    # 1. Read the request.
    asked = token_request(request, form)
    event = _sign_in_event(request, asked)
    # 2. Look up the client and what the grant rests on, in one snapshot.
    attempt = await directory.transactions.read(grants.look_up, options, asked, directory.clock())
    user_password = grants.check(attempt)
    if event is not None:
        event.client, event.resource = asked.client_id, resource_name(asked.parameters.get("scope", ""))
        event.who = asked.account if user_password is not None and user_password.user_exists else None
    # 3. Authenticate the client.
    await _authenticate(directory, attempt)
    # 4. Check the user's password at the gate, where the grant has one.
    password_ok = user_password is not None and await _checked(directory, user_password)
    # 5. Decide, in one transaction.
    try:
        issued = await directory.transactions.write(
            grants.decide, options, directory.memory, attempt, password_ok, directory.clock()
        )
    except SignInRefused as refusal:
        if refusal.pauses:
            events.begin(request.scope, "pause", result="done", who=asked.account, how=directory.pause)
        raise
    # 6. Answer.
    return json_response(issued, headers=spelling.NEVER_STORED)


@events.tells()
async def tokeninfo(request: Request, directory: Directory) -> Response:
    """POST /v1/authentication/oauth/tokeninfo: whose token is this (given 4.3)?"""
    asked = await bodies.json(request, _VERIFICATION)
    resource_id = asked.resource_id if asked.resource_id is not None else asked.resource_id_too
    if resource_id is None:
        raise Malformed("The JSON cannot be read: Object missing required field `resource_id`.")
    found = await directory.transactions.read(
        token_verification.verify, directory.options, directory.memory, asked.token, resource_id, directory.clock()
    )
    return json_response(found, headers=spelling.NEVER_STORED)


@events.tells("revocation")
async def revoke(request: Request, directory: Directory) -> Response:
    """DELETE /v1/authentication/oauth/<token>: end the whole grant (given 4.4)."""
    event = events.begin(request.scope, "revocation")
    revoked = await directory.transactions.write(
        revocation.revoke, directory.options.names, request.path_params["token"], directory.clock()
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


def token_request(request: Request, form: Mapping[str, str]) -> TokenRequest:
    """Read a token request. Raises InvalidTokenRequest, InvalidClient, UnsupportedGrantType."""
    # RFC 6749 3.2: a parameter without a value counts as left out.
    asked = {name: value for name, value in form.items() if value}
    client_id, client_secret = client(request, asked)
    grant_type = _needed(asked, "grant_type")
    grant = grants.find(grant_type)
    for name in grant.parameters:
        _needed(asked, name)
    account = None if grant.account is None else asked[grant.account]
    return TokenRequest(grant_type, client_id, client_secret, account, asked, caller_address(request))


def _sign_in_event(request: Request, asked: TokenRequest) -> Event | None:
    if asked.account is None:
        return None
    how = f"{asked.grant_type} grant"
    return events.begin(request.scope, "sign-in", how=how, account=fold_name(asked.account))


async def _authenticate(directory: Directory, attempt: TokenAttempt[Any]) -> None:
    """Check the secret of a confidential client at the gate. Raises InvalidClient."""
    asked, stored = attempt.request, attempt.client.stored
    if stored is None:
        return
    asker = clients.asker(asked.client_id, asked.address)
    check = directory.gate.check(stored, asked.client_secret or "", asker, directory.clock())
    clients.require_authenticated(await asyncio.wrap_future(check))


async def _checked(directory: Directory, check: PasswordCheck) -> bool:
    return await asyncio.wrap_future(directory.gate.check(check.stored, check.password, check.asker, directory.clock()))


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
