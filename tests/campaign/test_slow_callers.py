"""A hundred callers who send or read slowly: everybody else is served as before.

Source: issue 4, 2: "slow readers and writers (100 stalled connections leave p99 within 3x)".
"""

import random
import socket
import ssl
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.campaign.house import REPOSITORY, Visitor
from tests.e2e.processes import ServedHouse, Server

CALLERS = 100
ROUNDS = 100
MANY = ("--set", "repository.max_downloads=200", "--set", "repository.max_uploads=200")
"""One caller sends all of them here: their own caps would refuse most."""

ENOUGH = 12 << 20
"""Bytes of an answer that no socket's buffers hold."""

LARGE = random.Random(4).randbytes(ENOUGH)
"""A content that does not get smaller in an archive."""


def connected(server: Server) -> ssl.SSLSocket:
    trust = ssl.create_default_context(cafile=str(server.data / "tls" / "ca.pem"))
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(30)
    plain.connect(("127.0.0.1", server.port))
    return trust.wrap_socket(plain, server_hostname="localhost")


def sent(how: str, visitor: Visitor, large: str, number: int) -> bytes:
    """Write what a stalled caller sends before he stops."""
    host = f"Host: localhost\r\nAuthorization: Bearer {visitor.access}\r\n"
    upload = f"POST {REPOSITORY}/objects?object-name=slow-{number} HTTP/1.1\r\n{host}Content-Type: text/plain\r\n"
    form = "application/x-www-form-urlencoded"
    match how:
        case "head":
            return b"GET /dirws/login HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
        case "body":
            return f"{upload}Content-Length: 100000000\r\n\r\nbegun".encode()
        case "form":
            return (
                f"POST /dirws/login HTTP/1.1\r\n{host}Content-Type: {form}\r\nContent-Length: 60000\r\n\r\na=".encode()
            )
        case "batch":
            kind = f"{host}Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n"
            return f'POST {REPOSITORY}/batches HTTP/1.1\r\n{kind}{{"operations": ['.encode()
        case "archive":
            return f"GET {REPOSITORY}/archived-contents?object-id={large} HTTP/1.1\r\n{host}\r\n".encode()
        case _:
            return f"GET {REPOSITORY}/objects/{large}/content-media HTTP/1.1\r\n{host}\r\n".encode()


@contextmanager
def stalled(server: Server, visitor: Visitor, large: str, how: str) -> Iterator[list[ssl.SSLSocket]]:
    """Hold a hundred connections that have begun and go no further."""
    with ExitStack() as closing:
        callers = []
        for number in range(CALLERS):
            caller = closing.enter_context(connected(server))
            caller.sendall(sent(how, visitor, large, number))
            callers.append(caller)
        yield callers


def served(visitor: Visitor, document: str) -> list[float]:
    """Ask for different things in turn; give how long each took, in milliseconds."""
    took = []
    asked: list[Callable[[], httpx.Response]] = [visitor.tokeninfo, visitor.refresh]
    asked += [lambda: visitor.media(document), lambda: visitor.search("x")]
    for _ in range(ROUNDS):
        for ask in asked:
            began = time.perf_counter()
            assert ask().status_code == 200
            took.append((time.perf_counter() - began) * 1000)
    return took


def p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


@pytest.mark.campaign
@pytest.mark.parametrize("how", ["head", "body", "form", "batch", "reader", "archive"])
def test_a_hundred_stalled_callers_leave_service_to_the_others(tmp_path: Path, how: str) -> None:
    """Nobody of the hundred goes on before the others are answered: whoever waited for one of them had no answer."""
    house = ServedHouse(tmp_path)
    patient = (
        "--set",
        "web.header_seconds=600",
        "--set",
        "web.body_pause_seconds=600",
        "--set",
        "web.slow_seconds=600",
    )
    with house.serve(*MANY, *patient) as server:
        visitor = Visitor(server, house.world)
        assert visitor.create("small", b"x").status_code == 201
        assert visitor.create("large", LARGE).status_code == 201
        small, large = visitor.contents_by_id
        worker = next(pid for pid, files in server.children().items() if any("directory.db" in file for file in files))
        served(visitor, small)
        idle, before = served(visitor, small), memory(worker)
        with stalled(server, visitor, large, how) as callers:
            busy, held = served(visitor, small), memory(worker)
            print(
                f"100 stalled by {how}: p50 {statistics.median(idle):.1f} -> {statistics.median(busy):.1f} ms, "
                f"p99 {p99(idle):.1f} -> {p99(busy):.1f} ms ({p99(busy) / p99(idle):.1f}x), "
                f"longest {max(busy):.0f} ms (bound 1000 + 3 x {max(idle):.0f}), "
                f"memory {before >> 20} -> {held >> 20} MiB"
            )
            assert held - before < CALLERS * (5 << 19), "a stalled answer is held in memory, beyond its buffers"
            if how in {"reader", "archive"}:
                assert read_to_its_end(callers[0]) >= ENOUGH
        assert visitor.create("after", b"z").status_code == 201
        visitor.holds()
        assert not server.has_logged("bug")


@pytest.mark.campaign
def test_stalled_callers_are_cut_off_in_time(tmp_path: Path) -> None:
    """Whoever sends nothing for as long as the settings allow loses his connection, and nothing of his is kept."""
    house = ServedHouse(tmp_path)
    with house.serve(*MANY, "--set", "web.header_seconds=2", "--set", "web.body_pause_seconds=2") as server:
        visitor = Visitor(server, house.world)
        assert visitor.create("large", LARGE).status_code == 201
        (large,) = visitor.contents_by_id
        for how, said in (
            ("head", b""),
            ("body", b"HTTP/1.1 408"),
            ("form", b"HTTP/1.1 408"),
            ("batch", (b"HTTP/1.1 408", b"HTTP/1.1 503")),  # one caller may have a few batches under way
        ):
            with stalled(server, visitor, large, how) as callers:
                for caller in callers:
                    assert caller.recv(100).startswith(said)
        assert not list((house.data / "content" / "incoming").iterdir())


def memory(process: int) -> int:
    """Say how much memory a process takes of its own, in bytes."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def read_to_its_end(caller: ssl.SSLSocket) -> int:
    """Read an answer at last, and say how long it was."""
    size, deadline = 0, time.monotonic() + 60
    while size < ENOUGH and time.monotonic() < deadline:
        piece = caller.recv(1 << 16)
        if not piece:
            break
        size += len(piece)
    return size
