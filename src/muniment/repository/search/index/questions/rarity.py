"""How rare is a word among the objects that one caller may see?

A BM25 score is proportional to that weight (the inverse document frequency, IDF): a factor replaces it exactly. One
figure is still of the whole index: the average length of texts, which the engine does not let us replace.

Some patterns (``may_rank``) are replaced by the commonest words that they cover for the caller. Each weighs as the
whole pattern, counted as one word.

Source: docs/decisions/0062.
"""

import heapq
import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from muniment.ground.caches import Cache
from muniment.repository.search.aql.patterns import Gap, Pattern
from muniment.repository.search.index.contract import Visible, WordCount
from muniment.repository.search.index.questions import layout
from muniment.repository.search.index.questions.engine import Queries, Query, Searcher

_WORDS, _QUERY_BYTES, _COMPLETIONS = 1000, 250_000, 1000

MOST_FORMS = 64

FORM_BYTES = 200

_LOOKED_THROUGH = 10_000

_OTHERS = 0.01
"""If not all words of a pattern are scored, each hit scores this fraction of its weight, plus the best of its scored
words.
"""

CallerKey: TypeAlias = tuple[bool, bool, frozenset[int], frozenset[int], str]
"""This decides what a caller may see: everything or not, all versions or not, ACLs for browsing, ACLs for reading, the
caller's key.
"""


class Forms(NamedTuple):
    """The commonest words of a pattern; ``complete`` if they are all."""

    words: tuple[str, ...]
    complete: bool


class CompiledQuery(NamedTuple):
    """Queries that find what matches anywhere in an object, and in metadata: the same without keywords."""

    anywhere: Query
    in_metadata: Query


class SeenCounts:
    """How many objects one caller finds.

    Keys of ``counts`` are exact or not, and the word or pattern. ``compiled`` has weighted queries of the engine, by
    the search's query as JSON, and whether the caller may read all that they see; ``completions`` go by the earlier
    words' query as JSON, the letters, and the wanted number.
    """

    def __init__(self) -> None:
        self.counts: Cache[tuple[bool, str | Pattern], int] = Cache(_WORDS)
        self.forms: Cache[Pattern, Forms] = Cache(_WORDS)
        self.compiled: Cache[tuple[bytes, bool], CompiledQuery] = Cache(_QUERY_BYTES)
        self.completions: Cache[tuple[bytes, str, int], list[WordCount]] = Cache(_COMPLETIONS)


class Findings(NamedTuple):
    """``holding`` makes the query of the caller's objects with an exact word, stem or word of a pattern.

    ``beginning`` counts the caller's objects with each word that begins so.
    """

    holding: Callable[[str | Pattern, bool], Query]
    everything: Query
    beginning: Callable[[str], Mapping[str, int]]


