"""Tika servers for the tests: a real one, fetched once on a machine by Maven, and a stand-in that shows its faults.

The real one is release 1.28.5, the newest whose server the tests' registry offers. Newer ones answer the same requests
in the same form.
"""

import http.client
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec

from muniment.ground.certificates import Certificates
from muniment.repository.store.extraction.tika.tika import LOOK
from tests.environments import ROOT, NoJar, maven_jar
from tests.servers import free_port
from tests.waiting import until

VERSION = "1.28.5"
SHA256 = "3964c65a36c8b0102f85b268b0c404a42bec9a77b21bc6057ed7e8ec20f9d508"

CONFIGURATION = ROOT / "examples" / "tika.xml"
"""What `make tika` starts its server with, too."""

Behaviour = Callable[[BaseHTTPRequestHandler, bytes], None]
"""Answers a request with this body."""


class TikaProcess:
    """A running Tika server."""

    def __init__(self, jar: Path, folder: Path, port: int = 0) -> None:
        self._jar, self._folder = jar, folder
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-jar", str(self._jar), "--host", "127.0.0.1"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--port", str(self.port), "--config", str(CONFIGURATION)],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(self._answers, lambda: (self._folder / "log").read_text()[-3000:], 120)

    def send(self, number: int) -> None:
        """Send it a signal: SIGSTOP freezes it, before this returns."""
        if self._process is not None:
            os.killpg(self._process.pid, number)
            if number == signal.SIGSTOP:
                os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def kill(self) -> None:
        """End it as a power failure does."""
        if self._process is not None:
            self.send(signal.SIGKILL)
            self._process.wait(30)
            self._process = None

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()[-3000:]
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/version")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


@contextmanager
def running_tika(folder: Path, port: int = 0) -> Iterator[TikaProcess]:
    """Start a real server for the block, on a free port if none is given. Raises NoJar."""
    server = TikaProcess(_without_rar(maven_jar(f"org.apache.tika:tika-server:{VERSION}", SHA256)), folder, port)
    server.start()
    try:
        yield server
    finally:
        server.send(signal.SIGCONT)
        server.kill()


def _without_rar(jar: Path) -> Path:
    """Give a copy without the library for RAR archives, whose licence is no free one."""
    copy = jar.with_suffix(".free.jar")
    if not copy.exists():
        with (
            zipfile.ZipFile(jar) as whole,
            zipfile.ZipFile(copy.with_suffix(".new"), "w", zipfile.ZIP_DEFLATED) as rest,
        ):
            for entry in whole.infolist():
                if not entry.filename.startswith("com/github/junrar/"):
                    rest.writestr(entry, whole.read(entry))
        copy.with_suffix(".new").replace(copy)
    return copy


class StandIn(ThreadingHTTPServer):
    """Answers like a Tika server that finds ``words`` in every file, or behaves as badly as a test wants."""

    daemon_threads = True
    words = "words of old"

    def __init__(self, port: int = 0, tls: Certificates | None = None) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.scheme = "https" if tls else "http"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls.cert_file, tls.key_file)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.refuses = 0
        """The status with which it refuses everybody, or 0."""
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.behaviour: Behaviour = lambda handler, _body: answer(handler, json(self.words))

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.refuses:
            answer(self, b"", self.server.refuses, Location=f"{self.server.address}/elsewhere")
        elif body == LOOK:
            answer(self, json(body.decode()))
        else:
            self.server.requests.append((dict(self.headers.items()), body))
            self.server.behaviour(self, body)

    def do_GET(self) -> None:
        raise AssertionError("a redirect is followed")

    def log_message(self, *_: object) -> None:
        pass


def answer(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    """Send an answer."""
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def json(text: str, **facts: str) -> bytes:
    """What a Tika server answers about a file with this text."""
    return msgspec.json.encode([{"X-TIKA:content": text, "Content-Type": "application/msword"} | facts])


@contextmanager
def stand_in(port: int = 0, tls: Certificates | None = None) -> Iterator[StandIn]:
    """Serve the stand-in for the block."""
    server = StandIn(port, tls)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def main(port: int) -> None:
    """Run a real server until Ctrl-C: ``make tika``."""
    try:
        with tempfile.TemporaryDirectory() as folder, running_tika(Path(folder), port) as server:
            print(
                f"Apache Tika {VERSION} is at {server.address}: repository.extraction.tika. Ctrl-C ends it.", flush=True
            )
            with suppress(KeyboardInterrupt):
                signal.pause()
    except NoJar as missing:
        sys.exit(str(missing))


if __name__ == "__main__":
    main(int(sys.argv[1]))
