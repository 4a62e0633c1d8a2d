"""How does a connection speak HTTP/1.1? As uvicorn does, with rules that uvicorn lacks."""

from asyncio import TimerHandle, Transport
from collections.abc import Iterable, MutableMapping
from typing import Any, cast

import structlog
from uvicorn._types import (
    ASGI3Application,
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    HTTPResponseBodyEvent,
    HTTPResponseStartEvent,
    Scope,
)
from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from muniment.server.acceptor import Place
from muniment.server.guests import Guest, Guests
from muniment.server.unread import PIECE, Unread
from muniment.web.fast_path import FastFront
from muniment.web.options import WebOptions
from muniment.web.requests.transport import CutShort

log = structlog.get_logger("muniment.protocol")

_LONGEST_HEAD = 65_536
_LARGE_PIECE = 4 * PIECE
"""For a caller who has taken all so far: each piece costs a system call and a TLS write."""

_FRAMING = frozenset({b"connection", b"content-length", b"transfer-encoding"})
_CONSENT_SECONDS = 1.0
_UNKNOWN_CODING = "This server reads a body as it is or with 'Transfer-Encoding: chunked', in no other coding.\n"
_UNREADABLE = "The request cannot be read: its head or the framing of its body is not HTTP/1.1 (RFC 9112).\n"
_TOO_LONG = f"The request's head has more than {_LONGEST_HEAD} bytes."
_UVICORN_MESSAGE = "Invalid HTTP request received."
_TOO_MANY_CONNECTIONS = (
    b"This server has as many connections as it takes, or as one address may have; try again soon.\n"
)
_PLAIN = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"connection", b"close"),
)


def protocol(options: WebOptions, front: FastFront | None, place: Place, guests: Guests) -> type[HttpToolsProtocol]:
    """``place`` counts this worker's connections, ``guests`` has them, ``front`` may answer at once."""
    shared = {"_options": options, "_place": place, "_guests": guests}
    shared["_waiting_room"] = None if front is None else _WaitingRoom(front)
    return type("_Protocol", (_Protocol,), shared)


class _NotImplementedCoding(Exception):
    """An unknown transfer coding (RFC 9112 section 6.1)."""


