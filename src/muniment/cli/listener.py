"""The HTTP listeners of one worker process: HTTPS, and plain HTTP where settings open it, over one application."""

import asyncio
import contextlib
import socket
import ssl
import sys
import threading
from asyncio import TimerHandle, Transport
from collections.abc import Callable, Iterator
from typing import NamedTuple

import uvicorn
import uvloop
from starlette.types import ASGIApp
from uvicorn.lifespan.on import LifespanOn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from muniment.web.options import WebOptions

_LONGEST_HEAD = 65_536
_SWITCH_SECONDS = 0.001
_CONSENT_SECONDS = 1.0


class Listeners(NamedTuple):
    """The sockets, bound before the processes part, and the certificate that the first one shows."""

    https: socket.socket
    http: socket.socket | None
    cert_file: str
    key_file: str


class CannotStart(Exception):
    """The application could not open what it needs; the log has the reason."""


def serve(
    app: ASGIApp, listeners: Listeners, options: WebOptions, stop: threading.Event, ready: Callable[[], None]
) -> None:
    """Answer requests until ``stop`` is set, then finish those under way within ``options.stop_seconds``."""
    # A thread back from hashing a password or from the disk waits for the loop no longer than this.
    sys.setswitchinterval(_SWITCH_SECONDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(app, listeners, options, stop, ready))


async def _serve(
    app: ASGIApp, listeners: Listeners, options: WebOptions, stop: threading.Event, ready: Callable[[], None]
) -> None:
    servers = [(_Server(_config(app, options, listeners)), listeners.https)]
    if listeners.http is not None:
        servers.append((_Server(_config(app, options, None)), listeners.http))
    lifespan = LifespanOn(uvicorn.Config(app, lifespan="on", log_config=None, ws="none"))
    await lifespan.startup()
    if lifespan.should_exit:
        raise CannotStart("The application could not start; the lines above say why.")
    stopped: asyncio.Future[object] = asyncio.get_running_loop().run_in_executor(None, stop.wait)
    try:
        running: list[asyncio.Task[object]] = [
            asyncio.create_task(server.serve([listener])) for server, listener in servers
        ]
        while not all(server.started for server, _ in servers):
            await asyncio.sleep(0.01)
            for task in running:
                if task.done():
                    task.result()
        ready()
        ended: list[asyncio.Future[object]] = [*running, stopped]
        await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
        for server, _ in servers:
            server.should_exit = True
        await asyncio.gather(*running)
    finally:
        stop.set()
        await lifespan.shutdown()


def _config(app: ASGIApp, options: WebOptions, secured: Listeners | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_Protocol.within(options.header_seconds),
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=options.max_connections,
        timeout_keep_alive=options.keep_alive_seconds,
        timeout_graceful_shutdown=options.stop_seconds,
        ssl_context_factory=(lambda _config, _default: _tls(secured)) if secured else None,
    )


def _tls(listeners: Listeners) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Of TLS 1.2 only what TLS 1.3 has too: fresh keys for each connection, and authenticated encryption.
    context.set_ciphers("ECDHE+AESGCM:ECDHE+CHACHA20")
    context.load_cert_chain(listeners.cert_file, listeners.key_file)
    context.set_alpn_protocols(["http/1.1"])
    return context


class _Server(uvicorn.Server):
    """uvicorn's server, which here is told to stop by its process instead of taking signals itself."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol with what it lacks: a deadline and a bound for a request's head, and a deadline for what is
    left of a body once the request is answered."""

    _head_seconds = 20
    _head_size = 0
    _in_body = False
    _head_deadline: TimerHandle | None = None

    @classmethod
    def within(cls, seconds: int) -> type["_Protocol"]:
        """Make the protocol with this deadline."""
        return type("_Protocol", (cls,), {"_head_seconds": seconds})

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._in_body:
            self._arm()
            self._head_size += len(data)
        super().data_received(data)
        if not self._in_body and self._head_size > _LONGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("The request's head is too long.")

    def on_headers_complete(self) -> None:
        self._disarm()
        self._head_size = 0
        self._in_body = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._in_body and not self.transport.is_closing():
            # It goes on until the next head: the pieces of this body have ended uvicorn's own wait for that.
            self._arm()

    def shutdown(self) -> None:
        super().shutdown()
        self._drop_soon()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._drop_soon()

    def _drop_soon(self) -> None:
        # Closing TLS waits for the other side's consent, which an idle client may give late or never.
        if self.transport.is_closing():
            self.loop.call_later(_CONSENT_SECONDS, self.transport.abort)

    def _arm(self) -> None:
        if self._head_deadline is None:
            self._head_deadline = self.loop.call_later(self._head_seconds, self.timeout_keep_alive_handler)

    def _disarm(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None
