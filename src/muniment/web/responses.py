"""From an endpoint or a refusal to a response: each address has a table of refusals, each half has its error shapes."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from muniment.db import Busy, Unwritable
from muniment.web.refusals import (
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

H = TypeVar("H")

log = structlog.get_logger("muniment.web")


class ErrorCode(NamedTuple):
    """How an address says one kind of no: a status, and the interface's own code for it."""

    status: int
    code: str


Table = Mapping[type[Refusal], ErrorCode]
"""Which refusals an address answers, and how. The nearest class in the refusal's ancestry counts."""

Shape = Callable[[Request, ErrorCode, str], Response]
"""Writes an error in the interface's own shape: the request, the status and code, the sentence."""

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
"""What every address answers alike unless its own table says otherwise."""

BUG = ErrorCode(500, "internal_error")


class Endpoint(Generic[H]):
    """One address: its methods, each an endpoint function, with one table of refusals and one error shape."""

    def __init__(
        self,
        context: H,
        methods: Mapping[str, Callable[[Request, H], Awaitable[Response]]],
        table: Table,
        shape: Shape,
    ) -> None:
        self._context = context
        self._methods = methods
        self._table = {**SHARED, **table}
        self._shape = shape

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        request = Request(scope, receive, send)
        response = await self._answer(request)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        method = self._methods.get(request.method)
        if method is None and request.method == "HEAD":
            method = self._methods.get("GET")
        try:
            if method is None:
                allowed = tuple(sorted(self._methods))
                raise MethodNotAllowed(f"This address knows {', '.join(allowed)}, not {request.method}.", allowed)
            if "\x00" in request.scope["path"]:
                # PostgreSQL does not even compare with such a text, so nothing can be called so.
                raise UnknownAddress("There is nothing at this address: it holds a NUL character.")
            return await method(request, self._context)
        except Refusal as refusal:
            return refuse(request, refusal, self._table, self._shape)
        except Busy as busy:
            return refuse(request, trouble(busy), self._table, self._shape)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception:
            log.exception("bug", method=request.method, request_id=request.scope.get("muniment.request_id"))
            return self._shape(request, BUG, "Something went wrong in the server; the log has the details.")


def trouble(busy: Busy) -> Refusal:
    """Say to the caller why the database could not be used."""
    return NotStored(str(busy)) if isinstance(busy, Unwritable) else Overloaded(str(busy))


def refuse(request: Request, refusal: Refusal, table: Table, shape: Shape) -> Response:
    """Write the refusal as the table and the shape say; a refusal that no table names is a bug."""
    said = next((table[kind] for kind in type(refusal).__mro__ if kind in table), None)
    if said is None:
        log.error("refusal without a status", refusal=type(refusal).__name__)
        said = BUG
    if isinstance(refusal, NotStored):
        log.error("what was sent cannot be kept", reason=refusal.sentence)
    log.info("refused", refusal=type(refusal).__name__, status=said.status)
    # A page may lead a browser elsewhere (303): what was asked for is refused all the same.
    request.scope["muniment.refused"] = True
    response = shape(request, said, refusal.sentence)
    if said.status == 503:
        response.headers["Retry-After"] = str(refusal.retry_seconds if isinstance(refusal, Overloaded) else 1)
    if isinstance(refusal, MethodNotAllowed) and refusal.allowed:
        response.headers["Allow"] = ", ".join(refusal.allowed)
    return response


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Write a JSON answer (a msgspec Struct, a dict or a list)."""
    return Response(msgspec.json.encode(body), status, headers, media_type="application/json")
