"""One database: snapshots and transactions. SQLite by default, PostgreSQL for several nodes."""

import sqlite3
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError

from muniment.troubles import Trouble, trouble

Half = Literal["directory", "repository"]
_IDLE_READERS = 8

_LIVELY_SECONDS = 2.0

_SHORTEST_WAIT, _LONGEST_WAIT = 0.0005, 0.005
_SHORT_WAITS = 0.05
"""Seconds between two tries to begin a write transaction, and how long the short ones go on."""

_PAGES_AT_A_TIME = 1024

_STEPS_BETWEEN_LOOKS = 20_000
"""How many steps SQLite takes between two looks at the clock when a read has a time limit: about half a millisecond."""

_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}

directory_tables = sa.MetaData(naming_convention=_CONVENTION)
"""Every table of the directory. Each module declares its own tables here."""

repository_tables = sa.MetaData(naming_convention=_CONVENTION)
"""Every table of the repository."""

BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""The type of a key that the database numbers itself: SQLite numbers INTEGER columns only."""


class Busy(Exception):
    """The database could not be used within the time allowed; the caller may try again."""


class Unwritable(Busy):
    """The database takes no writes: it is read-only, or its disk is full or broken. Nothing was changed."""


class Database:
    """A pool of connections that gives out read snapshots and write transactions.

    ``busy_seconds`` is how long a write waits for other writes.

    ``url`` is an SQLAlchemy address: ``sqlite:////path/file.db`` or ``postgresql+psycopg://...``. A process
    makes its own: a Database must not cross a fork.
    """

    def __init__(self, url: str, *, busy_seconds: float = 10.0) -> None:
        parsed = sa.make_url(url)
        self.dialect: Literal["sqlite", "postgresql"] = (
            "sqlite" if parsed.get_backend_name() == "sqlite" else "postgresql"
        )
        self._writer = threading.Lock()
        self._readers: deque[Connection] = deque()
        self._watches: weakref.WeakSet[Watch] = weakref.WeakSet()
        self._write_connection: Connection | None = None
        self.busy_seconds = busy_seconds
        if self.dialect == "sqlite":
            self._engine = _sqlite_engine(parsed, busy_seconds)
        else:
            self._engine = sa.create_engine(
                parsed,
                hide_parameters=True,
                pool_size=8,
                max_overflow=8,
                pool_timeout=busy_seconds,
                pool_pre_ping=True,
                connect_args={
                    "connect_timeout": 10,
                    "options": f"-c lock_timeout={int(busy_seconds * 1000)} -c statement_timeout=60000 -c timezone=UTC",
                },
            )

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """Open a write transaction: committed when the block ends, rolled back when it raises.

        Raises Busy when another writer holds the database for longer than allowed or it cannot be reached, Unwritable
        when it cannot take writes.
        """
        if self.dialect == "postgresql":
            with _translated_errors(), self._engine.begin() as connection:
                yield connection
            return
        writing = self.writing()
        try:
            with _translated_errors():
                yield writing.connection
        except BaseException as error:
            writing.roll_back(broken=isinstance(error, Unwritable))
            raise
        writing.commit()

    def writing(self, *, until: float | None = None) -> "WriteBatch":
        """Open SQLite's write transaction. Raises as ``begin`` does.

        ``until`` is the moment (``time.monotonic``) until which it waits for other writes. With a past moment it does
        not wait.
        """
        until = time.monotonic() + self.busy_seconds if until is None else until
        if not self._writer.acquire(timeout=max(0.0, until - time.monotonic())):
            raise Busy("The database is busy with other writes.")
        try:
            with _translated_errors():
                if self._write_connection is None:
                    self._write_connection = _take_connection(self._engine, muniment_write=True)
                    _driver(self._write_connection).execute("PRAGMA busy_timeout = 0")
                _begin_writing(self._write_connection, until)
        except BaseException as error:
            self._end_writing(broken=isinstance(error, Unwritable))
            raise
        return WriteBatch(self._write_connection, self._end_writing)

    def read(self, *, within: float | None = None) -> AbstractContextManager[Connection]:
        """Open a read-only snapshot: every statement in the block sees the same state.

        ``within`` is a limit in seconds: on SQLite for the whole block, on PostgreSQL for each statement. A statement
        that takes longer is stopped. Raises Busy.
        """
        if self.dialect == "sqlite":
            return _Snapshot(self._engine, self._readers, within)
        return self._read_postgresql(within)

    def watch(self) -> "Watch":
        """Make a watch that notices every commit, by whichever process."""
        watch = Watch(self)
        self._watches.add(watch)
        return watch

    def close(self) -> None:
        """Close every connection."""
        self._forget_readers()
        if self._write_connection is not None:
            self._write_connection.close()
            self._write_connection = None
        self._engine.dispose()

    @property
    def engine(self) -> Engine:
        """The engine underneath, for migrations and for tests that compare schemas."""
        return self._engine

    def _end_writing(self, broken: bool) -> None:
        if broken and self._write_connection is not None:
            # A connection that was opened while the file could not be written stays read-only. So does the memory that
            # all connections of a process share, until the last of them is closed.
            self._write_connection.invalidate()
            self._write_connection = None
            self._forget_readers()
            for watch in list(self._watches):
                watch.close()
            self._engine.dispose()
        self._writer.release()

    def _forget_readers(self) -> None:
        readers, self._readers = self._readers, deque()
        with suppress(IndexError):  # a reader of another thread may take the last one
            while True:
                readers.pop().close()

    @contextmanager
    def _read_postgresql(self, within: float | None) -> Iterator[Connection]:
        with _translated_errors(), self._engine.connect() as connection:
            connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                if within is not None:
                    connection.exec_driver_sql(f"SET LOCAL statement_timeout = {max(1, int(within * 1000))}")
                yield connection


class Watch:
    """Says whether anything was committed since the last question, at a fraction of the cost of a look at the tables.

    It may say so wrongly, but it never misses a commit. One thread asks; any thread may close it, before it closes the
    database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection | None = None
        self._last_state: object = None
        self._lock = threading.RLock()
        self._lively_until = 0.0

    def has_new_commits(self) -> bool:
        """Say whether something may have been committed since the last call; the first call says yes. Raises Busy."""
        with self._lock:
            try:
                with _translated_errors():
                    before, self._last_state = self._last_state, self._state()
            except BaseException:
                self.close()
                raise
            if before == self._last_state:
                return False
        self._lively_until = time.monotonic() + _LIVELY_SECONDS
        return True

    def wait(self, stop: threading.Event, shortest: float, longest: float) -> None:
        """Wait until it is worth asking again: ``shortest`` seconds soon after a commit, else ``longest``.

        Waking up costs more than asking. The wait ends early when ``stop`` is set.
        """
        stop.wait(shortest if time.monotonic() < self._lively_until else longest)

    def close(self) -> None:
        """Close its connection; the next call of ``has_new_commits`` says yes."""
        # Each connection has its own counter: the numbers of two connections cannot be compared.
        with self._lock:
            connection, self._connection, self._last_state = self._connection, None, None
            if connection is not None:
                connection.close()

    def _state(self) -> object:
        engine, sql = self._database.engine, _STATE[self._database.dialect]
        if self._connection is None:
            self._connection = (
                _take_connection(engine)
                if self._database.dialect == "sqlite"
                else engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            )
        return _on_driver(self._connection, sql).fetchone()


