"""How are the engine's queries made?

Two features of the engine are never used, because their results are silently incomplete or wrong: phrase-prefix
queries, and the parser for strings. A prefix becomes a fuzzy prefix query with distance zero; after other words, the
last part of a phrase of regular expressions, which the engine refuses if more than 16,384 words match.
"""

from collections.abc import Collection, Sequence

import tantivy
from tantivy import FieldType, Occur, Query

from muniment.repository.search.aql.conditions import Between, HasValue, Like, OneOf
from muniment.repository.search.aql.patterns import Gap, Pattern
from muniment.repository.search.index.questions import layout
from muniment.repository.search.index.tantivy import fields, regexes
from muniment.repository.search.index.tantivy.combining import all_of, any_of, silent, term, terms
from muniment.repository.search.index.tantivy.comparisons import Comparisons

_TIMES = 4
"""The engine applies a word's expression to two fields, to find hits, and to see what each hit on a page matches."""


class TantivyQueries:
    """Makes queries (Queries)."""

    def __init__(self, index: tantivy.Index) -> None:
        self._allowance = regexes.Allowance()
        self._comparisons = Comparisons(index, self._allowance)

    def every(self) -> Query:
        return Query.all_query()

    def nothing(self) -> Query:
        return Query.empty_query()

    def term(self, field: str, value: str | int) -> Query:
        return term(field, value)

    def terms(self, field: str, values: Collection[str | int]) -> Query:
        return terms(field, values)

    def with_acls(self, acls: Collection[int]) -> Query:
        return terms(layout.ACL, [str(acl) for acl in acls])

    def embedded(self) -> Query:
        return Query.range_query(fields.SCHEMA, layout.EMBEDDING, FieldType.Unsigned, lower_bound=1)

    def word(self, field: str, word: str) -> Query:
        return Query.term_query(fields.SCHEMA, field, word, "freq")

    def sequence(self, field: str, words: Sequence[tuple[int, str]], slop: int = 0) -> Query:
        first_place = words[0][0]
        return Query.phrase_query(fields.SCHEMA, field, [(place - first_place, word) for place, word in words], slop)

    def pattern(self, field: str, pattern: Pattern) -> Query:
        match pattern.pieces:
            case (str(beginning), Gap.RUN):
                return Query.fuzzy_term_query(fields.SCHEMA, field, beginning, 0, True, True)
            case _:
                return Query.regex_query(
                    fields.SCHEMA, field, self._allowance.spend(regexes.of_pattern(pattern), _TIMES)
                )

    def patterns(self, field: str, places: Sequence[tuple[int, Pattern]]) -> Query:
        first_place = places[0][0]
        phrase: list[str | tuple[int, str]] = [
            (place - first_place, self._allowance.spend(regexes.of_pattern(each), _TIMES)) for place, each in places
        ]
        return Query.regex_phrase_query(fields.SCHEMA, field, phrase)

    def similar(self, field: str, word: str, letters: int) -> Query:
        return Query.fuzzy_term_query(fields.SCHEMA, field, word, letters, True, False)

    def comparison(self, comparison: OneOf | Between | Like | HasValue) -> Query:
        return self._comparisons.query(comparison)

    def all_of(self, parts: Sequence[Query], exclusions: Sequence[Query] = ()) -> Query:
        return all_of(parts, exclusions)

    def any_of(self, parts: Sequence[Query]) -> Query:
        return any_of(parts)

    def best_of(self, parts: Sequence[Query]) -> Query:
        return Query.disjunction_max_query(list(parts))

    def with_bonuses(self, needed: Sequence[Query], bonuses: Sequence[Query]) -> Query:
        return Query.boolean_query(
            [*((Occur.Must, query) for query in needed), *((Occur.Should, query) for query in bonuses)]
        )

    def fixed(self, query: Query, score: float) -> Query:
        return Query.const_score_query(query, score)

    def silent(self, query: Query) -> Query:
        return silent(query)

    def times(self, query: Query, factor: float) -> Query:
        return Query.boost_query(query, factor)
