"""A filter and a sort as they were read."""

from typing import Literal, TypeAlias

import msgspec

Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">=", "starts-with", "contains"]


class LiteralValue(msgspec.Struct, frozen=True):
    """``text`` is without quotes, and without ``date(...)`` around it."""

    kind: Literal["text", "number", "date", "truth"]
    text: str


class Comparison(msgspec.Struct, frozen=True):
    """Of several values, at least one must match."""

    name: str
    operator: Operator
    literal: LiteralValue
    place: int


class HasOneOf(msgspec.Struct, frozen=True):
    """Only DQL has this test."""

    name: str
    literals: tuple[LiteralValue, ...]
    place: int


class LiesBetween(msgspec.Struct, frozen=True):
    """Both ends count; of several values, one must be between both. Only DQL has this test."""

    name: str
    low: LiteralValue
    high: LiteralValue
    place: int


class FitsPattern(msgspec.Struct, frozen=True):
    """Only DQL has this test.

    A piece that is a text stands for itself, an empty text for any run of characters, and None for exactly one
    character.
    """

    name: str
    pieces: tuple[str | None, ...]
    place: int


class HasNoValue(msgspec.Struct, frozen=True):
    """Only DQL has this test."""

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

Filter: TypeAlias = PropertyTest | AllOf | AnyOf | Not


class SortKey(msgspec.Struct, frozen=True):
    """``folded``: texts are ordered without case. ``place`` says where the sort names it."""

    name: str
    descending: bool
    folded: bool
    place: str


class Selection(msgspec.Struct, frozen=True):
    """Without a filter, all members are wanted; without a sort, the list's own order.

    ``text`` is the selection as its caller wrote it: cursors are bound to it.
    """

    filter: Filter | None = None
    sort: tuple[SortKey, ...] = ()
    text: str = ""


EVERYTHING = Selection()
