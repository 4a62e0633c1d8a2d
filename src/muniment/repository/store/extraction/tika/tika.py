"""How does a Tika server read a file?

It gets the file over HTTP, within limits of time and bytes. Only the sandbox reads the answer (`tika_answers`).
"""

import contextlib
import http.client
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, BinaryIO, Self
from urllib.parse import urlsplit

import structlog

from muniment.ground import renewal
from muniment.ground.renewal import Renewable
from muniment.repository.extraction_options import ExtractionOptions
from muniment.repository.store.extraction.findings import Poisoned, Stopped, Unreadable, Unsupported

CONNECT_SECONDS, LOOK_SECONDS = 3.0, 4.0
GOOD_SECONDS, BAD_SECONDS = 5.0, 15.0
"""A good and a bad answer to whether the server is there count for so long."""

LOOK = b"Is Tika there?"

_TICK = 0.25
_PIECE = 1 << 18
_BESIDE_TEXT = 8 << 20

_log = structlog.get_logger(__name__)
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,10}$")


class Away(Exception):
    """The server cannot be reached, or refuses everybody: no file is to blame."""


class TikaServer:
    """A Tika server, which several threads may use. The settings must name it."""

    def __init__(self, options: ExtractionOptions, characters: int) -> None:
        self._options = options
        self._characters = characters
        self._address = urlsplit(options.tika)
        self._looking = threading.Lock()
        self._fault = ""
        self._look_again_at = 0.0

    def fault(self) -> str:
        """Say why the server cannot be used now, if so; it is asked again after some seconds. While another thread
        asks, the last answer counts.
        """
        if self._looking.acquire(blocking=False):
            try:
                if time.monotonic() >= self._look_again_at:
                    fault = self._look()
                    if fault != self._fault:
                        _log.warning("tika.away" if fault else "tika.back", address=self._options.tika, reason=fault)
                    self._fault = fault
                    self._look_again_at = time.monotonic() + (BAD_SECONDS if fault else GOOD_SECONDS)
            finally:
                self._looking.release()
        return self._fault

    def read(self, content: BinaryIO | bytes, name: str, seconds: float, goes_on: Callable[[], bool]) -> BinaryIO:
        """Return the answer at its beginning; the caller closes it.

        Meanwhile ``goes_on`` is called several times a second, in another thread. Raises Away, Stopped when it returns
        False, and Unreadable, Unsupported or Poisoned when the file cannot be read.
        """
        if fault := self.fault():
            raise Away(fault)
        size = len(content) if isinstance(content, bytes) else os.fstat(content.fileno()).st_size
        if size > self._options.tika_bytes:
            raise Unreadable(f"The file has {size} bytes; Tika gets files of up to {self._options.tika_bytes} bytes.")
        if not isinstance(content, bytes):
            content.seek(0)
        suffix = _SUFFIX.search(name)
        headers = {
            "Accept": "application/json",
            "Content-Length": str(size),
            # The suffix helps Tika to tell formats apart. The name itself is nobody's business.
            "Content-Disposition": f'attachment; filename="file{suffix[0] if suffix else ""}"',
            "writeLimit": str(self._characters),
            "X-Tika-PDFOcrStrategy": "auto",
        }
        with contextlib.ExitStack() as closing:
            answer = closing.enter_context(os.fdopen(os.memfd_create("answer", os.MFD_CLOEXEC), "w+b"))
            with self._asking(content, headers, seconds, goes_on) as response:
                _check(response.status)
                self._keep(response, answer)
            closing.pop_all()
        return answer

    def _look(self) -> str:
        try:
            with self._asking(LOOK, {}, LOOK_SECONDS, lambda: True) as response:
                _check(response.status)
        except Away as away:
            return str(away)
        except Poisoned:
            return "It does not answer in time."
        except (Unreadable, Unsupported):
            return "It does not read even a short text."
        return ""

    def _keep(self, response: http.client.HTTPResponse, answer: BinaryIO) -> None:
        most = 4 * self._characters + _BESIDE_TEXT
        while piece := response.read(_PIECE):
            most -= len(piece)
            if most < 0:
                raise Unreadable("Tika's answer has more bytes than is allowed.")
            answer.write(piece)
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        answer.seek(0)

    @contextmanager
    def _asking(
        self,
        content: IO[bytes] | bytes,
        headers: dict[str, str],
        seconds: float,
        goes_on: Callable[[], bool],
    ) -> Iterator[http.client.HTTPResponse]:
        connection = self._connect()
        with _Watch(connection.sock, seconds, goes_on) as watch:
            try:
                if isinstance(connection.sock, ssl.SSLSocket):
                    connection.sock.do_handshake()
                # A server that refuses may close the connection before it has read the file.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.request("PUT", "/rmeta/text", content, headers | self._secret())
                yield connection.getresponse()
                # The end of a connection that was broken off may look like the end of an answer.
                if watch.late or watch.stopped:
                    raise http.client.IncompleteRead(b"")
            except Away:
                self._look_again_at = 0.0
                raise
            except ssl.SSLCertVerificationError as error:
                raise Away(f"Its certificate is not accepted: {error.verify_message}.") from error
            except (OSError, http.client.HTTPException, ValueError) as error:
                if watch.stopped:
                    raise Stopped from error
                self._look_again_at = 0.0
                if watch.late:
                    raise Poisoned(f"Tika took longer than the {seconds:.0f} seconds allowed.") from error
                raise Poisoned("Tika broke off while it read the file.") from error
            finally:
                connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        host, is_tls = self._address.hostname or "", self._address.scheme == "https"
        port = self._address.port or (443 if is_tls else 80)
        try:
            plain = socket.create_connection((host, port), CONNECT_SECONDS)
        except OSError as error:
            raise Away(f"It cannot be reached: {error.strerror or type(error).__name__}.") from error
        connection = http.client.HTTPConnection(host, port)
        try:
            plain.settimeout(float(self._options.tika_seconds))
            connection.sock = (
                self._tls.newest().wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
                if is_tls
                else plain
            )
        except OSError as error:
            plain.close()
            raise Away(f"No secure connection can be made: {error.strerror}.") from error
        return connection

    @cached_property
    def _tls(self) -> Renewable[ssl.SSLContext]:
        return renewal.renewable_trust(self._options.tika_ca_file)

    def _secret(self) -> dict[str, str]:
        secret, file = self._options.tika_secret, self._options.tika_secret_file
        try:
            secret = Path(file).read_text().strip() if file else secret
        except (OSError, ValueError) as error:
            raise Away("The file with its secret cannot be read.") from error
        return {self._options.tika_header: secret} if secret else {}


