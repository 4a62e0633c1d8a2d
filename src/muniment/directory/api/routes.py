"""Every address of the directory on one page: its methods, what they take and answer, and the codes of its refusals.

A row only describes credentials: the function asks for them. Sources: given 4.1 to 4.5, and docs/interface.md for the
console.
"""

import dataclasses
from importlib import metadata
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from muniment.directory.api import devices, fast_path, oauth, protocol, spelling
from muniment.directory.api.rest import addresses as rest
from muniment.directory.api.rest import dialect
from muniment.directory.console import authorize, device, frame, pages
from muniment.directory.context import Directory
from muniment.directory.entries.oauth_clients import GRANT_TYPES
from muniment.directory.oauth.authorization import RESPONSE_MODES
from muniment.directory.oauth.discovery import AUTHORIZE
from muniment.directory.oauth.token_requests import TokenResponse
from muniment.directory.oauth.tokeninfo import TokenInfo
from muniment.directory.options import DirectoryNames
from muniment.ground.refusals import UnknownAddress
from muniment.web import openapi
from muniment.web.addresses import (
    BINARY,
    TEXT,
    Address,
    AddressTable,
    AnswerDescription,
    CredentialKind,
    ErrorShape,
    Operation,
    Parameter,
    Schema,
)
from muniment.web.answers import browser
from muniment.web.answers.responses import SHARED, refuse
from muniment.web.fast_path import FastPath

_TWINS = "What the addresses below `/rest` do, with keys in snake_case."

_METADATA = ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server")

FORM = "application/x-www-form-urlencoded"

_TEXT = {"text/html": TEXT}
_PAGE = AnswerDescription(200, "The page.", _TEXT)
_REDIRECT = AnswerDescription(303, "The browser is led to another page.")
_DOCUMENT = AnswerDescription(200, "The description, in OpenAPI 3.1.", {"application/json": {"type": "object"}})
_CLIENT: dict[str, Schema] = dict.fromkeys(
    ("client_id", "client_secret", "client_assertion_type", "client_assertion"), TEXT
)
_AUTHORIZATION = (
    Parameter("client_id", "The application."),
    Parameter("redirect_uri", "Where the answer goes: one of the application's addresses, letter for letter."),
    Parameter("response_type", "`code`.", {"type": "string", "enum": ["code"]}),
    Parameter("response_mode", "How the answer is sent.", {"type": "string", "enum": [*RESPONSE_MODES]}),
    Parameter("scope", "What is asked for; by default, what the application always gets."),
    Parameter("resource", "The resource, by its address or as urn:uuid: and its identifier (RFC 8707)."),
    Parameter("state", "Comes back with the answer."),
    Parameter("nonce", "Comes back in the id_token."),
    Parameter("code_challenge", "The challenge of RFC 7636."),
    Parameter("code_challenge_method", "`S256`.", {"type": "string", "enum": ["S256"]}),
    Parameter("prompt", "Whether the user is asked: some of none, login, consent and select_account."),
    Parameter("max_age", "Who signed in more than so many seconds ago does so again."),
    Parameter("login_hint", "Is written into the form as the user's name."),
    Parameter("id_token_hint", "An id_token of this directory: its user alone gets an answer."),
    Parameter("ui_locales", "Is accepted; the pages are in English."),
)
_CHANGE: Schema = {"type": "string", "enum": ["add", "change", "delete"]}


