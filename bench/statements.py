"""Which statements does our server run for one request? The application of this process answers it, and each connection
of SQLite notes what its driver is told, transactions included."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

import httpx
import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Engine

from bench.load import Request
from bench.ours import Data
from bench.recordings import Recording, Statement
from muniment import app
from muniment.web.requests.access_log import AccessLog
from tests.scenes import InProcess, Loop

_WARM_UP = 50
"""How often a request is sent before it is recorded: by then the server remembers what it can."""

MADE = "{made}"
"""Stands in an address for the id of the object that the first request made."""


def record(data: Data, sign_in: Request, requests: Mapping[str, Request]) -> dict[str, Recording]:
    """Let the application answer each request for the caller who signs in, and record the last answer of each.

    Nobody may serve the data folder meanwhile.
    """
    opened = data.opened()
    recordings: dict[str, Recording] = {}
    made = ""
    with _noting() as notes, _answering(app.build(opened.settings, opened.path, access_log=_SILENT)) as http:

        def ask(one: Request, *headers: tuple[str, str]) -> httpx.Response:
            address = one.address.replace(MADE, made)
            answer = http.request(one.method, address, content=one.body, headers=dict([*one.headers, *headers]))
            return answer.raise_for_status()

        bearer = "Authorization", f"Bearer {ask(sign_in).json()['access_token']}"
        for name, one in requests.items():
            for _ in range(_WARM_UP):
                notes.clear()
                answer = ask(one, bearer)
            new_id = answer.json()["properties"]["r_object_id"] if answer.status_code == 201 else ""
            recordings[name] = Recording(list(notes), answer.status_code, answer.text, new_id)
            made = made or new_id
    return recordings


def copy_databases(data: Data, folder: Path) -> None:
    """Copy the databases of a data folder: no index agent follows what a bare endpoint writes into the copies."""
    folder.mkdir()
    for half in ("directory", "repository"):
        whole, copy = (sqlite3.connect(place / f"{half}.db") for place in (data.folder, folder))
        whole.backup(copy)
        whole.close()
        copy.close()


_SILENT = AccessLog(lambda _lines: None)


@contextmanager
def _answering(application: Any) -> Iterator[httpx.Client]:
    loop = Loop()
    try:
        with structlog.testing.capture_logs(), httpx.Client(transport=InProcess(application, loop)) as http:
            yield http
    finally:
        loop.close()


@contextmanager
def _noting() -> Iterator[list[Statement]]:
    """Note what every connection to SQLite that is opened in the block runs."""
    notes: list[Statement] = []
    numbers = iter(range(1_000))

    def choose(_dialect: Any, _record: Any, _arguments: Any, options: dict[str, Any]) -> None:
        options["factory"] = partial(_Connection, notes, next(numbers))

    sa.event.listen(Engine, "do_connect", choose)
    try:
        yield notes
    finally:
        sa.event.remove(Engine, "do_connect", choose)


class _Connection(sqlite3.Connection):
    """A connection with a number, that notes what it runs."""

    def __init__(self, notes: list[Statement], number: int, database: str, *about: Any, **more: Any) -> None:
        self._notes, self._number, self._file = notes, number, Path(database).name
        super().__init__(database, *about, **more)

    def note(self, sql: str, parameters: Any = ()) -> None:
        """Note a statement with its parameters."""
        values = dict(parameters) if isinstance(parameters, Mapping) else list(parameters)
        self._notes.append(Statement(self._number, self._file, sql, values))

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(factory or _Cursor)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        cursor: sqlite3.Cursor = self.cursor().execute(sql, parameters)
        return cursor

    def rollback(self) -> None:
        if self.in_transaction:
            self.note("ROLLBACK")
        super().rollback()


class _Cursor(sqlite3.Cursor):
    connection: _Connection

    def execute(self, sql: str, parameters: Any = (), /) -> Self:
        self.connection.note(sql, parameters)
        return super().execute(sql, parameters)

    def executemany(self, sql: str, several: Any, /) -> Self:
        for parameters in several:
            self.connection.note(sql, parameters)
        return super().executemany(sql, several)
