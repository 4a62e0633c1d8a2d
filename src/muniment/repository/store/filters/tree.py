"""A filter and a sort as they were read. They are written as JSON to a directory elsewhere."""

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">=", "starts-with", "contains"]


class LiteralValue(msgspec.Struct, frozen=True):
    """``text`` is without quotes, and without ``date(...)`` around it."""

    kind: Literal["text", "number", "date", "truth"]
    text: str


class Comparison(msgspec.Struct, frozen=True, tag=True):
    """Of several values, at least one must match."""

    name: str
    operator: Operator
    literal: LiteralValue
    place: int


class HasOneOf(msgspec.Struct, frozen=True, tag=True):
    """Only DQL has this test."""

    name: str
    literals: tuple[LiteralValue, ...]
    place: int


class LiesBetween(msgspec.Struct, frozen=True, tag=True):
    """Both ends count; of several values, one must be between both. Only DQL has this test."""

    name: str
    low: LiteralValue
    high: LiteralValue
    place: int


class FitsPattern(msgspec.Struct, frozen=True, tag=True):
    """Only DQL has this test.

    A piece that is a text stands for itself, an empty text for any run of characters, and None for exactly one
    character.
    """

    name: str
    pieces: tuple[str | None, ...]
    place: int


class HasNoValue(msgspec.Struct, frozen=True, tag=True):
    """Only DQL has this test."""

    name: str
    place: int


class AllOf(msgspec.Struct, frozen=True, tag=True):
    """All parts must match."""

    parts: tuple["Filter", ...]


class AnyOf(msgspec.Struct, frozen=True, tag=True):
    """At least one part must match."""

    parts: tuple["Filter", ...]


class Not(msgspec.Struct, frozen=True, tag=True):
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
    """Which members of a list are wanted, and in which order.

    Without a filter, all members are wanted. Without a sort, they come in the list's own order. ``text`` is the
    selection as its caller wrote it: cursors are bound to it. Of the members that have equal values of all ``distinct``
    properties, only the first one is wanted; only DQL asks for that.
    """

    filter: Filter | None = None
    sort: tuple[SortKey, ...] = ()
    text: str = ""
    distinct: tuple[str, ...] = ()


EVERYTHING = Selection()


def with_texts(selection: Selection, change: Callable[[str, str], str]) -> Selection:
    """Replace the texts to which properties must be equal. ``change`` gets a property's name and such a text."""

    def literal(name: str, of: LiteralValue) -> LiteralValue:
        return LiteralValue("text", change(name, of.text)) if of.kind == "text" else of

    def changed(part: Filter) -> Filter:
        match part:
            case Comparison(operator="=" | "!="):
                return msgspec.structs.replace(part, literal=literal(part.name, part.literal))
            case HasOneOf():
                return msgspec.structs.replace(part, literals=tuple(literal(part.name, each) for each in part.literals))
            case AllOf() | AnyOf():
                return msgspec.structs.replace(part, parts=tuple(map(changed, part.parts)))
            case Not():
                return Not(changed(part.part))
            case _:
                return part

    return msgspec.structs.replace(selection, filter=None if selection.filter is None else changed(selection.filter))
