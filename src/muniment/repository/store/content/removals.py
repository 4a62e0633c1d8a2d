"""May content be removed now? On PostgreSQL a lock of the database decides, which ends with its connection; an
installation on SQLite has one machine, and a file's lock.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from muniment.database.connections import Database
from muniment.ground import locks

_KEY = 0x6D75_6E69_7265_6D76


class RemovalLock:
    """The lock that forbids removals; it opens the database when first used."""

    def __init__(self, database: Callable[[], Database], file: Path) -> None:
        self._database, self._file = database, file

    @contextmanager
    def removing(self) -> Iterator[bool]:
        """Yield False while a ``keeping`` block runs.

        Raises Busy.
        """
        database = self._database()
        if database.dialect == "postgresql":
            with database.read() as cx:
                yield bool(cx.execute(sa.select(sa.func.pg_try_advisory_xact_lock_shared(_KEY))).scalar_one())
            return
        lock = locks.open_file(self._file)
        try:
            yield locks.share(lock)
        finally:
            os.close(lock)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Wait for a removal under way and for other ``keeping`` blocks, then forbid every process to remove content.

        Raises Busy if the database cannot be reached, or if the connection was lost while the block ran.
        """
        database = self._database()
        if database.dialect == "sqlite":
            with locks.hold(self._file):
                yield
            return
        with database.begin() as cx:
            # Another backup may hold the lock for hours.
            cx.execute(sa.text("SET LOCAL lock_timeout = 0"))
            cx.execute(sa.text("SET LOCAL statement_timeout = 0"))
            cx.execute(sa.select(sa.func.pg_advisory_xact_lock(_KEY)))
            yield
            cx.execute(sa.select(1))
