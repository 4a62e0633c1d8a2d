"""Rights that end while bytes are on a real socket, and callers who send or read too slowly (issue 8, 1; failures C1).

Printed beside the bounds: what still arrived after a revocation, and how long who is too slow was kept.
"""

import random
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.campaign.house import REPOSITORY, Visitor
from tests.e2e.processes import ServedHouse, Server
from tests.waiting import until

LARGE = 60_000_000
BETWEEN = 4 << 20
"""Bytes of a download between two questions, by default."""

ON_THE_WAY = 8 << 20
"""Bytes that the buffers of both ends may hold."""

DOWNLOADS = ("objects/{}/content-media", "archived-contents?object-id={}")
IMPATIENT = ("web.body_seconds=5", "web.slow_seconds=5")

pytestmark = pytest.mark.campaign


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServedHouse, Server]]:
    """A server that waits for slow callers for 5 seconds."""
    house = ServedHouse(tmp_path_factory.mktemp("house"))
    with house.serve(*(word for setting in IMPATIENT for word in ("--set", setting))) as running:
        yield house, running


@pytest.fixture
def visitor(server: tuple[ServedHouse, Server]) -> Iterator[Visitor]:
    made = Visitor(server[1], server[0].world)
    yield made
    made.close()


def connected(server: Server, window: int = 0) -> ssl.SSLSocket:
    trust = ssl.create_default_context(cafile=str(server.data / "tls" / "ca.pem"))
    plain = socket.socket()
    if window:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    plain.settimeout(60)
    plain.connect(("127.0.0.1", server.port))
    return trust.wrap_socket(plain, server_hostname="localhost")


def asked(visitor: Visitor, method: str, path: str, *more: str) -> bytes:
    lines = (f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {visitor.access}", *more)
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def ended(visitor: Visitor) -> None:
    assert visitor.revoke_another(visitor.access).status_code == 204


def to_the_end(caller: ssl.SSLSocket) -> bytes:
    arrived = bytearray()
    try:
        while piece := caller.recv(1 << 18):
            arrived += piece
    except (ConnectionError, ssl.SSLError):
        pass
    return bytes(arrived)


@pytest.mark.parametrize("path", DOWNLOADS)
def test_a_download_is_cut_off_when_the_token_is_revoked(
    server: tuple[ServedHouse, Server], visitor: Visitor, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = visitor.create("large", random.Random(1).randbytes(LARGE))
    large = made.json()["properties"]["r_object_id"]
    with closing(connected(server[1], 65_536)) as caller:
        caller.sendall(asked(visitor, "GET", f"{REPOSITORY}/{path.format(large)}"))
        first = caller.recv(1 << 18)
        assert first.startswith(b"HTTP/1.1 200 ")
        ended(visitor)
        began = time.monotonic()
        arrived = len(first) + len(to_the_end(caller))
        took = time.monotonic() - began
    with capsys.disabled():
        print(f"\n60 MB from {path}, revoked at its start: {arrived / 1e6:.1f} MB arrived (bound 12.6), {took:.2f} s")
    assert arrived < BETWEEN + ON_THE_WAY


_BODIES = {
    "search": ("search", "application/xml"),
    "content": ("objects?object-name=slow", "application/octet-stream"),
    "batch": ("batches", "application/json"),
    "page of content": ("objects/{}/contents?overwrite=true", "application/octet-stream"),
    "version": ("objects/{}/versions", "application/octet-stream"),
    "comment": ("objects/{}/comments", "application/json"),
    "archive": ("archived-contents", "application/json"),
}


@pytest.mark.parametrize("what", _BODIES)
def test_a_body_of_a_byte_a_second_ends(
    server: tuple[ServedHouse, Server], visitor: Visitor, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    below, kind = _BODIES[what]
    held = visitor.create("held", b"x").json()["properties"]["r_object_id"]
    assert visitor.http.put(f"{REPOSITORY}/objects/{held}/lock").status_code == 200
    path = f"{REPOSITORY}/{below.format(held)}"
    with closing(connected(server[1])) as caller:
        caller.sendall(asked(visitor, "POST", path, f"Content-Type: {kind}", "Content-Length: 1000"))
        began, answer = time.monotonic(), b""
        caller.settimeout(1)
        for _ in range(60):
            try:
                caller.sendall(b" ")
                answer = caller.recv(1000)
                break
            except TimeoutError:
                continue
        took = time.monotonic() - began
    with capsys.disabled():
        print(f"\na byte a second to {what}: {took:.1f} s (bound 5 s and what the machine adds)")
    assert answer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("path", DOWNLOADS)
def test_an_answer_that_nobody_reads_is_given_up(
    server: tuple[ServedHouse, Server], visitor: Visitor, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = visitor.create("large", random.Random(1).randbytes(LARGE))
    large = made.json()["properties"]["r_object_id"]
    with closing(connected(server[1], 4096)) as caller:
        given_up = server[1].log_text.count("an answer was read too slowly")
        caller.sendall(asked(visitor, "GET", f"{REPOSITORY}/{path.format(large)}"))
        began = time.monotonic()
        until(lambda: server[1].log_text.count("an answer was read too slowly") > given_up)
        took = time.monotonic() - began
        arrived = len(to_the_end(caller))
    with capsys.disabled():
        print(f"\na download that nobody reads: given up after {took:.1f} s (bound 5 s and what the machine adds)")
    assert arrived < ON_THE_WAY
