"""How SQLite means to look up what is asked: the steps of its plans."""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.db import Database


def steps(database: Database, question: Callable[[Connection], object]) -> list[tuple[str, list[str]]]:
    """Ask the question in a snapshot, and give each statement that it sends with the steps of its plan."""
    sent: list[tuple[str, Any]] = []

    def note(_cx: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        sent.append((statement, parameters))

    sa.event.listen(database.engine, "before_cursor_execute", note)
    try:
        with database.read() as cx:
            question(cx)
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", note)
    with database.read() as cx:
        return [
            (statement, [row[3] for row in cx.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)])
            for statement, parameters in sent
        ]
