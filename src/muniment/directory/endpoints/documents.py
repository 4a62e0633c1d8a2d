"""Declare the parameters, bodies and answers of the directory's addresses."""

import msgspec

from muniment.directory.console import frame
from muniment.directory.endpoints import spelling
from muniment.directory.options import DirectoryNames
from muniment.web.addresses import TEXT, AnswerDescription, Content, ErrorShape, Parameter, Schema

PAGE_OF_TEXT = {"text/html": TEXT}
FORM = "application/x-www-form-urlencoded"

RESOURCE_ID = Parameter("resource_id", "Identifier of a resource.", place="path")
TOKEN = Parameter("token", "An access token or a refresh token.", place="path")
FILE = Parameter("name", "Name of a file that the pages use.", place="path")

RFA = Parameter("RFA", "Identifier of the resource to sign in to. Empty means the administration.")
PAGE = Parameter("page", "Page of the console to which the sign-in leads back.")
DONE = Parameter(
    "done", "The change that was made, for the page to report.", {"type": "string", "enum": ["add", "change", "delete"]}
)

REDIRECT = AnswerDescription(303, "The browser is led to another page.")


class RestError(msgspec.Struct, rename="camel"):
    """An error of the directory, except at the token endpoint."""

    status: int
    error: str
    error_details: None


class OAuthError(msgspec.Struct):
    """An error of the token endpoint (RFC 6749 5.2)."""

    error: str
    error_description: str


class IssuedToken(msgspec.Struct):
    """The answer to a token request. The answer to a refresh has no refresh token (both given 2.4)."""

    access_token: str
    expires_in: int
    token_type: str
    refresh_token: str | msgspec.UnsetType = msgspec.UNSET


class ResourceSecret(msgspec.Struct):
    """The secret of a resource, under two names. No later answer repeats it."""

    secret_key: str
    secretKey: str  # noqa: N815 - the name on the wire


REST = ErrorShape("directory", spelling.rest, {"application/json": RestError})


def login_errors(names: DirectoryNames) -> ErrorShape:
    """Return the error shape of the token endpoint: OAuth's shape for clients, a page for browsers."""
    content: Content = {"application/json": OAuthError, **PAGE_OF_TEXT}
    return ErrorShape("token-endpoint", spelling.login(names), content, lambda error_code: error_code.code)


def page_errors(names: DirectoryNames) -> ErrorShape:
    """Return the error shape of the console, a page."""
    return ErrorShape("page", frame.page_shape(names), PAGE_OF_TEXT)


def login_form(names: DirectoryNames) -> Schema:
    """Return the schema of the bodies of ``POST /login``: two grant types, and the sign-in page's two forms."""
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


def attribute_form(names: DirectoryNames) -> Schema:
    """Return the schema of the console's form for system attributes."""
    csrf = f"{names.form_prefix}csrf"
    action = {"type": "string", "enum": ["add", "change", "delete"]}
    free = {"type": "string", "enum": ["yes"], "description": "To add an attribute that no part of this release reads."}
    return _fields(
        "A system attribute, and what to do with it.",
        {"action": action, "name": TEXT, "value": TEXT, "free": free, csrf: TEXT},
        ("action", "name", csrf),
    )


def _form(meaning: str, grant_type: str, *required: str, **optional: Schema) -> Schema:
    fields = {"grant_type": {"const": grant_type}, **optional, **dict.fromkeys(required, TEXT)}
    return _fields(meaning, fields, ("grant_type", *required))


def _fields(meaning: str, fields: dict[str, Schema], required: tuple[str, ...]) -> Schema:
    return {"type": "object", "description": meaning, "properties": fields, "required": list(required)}
