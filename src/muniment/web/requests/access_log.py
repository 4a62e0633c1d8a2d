"""How was each request answered?

Lines of requests that went well are written together after ``LATE_SECONDS`` at most: one alone takes a tenth of a short
request's time. A refused or failed request's line takes the waiting ones along at once.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import NamedTuple

import structlog

LATE_SECONDS = 0.05

MOST_LINES = 64

log = structlog.get_logger("muniment.web")


class AccessLine(NamedTuple):
    """``began`` and ``ended`` are moments of ``time.perf_counter``."""

    request_id: str
    caller_request_id: str | None
    method: str
    path: str
    status: int | None
    size: int
    began: float
    ended: float
    scheme: str
    client: str | None

    def fields(self) -> dict[str, str | int | float | None]:
        fields: dict[str, str | int | float | None] = {
            "request_id": self.request_id,
            "method": self.method,
            "path": self.path,
            "status": self.status,
            "bytes": self.size,
            "ms": round((self.ended - self.began) * 1000, 1),
            "scheme": self.scheme,
            "client": self.client,
        }
        if self.caller_request_id is not None:
            fields["caller_request_id"] = self.caller_request_id
        return fields


def to_structlog(lines: Sequence[AccessLine]) -> None:
    for line in lines:
        log.info("request", **line.fields())


class AccessLog:
    """A line waits at most ``seconds``.

    For one event loop: ``flush`` before it ends, or waiting lines are lost.
    """

    def __init__(self, write: Callable[[Sequence[AccessLine]], None] = to_structlog, *, seconds: float = 0) -> None:
        self._write = write
        self._seconds = seconds
        self._lines: list[AccessLine] = []
        self._timer: asyncio.TimerHandle | None = None

    def note(self, line: AccessLine) -> None:
        self._lines.append(line)
        went_well = line.status is not None and line.status < 400
        if not went_well or not self._seconds or len(self._lines) >= MOST_LINES:
            self.flush()
        elif self._timer is None:
            # The timer must not keep the context of the request that happened to start it.
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self.flush, context=Context())

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = self._lines, []
        if lines:
            self._write(lines)
