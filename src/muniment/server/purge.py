"""Delete what has ended, grants, tokens and tickets, and old lines about changes and of the audit.

It is a process of its own, for which no caller waits.
"""

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing

import structlog
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from muniment.database.connections import Busy, Database, Half
from muniment.directory import audit as directory_audit
from muniment.directory.entries import changes
from muniment.directory.oauth import grant_purge, sessions
from muniment.directory.oauth.grant_purge import PurgeProgress
from muniment.ground import clock
from muniment.installation.layout import Installation
from muniment.repository import audit as repository_audit

ROWS = 200

REST = 6.0

_SECONDS = 30
_DAY = 86_400 * clock.SECOND
_CHANGES_KEPT = 90 * _DAY
"""Who follows the changes of users and groups, and is further behind, has to list them anew."""

log = structlog.get_logger("muniment.purge")


def run(installation: Installation, database: Database, stop: threading.Event, ready: Callable[[], None]) -> None:
    """``database`` is that of the first half that runs here."""
    ready()
    settings, progress = installation.settings, grant_purge.PURGE_START
    with ExitStack() as stack:
        databases: dict[Half, Database] = {settings.halves[0]: database}
        for half in settings.halves[1:]:
            databases[half] = stack.enter_context(closing(Database(installation.database_url(half))))
        while not stop.wait(_SECONDS):
            try:
                if "directory" in databases:
                    progress = _purge_sessions(databases["directory"], progress, stop)
                    _bite(databases["directory"], _purge_changes, stop)
                    _purge_audit(databases["directory"], directory_audit.purge, settings.audit_days, stop)
                if "repository" in databases:
                    _purge_audit(databases["repository"], repository_audit.purge, settings.audit_days, stop)
            except (Busy, SQLAlchemyError) as error:
                log.warning("purge postponed", reason=type(error).__name__)


def _purge_sessions(database: Database, progress: PurgeProgress, stop: threading.Event) -> PurgeProgress:
    def bite(cx: Connection) -> int:
        nonlocal progress
        row_count, progress = sessions.purge(cx, progress, clock.now(), ROWS)
        return row_count

    _bite(database, bite, stop)
    return progress


def _purge_changes(cx: Connection) -> int:
    return changes.purge(cx, clock.now() - _CHANGES_KEPT, ROWS)


def _purge_audit(
    database: Database, purge: Callable[[Connection, clock.Instant, int], int], days: int, stop: threading.Event
) -> None:
    """With 0 days everything is kept."""
    if days and (gone := _bite(database, lambda cx: purge(cx, clock.now() - days * _DAY, ROWS), stop)):
        log.info("audit rows removed", rows=gone, older_than_days=days)


def _bite(database: Database, purge: Callable[[Connection], int], stop: threading.Event) -> int:
    """Take bites until one is not full; return how many rows they had."""
    row_count, total = ROWS, 0
    while row_count >= ROWS and not stop.is_set():
        start = time.monotonic()
        with database.begin() as cx:
            row_count = purge(cx)
        total += row_count
        stop.wait(REST * (time.monotonic() - start))
    return total