class Rarity:
    """Weights for one caller; only patterns in ``ranked`` are ranked."""

    def __init__(
        self,
        searcher: Searcher,
        findings: Findings,
        ranked: Collection[Pattern],
        seen_counts: SeenCounts,
    ) -> None:
        self._searcher = searcher
        self._findings = findings
        self._ranked = ranked
        self._seen_counts = seen_counts

    def factor(self, field: str, words: Sequence[str], counted_as: Sequence[Sequence[str]] = ()) -> float:
        """Turn the engine's score of a word or phrase into this caller's.

        A word has one weight, sought anywhere or in metadata. ``counted_as`` are its stems in all languages, whose
        objects are added up: each has one language.
        """
        exact = field in layout.EXACT
        own = self._searcher.own_weight(field, words)
        return sum(self.weight(stems, exact) for stems in counted_as or [[word] for word in words]) / own

    def by_forms(self, queries: Queries, field: str, pattern: Pattern, unranked: Query) -> Query:
        """Rank what a pattern finds in a field of exact words.

        ``unranked`` finds the same for the caller, and is returned if the pattern is not in ``ranked``. A hit scores as
        its best word, each with the pattern's weight; without a common one it comes last.
        """
        if pattern not in self._ranked:
            return unranked
        forms, weight = self._forms(pattern), self.weight([pattern], exact=True)
        scores = []
        for word in forms.words:
            if self._searcher.is_held(field, word):
                own = self._searcher.own_weight(field, [word])
                scores.append(queries.times(queries.word(field, word), weight / own))
        best = queries.best_of(scores) if scores else queries.nothing()
        if forms.complete:
            return best
        return queries.with_bonuses([queries.fixed(unranked, _OTHERS * weight)], [best])

    def _forms(self, pattern: Pattern) -> Forms:
        forms = self._seen_counts.forms.recall(pattern)
        if forms is None:
            forms = commonest(pattern, self._findings.beginning(str(pattern.pieces[0])))
            self._seen_counts.forms.keep(pattern, forms, 1 + len(forms.words))
        return forms

    def weight(self, alternatives: Sequence[str | Pattern], exact: bool) -> float:
        everything = self._seen_counts.counts.answer(
            (exact, ""), lambda: self._searcher.count(self._findings.everything)
        )
        return idf(sum(self.finding(each, exact) for each in alternatives), everything)

    def count_ahead(self, sought: Collection[tuple[bool, str | Pattern]]) -> None:
        """Ask the engine once for all that it would be asked one by one."""
        counts = self._seen_counts.counts
        wanted = [*sought, *((exact, "") for exact in {exact for exact, _ in sought})]
        lacking = [each for each in wanted if counts.recall(each) is None]
        holding, everything = self._findings.holding, self._findings.everything
        queries = [holding(word, exact) if word else everything for exact, word in lacking]
        for each, count in zip(lacking, self._searcher.count_all(queries), strict=True):
            counts.keep(each, count)

    def finding(self, word: str | Pattern, exact: bool) -> int:
        return self._seen_counts.counts.answer(
            (exact, word), lambda: self._searcher.count(self._findings.holding(word, exact))
        )


class Foresight:
    """Stands in for Rarity in a compiler, to learn which words a query weighs; each is exact or not.

    As there, only patterns in ``ranked`` are weighed.
    """

    def __init__(self, ranked: Collection[Pattern]) -> None:
        self._ranked = ranked
        self.sought: dict[tuple[bool, str | Pattern], None] = {}

    def factor(self, field: str, words: Sequence[str], counted_as: Sequence[Sequence[str]] = ()) -> float:
        exact = field in layout.EXACT
        for alternatives in counted_as or [words]:
            self.sought |= {(exact, each): None for each in alternatives}
        return 1.0

    def by_forms(self, _queries: Queries, _field: str, pattern: Pattern, unranked: Query) -> Query:
        if pattern in self._ranked:
            self.sought[True, pattern] = None
        return unranked


def may_rank(pattern: Pattern) -> bool:
    """Return whether the words can be listed: the pattern begins with letters, and has a wildcard."""
    return len(pattern.pieces) > 1 and not pattern.begins_open and pattern.pieces[0] != ""


def commonest(pattern: Pattern, counts: Mapping[str, int]) -> Forms:
    """Choose the commonest that the pattern covers, then by alphabet. ``counts`` are objects for each word that begins
    so.
    """
    covers_all = pattern.pieces[1:] == (Gap.RUN,)
    most = MOST_FORMS + 1 if covers_all else _LOOKED_THROUGH
    few = heapq.nsmallest(most, counts, key=lambda word: (-counts[word], word))
    words = tuple(itertools.islice(few if covers_all else filter(pattern.matches, few), MOST_FORMS + 1))
    return Forms(words[:MOST_FORMS], len(words) <= MOST_FORMS and len(few) == len(counts))


def caller_key(visible: Visible) -> CallerKey:
    return visible.everything, visible.all_versions, visible.browse_acls, visible.read_acls, visible.owner


def idf(holding: int, documents: int) -> float:
    return math.log(1 + (max(documents, holding) - holding + 0.5) / (holding + 0.5))
