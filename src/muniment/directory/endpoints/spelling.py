"""How the directory writes an error: the REST shape, the OAuth shape (RFC 6749 5.2), and which address uses which."""

from starlette.requests import Request
from starlette.responses import Response

from muniment.directory.console import frame
from muniment.directory.options import DirectoryNames
from muniment.web.refusals import UnknownAddress
from muniment.web.responses import SHARED, ErrorCode, Shape, json_response

NEVER_STORED = {"Cache-Control": "no-store", "Pragma": "no-cache"}
"""What every answer with a token in it carries (RFC 6749 5.1)."""

_OAUTH_CODES = {500: "server_error", 503: "temporarily_unavailable"}


def rest(_request: Request, said: ErrorCode, sentence: str) -> Response:
    """Write ``{"status", "error", "errorDetails"}``; a 401 asks for a bearer token (RFC 6750 3)."""
    headers = dict(NEVER_STORED)
    if said.status == 401:
        headers["WWW-Authenticate"] = "Bearer" if said.code == "not_signed_in" else 'Bearer error="invalid_token"'
    return json_response({"status": said.status, "error": sentence, "errorDetails": None}, said.status, headers)


def oauth(_request: Request, said: ErrorCode, sentence: str) -> Response:
    """Write ``{"error", "error_description"}``, never to be stored; 401 asks for Basic (RFC 6749 5.2, 9110 11.6.1)."""
    headers = dict(NEVER_STORED)
    if said.status == 401:
        headers["WWW-Authenticate"] = 'Basic realm="token endpoint", charset="UTF-8"'
    body = {"error": said.code, "error_description": _described(sentence)}
    return json_response(body, said.status, headers)


def login(names: DirectoryNames) -> Shape:
    """Make the shape of the token endpoint's address: a page for browsers, OAuth's shape for clients."""
    page = frame.page_shape(names)

    def write(request: Request, said: ErrorCode, sentence: str) -> Response:
        return (page if frame.wants_page(request) else oauth)(request, said, sentence)

    return write


def shape(names: DirectoryNames) -> Shape:
    """Make the shape that fits any address of the directory, for refusals given before an address is looked up."""

    at_login, page = login(names), frame.page_shape(names)

    def write(request: Request, said: ErrorCode, sentence: str) -> Response:
        path = request.scope["path"]
        if path == f"/{names.prefix}/login":
            return at_login(request, ErrorCode(said.status, _OAUTH_CODES.get(said.status, "invalid_request")), sentence)
        if path == f"/{names.prefix}/console" or path.startswith(f"/{names.prefix}/console/"):
            return page(request, said, sentence)
        if said == SHARED[UnknownAddress] and frame.wants_page(request):
            return page(request, said, sentence)
        return rest(request, said, sentence)

    return write


def _described(sentence: str) -> str:
    """Keep to the characters that RFC 6749 5.2 allows in a description."""
    plain = sentence.replace('"', "'").replace("\\", "/")
    return "".join(character if " " <= character <= "~" else "?" for character in plain)
