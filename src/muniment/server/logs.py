"""Write log lines to standard error: as JSON, or for people on a terminal."""

import json
import logging
import sys
import time
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec
import structlog

from muniment.installation.settings import Settings
from muniment.web.requests.access_log import LATE_SECONDS, AccessLine, AccessLog

_OF_EACH_REQUEST = {"event": "request", "logger": "muniment.web", "level": "info"}

_SAID = ("Invalid HTTP request", "Exceeded concurrency limit", "Unsupported upgrade", "No supported WebSocket library")
"""What uvicorn says of single requests, without their addresses."""

_PIPE_BUF = 4096
"""So many bytes go into a pipe without another process's between them (POSIX)."""


def start(settings: Settings) -> None:
    """Send all log lines to standard error in one form.

    Only libraries' lines go through ``logging``: every request writes one of ours, and that would cost several times as
    much.
    """
    console = _is_console(settings)
    level = _level(settings)
    shared_processors: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Local variables could hold a password or a token, so tracebacks are text without them.
    rendering: list[structlog.types.Processor] = (
        [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)]
        if console
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(serializer=_as_json)]
    )
    structlog.configure(
        processors=[*shared_processors, *rendering] if console else [_as_line],
        logger_factory=_Lines,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared_processors,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [lines]
    root.setLevel(level)
    # At "info" these libraries repeat our own lines, or print addresses that hold tokens.
    for name in ("uvicorn", "uvicorn.error", "httpx", "httpcore", "alembic", "sqlalchemy.engine"):
        logging.getLogger(name).setLevel(max(logging.WARNING, level))
    logging.getLogger("uvicorn.error").addFilter(lambda record: not str(record.msg).startswith(_SAID))


def access_log(settings: Settings) -> AccessLog:
    """JSON lines are collected and written together, without structlog."""
    if _level(settings) > logging.INFO:
        return AccessLog(lambda _lines: None)
    return AccessLog() if _is_console(settings) else AccessLog(_write_together, seconds=LATE_SECONDS)


def _is_console(settings: Settings) -> bool:
    return settings.log_format == "console" or (settings.log_format == "auto" and sys.stderr.isatty())


def _level(settings: Settings) -> int:
    return logging.getLevelNamesMapping()[settings.log_level.upper()]


def _write_together(lines: Sequence[AccessLine]) -> None:
    """At most ``_PIPE_BUF`` bytes at once, or one long line: processes do not mix their lines in a pipe."""
    stream, offset = _Lines(), time.time() - time.perf_counter()
    lines_of_write: list[str] = []
    size = 0
    for line in lines:
        fields = line.fields()
        fields |= _OF_EACH_REQUEST
        fields["timestamp"] = _timestamp(offset + line.ended)
        text = _as_json(fields)
        length = len(text) if text.isascii() else len(text.encode())
        if lines_of_write and size + length >= _PIPE_BUF:
            stream.msg("\n".join(lines_of_write))
            lines_of_write, size = [], 0
        lines_of_write.append(text)
        size += length + 1
    stream.msg("\n".join(lines_of_write))


def _timestamp(seconds: float) -> str:
    whole = int(seconds)
    return f"{_second(whole)}.{int((seconds - whole) * 1_000_000):06d}Z"


@lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


class _Lines(structlog.WriteLogger):
    """A line that cannot be written is lost without an error, as with ``logging``."""

    def __init__(self, name: str = "", *_arguments: object) -> None:
        super().__init__(sys.stderr)
        self.name = name

    def msg(self, message: str) -> None:
        with suppress(OSError, ValueError):
            super().msg(message)

    log = debug = info = warn = warning = error = critical = fatal = failure = err = exception = msg


def _as_line(logger: _Lines, level: str, line: MutableMapping[str, Any]) -> str:
    """Do the work of ``start``'s processors in one fast step."""
    fields: MutableMapping[str, Any] = {
        **structlog.contextvars.get_contextvars(),
        **line,
        "logger": logger.name,
        "level": level,
    }
    fields["timestamp"] = _timestamp(time.time())
    if "exc_info" in fields:
        fields = structlog.processors.format_exc_info(logger, level, fields)
    return _as_json(fields)


def _as_json(line: Mapping[str, Any], **_options: object) -> str:
    try:
        return msgspec.json.encode(line, enc_hook=str).decode()
    except UnicodeEncodeError:  # half of a surrogate pair, which UTF-8 cannot encode
        return json.dumps(line, default=str)
