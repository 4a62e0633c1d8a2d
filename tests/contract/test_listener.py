"""The listeners of one worker, with callers who break off."""

import gc
import json
import re
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import structlog
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from structlog.testing import capture_logs

from muniment.ground import certificates
from muniment.server import listener, protocol
from muniment.server.acceptor import Crowd
from muniment.server.listener import Listeners
from muniment.web.fast_path import FastFront, FastPath
from muniment.web.options import WebOptions
from muniment.web.requests.transport import Transport
from tests.waiting import until

CALLERS = 5
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: closing sends a reset instead of an end (socket(7))."""


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer every request alike."""
    if scope["type"] == "lifespan":
        while True:
            what = (await receive())["type"]
            await send({"type": f"{what}.complete"})
            if what == "lifespan.shutdown":
                return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"kk"})


@contextmanager
def serving(
    application: ASGIApp, folder: Path, front: FastFront | None = None, *, secured: bool = False, **options: int
) -> Iterator[int]:
    """Serve in a thread, and say the port of plain HTTP, or that of HTTPS if ``secured``."""
    made = certificates.ensure(folder / "tls", ["localhost"], time.time_ns() // 1000)
    https, http = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
    listeners = Listeners(https, http, listener.renewable_tls(made.cert_file, made.key_file), Crowd(1))
    stop, ready, interval = threading.Event(), threading.Event(), sys.getswitchinterval()
    serving = threading.Thread(
        target=listener.serve,
        args=(application, listeners, msgspec.convert(options, WebOptions), stop, ready.set, front),
    )
    serving.start()
    try:
        assert ready.wait(20)
        yield (https if secured else http).getsockname()[1]
    finally:
        stop.set()
        serving.join(20)
        sys.setswitchinterval(interval)
        https.close()
        http.close()


def held() -> int:
    """Count the connections that something still holds."""
    gc.collect()
    return sum(isinstance(each, protocol._Protocol) for each in gc.get_objects())


def test_nothing_is_kept_of_a_connection_that_its_caller_broke_off(tmp_path: Path) -> None:
    with serving(answer, tmp_path) as port:
        for _ in range(CALLERS):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as caller:
                caller.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert caller.recv(1000).startswith(b"HTTP/1.1 200 ")
                caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        until(lambda: not held(), "something is kept")


async def telling(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with what the log's lines of this request had before it bound anything, and bind its path."""
    if scope["type"] == "lifespan":
        await answer(scope, receive, send)
        return
    body = repr(structlog.contextvars.get_contextvars()).encode()
    structlog.contextvars.bind_contextvars(path=scope["path"])
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


def test_of_two_requests_in_one_pipe_the_second_knows_nothing_of_the_first(tmp_path: Path) -> None:
    request = b"GET /first HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(telling, tmp_path) as port, socket.create_connection(("127.0.0.1", port), timeout=20) as caller:
        caller.sendall(request * 2)
        answers = b""
        while answers.count(b"{") < 2:
            answers += caller.recv(1000)
    assert answers.count(b"\r\n\r\n{}") == 2


LINES = {
    "/framed": [(b"content-length", b"2"), (b"x-a", b"b")],
    "/unframed": [(b"x-a", b"b")],
    "/closing": [(b"content-length", b"2"), (b"connection", b"close")],
    "/long": [(b"content-length", b"70000")],
    "/forged-value": [(b"content-length", b"2"), (b"x-a", b"b\r\nx-forged: c")],
    "/forged-name": [(b"content-length", b"2"), (b"x-a: b\r\nx-forged", b"c")],
    "/too-short": [(b"content-length", b"3")],
}


async def whole_or_not(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with a body in one piece; below ``/pieces`` in two messages, so that uvicorn itself writes."""
    if scope["type"] == "lifespan":
        await answer(scope, receive, send)
        return
    path = scope["path"].removeprefix("/pieces")
    body = b"k" * (70_000 if path == "/long" else 2)
    await send({"type": "http.response.start", "status": 200, "headers": LINES[path]})
    if path != scope["path"]:
        await send({"type": "http.response.body", "body": body, "more_body": True})
        body = b""
    await send({"type": "http.response.body", "body": body})


def conversation(port: int, *requests: bytes, has_read: Callable[[bytes], object] | None = None) -> bytes:
    """Send all requests, and return what comes until the server closes, without the time of day and request ids.

    They are sent together, unless ``has_read`` waits until the server has read each.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=30) as caller:
        for piece in requests if has_read else [b"".join(requests)]:
            with suppress(OSError):  # the server has closed already
                caller.sendall(piece)
            if has_read:
                has_read(piece)
        arrived = b""
        with suppress(ConnectionResetError):
            while part := caller.recv(1 << 20):
                arrived += part
    return re.sub(rb"(date|x-request-id): [^\r]*", rb"\1: any", arrived)


@pytest.fixture(scope="module")
def whole_or_not_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with serving(whole_or_not, tmp_path_factory.mktemp("whole")) as port:
        yield port


@pytest.mark.parametrize("path", LINES)
@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_an_answer_by_one_write_is_the_same_as_uvicorns_own(
    whole_or_not_port: int, path: str, method: bytes, version: bytes
) -> None:
    port = whole_or_not_port

    def request(path: str, *lines: bytes) -> bytes:
        head = b"%b %b HTTP/%b\r\nHost: localhost\r\n" % (method, path.encode(), version)
        return head + b"".join(line + b"\r\n" for line in lines) + b"\r\n"

    ours = conversation(port, request(path), request(path, b"Connection: close"))
    theirs = conversation(port, request(f"/pieces{path}"), request(f"/pieces{path}", b"Connection: close"))
    assert b"x-forged" not in ours
    assert ours == theirs


QUESTION = b'{"token": "t"}'


def question(*lines: bytes, version: bytes = b"1.1", body: bytes = QUESTION) -> bytes:
    """A request that a trusted proxy has received over HTTPS."""
    head = [b"Host: localhost", b"X-Forwarded-Proto: https", b"Content-Type: application/json", *lines]
    if not any(line.startswith(b"Transfer-Encoding") for line in lines):
        head.append(b"Content-Length: %d" % len(body))
    return b"POST /hot HTTP/%b\r\n%b\r\n\r\n%b" % (version, b"\r\n".join(head), body)


LAST = b"GET /other HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
CHUNKED = question(
    b"Transfer-Encoding: chunked", body=b"7\r\n%b\r\n7\r\n%b\r\n0\r\n\r\n" % (QUESTION[:7], QUESTION[7:])
)

# What is sent in each piece, and how many of the requests are answered at once.
AT_ONCE: dict[str, tuple[list[bytes], int]] = {
    "one, then another": ([question(), LAST], 1),
    "two in one piece": ([question() + question() + LAST], 1),
    "behind one that is not hot": ([LAST.replace(b"Connection: close\r\n", b"") + question(), LAST], 0),
    "the last one": ([question(b"Connection: close")], 1),
    "HTTP/1.0": ([question(version=b"1.0")], 1),
    "chunks": ([CHUNKED, LAST], 1),
    "the body later": ([question()[:-5], question()[-5:], LAST], 0),
    "the head in two pieces": ([question()[:30], question()[30:], LAST], 1),
    "a caller who waits to send the body": (
        [question(b"Expect: 100-continue")[: -len(QUESTION)], QUESTION, LAST],
        0,
    ),
    "nothing remembered": ([question(body=b"unknown"), LAST], 0),
    "a failure": ([question(body=b"fail"), LAST], 0),
    "no body": ([question(body=b""), LAST], 0),
    "an unreadable end": ([question(b"Transfer-Encoding: chunked", body=b"5\r\nabcde\r\nZZ\r\n"), LAST], 0),
}


def remembering(recalled: list[bytes]) -> FastFront:
    """Make a front that knows the answer to ``QUESTION``, and notes when it gives it at once."""

    def recall(requests: Sequence[tuple[Scope, bytes]], _context: object) -> list[bytes | None]:
        bodies = [body for _, body in requests]
        if b"fail" in bodies:
            raise RuntimeError
        recalled.extend(body for body in bodies if body == QUESTION)
        return [b"remembered" if body == QUESTION else None for body in bodies]

    async def decide(_scope: Scope, body: bytes, _context: object) -> bytes | None:
        return b"remembered" if body == QUESTION else None

    async def no() -> bool:
        return False

    def bug(*_arguments: object) -> Response:
        return Response(status_code=500)

    options = WebOptions(trusted_proxies=("127.0.0.1",))
    front = FastFront(Transport(echo, options, sensitive_prefixes=["/hot"], requires_tls=no, shape=bug))
    headers = ((b"content-type", b"application/json"),)
    front.addresses = {"/hot": (FastPath(decide, b"application/json", headers, recall), None)}
    return front


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 404 with the request's body."""
    if scope["type"] == "lifespan":
        await answer(scope, receive, send)
        return
    body, more = b"", scope["method"] == "POST"
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    lines = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 404, "headers": lines})
    await send({"type": "http.response.body", "body": body})


