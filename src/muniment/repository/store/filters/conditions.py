"""Compile a filter to a condition in SQL. Every value is a parameter. No condition evaluates to NULL, so ``NOT``
selects exactly the other rows.
"""

import math
import re
from collections.abc import Callable
from typing import Any, assert_never

import sqlalchemy as sa

from muniment.ground.clock import Instant, read_timestamp
from muniment.ground.naming import is_storable
from muniment.repository.folding import COMPARED
from muniment.repository.refusals import UnknownProperty, WrongValue
from muniment.repository.store.filters import sql
from muniment.repository.store.filters.listed import ListedProperty, PropertiesOf, Test
from muniment.repository.store.filters.tree import (
    AllOf,
    AnyOf,
    Comparison,
    Filter,
    FitsPattern,
    HasNoValue,
    HasOneOf,
    LiesBetween,
    LiteralValue,
    Not,
    PropertyTest,
)

_MILLISECOND: Instant = 1000
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,4})?")
_TRUTHS = {"true": 1, "t": 1, "1": 1, "false": 0, "f": 0, "0": 0}

_LIKE_PIECES: dict[str | None, str] = {None: "_", "": "%"}
_LIKE_MARKS = re.compile(r"[\\%_]")

_TESTS: dict[str, Callable[[Any, Any], sa.ColumnElement[bool]]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def condition(filter_tree: Filter | None, properties: PropertiesOf) -> sa.ColumnElement[bool]:
    """Raises UnknownProperty, WrongValue, with the place in the filter."""
    match filter_tree:
        case None:
            return sa.true()
        case AllOf(parts):
            return sa.and_(*(condition(part, properties) for part in parts))
        case AnyOf(parts):
            return sa.or_(*(condition(part, properties) for part in parts))
        case Not(part):
            return sa.not_(condition(part, properties))
    try:
        return _test(filter_tree, properties(filter_tree.name))
    except (UnknownProperty, WrongValue) as refusal:
        raise type(refusal)(f"{refusal.sentence.rstrip('.')} (character {filter_tree.place}).") from refusal


def comparisons(filter_tree: Filter | None) -> int:
    match filter_tree:
        case None:
            return 0
        case AllOf(parts) | AnyOf(parts):
            return sum(map(comparisons, parts))
        case Not(part):
            return comparisons(part)
        case _:
            return 1


def _test(test: PropertyTest, listed_property: ListedProperty) -> sa.ColumnElement[bool]:
    match test:
        case Comparison():
            return _comparison(test, listed_property)
        case HasOneOf():
            return _one_of(test, listed_property)
        case LiesBetween():
            return _between(test, listed_property)
        case FitsPattern():
            return _like(test, listed_property)
        case HasNoValue():
            return _missing(test, listed_property)
        case _:
            assert_never(test)


def _comparison(comparison: Comparison, listed_property: ListedProperty) -> sa.ColumnElement[bool]:
    if listed_property.names is not None and comparison.operator not in ("starts-with", "contains"):
        return _naming(comparison, listed_property.names)
    return listed_property.match(_test_of_value(comparison, listed_property))


def _test_of_value(comparison: Comparison, listed_property: ListedProperty) -> Test:
    if listed_property.kind in ("string", "id"):
        return _text_test(comparison, listed_property)
    if comparison.operator in ("starts-with", "contains"):
        raise WrongValue(
            f"{comparison.operator} is for texts; the property {comparison.name!r} is of kind {listed_property.kind}."
        )
    if listed_property.kind == "date":
        return _date_test(comparison)
    if listed_property.kind == "boolean" and comparison.operator not in ("=", "!="):
        raise WrongValue(f"The property {comparison.name!r} is true or false: it can be compared only by = and !=.")
    number, test = _number(comparison, listed_property.kind), _TESTS[comparison.operator]
    return lambda value: test(value, number)


def _between(test: LiesBetween, listed_property: ListedProperty) -> sa.ColumnElement[bool]:
    low, high = Comparison(test.name, ">=", test.low, test.place), Comparison(test.name, "<=", test.high, test.place)
    if listed_property.names is not None:
        return sa.and_(*(_naming(comparison, listed_property.names) for comparison in (low, high)))
    above, below = (_test_of_value(comparison, listed_property) for comparison in (low, high))
    return listed_property.match(lambda value: sa.and_(above(value), below(value)))


def _one_of(test: HasOneOf, listed_property: ListedProperty) -> sa.ColumnElement[bool]:
    comparisons = [Comparison(test.name, "=", literal, test.place) for literal in test.literals]
    if listed_property.kind not in ("string", "id") or listed_property.names is not None:
        return sa.or_(*(_comparison(comparison, listed_property) for comparison in comparisons))
    texts = [listed_property.fold(_text(comparison)) for comparison in comparisons]
    return listed_property.match(lambda value: sql.by_code_point(value).in_(texts))


def _like(test: FitsPattern, listed_property: ListedProperty) -> sa.ColumnElement[bool]:
    if listed_property.kind not in ("string", "id"):
        raise WrongValue(f"LIKE is for texts; the property {test.name!r} is not a text.")
    pieces = [piece and listed_property.fold(piece) for piece in test.pieces]
    pattern = "".join(_LIKE_PIECES.get(piece) or _LIKE_MARKS.sub(r"\\\g<0>", piece or "") for piece in pieces)
    if not is_storable(pattern):
        raise WrongValue(f"The pattern of {test.name!r} holds a character that is no Unicode text.")
    if sum(1 if piece is None else len(piece) for piece in pieces) > COMPARED:
        return sa.false()  # No value is so long. SQLite fails if a pattern is much longer.
    return listed_property.match(lambda value: sql.by_code_point(value).like(pattern, escape="\\"))


def _missing(test: HasNoValue, listed_property: ListedProperty) -> sa.ColumnElement[bool]:
    if listed_property.names is not None:
        raise WrongValue(f"The property {test.name!r} always has a value.")
    return sa.not_(listed_property.match(lambda value: value.is_not(None)))


def _naming(comparison: Comparison, names: Callable[[str], sa.ColumnElement[bool]]) -> sa.ColumnElement[bool]:
    if comparison.operator not in ("=", "!="):
        raise WrongValue(f"The property {comparison.name!r} can be compared only by = and != and by patterns.")
    object_names = names(_text(comparison))
    return object_names if comparison.operator == "=" else sa.not_(object_names)


def _text_test(comparison: Comparison, listed_property: ListedProperty) -> Test:
    text = listed_property.fold(_text(comparison))
    if comparison.operator == "starts-with":
        return lambda value: sa.func.substr(value, 1, len(text)) == text
    if comparison.operator == "contains":
        return lambda value: sql.position_of(value, sa.literal(text, sa.Text())) > 0
    test = _TESTS[comparison.operator]
    return lambda value: test(sql.by_code_point(value), text)


def _date_test(comparison: Comparison) -> Test:
    begin = _instant(comparison)
    end = begin + _MILLISECOND
    match comparison.operator:
        case "<":
            return lambda value: value < begin
        case "<=":
            return lambda value: value < end
        case ">":
            return lambda value: value >= end
        case ">=":
            return lambda value: value >= begin
        case "=":
            return lambda value: sa.and_(value >= begin, value < end)
        case _:
            return lambda value: sa.or_(value < begin, value >= end)


def _text(comparison: Comparison) -> str:
    text = comparison.literal.text
    if comparison.literal.kind != "text":
        raise _wrong(comparison, "a text in quotes")
    if not is_storable(text):
        raise WrongValue(
            f"The text that {comparison.name!r} is compared with holds a character that is no Unicode text."
        )
    return text


def _instant(comparison: Comparison) -> Instant:
    if comparison.literal.kind in ("text", "date"):
        try:
            moment = read_timestamp(comparison.literal.text)
        except ValueError:
            pass
        else:
            return moment - moment % _MILLISECOND
    raise _wrong(comparison, "a date as ISO 8601 writes it")


def _number(comparison: Comparison, kind: str) -> Any:
    literal, text = comparison.literal, comparison.literal.text.strip()
    if kind == "boolean":
        if literal.kind == "date" or text.lower() not in _TRUTHS:
            raise _wrong(comparison, "true or false")
        return _TRUTHS[text.lower()]
    if kind == "integer":
        whole = int(text) if _is_number(literal) and _WHOLE.fullmatch(text) else None
        if whole is None or not -(2**63) <= whole < 2**63:
            raise _wrong(comparison, "a whole number of 64 bits")
        return whole
    number = float(text) if _is_number(literal) and _NUMBER.fullmatch(text) else math.inf
    if not math.isfinite(number):
        raise _wrong(comparison, "a number")
    return sql.double(number)


def _is_number(literal: LiteralValue) -> bool:
    return literal.kind in ("number", "text")


def _wrong(comparison: Comparison, expected: str) -> WrongValue:
    return WrongValue(
        f"The property {comparison.name!r} is compared with {expected}, not with {comparison.literal.text[:60]!r}."
    )