def table(names: DirectoryNames) -> AddressTable[Directory]:
    page_errors = ErrorShape("page", frame.page_shape(names), _TEXT)
    login_errors = ErrorShape(
        "token-endpoint",
        spelling.login(names),
        {"application/json": spelling.OAuthError, **_TEXT},
        lambda error_code: error_code.code,
    )
    tokeninfo = Operation(
        oauth.tokeninfo,
        body={"application/json": oauth.Verification},
        answers=(AnswerDescription(200, "The token is good for the resource.", {"application/json": TokenInfo}),),
        fast=fast_path.TOKENINFO,
    )
    tokeninfo_by_rest = Operation(
        oauth.tokeninfo_by_rest,
        body={"application/json": dialect.type_in("rest", oauth.TokenToVerify)},
        answers=(
            AnswerDescription(
                200, "The token is good for the resource.", {"application/json": dialect.type_in("rest", TokenInfo)}
            ),
        ),
    )
    login = {
        "GET": Operation(
            authorize.login,
            parameters=(
                *_AUTHORIZATION,
                Parameter("RFA", "Identifier of the resource to sign in to. Empty means the administration."),
                Parameter("page", "Page of the console to which the sign-in leads back."),
            ),
            answers=(_PAGE, _REDIRECT),
            credentials=CredentialKind.NONE,
        ),
        "POST": Operation(
            oauth.login,
            body={FORM: _login_form(names)},
            answers=(
                AnswerDescription(
                    200,
                    "The token; for the form, the page that says why nobody was signed in.",
                    {"application/json": TokenResponse, **_TEXT},
                ),
                _REDIRECT,
            ),
            fast=fast_path.TOKEN,
        ),
    }
    token = Operation(
        oauth.token_endpoint,
        body={FORM: {"anyOf": _token_forms()}},
        answers=(AnswerDescription(200, "The token.", {"application/json": TokenResponse}),),
        fast=fast_path.TOKEN,
    )
    authorization = {
        "GET": Operation(authorize.authorize, parameters=_AUTHORIZATION, answers=(_PAGE, _REDIRECT)),
        "POST": Operation(
            authorize.authorize_by_post, body={FORM: _authorization_form(names)}, answers=(_PAGE, _REDIRECT)
        ),
    }
    on_pages = (frame.AUTHORIZATION, page_errors, CredentialKind.TICKET)
    device_page = {
        "GET": Operation(
            device.show,
            parameters=(Parameter("user_code", "The code that the device shows."),),
            answers=(_PAGE,),
            credentials=CredentialKind.NONE,
        ),
        "POST": Operation(device.decide, body={FORM: _device_form(names)}, answers=(_PAGE, _REDIRECT)),
    }
    device_start = Operation(
        devices.begin,
        body={FORM: _fields("What the device asks for.", {**_CLIENT, "scope": TEXT, "resource": TEXT}, ())},
        answers=(AnswerDescription(200, "The codes.", {"application/json": devices.DeviceAuthorization}),),
    )
    oauth_errors = ErrorShape(
        "oauth", spelling.oauth, {"application/json": spelling.OAuthError}, lambda error_code: error_code.code
    )
    bearer_errors = ErrorShape(
        "oauth", spelling.bearer, {"application/json": spelling.OAuthError}, lambda error_code: error_code.code
    )
    told = AnswerDescription(200, "What there is to tell.", {"application/json": {"type": "object"}})
    introspection = Operation(
        protocol.introspect,
        body={FORM: _token_form("introspect")},
        answers=(told,),
        fast=fast_path.INTROSPECTION,
    )
    own_revocation = Operation(
        protocol.revoke,
        body={FORM: _token_form("revoke")},
        answers=(AnswerDescription(200, "If the token was the client's, its grant has ended."),),
    )
    userinfo = Operation(protocol.userinfo, answers=(told,))
    keys = Operation(protocol.keys, answers=(told,))
    metadata = Operation(show_metadata, answers=(told,))
    revocation = {
        "DELETE": Operation(oauth.revoke, answers=(AnswerDescription(204, "The grant has ended."),)),
        "OPTIONS": Operation(
            oauth.preflight, answers=(AnswerDescription(204, "The headers say what a browser may send."),)
        ),
    }
    attributes = {
        "GET": Operation(
            pages.system_attributes,
            parameters=(Parameter("done", "The change that was made, for the page to report.", _CHANGE),),
            answers=(_PAGE,),
        ),
        "POST": Operation(pages.change_system_attribute, body={FORM: _attribute_form(names)}, answers=(_REDIRECT,)),
    }
    file = AnswerDescription(200, "The file.", {"text/css": BINARY, "image/svg+xml": BINARY})
    console = (pages.CONSOLE, page_errors, CredentialKind.TICKET)
    return AddressTable(
        "directory",
        f"/{names.prefix}",
        (
            Address("/login", login, oauth.LOGIN, login_errors, CredentialKind.CLIENT),
            Address("/oauth2/token", {"POST": token}, oauth.LOGIN, oauth_errors, CredentialKind.CLIENT),
            Address(AUTHORIZE, authorization, *on_pages),
            Address("/oauth2/authorize", authorization, *on_pages),
            Address(frame.DEVICE, device_page, *on_pages),
            Address(
                "/oauth2/device_authorization",
                {"POST": device_start},
                *(oauth.LOGIN, oauth_errors, CredentialKind.CLIENT),
            ),
            Address("/oauth2/introspect", {"POST": introspection}, protocol.ASKED, oauth_errors, CredentialKind.CLIENT),
            Address("/oauth2/revoke", {"POST": own_revocation}, protocol.ASKED, oauth_errors, CredentialKind.CLIENT),
            Address("/oauth2/userinfo", {"GET": userinfo, "POST": userinfo}, protocol.USERINFO, bearer_errors),
            Address("/oauth2/jwks", {"GET": keys}),
            *(Address(path, {"GET": metadata}) for path in _METADATA),
            Address("/oauth2/.well-known/openid-configuration", {"GET": metadata}),
            Address("/v1/authentication/oauth/tokeninfo", {"POST": tokeninfo}, oauth.TOKENINFO),
            Address("/v1/authentication/tokeninfo", {"POST": tokeninfo}, oauth.TOKENINFO),
            Address("/v1/authentication/oauth/{token}", revocation, oauth.REVOCATION),
            Address("/rest/authentication/oauth/tokeninfo", {"POST": tokeninfo_by_rest}, oauth.TOKENINFO),
            Address("/rest/authentication/oauth/{token}", revocation, oauth.REVOCATION),
            Address("/rest/openapi.json", {"GET": Operation(describe, answers=(_DOCUMENT,))}),
            *rest.addresses("rest"),
            Address("/console", {"GET": Operation(pages.overview, answers=(_PAGE,))}, *console),
            Address("/console/system-attributes", attributes, *console),
            Address("/static/{name}", {"GET": Operation(browser.static, answers=(file,))}, pages.CONSOLE, page_errors),
        ),
        ErrorShape("directory", spelling.rest, {"application/json": spelling.RestError}),
        CredentialKind.NONE,
        (
            *rest.PARTS,
            Parameter("token", "An access token or a refresh token.", place="path"),
            Parameter("name", "Name of a file that the pages use.", place="path"),
        ),
    )


