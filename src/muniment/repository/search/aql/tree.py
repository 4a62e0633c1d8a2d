"""The query tree: what a query means, however it was written, in the code's own (neutral) names.

Source: given 2.8 for the expressions; docs/aql.md, "By keywords", for the keywords. ``place`` is the place of an
expression in its document; refusals name it.
"""

from collections.abc import Callable, Iterator
from typing import Literal, Self, TypeAlias

import msgspec

from muniment.repository.options import RepositoryOptions

Value: TypeAlias = str | int | float | bool
"""A value of a property. In a query it is a text; after ``bind``, it has the property's kind."""

PropertyOperator = Literal[
    "EQUAL",
    "NOT_EQUAL",
    "GREATER_THAN",
    "LESS_THAN",
    "GREATER_EQUAL",
    "LESS_EQUAL",
    "BEGINS_WITH",
    "CONTAINS",
    "DOES_NOT_CONTAIN",
    "ENDS_WITH",
    "IS_NULL",
    "IS_NOT_NULL",
]
"""The comparisons of a ``property`` expression."""

AgeOperator = Literal["EQUAL", "GREATER_THAN", "LESS_THAN", "GREATER_EQUAL", "LESS_EQUAL"]
"""The comparisons of a ``relative-date`` expression."""

TimeUnit = Literal["MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"]

FacetSort = Literal["FREQUENCY", "VALUE_ASCENDING", "VALUE_DESCENDING", "NONE"]


class QueryLimits(msgspec.Struct, frozen=True):
    """How large a query may be.

    ``depth`` limits the nesting of expressions or parentheses, ``clauses`` the number of expressions, list values and
    keywords together. A comparison for which an engine must read every value, such as one that begins with a wildcard,
    counts ``patterns.OPEN_CLAUSES`` more.
    """

    depth: int = 20
    clauses: int = 1024

    @classmethod
    def of(cls, options: RepositoryOptions) -> Self:
        return cls(options.max_query_depth, options.max_query_clauses)


class Term(msgspec.Struct, frozen=True, tag=True):
    """One word, in any grammatical form.

    If punctuation splits the text into several words, they must follow each other. With ``fuzzy``, a single word of
    4 to 40 characters also matches words that differ in one letter (``patterns.similar``).
    """

    text: str
    fuzzy: bool = False


class Wild(msgspec.Struct, frozen=True, tag=True):
    """Words with wildcards: ``*`` stands for any run of letters and digits, ``?`` for one or none.

    If punctuation splits the text into several words, they must follow each other. No word is reduced to its stem.
    """

    text: str


class Phrase(msgspec.Struct, frozen=True, tag=True):
    """These words in this order and in this form (no stemming)."""

    text: str


