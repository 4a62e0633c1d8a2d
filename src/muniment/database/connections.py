"""Open snapshots and write transactions of one database: SQLite, or PostgreSQL for several nodes."""

import sqlite3
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import visitors

from muniment.database.driver_errors import SENTENCES, Trouble, trouble
from muniment.database.snapshots import ANSWERED, LATER

Half = Literal["directory", "repository"]
_IDLE_READERS = 8

_SHORTEST_WAIT, _LONGEST_WAIT, _SHORT_WAITS = 0.0001, 0.005, 0.05
"""Seconds between two tries to begin a write: the shortest for ``_SHORT_WAITS`` seconds, then the longest."""

_STEPS_BETWEEN_LOOKS = 20_000
"""A read with a time limit looks at the clock after so many steps, about each half millisecond."""

_CHECKPOINT_PAGES = 4_000
"""At so many pages (of 4 KiB) of SQLite's log, a commit copies them into the database file."""

_MOST_FILLED = 32_000  # SQLite takes 32,766 parameters

_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}

directory_tables = sa.MetaData(naming_convention=_CONVENTION)

repository_tables = sa.MetaData(naming_convention=_CONVENTION)

Item = TypeVar("Item")
T = TypeVar("T")
BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""The database assigns such a key's values: SQLite does so for INTEGER only."""

required = partial(sa.Column, nullable=False)


def required_columns(kind: Any, *names: str) -> list[sa.Column[Any]]:
    """Make several required columns of one type."""
    return [required(name, kind) for name in names]


def repository_column(*, primary_key: bool = False) -> sa.Column[int]:
    """Make the column that names the repository of a row."""
    return required("repository_id", sa.ForeignKey("repositories.id"), primary_key=primary_key)


class Busy(Exception):
    """The database could not be used in time; the caller may try again."""


class TookTooLong(Busy):
    """The database stopped a statement because its time was up."""


class Unwritable(Busy):
    """The database is read-only, or its disk is full or broken (see ``driver_errors.is_undone``)."""


class KeepsConnection(Protocol):
    """Owns a connection outside of the pool."""

    def close(self) -> None:
        """Any thread may call it."""


