"""Every address of the directory on one page: its methods, what they take and answer, and the codes of its refusals.

A row only describes credentials: the function asks for them. Sources: given 4.1 to 4.5, and docs/interface.md for the
console.
"""

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from muniment.directory.api import fast_path, oauth, resources, spelling
from muniment.directory.console import frame, pages, sign_in
from muniment.directory.context import Directory
from muniment.directory.oauth.token_requests import TokenResponse
from muniment.directory.oauth.tokeninfo import TokenInfo
from muniment.directory.options import DirectoryNames
from muniment.ground.refusals import UnknownAddress
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

FORM = "application/x-www-form-urlencoded"

_TEXT = {"text/html": TEXT}
_PAGE = AnswerDescription(200, "The page.", _TEXT)
_REDIRECT = AnswerDescription(303, "The browser is led to another page.")
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
        at_once=fast_path.TOKENINFO,
    )
    login = {
        "GET": Operation(
            sign_in.show_sign_in,
            parameters=(
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
            fast=fast_path.LOGIN,
            at_once=fast_path.REFRESH,
        ),
    }
    revocation = {
        "DELETE": Operation(oauth.revoke, answers=(AnswerDescription(204, "The grant has ended."),)),
        "OPTIONS": Operation(
            oauth.preflight, answers=(AnswerDescription(204, "The headers say what a browser may send."),)
        ),
    }
    secret = AnswerDescription(200, "The secret of the resource.", {"application/json": resources.ResourceSecret})
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
            Address("/v1/authentication/oauth/tokeninfo", {"POST": tokeninfo}, oauth.TOKENINFO),
            Address("/v1/authentication/tokeninfo", {"POST": tokeninfo}, oauth.TOKENINFO),
            Address("/v1/authentication/oauth/{token}", revocation, oauth.REVOCATION),
            Address(
                "/rest/resources/{resource_id}/activate",
                {"POST": Operation(resources.activate, answers=(secret,))},
                resources.ACTIVATION,
                credentials=CredentialKind.BEARER,
            ),
            Address("/console", {"GET": Operation(pages.overview, answers=(_PAGE,))}, *console),
            Address("/console/system-attributes", attributes, *console),
            Address("/static/{name}", {"GET": Operation(browser.static, answers=(file,))}, pages.CONSOLE, page_errors),
        ),
        ErrorShape("directory", spelling.rest, {"application/json": spelling.RestError}),
        CredentialKind.NONE,
        (
            Parameter("resource_id", "Identifier of a resource.", place="path"),
            Parameter("token", "An access token or a refresh token.", place="path"),
            Parameter("name", "Name of a file that the pages use.", place="path"),
        ),
    )


def _login_form(names: DirectoryNames) -> Schema:
    client = {"client_id": TEXT, "client_secret": TEXT}
    csrf = f"{names.form_prefix}csrf"
    fields = (csrf, f"{names.form_prefix}username", f"{names.form_prefix}password")
    return {
        "anyOf": [
            _form("A token for a user's name and password.", "password", "username", "password", "scope", **client),
            _form("A further access token.", "refresh_token", "refresh_token", **client, scope=TEXT),
            _fields("The sign-in page's form.", dict.fromkeys((*fields, "RFA", "page"), TEXT), fields),
            _fields("The form that signs out.", dict.fromkeys((csrf, "sign_out", "RFA"), TEXT), (csrf, "sign_out")),
        ]
    }


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
    addresses = table(directory.options.names)
    unknown = _UnknownAddress(directory)
    return [
        *addresses.routes(directory),
        Route(addresses.prefix, unknown),
        Route(f"{addresses.prefix}/{{rest:path}}", unknown),
    ]


class _UnknownAddress:
    """Answers 404 to every method."""

    def __init__(self, directory: Directory) -> None:
        self._shape = spelling.shape(directory.options.names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = UnknownAddress("There is nothing at this address.")
        await refuse(Request(scope), refusal, SHARED, self._shape)(scope, receive, send)