class Both(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """All parts must match. ``loose`` says that each "and" between them, if any, may be an ordinary word."""

    parts: tuple["Keywords", ...]
    loose: bool = False


class Either(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """At least one part must match. ``loose`` says that each "or" between them may be an ordinary word."""

    parts: tuple["Keywords", ...]
    loose: bool = False


class Without(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """The part must not match. ``loose`` says that the "not" before it may be an ordinary word."""

    part: "Keywords"
    loose: bool = False


class AnyWord(msgspec.Struct, frozen=True, tag=True):
    """Of the ``words`` that are no stop words, at least one must match. If all are stop words, any of them is enough.

    If there are ``needed`` parts, all of these must match, and then none of the words has to. Objects that also meet
    ``first`` score higher than all others; without ``needed`` parts, they match in any case.
    """

    first: "Keywords"
    words: tuple[Term, ...]
    needed: tuple["Keywords", ...] = ()


Keywords: TypeAlias = Term | Wild | Phrase | Both | Either | Without | AnyWord


def words_of(keywords: Keywords | None) -> Iterator[Term | Wild | Phrase]:
    """List the words and phrases of keywords in their order, those that must not match too."""
    match keywords:
        case Both() | Either():
            for part in keywords.parts:
                yield from words_of(part)
        case Without():
            yield from words_of(keywords.part)
        case AnyWord():
            yield from words_of(Both((keywords.first, *keywords.needed)))
        case None:
            return
        case _:
            yield keywords


def with_parts(keywords: Keywords, change: Callable[["Keywords"], "Keywords"]) -> Keywords:
    match keywords:
        case Both() | Either():
            return msgspec.structs.replace(keywords, parts=tuple(map(change, keywords.parts)))
        case Without():
            return msgspec.structs.replace(keywords, part=change(keywords.part))
        case AnyWord():
            needed = tuple(map(change, keywords.needed))
            return msgspec.structs.replace(keywords, first=change(keywords.first), needed=needed)
        case _:
            return keywords


class Fulltext(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Keywords that match an object's metadata or content. Without a word, they are None and match nothing.

    Objects that meet the keywords and hold the ``sequence`` score higher than all others.
    """

    keywords: Keywords | None
    sequence: Phrase | None = None


class Property(msgspec.Struct, frozen=True, tag=True):
    """A property compared with one value.

    If ``exact`` is set, the characters ``*`` and ``?`` are no wildcards. With ``fuzzy``, EQUAL, CONTAINS and their
    negations let one letter differ (``patterns.similar``), unless ``exact`` is set or the value holds wildcards.
    """

    name: str
    operator: PropertyOperator
    value: str = ""
    exact: bool = False
    fuzzy: bool = False
    place: str = ""


class PropertyList(msgspec.Struct, frozen=True, tag=True):
    """A property that has one of these values (IN), or that has none of them (NOT_IN)."""

    name: str
    operator: Literal["IN", "NOT_IN"]
    values: tuple[str, ...]
    place: str = ""


class PropertyRange(msgspec.Struct, frozen=True, tag=True):
    """A property that has a value from ``low`` to ``high``, both included."""

    name: str
    operator: Literal["BETWEEN"]
    low: str
    high: str
    place: str = ""


class RelativeDate(msgspec.Struct, frozen=True, tag=True):
    """A date compared with the moment of the search plus ``amount`` units of time. ``amount`` may be negative."""

    name: str
    operator: AgeOperator
    amount: int
    unit: TimeUnit
    place: str = ""


class ExpressionSet(msgspec.Struct, frozen=True, tag=True):
    """Expressions that must all match (AND), or of which at least one must match (OR)."""

    operator: Literal["AND", "OR"]
    expressions: tuple["Expression", ...]


Single: TypeAlias = Fulltext | Property | PropertyList | PropertyRange | RelativeDate
Expression: TypeAlias = Single | ExpressionSet


def singles(expression: Expression | None) -> Iterator[Single]:
    """List the expressions in an expression that are no sets, in their order."""
    if isinstance(expression, ExpressionSet):
        for part in expression.expressions:
            yield from singles(part)
    elif expression is not None:
        yield expression


class SortCriterion(msgspec.Struct, frozen=True):
    """A property by which hits are ordered.

    With ``ascii``, texts are compared by code points, otherwise without case. ``lang`` has no effect.
    """

    name: str
    ascending: bool = True
    lang: str = ""
    ascii: bool = False
    place: str = ""


class Location(msgspec.Struct, frozen=True):
    """A folder in which hits lie, by its path or by its id; with ``descendants``, also in folders below it.

    ``repository`` names the folder's repository; empty means any. Only a search of all repositories reads it.
    """

    path: str = ""
    folder_id: str = ""
    descendants: bool = False
    place: str = ""
    repository: str = ""


class FacetDefinition(msgspec.Struct, frozen=True):
    """How hits are counted by the values of a property.

    ``sort`` is None if the definition names none. A negative ``max_values`` asks for all values.
    """

    id: str
    attributes: tuple[str, ...] = ()
    group_by: str = "string"
    sort: FacetSort | None = None
    properties: tuple[tuple[str, str], ...] = ()
    max_values: int = 10
    nested: "FacetDefinition | None" = None
    place: str = ""


class Query(msgspec.Struct, frozen=True, tag=True):
    """A query for the objects of these types and their sub-types, in one of these locations, that meet the condition.

    ``repositories`` names the repositories to search; a search of one repository refuses any other name. Facets count
    the first ``facet_hits`` hits, or all if ``facet_hits`` is None.
    """

    types: tuple[str, ...] = ()
    condition: Expression | None = None
    types_place: str = ""
    columns: tuple[str, ...] = ()
    sorts: tuple[SortCriterion, ...] = ()
    locations: tuple[Location, ...] = ()
    repositories: tuple[str, ...] = ()
    facets: tuple[FacetDefinition, ...] = ()
    facet_hits: int | None = None
    include_hidden: bool = False
    all_versions: bool = False


def with_fulltexts(query: Query, change: Callable[[Fulltext], Fulltext]) -> Query:
    def changed(expression: Expression) -> Expression:
        if isinstance(expression, ExpressionSet):
            return ExpressionSet(expression.operator, tuple(map(changed, expression.expressions)))
        return change(expression) if isinstance(expression, Fulltext) else expression

    return query if query.condition is None else msgspec.structs.replace(query, condition=changed(query.condition))
