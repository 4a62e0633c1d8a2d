"""Answers on real sockets, plain and with TLS, that are read slowly or not at all."""

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from tests.contract import test_listener
from tests.contract.test_listener import held, serving
from tests.waiting import until

LARGE = 8 << 20
"""Bytes that no socket's buffers hold."""

BUFFERED = 200_000
"""Bytes of a long answer that the kernel takes before anybody has read them."""

SECURED = pytest.mark.parametrize("secured", [False, True], ids=["plain", "tls"])


class Application:
    """Answers with a long body, below ``/whole`` in one message. ``sent`` counts what the server has taken of it.

    Below ``/buffered`` the body is long, but the kernel takes it whole.
    """

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await test_listener.answer(scope, receive, send)
            return
        size = BUFFERED if scope["path"] == "/buffered" else LARGE
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
        step = 1 << 16 if scope["path"] == "/pieces" else size
        for begin in range(0, size, step):
            more = begin + step < size
            await send({"type": "http.response.body", "body": b"k" * step, "more_body": more})
        self.sent.append(scope["path"])


@contextmanager
def asking(
    port: int, path: str, *, secured: bool, connection: str = "keep-alive", room: int = 4096
) -> Iterator[socket.socket]:
    """Send a request so that little of its answer is on its way before the caller reads it."""
    with socket.socket() as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        caller.settimeout(30)
        caller.connect(("127.0.0.1", port))
        with trusting().wrap_socket(caller) if secured else caller as caller:
            caller.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\n\r\n".encode())
            yield caller


@SECURED
def test_an_answer_is_not_taken_before_its_caller_reads_it(tmp_path: Path, secured: bool) -> None:
    """With TLS, 24 answers of 56 MB that nobody read filled 2.6 GB."""
    application = Application()
    with serving(application, tmp_path, secured=secured) as port, ExitStack() as stack:
        callers = [stack.enter_context(asking(port, "/whole", secured=secured)) for _ in range(3)]
        for caller in callers:
            assert caller.recv(1).startswith(b"H")
        assert not application.sent
        read_all(callers[1])
        until(lambda: application.sent == ["/whole"], "who reads does not get the whole")


@pytest.mark.parametrize(
    ("secured", "connection"),
    [
        (False, "close"),
        (True, "keep-alive"),
        pytest.param(False, "keep-alive", marks=pytest.mark.campaign),
        pytest.param(True, "close", marks=pytest.mark.campaign),
    ],
)
def test_who_does_not_read_an_answer_loses_it(tmp_path: Path, connection: str, secured: bool) -> None:
    path = "/whole" if connection == "close" else "/pieces"
    with (
        serving(Application(), tmp_path, secured=secured, slow_seconds=1, lowest_download_rate=100_000) as port,
        asking(port, path, secured=secured, connection=connection) as caller,
    ):
        assert caller.recv(1), "nobody is answered"
        until(lambda: not held(), "the caller is not cut off")


@SECURED
def test_who_does_not_read_what_the_kernel_has_taken_loses_it_no_later(tmp_path: Path, secured: bool) -> None:
    """Such an answer was not watched before the connection had been idle for ``keep_alive_seconds``."""
    application = Application()
    with (
        serving(
            application,
            tmp_path,
            secured=secured,
            slow_seconds=1,
            lowest_download_rate=100_000,
            keep_alive_seconds=600,
        ) as port,
        asking(port, "/buffered", secured=secured) as caller,
    ):
        assert caller.recv(1), "nobody is answered"
        until(lambda: application.sent == ["/buffered"], "the kernel does not take the answer")
        until(lambda: not held(), "the caller is not cut off")


@SECURED
def test_the_kernel_keeps_nothing_for_who_is_cut_off(tmp_path: Path, secured: bool) -> None:
    """The kernel kept up to 4 MB of each such answer, and offered it for minutes."""
    with (
        serving(Application(), tmp_path, secured=secured, slow_seconds=1, lowest_download_rate=100_000) as port,
        asking(port, "/whole", secured=secured) as caller,
    ):
        assert caller.recv(1), "nobody is answered"
        until(lambda: not held(), "the caller is not cut off")
        arrived = 0
        with suppress(ConnectionResetError):
            arrived = read_all(caller)
        assert arrived < BUFFERED


@pytest.mark.parametrize("secured", [pytest.param(False, marks=pytest.mark.campaign), True], ids=["plain", "tls"])
def test_who_has_read_an_answer_may_take_as_long_for_the_next(tmp_path: Path, secured: bool) -> None:
    with (
        serving(Application(), tmp_path, secured=secured, slow_seconds=1, lowest_download_rate=100_000) as port,
        asking(port, "/buffered", secured=secured) as caller,
    ):
        for _ in range(3):
            time.sleep(0.7)
            assert read_all(caller, BUFFERED) >= BUFFERED - 1000
            time.sleep(0.7)
            caller.sendall(b"GET /buffered HTTP/1.1\r\nHost: localhost\r\n\r\n")


@pytest.mark.parametrize(
    ("secured", "connection"),
    [
        (True, "keep-alive"),
        pytest.param(True, "close", marks=pytest.mark.campaign),
        pytest.param(False, "keep-alive", marks=pytest.mark.campaign),
    ],
)
def test_who_reads_slowly_but_fast_enough_gets_the_whole(tmp_path: Path, secured: bool, connection: str) -> None:
    """The connection's own time without requests does not begin before the answer is read."""
    with (
        serving(Application(), tmp_path, secured=secured, keep_alive_seconds=1) as port,
        asking(port, "/whole", secured=secured, connection=connection) as caller,
    ):
        first = caller.recv(1000)
        time.sleep(3)
        assert first.count(b"k") + read_all(caller) >= LARGE


def trusting() -> ssl.SSLContext:
    """Trust any server."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def read_all(caller: socket.socket, size: int = LARGE) -> int:
    """Read an answer of this size to its end, and return the size of its body."""
    arrived = 0
    while arrived < size - 1000 and (piece := caller.recv(1 << 20)):
        arrived += piece.count(b"k")
    return arrived
