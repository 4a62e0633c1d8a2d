"""The OAuth surface: issue, refresh, verify and revoke tokens (given 4.1, 4.3, 4.4)."""

import asyncio
import base64
from collections.abc import Mapping, MutableMapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muniment.directory.api import spelling
from muniment.directory.api.rest import dialect
from muniment.directory.console import sign_in
from muniment.directory.context import Directory
from muniment.directory.entries.names import resource_name
from muniment.directory.oauth import clients, grants, revocation
from muniment.directory.oauth import tokeninfo as token_verification
from muniment.directory.oauth.access import User
from muniment.directory.oauth.token_requests import (
    JointRequest,
    PasswordCheck,
    TokenAttempt,
    TokenRequest,
    TokenResponse,
)
from muniment.directory.refusals import (
    AccessEnded,
    DeadToken,
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
from muniment.directory.version_stamps import BOTH, VersionStamps
from muniment.ground import events, json_text
from muniment.ground.naming import fold_name
from muniment.ground.refusals import (
    Forged,
    InsecureTransport,
    Malformed,
    MethodNotAllowed,
    NotStored,
    Overloaded,
    TimedOut,
    TooLarge,
    UnsupportedMediaType,
)
from muniment.web.answers.responses import ErrorCode, Table
from muniment.web.requests import bodies
from muniment.web.requests.transport import caller_address

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
    """The body of a tokeninfo request (given 2.5). Other keys are ignored."""

    token: str
    resource_id: str | None = None
    resource_id_too: str | None = None


class TokenToVerify(msgspec.Struct, kw_only=True):
    """A token to verify, and the resource for which it must have been issued, if one is named."""

    token: str = ""
    resource_id: str = ""


dialect.spelled({"user_partition_id": "userPartitionID"})(User)

_LONGEST_BODY = 65_536
_VERIFICATION = msgspec.json.Decoder(Verification)


@events.tells("sign-in", "sign-out", "pause")
async def login(request: Request, directory: Directory) -> Response:
    """Issue or refresh a token, or take the form of the sign-in page. Only the page's forms have a hidden field."""
    form = await bodies.form(request)
    if sign_in.is_form(form, directory):
        return await sign_in.submit(request, directory, form)
    document = await token(request, directory, form)
    return Response(document, headers=spelling.NEVER_STORED, media_type="application/json")


async def token(request: Request, directory: Directory, form: Mapping[str, str]) -> bytes:
    """Return the answer as JSON (given 4.1, RFC 6749 3.2).

    Every grant type goes through the same phases (decision 0032). A refresh without a client secret has nothing to
    check, and its decision looks everything up.
    """
    # 1. Read the request. A program sent it, even if its Accept prefers HTML by default, as Java's does.
    request.scope["muniment.page"] = False
    token_request = read_token_request(request, form)
    event = begin_sign_in(request.scope, token_request, f"{token_request.grant_type} grant")
    # 2 to 5.
    response = await issue(directory, token_request, request.scope, event)
    # 6. Answer.
    return msgspec.json.encode(response)


async def issue(
    directory: Directory, token_request: TokenRequest, scope: MutableMapping[str, Any], event: events.Event | None
) -> TokenResponse:
    """Decide a token request of any surface, and write into ``event`` who signs in.

    A pause that begins is a second security event in ``scope``. Raises InvalidClient, Overloaded, and the refusals of
    the grant type.
    """
    options, joint = directory.options, directory.joint_grants.get(token_request.grant_type)
    if joint is not None and not token_request.client_secret:
        # There is no secret and no password to check: the decision looks everything up.
        return await directory.transactions.write_jointly(joint, JointRequest(token_request, None))
    # 2. Look up the client, and what the grant type needs, in one snapshot.
    attempt = await directory.transactions.read(
        grants.look_up, options, directory.clients, token_request, directory.clock()
    )
    password_check = grants.find(token_request.grant_type).check
    user_password = None if password_check is None else password_check(attempt)
    if event is not None:
        event.client, event.resource = token_request.client_id, resource_name(token_request.parameters.get("scope", ""))
        event.who = token_request.account if user_password is not None and user_password.user_exists else None
    # 3. Authenticate the client.
    await _authenticate(directory, attempt)
    # 4. Check the user's password at the gate, if the grant type needs one.
    password_ok = user_password is not None and await _check(directory, user_password)
    # 5. Decide, in one transaction.
    if joint is not None:
        return await directory.transactions.write_jointly(joint, JointRequest(token_request, attempt.client))
    try:
        return await directory.transactions.write(grants.decide, options, attempt, password_ok, directory.clock())
    except SignInRefused as refusal:
        if event is not None:
            event.reason = refusal.reason
        if refusal.pauses:
            events.begin(scope, "pause", result="done", who=token_request.account, how=directory.pause)
        raise


async def read_marks(directory: Directory) -> VersionStamps:
    """Raises Busy."""
    return VersionStamps(*await directory.transactions.glance(BOTH))


def begin_sign_in(scope: MutableMapping[str, Any], token_request: TokenRequest, how: str) -> events.Event | None:
    """None for a grant type with which nobody signs in."""
    if token_request.account is None:
        return None
    return events.begin(scope, "sign-in", how=how, account=fold_name(token_request.account))


@events.tells()
async def tokeninfo(request: Request, directory: Directory) -> Response:
    """Say whose access token this is."""
    body = await bodies.raw_json(request)
    question = json_text.decode(body, _VERIFICATION)
    resource_id = question.resource_id if question.resource_id is not None else question.resource_id_too
    if resource_id is None:
        raise Malformed("The JSON cannot be read: Object missing required field `resource_id`.")
    document = await directory.transactions.read(
        token_verification.tokeninfo_answer,
        directory.options,
        directory.memory,
        directory.answers,
        body,
        question.token,
        resource_id,
        directory.clock(),
    )
    return Response(document, headers=spelling.NEVER_STORED, media_type="application/json")


@events.tells()
async def tokeninfo_by_rest(request: Request, directory: Directory) -> Response:
    """Say whose access token this is, with keys in camelCase."""
    asked = await dialect.read(request, "rest", TokenToVerify, _LONGEST_BODY)
    if not asked.token or asked.token.startswith(directory.options.names.ticket_prefix):
        raise Malformed("The JSON has no access token as its token.")
    info, _ = await directory.transactions.read(
        token_verification.verify,
        directory.options,
        directory.memory,
        asked.token,
        asked.resource_id or None,
        directory.clock(),
    )
    return Response(dialect.encode("rest", info), headers=spelling.NEVER_STORED, media_type="application/json")


@events.tells("revocation")
async def revoke(request: Request, directory: Directory) -> Response:
    """End the grant of a token."""
    event = events.begin(request.scope, "revocation")
    ended_grant = await directory.transactions.write(
        revocation.revoke, directory.options.names, request.path_params["token"], directory.clock()
    )
    if ended_grant is None:
        event.result, event.how = "refused", "ended before"
    else:
        event.who, event.client, event.resource = ended_grant.user, ended_grant.client, ended_grant.resource
    return Response(status_code=204, headers=_SHARED_WITH_BROWSERS)


async def preflight(_request: Request, _directory: Directory) -> Response:
    """Tell a browser that it may end a grant for any page."""
    return Response(status_code=204, headers=_SHARED_WITH_BROWSERS)


def client(request: Request, parameters: Mapping[str, str]) -> tuple[str, str | None]:
    """The secret comes in the body or by HTTP Basic, never in both (RFC 6749 2.3). Raises InvalidTokenRequest,
    InvalidClient.
    """
    basic = _basic(request)
    if basic is None:
        return _require(parameters, "client_id"), parameters.get("client_secret")
    client_id, secret = basic
    if "client_secret" in parameters:
        raise InvalidTokenRequest("The client authenticates twice: use the body or the Authorization header, not both.")
    if parameters.get("client_id", client_id) != client_id:
        raise InvalidTokenRequest("The client_id of the body differs from the client in the Authorization header.")
    return client_id, secret or None


def read_token_request(request: Request, form: Mapping[str, str]) -> TokenRequest:
    """Raises InvalidTokenRequest, InvalidClient, UnsupportedGrantType."""
    # A parameter without a value counts as missing (RFC 6749 3.2).
    parameters = {name: value for name, value in form.items() if value}
    client_id, client_secret = client(request, parameters)
    grant_type = _require(parameters, "grant_type")
    grant = grants.find(grant_type)
    for name in grant.parameters:
        _require(parameters, name)
    account = None if grant.account is None else parameters[grant.account]
    return TokenRequest(grant_type, client_id, client_secret, account, parameters, caller_address(request))


async def _authenticate(directory: Directory, attempt: TokenAttempt[Any]) -> None:
    request, secret_hash = attempt.request, attempt.client.secret_hash
    if secret_hash is None:
        return
    asker = clients.asker(request.client_id, request.address)
    check = directory.gate.check(secret_hash, request.client_secret or "", asker, directory.clock())
    if not await asyncio.wrap_future(check):
        raise InvalidClient(clients.REFUSED)


async def _check(directory: Directory, check: PasswordCheck) -> bool:
    return await asyncio.wrap_future(
        directory.gate.check(check.password_hash, check.password, check.asker, directory.clock())
    )


def _require(parameters: Mapping[str, str], name: str) -> str:
    if name not in parameters:
        raise InvalidTokenRequest(f"The parameter {name} is missing.")
    return parameters[name]


def _basic(request: Request) -> tuple[str, str] | None:
    if not any(name == b"authorization" for name, _ in request.scope["headers"]):  # nearly always
        return None
    values = [value.strip() for value in request.headers.getlist("authorization")]
    credentials = [value for value in values if value and value.partition(" ")[0].lower() != "bearer"]
    if not credentials:
        return None
    scheme, _, encoded = credentials[0].partition(" ")
    if len(credentials) > 1 or scheme.lower() != "basic":
        raise InvalidClient("The client may authenticate by HTTP Basic or in the body, in no other way.")
    try:
        client_id, colon, secret = base64.b64decode(encoded.strip(), validate=True).decode("utf-8").partition(":")
        # The client form-encodes both parts before it joins them (RFC 6749 2.3.1).
        client_id, secret = (
            bodies.form_value(part.encode("utf-8"), "The Authorization header") for part in (client_id, secret)
        )
    except (ValueError, Malformed) as error:
        raise InvalidClient("The Authorization header cannot be read as HTTP Basic.") from error
    if not colon or not client_id:
        raise InvalidClient("The Authorization header names no client.")
    return client_id, secret