class Remembering(NamedTuple):
    """Two servers with one front, of which the first answers at once what it can, and what was answered so."""

    at_once: int
    by_tasks: int
    recalled: list[bytes]


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remembering]:
    recalled: list[bytes] = []
    front, folder = remembering(recalled), tmp_path_factory.mktemp("remembering")
    with serving(front, folder, front) as at_once, serving(front, folder) as by_tasks:
        yield Remembering(at_once, by_tasks, recalled)


@pytest.mark.parametrize("form", AT_ONCE)
def test_an_answer_at_once_is_the_one_that_a_task_gives(
    both_ways: Remembering, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recalled, read = both_ways.recalled, list[bytes]()
    recalled.clear()
    data_received = protocol._Protocol.data_received

    def receive(connection: protocol._Protocol, data: bytes) -> None:
        data_received(connection, data)
        read.append(data)

    monkeypatch.setattr(protocol._Protocol, "data_received", receive)
    pieces, at_once = AT_ONCE[form]

    def has_read(piece: bytes) -> None:
        if piece is not LAST:
            until(lambda: b"".join(read).endswith(piece), "a piece is not read")

    answers_at_once = conversation(both_ways.at_once, *pieces, has_read=has_read)
    assert len(recalled) == at_once
    read.clear()
    answers_of_tasks = conversation(both_ways.by_tasks, *pieces, has_read=has_read)
    assert len(recalled) == at_once
    assert answers_at_once == answers_of_tasks
    assert answers_at_once.startswith(b"HTTP/1.1 ")


def test_a_head_that_is_too_long_is_refused_with_a_json_object(tmp_path: Path) -> None:
    """facts 1.7, RFC 6585 5"""
    line = b"X-Filler: %b\r\n" % (b"x" * 100)
    with serving(whole_or_not, tmp_path) as port:
        answered = conversation(port, b"GET /dirws/rest/users HTTP/1.1\r\nHost: localhost\r\n", line * 700)
    head, _, body = answered.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b"content-type: application/json" in head.lower()
    document = json.loads(body)
    assert (document["status"], document["errorDetails"]) == (431, None)
    assert "65536" in document["error"]


def test_questions_of_several_callers_get_each_their_answer(tmp_path: Path) -> None:
    recalled: list[bytes] = []
    front = remembering(recalled)
    with serving(front, tmp_path, front) as port, ExitStack() as stack:
        callers = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30)) for _ in range(2 * CALLERS)
        ]
        for number, caller in enumerate(callers):
            caller.sendall(question(b"Connection: close", body=QUESTION if number % 2 else b"number %d" % number))
        for number, caller in enumerate(callers):
            arrived = b"".join(iter(lambda caller=caller: caller.recv(65_536), b""))  # type: ignore[misc]
            assert arrived.endswith(b"\r\n\r\n" + (b"remembered" if number % 2 else b"number %d" % number))
    assert len(recalled) == CALLERS


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\x16\x03\x01",
        b"GET / HTTP/1.1\r\nX-Half: ",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\na",
    ],
    ids=["nothing", "half a handshake", "half a head", "an idle connection", "half a body"],
)
def test_one_address_keeps_nobody_out(tmp_path: Path, sent: bytes) -> None:
    secured = sent.startswith(b"\x16")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with serving(echo, tmp_path, secured=secured, max_connections=10) as port:
        with ExitStack() as stack:
            for _ in range(20):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30)).sendall(sent)
            for client in ("127.0.0.2", "127.0.0.3"):
                caller = stack.enter_context(socket.create_connection(("127.0.0.1", port), 30, (client, 0)))
                if secured:
                    caller = stack.enter_context(context.wrap_socket(caller))
                caller.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert caller.recv(12) == b"HTTP/1.1 404"
        until(lambda: not held(), "something is kept")


def test_a_connection_that_makes_room_the_moment_it_is_accepted_is_not_kept(tmp_path: Path) -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()

    async def work(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            begun.release()
            if scope["method"] == "GET":
                go_on.wait(20)
        await echo(scope, receive, send)

    def connect(sent: bytes = b"") -> socket.socket:
        caller = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        caller.sendall(sent)
        assert not sent or begun.acquire(timeout=20)
        return caller

    with serving(work, tmp_path, max_connections=10) as port:
        with ExitStack() as stack:
            for _ in range(4):
                connect(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\na")
            last = connect(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            for _ in range(20):
                connect()
            go_on.set()
            assert last.recv(12) == b"HTTP/1.1 404"
        until(lambda: not held(), "something is kept")


def test_a_request_that_cannot_be_read_is_logged_with_its_address(tmp_path: Path) -> None:
    with serving(answer, tmp_path) as port, capture_logs() as lines:
        assert conversation(port, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400 ")
        until(lambda: any(line["event"] == "unreadable request" for line in lines), "nothing is logged")
    assert [line["client"] for line in lines if line["event"] == "unreadable request"] == ["127.0.0.1"]
