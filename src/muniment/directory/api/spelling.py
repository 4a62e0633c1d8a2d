"""Write the directory's errors: in the REST shape, in the OAuth shape (RFC 6749 5.2), or as a page."""

from collections.abc import Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muniment.directory.console import frame
from muniment.directory.oauth.discovery import AUTHORIZE
from muniment.directory.options import DirectoryNames, DirectoryOptions
from muniment.ground.refusals import (
    Forged,
    InsecureTransport,
    Malformed,
    MethodNotAllowed,
    NotStored,
    Overloaded,
    TimedOut,
    TooLarge,
    UnknownAddress,
    UnsupportedMediaType,
)
from muniment.web.answers.responses import SHARED, ErrorCode, Shape, Table, json_response

NEVER_STORED = {"Cache-Control": "no-store", "Pragma": "no-cache"}
"""For every answer that holds a token (RFC 6749 5.1)."""

_OF_PROGRAMS = ("/rest/", "/v1/")
"""Programs parse every answer there, whatever their Accept prefers."""

_GIVEN = "/v1/authentication/oauth/"
"""Its errors have the shape that was given (given 7)."""

_OAUTH_PAGES = (AUTHORIZE, "/oauth2/authorize", frame.DEVICE)
OF_TRANSPORT: Table = {
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
"""How the OAuth shape names what is wrong with a request before anybody reads its parameters."""

_OAUTH_CODES = {500: "server_error", 503: "temporarily_unavailable"}


class RestError(msgspec.Struct, rename="camel"):
    """An error of the directory, except at the token endpoint."""

    status: int
    error: str
    error_details: None


class V1Error(msgspec.Struct):
    """An error of an address below ``/v1``, except of the given ones."""

    status: int
    error: str
    error_details: None


class OAuthError(msgspec.Struct):
    """An error of the token endpoint (RFC 6749 5.2)."""

    error: str
    error_description: str


def rest(_request: Request, error_code: ErrorCode, sentence: str) -> Response:
    return json_response(RestError(error_code.status, sentence, None), error_code.status, bearer_challenge(error_code))


def v1(_request: Request, error_code: ErrorCode, sentence: str) -> Response:
    return json_response(V1Error(error_code.status, sentence, None), error_code.status, bearer_challenge(error_code))


def bearer_challenge(error_code: ErrorCode) -> dict[str, str]:
    """Write the headers of an error: with 401 it asks for a bearer token (RFC 6750 3)."""
    headers = dict(NEVER_STORED)
    if error_code.status == 401:
        headers["WWW-Authenticate"] = "Bearer" if error_code.code == "not_signed_in" else 'Bearer error="invalid_token"'
    return headers


def oauth(_request: Request, error_code: ErrorCode, sentence: str) -> Response:
    """With 401 the answer asks for Basic (RFC 9110 11.6.1)."""
    headers = dict(NEVER_STORED)
    if error_code.status == 401:
        headers["WWW-Authenticate"] = 'Basic realm="token endpoint", charset="UTF-8"'
    return json_response(OAuthError(error_code.code, _description(sentence)), error_code.status, headers)


def bearer(_request: Request, error_code: ErrorCode, sentence: str) -> Response:
    """The challenge names the error (RFC 6750 3)."""
    headers = dict(NEVER_STORED)
    if error_code.status in (401, 403):
        code = "" if error_code.code == "not_signed_in" else f' error="{error_code.code}"'
        headers["WWW-Authenticate"] = f"Bearer{code}"
    return json_response(OAuthError(error_code.code, _description(sentence)), error_code.status, headers)


def login(names: DirectoryNames) -> Shape:
    page = frame.page_shape(names)

    def write(request: Request, error_code: ErrorCode, sentence: str) -> Response:
        return (page if frame.wants_page(request) else oauth)(request, error_code, sentence)

    return write


def shape(options: DirectoryOptions) -> Shape:
    """For paths whose address is unknown or not looked up yet."""

    names = options.names
    at_login, page, beginnings = login(names), frame.page_shape(names), prefixes(options)

    def write(request: Request, error_code: ErrorCode, sentence: str) -> Response:
        path = _below(beginnings, request.scope["path"])
        if path == "/login":
            return at_login(
                request, ErrorCode(error_code.status, _OAUTH_CODES.get(error_code.status, "invalid_request")), sentence
            )
        if path in _OAUTH_PAGES:
            return page(request, error_code, sentence)
        if path.startswith("/oauth2/"):
            return oauth(
                request, ErrorCode(error_code.status, _OAUTH_CODES.get(error_code.status, "invalid_request")), sentence
            )
        if path == "/console" or path.startswith("/console/"):
            return page(request, error_code, sentence)
        is_of_program = path.startswith(_OF_PROGRAMS)
        if error_code == SHARED[UnknownAddress] and not is_of_program and frame.wants_page(request):
            return page(request, error_code, sentence)
        is_of_v1 = path.startswith("/v1/") and not path.startswith(_GIVEN) and error_code == SHARED[UnknownAddress]
        return (v1 if is_of_v1 else rest)(request, error_code, sentence)

    return write


def prefixes(options: DirectoryOptions) -> list[str]:
    """Return what every address of the directory begins with: its prefix, then the aliases."""
    return [f"/{prefix.strip('/')}" for prefix in (options.names.prefix, *options.prefix_aliases)]


def _below(beginnings: Sequence[str], path: str) -> str:
    return next((path.removeprefix(each) for each in beginnings if path.startswith(f"{each}/")), "")


def _description(sentence: str) -> str:
    """Replace what RFC 6749 5.2 does not allow in a description."""
    plain = sentence.replace('"', "'").replace("\\", "/")
    return "".join(character if " " <= character <= "~" else "?" for character in plain)