def root_table(names: DirectoryNames, issuer: str) -> AddressTable[Directory]:
    """Make the table of the metadata's addresses at the root, where the issuer has a path (RFC 8414 3.1)."""
    below, told = (
        table(names),
        AnswerDescription(200, "What there is to tell.", {"application/json": {"type": "object"}}),
    )
    metadata = {"GET": Operation(show_metadata, answers=(told,))}
    addresses = tuple(Address(path + urlsplit(issuer).path, metadata) for path in _METADATA)
    return AddressTable("directory metadata", "", addresses, below.shape, CredentialKind.NONE)


async def show_metadata(_request: Request, directory: Directory) -> Response:
    """Tell clients what this authorization server offers, whatever its name in the request."""
    return protocol.metadata(directory, {address.path for address in table(directory.options.names).addresses})


async def describe(request: Request, directory: Directory) -> Response:
    """Describe every address of the directory in OpenAPI 3.1."""
    base, names = request.scope["muniment.base"], directory.options.names
    if base not in directory.descriptions:
        cookie = names.ticket_cookie or "__Host-muniment_ticket"
        described = openapi.document(
            [table(names), older_table(names), root_table(names, directory.issuer)],
            base,
            metadata.version("muniment"),
            cookie,
            openapi.CallerCredentials(),
        )
        directory.descriptions[base] = msgspec.json.encode(described)
    return Response(directory.descriptions[base], headers=spelling.NEVER_STORED, media_type="application/json")


def older_table(names: DirectoryNames) -> AddressTable[Directory]:
    """Make the table of the addresses below ``/v1`` that have a twin below ``/rest``."""
    return dataclasses.replace(
        table(names), name="directory v1", addresses=rest.addresses("v1"), parts=rest.PARTS, note=_TWINS
    )


