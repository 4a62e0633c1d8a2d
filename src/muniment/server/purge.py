"""Delete grants, tokens and tickets that have ended, in a process of its own, for which no caller waits."""

import threading
import time
from collections.abc import Callable

import structlog
from sqlalchemy.exc import SQLAlchemyError

from muniment.database.connections import Busy, Database
from muniment.directory.oauth import sessions, tokens
from muniment.ground import clock
from muniment.installation.layout import Installation

ROWS = 200

REST = 6.0

_SECONDS = 30

log = structlog.get_logger("muniment.purge")


def run(_installation: Installation, database: Database, stop: threading.Event, ready: Callable[[], None]) -> None:
    ready()
    progress = tokens.PURGE_START
    while not stop.wait(_SECONDS):
        try:
            progress = _purge(database, progress, stop)
        except (Busy, SQLAlchemyError) as error:
            log.warning("purge postponed", reason=type(error).__name__)


def _purge(database: Database, progress: tokens.PurgeProgress, stop: threading.Event) -> tokens.PurgeProgress:
    row_count = ROWS
    while row_count >= ROWS and not stop.is_set():
        start = time.monotonic()
        with database.begin() as cx:
            row_count, progress = sessions.purge(cx, progress, clock.now(), ROWS)
        stop.wait(REST * (time.monotonic() - start))
    return progress
