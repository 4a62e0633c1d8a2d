"""How is a frequent request answered with little work? There are two short ways (decisions 0052, 0057).

The listener asks ``FastFront.answer_at_once``, which answers from memory without an asyncio task. ``FastFront`` answers
before the application, without its middleware and Starlette's response.

Both serve POST over HTTPS without a query or a percent sign in the path, with the address's one media type, the body in
one piece, each header only once, and no ``X-Request-Id``. All else goes the ordinary way. What the front's decision
raises, the endpoint answers.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muniment.web.answers.responses import FAILURE
from muniment.web.requests import pace
from muniment.web.requests.access_log import AccessLine
from muniment.web.requests.transport import STARTED, Transport, new_request_id

H = TypeVar("H")

_LONGEST_BODY = 65_536

_Pairs = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True)
class FastPath(Generic[H]):
    """``answer`` returns the body that the endpoint would send (status 200), or changes nothing and returns None; then
    the endpoint answers. It raises what the endpoint may raise.

    ``recall`` does so for several requests, changes nothing, begins no security event, and gives None for what it
    cannot know without waiting. ``headers`` lack Content-Length.
    """

    answer: Callable[[Scope, bytes, H], Awaitable[bytes | None]]
    media_type: bytes
    headers: _Pairs
    recall: Callable[[Sequence[tuple[Scope, bytes]], H], Sequence[bytes | None]] | None = None


class AnswerAtOnce(NamedTuple):
    """Status 200. The header lines have their line ends."""

    header_lines: bytes
    body: bytes


class FastFront:
    """``application`` wraps ``transport`` in other middleware, if any.

    ``addresses`` is filled when the halves are open, and ``record`` then records a request's security events.
    """

    def __init__(self, transport: Transport, application: ASGIApp | None = None) -> None:
        self._transport = transport
        self._application = application or transport
        self.addresses: Mapping[str, tuple[FastPath[object], object]] = {}
        self.record: Callable[[Scope], None] = lambda _scope: None

    def recalls(self, path: str) -> bool:
        """Whether ``answer_at_once`` may answer there."""
        found = self.addresses.get(path)
        return found is not None and found[0].recall is not None

    def answer_at_once(self, requests: Sequence[tuple[Scope, bytes]]) -> list[AnswerAtOnce | None]:
        """``recalls`` must be true of their paths. None goes the ordinary way, which raises again what this did."""
        start = time.perf_counter()
        answers: list[AnswerAtOnce | None] = [None] * len(requests)
        questions: dict[str, list[int]] = {}
        for place, (scope, body) in enumerate(requests):
            path = scope["path"]
            if 0 < len(body) <= _LONGEST_BODY and self._takes(scope, dict(scope["headers"]), self.addresses[path][0]):
                questions.setdefault(path, []).append(place)
        for path, places in questions.items():
            fast, context = self.addresses[path]
            assert fast.recall is not None  # noqa: S101 - the path recalls
            try:
                recalled = fast.recall([requests[place] for place in places], context)
            except Exception:  # noqa: BLE001, S112 - the ordinary way meets it again
                continue
            for place, answer in zip(places, recalled, strict=True):
                if answer is not None:
                    answers[place] = self._at_once(requests[place][0], fast, answer, start)
        return answers

    def _at_once(self, scope: Scope, fast: FastPath[object], answer: bytes, start: float) -> AnswerAtOnce:
        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        lines = self._transport.way(scope, host).header_lines(fast.headers)
        request_id = new_request_id()
        self._note(scope, request_id, 200, len(answer), start)
        return AnswerAtOnce(
            b"%bcontent-length: %d\r\nx-request-id: %b\r\n" % (lines, len(answer), request_id.encode()), answer
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        application = self._application
        if scope["type"] != "http" or scope["path"] not in self.addresses:
            await application(scope, receive, send)
            return
        start, headers = time.perf_counter(), dict(scope["headers"])
        fast, context = self.addresses[scope["path"]]
        if not self._takes(scope, headers, fast):
            await application(scope, receive, send)
            return
        message = pace.begin(receive())
        answer = None
        if not isinstance(message, pace.Waiting) and _is_whole(message):
            try:
                answer = await fast.answer(scope, message["body"], context)
            except Exception as error:  # noqa: BLE001 - the endpoint answers it
                scope[FAILURE], scope[STARTED] = error, start
            except BaseException:
                self._note(scope, new_request_id(), None, 0, start)
                raise
        if answer is None:
            await application(scope, _receive_again(message, receive), send)
            return
        request_id = new_request_id()
        head = [
            *self._transport.way(scope, headers.get(b"host", b"")).complete(fast.headers),
            (b"content-length", b"%d" % len(answer)),
            (b"x-request-id", request_id.encode()),
        ]
        scope["muniment.status"] = 200
        try:
            await send({"type": "http.response.start", "status": 200, "headers": head})
            await send({"type": "http.response.body", "body": answer})
        finally:
            self._note(scope, request_id, 200, len(answer), start)

    def _takes(self, scope: Scope, headers: Mapping[bytes, bytes], fast: FastPath[object]) -> bool:
        self._transport.apply_proxy_headers(scope)
        return (
            scope["scheme"] == "https"
            and _has_form(scope, fast.media_type)
            and len(headers) == len(scope["headers"])
            and b"x-request-id" not in headers
        )

    def _note(self, scope: Scope, request_id: str, status: int | None, size: int, start: float) -> None:
        end, client = time.perf_counter(), scope["client"][0] if scope.get("client") else None
        line = (request_id, None, "POST", scope["path"], status, size, start, end, "https", client)
        self._transport.access_log.note(AccessLine(*line))
        scope["muniment.request_id"] = request_id
        self.record(scope)


def _has_form(scope: Scope, media_type: bytes) -> bool:
    # A slash that is written %2F is part of a name, and the path then another one.
    if scope["method"] != "POST" or scope["query_string"] or b"%" in (scope.get("raw_path") or b""):
        return False
    return [value for name, value in scope["headers"] if name == b"content-type"] == [media_type]


def _is_whole(message: Message) -> bool:
    if message["type"] != "http.request" or message.get("more_body", False):
        return False
    return 0 < len(message.get("body", b"")) <= _LONGEST_BODY


def _receive_again(message: Message | pace.Waiting, receive: Receive) -> Receive:
    messages = [message]

    async def receive_again() -> Message:
        if not messages:
            return await receive()
        first = messages.pop()
        return await first if isinstance(first, pace.Waiting) else first

    return receive_again
