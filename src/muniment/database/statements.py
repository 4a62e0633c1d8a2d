"""What SQLAlchemy would have each room write for either database, and the count of some rows."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Connection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from muniment.database.connections import PreparedStatement

upsert = postgresql.insert
"""An insert that may meet a row. It is compiled for SQLite, too, which spells ``ON CONFLICT`` as PostgreSQL does."""

_LAST_KEY = PreparedStatement(
    sa.select(sa.column("seq", sa.Integer))
    .select_from(sa.table("sqlite_sequence"))
    .where(sa.column("name") == sa.bindparam("table"))
)
_NEXT_KEYS = sa.text("SELECT nextval(pg_get_serial_sequence(:table, :column)) FROM generate_series(1, :count)")


def folded_text(length: int) -> sa.types.TypeEngine[str]:
    """Text in the order of its code points on either database: what begins with a text is one range of an index."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def next_keys(cx: Connection, key: sa.Column[int], count: int = 1) -> Sequence[int]:
    """Take the next keys of a table for rows that this transaction inserts next."""
    if cx.dialect.name == "postgresql":
        return cx.scalars(_NEXT_KEYS, {"table": key.table.name, "column": key.name, "count": count}).all()
    # SQLite has one writer at a time, and the insert moves the sequence on.
    row = _LAST_KEY.first(cx, table=key.table.name)
    first = row[0] + 1 if row else 1
    return range(first, first + count)


def count_where(cx: Connection, *where: sa.ColumnElement[bool]) -> int:
    """Count the rows that meet these conditions."""
    return cx.execute(sa.select(sa.func.count()).where(*where)).scalar_one()


class without_index(FunctionElement[Any]):  # noqa: N801 - SQL functions are written in lower case
    """A column by which SQLite looks no rows up: ``without_index(column) == value``.

    Without statistics, SQLite expects ten rows of any value, and would read a whole repository for what lies in one
    folder (decision 0122). PostgreSQL counts. The value has to be of the column's own type.
    """

    inherit_cache = True

    def __init__(self, column: sa.ColumnElement[Any]) -> None:
        super().__init__(column)
        self.type = column.type


@compiles(without_index)
def _(element: without_index, compiler: SQLCompiler, **options: Any) -> str:
    (column,) = (compiler.process(clause, **options) for clause in element.clauses)
    return column if compiler.dialect.name == "postgresql" else f"+{column}"


class one_of_few(FunctionElement[bool]):  # noqa: N801 - SQL functions are written in lower case
    """A number is one of those that a query gives: ``one_of_few(number, query.scalar_subquery())``.

    PostgreSQL looks each up by an index. From a recursive query it would otherwise expect so many that it reads a large
    table instead.
    """

    inherit_cache = True
    type = sa.Boolean()

    def self_group(self, against: Any = None) -> Any:  # noqa: ARG002
        """It is a condition on either database, not a number."""
        return self


@compiles(one_of_few)
def _(element: one_of_few, compiler: SQLCompiler, **options: Any) -> str:
    number, query = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{number} = ANY (ARRAY{query})" if compiler.dialect.name == "postgresql" else f"{number} IN {query}"