class Database:
    """A pool of connections to one database. A process must make its own after a fork.

    ``url`` is ``sqlite:////path/file.db`` or ``postgresql+psycopg://...``. A write waits ``busy_seconds`` at most for
    other writes, on PostgreSQL a block also for a free connection.
    """

    def __init__(self, url: str, *, busy_seconds: float = 10.0) -> None:
        parsed = sa.make_url(url)
        is_sqlite = parsed.get_backend_name() == "sqlite"
        self.dialect: Literal["sqlite", "postgresql"] = "sqlite" if is_sqlite else "postgresql"
        self._writer = threading.Lock()
        self._readers: deque[Connection] = deque()
        self._owners: weakref.WeakSet[KeepsConnection] = weakref.WeakSet()
        self._write_connection: Connection | None = None
        self.busy_seconds = busy_seconds
        if self.dialect == "sqlite":
            self.engine = _sqlite_engine(parsed, busy_seconds)
        else:
            self.engine = sa.create_engine(
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
        """Open a write transaction for the block, which commits it unless it raises.

        Raises Busy when another writer is too slow or the database cannot be reached, and Unwritable.
        """
        if self.dialect == "postgresql":
            with translated_errors(), self.engine.begin() as connection:
                yield connection
            return
        batch = self.begin_batch()
        try:
            with translated_errors():
                yield batch.connection
        except BaseException as error:
            batch.roll_back(broken=isinstance(error, Unwritable))
            raise
        batch.commit()

    def begin_batch(self, *, until: float | None = None) -> "WriteBatch":
        """Raises as ``begin`` does.

        ``until`` is a moment of ``time.monotonic``; if it has passed, this does not wait.
        """
        until = time.monotonic() + self.busy_seconds if until is None else until
        if not self._writer.acquire(timeout=max(0.0, until - time.monotonic())):
            raise Busy("The database is busy with other writes.")
        try:
            with translated_errors():
                if self._write_connection is None:
                    self._write_connection = _take_connection(self.engine, muniment_write=True)
                    driver_of(self._write_connection).execute("PRAGMA busy_timeout = 0")
                _begin_writing(self._write_connection, until)
        except BaseException as error:
            self._end_writing(broken=isinstance(error, Unwritable))
            raise
        return WriteBatch(self._write_connection, self._end_writing)

    def read(
        self, *, within: float | None = None, is_over: Callable[[], bool] | None = None
    ) -> AbstractContextManager[Connection]:
        """``within``, in seconds, limits the block (SQLite) or each statement (PostgreSQL): then a statement raises
        TookTooLong.

        SQLite asks ``is_over`` instead, if given.
        """
        if self.dialect == "sqlite":
            if is_over is None and within is not None:
                until = time.monotonic() + within
                is_over = lambda: time.monotonic() > until  # noqa: E731 - shorter than a function
            return _Snapshot(self.engine, self._readers, is_over)
        return self._read_postgresql(within)

    def take_connection(self, owner: "KeepsConnection") -> Connection:
        """Open a connection without a transaction for ``owner``, who closes it, also when SQLite needs that and calls
        ``close``. Raises Busy.
        """
        with translated_errors():
            if self.dialect == "sqlite":
                connection = _take_connection(self.engine)
            else:
                connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        self._owners.add(owner)
        return connection

    def close(self) -> None:
        self._forget_readers()
        if self._write_connection is not None:
            self._write_connection.close()
            self._write_connection = None
        self.engine.dispose()

    def _end_writing(self, broken: bool) -> None:
        if broken and self._write_connection is not None:
            # A connection stays read-only if the file could not be written when it was opened. The memory that all
            # connections of a process share also stays read-only, until the last connection is closed.
            self._write_connection.invalidate()
            self._write_connection = None
            self._forget_readers()
            for owner in list(self._owners):
                owner.close()
            self.engine.dispose()
        self._writer.release()

    def _forget_readers(self) -> None:
        readers, self._readers = self._readers, deque()
        with suppress(IndexError):  # another thread may take the last connection
            while True:
                readers.pop().close()

    @contextmanager
    def _read_postgresql(self, within: float | None) -> Iterator[Connection]:
        with translated_errors(), self.engine.connect() as connection:
            connection = connection.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True, **{ANSWERED: {}}
            )
            with connection.begin():
                if within is not None:
                    connection.exec_driver_sql(f"SET LOCAL statement_timeout = {max(1, int(within * 1000))}")
                yield connection


