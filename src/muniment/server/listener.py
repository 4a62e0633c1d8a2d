"""Serve one application in a worker process: over HTTPS, and over plain HTTP if the settings ask for it."""

import asyncio
import contextlib
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import uvicorn
import uvloop
from starlette.types import ASGIApp
from uvicorn.lifespan.on import LifespanOn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from muniment.ground import certificates, renewal
from muniment.ground.renewal import Renewable
from muniment.server.acceptor import Acceptor, Crowd, Place
from muniment.server.guests import Guest, Guests
from muniment.server.protocol import protocol
from muniment.web.fast_path import FastFront
from muniment.web.options import WebOptions

_SWITCH_SECONDS = 0.001


class Listeners(NamedTuple):
    """Sockets that were bound before the server forked."""

    https: socket.socket
    http: socket.socket | None
    tls: Renewable[ssl.SSLContext]
    crowd: Crowd


class CannotStart(Exception):
    """The application's lifespan could not start. The log has the reason."""


def serve(
    app: ASGIApp,
    listeners: Listeners,
    options: WebOptions,
    stop: threading.Event,
    ready: Callable[[], None],
    front: FastFront | None = None,
    number: int = 0,
) -> None:
    """Answer requests until ``stop`` is set, then finish those under way within ``options.stop_seconds``.

    ``ready`` is called when the sockets accept. Raises CannotStart.
    """
    # A thread that has hashed a password or waited for the disk gets Python's lock from the event loop after this time.
    sys.setswitchinterval(_SWITCH_SECONDS)
    place, guests = listeners.crowd.place(number), Guests(options)
    protocol_class = protocol(options, front, place, guests)
    servers = [
        (_Server(app, options, protocol_class, tls, place, guests), listener)
        for listener, tls in ((listeners.https, listeners.tls), (listeners.http, None))
        if listener is not None
    ]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(app, servers, listeners.tls, stop, ready))


async def _serve(
    app: ASGIApp,
    servers: "list[tuple[_Server, socket.socket]]",
    tls: Renewable[ssl.SSLContext],
    stop: threading.Event,
    ready: Callable[[], None],
) -> None:
    lifespan = LifespanOn(uvicorn.Config(app, lifespan="on", log_config=None, ws="none"))
    await lifespan.startup()
    if lifespan.should_exit:
        raise CannotStart("The application could not start. The log lines above say why.")
    stop_waiter: asyncio.Future[object] = asyncio.get_running_loop().run_in_executor(None, stop.wait)
    try:
        server_tasks: list[asyncio.Task[object]] = [
            asyncio.create_task(server.serve([listener])) for server, listener in servers
        ]
        while not all(server.started for server, _ in servers):
            await asyncio.sleep(0.01)
            for task in server_tasks:
                if task.done():
                    task.result()
        ready()
        looks = asyncio.create_task(_look(tls))
        finished: list[asyncio.Future[object]] = [*server_tasks, stop_waiter]
        await asyncio.wait(finished, return_when=asyncio.FIRST_COMPLETED)
        for server, _ in servers:
            server.should_exit = True
        await asyncio.gather(*server_tasks)
        looks.cancel()
    finally:
        stop.set()
        await lifespan.shutdown()


async def _look(tls: Renewable[ssl.SSLContext]) -> None:
    """So that the log tells of files that do not fit even if nobody calls, and no caller waits for the disk."""
    while True:
        await asyncio.sleep(renewal.LOOK_SECONDS)
        await asyncio.to_thread(tls.newest)


def renewable_tls(cert_file: Path, key_file: Path) -> Renewable[ssl.SSLContext]:
    """New connections see the newest pair. Raises CertificateProblem, OSError."""
    return Renewable(
        [cert_file, key_file],
        partial(_tls, cert_file, key_file),
        "put a certificate chain and its own unencrypted key there, both PEM; until then the former ones are shown",
    )


def _tls(cert_file: Path, key_file: Path) -> ssl.SSLContext:
    # A context of its own for each pair: one that has taken a certificate without its key shows neither.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Of TLS 1.2, allow only what TLS 1.3 has too: new keys for each connection, and authenticated encryption.
    context.set_ciphers("ECDHE+AESGCM:ECDHE+CHACHA20")
    certificates.load_pair(context, cert_file, key_file)
    context.set_alpn_protocols(["http/1.1"])
    return context


class _Server(uvicorn.Server):
    """With an ``Acceptor`` a socket, and without signal handlers: ``_serve`` stops it."""

    def __init__(
        self,
        app: ASGIApp,
        options: WebOptions,
        protocol_class: type[HttpToolsProtocol],
        tls: Renewable[ssl.SSLContext] | None,
        place: Place,
        guests: Guests,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=protocol_class,
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                # Of two requests in one pipe the second would log the first one's ids.
                reset_contextvars=True,
                timeout_keep_alive=options.keep_alive_seconds,
                timeout_graceful_shutdown=options.stop_seconds,
            )
        )
        self._tls = tls
        self._place = place
        self._guests = guests
        self._options = options
        self._acceptors: list[Acceptor] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        def connection(guest: Guest) -> asyncio.BaseProtocol:
            return self.config.http_protocol_class(  # type: ignore[call-arg]
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state, guest=guest
            )

        self.servers = []
        self._acceptors = [
            Acceptor(each, connection, self._tls, self._place, self._guests, self._options) for each in sockets or ()
        ]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for acceptor in self._acceptors:
            acceptor.close()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
