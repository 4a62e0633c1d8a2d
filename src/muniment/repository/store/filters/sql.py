"""The few expressions that SQLite and PostgreSQL spell differently, so that both compare and order alike.

Properties are stored as JSON: an object of lists, in a column of text. PostgreSQL chooses the order of rows and
conditions, so no expression may fail on any row, even of another repository.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class _Spelled(FunctionElement[Any]):
    sqlite = "{0}"
    postgresql: str


@compiles(_Spelled)
def _(element: _Spelled, compiler: SQLCompiler, **options: Any) -> str:
    spelling = element.postgresql if compiler.dialect.name == "postgresql" else element.sqlite
    return spelling.format(*(compiler.process(clause, **options) for clause in element.clauses))


class first_value(_Spelled):  # noqa: N801 - SQL functions are written in lower case
    """The first value of a property in JSON, or null: ``first_value(column, name)``."""

    inherit_cache = True
    sqlite = "json_extract({0}, '$.\"' || {1} || '\"[0]')"
    postgresql = "(CAST({0} AS JSONB) -> CAST({1} AS TEXT) -> 0)"


class list_of(_Spelled):  # noqa: N801
    """All values of a property in a column of JSON, as one text: ``list_of(column, name)``, null if there is none."""

    inherit_cache = True
    type = sa.Text()
    sqlite = "json_extract({0}, '$.\"' || {1} || '\"')"
    postgresql = "CAST(CAST({0} AS JSONB) -> CAST({1} AS TEXT) AS TEXT)"


class values_of(_Spelled):  # noqa: N801
    """All values of a property, as rows: ``values_of(column, other column, name)``; the other one is read if the first
    lacks the property.
    """

    inherit_cache = True
    sqlite = "json_each(coalesce(json_extract({0}, '$.\"' || {2} || '\"'), json_extract({1}, '$.\"' || {2} || '\"')))"
    postgresql = (
        "jsonb_array_elements(coalesce(CAST({0} AS JSONB) -> CAST({2} AS TEXT), "
        "CAST({1} AS JSONB) -> CAST({2} AS TEXT)))"
    )


class as_text(_Spelled):  # noqa: N801
    """SQLite leaves the value as it is."""

    inherit_cache = True
    type = sa.Text()
    postgresql = "({0} #>> '{{}}')"


class as_whole(_Spelled):  # noqa: N801
    """A whole number from JSON.

    PostgreSQL makes null of a value that is not a number. SQLite leaves the value as it is.
    """

    inherit_cache = True
    type = sa.BigInteger()
    # NUMERIC holds every number of JSON. A number of another repository may be too large for other types.
    postgresql = "CAST(CASE WHEN jsonb_typeof({0}) = 'number' THEN {0} END AS NUMERIC)"


class as_double(_Spelled):  # noqa: N801
    """A number from JSON.

    PostgreSQL makes null of a value that is not a number. SQLite leaves the value as it is.
    """

    inherit_cache = True
    type = sa.Double()
    postgresql = "CAST(CASE WHEN jsonb_typeof({0}) = 'number' THEN {0} END AS DOUBLE PRECISION)"


class as_truth(_Spelled):  # noqa: N801
    """A truth value from JSON as 1 or 0."""

    inherit_cache = True
    type = sa.Integer()
    postgresql = "CASE {0} WHEN CAST('true' AS JSONB) THEN 1 WHEN CAST('false' AS JSONB) THEN 0 END"


class by_code_point(_Spelled):  # noqa: N801
    """A text compared by code points, whatever the database's own order is."""

    inherit_cache = True
    type = sa.Text()
    postgresql = '({0} COLLATE "C")'


class position_of(_Spelled):  # noqa: N801
    """Where a part begins in a text, from 1, or 0: ``position_of(text, part)``."""

    inherit_cache = True
    type = sa.Integer()
    sqlite = "instr({0}, {1})"
    postgresql = "strpos({0}, {1})"


class numbers_of(_Spelled):  # noqa: N801
    """The whole numbers of a list, as rows: ``numbers_of(numbers_parameter(...))``."""

    inherit_cache = True
    sqlite = "json_each({0})"
    postgresql = "(SELECT unnest(CAST({0} AS BIGINT[])) AS value)"


class _Numbers(sa.TypeDecorator[Sequence[int]]):
    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        return dialect.type_descriptor(postgresql.ARRAY(sa.BigInteger) if dialect.name == "postgresql" else sa.Text())

    def process_bind_param(self, value: Sequence[int] | None, dialect: sa.Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return msgspec.json.encode(value).decode()


def numbers_parameter(numbers: Sequence[int]) -> sa.ColumnElement[Any]:
    """Make one parameter for a list of any length."""
    return sa.literal(list(numbers), _Numbers())


def plain_folded(text: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    return sa.func.lower(by_code_point(text))


def double(number: float) -> sa.ColumnElement[float]:
    return sa.cast(sa.literal(repr(number), sa.Text()), sa.Double())
