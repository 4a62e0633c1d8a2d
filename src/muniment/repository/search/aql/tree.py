"""The query tree: what a query means, however it was written, in the code's own (neutral) names.

Source: given 2.8 for the expressions; docs/aql.md, "By keywords", for the keywords. ``place`` of an expression is that
in its document; refusals name it.
"""

from collections.abc import Callable, Iterator
from typing import Literal, Self, TypeAlias

import msgspec

from muniment.repository.options import RepositoryOptions

Value: TypeAlias = str | int | float | bool
"""A query has texts; after ``bind``, values have the property's kind."""

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

AgeOperator = Literal["EQUAL", "GREATER_THAN", "LESS_THAN", "GREATER_EQUAL", "LESS_EQUAL"]

TimeUnit = Literal["MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"]

FacetSort = Literal["FREQUENCY", "VALUE_ASCENDING", "VALUE_DESCENDING", "NONE"]


class QueryLimits(msgspec.Struct, frozen=True):
    """``depth`` limits nesting, ``clauses`` expressions, list values and keywords together.

    A comparison that reads every value, such as one that begins with a wildcard, counts ``patterns.OPEN_CLAUSES`` more.
    """

    depth: int = 20
    clauses: int = 1024

    @classmethod
    def of(cls, options: RepositoryOptions) -> Self:
        return cls(options.max_query_depth, options.max_query_clauses)


class Term(msgspec.Struct, frozen=True, tag=True):
    """One word, in any grammatical form; parts that punctuation splits must follow each other. With ``fuzzy``, one of 4
    to 40 characters may differ in one letter (``patterns.similar``).
    """

    text: str
    fuzzy: bool = False


class Wild(msgspec.Struct, frozen=True, tag=True):
    """Words with ``*`` for any run of letters and digits, ``?`` for one or none; parts follow each other, without
    stemming.
    """

    text: str


class Phrase(msgspec.Struct, frozen=True, tag=True):
    """Words in this order and form (no stemming)."""

    text: str


class Both(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """All must match; if ``loose``, each "and" between may be an ordinary word."""

    parts: tuple["Keywords", ...]
    loose: bool = False


class Either(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """One must match; if ``loose``, each "or" between may be an ordinary word."""

    parts: tuple["Keywords", ...]
    loose: bool = False


class Without(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """The part must not match; if ``loose``, the "not" before it may be an ordinary word."""

    part: "Keywords"
    loose: bool = False


class AnyWord(msgspec.Struct, frozen=True, tag=True):
    """One of the ``words`` that are no stop words must match; if all are, any is enough.

    But if there are ``needed`` parts, all of these must match, and none of the words. Objects that meet ``first`` score
    higher than all others; without ``needed`` parts, they match in any case.
    """

    first: "Keywords"
    words: tuple[Term, ...]
    needed: tuple["Keywords", ...] = ()


Keywords: TypeAlias = Term | Wild | Phrase | Both | Either | Without | AnyWord


def words_of(keywords: Keywords | None) -> Iterator[Term | Wild | Phrase]:
    """List all in order, negated ones too."""
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
    """Keywords for metadata or content; None, without a word, match nothing. Objects that also hold the ``sequence``
    score higher than all others.
    """

    keywords: Keywords | None
    sequence: Phrase | None = None


class Property(msgspec.Struct, frozen=True, tag=True):
    """If ``exact``, ``*`` and ``?`` are no wildcards.

    With ``fuzzy``, EQUAL, CONTAINS and their negations let one letter differ (``patterns.similar``), unless ``exact``,
    or with wildcards.
    """

    name: str
    operator: PropertyOperator
    value: str = ""
    exact: bool = False
    fuzzy: bool = False
    place: str = ""


class PropertyList(msgspec.Struct, frozen=True, tag=True):
    """A property with (IN), or without (NOT_IN), one of these values."""

    name: str
    operator: Literal["IN", "NOT_IN"]
    values: tuple[str, ...]
    place: str = ""


class PropertyRange(msgspec.Struct, frozen=True, tag=True):
    """Both ends are included."""

    name: str
    operator: Literal["BETWEEN"]
    low: str
    high: str
    place: str = ""


class RelativeDate(msgspec.Struct, frozen=True, tag=True):
    """A date compared with now plus ``amount`` units, perhaps negative."""

    name: str
    operator: AgeOperator
    amount: int
    unit: TimeUnit
    place: str = ""


class ExpressionSet(msgspec.Struct, frozen=True, tag=True):
    """All (AND), or at least one (OR), must match."""

    operator: Literal["AND", "OR"]
    expressions: tuple["Expression", ...]


Single: TypeAlias = Fulltext | Property | PropertyList | PropertyRange | RelativeDate
Expression: TypeAlias = Single | ExpressionSet


def singles(expression: Expression | None) -> Iterator[Single]:
    """List what is no set, in order."""
    if isinstance(expression, ExpressionSet):
        for part in expression.expressions:
            yield from singles(part)
    elif expression is not None:
        yield expression


class SortCriterion(msgspec.Struct, frozen=True):
    """With ``ascii``, texts are compared by code points, else without case. ``lang`` has no effect."""

    name: str
    ascending: bool = True
    lang: str = ""
    ascii: bool = False
    place: str = ""


class Location(msgspec.Struct, frozen=True):
    """A folder by path or id; with ``descendants``, also those below. Only a search of all repositories reads
    ``repository``, empty for any.
    """

    path: str = ""
    folder_id: str = ""
    descendants: bool = False
    place: str = ""
    repository: str = ""


class FacetDefinition(msgspec.Struct, frozen=True):
    """How hits are counted; a negative ``max_values`` means all."""

    id: str
    attributes: tuple[str, ...] = ()
    group_by: str = "string"
    sort: FacetSort | None = None
    properties: tuple[tuple[str, str], ...] = ()
    max_values: int = 10
    nested: "FacetDefinition | None" = None
    place: str = ""


class Query(msgspec.Struct, frozen=True, tag=True):
    """A query for objects of these types and sub-types in one of the locations.

    A search of one repository refuses another in ``repositories``. Facets count the first ``facet_hits``, or all.
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
