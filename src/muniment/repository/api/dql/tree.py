"""A DQL statement as it was read. Types and properties have the code's own names, which no setting changes.

``place`` is the character at which a part begins; refusals name it.

Source: docs/dql.md.
"""

from typing import Literal, TypeAlias

import msgspec

from muniment.repository.store.filters.tree import Operator, SortKey

Day = Literal["NOW", "TODAY", "YESTERDAY", "TOMORROW"]


class WrittenValue(msgspec.Struct, frozen=True):
    """A text in quotes, a number, a date in ISO 8601, or a truth value."""

    kind: Literal["text", "number", "date", "truth"]
    text: str


class AskingUser(msgspec.Struct, frozen=True):
    """``USER``: the id of the user who asks."""


class Moment(msgspec.Struct, frozen=True):
    """``DATE(NOW)`` and the like: now, or the beginning of a day in UTC."""

    day: Day


Operand: TypeAlias = WrittenValue | AskingUser | Moment


class PropertyComparison(msgspec.Struct, frozen=True):
    """Of several values, at least one must match."""

    name: str
    operator: Operator
    operand: Operand
    place: int


class InList(msgspec.Struct, frozen=True):
    """``IN``."""

    name: str
    operands: tuple[Operand, ...]
    place: int


class InRange(msgspec.Struct, frozen=True):
    """``BETWEEN``, both included; of several values, one must be between both."""

    name: str
    low: Operand
    high: Operand
    place: int


class LikePattern(msgspec.Struct, frozen=True):
    """``LIKE``: an empty piece stands for any run of characters, None for one, any other for itself."""

    name: str
    pieces: tuple[str | None, ...]
    place: int


class IsNull(msgspec.Struct, frozen=True):
    """``IS NULL``."""

    name: str
    place: int


class InFolder(msgspec.Struct, frozen=True):
    """The object is in this folder, or with ``descend`` also below it."""

    path: str
    folder_id: str
    descend: bool
    place: int


class Conjunction(msgspec.Struct, frozen=True):
    """All parts must match."""

    parts: tuple["Condition", ...]


class Disjunction(msgspec.Struct, frozen=True):
    """At least one part must match."""

    parts: tuple["Condition", ...]


class Negation(msgspec.Struct, frozen=True):
    """The part must not match."""

    part: "Condition"


Condition: TypeAlias = (
    PropertyComparison | InList | InRange | LikePattern | IsNull | InFolder | Conjunction | Disjunction | Negation
)


class KeywordClause(msgspec.Struct, frozen=True):
    """Keywords, joined to those before; AND binds more tightly than OR."""

    text: str
    joint: Literal["AND", "OR"] = "AND"
    negated: bool = False


class Column(msgspec.Struct, frozen=True):
    """A selected property, and the name that is shown."""

    name: str
    shown_as: str
    place: int


class Statement(msgspec.Struct, frozen=True):
    """A whole statement: its columns, its type, its conditions and its order.

    ``columns`` is None for ``*``. ``count`` is the name of the column with the number of rows, or None if the statement
    selects the rows themselves. With ``distinct``, of rows that are equal in all columns only one counts. ``fulltext``
    has the keywords of ``SEARCH DOCUMENT CONTAINS``.
    """

    type: str
    columns: tuple[Column, ...] | None = None
    count: str | None = None
    distinct: bool = False
    all_versions: bool = False
    fulltext: tuple[KeywordClause, ...] = ()
    condition: Condition | None = None
    order: tuple[SortKey, ...] = ()
