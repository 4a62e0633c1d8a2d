"""Which worker lets the next connection in?

The kernel wakes every worker, and the first could take them all (decision 0059).
"""

import asyncio
import contextlib
import mmap
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from muniment.ground.renewal import Renewable
from muniment.server import unread
from muniment.server.guests import Guest, Guests
from muniment.web.options import WebOptions

_PATIENCE = 0.001

_SHORTAGE = 1.0
"""Seconds until a worker that could not open one more file accepts again, as asyncio."""

_SLACK = 8


class Crowd:
    """Make it before the server forks: the processes share it."""

    def __init__(self, workers: int) -> None:
        self._counts = memoryview(mmap.mmap(-1, 8 * workers)).cast("Q")

    def place(self, number: int) -> "Place":
        return Place(self._counts, number)


class Place:
    """One worker's connections beside the others'. Only its event loop may change it."""

    def __init__(self, counts: "memoryview[int]", number: int) -> None:
        self._counts = counts
        self._number = number
        counts[number] = 0

    @property
    def connections(self) -> int:
        return self._counts[self._number]

    @property
    def is_crowded(self) -> bool:
        least = min(self._counts)
        return self.connections > least + least // _SLACK

    def enter(self) -> None:
        self._counts[self._number] += 1

    def leave(self) -> None:
        self._counts[self._number] -= 1


class Acceptor:
    """Counts a connection at ``place`` during its TLS handshake, which may take as long as a request's head; then its
    protocol does.
    """

    def __init__(
        self,
        listener_socket: socket.socket,
        protocol: Callable[[Guest], asyncio.BaseProtocol],
        tls: Renewable[ssl.SSLContext] | None,
        place: Place,
        guests: Guests,
        options: WebOptions,
    ) -> None:
        self._socket = listener_socket
        self._protocol = protocol
        self._tls = tls
        self._options = options
        self._place = place
        self._guests = guests
        self._loop = asyncio.get_running_loop()
        self._handshakes: dict[asyncio.Task[bool], Guest] = {}
        self._pause: asyncio.TimerHandle | None = None
        self._open()

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        if self._pause is not None:
            self._pause.cancel()
        for guest in self._handshakes.values():
            guest.leave()

    def _open(self) -> None:
        self._pause = None
        self._loop.add_reader(self._socket, self._knocked)

    def _knocked(self) -> None:
        if self._place.is_crowded:
            self._rest(_PATIENCE, self._insist)
        else:
            self._let_one_in()

    def _insist(self) -> None:
        """Let one in even into a crowded worker: the emptier ones may be busy."""
        self._open()
        while self._let_one_in() and not self._place.is_crowded:
            pass

    def _rest(self, seconds: float, then: Callable[[], None]) -> None:
        self._loop.remove_reader(self._socket)
        self._pause = self._loop.call_later(seconds, then)

    def _let_one_in(self) -> bool:
        try:
            connection, address = self._socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError:
            self._rest(_SHORTAGE, self._open)
            return False
        connection.setblocking(False)
        self._place.enter()
        guest = self._guests.let_in(address[0])
        handshake = self._loop.create_task(self._shake_hands(connection, guest))
        guest.leave = partial(_hang_up, connection)
        self._handshakes[handshake] = guest
        handshake.add_done_callback(partial(self._shaken, connection, guest))
        return True

    async def _shake_hands(self, connection: socket.socket, guest: Guest) -> bool:
        # A handshake that a stranger breaks off, or that finds no cipher both sides accept, is not logged.
        with contextlib.suppress(OSError):
            await self._loop.connect_accepted_socket(partial(self._protocol, guest), connection, **self._secured())
            return True
        return False

    def _secured(self) -> dict[str, Any]:
        if self._tls is None:
            return {}
        return {
            "ssl": self._tls.newest(),
            "ssl_handshake_timeout": self._options.header_seconds,
            # The protocol ends a connection whose caller reads too slowly. By default, uvloop would end it before.
            "ssl_shutdown_timeout": unread.longest_seconds(self._options),
        }

    def _shaken(self, connection: socket.socket, guest: Guest, handshake: "asyncio.Task[bool]") -> None:
        del self._handshakes[handshake]
        self._place.leave()
        if handshake.cancelled() or not handshake.result():
            self._guests.left(guest)
            connection.close()


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
