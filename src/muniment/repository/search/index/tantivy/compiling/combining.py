"""How are several queries of the engine combined into one?"""

from collections.abc import Sequence

from tantivy import Occur, Query

SEVERAL = 100
"""More terms than this are sought by one query for a set of terms, which is then faster than an OR of term queries."""


def silent(query: Query) -> Query:
    """Make a query that finds the same objects with the score 0."""
    return Query.const_score_query(query, 0.0)


def all_of(queries: Sequence[Query], exclusions: Sequence[Query] = ()) -> Query:
    """Make the query for the objects that all of ``queries`` find and none of ``exclusions`` finds."""
    if len(queries) == 1 and not exclusions:
        return queries[0]
    parts = [(Occur.Must, query) for query in queries] or [(Occur.Must, silent(Query.all_query()))]
    return Query.boolean_query([*parts, *((Occur.MustNot, query) for query in exclusions)])


def any_of(parts: Sequence[Query]) -> Query:
    """Make the query for the objects that at least one of ``parts`` finds."""
    if len(parts) == 1:
        return parts[0]
    return Query.boolean_query([(Occur.Should, query) for query in parts])