# Neither statement begins a transaction: the first reads a counter in shared memory, the second is one round trip.
_STATE = {"sqlite": "PRAGMA data_version", "postgresql": "SELECT CAST(pg_current_snapshot() AS TEXT)"}


class _Snapshot:
    """A snapshot of SQLite on a connection that is reused from one read to the next.

    Taking a connection out of SQLAlchemy's pool and putting it back costs more than a look-up.
    """

    def __init__(self, engine: Engine, idle: deque[Connection], within: float | None) -> None:
        self._engine = engine
        self._idle = idle
        self._within = within

    def __enter__(self) -> Connection:
        try:
            self._connection = self._idle.pop()
        except IndexError:
            with _translated_errors():
                self._connection = _take_connection(self._engine)
        self._driver = _driver(self._connection)
        self._driver.execute("BEGIN")
        if self._within is not None:
            until = time.monotonic() + self._within
            self._driver.set_progress_handler(lambda: time.monotonic() > until, _STEPS_BETWEEN_LOOKS)
        return self._connection

    def __exit__(self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        failed = isinstance(error, DBAPIError)
        if self._within is not None:
            self._driver.set_progress_handler(None, 0)
        self._driver.rollback()
        if failed or len(self._idle) >= _IDLE_READERS:
            self._connection.close()
        else:
            self._idle.append(self._connection)
        if failed and error is not None:
            with _translated_errors():
                raise error


class Outcome(NamedTuple):
    """How a decision ended: the value that it returned, or the exception that it raised."""

    value: Any
    raised: Exception | None


class WriteBatch:
    """SQLite's write transaction, open for one decision after the other. ``commit`` stores all of them, or none.

    One thread may decide and another commit. ``on_end`` is called once, at the end of the transaction, with True if
    the connection can no longer be used.
    """

    def __init__(self, connection: Connection, on_end: Callable[[bool], None]) -> None:
        self.connection = connection
        self._driver = _driver(connection)
        self._on_end = on_end
        self._broken = False

    def decide(self, decision: Callable[[Connection], Any]) -> Outcome:
        """Run a decision. If it raises, only this decision is undone.

        If SQLite gave up the whole transaction, as when the disk is full, it raises what the decision raised.
        """
        self._driver.execute("SAVEPOINT decision")
        try:
            with _translated_errors():
                outcome = Outcome(decision(self.connection), None)
        except Exception as error:
            self._broken |= isinstance(error, Unwritable)
            if not self._driver.in_transaction:
                raise
            self._driver.execute("ROLLBACK TO decision")
            outcome = Outcome(None, error)
        self._driver.execute("RELEASE decision")
        return outcome

    def commit(self) -> None:
        """Write all decisions to disk. Raises what goes wrong; then nothing is stored."""
        try:
            with _translated_errors():
                _on_driver(self.connection, "COMMIT")
        except Unwritable:
            self._broken = True
            raise
        finally:
            self.roll_back()

    def roll_back(self, *, broken: bool = False) -> None:
        """Undo the decisions that were not committed. ``broken``: the connection can no longer be used."""
        try:
            self._driver.rollback()
        finally:
            self._on_end(broken or self._broken)


class PreparedStatement:
    """A statement of SQLAlchemy whose SQL is compiled once and then run on the driver (decision 0011).

    It is for the few statements that nearly every request runs: SQLAlchemy's work around an execution costs several
    times the look-up. It suits integers, texts, bytes and truth values. Errors raise SQLAlchemy's exceptions.
    """

    def __init__(self, statement: sa.Select[Any] | sa.Insert) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, Mapping[str, Any]]] = {}
        selected = statement.selected_columns if isinstance(statement, sa.Select) else ()
        self._truths = [place for place, column in enumerate(selected) if isinstance(column.type, sa.Boolean)]

    def first(self, cx: Connection, **values: Any) -> Sequence[Any] | None:
        """Run it and return the first row, or None."""
        row: Sequence[Any] | None = self._run(cx, values).fetchone()
        if row is None or not self._truths:
            return row
        cells = list(row)
        for place in self._truths:  # SQLite stores truth values as 0 and 1
            cells[place] = None if row[place] is None else bool(row[place])
        return cells

    def run(self, cx: Connection, **values: Any) -> None:
        """Run it without reading a result."""
        self._run(cx, values)

    def _run(self, cx: Connection, values: dict[str, Any]) -> Any:
        sql, constants = self._compiled.get(cx.dialect.name) or self._compile(cx.dialect)
        return _on_driver(cx, sql, {**constants, **values})

    def _compile(self, dialect: sa.Dialect) -> tuple[str, Mapping[str, Any]]:
        # Parameters by name, as in psycopg; SQLite's default style is by position.
        named_dialect = sqlite.dialect(paramstyle="named") if dialect.name == "sqlite" else dialect
        compiled = self._statement.compile(dialect=named_dialect, compile_kwargs={"render_postcompile": True})
        constants = {name: value for name, value in compiled.params.items() if value is not None}
        self._compiled[dialect.name] = str(compiled), constants
        return self._compiled[dialect.name]