class _Protocol(HttpToolsProtocol):
    """After an early answer, the rest of the body has a deadline.

    A closing connection stays open until its caller has read the last answer. A request that cannot be read lets an
    earlier one's answer finish, and closes the connection; neither it nor those between get an answer. A request that
    the front may answer at once waits in ``_waiting_room`` if its whole body comes with its head; if the front does
    not, a task answers.
    """

    _options = WebOptions()
    _place: Place
    _guests: Guests
    _waiting_room: "_WaitingRoom | None" = None
    _is_reading = False
    _held: tuple[RequestResponseCycle, ASGI3Application] | None = None
    _head_size = 0
    _in_body = False
    _knows_coding = True
    _head_deadline: TimerHandle | None = None
    _farewell: TimerHandle | None = None
    _current_cycle: RequestResponseCycle | None = None

    def __init__(self, *arguments: Any, guest: Guest, **named_arguments: Any) -> None:
        super().__init__(*arguments, **named_arguments)
        self._guest = guest

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        self._place.enter()
        self._guest.leave = self._leave
        transport.set_write_buffer_limits(PIECE)
        super().connection_made(transport)
        self._unread = Unread(transport, self._options, self.loop)
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        if self._farewell is not None:
            self._farewell.cancel()
        self._unread.stop()
        self._place.leave()
        self._guests.left(self._guest)
        self._guest.leave = _nothing
        super().connection_lost(exc)
        # uvicorn does not do this when the caller disconnects, and its timer would keep 256 KiB in memory.
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        if not self._in_body:
            self._head_size += len(data)
        self._is_reading = True
        super().data_received(data)
        self._is_reading = False
        if self._held is not None:
            (cycle, app), self._held = self._held, None
            self.start_task(cycle, app)
        if self._head_size and not self._in_body and not self.transport.is_closing():
            # This is rare: nearly always the whole head comes at once.
            self._arm()
            if self._head_size > _LONGEST_HEAD:
                self.send_400_response(_TOO_LONG)

    def on_headers_complete(self) -> None:
        self._disarm()
        self._unread.go_on()
        self._guests.begin(self._guest)
        self._head_size = 0
        # The parser accepts every list that ends in "chunked", and would pass on a body that is still compressed.
        codings = [value.strip(b" \t").lower() for name, value in self.headers if name == b"transfer-encoding"]
        self._knows_coding = codings in ([], [b"chunked"])
        if not self._knows_coding:
            raise _NotImplementedCoding
        self._in_body = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()
        if self._held is not None and self._waiting_room is not None:
            (cycle, app), self._held = self._held, None
            self._waiting_room.enter(self, cycle, app)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread.watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._current_cycle is not None and not self._current_cycle.response_complete:
            self._unread.stop()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._see_off()
        elif self._in_body:
            # The body's next piece ends uvicorn's own keep-alive timer. This deadline runs until the next head.
            self._arm()
        elif self.timeout_keep_alive_task is not None:
            self._guests.rest(self._guest)

    def send_400_response(self, msg: str) -> None:
        """Send no refusal where an answer has begun: an earlier request's is finished, this one's is cut off."""
        status, text = b"400 Bad Request", _UNREADABLE if msg == _UVICORN_MESSAGE else f"{msg}\n"
        if not self._knows_coding:
            status, text = b"501 Not Implemented", _UNKNOWN_CODING
        log.info("unreadable request", client=self._guest.client, reason=text.strip())
        cycle = self._current_cycle
        if cycle is not None and not cycle.response_complete:
            if self._in_body and self.cycle is cycle:
                cycle.disconnected = True  # the rest of its body will never come
                cycle.message_event.set()
            if cycle.response_started or not cycle.disconnected:
                cycle.keep_alive = False
                self.pipeline.clear()
                if cycle.disconnected:
                    self.transport.close()
                return
        kind = b"text/plain; charset=utf-8"
        if msg == _TOO_LONG:
            # RFC 6585 5. A program gets a JSON object, as from the directory's addresses: the path is not read yet.
            status, kind = b"431 Request Header Fields Too Large", b"application/json"
            text = f'{{"status": 431, "error": "{_TOO_LONG}", "errorDetails": null}}\n'
        headers = _lines(((b"content-type", kind), *_PLAIN[1:], (b"content-length", b"%d" % len(text))))
        self.transport.write(b"HTTP/1.1 " + status + b"\r\n" + headers + b"\r\n" + text.encode("ascii"))
        self.transport.close()
        self._see_off()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._current_cycle = cycle
        room = self._waiting_room
        if self._guest.is_one_too_many:
            log.warning("too many connections", client=self._guest.client)
            self.start_task(cycle, _overloaded)
        elif self._is_reading and room is not None and room.front.recalls(cycle.scope["path"]):
            self._held = cycle, app
        else:
            self.start_task(cycle, app)

    def start_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        async def answer(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
            try:
                await app(scope, receive, _Sender(cycle, send, self._unread))
            except CutShort:
                # ``close`` would wait until the caller has read all bytes that are still to be sent. The log has the
                # reason already, so the server need not report an answer that was left incomplete.
                self.transport.abort()
                cycle.disconnected = True

        super()._start_asgi_task(cycle, answer)

    def shutdown(self) -> None:
        super().shutdown()
        self._see_off()

    def timeout_keep_alive_handler(self) -> None:
        if self._unread.watch():
            # The caller is still reading the last answer.
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
            return
        super().timeout_keep_alive_handler()
        self._see_off()

    def eof_received(self) -> None:
        super().eof_received()
        self._see_off()

    def _leave(self) -> None:
        self.transport.close()
        if self._unread.watch():
            self._see_off()
        else:
            self.transport.abort()

    def _see_off(self) -> None:
        """TLS is closed when the other side consents: late or never."""
        if self._farewell is None:
            self._farewell = self.loop.call_later(_CONSENT_SECONDS, self._end)

    def _end(self) -> None:
        self._farewell = None
        if not self.transport.is_closing():
            return
        if self._unread.watch():
            self._see_off()
        else:
            self.transport.abort()

    def _arm(self) -> None:
        if self._head_deadline is None:
            self._head_deadline = self.loop.call_later(self._options.header_seconds, self._head_is_late)
            self._guests.wait_for(self._guest)

    def _head_is_late(self) -> None:
        self._head_deadline = None
        if self._unread.watch():
            self._arm()
        else:
            self.timeout_keep_alive_handler()

    def _disarm(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None


class _WaitingRoom:
    """Holds requests that the front may answer at once, until the event loop has read all connections: together they
    may share one look at the database.
    """

    def __init__(self, front: FastFront) -> None:
        self.front = front
        self._waiting: list[tuple[_Protocol, RequestResponseCycle, ASGI3Application]] = []

    def enter(self, protocol: _Protocol, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        if not self._waiting:
            protocol.loop.call_soon(self._answer)
        self._waiting.append((protocol, cycle, app))

    def _answer(self) -> None:
        waiting, self._waiting = self._waiting, []
        writable = [not (cycle.flow.write_paused or cycle.transport.is_closing()) for _, cycle, _ in waiting]
        ready = [request for request, can in zip(waiting, writable, strict=True) if can]
        requests = [(cast(MutableMapping[str, Any], cycle.scope), bytes(cycle.body)) for _, cycle, _ in ready]
        for (protocol, cycle, app), answer in zip(ready, self.front.answer_at_once(requests), strict=True):
            if answer is None:
                protocol.start_task(cycle, app)
                continue
            lines = _lines(cycle.default_headers)
            closing = b"" if cycle.keep_alive else b"connection: close\r\n"
            _write(cycle, b"".join([STATUS_LINE[200], lines, answer.header_lines, closing, b"\r\n", answer.body]))
            cycle.on_response = _nothing
        for (protocol, cycle, app), can in zip(waiting, writable, strict=True):
            if not can:
                protocol.start_task(cycle, app)


class _Sender:
    """Sends a short answer in one piece, as nearly all are, with one write: each costs a TLS record.

    uvicorn sends the others. As the kernel may take a long answer whole before its caller has read any of it,
    ``unread`` watches from then on.
    """

    __slots__ = ("_cycle", "_head", "_send", "_unread")

    def __init__(self, cycle: RequestResponseCycle, send: ASGISendCallable, unread: Unread) -> None:
        self._cycle = cycle
        self._send = send
        self._unread = unread
        self._head: HTTPResponseStartEvent | None = None

    async def __call__(self, message: ASGISendEvent) -> None:
        cycle = self._cycle
        _notice_the_end(cycle)
        if message["type"] == "http.response.start":
            self._head = message
            return
        head, self._head = self._head, None
        if head is not None:
            if message["type"] == "http.response.body" and (answer := self._in_one_piece(head, message)) is not None:
                if cycle.flow.write_paused and not cycle.disconnected:
                    await cycle.flow.drain()
                if not cycle.disconnected:
                    _write(cycle, answer)
                return
            await self._send(head)
        if message["type"] == "http.response.body" and len(message.get("body", b"")) > PIECE:
            await self._in_pieces(message)
        else:
            await self._send(message)
        if cycle.response_complete and not cycle.disconnected:
            self._unread.watch()

    async def _in_pieces(self, message: HTTPResponseBodyEvent) -> None:
        cycle, body, more = self._cycle, message["body"], message.get("more_body", False)
        begin = 0
        while begin < len(body):
            _notice_the_end(cycle)
            if cycle.disconnected:
                return
            end = begin + (PIECE if cycle.transport.get_write_buffer_size() else _LARGE_PIECE)
            await self._send(
                {"type": "http.response.body", "body": body[begin:end], "more_body": more or end < len(body)}
            )
            begin = end

    def _in_one_piece(self, head: HTTPResponseStartEvent, end: HTTPResponseBodyEvent) -> bytes | None:
        """Join an answer that is short, whole and framed by its Content-Length alone."""
        cycle, body, headers = self._cycle, end.get("body", b""), list(head.get("headers", ()))
        if end.get("more_body", False) or len(body) > PIECE or cycle.scope["method"] == "HEAD":
            return None
        if [pair for pair in headers if pair[0] in _FRAMING] != [(b"content-length", b"%d" % len(body))]:
            return None
        names, values = zip(*headers, strict=True)
        if HEADER_RE.search(b"".join(names)) or HEADER_VALUE_RE.search(b"".join(values)):
            return None  # uvicorn says what is wrong
        if not cycle.keep_alive:
            headers.append((b"connection", b"close"))
        return STATUS_LINE[head["status"]] + _lines((*cycle.default_headers, *headers)) + b"\r\n" + body


def _notice_the_end(cycle: RequestResponseCycle) -> None:
    """Note a lost connection: uvicorn does so a turn of the loop later, and not for pipelined requests."""
    if cycle.transport.is_closing():
        cycle.disconnected = True


def _write(cycle: RequestResponseCycle, answer: bytes) -> None:
    """Do what uvicorn's ``send`` does for the two messages of such an answer."""
    cycle.response_started, cycle.waiting_for_100_continue = True, False
    cycle.transport.write(answer)
    cycle.response_complete = True
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()


def _nothing() -> None:
    """Replaces a method by which something and its protocol would keep each other in memory."""


async def _overloaded(_scope: Scope, _receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    headers = [*_PLAIN, (b"retry-after", b"1"), (b"content-length", b"%d" % len(_TOO_MANY_CONNECTIONS))]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": _TOO_MANY_CONNECTIONS, "more_body": False})


def _lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])
