"""A certificate, its key, and a CA change while requests go on (RFC 8446: a handshake chooses, not a process)."""

import asyncio
import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import msgspec
import pytest
from cryptography import x509
from structlog.testing import capture_logs

from muniment import app
from muniment.front.halves import Halves
from muniment.ground import certificates, clock, renewal
from muniment.ground.certificates import Certificates
from muniment.ground.clock import SECOND, Instant
from muniment.installation import backends
from muniment.installation.layout import Installation
from muniment.installation.settings import Settings
from muniment.repository.api.callers.over_http import DirectoryElsewhere
from muniment.repository.refusals import DirectoryUnavailable
from muniment.server import listener
from muniment.server.acceptor import Crowd
from muniment.server.listener import Listeners
from muniment.web.options import WebOptions
from tests.contract.test_listener import answer
from tests.waiting import until

DAY = 86_400 * SECOND
GET = b"GET /anything HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewal, "LOOK_SECONDS", 0.02)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Certificates]:
    """Two pairs, each of a CA of its own."""
    return [certificates.ensure(tmp_path_factory.mktemp("made"), [], clock.now()) for _ in range(2)]


def place(folder: Path, cert: Certificates, key: Certificates | None = None) -> None:
    """Put both files there, one after the other, as an operator does."""
    shutil.copy(cert.cert_file, folder / "server.pem")
    shutil.copy((key or cert).key_file, folder / "server-key.pem")


def trusting(*pairs: Certificates) -> ssl.SSLContext:
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for pair in pairs:
        trust.load_verify_locations(pair.ca_file)
    return trust


def shaken(port: int, trust: ssl.SSLContext) -> ssl.SSLSocket:
    return trust.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=30), server_hostname="localhost")


def serial(port: int, trust: ssl.SSLContext) -> int:
    with shaken(port, trust) as connection:
        return x509.load_der_x509_certificate(connection.getpeercert(binary_form=True) or b"").serial_number


def number(pair: Certificates) -> int:
    return x509.load_pem_x509_certificate(pair.cert_file.read_bytes()).serial_number


@contextmanager
def showing(folder: Path, workers: int = 1) -> Iterator[int]:
    """Serve over HTTPS with the pair in a folder, in threads that accept at one port as worker processes do."""
    https = socket.create_server(("127.0.0.1", 0))
    https.setblocking(False)
    stop, crowd, threads = threading.Event(), Crowd(workers), []
    for worker in range(workers):
        ready = threading.Event()
        tls = listener.renewable_tls(folder / "server.pem", folder / "server-key.pem")
        # Each has a socket of its own for the same queue: a server closes its own when it stops.
        listeners = Listeners(https.dup(), None, tls, crowd)
        given = (answer, listeners, msgspec.convert({}, WebOptions), stop, ready.set, None, worker)
        threads.append(threading.Thread(target=listener.serve, args=given))
        threads[-1].start()
        assert ready.wait(20)
    try:
        yield https.getsockname()[1]
    finally:
        stop.set()
        for thread in threads:
            thread.join(20)
        https.close()


