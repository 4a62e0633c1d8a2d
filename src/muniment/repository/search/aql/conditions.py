"""What must an object meet?

Strings are compared by their folded forms (docs/decisions/0079). A comparison matches if any one value of the property
does. A property without a value matches only the negation of a comparison.
"""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from muniment.repository.search.aql.patterns import Pattern
from muniment.repository.search.aql.tree import Fulltext, Value


class OneOf(msgspec.Struct, frozen=True, tag=True):
    """A property that has one of these values. With ``written``, strings are compared as written, with their case."""

    name: str
    values: tuple[Value, ...]
    written: bool = False


class Between(msgspec.Struct, frozen=True, tag=True):
    """A property with a value between two bounds. A bound is included unless it is open; None means no bound."""

    name: str
    low: Value | None
    high: Value | None
    low_open: bool = False
    high_open: bool = False


class Like(msgspec.Struct, frozen=True, tag=True):
    """A property with a string whose folded form matches one of these folded patterns."""

    name: str
    patterns: tuple[Pattern, ...]


class HasValue(msgspec.Struct, frozen=True, tag=True):
    """A property that has a value."""

    name: str


class Carries(msgspec.Struct, frozen=True, tag=True):
    """An object that carries one of the ACLs with these ids."""

    acls: tuple[int, ...]


class Unless(msgspec.Struct, frozen=True, tag=True):
    """An object that does not meet the condition."""

    condition: "Condition"


class ConditionSet(msgspec.Struct, frozen=True, tag=True):
    """Conditions that must all be met (AND), or of which at least one must be met (OR)."""

    operator: Literal["AND", "OR"]
    conditions: tuple["Condition", ...]


Single: TypeAlias = Fulltext | OneOf | Between | Like | HasValue | Carries
Condition: TypeAlias = Single | Unless | ConditionSet


def singles(condition: Condition | None) -> Iterator[Single]:
    """List the comparisons and the keywords of a condition in their order, those that must not be met too."""
    match condition:
        case ConditionSet():
            for part in condition.conditions:
                yield from singles(part)
        case Unless():
            yield from singles(condition.condition)
        case None:
            return
        case _:
            yield condition


class BoundQuery(msgspec.Struct, frozen=True):
    """The objects of these types that meet the condition; without types, objects of any type.

    Former versions are left out unless ``all_versions`` is set. ``locale`` names the language of the keywords. Without
    it, they may be of any language of the index.
    """

    types: tuple[str, ...] = ()
    condition: Condition | None = None
    locale: str = ""
    all_versions: bool = False
