"""How is a short request answered that comes very often? Here, in front of its address's endpoint (decision 0037).

A hot answer takes the same decision as the endpoint, by the same functions. It only leaves out what such a request does
not need: Starlette's request and response. It serves requests of one form: POST without a query, whose body has exactly
one media type and came in one piece. Whatever is not of this form goes to the endpoint as it came, and so does every
request that the hot answer leaves to it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from starlette.types import Message, Receive, Scope, Send

from muniment.web.refusals import Refusal
from muniment.web.responses import Endpoint

H = TypeVar("H")

_LONGEST_BODY = 65_536


@dataclass(frozen=True)
class Hot(Generic[H]):
    """A hot answer: ``decide`` gets the scope, the body, and the half's context.

    ``decide`` returns the bytes of the answer (status 200), or None if the endpoint has to answer; then it has changed
    nothing. It may raise what the endpoint may raise. ``media_type`` is that of the body that it takes. ``headers`` are
    those of the answer, without its size.
    """

    decide: Callable[[Scope, bytes, H], Awaitable[bytes | None]]
    media_type: bytes
    headers: tuple[tuple[bytes, bytes], ...]


class HotEndpoint(Generic[H]):
    """Answers one address: requests of the hot form by ``hot``, all others by ``endpoint``."""

    def __init__(self, hot: Hot[H], endpoint: Endpoint[H], context: H) -> None:
        self._hot = hot
        self._endpoint = endpoint
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        if not self._has_the_form(scope):
            await self._endpoint(scope, receive, send)
            return
        try:
            message = await receive()
        except Refusal as refusal:
            await self._endpoint.fail(refusal, scope, receive, send)
            return
        body: bytes = message.get("body", b"")
        if message["type"] == "http.request" and not message.get("more_body", False) and len(body) <= _LONGEST_BODY:
            try:
                answer = await self._hot.decide(scope, body, self._context)
            except Exception as error:  # noqa: BLE001 - the endpoint knows the answer to each
                await self._endpoint.fail(error, scope, receive, send)
                return
            if answer is not None:
                headers = [*self._hot.headers, (b"content-length", b"%d" % len(answer))]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                await send({"type": "http.response.body", "body": answer})
                return
        await self._endpoint(scope, _again(message, receive), send)

    def _has_the_form(self, scope: Scope) -> bool:
        if scope["method"] != "POST" or scope["query_string"]:
            return False
        return [value for name, value in scope["headers"] if name == b"content-type"] == [self._hot.media_type]


def _again(message: Message, receive: Receive) -> Receive:
    """Return a ``receive`` that returns this message first."""
    messages = [message]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again
