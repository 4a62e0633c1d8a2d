"""A real S3 store for the tests: versitygw, built once on a machine by Go, with a folder as its disk."""

import http.client
import os
import shutil
import signal
import ssl
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from muniment.database.connections import Database
from muniment.ground import locks
from muniment.ground.certificates import Certificates
from muniment.ground.clock import now
from muniment.repository.content_options import S3Options
from muniment.repository.store.content.removals import RemovalLock
from muniment.repository.store.content.s3.bucket import ContentBucket
from muniment.repository.store.content.s3.signing import S3Request, SigningKey
from muniment.repository.store.content.s3.store import S3Store
from tests.environments import ROOT
from tests.servers import free_port
from tests.waiting import until

VERSION = "1.8.0"
BUILD_SECONDS = 1500
"""How long a test that needs the server may take, because the first one builds it."""

_KEY, _SECRET, _REGION = "testkey", "a secret of tests", "us-east-1"


class NoS3(Exception):
    """The server cannot be built here."""


class S3Server:
    """A running server with one bucket; each test gets a prefix of its own."""

    def __init__(self, program: Path, folder: Path, tls: Certificates | None = None) -> None:
        self._program, self.folder, self._tls = program, folder, tls
        self.port = free_port()
        self.bucket = "contents"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def settings(self) -> dict[str, str]:
        """Settings of an installation whose content is here, below a new prefix, by key."""
        return {
            "repository.content_store": "s3",
            "repository.s3.endpoint": f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}",
            "repository.s3.bucket": self.bucket,
            "repository.s3.prefix": f"test/{uuid.uuid4().hex}",
            "repository.s3.access_key": _KEY,
            "repository.s3.access_secret": _SECRET,
        }

    def options(self, **changes: str) -> S3Options:
        """A new prefix of the bucket."""
        values = {key.rpartition(".")[2]: value for key, value in self.settings.items() if ".s3." in key}
        return S3Options(**(values | changes))  # type: ignore[arg-type]

    def store(self, folder: Path, options: S3Options | None = None, owner: str = "tests") -> S3Store:
        """A content store below a prefix; its lock is a file in the folder."""
        folder.mkdir(exist_ok=True)
        database = Database(f"sqlite:///{folder / 'locks.db'}")
        lock = RemovalLock(lambda: database, folder / "removals.lock")
        return S3Store(ContentBucket(options or self.options(), now), lock, lambda: owner, folder, 64 << 20)

    def start(self) -> None:
        """Start it, with what it had before."""
        environment = {**os.environ, "ROOT_ACCESS_KEY": _KEY, "ROOT_SECRET_KEY": _SECRET}
        (self.folder / "disk").mkdir(exist_ok=True)
        command: list[str | Path] = [self._program, "--port", f"127.0.0.1:{self.port}", "--region", _REGION, "--quiet"]
        if self._tls is not None:
            command += ["--cert", self._tls.cert_file, "--key", self._tls.key_file]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--health", "/health", "posix", self.folder / "disk"],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(self._answers, lambda: (self.folder / "log").read_text(), 30)
        assert self._ask("PUT", f"/{self.bucket}") in (200, 409)

    def kill(self) -> None:
        """End it as a power failure does."""
        if self._process is not None:
            self.send(signal.SIGKILL)
            self._process.wait(30)
            self._process = None

    def send(self, number: int) -> None:
        """Send it a signal: SIGSTOP freezes it, before this returns."""
        if self._process is not None:
            os.killpg(self._process.pid, number)
            if number == signal.SIGSTOP:
                os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let it take connections, and answer nothing."""
        self.send(signal.SIGSTOP)
        try:
            yield
        finally:
            self.send(signal.SIGCONT)

    def files(self, options: S3Options) -> list[Path]:
        """The contents that lie below a prefix, as files of the server's disk."""
        below = self.folder / "disk" / self.bucket / options.prefix / "content"
        return sorted(path for path in below.rglob("*") if path.is_file())

    def _answers(self) -> bool:
        try:
            return self._ask("GET", "/health") == 200
        except OSError:
            return False

    def _ask(self, method: str, path: str) -> int:
        request = S3Request(method, f"127.0.0.1:{self.port}", path, {})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        if self._tls is not None:
            trust = ssl.create_default_context(cafile=str(self._tls.ca_file))
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=trust)
        try:
            headers = request.headers(SigningKey(_KEY, _SECRET, _REGION), datetime.now(UTC))
            connection.request(method, request.target, headers=headers)
            return connection.getresponse().status
        finally:
            connection.close()


@contextmanager
def running_s3(folder: Path, tls: Certificates | None = None) -> Iterator[S3Server]:
    """Start a server for the block, over HTTPS if it gets certificates. Raises NoS3."""
    server = S3Server(_program(), folder, tls)
    server.start()
    try:
        yield server
    finally:
        server.send(signal.SIGCONT)
        server.kill()


def _program() -> Path:
    """Give the server's program, in a folder that is kept between runs."""
    folder = ROOT / "var" / f"versitygw-{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    with locks.hold(folder / ".lock"):
        if not (folder / "ready").exists():
            _build(folder)
            (folder / "ready").touch()
    return folder / "versitygw"


def _build(folder: Path) -> None:
    if shutil.which("go") is None:
        raise NoS3("versitygw is built with Go, which is not installed.")
    build = subprocess.run(
        ["go", "install", "-ldflags=-s -w", f"github.com/versity/versitygw/cmd/versitygw@v{VERSION}"],
        env={**os.environ, "GOBIN": str(folder)},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS - 100,
        check=False,
    )
    if build.returncode != 0 and ("dial tcp" in build.stderr or "no such host" in build.stderr):
        raise NoS3("versitygw cannot be built: no module proxy of Go is to be reached.")
    assert build.returncode == 0, build.stderr[-3000:]
