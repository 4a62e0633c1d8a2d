"""What a question costs the database: the statements that are sent, and the rows that are fetched."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.engine.cursor import CursorFetchStrategy

from muniment.database import connections
from muniment.database.connections import Database, PreparedStatement


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
