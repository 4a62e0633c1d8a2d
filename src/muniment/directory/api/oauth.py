"""The OAuth surface: issue, refresh, verify and revoke tokens (given 4.1, 4.3, 4.4)."""

import asyncio
from collections.abc import Mapping, MutableMapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muniment.directory.api import client_authentication, spelling
from muniment.directory.api.rest import dialect
from muniment.directory.console import sign_in
from muniment.directory.context import Directory
from muniment.directory.entries import resources
from muniment.directory.entries.names import user_id
from muniment.directory.oauth import grants, revocation
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
    AccessDenied,
    AccessEnded,
    AuthorizationPending,
    BadAuthorization,
    CannotImpersonate,
    DeadToken,
    ExpiredDeviceCode,
    InvalidClient,
    InvalidGrant,
    InvalidScope,
    InvalidTarget,
    InvalidTokenRequest,
    SignInRefused,
    SlowDown,
    UnauthorizedClient,
    UnknownResource,
    UnparseableToken,
    UnsupportedGrantType,
    UsedAgain,
    WrongResource,
)
from muniment.directory.version_stamps import BOTH, VersionStamps
from muniment.ground import events, json_text
from muniment.ground.naming import fold_name
from muniment.ground.refusals import (
    Malformed,
)
from muniment.web.answers.responses import ErrorCode, Table
from muniment.web.requests import bodies
from muniment.web.requests.transport import caller_address

