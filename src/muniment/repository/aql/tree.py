"""The query tree: what is asked, apart from how it was spelled. Names in it are our neutral ones.

Source: given 2.8 for the expressions, the simple keyword language for the keywords. ``place`` says where an expression
stood in the document it was read from, for the sentence of a refusal.
"""

from typing import Literal, TypeAlias

import msgspec

Value: TypeAlias = str | int | float | bool
"""A property's value: text as it was spelled, or after ``bind`` what the property's kind makes of it."""


class Limits(msgspec.Struct, frozen=True):
    """How large a query may be: nesting of expressions or parentheses; expressions, list values and keywords in all."""

    depth: int = 20
    clauses: int = 1024


class Term(msgspec.Struct, frozen=True, tag=True):
    """One word, in any grammatical form; with ``prefix``, every word that begins with it.

    Text that punctuation splits into several words asks for them one after the other; with ``prefix`` too, unstemmed
    and the last one as a beginning.
    """

    text: str
    prefix: bool = False


class Phrase(msgspec.Struct, frozen=True, tag=True):
    """These words in this order and in this form (no stemming)."""

    text: str


class Both(msgspec.Struct, frozen=True, tag=True):
    """All parts are met."""

    parts: tuple["Keywords", ...]


class Either(msgspec.Struct, frozen=True, tag=True):
    """At least one part is met."""

    parts: tuple["Keywords", ...]


class Without(msgspec.Struct, frozen=True, tag=True):
    """The part is not met."""

    part: "Keywords"


Keywords: TypeAlias = Term | Phrase | Both | Either | Without


class Fulltext(msgspec.Struct, frozen=True, tag=True):
    """Keywords met by an object's metadata or content. No keywords (only stray punctuation) are met by nothing."""

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
    """Expressions met together (AND) or at least one of them (OR)."""

    operator: Literal["AND", "OR"]
    expressions: tuple["Expression", ...]


class Carries(msgspec.Struct, frozen=True, tag=True):
    """An object carries one of these ACLs. ``bind`` makes it of a comparison with ``acl_name``."""

    acls: tuple[int, ...]


Expression: TypeAlias = Fulltext | Property | PropertyList | PropertyRange | ExpressionSet | Carries


class Query(msgspec.Struct, frozen=True, tag=True):
    """Objects of one of these types or their sub-types that meet the condition; none of either asks for everything."""

    types: tuple[str, ...] = ()
    condition: Expression | None = None
    types_place: str = ""
