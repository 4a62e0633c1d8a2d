"""How is a frequent request answered with little work? In one of two short ways (decisions 0037, 0052).

``HotFront`` stands before everything else and answers what is remembered or soon decided. ``HotEndpoint`` is an
endpoint that takes its decision without Starlette's request and response. Both serve requests of one form:
POST without a query, whose body has exactly one media type. The front also wants HTTPS, and both want the body in one
piece. Whatever is not of this form, and whatever they leave to it, goes the ordinary way as it came. So does whatever
the front's decision refuses: the endpoint answers the refusal, and decides nothing again.

No rule is written here a second time: a remembered answer was decided by the endpoint, and headers, request ids and log
lines are those of ``Transport``.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from muniment.web import pace
from muniment.web.access_log import AccessLine
from muniment.web.responses import Endpoint, Shape, Table
from muniment.web.transport import STARTED, Transport, new_request_id

H = TypeVar("H")

_LONGEST_BODY = 65_536

_FAILURE = "muniment.failure"
"""Where a request's scope holds what the front's decision raised."""

_Pairs = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True)
class Hot(Generic[H]):
    """A decision in short: ``decide`` gets the scope, the body, and the half's context.

    It returns the bytes of the answer (status 200), or None if the endpoint has to answer; then it has changed nothing.
    It raises what the endpoint may raise. ``media_type`` is that of the body that it takes. ``headers`` are those of
    the answer, without its size.
    """

    decide: Callable[[Scope, bytes, H], Awaitable[bytes | None]]
    media_type: bytes
    headers: _Pairs


@dataclass(frozen=True)
class Foremost(Generic[H]):
    """An answer that comes before everything else: ``answer`` gets the scope, the body, and the half's context.

    It returns the answer that the endpoint would give now (status 200), or None if the endpoint has to answer; then it
    has changed nothing. It tells no event. If it changes anything, the endpoint is a ``HotEndpoint``, which answers
    whatever it raises. ``media_type`` and ``headers`` are as in ``Hot``.
    """

    answer: Callable[[Scope, bytes, H], Awaitable[bytes | None]]
    media_type: bytes
    headers: _Pairs


class HotFront:
    """ASGI middleware around ``Transport``. ``addresses`` are filled when the halves are open."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.addresses: Mapping[str, tuple[Foremost[object], object]] = {}
        """What may be answered here at which path, and the context for it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        transport = self._transport
        if scope["type"] != "http" or scope["path"] not in self.addresses:
            await transport(scope, receive, send)
            return
        start, headers = time.perf_counter(), dict(scope["headers"])
        foremost, context = self.addresses[scope["path"]]
        transport.apply_proxy_headers(scope)
        if not (
            scope["scheme"] == "https"
            and _has_form(scope, foremost.media_type)
            and len(headers) == len(scope["headers"])
            and b"x-request-id" not in headers
        ):
            await transport(scope, receive, send)
            return
        message = pace.begin(receive())
        answer = None
        if not isinstance(message, pace.Waiting) and _is_whole(message):
            try:
                answer = await foremost.answer(scope, message["body"], context)
            except Exception as error:  # noqa: BLE001 - the endpoint answers it
                scope[_FAILURE], scope[STARTED] = error, start
        if answer is None:
            await transport(scope, _again(message, receive), send)
            return
        request_id, status = new_request_id(), None
        head = [
            *transport.way(scope, headers.get(b"host", b"")).complete(foremost.headers),
            (b"content-length", b"%d" % len(answer)),
            (b"x-request-id", request_id.encode()),
        ]
        try:
            await send({"type": "http.response.start", "status": 200, "headers": head})
            status = 200
            await send({"type": "http.response.body", "body": answer})
        finally:
            end, client = time.perf_counter(), scope["client"][0] if scope.get("client") else None
            line = (request_id, None, "POST", scope["path"], status, len(answer), start, end, "https", client)
            transport.access_log.note(AccessLine(*line))


class HotEndpoint(Endpoint[H]):
    """An endpoint with a short way for requests of the hot form."""

    def __init__(
        self,
        hot: Hot[H],
        context: H,
        methods: Mapping[str, Callable[[Request, H], Awaitable[Response]]],
        table: Table,
        shape: Shape,
    ) -> None:
        super().__init__(context, methods, table, shape)
        self._hot = hot

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        if not _has_form(scope, self._hot.media_type):
            await super().__call__(scope, receive, send)
            return
        answer = None
        try:
            failure: Exception | None = scope.pop(_FAILURE, None)
            if failure is not None:
                raise failure
            message = await receive()
            if _is_whole(message):
                answer = await self._hot.decide(scope, message["body"], self._context)
        except Exception as error:  # noqa: BLE001 - an endpoint has an answer to each
            await self._fail(error, scope, receive, send)
            return
        if answer is None:
            await super().__call__(scope, _again(message, receive), send)
            return
        headers = [*self._hot.headers, (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


def _has_form(scope: Scope, media_type: bytes) -> bool:
    if scope["method"] != "POST" or scope["query_string"]:
        return False
    return [value for name, value in scope["headers"] if name == b"content-type"] == [media_type]


def _is_whole(message: Message) -> bool:
    if message["type"] != "http.request" or message.get("more_body", False):
        return False
    return 0 < len(message.get("body", b"")) <= _LONGEST_BODY


def _again(message: Message | pace.Waiting, receive: Receive) -> Receive:
    """Return a ``receive`` that begins with this message, whether it is there or awaited."""
    messages = [message]

    async def receive_again() -> Message:
        if not messages:
            return await receive()
        first = messages.pop()
        return await first if isinstance(first, pace.Waiting) else first

    return receive_again