class _Snapshot:
    """SQLAlchemy's pool would cost more than a look-up."""

    def __init__(self, engine: Engine, idle: deque[Connection], is_over: Callable[[], bool] | None) -> None:
        self._engine = engine
        self._idle = idle
        self._is_over = is_over

    def __enter__(self) -> Connection:
        try:
            self._connection = self._idle.pop()
        except IndexError:
            with translated_errors():
                self._connection = _take_connection(self._engine, **{ANSWERED: {}})
        self._driver = driver_of(self._connection)
        self._driver.execute("BEGIN")
        self._connection.get_execution_options()[ANSWERED].clear()
        if self._is_over is not None:
            self._driver.set_progress_handler(self._is_over, _STEPS_BETWEEN_LOOKS)
        return self._connection

    def __exit__(self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        failed = isinstance(error, DBAPIError)
        if self._is_over is not None:
            self._driver.set_progress_handler(None, 0)
        self._driver.rollback()
        if failed or len(self._idle) >= _IDLE_READERS:
            self._connection.close()
        else:
            self._idle.append(self._connection)
        if failed and error is not None:
            with translated_errors():
                raise error


class Outcome(NamedTuple):
    """How a decision ended: with a value or an exception."""

    value: Any
    raised: Exception | None


class WriteBatch:
    """SQLite's write transaction, in which several decisions run one by one; all are committed, or none.

    One thread may run them and another commit. ``on_end`` is called once: with True if nobody can use the connection.
    """

    def __init__(self, connection: Connection, on_end: Callable[[bool], None]) -> None:
        self.connection = connection
        self._driver = driver_of(connection)
        self._on_end = on_end
        self._broken = False

    def decide(self, decision: Callable[[Connection], Any]) -> Outcome:
        """An exception undoes its own decision only.

        It is raised here if SQLite gave up the whole transaction (the disk is full).
        """
        self._driver.execute("SAVEPOINT decision")
        try:
            with translated_errors():
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
        """Raises Busy or Unwritable (see ``driver_errors.is_undone``)."""
        try:
            with translated_errors():
                on_driver(self.connection, "COMMIT")
        except Unwritable:
            self._broken = True
            raise
        finally:
            self.roll_back()

    def roll_back(self, *, broken: bool = False) -> None:
        """With ``broken`` the connection is not used again."""
        try:
            self._driver.rollback()
        finally:
            self._on_end(broken or self._broken)


_CompiledStatement: TypeAlias = tuple[str, Mapping[str, Any], Sequence[tuple[str, Sequence[str]]]]
"""The SQL, the values that no caller gives, and the lists: each by its parameter's name, with the names of its members
in the SQL.
"""


class PreparedStatement:
    """A statement of SQLAlchemy, compiled once and run on the driver (decisions 0053, 0057).

    For what runs in nearly every request, or for each row of an import: SQLAlchemy takes several times as long as the
    database. It reads and writes integers, texts, bytes and booleans; a parameter of ``IN`` (``expanding``) takes a
    list. Raises SQLAlchemy's exceptions.
    """

    def __init__(self, statement: "sa.Select[Any] | sa.CompoundSelect[Any] | sa.Insert | sa.Update") -> None:
        self._statement = statement
        self._statements: dict[tuple[str, *tuple[int, ...]], _CompiledStatement] = {}
        columns = () if isinstance(statement, sa.Insert | sa.Update) else statement.selected_columns
        self._booleans = {at for at, column in enumerate(columns) if isinstance(column.type, sa.Boolean)}
        self._lists = sorted(
            {b.key for b in visitors.iterate(statement) if isinstance(b, sa.BindParameter) and b.expanding}
        )

    def first(self, cx: Connection, **values: Any) -> Sequence[Any] | None:
        row: Sequence[Any] | None = self._run(cx, values, methodcaller("fetchone"))
        return self._read(row) if row is not None and self._booleans else row

    def all(self, cx: Connection, **values: Any) -> list[Sequence[Any]]:
        rows: list[Sequence[Any]] = self._run(cx, values, methodcaller("fetchall"))
        return [self._read(row) for row in rows] if self._booleans else rows

    def run(self, cx: Connection, **values: Any) -> None:
        if cx.get_execution_options().get(LATER) is None:
            self._run(cx, values)
        else:
            self.run_for_each(cx, [values])

    def run_for_each(self, cx: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """No parameter may take a list."""
        later = cx.get_execution_options().get(LATER)
        if later is not None:
            later.setdefault(self, []).extend(rows)
            return
        sql, constants, _ = self._statements.get((cx.dialect.name,)) or self._compile(cx.dialect, [])
        on_driver(cx, sql, [{**constants, **row} for row in rows] if constants else rows, each=True)

    def text(self, dialect: sa.Dialect) -> str:
        """No parameter may take a list."""
        return (self._statements.get((dialect.name,)) or self._compile(dialect, []))[0]

    def _read(self, row: Sequence[Any]) -> Sequence[Any]:
        return [bool(cell) if at in self._booleans and cell is not None else cell for at, cell in enumerate(row)]

    def _run(self, cx: Connection, values: dict[str, Any], read: Callable[[Any], Any] = iter) -> Any:
        # Each length needs SQL of its own, so a list is filled up to a power of two: with NULL, which equals no value.
        lengths = [len(values[name]) for name in self._lists]
        sizes = [min(1 << (length - 1).bit_length(), max(length, _MOST_FILLED)) for length in lengths]
        sql, parameters, members = self._statements.get((cx.dialect.name, *sizes)) or self._compile(cx.dialect, sizes)
        parameters = {**parameters, **values}
        for name, members_of_list in members:
            parameters.update(zip(members_of_list, parameters.pop(name), strict=False))
        return on_driver(cx, sql, parameters, read=read)

    def _compile(self, dialect: sa.Dialect, sizes: Sequence[int]) -> _CompiledStatement:
        # The parameters have names, as in psycopg. In SQLite's default style they have positions.
        named_dialect = sqlite.dialect(paramstyle="named") if dialect.name == "sqlite" else dialect
        compiled_statement = self._statement.compile(dialect=named_dialect)
        size_of = dict(zip(self._lists, sizes, strict=True))
        lists = {name: [None] * size for name, size in size_of.items()}
        expanded_state = compiled_statement.construct_expanded_state({**compiled_statement.params, **lists})
        members = [(name, [f"{name}_{at + 1}" for at in range(size)]) for name, size in size_of.items()]
        list_members = {member: None for _, members_of_list in members for member in members_of_list}
        constants = {name: value for name, value in expanded_state.parameters.items() if value is not None}
        statement = expanded_state.statement, {**constants, **list_members}, members
        return self._statements.setdefault((dialect.name, *sizes), statement)


def portions(items: Iterable[Item], size: int = 500) -> Iterator[Sequence[Item]]:
    """A statement has a largest number of parameters."""
    every = list(items)
    return (every[begin : begin + size] for begin in range(0, len(every), size))


def copy_sqlite(connection: Connection, file: Path) -> None:
    """Copy the snapshot of ``connection``, which must have read something, while others write (SQLite's online backup).

    Raises Busy, Unwritable and SQLAlchemy's exceptions.
    """
    source = driver_of(connection)
    with translated_errors(), closing(sqlite3.connect(file)) as target:
        try:
            source.backup(target, pages=1024)
            # This makes the copy one file. Whoever opens it sets the journal mode again.
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
        # FULL: a revocation that was answered must survive a power cut.
        writing = ("journal_mode=WAL", "synchronous=FULL", f"wal_autocheckpoint={_CHECKPOINT_PAGES}")
        for pragma in (*writing, "foreign_keys=ON", "cache_size=-8000"):
            dbapi_connection.execute(f"PRAGMA {pragma}")
        file = Path(url.database or ":memory:")
        if file.exists() and file.stat().st_mode & 0o777 != 0o600:
            file.chmod(0o600)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if "muniment_driver" not in connection.get_execution_options():
            connection.exec_driver_sql("BEGIN")

    return engine


def _take_connection(engine: Engine, **options: Any) -> Connection:
    """SQLAlchemy sees one long transaction; the real ones begin and end on the driver (decisions 0052, 0057)."""
    connection = engine.connect()
    connection = connection.execution_options(muniment_driver=connection.connection.driver_connection, **options)
    connection.begin()
    return connection


def _begin_writing(connection: Connection, until: float) -> None:
    """SQLite's own wait sleeps longer each time, up to 100 ms."""
    start = time.monotonic()
    while True:
        try:
            on_driver(connection, "BEGIN IMMEDIATE")
        except DBAPIError as error:
            now = time.monotonic()
            if now > until or trouble(error) != "busy":
                raise
            time.sleep(_SHORTEST_WAIT if now - start < _SHORT_WAITS else _LONGEST_WAIT)
        else:
            return


def on_driver(
    connection: Connection, sql: str, values: Any = None, *, each: bool = False, read: Callable[[Any], Any] = iter
) -> Any:
    """With ``each``, ``values`` holds the parameters of as many runs. Raises SQLAlchemy's exceptions."""
    try:
        # No variable holds the cursor: an error's traceback would keep it, and so keep the connection open.
        if each:
            return driver_of(connection).cursor().executemany(sql, values)
        return read(driver_of(connection).execute(sql, values or {}))
    except connection.dialect.loaded_dbapi.Error as error:
        base = connection.dialect.loaded_dbapi.Error
        raise DBAPIError.instance(sql, None, error, base, hide_parameters=True) from error


def driver_of(connection: Connection) -> Any:
    return connection.get_execution_options().get("muniment_driver") or connection.connection.driver_connection


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise Busy or Unwritable for errors that ``driver_errors`` knows, and Busy if every connection is in use."""
    try:
        yield
    except DBAPIError as error:
        kind = trouble(error)
        if kind is None:
            raise
        refusal = _REFUSALS.get(kind, Unwritable)
        raise refusal(SENTENCES[kind]) from error
    except sa.exc.TimeoutError as error:
        raise Busy("Every connection to the database is in use.") from error


_REFUSALS: Mapping[Trouble, type[Busy]] = {"busy": Busy, "gone": Busy, "long": TookTooLong}
