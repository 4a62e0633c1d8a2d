"""Let one step of whatever writes fail: the first, then the second, until none is left (as SQLite tests itself).

A step is a file or folder that is made, bytes that are written or cut off, a sync, a rename, a removal, the begin of a
write transaction, a commit, and each operation of the index engine's writer. A commit counts twice: it fails before
anything is committed, and after everything is, when the connection breaks before the answer.
"""

import errno
import io
import itertools
import os
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from muniment.database import connections
from muniment.ground import disk
from muniment.repository.search.index.tantivy.engine import TantivyWriter

T = TypeVar("T")

ERRORS = (errno.EIO, errno.ENOSPC)
_RUNS_WITHOUT, _ROUNDS = 4, 4


class Fault:
    """Counts steps below a folder, and fails one of them. ``step`` says which, and is empty while none has failed."""

    def __init__(self, folder: Path, number: int, error: int) -> None:
        self.step = ""
        self._folder = os.path.realpath(folder)
        self._left = number
        self._error = error

    def count(self, step: str) -> bool:
        """Count a step, and say whether it is the one that fails."""
        self._left -= 1
        if self._left == 0:
            self.step = step
        return self._left == 0

    def pass_or_fail(self, step: str) -> None:
        """Count a step. Raises OSError if it is the one that fails."""
        if self.count(step):
            raise OSError(self._error, os.strerror(self._error))

    def concerns(self, place: Any) -> bool:
        """Say whether a path or a descriptor lies in the folder."""
        path = os.readlink(f"/proc/self/fd/{place}") if isinstance(place, int) else os.path.realpath(os.fspath(place))
        return path.startswith(f"{self._folder}/") or path == self._folder

    def database_error(self, *, gone: bool) -> sqlite3.Error:
        """Make the error of a driver whose disk fails. ``gone``: nobody knows whether it has committed."""
        full = self._error == errno.ENOSPC and not gone
        error = sqlite3.OperationalError("as it would be")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL if full else sqlite3.SQLITE_IOERR
        return error


def fail_each_step(
    folder: Path, work: Callable[[], T], check: Callable[[T, str], None], expected: Collection[str]
) -> int:
    """Do some work again and again, each time with another step that fails, until it has no such step left.

    ``check`` gets what the work returned, and the step that failed, or nothing. Which step comes next depends on the
    one that failed before, and on the pace of threads, so one round may pass over a step. There are up to ``_ROUNDS``
    rounds until each of the ``expected`` steps has failed; how many there were is returned. Raises AssertionError if
    one of the steps never failed.
    """
    failed = set[str]()
    for rounds in range(1, _ROUNDS + 1):
        failed |= _fail_each_step_once(folder, work, check)
        if failed.issuperset(expected):
            return rounds
    raise AssertionError(f"never failed: {sorted(set(expected) - failed)}")


def _fail_each_step_once(folder: Path, work: Callable[[], T], check: Callable[[T, str], None]) -> set[str]:
    """Go through the steps once for each error, and return all steps that failed.

    The work may have some steps more or fewer from run to run, so it ends when none failed for some runs.
    """
    failed = set[str]()
    for error in ERRORS:
        runs_without = 0
        for number in itertools.count(1):
            with failing(folder, number, error) as fault:
                outcome = work()
            check(outcome, fault.step)
            failed |= {fault.step} - {""}
            runs_without = 0 if fault.step else runs_without + 1
            if runs_without == _RUNS_WITHOUT:
                break
    return failed


@contextmanager
def failing(folder: Path, number: int, error: int) -> Iterator[Fault]:
    """Let the step of this number fail with this error during the block."""
    fault = Fault(folder, number, error)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "fdatasync", "pwrite", "rename", "mkdir", "unlink", "ftruncate"):
            patch.setattr(os, name, _counted(fault, name, getattr(os, name)))
        patch.setattr(os, "open", _counted_open(fault, os.open))
        patch.setattr(disk, "create", _counted_create(fault))
        patch.setattr(connections, "on_driver", _counted_statement(fault, connections.on_driver))
        patch.setattr(PGDialect_psycopg, "do_commit", _counted_commit(fault, PGDialect_psycopg.do_commit))
        patch.setattr(TantivyWriter, "__init__", _counted_engine(fault, TantivyWriter.__init__))
        yield fault


def _counted(fault: Fault, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def step(place: Any, *others: Any, **named: Any) -> Any:
        if fault.concerns(place):
            fault.pass_or_fail(name)
        return real(place, *others, **named)

    return step


def _counted_open(fault: Fault, real: Callable[..., int]) -> Callable[..., int]:
    def step(place: Any, flags: int, *others: Any, **named: Any) -> int:
        if flags & os.O_CREAT and not os.path.exists(place) and fault.concerns(place):
            fault.pass_or_fail("create")
        return real(place, flags, *others, **named)

    return step


def _counted_create(fault: Fault) -> Callable[..., Any]:
    class CountedFile(io.FileIO):
        def write(self, data: Any, /) -> int:
            fault.pass_or_fail("write")
            return super().write(data)

    def create(path: Path | str, *, buffering: int = -1) -> Any:
        file = CountedFile(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
        return file if buffering == 0 else io.BufferedWriter(file)

    return create


def _counted_statement(fault: Fault, real: Callable[..., Any]) -> Callable[..., Any]:
    def step(connection: sa.Connection, sql: str, values: Any = None, **how: Any) -> Any:
        def fail(*, gone: bool) -> Exception:
            error = fault.database_error(gone=gone)
            return sa.exc.DBAPIError.instance(sql, None, error, sqlite3.Error, hide_parameters=True)

        if sql in ("BEGIN IMMEDIATE", "COMMIT") and fault.count(sql.lower()):
            raise fail(gone=False)
        result = real(connection, sql, values, **how)
        if sql == "COMMIT" and fault.count("commit, then gone"):
            raise fail(gone=True)
        return result

    return step


def _counted_commit(fault: Fault, real: Callable[..., Any]) -> Callable[..., Any]:
    def step(dialect: Any, connection: Any) -> None:
        if connection.read_only:
            real(dialect, connection)
            return
        if fault.count("commit"):
            connection.rollback()
            raise psycopg.errors.DiskFull("as it would be")
        real(dialect, connection)
        if fault.count("commit, then gone"):
            connection.driver_connection.close()
            raise psycopg.OperationalError("as it would be")

    return step


def _counted_engine(fault: Fault, real: Callable[..., None]) -> Callable[..., None]:
    class CountedWriter:
        def __init__(self, writer: Any) -> None:
            self._writer = writer

        def __getattr__(self, name: str) -> Callable[..., Any]:
            operation = getattr(self._writer, name)

            def step(*arguments: Any) -> Any:
                fault.pass_or_fail(f"engine: {name}")
                result = operation(*arguments)
                if name == "commit":
                    fault.pass_or_fail("engine: commit, then an error")
                return result

            return step

    def opened(self: TantivyWriter, *arguments: Any, **named: Any) -> None:
        real(self, *arguments, **named)
        self._writer = CountedWriter(self._writer)  # type: ignore[assignment]

    return opened
