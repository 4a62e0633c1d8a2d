"""What has a caller not taken yet of the answers? A caller who takes them too slowly loses the connection.

Over TLS a transport's buffer lies above another. So the kernel is asked: while any buffer above it holds bytes, it has
some to send, too; and it counts what the caller's side has acknowledged (docs/decisions/0089).
"""

import asyncio
import contextlib
import fcntl
import socket
import struct
import sys
import termios
from asyncio import TimerHandle, Transport
from typing import NamedTuple

import structlog

from muniment.web.options import WebOptions
from muniment.web.requests.pace import Pace

log = structlog.get_logger("muniment.protocol")

PIECE = 65_536

_MOST_UNREAD = 16 * PIECE
"""More than the buffers between the sender and the caller's side hold."""

_SHORTEST_SECONDS = 0.001

_LOOKS = 8
"""What is taken at its begin must not count at its end."""

_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER without time: closing resets the connection, and the kernel keeps nothing (socket(7))."""

_TCP_INFO = struct.Struct("=16xI100xQ")
"""Where Linux has ``tcpi_snd_mss`` and ``tcpi_bytes_acked`` (``struct tcp_info`` in linux/tcp.h)."""


def longest_seconds(options: WebOptions) -> float:
    """How long readers at the lowest rate need for what is written and not read."""
    return options.slow_seconds + _MOST_UNREAD / options.lowest_download_rate


class _View(NamedTuple):
    buffered: int
    waiting: int
    acknowledged: int


class Unread:
    """A caller may be below the lowest rate for ``slow_seconds``, plus a full segment's time at that rate, but not for
    over twice ``slow_seconds``: a steady reader's system may acknowledge whole segments only (RFC 9293 section
    3.8.6.2.2).
    """

    def __init__(self, transport: Transport, options: WebOptions, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._socket: socket.socket = transport.get_extra_info("socket")
        segment, _ = self._tcp_info()
        seconds, rate = options.slow_seconds, options.lowest_download_rate
        self._longest = seconds + min(seconds, segment / rate)
        self._rate = rate
        self._pace = Pace(self._longest, rate)
        self._timer: TimerHandle | None = None
        self._counted_at, self._view = 0.0, _View(0, 0, 0)

    def watch(self) -> bool:
        """Watch what the caller has not taken, and return whether there is any.

        If not, stop: the time taken counts no more.
        """
        view = self._look()
        if not (view.buffered or view.waiting):
            self.stop()
            self._pace = Pace(self._longest, self._rate)
            return False
        if self._timer is None:
            self._counted_at, self._view = self._loop.time(), view
            seconds = min(self._pace.seconds_left, self._longest / _LOOKS)
            self._timer = self._loop.call_later(seconds, self._check)
        return True

    def go_on(self) -> None:
        """Stop if everything is taken, otherwise go on with a watch that has begun."""
        if self._timer is not None:
            self.watch()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._count()

    def _check(self) -> None:
        self._timer = None
        self._count()
        unread = self._view.buffered + self._view.waiting
        if unread and self._pace.seconds_left < _SHORTEST_SECONDS:
            log.info("an answer was read too slowly", unread=unread)
            with contextlib.suppress(OSError):  # the connection is gone
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self._transport.abort()
        else:
            self.watch()

    def _count(self) -> None:
        now, view, former = self._loop.time(), self._look(), self._view
        # A kernel that does not count what is acknowledged leaves the buffer, which empties in large steps.
        taken = max(0, former.buffered - view.buffered, view.acknowledged - former.acknowledged)
        self._pace.count(now - self._counted_at, taken)
        self._counted_at, self._view = now, view

    def _look(self) -> _View:
        buffered = self._transport.get_write_buffer_size()
        try:
            waiting = fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, bytes(4))
            _, acknowledged = self._tcp_info()
        except (OSError, ValueError):  # the connection is gone
            return _View(buffered, 0, 0)
        return _View(buffered, int.from_bytes(waiting, sys.byteorder), acknowledged)

    def _tcp_info(self) -> tuple[int, int]:
        info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        segment, acknowledged = _TCP_INFO.unpack(info.ljust(_TCP_INFO.size, b"\0"))
        return segment, acknowledged
