"""Delete expired grants, tokens and tickets, a few rows at a time, in a process of its own: no caller waits."""

import os
import threading
import time
from collections.abc import Callable

import structlog
from sqlalchemy.exc import SQLAlchemyError

from muniment import clock
from muniment.db import Busy, Database
from muniment.directory import sessions
from muniment.directory.oauth import tokens
from muniment.installation import Installation
from muniment.server import memory

ROWS = 200
"""How many rows of one kind a transaction of the purge removes at most."""

REST = 6.0
"""The pause after a transaction, as a multiple of the time it took: other writes come in between."""

_SECONDS = 30

log = structlog.get_logger("muniment.purge")


def purge_work(installation: Installation) -> Callable[[threading.Event, Callable[[], None]], None]:
    """Make the work of the process that purges the directory's database."""

    def work(stop: threading.Event, ready: Callable[[], None]) -> None:
        memory.spare()
        os.nice(10)
        database = Database(installation.database_url("directory"))
        ready()
        place = tokens.SWEEP_START
        try:
            while not stop.wait(_SECONDS):
                try:
                    place = _purge(database, place, stop)
                except (Busy, SQLAlchemyError) as error:
                    log.warning("purge put off", reason=type(error).__name__)
        finally:
            database.close()

    return work


def _purge(database: Database, place: tokens.SweepPlace, stop: threading.Event) -> tokens.SweepPlace:
    row_count = ROWS
    while row_count >= ROWS and not stop.is_set():
        began = time.monotonic()
        with database.begin() as cx:
            row_count, place = sessions.purge(cx, place, clock.now(), ROWS)
        stop.wait(REST * (time.monotonic() - began))
    return place
