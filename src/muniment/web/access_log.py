"""Which request was answered how? The access log has one line for each request.

Lines of requests that went well wait for at most ``LATE_SECONDS`` and are written together, because a line that is
written alone costs a tenth of a short request. A line of a refused or failed request is written at once, and those that
wait go with it.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from datetime import datetime

import msgspec
import structlog

LATE_SECONDS = 0.05
"""For how long a line waits at most, while the event loop runs."""

MOST_LINES = 64
"""How many lines wait at most."""

log = structlog.get_logger("muniment.web")


class AccessLine(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The line of one request. ``timestamp`` is the end of the request; ``ms`` is how long it took."""

    request_id: str
    caller_request_id: str | msgspec.UnsetType = msgspec.UNSET
    method: str
    path: str
    status: int | None
    bytes: int
    ms: float
    scheme: str
    client: str | None
    event: str
    logger: str
    level: str
    timestamp: datetime


def to_structlog(lines: Sequence[AccessLine]) -> None:
    """Write lines like those of any other logger, one by one."""
    for line in lines:
        fields = msgspec.structs.asdict(line)
        for name in ("event", "logger", "level", "timestamp"):
            del fields[name]
        if line.caller_request_id is msgspec.UNSET:
            del fields["caller_request_id"]
        log.info("request", **fields)


class AccessLog:
    """Collects lines and hands them to ``write``. With ``seconds`` 0 each line is written at once.

    It belongs to one event loop. ``flush`` writes what waits; whoever ends the loop calls it.
    """

    def __init__(self, write: Callable[[Sequence[AccessLine]], None] = to_structlog, *, seconds: float = 0) -> None:
        self._write = write
        self._seconds = seconds
        self._lines: list[AccessLine] = []
        self._timer: asyncio.TimerHandle | None = None

    def note(self, line: AccessLine) -> None:
        """Write a line now or soon."""
        self._lines.append(line)
        if self._timer is not None:
            if not _went_well(line) or len(self._lines) >= MOST_LINES:
                self.flush()
        elif self._seconds and _went_well(line):
            # The timer must not keep the context of the request that happened to start it.
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self.flush, context=Context())
        else:
            self.flush()

    def flush(self) -> None:
        """Write the lines that wait."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = self._lines, []
        if lines:
            self._write(lines)


def _went_well(line: AccessLine) -> bool:
    return line.status is not None and line.status < 400
