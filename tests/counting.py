"""What a question costs the database: the statements that are sent, and the rows that are fetched. And what a request
costs in all.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
import tantivy
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.engine.cursor import CursorFetchStrategy

from muniment.database import connections
from muniment.database.connections import Database, PreparedStatement

T = TypeVar("T")

_STATEMENTS = {"execute", "executemany", "executescript"}
_ENGINE = tuple(f"{name}." for name, kind in vars(tantivy).items() if isinstance(kind, type))

_CARRIERS = (
    "<frozen importlib",
    *(f"{os.sep}{name}" for name in ("asyncio", "concurrent", "selectors.", "threading.", "httpx", "tests")),
)
"""What carries a request from the test to the application: how often it looks depends on who comes first, and the
client imports what it lacks each time.
"""

_INLINED = {"<listcomp>", "<dictcomp>", "<setcomp>"}
"""From Python 3.12 on, these are no calls."""


class Work(NamedTuple):
    """What a request takes: the functions of Python and of the engine that are called, and of SQLite the statements
    (the ends of transactions are none) and the rows.
    """

    python: int
    engine: int
    statements: int
    rows: int


class WorkCounter:
    """Counts what threads do that have begun since ``threading.setprofile``."""

    def __init__(self) -> None:
        self._python = self._engine = self._statements = self._rows = 0

    def of(self, ask: Callable[[], T]) -> tuple[T, Work]:
        """Ask, and count what it takes."""
        self._python = self._engine = self._statements = self._rows = 0
        return ask(), Work(self._python, self._engine, self._statements, self._rows)

    def profile(self, frame: FrameType, event: str, called: Any) -> None:
        """Note a call."""
        if event == "call":
            self._python += _counts(frame.f_code)
        elif event == "c_call":
            owner = getattr(called, "__self__", None)
            module = type(owner).__module__
            if module == "sqlite3":
                self._statements += called.__name__ in _STATEMENTS
            elif module.startswith("tantivy") or (owner is None and called.__qualname__.startswith(_ENGINE)):
                self._engine += 1

    def row(self, _cursor: Any, row: Any) -> Any:
        """Note a row."""
        self._rows += 1
        return row

    def connect(self, driver: Any, _record: Any) -> None:
        """Count the rows of a new connection to SQLite."""
        driver.row_factory = self.row


@cache
def _counts(code: CodeType) -> bool:
    return code.co_name not in _INLINED and not any(part in code.co_filename for part in _CARRIERS)


@contextmanager
def work() -> Iterator[WorkCounter]:
    """Count what is done by threads that begin in the block, with databases that are opened there."""
    counter, before = WorkCounter(), threading.getprofile()
    threading.setprofile(counter.profile)
    sa.event.listen(Engine, "connect", counter.connect)
    try:
        yield counter
    finally:
        sa.event.remove(Engine, "connect", counter.connect)
        threading.setprofile(before)


@dataclass
class Cost:
    """The statements, and how many rows came back for all of them."""

    statements: list[str] = field(default_factory=list)
    rows: int = 0

    @property
    def counts(self) -> tuple[list[str], int]:
        """Both, to be compared."""
        return self.statements, self.rows


@contextmanager
def cost(database: Database) -> Iterator[Cost]:
    """Count what is sent to this database and all rows fetched meanwhile, until the block ends."""
    counted = Cost()

    def note(_cx: Any, _cursor: Any, statement: str, *_about: Any) -> None:
        counted.statements.append(statement)

    on_driver, every, first = connections.on_driver, PreparedStatement.all, PreparedStatement.first

    def note_prepared(cx: Connection, sql: str, values: Any = None, **how: Any) -> Any:
        if values is not None and cx.engine is database.engine:
            counted.statements.append(sql)
        return on_driver(cx, sql, values, **how)

    def every_row(self: PreparedStatement, cx: Connection, **values: Any) -> Any:
        rows = every(self, cx, **values)
        counted.rows += len(rows)
        return rows

    def first_row(self: PreparedStatement, cx: Connection, **values: Any) -> Any:
        row = first(self, cx, **values)
        counted.rows += row is not None
        return row

    fetchall, fetchone = CursorFetchStrategy.fetchall, CursorFetchStrategy.fetchone

    def all_rows(self: Any, *about: Any) -> Any:
        rows = fetchall(self, *about)
        counted.rows += len(rows)
        return rows

    def one_row(self: Any, *about: Any, **options: Any) -> Any:
        row = fetchone(self, *about, **options)
        counted.rows += row is not None
        return row

    sa.event.listen(database.engine, "before_cursor_execute", note)
    CursorFetchStrategy.fetchall, CursorFetchStrategy.fetchone = all_rows, one_row  # type: ignore[method-assign, assignment]
    connections.on_driver, PreparedStatement.all, PreparedStatement.first = note_prepared, every_row, first_row  # type: ignore[method-assign, assignment]
    try:
        yield counted
    finally:
        CursorFetchStrategy.fetchall, CursorFetchStrategy.fetchone = fetchall, fetchone  # type: ignore[method-assign]
        connections.on_driver, PreparedStatement.all, PreparedStatement.first = on_driver, every, first  # type: ignore[method-assign]
        sa.event.remove(database.engine, "before_cursor_execute", note)
