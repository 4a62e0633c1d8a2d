"""What must an object meet?

Strings are compared folded (docs/decisions/0079). Any one value is enough; without one, a property matches only the
negation of a comparison.
"""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from muniment.repository.search.aql.patterns import Pattern
from muniment.repository.search.aql.tree import Fulltext, Value


class OneOf(msgspec.Struct, frozen=True, tag=True):
    """A property with one of these values; ``written`` strings count with their case."""

    name: str
    values: tuple[Value, ...]
    written: bool = False


class Between(msgspec.Struct, frozen=True, tag=True):
    """None means no bound; a bound is included unless it is open."""

    name: str
    low: Value | None
    high: Value | None
    low_open: bool = False
    high_open: bool = False


class Like(msgspec.Struct, frozen=True, tag=True):
    """Folded patterns match the folded string."""

    name: str
    patterns: tuple[Pattern, ...]


class HasValue(msgspec.Struct, frozen=True, tag=True):
    """A property that has a value."""

    name: str


class Carries(msgspec.Struct, frozen=True, tag=True):
    """An object with one of these ACLs, by id."""

    acls: tuple[int, ...]


class Unless(msgspec.Struct, frozen=True, tag=True):
    """An object that does not meet the condition."""

    condition: "Condition"


class ConditionSet(msgspec.Struct, frozen=True, tag=True):
    """All (AND), or at least one (OR), must be met."""

    operator: Literal["AND", "OR"]
    conditions: tuple["Condition", ...]


Single: TypeAlias = Fulltext | OneOf | Between | Like | HasValue | Carries
Condition: TypeAlias = Single | Unless | ConditionSet


def singles(condition: Condition | None) -> Iterator[Single]:
    """List all comparisons and keywords in order, negated ones too."""
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
    """Without types, the objects may be of any. Former versions are left out unless ``all_versions``. Without
    ``locale``, keywords may be of any language of the index.
    """

    types: tuple[str, ...] = ()
    condition: Condition | None = None
    locale: str = ""
    all_versions: bool = False
