"""How the database means to look up what is asked: the steps of its plans."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database import connections
from muniment.database.connections import Database


def steps(
    database: Database, question: Callable[[Connection], object], *, writes: bool = False
) -> list[tuple[str, list[str]]]:
    """Ask the question in a snapshot, or in a transaction that writes, and give each statement that it sends with the
    steps of its plan."""
    with sent_to(database) as sent, database.begin() if writes else database.read() as cx:
        question(cx)
    explain, column = ("EXPLAIN QUERY PLAN", 3) if database.dialect == "sqlite" else ("EXPLAIN", 0)
    with database.begin() as cx:  # PostgreSQL plans a lock only where it may write
        return [
            (statement, [row[column] for row in cx.exec_driver_sql(f"{explain} {statement}", parameters)])
            for statement, parameters in sent
        ]


def work(database: Database, question: Callable[[Connection], object], *, writes: bool = False) -> int:
    """Ask the question in a snapshot, or on SQLite in a transaction that writes, and count what the database does.

    On SQLite these are the steps of its machine, on PostgreSQL the rows that the nodes of the plans give or throw away.
    """
    if database.dialect == "postgresql":
        return sum(_rows(plan) for plan in _analysed(database, question))
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    with database.begin() if writes else database.read() as cx:
        driver = cx.get_execution_options()["muniment_driver"]
        driver.set_progress_handler(step, 1)
        try:
            question(cx)
        finally:
            driver.set_progress_handler(None, 1)
    return count


def cost(database: Database, request: Callable[[], object]) -> tuple[int, int]:
    """Send a request that reads, and count its statements, and what the database does for them (as ``work``).

    PostgreSQL plans as if every table were large.
    """
    with sent_to() as sent:
        request()
    if database.dialect == "postgresql":
        return len(sent), sum(_rows(plan) for plan in _explained(database, sent, _AS_IF_LARGE))

    def again(cx: Connection) -> None:
        for statement, parameters in sent:
            cx.exec_driver_sql(statement, parameters).all()

    with database.read() as cx:
        again(cx)  # SQLite reads its schema anew if that has changed
    return len(sent), work(database, again)


_AS_IF_LARGE = tuple(f"SET LOCAL enable_{way} = off" for way in ("seqscan", "hashjoin", "mergejoin", "bitmapscan"))
_AS_IF_LARGE += ("SET LOCAL jit = off",)  # which begins at what a forbidden way would cost


@contextmanager
def sent_to(database: Database | None = None) -> Iterator[list[tuple[str, Any]]]:
    """List the statements that are sent to this database, or to any, prepared ones too, with their parameters."""
    sent: list[tuple[str, Any]] = []
    on_driver = connections.on_driver

    def note(_cx: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        sent.append((statement, parameters))

    def note_prepared(cx: Connection, sql: str, values: Any = None, **how: Any) -> Any:
        if values is not None and (database is None or cx.engine is database.engine):
            sent.append((sql, values))
        return on_driver(cx, sql, values, **how)

    engine = sa.Engine if database is None else database.engine
    sa.event.listen(engine, "before_cursor_execute", note)
    connections.on_driver = note_prepared  # type: ignore[assignment]
    try:
        yield sent
    finally:
        connections.on_driver = on_driver
        sa.event.remove(engine, "before_cursor_execute", note)


def _analysed(database: Database, question: Callable[[Connection], object]) -> list[dict[str, Any]]:
    with sent_to(database) as sent, database.read() as cx:
        question(cx)
    return _explained(database, sent)


def _explained(database: Database, sent: list[tuple[str, Any]], settings: Sequence[str] = ()) -> list[dict[str, Any]]:
    with database.begin() as cx:
        for setting in settings:
            cx.exec_driver_sql(setting)
        explain = "EXPLAIN (ANALYZE, FORMAT JSON)"
        answers = [
            cx.exec_driver_sql(f"{explain} {statement}", parameters).scalar_one() for statement, parameters in sent
        ]
    return [answer[0]["Plan"] for answer in answers]


def _rows(node: dict[str, Any]) -> int:
    own = node["Actual Rows"] + sum(count for name, count in node.items() if name.startswith("Rows Removed"))
    return int(own * node["Actual Loops"]) + sum(_rows(below) for below in node.get("Plans", ()))