class _Watch:
    """Breaks a request off, from another thread, when time is over or nobody waits: a time limit of the socket would
    begin anew with every byte.
    """

    def __init__(self, connection: socket.socket, seconds: float, goes_on: Callable[[], bool]) -> None:
        self.late = self.stopped = False
        self._connection, self._goes_on = connection, goes_on
        self._deadline = time.monotonic() + seconds
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch-tika", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(_TICK):
            self.late = time.monotonic() > self._deadline
            try:
                self.stopped = not self._goes_on()
            except Exception:  # noqa: BLE001 - whoever holds the file cannot say that they still do
                self.stopped = True
            if self.late or self.stopped:
                with contextlib.suppress(OSError):
                    # That of SSLSocket would take the session from under the thread that reads.
                    socket.socket.shutdown(self._connection, socket.SHUT_RDWR)
                return


def _check(status: int) -> None:
    if status == 200:
        return
    if status in {401, 403, 404, 405, 407, 429, 503} or 300 <= status < 400:
        raise Away(f"It answers {status}.")
    if status == 413:
        raise Unreadable("The file is larger than Tika takes.")
    if status == 415:
        raise Unsupported("Tika does not read such files.")
    if status in {204, 422}:
        raise Unreadable("Tika could not read it.")
    raise Poisoned(f"Tika answered {status}.")
