"""How log lines look: structured, one a line, to standard error; JSON unless a person watches."""

import logging
import sys

import structlog

from muniment.settings import Settings


def start(settings: Settings) -> None:
    """Send every line of ours and of the libraries' through one formatter."""
    console = settings.log_format == "console" or (settings.log_format == "auto" and sys.stderr.isatty())
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Frames' local variables could hold a password or a token: a trace is text without them.
    rendering: list[structlog.types.Processor] = (
        [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)]
        if console
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [lines]
    root.setLevel(settings.log_level.upper())
    # What these say at "info" is said by our own lines, or carries addresses with tokens in them.
    for name in ("uvicorn", "uvicorn.error", "httpx", "httpcore", "alembic", "sqlalchemy.engine"):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
