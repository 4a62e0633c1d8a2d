"""How rare is a word among the objects that one caller may see?

A BM25 score is proportional to that weight (the inverse document frequency, IDF): a factor replaces it exactly. One
figure is still of the whole index: the average length of texts, which the engine does not let us replace.

Some patterns (``may_rank``) are replaced by the commonest words that they cover for the caller. Each weighs as the
whole pattern, counted as one word.

Source: docs/decisions/0062.
"""

import itertools
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import tantivy
from tantivy import Occur, Query

from muniment.ground.caches import Cache
from muniment.repository.search.aql.patterns import Gap, Pattern
from muniment.repository.search.index.contract import Visible, WordCount
from muniment.repository.search.index.tantivy import fields
from muniment.repository.search.index.tantivy.compiling.combining import term
from muniment.repository.search.index.tantivy.searching import WatchedSearcher

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


class SeenCounts:
    """How many objects one caller finds.

    Keys of ``counts`` are exact or not, and the word or pattern. ``compiled`` has weighted queries of the engine, by
    the search's query as JSON, and whether the caller may read all that they see; ``completions`` go by the earlier
    words' query as JSON, the letters, and the wanted number.
    """

    def __init__(self) -> None:
        self.counts: Cache[tuple[bool, str | Pattern], int] = Cache(_WORDS)
        self.forms: Cache[Pattern, Forms] = Cache(_WORDS)
        self.compiled: Cache[tuple[bytes, bool], tuple[Query, Query]] = Cache(_QUERY_BYTES)
        self.completions: Cache[tuple[bytes, str, int], list[WordCount]] = Cache(_COMPLETIONS)


class Findings(NamedTuple):
    """``holding`` makes the query of the caller's objects with an exact word, stem or word of a pattern.

    ``beginning`` counts the caller's objects with each word that begins so.
    """

    holding: Callable[[str | Pattern, bool], Query]
    everything: Query
    beginning: Callable[[str], Mapping[str, int]]


class Rarity:
    """Weights for one caller; only patterns in ``ranked`` are ranked. ``engine`` has the searcher, and the documents
    that it counts.
    """

    def __init__(
        self,
        engine: tuple[WatchedSearcher, int],
        findings: Findings,
        ranked: Collection[Pattern],
        seen_counts: SeenCounts,
    ) -> None:
        self._searcher, self._documents = engine
        self._findings = findings
        self._ranked = ranked
        self._seen_counts = seen_counts

    def factor(self, field: str, words: Sequence[str], counted_as: Sequence[Sequence[str]] = ()) -> float:
        """Turn the engine's score of a word or phrase into this caller's.

        A word has one weight, sought anywhere or in metadata. ``counted_as`` are its stems in all languages, whose
        objects are added up: each has one language.
        """
        exact = field in fields.EXACT
        own = sum(_idf(self._searcher.doc_freq(field, word), self._documents) for word in words)
        return sum(self.weight(stems, exact) for stems in counted_as or [[word] for word in words]) / own

    def by_forms(self, field: str, pattern: Pattern, unranked: Query) -> Query:
        """Rank what a pattern finds in a field of exact words.

        ``unranked`` finds the same for the caller, and is returned if the pattern is not in ``ranked``. A hit scores as
        its best word, each with the pattern's weight; without a common one it comes last.
        """
        if pattern not in self._ranked:
            return unranked
        forms, weight = self._forms(pattern), self.weight([pattern], exact=True)
        scores = []
        for word in forms.words:
            if holding := self._searcher.doc_freq(field, word):
                scored = Query.term_query(fields.SCHEMA, field, word, "freq")
                scores.append(Query.boost_query(scored, weight / _idf(holding, self._documents)))
        best = Query.disjunction_max_query(scores) if scores else Query.empty_query()
        if forms.complete:
            return best
        every = Query.const_score_query(unranked, _OTHERS * weight)
        return Query.boolean_query([(Occur.Must, every), (Occur.Should, best)])

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
        return _idf(sum(self.finding(each, exact) for each in alternatives), everything)

    def finding(self, word: str | Pattern, exact: bool) -> int:
        return self._seen_counts.counts.answer(
            (exact, word), lambda: self._searcher.count(self._findings.holding(word, exact))
        )


def may_rank(pattern: Pattern) -> bool:
    """Return whether the words can be listed: the pattern begins with letters, and has a wildcard."""
    return len(pattern.pieces) > 1 and not pattern.begins_open and pattern.pieces[0] != ""


def commonest(pattern: Pattern, counts: Mapping[str, int]) -> Forms:
    """Choose the commonest that the pattern covers, then by alphabet. ``counts`` are objects for each word that begins
    so.
    """
    common = sorted(counts, key=lambda word: (-counts[word], word))
    few = common[:_LOOKED_THROUGH]
    covered = few if pattern.pieces[1:] == (Gap.RUN,) else filter(pattern.matches, few)
    words = tuple(itertools.islice(covered, MOST_FORMS + 1))
    return Forms(words[:MOST_FORMS], len(words) <= MOST_FORMS and len(few) == len(common))


def documents(searcher: tantivy.Searcher) -> int:
    """Count documents as the engine's weights do: deleted ones, too, until a merge."""
    position = term(fields.KEY, fields.POSITION)
    hits = searcher.search(position, 1, count=False).hits
    if not hits:
        return searcher.num_docs
    idf = json.loads(position.explain(searcher, hits[0][1]).to_json())["details"][1]
    return int(idf["details"][1]["value"])


def caller_key(visible: Visible) -> CallerKey:
    return visible.everything, visible.all_versions, visible.browse_acls, visible.read_acls, visible.owner


def _idf(holding: int, documents: int) -> float:
    return math.log(1 + (max(documents, holding) - holding + 0.5) / (holding + 0.5))
