"""The check of a query against the catalogue: types spelled out with their sub-types, values read by kind."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

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
from muniment.repository.refusals import UnknownProperty, UnknownType, WrongValue


class Definition(Protocol):
    """What a query needs to know of a property."""

    @property
    def kind(self) -> values.Kind:
        """What the property's values are."""


class Catalogue(Protocol):
    """What a query needs to know of a repository's types."""

    def with_subtypes(self, names: Collection[str]) -> Collection[str]:
        """Name these types and all below them. Raises UnknownType."""

    def property(self, name: str) -> Definition:
        """Find a property of any type. Raises UnknownProperty."""


ACL_NAME = "acl_name"
"""The property that calls an object's ACL as its caller would: no text of the index says that."""


def bind(query: Query, catalogue: Catalogue, acls: Mapping[str, int]) -> Query:
    """Spell the types out and read the values. A query of no type, or of ``sysobject``, asks for every type.

    ``acls`` says which ACLs the texts of ``acl_texts`` mean to the caller; one that is not there is met by nothing.
    Raises UnknownType, UnknownProperty, WrongValue.
    """
    with _placed(query.types_place):
        types = () if not query.types else tuple(sorted(catalogue.with_subtypes(query.types)))
    if "sysobject" in query.types:
        types = ()
    return Query(types, None if query.condition is None else _bound(query.condition, catalogue, acls))


def acl_texts(expression: Expression | None) -> frozenset[str]:
    """List what an expression calls ACLs by."""
    if isinstance(expression, ExpressionSet):
        return frozenset().union(*map(acl_texts, expression.expressions))
    if isinstance(expression, PropertyList) and expression.name == ACL_NAME:
        return frozenset(map(str, expression.values))
    return frozenset()


def _bound(expression: Expression, catalogue: Catalogue, acls: Mapping[str, int]) -> Expression:
    if isinstance(expression, Fulltext | Carries):
        return expression
    if isinstance(expression, ExpressionSet):
        parts = tuple(_bound(part, catalogue, acls) for part in expression.expressions)
        return ExpressionSet(expression.operator, parts)
    with _placed(expression.place):
        if expression.name == ACL_NAME:
            return _carries(expression, acls)
        kind = catalogue.property(expression.name).kind
        if isinstance(expression, Property):
            return _property(expression, kind)
        if isinstance(expression, PropertyList):
            read = tuple(_value(kind, expression.name, value) for value in expression.values)
            return msgspec.structs.replace(expression, values=read)
        return _range(expression, kind)


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """Say in a refusal where the document has what it is about."""
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
    for bound in (low, high):
        if isinstance(bound, str) and len(values.fold(bound)) > values.LONGEST_BOUND:
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