class Callers:
    """They send requests without a pause, each by a new connection, until they are stopped."""

    def __init__(self, port: int, trust: ssl.SSLContext, count: int = 3) -> None:
        self.answered, self.failures = 0, list[str]()
        self._port, self._trust, self._stop = port, trust, threading.Event()
        self._threads = [threading.Thread(target=self._call) for _ in range(count)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def _call(self) -> None:
        while not self._stop.is_set():
            try:
                with shaken(self._port, self._trust) as connection:
                    connection.sendall(GET)
                    assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
            except (OSError, AssertionError) as error:
                self.failures.append(repr(error))
            else:
                self.answered += 1


@pytest.mark.parametrize("workers", [1, 3])
def test_a_renewed_certificate_is_shown_to_new_connections_and_no_request_fails(
    tmp_path: Path, made: list[Certificates], workers: int
) -> None:
    first, second = made
    place(tmp_path, first)
    both = trusting(*made)
    with showing(tmp_path, workers) as port, shaken(port, trusting(first)) as before, Callers(port, both) as callers:
        assert serial(port, both) == number(first)
        until(lambda: callers.answered > 20, lambda: str(callers.failures))
        place(tmp_path, second)
        until(lambda: {serial(port, both) for _ in range(6 * workers)} == {number(second)}, "it still shows the first")
        before.sendall(GET)
        assert before.recv(1000).startswith(b"HTTP/1.1 200 "), "a connection from before goes on"
        seen = callers.answered
        until(lambda: callers.answered > seen + 20, lambda: str(callers.failures))
    assert callers.failures == []


def test_a_pair_that_does_not_fit_is_told_of_and_the_former_one_goes_on(
    tmp_path: Path, made: list[Certificates]
) -> None:
    first, second = made
    place(tmp_path, first)
    both = trusting(*made)
    with capture_logs() as lines, showing(tmp_path) as port, Callers(port, both) as callers:
        place(tmp_path, second, key=first)
        until(lambda: bool(lines), "nobody is told")
        assert serial(port, both) == number(first)
        seen = callers.answered
        until(lambda: callers.answered > seen + 20, lambda: str(callers.failures))
        (line,) = lines
        assert line["log_level"] == "error"
        assert line["files"] == [str(tmp_path / "server.pem"), str(tmp_path / "server-key.pem")]
        assert "its own unencrypted key" in line["to_do"]
        assert "PRIVATE" not in str(line)
        place(tmp_path, second)
        until(lambda: serial(port, both) == number(second), "it still shows the first")
    assert callers.failures == []


def test_a_process_that_starts_between_two_files_shows_the_pair_that_its_parent_had(
    tmp_path: Path, made: list[Certificates], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewal, "LOOK_SECONDS", 0.0)
    first, second = made
    place(tmp_path, first)
    inherited = listener.renewable_tls(tmp_path / "server.pem", tmp_path / "server-key.pem")
    former = inherited.newest()
    place(tmp_path, second, key=first)
    assert inherited.newest() is former
    place(tmp_path, second)
    assert inherited.newest() is not former


def test_a_repository_trusts_the_new_ca_of_its_directory_and_the_former_one_no_more(
    tmp_path: Path, made: list[Certificates]
) -> None:
    first, second = made
    ca_file = tmp_path / "ca.pem"
    shutil.copy(first.ca_file, ca_file)
    place(tmp_path, first)
    both = trusting(*made)

    async def run(port: int) -> None:
        directory = DirectoryElsewhere(f"https://localhost:{port}/dirws/v1/tokeninfo", str(ca_file))

        async def ask() -> bytes:
            return await directory.tokeninfo("t", "r")

        def trust(text: bytes) -> None:
            former = directory._trust.newest()
            ca_file.write_bytes(text)
            until(lambda: directory._trust.newest() is not former, "the new CA is not noticed")

        answers = [await ask()]

        async def keep_asking() -> None:
            while len(answers) < 100 or serial(port, both) != number(second):
                answers.append(await ask())

        trust(first.ca_file.read_bytes() + second.ca_file.read_bytes())
        place(tmp_path, second)
        await asyncio.gather(*(keep_asking() for _ in range(4)))
        trust(second.ca_file.read_bytes())
        answers.append(await ask())
        assert set(answers) == {b"kk"}, "no request failed"
        assert len(directory._clients) == 1, "the clients of a former trust are closed"
        with capture_logs() as lines:
            ca_file.write_text("no certificate")
            until(lambda: directory._trust.newest() and bool(lines), "nobody is told")
            assert await ask() == b"kk", "what cannot be read leaves the former trust"
        place(tmp_path, first)
        until(lambda: serial(port, both) == number(first), "it still shows the second")
        trust(second.ca_file.read_bytes())
        with pytest.raises(DirectoryUnavailable):
            await ask()
        await directory.close()

    with showing(tmp_path) as port:
        asyncio.run(run(port))


def test_a_server_that_keeps_running_renews_the_certificate_of_its_own_ca_and_not_the_ca(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, installation = clock.now(), Installation(tmp_path, Settings())
    own = certificates.ensure(installation.tls, ["127.0.0.1"], now - 387 * DAY)
    authority = own.ca_file.read_bytes()

    class Slept(Exception):
        """It has looked, and sleeps for a day."""

    async def sleep(_: float) -> None:
        raise Slept

    monkeypatch.setattr("muniment.app.asyncio.sleep", sleep)

    def at_work(now: Instant) -> None:
        with pytest.raises(Slept):
            asyncio.run(app._watch_certificate(Halves(installation, lambda: now, backends.reader)))

    with capture_logs() as lines:
        at_work(now)
        assert certificates.days_left(own.cert_file, now) in (396, 397)
        assert lines == []
        later = now + (3650 - 387 - 20) * DAY
        at_work(later)
    assert own.ca_file.read_bytes() == authority
    assert [(line["event"], line["to_do"]) for line in lines] == [
        ("the certificate has expired", "restart the server, and give its callers the new CA's certificate")
    ]
