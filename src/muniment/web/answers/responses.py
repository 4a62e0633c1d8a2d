"""Call an address's endpoint, and turn a refusal into a response."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from muniment.database.connections import Busy, Unwritable
from muniment.ground.refusals import (
    InsecureTransport,
    Malformed,
    MethodNotAllowed,
    NotAcceptable,
    NotStored,
    Overloaded,
    Refusal,
    TimedOut,
    TooLarge,
    UnknownAddress,
    UnsupportedMediaType,
)
from muniment.web.answers import unsent

H = TypeVar("H")

log = structlog.get_logger("muniment.web")


class ErrorCode(NamedTuple):
    """A refusal's HTTP status at an address, and the interface's own code."""

    status: int
    code: str


Table = Mapping[type[Refusal], ErrorCode]
"""For ``find_code`` the nearest ancestor class counts."""

Shape = Callable[[Request, ErrorCode, str], Response]

SHARED: Table = {
    Malformed: ErrorCode(400, "malformed_request"),
    TooLarge: ErrorCode(413, "too_large"),
    UnsupportedMediaType: ErrorCode(415, "unsupported_media_type"),
    NotAcceptable: ErrorCode(406, "not_acceptable"),
    UnknownAddress: ErrorCode(404, "unknown_address"),
    MethodNotAllowed: ErrorCode(405, "method_not_allowed"),
    InsecureTransport: ErrorCode(403, "tls_required"),
    TimedOut: ErrorCode(408, "timed_out"),
    Overloaded: ErrorCode(503, "overloaded"),
    NotStored: ErrorCode(507, "insufficient_storage"),
}
"""An address's own table goes before."""

BUG = ErrorCode(500, "internal_error")

_HEADERS = "muniment.headers"

FAILURE = "muniment.failure"
"""What a decision about this request has raised already: it is answered, and not decided again."""


class Endpoint(Generic[H]):
    """``prepare`` is awaited first, with the method's name; it may refuse.

    With ``options`` the address answers OPTIONS (RFC 9110 9.3.7). Headers of ``add_header`` do not replace an answer's
    own.
    """

    def __init__(
        self,
        context: H,
        methods: Mapping[str, Callable[[Request, H], Awaitable[Response]]],
        table: Table,
        shape: Shape,
        *,
        prepare: Callable[[Request, str], Awaitable[None]] | None = None,
        options: bool = False,
    ) -> None:
        self._context = context
        self._methods = methods
        self._table = {**SHARED, **table}
        self._shape = shape
        self._prepare = prepare
        self._options = options
        more = ({"HEAD"} if "GET" in methods else set()) | ({"OPTIONS"} if options else set())
        self._methods_allowed = tuple(sorted(more.union(methods)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A bug is logged, and answered with 500."""
        request, failure = Request(scope, receive, send), scope.pop(FAILURE, None)
        response = await self._answer(request) if failure is None else self._failure(request, failure)
        await self._send(request, response, receive, send)

    async def _send(self, request: Request, response: Response, receive: Receive, send: Send) -> None:
        for name, value in request.scope.get(_HEADERS, {}).items():
            response.headers.setdefault(name, value)
        size = len(getattr(response, "body", b""))  # a stream has no body
        if size <= unsent.LONG or unsent.UNSENT not in request.scope:
            await response(request.scope, receive, send)
            return
        try:
            holding = request.scope[unsent.UNSENT].hold(request.scope, size)
        except Overloaded as refusal:
            await refuse(request, refusal, self._table, self._shape)(request.scope, receive, send)
            return
        async with holding:
            await response(request.scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        name = "GET" if request.method == "HEAD" and "HEAD" not in self._methods else request.method
        method = self._methods.get(name)
        try:
            if method is None:
                if self._options and name == "OPTIONS":
                    return Response(status_code=204, headers={"Allow": ", ".join(self._methods_allowed)})
                sentence = f"This address knows {', '.join(self._methods_allowed)}, not {request.method}."
                raise MethodNotAllowed(sentence, self._methods_allowed)
            if "\x00" in request.scope["path"]:
                # PostgreSQL refuses to compare with such a text. No name holds a NUL, so nothing has this address.
                raise UnknownAddress("There is nothing at this address: it holds a NUL character.")
            if self._prepare is not None:
                await self._prepare(request, name)
            return await method(request, self._context)
        except Exception as error:  # noqa: BLE001 - every error has its answer
            return self._failure(request, error)

    def _failure(self, request: Request, error: Exception) -> Response:
        if isinstance(error, Refusal):
            return refuse(request, error, self._table, self._shape)
        if isinstance(error, Busy):
            return refuse(request, trouble(error), self._table, self._shape)
        if isinstance(error, ClientDisconnect):
            return Response(status_code=400)
        log.error("bug", method=request.method, request_id=request.scope.get("muniment.request_id"), exc_info=error)
        return self._shape(request, BUG, "Something went wrong in the server; the log has the details.")


def add_header(request: Request, name: str, value: str) -> None:
    request.scope.setdefault(_HEADERS, {})[name] = value


def trouble(busy: Busy) -> Refusal:
    """NotStored if the database takes no writes, otherwise Overloaded."""
    return NotStored(str(busy)) if isinstance(busy, Unwritable) else Overloaded(str(busy))


def find_code(refusal: Refusal, table: Table) -> ErrorCode:
    """A refusal without a code is a bug: it is logged, and BUG is returned."""
    error_code = next((table[kind] for kind in type(refusal).__mro__ if kind in table), None)
    if error_code is None:
        log.error("refusal without a status", refusal=type(refusal).__name__)
        return BUG
    return error_code


def refuse(request: Request, refusal: Refusal, table: Table, shape: Shape) -> Response:
    error_code = find_code(refusal, table)
    if isinstance(refusal, NotStored):
        log.error("request not stored", reason=refusal.sentence)
    log.info("refused", refusal=type(refusal).__name__, status=error_code.status)
    # The shape may redirect a browser (303). The request is refused nevertheless.
    request.scope["muniment.refused"] = True
    response = shape(request, error_code, refusal.sentence)
    if error_code.status == 503:
        response.headers["Retry-After"] = str(refusal.retry_seconds if isinstance(refusal, Overloaded) else 1)
    if isinstance(refusal, MethodNotAllowed):
        response.headers["Allow"] = ", ".join(refusal.allowed)
    return response


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(body), status, headers, media_type="application/json")