def copy_sqlite(connection: Connection, file: Path) -> None:
    """Copy the SQLite database as a read sees it into a file, while others write (SQLite's online backup).

    The read must have begun: the copy holds its snapshot.
    """
    source = _driver(connection)
    with _translated_errors(), closing(sqlite3.connect(file)) as target:
        try:
            source.backup(target, pages=_PAGES_AT_A_TIME)
            # So that the copy is one file; the next opening sets the journal mode again.
            target.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.Error as error:
            raise DBAPIError.instance("backup", None, error, sqlite3.Error, hide_parameters=True) from error


def _sqlite_engine(url: sa.URL, busy_seconds: float) -> Engine:
    engine = sa.create_engine(
        url,
        hide_parameters=True,
        pool_size=8,
        max_overflow=8,
        connect_args={"timeout": busy_seconds, "check_same_thread": False, "isolation_level": None},
    )

    @event.listens_for(engine, "connect")
    def prepare(dbapi_connection: Any, _record: Any) -> None:
        cursor = dbapi_connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        # FULL: an answered revocation must survive a power cut.
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute("PRAGMA cache_size=-8000")
        cursor.close()
        file = Path(url.database or ":memory:")
        if file.exists() and file.stat().st_mode & 0o777 != 0o600:
            file.chmod(0o600)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if "muniment_driver" not in connection.get_execution_options():
            connection.exec_driver_sql("BEGIN")

    return engine


