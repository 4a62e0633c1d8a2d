"""How rare is a word among the objects that one caller may see? Scores count those objects alone.

The engine weighs a word by how many documents of the whole index hold it, so scores would tell of other people's
documents. A BM25 score is proportional to that weight (the inverse document frequency, IDF). So multiplying the score
by a factor replaces the weight exactly. One figure is still that of the whole index: the average length of its texts,
which the engine lets nobody replace.
"""

import json
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import tantivy
from tantivy import Query

from muniment.memories import Memory
from muniment.repository.index.contract import Visible
from muniment.repository.index.tantivy import fields
from muniment.repository.index.tantivy.order import count_of

_WORDS, _QUERY_BYTES = 1000, 150_000
"""How many words of one caller are remembered, and how many bytes of their queries as compiled for them."""

CallerKey: TypeAlias = tuple[bool, frozenset[int], frozenset[int], str]
"""What decides what a caller may see of one snapshot: all; or the ACLs that let them browse and read, and their key."""


class SeenCounts:
    """How many objects one caller finds by each word. A key of ``counts`` is whether the word is exact, and the word.
    ``compiled`` holds queries with the weights that follow from these counts, by the query as bytes.
    """

    def __init__(self) -> None:
        self.counts: Memory[tuple[bool, str], int] = Memory(_WORDS)
        self.compiled: Memory[bytes, tuple[Query, Query]] = Memory(_QUERY_BYTES)


class Rarity:
    """The weights of words for one caller, on one searcher that holds so many ``documents`` for the engine.

    ``holding`` makes the query by which the caller finds objects with a word, exact or as a stem; ``everything`` finds
    all that they may browse.
    """

    def __init__(
        self,
        searcher: tantivy.Searcher,
        documents: int,
        holding: Callable[[str, bool], Query],
        everything: Query,
        seen_counts: SeenCounts,
    ) -> None:
        self._searcher = searcher
        self._documents = documents
        self._holding = holding
        self._everything = everything
        self._seen_counts = seen_counts

    def factor(self, field: str, words: Sequence[str]) -> float:
        """Return the factor for the engine's score of a word or phrase of a field, which consists of these words.

        A word has one weight for a caller, whether it is found in all of an object or in its metadata.
        """
        exact = field in fields.EXACT
        everything = self._seen_counts.counts.answer((exact, ""), lambda: self._count(self._everything))
        own = sum(_idf(self._searcher.doc_freq(field, word), self._documents) for word in words)
        return sum(_idf(self._finding(word, exact), everything) for word in words) / own

    def _finding(self, word: str, exact: bool) -> int:
        return self._seen_counts.counts.answer((exact, word), lambda: self._count(self._holding(word, exact)))

    def _count(self, query: Query) -> int:
        return count_of(self._searcher.search(query, 1)) or 0


def documents(searcher: tantivy.Searcher, schema: tantivy.Schema) -> int:
    """Return how many documents the engine's own weights count: those that are deleted, too, until a merge."""
    position = Query.term_query(schema, fields.KEY, fields.POSITION, "basic")
    hits = searcher.search(position, 1, count=False).hits
    if not hits:
        return searcher.num_docs
    idf = json.loads(position.explain(searcher, hits[0][1]).to_json())["details"][1]
    return int(idf["details"][1]["value"])


def caller_key(visible: Visible) -> CallerKey:
    """Return what decides what a caller may see, apart from changes that the snapshot has missed."""
    return visible.everything, visible.browse_acls, visible.read_acls, visible.owner


def _idf(holding: int, documents: int) -> float:
    return math.log(1 + (max(documents, holding) - holding + 0.5) / (holding + 0.5))
