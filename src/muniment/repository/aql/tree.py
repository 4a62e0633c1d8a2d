"""What does a query mean, however it was written? The query tree says so, in our neutral names.

Source: given 2.8 for the expressions; docs/aql.md, "By keywords", for the keywords. ``place`` is the place of an
expression in its document, for the sentence of a refusal.
"""

from typing import Literal, TypeAlias

import msgspec

Value: TypeAlias = str | int | float | bool
"""A value of a property. It is the text of the query; after ``bind``, it has the property's kind."""


class QueryLimits(msgspec.Struct, frozen=True):
    """How large a query may be.

    ``depth`` limits the nesting of expressions or parentheses, ``clauses`` the number of expressions, list values and
    keywords together.
    """

    depth: int = 20
    clauses: int = 1024


class Term(msgspec.Struct, frozen=True, tag=True):
    """One word, in any grammatical form; with ``prefix``, every word that begins with it.

    If punctuation splits the text into several words, they must follow each other. With ``prefix``, no word is reduced
    to its stem, and the last one matches every word that begins with it.
    """

    text: str
    prefix: bool = False


class Phrase(msgspec.Struct, frozen=True, tag=True):
    """These words in this order and in this form (no stemming)."""

    text: str


class Both(msgspec.Struct, frozen=True, tag=True):
    """All parts must match."""

    parts: tuple["Keywords", ...]


class Either(msgspec.Struct, frozen=True, tag=True):
    """At least one part must match."""

    parts: tuple["Keywords", ...]


class Without(msgspec.Struct, frozen=True, tag=True):
    """The part must not match."""

    part: "Keywords"


Keywords: TypeAlias = Term | Phrase | Both | Either | Without


class Fulltext(msgspec.Struct, frozen=True, tag=True):
    """Keywords that match an object's metadata or content. None (the text held only punctuation) matches nothing."""

    keywords: Keywords | None


class Property(msgspec.Struct, frozen=True, tag=True):
    """A property compared with one value."""

    name: str
    operator: Literal["BEGINS_WITH"]
    value: Value
    place: str = ""


class PropertyList(msgspec.Struct, frozen=True, tag=True):
    """A property that has one of these values."""

    name: str
    operator: Literal["IN"]
    values: tuple[Value, ...]
    place: str = ""


class PropertyRange(msgspec.Struct, frozen=True, tag=True):
    """A property that has a value from ``low`` to ``high``, both included."""

    name: str
    operator: Literal["BETWEEN"]
    low: Value
    high: Value
    place: str = ""


class ExpressionSet(msgspec.Struct, frozen=True, tag=True):
    """Expressions that must all match (AND), or of which at least one must match (OR)."""

    operator: Literal["AND", "OR"]
    expressions: tuple["Expression", ...]


class Carries(msgspec.Struct, frozen=True, tag=True):
    """The object carries one of the ACLs with these ids. ``bind`` makes this from a comparison with ``acl_name``."""

    acls: tuple[int, ...]


Expression: TypeAlias = Fulltext | Property | PropertyList | PropertyRange | ExpressionSet | Carries


class Query(msgspec.Struct, frozen=True, tag=True):
    """The objects of these types and their sub-types that meet the condition.

    Without types, it asks for objects of any type; without a condition, for all of them.
    """

    types: tuple[str, ...] = ()
    condition: Expression | None = None
    types_place: str = ""
