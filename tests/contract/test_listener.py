"""The listeners of one worker, with callers who break off."""

import gc
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from muniment import certificates
from muniment.server import listener
from muniment.server.listener import Listeners
from muniment.web.options import WebOptions
from tests.waiting import until

CALLERS = 5
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: closing sends a reset instead of an end (socket(7))."""


LARGE = 8 << 20
"""Bytes that no socket's buffers hold."""


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer every request alike."""
    if scope["type"] == "lifespan":
        while True:
            what = (await receive())["type"]
            await send({"type": f"{what}.complete"})
            if what == "lifespan.shutdown":
                return
    size = {"/large": LARGE, "/whole": LARGE}.get(scope["path"], 2)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
    left = size if scope["path"] == "/whole" else 2
    for sent in range(0, size - left, 65_536):
        await send({"type": "http.response.body", "body": bytes(min(65_536, size - left - sent)), "more_body": True})
    await send({"type": "http.response.body", "body": b"k" * left})


@contextmanager
def serving(application: ASGIApp, folder: Path, **options: int) -> Iterator[int]:
    """Serve plain HTTP in a thread, and say its port."""
    made = certificates.ensure(folder / "tls", ["localhost"], time.time_ns() // 1000)
    https, http = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
    listeners = Listeners(https, http, str(made.cert_file), str(made.key_file))
    stop, ready, interval = threading.Event(), threading.Event(), sys.getswitchinterval()
    serving = threading.Thread(
        target=listener.serve, args=(application, listeners, msgspec.convert(options, WebOptions), stop, ready.set)
    )
    serving.start()
    try:
        assert ready.wait(20)
        yield http.getsockname()[1]
    finally:
        stop.set()
        serving.join(20)
        sys.setswitchinterval(interval)
        https.close()
        http.close()


def held() -> int:
    """Count the connections that something still holds."""
    gc.collect()
    return sum(isinstance(each, listener._Protocol) for each in gc.get_objects())


def test_nothing_is_kept_of_a_connection_that_its_caller_broke_off(tmp_path: Path) -> None:
    with serving(answer, tmp_path) as port:
        for _ in range(CALLERS):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as caller:
                caller.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert caller.recv(1000).startswith(b"HTTP/1.1 200 ")
                caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        until(lambda: not held(), "something is kept")


def small_window(port: int) -> socket.socket:
    """Connect so that little of an answer is on its way before the caller reads it."""
    caller = socket.socket()
    caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    caller.settimeout(30)
    caller.connect(("127.0.0.1", port))
    return caller


@pytest.mark.parametrize("asked", [b"/large", b"/whole"])
@pytest.mark.parametrize("connection", [b"keep-alive", b"close"])
def test_who_does_not_read_an_answer_loses_it(tmp_path: Path, asked: bytes, connection: bytes) -> None:
    with serving(answer, tmp_path, slow_seconds=1) as port, small_window(port) as caller:
        caller.sendall(b"GET %b HTTP/1.1\r\nHost: localhost\r\nConnection: %b\r\n\r\n" % (asked, connection))
        until(held, "nobody is answered")
        until(lambda: not held(), "the caller is not cut off")


def test_who_reads_slowly_but_fast_enough_gets_the_whole(tmp_path: Path) -> None:
    """The connection's own time without requests does not begin before the answer is read."""
    with serving(answer, tmp_path, keep_alive_seconds=1) as port, small_window(port) as caller:
        caller.sendall(b"GET /whole HTTP/1.1\r\nHost: localhost\r\n\r\n")
        arrived = caller.recv(1000).count(b"k")
        time.sleep(3)
        while arrived < LARGE and (piece := caller.recv(1 << 20)):
            arrived += piece.count(b"k")
        assert arrived >= LARGE


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


def conversation(port: int, *requests: bytes) -> bytes:
    """Send all requests at once, and return what comes until the server closes, without the time of day."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as caller:
        caller.sendall(b"".join(requests))
        arrived = b""
        while piece := caller.recv(1 << 20):
            arrived += piece
    return re.sub(rb"date: [^\r]*", b"date: now", arrived)


@pytest.mark.parametrize("path", LINES)
@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_an_answer_by_one_write_is_the_same_as_uvicorns_own(
    tmp_path: Path, path: str, method: bytes, version: bytes
) -> None:
    def request(path: str, *lines: bytes) -> bytes:
        head = b"%b %b HTTP/%b\r\nHost: localhost\r\n" % (method, path.encode(), version)
        return head + b"".join(line + b"\r\n" for line in lines) + b"\r\n"

    with serving(whole_or_not, tmp_path) as port:
        ours = conversation(port, request(path), request(path, b"Connection: close"))
        theirs = conversation(port, request(f"/pieces{path}"), request(f"/pieces{path}", b"Connection: close"))
        assert b"x-forged" not in ours
        assert ours == theirs
