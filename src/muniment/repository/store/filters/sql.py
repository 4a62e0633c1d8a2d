"""The few expressions that SQLite and PostgreSQL spell differently, so that both compare and order alike.

Values of properties are stored as JSON: an object of lists, in a column of text. PostgreSQL chooses the order in which
it looks at rows and conditions, so no expression here may fail on any row, even a row of another repository.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class first_value(FunctionElement[Any]):  # noqa: N801 - SQL functions are written in lower case
    """The first value of a property in a column of JSON: ``first_value(column, name)``, null if there is none."""

    inherit_cache = True


class values_of(FunctionElement[Any]):  # noqa: N801
    """All values of a property, as rows: ``values_of(column, other column, name)``.

    If the first column has the property, the other one is not read.
    """

    inherit_cache = True


class as_text(FunctionElement[str]):  # noqa: N801
    """A value from JSON as a text. SQLite leaves the value as it is."""

    inherit_cache = True
    type = sa.Text()


class as_whole(FunctionElement[int]):  # noqa: N801
    """A value from JSON that is a whole number.

    PostgreSQL makes null of a value that is not a number. SQLite leaves the value as it is.
    """

    inherit_cache = True
    type = sa.BigInteger()


class as_double(FunctionElement[float]):  # noqa: N801
    """A value from JSON as a number.

    PostgreSQL makes null of a value that is not a number. SQLite leaves the value as it is.
    """

    inherit_cache = True
    type = sa.Double()


class as_truth(FunctionElement[int]):  # noqa: N801
    """A truth value from JSON as 1 or 0."""

    inherit_cache = True
    type = sa.Integer()


class by_code_point(FunctionElement[str]):  # noqa: N801
    """A text that is compared by its code points, whatever the database's own order of texts is."""

    inherit_cache = True
    type = sa.Text()


class position_of(FunctionElement[int]):  # noqa: N801
    """The place in a text at which a part begins, counted from 1: ``position_of(text, part)``. 0 if it is not there."""

    inherit_cache = True
    type = sa.Integer()


class numbers_of(FunctionElement[int]):  # noqa: N801
    """The whole numbers of a list, as rows: ``numbers_of(numbers_parameter(...))``."""

    inherit_cache = True


class _Numbers(sa.TypeDecorator[Sequence[int]]):
    """A list of whole numbers as a parameter: JSON on SQLite, an array on PostgreSQL."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        return dialect.type_descriptor(postgresql.ARRAY(sa.BigInteger) if dialect.name == "postgresql" else sa.Text())

    def process_bind_param(self, value: Sequence[int] | None, dialect: sa.Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return msgspec.json.encode(value).decode()


def numbers_parameter(numbers: Sequence[int]) -> sa.ColumnElement[Any]:
    """Make one parameter that holds a list of whole numbers. The list may have any length."""
    return sa.literal(list(numbers), _Numbers())


def plain_folded(text: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """Fold a plain text (``folding.is_plain``): only A to Z change."""
    return sa.func.lower(by_code_point(text))


def double(number: float) -> sa.ColumnElement[float]:
    """Make a parameter of a number, which the database reads as it reads numbers in JSON."""
    return sa.cast(sa.literal(repr(number), sa.Text()), sa.Double())


def _parts(element: FunctionElement[Any], compiler: SQLCompiler, options: dict[str, Any]) -> list[str]:
    return [compiler.process(clause, **options) for clause in element.clauses]


@compiles(first_value, "sqlite")
def _(element: FunctionElement[Any], compiler: SQLCompiler, **options: Any) -> str:
    column, name = _parts(element, compiler, options)
    return f"json_extract({column}, '$.\"' || {name} || '\"[0]')"


@compiles(first_value, "postgresql")
def _(element: FunctionElement[Any], compiler: SQLCompiler, **options: Any) -> str:
    column, name = _parts(element, compiler, options)
    return f"(CAST({column} AS JSONB) -> CAST({name} AS TEXT) -> 0)"


@compiles(values_of, "sqlite")
def _(element: FunctionElement[Any], compiler: SQLCompiler, **options: Any) -> str:
    first, second, name = _parts(element, compiler, options)
    path = f"'$.\"' || {name} || '\"'"
    return f"json_each(coalesce(json_extract({first}, {path}), json_extract({second}, {path})))"


@compiles(values_of, "postgresql")
def _(element: FunctionElement[Any], compiler: SQLCompiler, **options: Any) -> str:
    first, second, name = _parts(element, compiler, options)
    return (
        f"jsonb_array_elements(coalesce(CAST({first} AS JSONB) -> CAST({name} AS TEXT), "
        f"CAST({second} AS JSONB) -> CAST({name} AS TEXT)))"
    )


@compiles(numbers_of, "sqlite")
def _(element: FunctionElement[Any], compiler: SQLCompiler, **options: Any) -> str:
    return f"json_each({', '.join(_parts(element, compiler, options))})"


@compiles(numbers_of, "postgresql")
def _(element: FunctionElement[Any], compiler: SQLCompiler, **options: Any) -> str:
    return f"(SELECT unnest(CAST({', '.join(_parts(element, compiler, options))} AS BIGINT[])) AS value)"


@compiles(as_text, "sqlite")
@compiles(as_whole, "sqlite")
@compiles(as_double, "sqlite")
@compiles(as_truth, "sqlite")
@compiles(by_code_point, "sqlite")
def _(element: FunctionElement[Any], compiler: SQLCompiler, **options: Any) -> str:
    (value,) = _parts(element, compiler, options)
    return value


@compiles(as_text, "postgresql")
def _(element: FunctionElement[Any], compiler: SQLCompiler, **options: Any) -> str:
    (value,) = _parts(element, compiler, options)
    return f"({value} #>> '{{}}')"


@compiles(as_whole, "postgresql")
def _(element: FunctionElement[Any], compiler: SQLCompiler, **options: Any) -> str:
    # NUMERIC holds every number of JSON. A number of another repository may be too large for other types.
    (value,) = _parts(element, compiler, options)
    return f"CAST(CASE WHEN jsonb_typeof({value}) = 'number' THEN {value} END AS NUMERIC)"


@compiles(as_double, "postgresql")
def _(element: FunctionElement[Any], compiler: SQLCompiler, **options: Any) -> str:
    (value,) = _parts(element, compiler, options)
    return f"CAST(CASE WHEN jsonb_typeof({value}) = 'number' THEN {value} END AS DOUBLE PRECISION)"


@compiles(as_truth, "postgresql")
def _(element: FunctionElement[Any], compiler: SQLCompiler, **options: Any) -> str:
    (value,) = _parts(element, compiler, options)
    return f"CASE {value} WHEN CAST('true' AS JSONB) THEN 1 WHEN CAST('false' AS JSONB) THEN 0 END"


@compiles(by_code_point, "postgresql")
def _(element: FunctionElement[Any], compiler: SQLCompiler, **options: Any) -> str:
    (value,) = _parts(element, compiler, options)
    return f'({value} COLLATE "C")'


@compiles(position_of, "sqlite")
def _(element: FunctionElement[Any], compiler: SQLCompiler, **options: Any) -> str:
    return f"instr({', '.join(_parts(element, compiler, options))})"


@compiles(position_of, "postgresql")
def _(element: FunctionElement[Any], compiler: SQLCompiler, **options: Any) -> str:
    return f"strpos({', '.join(_parts(element, compiler, options))})"
