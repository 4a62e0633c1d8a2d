"""A filter and a sort as they were read: which members of a list are wanted, and in which order."""

from typing import Literal, TypeAlias

import msgspec

Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">=", "starts-with", "contains"]


class LiteralValue(msgspec.Struct, frozen=True):
    """A value that stands in a filter. ``text`` is without quotes, and without ``date(...)`` around it."""

    kind: Literal["text", "number", "date", "truth"]
    text: str


class Comparison(msgspec.Struct, frozen=True):
    """A property compared with a value. Of a property with several values, at least one must match."""

    name: str
    operator: Operator
    literal: LiteralValue
    place: int


class HasOneOf(msgspec.Struct, frozen=True):
    """A property that has one of these values. Only DQL has this test."""

    name: str
    literals: tuple[LiteralValue, ...]
    place: int


class LiesBetween(msgspec.Struct, frozen=True):
    """A property with a value between two others, both included. Of several values, one must be between both.

    Only DQL has this test.
    """

    name: str
    low: LiteralValue
    high: LiteralValue
    place: int


class FitsPattern(msgspec.Struct, frozen=True):
    """A property whose text consists of these pieces. Only DQL has this test.

    A piece that is a text stands for itself, an empty text for any run of characters, and None for exactly one
    character.
    """

    name: str
    pieces: tuple[str | None, ...]
    place: int


class HasNoValue(msgspec.Struct, frozen=True):
    """The test that a property has no value. Only DQL has it."""

    name: str
    place: int


class AllOf(msgspec.Struct, frozen=True):
    """All parts must match."""

    parts: tuple["Filter", ...]


class AnyOf(msgspec.Struct, frozen=True):
    """At least one part must match."""

    parts: tuple["Filter", ...]


class Not(msgspec.Struct, frozen=True):
    """The part must not match."""

    part: "Filter"


PropertyTest: TypeAlias = Comparison | HasOneOf | LiesBetween | FitsPattern | HasNoValue
"""A condition for one property."""

Filter: TypeAlias = PropertyTest | AllOf | AnyOf | Not


class SortKey(msgspec.Struct, frozen=True):
    """A property to sort by. ``folded``: texts are ordered without case. ``place`` says where the sort names it."""

    name: str
    descending: bool
    folded: bool
    place: str


class Selection(msgspec.Struct, frozen=True):
    """Which members of a list are wanted, and in which order.

    Without a filter, all members are wanted. Without a sort, they come in the list's own order. ``text`` is the
    selection as its caller wrote it: cursors are bound to it.
    """

    filter: Filter | None = None
    sort: tuple[SortKey, ...] = ()
    text: str = ""


EVERYTHING = Selection()
"""All members of a list, in its own order."""
