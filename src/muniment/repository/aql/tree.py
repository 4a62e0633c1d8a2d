"""The query tree: the meaning of a query, independent of how it was written. Its names are our neutral ones.

Source: given 2.8 for the expressions, the simple keyword language for the keywords. ``place`` is the place of an
expression in its document, for the sentence of a refusal.
"""

from typing import Literal, TypeAlias

import msgspec

Value: TypeAlias = str | int | float | bool
"""A property's value: text as written, or after ``bind`` the value of the property's kind."""


class QueryLimits(msgspec.Struct, frozen=True):
    """How large a query may be: nesting of expressions or parentheses; expressions, list values and keywords in all."""

    depth: int = 20
    clauses: int = 1024


class Term(msgspec.Struct, frozen=True, tag=True):
    """One word, in any grammatical form; with ``prefix``, every word that begins with it.

    If punctuation splits the text into several words, they must follow each other. With ``prefix``, they are not
    stemmed, and the last one is a beginning.
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
    """Keywords that match an object's metadata or content. No keywords (only stray punctuation) match nothing."""

    keywords: Keywords | None


class Property(msgspec.Struct, frozen=True, tag=True):
    """A property compared with one value."""

    name: str
    operator: Literal["BEGINS_WITH"]
    value: Value
    place: str = ""


class PropertyList(msgspec.Struct, frozen=True, tag=True):
    """A property with one of these values."""

    name: str
    operator: Literal["IN"]
    values: tuple[Value, ...]
    place: str = ""


class PropertyRange(msgspec.Struct, frozen=True, tag=True):
    """A property with a value between two, both included."""

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
    """An object carries one of these ACLs. ``bind`` makes this from a comparison with ``acl_name``."""

    acls: tuple[int, ...]


Expression: TypeAlias = Fulltext | Property | PropertyList | PropertyRange | ExpressionSet | Carries


class Query(msgspec.Struct, frozen=True, tag=True):
    """Asks for the objects of these types and their sub-types that meet the condition; without both, for everything."""

    types: tuple[str, ...] = ()
    condition: Expression | None = None
    types_place: str = ""
