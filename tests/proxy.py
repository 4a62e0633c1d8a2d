"""What stands between us and a cluster: it asks for a name and password, fails on demand, and can be away."""

import base64
import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class Proxy:
    """``refused`` requests, by a piece of their path, get a status instead of an answer, so many times.

    Nothing is answered until it ``speaks``.
    """

    def __init__(self, target: str, name: str = "", password: str = "") -> None:
        self.target = urlsplit(target)
        self.expected = "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode() if name else ""
        self.refused: dict[str, tuple[int, int]] = {}
        self.replaced: dict[str, bytes] = {}
        self.is_away = False
        self.speaks = threading.Event()
        self.speaks.set()
        self.asked: list[str] = []
        self.address = ""

    @contextmanager
    def serving(self) -> Iterator["Proxy"]:
        """Serve at ``address``."""
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                proxy.answer(self)

            do_POST = do_PUT = do_DELETE = do_HEAD = do_GET  # noqa: N815 - the library's names

            def log_message(self, *_said: object) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Pass a request on, or not."""
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        self.asked.append(f"{request.command} {request.path}")
        self.speaks.wait()
        if self.is_away:
            request.close_connection = True
            return
        status, content = self._refusal(request)
        if not status:
            target = http.client.HTTPConnection(str(self.target.hostname), self.target.port, timeout=30)
            headers = {"Content-Type": request.headers.get("Content-Type", "application/json")} if body else {}
            target.request(request.command, request.path, body or None, headers)
            answer = target.getresponse()
            status, content = answer.status, answer.read()
            target.close()
        request.send_response(status)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    def _refusal(self, request: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        if self.expected and request.headers.get("Authorization") != self.expected:
            return 401, b"Unauthorized"
        for piece, content in self.replaced.items():
            if request.path == piece:
                return 200, content
        for piece, (status, times) in self.refused.items():
            if times and piece in request.path:
                self.refused[piece] = status, times - 1
                return status, b'{"error": {"type": "asked_for"}}'
        return 0, b""