def _login_form(names: DirectoryNames) -> Schema:
    csrf = f"{names.form_prefix}csrf"
    fields = (csrf, f"{names.form_prefix}username", f"{names.form_prefix}password")
    return {
        "anyOf": [
            *_token_forms(),
            _fields("The sign-in page's form.", dict.fromkeys((*fields, "RFA", "page"), TEXT), fields),
            _fields("The form that signs out.", dict.fromkeys((csrf, "sign_out", "RFA"), TEXT), (csrf, "sign_out")),
        ]
    }


def _token_forms() -> list[Schema]:
    code, asked = {"code_verifier": TEXT, "redirect_uri": TEXT}, {"scope": TEXT, "resource": TEXT}
    return [
        _form("A token for a user's name and password.", "password", "username", "password", "scope", **_CLIENT),
        _form("A further access token.", "refresh_token", "refresh_token", **_CLIENT, scope=TEXT),
        _form("A token for the client itself.", "client_credentials", **_CLIENT, **asked),
        _form("A token for the code that a browser brought.", "authorization_code", "code", **_CLIENT, **code),
        _form(
            "A token for a device, once its user has allowed it.", GRANT_TYPES["device_code"], "device_code", **_CLIENT
        ),
        _form(
            "A token with which the client acts as a user.",
            GRANT_TYPES["token_exchange"],
            *("subject_token", "subject_token_type"),
            **(_CLIENT | asked | dict.fromkeys(("actor_token", "actor_token_type", "requested_token_type"), TEXT)),
        ),
    ]


def _authorization_form(names: DirectoryNames) -> Schema:
    fields = (f"{names.form_prefix}csrf", "request", "decision")
    asked = {parameter.name: TEXT for parameter in _AUTHORIZATION}
    return {
        "anyOf": [
            _fields("What the application asks for.", asked, ("client_id",)),
            _fields("The user's word.", dict.fromkeys(fields, TEXT), fields),
        ]
    }


def _device_form(names: DirectoryNames) -> Schema:
    csrf = f"{names.form_prefix}csrf"
    return _fields(
        "The code, and then the user's word.",
        {csrf: TEXT, "user_code": TEXT, "decision": {"type": "string", "enum": ["allow", "deny"]}},
        (csrf, "user_code"),
    )


def _token_form(what: str) -> Schema:
    return _fields(f"The token to {what}.", {"token": TEXT, "token_type_hint": TEXT, **_CLIENT}, ("token",))


def _attribute_form(names: DirectoryNames) -> Schema:
    csrf = f"{names.form_prefix}csrf"
    free = {"type": "string", "enum": ["yes"], "description": "To add an attribute that no part of this release reads."}
    return _fields(
        "A system attribute, and what to do with it.",
        {"action": _CHANGE, "name": TEXT, "value": TEXT, "free": free, csrf: TEXT},
        ("action", "name", csrf),
    )


def _form(meaning: str, grant_type: str, *required: str, **optional: Schema) -> Schema:
    fields = {"grant_type": {"const": grant_type}, **optional, **dict.fromkeys(required, TEXT)}
    return _fields(meaning, fields, ("grant_type", *required))


def _fields(meaning: str, fields: dict[str, Schema], required: tuple[str, ...]) -> Schema:
    return {"type": "object", "description": meaning, "properties": fields, "required": list(required)}


def routes(directory: Directory) -> list[Route]:
    names, unknown = directory.options.names, _UnknownAddress(directory)
    made = root_table(names, directory.issuer).routes(directory)
    for prefix in spelling.prefixes(directory.options):
        tables = [dataclasses.replace(each, prefix=prefix) for each in (table(names), older_table(names))]
        made += [route for each in tables for route in each.routes(directory)]
        made += [Route(prefix, unknown), Route(f"{prefix}/{{rest:path}}", unknown)]
    return made


def fast_paths(directory: Directory) -> dict[str, tuple[FastPath[Any], Any]]:
    """Return the short ways by their paths."""
    made = table(directory.options.names)
    return {
        path: answering
        for prefix in spelling.prefixes(directory.options)
        for path, answering in dataclasses.replace(made, prefix=prefix).fast_paths(directory).items()
    }


class _UnknownAddress:
    """Answers 404 to every method."""

    def __init__(self, directory: Directory) -> None:
        self._shape = spelling.shape(directory.options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = UnknownAddress("There is nothing at this address.")
        await refuse(Request(scope), refusal, SHARED, self._shape)(scope, receive, send)