def _take_connection(engine: Engine, **options: Any) -> Connection:
    """Take a connection to SQLite out of the pool for good.

    For SQLAlchemy it is in one long transaction. SQLite's transactions begin and end on the driver (decision 0011).
    """
    connection = engine.connect()
    driver = connection.connection.driver_connection
    connection = connection.execution_options(muniment_driver=driver, **options)
    connection.begin()
    return connection


def _begin_writing(connection: Connection, until: float) -> None:
    """Open SQLite's write transaction as soon as no other process has one open.

    SQLite's own wait sleeps longer each time, up to 100 ms. Beside a process that writes all the time, it would hardly
    ever find the moment between two transactions of that process.
    """
    began = time.monotonic()
    while True:
        try:
            _on_driver(connection, "BEGIN IMMEDIATE")
        except DBAPIError as error:
            now = time.monotonic()
            if now > until or trouble(error) != "busy":
                raise
            time.sleep(_SHORTEST_WAIT if now - began < _SHORT_WAITS else _LONGEST_WAIT)
        else:
            return


def _on_driver(connection: Connection, sql: str, values: Mapping[str, Any] | None = None) -> Any:
    try:
        return _driver(connection).execute(sql, values or {})
    except connection.dialect.loaded_dbapi.Error as error:
        base = connection.dialect.loaded_dbapi.Error
        raise sa.exc.DBAPIError.instance(sql, None, error, base, hide_parameters=True) from error


def _driver(connection: Connection) -> Any:
    return connection.get_execution_options().get("muniment_driver") or connection.connection.driver_connection


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Turn a driver's error into Busy or Unwritable when the database is busy, gone, full or read-only."""
    try:
        yield
    except DBAPIError as error:
        kind = trouble(error)
        if kind is None:
            raise
        refusal, sentence = _ERRORS[kind]
        raise refusal(sentence) from error
    except sa.exc.TimeoutError as error:
        raise Busy("Every connection to the database is in use.") from error


_ERRORS: Mapping[Trouble, tuple[type[Busy], str]] = {
    "busy": (Busy, "The database is busy with other writes."),
    "long": (Busy, "This takes the database longer than one request may take."),
    "gone": (Busy, "The database cannot be reached at the moment."),
    "full": (Unwritable, "The database cannot be written: its disk is full."),
    "read-only": (Unwritable, "The database cannot be written: it is read-only."),
    "broken": (Unwritable, "The database cannot be written: its disk reports an error."),
}
