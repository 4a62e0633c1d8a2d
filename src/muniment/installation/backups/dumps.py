"""Copy one database as of one moment while others write to it, and restore the copy.

SQLite copies itself (its online backup), ``pg_dump`` copies PostgreSQL in the custom format. Both copy an open
snapshot: whatever else is read from it belongs to the same moment.
"""

import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from muniment.database import connections, schema
from muniment.database.connections import Database, Half, Unwritable
from muniment.database.driver_errors import trouble
from muniment.installation.backups.refusals import BackupRefused

FUNCTIONS: Mapping[Half, tuple[str, ...]] = {
    "directory": ("renew_generation", "renew_generation_of_changed", "renew_endings", "count_members"),
    "repository": ("renew_mark",),
}
"""What each half's migrations make in PostgreSQL; a test compares."""

_PIECE = 1 << 20
_PROGRAMS = "PostgreSQL's client programs, of the server's release or a later one (on Debian: postgresql-client)"


class DatabaseSnapshot:
    """A database as of one moment."""

    def __init__(self, database: Database, connection: Connection, snapshot_id: str) -> None:
        self.connection = connection
        self._database = database
        self._snapshot_id = snapshot_id

    @property
    def bytes(self) -> int:
        """Estimates the copy's size, rather too large."""
        sql = (
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
            if self._database.dialect == "sqlite"
            else "SELECT pg_database_size(current_database())"
        )
        return int(self.connection.execute(sa.text(sql)).scalar_one())

    def copy(self, file: Path) -> None:
        """Only its owner may read the new file. Raises BackupRefused, OSError, Busy."""
        file.touch(mode=0o600, exist_ok=False)
        if self._database.dialect == "sqlite":
            try:
                connections.copy_sqlite(self.connection, file)
            except Unwritable as error:
                if isinstance(error.__cause__, DBAPIError) and trouble(error.__cause__) == "full":
                    # The disk of the copy is full, not the disk of the database.
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file)) from error
                raise
            return
        arguments = ["--format=custom", "--no-owner", "--no-privileges", f"--snapshot={self._snapshot_id}"]
        with file.open("wb") as stream:
            _run("pg_dump", arguments, self._database, out=stream)


def suffix(database: Database) -> str:
    return "db" if database.dialect == "sqlite" else "dump"


def check_programs(database: Database) -> None:
    if database.dialect == "postgresql":
        for program in ("pg_dump", "pg_restore"):
            _path_of(program)


@contextmanager
def freeze(database: Database) -> Iterator[DatabaseSnapshot]:
    with database.read() as cx:
        if database.dialect == "sqlite":
            # SQLite takes the snapshot at the first read, not at BEGIN.
            cx.execute(sa.text("SELECT count(*) FROM sqlite_master")).scalar_one()
            snapshot_id = ""
        else:
            snapshot_id = str(cx.execute(sa.text("SELECT pg_export_snapshot()")).scalar_one())
        yield DatabaseSnapshot(database, cx, snapshot_id)


def is_empty(database: Database) -> bool:
    return not sa.inspect(database.engine).get_table_names()


def remove_halves(database: Database, halves: Collection[Half]) -> None:
    """Remove these halves' tables and functions, and nothing else, from PostgreSQL.

    Raises BackupRefused, and removes nothing, if something else depends on them.
    """
    names = set[str]().union(*map(_tables, halves))
    functions = [name for half in halves for name in FUNCTIONS[half]]
    try:
        with database.begin() as cx:
            found = sa.inspect(cx)
            in_schema = f"{cx.dialect.identifier_preparer.quote(found.default_schema_name or 'public')}."
            tables = [in_schema + name for name in sorted(names.intersection(found.get_table_names()))]
            if tables:
                cx.exec_driver_sql(f"DROP TABLE {', '.join(tables)}")
            if functions:
                cx.exec_driver_sql(f"DROP FUNCTION IF EXISTS {', '.join(f'{in_schema}{name}()' for name in functions)}")
    except DBAPIError as error:
        reason = ": ".join(str(error.orig).splitlines()[:2])
        raise BackupRefused(
            f"The database holds an unfinished restore that cannot be removed ({reason}): remove everything from it."
        ) from error


def _tables(half: Half) -> set[str]:
    with tempfile.TemporaryDirectory() as folder, closing(Database(f"sqlite:///{folder}/{half}.db")) as database:
        schema.migrate(database, half)
        return set(sa.inspect(database.engine).get_table_names())


def restore_dump(database: Database, file: Path, *, replace: bool) -> None:
    """With ``replace``, first remove what the dump will make again. Raises BackupRefused."""
    arguments = ["--format=custom", "--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error"]
    arguments += ["--clean", "--if-exists"] if replace else []
    with file.open("rb") as stream:
        _run("pg_restore", arguments, database, source=stream)


def _run(
    program: str,
    arguments: list[str],
    database: Database,
    *,
    source: BinaryIO | None = None,
    out: BinaryIO | None = None,
) -> None:
    """Through a pipe of ours the program ends even if this process is killed.

    Raises BackupRefused with its error.
    """
    url = database.engine.url
    query = {name: value for name, value in url.query.items() if name != "password"}
    # The password is left out, because everybody on the machine can see a program's arguments.
    address = sa.URL.create("postgresql", url.username, None, url.host, url.port, url.database, query)
    password = url.password or url.query.get("password")
    environment = os.environ | ({"PGPASSWORD": str(password)} if password else {})
    command = [_path_of(program), f"--dbname={address.render_as_string()}", *arguments]
    with tempfile.TemporaryFile() as error_output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if source else subprocess.DEVNULL,
            stdout=subprocess.PIPE if out else subprocess.DEVNULL,
            stderr=error_output,
            env=environment,
        )
        try:
            if source is not None and process.stdin is not None:
                _write_input(source, process.stdin)
            if out is not None and process.stdout is not None:
                shutil.copyfileobj(process.stdout, out, _PIECE)
            code = process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
        error_output.seek(0)
        lines = error_output.read(10_000).decode("utf-8", "replace").split("\n")
    if code != 0:
        reason = next((line for line in lines if "error" in line), lines[0]).strip()
        raise BackupRefused(f"{reason or f'{program} ended with {code}'}. The restore or backup needs {_PROGRAMS}.")


def _write_input(source: BinaryIO, program: IO[bytes]) -> None:
    with suppress(BrokenPipeError):  # the program has ended, and its error output says why
        shutil.copyfileobj(source, program, _PIECE)
        program.close()


def _path_of(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise BackupRefused(f"{program} is not on the PATH: install {_PROGRAMS}, or set PATH so that it is found.")
    return path
