"""How rare is a word among the objects that one caller may see?

A BM25 score is proportional to that weight (the inverse document frequency, IDF). So multiplying the score by a factor
replaces the weight exactly. One figure is still that of the whole index: the average length of its texts, which the
engine does not let us replace. So some patterns (``may_rank``) are replaced by the commonest words that they cover in
the objects that the caller may see. Each of these words has the weight of the whole pattern, which is counted as if it
were one word. Source: docs/decisions/0062.
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
"""For one caller: how many words are remembered, how many bytes of compiled queries, and how many completions."""

MOST_FORMS = 64
"""How many words of a pattern are scored at most. These are the commonest ones."""

FORM_BYTES = 200
"""How many bytes each scored word of a pattern adds to the size of a remembered query."""

_LOOKED_THROUGH = 10_000
"""Of the words that begin as a pattern does, at most so many are compared with the pattern: the commonest ones."""

_OTHERS = 0.01
"""If not all words of a pattern are scored, each hit scores this fraction of the pattern's weight.

If the hit holds scored words, the score of the best of them is added.
"""

CallerKey: TypeAlias = tuple[bool, bool, frozenset[int], frozenset[int], str]
"""The facts that decide what a caller may see of a snapshot.

They are: whether the caller may see everything, whether all versions are sought, the ACLs for browsing, the ACLs for
reading, and the caller's key.
"""


class Forms(NamedTuple):
    """The commonest words that a pattern stands for, and whether they are all of its words."""

    words: tuple[str, ...]
    complete: bool


class SeenCounts:
    """How many objects one caller finds by each word.

    A key of ``counts`` is a pair: whether the word is exact, and the word or pattern. ``forms`` holds the words of
    patterns. ``compiled`` holds queries of the engine that are weighted by these counts; a key is the search's query as
    JSON. ``completions`` holds the words that complete the last word of a question. A key is the query of the earlier
    words as JSON, the letters of the last word, and how many completions are wanted.
    """

    def __init__(self) -> None:
        self.counts: Cache[tuple[bool, str | Pattern], int] = Cache(_WORDS)
        self.forms: Cache[Pattern, Forms] = Cache(_WORDS)
        self.compiled: Cache[bytes, tuple[Query, Query]] = Cache(_QUERY_BYTES)
        self.completions: Cache[tuple[bytes, str, int], list[WordCount]] = Cache(_COMPLETIONS)


class Findings(NamedTuple):
    """What one caller finds.

    ``holding`` makes the query by which the caller finds objects with an exact word, a stem or a word of a pattern.
    ``beginning`` gives, for each word that begins with certain letters, the number of objects in which the caller finds
    it.
    """

    holding: Callable[[str | Pattern, bool], Query]
    everything: Query
    beginning: Callable[[str], Mapping[str, int]]


class Rarity:
    """The weights of words for one caller. Only the patterns in ``ranked`` are ranked.

    ``engine`` is the searcher, and the number of documents that the engine counts.
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
        """Return the factor that turns the engine's score of a word or phrase in a field into this caller's score.

        ``words`` are the words of the phrase. A word has one weight for a caller, whether it is sought anywhere in an
        object or only in its metadata. ``counted_as`` gives, for each word, its stems in all languages. The numbers of
        objects with these stems are added up, because each object has one language.
        """
        exact = field in fields.EXACT
        own = sum(_idf(self._searcher.doc_freq(field, word), self._documents) for word in words)
        return sum(self.weight(stems, exact) for stems in counted_as or [[word] for word in words]) / own

    def by_forms(self, field: str, pattern: Pattern, unranked: Query) -> Query:
        """Make the query that ranks what a pattern finds in a field of exact words.

        Of the objects that the caller may see, ``unranked`` finds the same ones. It is returned if the pattern is not
        in ``ranked``. A hit scores as its best word does, and every word has the weight of the pattern. Hits that hold
        none of the commonest words come last.
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
    """Return whether the words of a pattern can be listed: it begins with letters, and has a wildcard."""
    return len(pattern.pieces) > 1 and not pattern.begins_open and pattern.pieces[0] != ""


def commonest(pattern: Pattern, counts: Mapping[str, int]) -> Forms:
    """Choose the commonest of the words that a pattern covers. Equally common words are taken in alphabetical order.

    ``counts`` gives, for each word that begins as the pattern does, the number of objects with it.
    """
    common = sorted(counts, key=lambda word: (-counts[word], word))
    few = common[:_LOOKED_THROUGH]
    covered = few if pattern.pieces[1:] == (Gap.RUN,) else filter(pattern.matches, few)
    words = tuple(itertools.islice(covered, MOST_FORMS + 1))
    return Forms(words[:MOST_FORMS], len(words) <= MOST_FORMS and len(few) == len(common))


def documents(searcher: tantivy.Searcher) -> int:
    """Return how many documents the engine's own weights count. Until a merge, that includes deleted documents."""
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
