"""What does the database say now? One statement sees one state, and needs no transaction."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from muniment.database.connections import Database, PreparedStatement, driver_of, translated_errors
from muniment.database.driver_errors import trouble

_LIVELY_SECONDS = 2.0
"""So long after a commit ``wait`` takes the shorter wait."""

# SQLite reads a counter in shared memory; PostgreSQL takes one round trip.
_STATE = {"sqlite": "PRAGMA data_version", "postgresql": "SELECT CAST(pg_current_snapshot() AS TEXT)"}


class Poll:
    """Any thread may use it. Close it before the database."""

    def __init__(self, database: Database, statement: PreparedStatement | str) -> None:
        self._database = database
        dialect = database.engine.dialect
        self._sql = statement if isinstance(statement, str) else statement.text(dialect)
        self._connection: Connection | None = None
        self._execute: Callable[[str], Any] | None = None
        self._driver_error = dialect.loaded_dbapi.Error
        self._lock = threading.RLock()
        self.opened = 0
        """How many connections it has taken: rows from two may not be comparable."""

    def row(self) -> Sequence[Any]:
        """Raises Busy."""
        with self._lock:
            was_open = self._connection is not None
            try:
                return self._read()
            except DBAPIError as error:
                self.close()
                if not was_open or trouble(error) != "gone":
                    with translated_errors():
                        raise
            # The server has closed the connection since the last time.
            with translated_errors():
                return self._read()

    def close(self) -> None:
        """The next ``row`` takes another connection."""
        with self._lock:
            connection, self._connection, self._execute = self._connection, None, None
            if connection is not None:
                connection.close()

    def _read(self) -> Sequence[Any]:
        execute = self._execute
        if execute is None:
            self._connection = self._database.take_connection(self)
            execute = self._execute = driver_of(self._connection).execute
            self.opened += 1
        try:
            row: Sequence[Any] = execute(self._sql).fetchone()
        except self._driver_error as error:
            raise DBAPIError.instance(self._sql, None, error, self._driver_error, hide_parameters=True) from error
        return row


class CommitWatch:
    """Whether anything was committed since the last call, much more cheaply than by a query.

    It may report a commit that did not happen, but misses none. One thread may use it; any may close it.
    """

    def __init__(self, database: Database) -> None:
        self._glance = Poll(database, _STATE[database.dialect])
        self._last_state: object = None
        self._lively_until = 0.0

    def has_new_commits(self) -> bool:
        """The first call returns True. Raises Busy."""
        row = self._glance.row()
        # Each connection counts for itself, so the numbers of two connections cannot be compared.
        previous_state, self._last_state = self._last_state, (self._glance.opened, row)
        if previous_state == self._last_state:
            return False
        self._lively_until = time.monotonic() + _LIVELY_SECONDS
        return True

    def wait(self, stop: threading.Event, shortest: float, longest: float) -> None:
        """Wait ``shortest`` seconds if there was a commit a moment ago, otherwise ``longest``."""
        stop.wait(shortest if time.monotonic() < self._lively_until else longest)

    def close(self) -> None:
        """The next call of ``has_new_commits`` returns True."""
        self._glance.close()
