"""Does a query fit a repository's types? ``bind`` adds the sub-types to its types, and reads its values by kind."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, assert_never

import msgspec

from muniment.repository.aql import values
from muniment.repository.aql.tree import (
    Carries,
    Expression,
    ExpressionSet,
    Fulltext,
    Property,
    PropertyList,
    PropertyRange,
    Query,
    Value,
)
from muniment.repository.folding import fold
from muniment.repository.refusals import UnknownProperty, UnknownType, WrongValue


class Definition(Protocol):
    """The part of a property's definition that a query needs."""

    @property
    def kind(self) -> values.Kind:
        """The kind of the property's values."""


class Catalogue(Protocol):
    """The part of a repository's types that a query needs."""

    def with_subtypes(self, names: Collection[str]) -> Collection[str]:
        """Return these types with all their sub-types. Raises UnknownType."""

    def property(self, name: str) -> Definition:
        """Find a property of any type. Raises UnknownProperty."""


ACL_NAME = "acl_name"
"""The property that names an object's ACL. Its values mean different ACLs to different callers, so ids are compared."""


def bind(query: Query, catalogue: Catalogue, acls: Mapping[str, int]) -> Query:
    """Return the query with its sub-types added and its values read. Without types, it asks for objects of any type.

    ``acls`` maps the texts of ``acl_texts`` to the ids of the ACLs that they mean to the caller. A text that is missing
    there matches nothing. Raises UnknownType, UnknownProperty, WrongValue.
    """
    with _naming_place(query.types_place):
        types = () if not query.types else tuple(sorted(catalogue.with_subtypes(query.types)))
    if "sysobject" in query.types:
        types = ()
    return Query(types, None if query.condition is None else _bind(query.condition, catalogue, acls))


def acl_texts(expression: Expression | None) -> frozenset[str]:
    """List the texts by which an expression names ACLs."""
    match expression:
        case ExpressionSet():
            return frozenset().union(*map(acl_texts, expression.expressions))
        case PropertyList() if expression.name == ACL_NAME:
            return frozenset(map(str, expression.values))
        case Property() | PropertyList() | PropertyRange() | Fulltext() | Carries() | None:
            return frozenset()
        case _:
            assert_never(expression)


def _bind(expression: Expression, catalogue: Catalogue, acls: Mapping[str, int]) -> Expression:
    match expression:
        case Fulltext() | Carries():
            return expression
        case ExpressionSet():
            parts = tuple(_bind(part, catalogue, acls) for part in expression.expressions)
            return ExpressionSet(expression.operator, parts)
        case Property() | PropertyList() | PropertyRange():
            with _naming_place(expression.place):
                if expression.name == ACL_NAME:
                    return _carries(expression, acls)
                return _comparison(expression, catalogue.property(expression.name).kind)
        case _:
            assert_never(expression)


def _comparison(expression: Property | PropertyList | PropertyRange, kind: values.Kind) -> Expression:
    match expression:
        case Property():
            return _property(expression, kind)
        case PropertyList():
            new_values = tuple(_value(kind, expression.name, value) for value in expression.values)
            return msgspec.structs.replace(expression, values=new_values)
        case PropertyRange():
            return _range(expression, kind)
        case _:
            assert_never(expression)


@contextmanager
def _naming_place(place: str) -> Iterator[None]:
    """Add the expression's place in the document to the sentence of a refusal."""
    try:
        yield
    except (UnknownType, UnknownProperty, WrongValue) as refusal:
        if not place:
            raise
        raise type(refusal)(f"{refusal.sentence.rstrip('.')} ({place}).") from refusal


def _property(expression: Property, kind: values.Kind) -> Property:
    if kind not in ("string", "id"):
        raise WrongValue(f"BEGINS_WITH compares strings; the property {expression.name!r} is of kind {kind}.")
    return expression


def _range(expression: PropertyRange, kind: values.Kind) -> PropertyRange:
    if kind == "boolean":
        raise WrongValue(f"BETWEEN needs an order; the property {expression.name!r} is true or false.")
    low = _value(kind, expression.name, expression.low)
    high = _value(kind, expression.name, expression.high, end=True)
    for limit in (low, high):
        if isinstance(limit, str) and len(fold(limit)) > values.LONGEST_BOUND:
            raise WrongValue(
                f"A bound of {expression.name!r} is longer than {values.LONGEST_BOUND} characters: "
                "a range of strings is compared by its beginning."
            )
    return msgspec.structs.replace(expression, low=low, high=high)


def _value(kind: values.Kind, name: str, value: Value, end: bool = False) -> Value:
    return values.read(kind, name, value, end) if isinstance(value, str) else value


def _carries(expression: Property | PropertyList | PropertyRange, acls: Mapping[str, int]) -> Carries:
    if not isinstance(expression, PropertyList):
        raise WrongValue(f"The property {ACL_NAME!r} names an ACL: it is compared by IN alone.")
    return Carries(tuple(sorted({acls[str(value)] for value in expression.values if str(value) in acls})))
