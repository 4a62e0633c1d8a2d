"""The statements of one request of ours, as they were recorded, and as a bare endpoint runs them again."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

_COUNTERS = ("seq", "sequence")
"""The parameters that count objects and changes."""

_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=4000", "foreign_keys=ON", "cache_size=-8000")
"""What our own connections are told first (``muniment.database.connections``)."""


class Statement(msgspec.Struct, frozen=True):
    """One statement: the number of the connection that ran it, the name of the database's file, SQL, parameters."""

    connection: int
    file: str
    sql: str
    parameters: dict[str, Any] | list[Any]


class Recording(msgspec.Struct, frozen=True):
    """A request's statements in order, and the answer's status and text.

    ``new_id`` is that of the object that the request made; empty if it made none.
    """

    statements: Sequence[Statement]
    status: int
    reply: str
    new_id: str = ""


def write(file: Path, recordings: Mapping[str, Recording]) -> None:
    """Write recordings by name."""
    file.write_bytes(msgspec.json.encode(recordings, enc_hook=str))


class Replay:
    """Runs recorded statements on databases in a folder. A new object gets another id and counter each time."""

    def __init__(self, file: Path, folder: Path) -> None:
        self._folder = folder
        self._recordings = msgspec.json.decode(file.read_bytes(), type=dict[str, Recording])
        self._connections: dict[tuple[int, str], sqlite3.Connection] = {}
        self._statements = {
            name: [self._prepare(statement, recording.new_id) for statement in recording.statements]
            for name, recording in self._recordings.items()
        }
        self._replies = {name: recording.reply.encode() for name, recording in self._recordings.items()}
        self._number = 0

    def run(self, name: str) -> tuple[int, bytes]:
        """Run the statements of the recording with this name; return the status and the bytes of its answer."""
        self._number += 1
        for run in self._statements[name]:
            run(self._number)
        return self._recordings[name].status, self._replies[name]

    def _prepare(self, statement: Statement, new_id: str) -> Callable[[int], object]:
        place = statement.connection, statement.file
        connection = self._connections.get(place) or self._open(place)
        sql, parameters = statement.sql, statement.parameters
        if isinstance(parameters, dict) and new_id:
            ids = [name for name, value in parameters.items() if value == new_id]
            counters = {name: parameters[name] for name in _COUNTERS if name in parameters}
            if ids or counters:
                return partial(_run_anew, connection.execute, sql, parameters, ids, counters)
        return lambda _number: connection.execute(sql, parameters).fetchall()

    def _open(self, place: tuple[int, str]) -> sqlite3.Connection:
        opened = sqlite3.connect(self._folder / place[1], isolation_level=None, check_same_thread=False)
        for pragma in _PRAGMAS:
            opened.execute(f"PRAGMA {pragma}")
        self._connections[place] = opened
        return opened


def _run_anew(
    execute: Callable[..., sqlite3.Cursor],
    sql: str,
    parameters: Mapping[str, Any],
    ids: Sequence[str],
    counters: Mapping[str, int],
    number: int,
) -> object:
    changed = dict(parameters)
    for name in ids:
        changed[name] = f"{number:016x}"
    for name, counter in counters.items():
        changed[name] = counter + number
    return execute(sql, changed).fetchall()