LOGIN: Table = {
    InvalidTokenRequest: ErrorCode(400, "invalid_request"),
    InvalidClient: ErrorCode(401, "invalid_client"),
    InvalidGrant: ErrorCode(400, "invalid_grant"),
    SignInRefused: ErrorCode(400, "invalid_grant"),
    CannotImpersonate: ErrorCode(400, "invalid_request"),
    InvalidScope: ErrorCode(400, "invalid_scope"),
    InvalidTarget: ErrorCode(400, "invalid_target"),
    UnauthorizedClient: ErrorCode(400, "unauthorized_client"),
    UsedAgain: ErrorCode(400, "invalid_grant"),
    BadAuthorization: ErrorCode(400, "invalid_request"),
    AuthorizationPending: ErrorCode(400, "authorization_pending"),
    SlowDown: ErrorCode(400, "slow_down"),
    ExpiredDeviceCode: ErrorCode(400, "expired_token"),
    AccessDenied: ErrorCode(400, "access_denied"),
    UnsupportedGrantType: ErrorCode(400, "unsupported_grant_type"),
    UnknownResource: ErrorCode(400, "invalid_request"),
    **spelling.OF_TRANSPORT,
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


@events.tells("sign-in", "sign-out", "pause", "impersonation")
async def login(request: Request, directory: Directory) -> Response:
    """Issue or refresh a token, or take the form of the sign-in page. Only the page's forms have a hidden field."""
    form = await bodies.form(request)
    if sign_in.is_form(form, directory):
        return await sign_in.submit(request, directory, form)
    document = await token(request, directory, form)
    return Response(document, headers=spelling.NEVER_STORED, media_type="application/json")


@events.tells("sign-in", "pause", "impersonation")
async def token_endpoint(request: Request, directory: Directory) -> Response:
    """Issue or refresh a token, and nothing else (RFC 6749 3.2)."""
    document = await token(request, directory, await bodies.form(request))
    return Response(document, headers=spelling.NEVER_STORED, media_type="application/json")


async def token(request: Request, directory: Directory, form: Mapping[str, str]) -> bytes:
    """Return the answer as JSON (given 4.1, RFC 6749 3.2).

    Every grant type goes through the same phases (decision 0032). A refresh without a client secret has nothing to
    check, and its decision looks everything up.
    """
    # 1. Read the request. A program sent it, even if its Accept prefers HTML by default, as Java's does.
    request.scope["muniment.page"] = False
    token_request = read_token_request(request, directory, form)
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
    try:
        return (await _issue(directory, token_request, scope, event)).signed()
    except InvalidClient:
        if token_request.raw is None:
            raise
        raw = token_request.raw
    read_otherwise = msgspec.structs.replace(token_request, client_id=raw.client_id, client_secret=raw.secret, raw=None)
    return (await _issue(directory, read_otherwise, scope, event)).signed()


async def _issue(
    directory: Directory, token_request: TokenRequest, scope: MutableMapping[str, Any], event: events.Event | None
) -> TokenResponse:
    options, grant = directory.options, grants.find(token_request.grant_type)
    joint = directory.joint_grants.get(token_request.grant_type)
    shows_nothing = not token_request.client_secret and token_request.assertion is None
    if joint is not None and grant.look_up is None and shows_nothing:
        # There is no secret and no password to check: the decision looks everything up.
        return await directory.transactions.write_jointly(joint, JointRequest(token_request))
    # 2. Look up the client, and what the grant type needs, in one snapshot.
    attempt = await _look_up(directory, token_request, is_joint=joint is not None)
    password_check = grant.check
    user_password = None if password_check is None else password_check(attempt)
    if grant.acts_as is not None:
        event = events.begin(scope, "impersonation", how="token exchange", on=grant.acts_as(attempt.basis))
    if event is not None:
        event.client = token_request.client_id
        resource = None if grant.asked is None else grant.asked(attempt.basis).resource
        event.resource = None if resource is None else resources.shown_name(options.names, resource)
        event.who = token_request.account if user_password is not None and user_password.user_exists else None
    if attempt.signs_in is not None:
        # The user has signed in before, in a browser.
        who, resource_name = attempt.signs_in
        how, client_id = f"{grant.made} grant", token_request.client_id
        events.begin(scope, "sign-in", how=how, who=who, client=client_id, resource=resource_name)
    # 3. Authenticate the client.
    await client_authentication.authenticate(directory, attempt.client, token_request.proof, token_request.address)
    grants.remember_attempt(directory.attempts, attempt)
    # 4. Check the user's password at the gate, if the grant type needs one.
    password_ok = user_password is not None and await _check(directory, user_password)
    # 5. Decide, in one transaction.
    try:
        if joint is not None:
            response = await directory.transactions.write_jointly(joint, JointRequest(token_request, attempt))
        else:
            response = await directory.transactions.write(
                grants.decide, options, attempt, password_ok, directory.clock()
            )
        if event is not None and password_check is None:
            event.who = user_id(token_request.client_id, options.names.clients_partition)
        return response  # noqa: TRY300 - the refusal below is of the decision
    except SignInRefused as refusal:
        if event is not None:
            event.reason = refusal.reason
        if refusal.pauses:
            events.begin(scope, "pause", result="done", who=token_request.account, how=directory.pause)
        raise


async def _look_up(directory: Directory, token_request: TokenRequest, *, is_joint: bool) -> TokenAttempt[Any]:
    """Raises what ``grants.look_up`` raises, and Busy."""
    if is_joint:
        remembered = grants.recall_attempt(directory.attempts, token_request, (await read_marks(directory)).generation)
        if remembered is not None:
            return remembered
    return await directory.transactions.read(
        grants.look_up, directory.options, directory.clients, token_request, directory.clock()
    )


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


def read_token_request(request: Request, directory: Directory, form: Mapping[str, str]) -> TokenRequest:
    """Raises InvalidTokenRequest, InvalidClient, UnsupportedGrantType."""
    # A parameter without a value counts as missing (RFC 6749 3.2).
    parameters = {name: value for name, value in form.items() if value}
    proof = client_authentication.read(request, parameters)
    grant_type = _require(parameters, "grant_type")
    grant = grants.find(grant_type)
    for name in grant.parameters:
        _require(parameters, name)
    account = None if grant.account is None else parameters.get(grant.account, proof.client_id)
    return TokenRequest(
        *(grant_type, proof.client_id, proof.secret, account, parameters, caller_address(request)),
        assertion=proof.assertion,
        raw=proof.raw,
        issuer=directory.issuer,
        find_address=directory.dependencies.guard_at,
    )


async def _check(directory: Directory, check: PasswordCheck) -> bool:
    return await asyncio.wrap_future(
        directory.gate.check(check.password_hash, check.password, check.asker, directory.clock())
    )


def _require(parameters: Mapping[str, str], name: str) -> str:
    if name not in parameters:
        raise InvalidTokenRequest(f"The parameter {name} is missing.")
    return parameters[name]
