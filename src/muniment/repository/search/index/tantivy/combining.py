"""How are several queries of the engine combined into one?"""

from collections.abc import Collection, Sequence

from tantivy import Occur, Query

from muniment.repository.search.index.tantivy import fields

_SEVERAL = 100
"""More terms are sought by one query for a set, which is then faster than an OR."""


def silent(query: Query) -> Query:
    """Find the same objects with the score 0."""
    return Query.const_score_query(query, 0.0)


def term(field: str, value: str | int) -> Query:
    return Query.term_query(fields.SCHEMA, field, value, "basic")


def terms(field: str, values: Collection[str | int]) -> Query:
    if len(values) <= _SEVERAL:
        return any_of([term(field, value) for value in values])
    return Query.term_set_query(fields.SCHEMA, field, list(values))


def all_of(queries: Sequence[Query], exclusions: Sequence[Query] = ()) -> Query:
    if len(queries) == 1 and not exclusions:
        return queries[0]
    parts = [(Occur.Must, query) for query in queries] or [(Occur.Must, silent(Query.all_query()))]
    return Query.boolean_query([*parts, *((Occur.MustNot, query) for query in exclusions)])


def any_of(parts: Sequence[Query]) -> Query:
    if len(parts) == 1:
        return parts[0]
    return Query.boolean_query([(Occur.Should, query) for query in parts])
