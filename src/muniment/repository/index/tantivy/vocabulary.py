"""Which words stand in the objects that a caller may see? Words are completed and corrected from these alone.

A word of the engine's dictionary counts only with the objects in which the caller finds it. A correction is taken from
the texts and metadata of such objects. So neither tells of a word that stands nowhere else.
"""

import difflib
from collections import Counter
from collections.abc import Iterator

import tantivy
from tantivy import Query

from muniment.repository.aql.values import keyword_values
from muniment.repository.index.contract import Visible, WordCount
from muniment.repository.index.tantivy import fields
from muniment.repository.index.tantivy.analysis import Analyser
from muniment.repository.index.tantivy.compile import Compiler
from muniment.repository.index.tantivy.order import both, count_of

SHORTEST, LONGEST = 2, 60
"""How long a beginning must be to be completed, or a word to be corrected, and how long it may be."""

_LOOKED_THROUGH = 20
_TEXT = 20_000
_LIKE = 0.7
_TWO_LETTERS_FROM = 6


class Vocabulary:
    """The words of one searcher, as one caller may see them."""

    def __init__(
        self,
        searcher: tantivy.Searcher,
        schema: tantivy.Schema,
        compiler: Compiler,
        analyser: Analyser,
        visible: Visible,
    ) -> None:
        self._searcher = searcher
        self._schema = schema
        self._compiler = compiler
        self._analyser = analyser
        self._visible = visible

    def completions(self, hits: Query, beginning: str, limit: int) -> list[WordCount]:
        """List the words that begin like this in the objects that a query finds, the most common first."""
        words = self._analyser.exact(beginning)
        if len(words) != 1 or not SHORTEST <= len(words[0][1]) <= LONGEST:
            return []
        counts = self.beginning(words[0][1], hits)
        common = sorted(((-count, word) for word, count in counts.items()), key=lambda each: each)
        return [WordCount(word, -count) for count, word in common if not self._analyser.is_stop_word(word)][:limit]

    def beginning(self, letters: str, hits: Query | None = None) -> Counter[str]:
        """Count the visible objects with each word that begins with these letters, or those of them that are hits."""
        counts = Counter[str]()
        for field, permitted_query in self._permitted_queries():
            among = permitted_query if hits is None else both(hits, permitted_query)
            counts.update({word: count for word, count in self._searcher.terms_with_prefix(field, letters, among) if count})
        return counts

    def correction(self, word: str) -> str | None:
        """Return the likeliest word in the place of one by which the caller finds nothing; None if there is none."""
        words = self._analyser.exact(word)
        if len(words) != 1 or not SHORTEST < len(words[0][1]) <= LONGEST:
            return None
        sought = words[0][1]
        if self._finds(word, exact=False):
            return None
        like = Counter(each for each in self._words_like(sought) if each != sought)
        nearest = difflib.get_close_matches(sought, like, n=_LOOKED_THROUGH, cutoff=_LIKE)
        ratio = difflib.SequenceMatcher(b=sought)

        def rank(candidate: str) -> tuple[float, int, str]:
            ratio.set_seq1(candidate)
            return round(ratio.ratio(), 2), like[candidate], candidate

        return max(nearest, key=rank, default=None)

    def _finds(self, word: str, *, exact: bool) -> bool:
        words = self._analyser.exact(word) if exact else self._analyser.stem(word)
        holding = self._compiler.holding(self._visible, words[0][1], exact)
        return bool(count_of(self._searcher.search(holding, 1)))

    def _words_like(self, sought: str) -> Iterator[str]:
        """List the words of some objects in which a word stands that differs from this one in a letter or two."""
        letters = 2 if len(sought) >= _TWO_LETTERS_FROM else 1
        for field, permitted_query in self._permitted_queries():
            similar = Query.fuzzy_term_query(self._schema, field, sought, letters, True, False)
            # The newest, because the engine's own order depends on everybody's documents.
            newest = self._searcher.search(
                both(similar, permitted_query), _LOOKED_THROUGH, count=False, order_by_field=fields.NUMBER
            )
            for _, address in newest.hits:
                stored = self._searcher.doc(address)
                source = fields.read_source(stored)
                for _, value in keyword_values(source.values, source.ids):
                    yield from self._split(value)
                if field == fields.ANYWHERE.words:
                    yield from self._split(fields.read_text(stored)[:_TEXT])

    def _split(self, text: str) -> Iterator[str]:
        yield from dict.fromkeys(word for _, word in self._analyser.exact(text))

    def _permitted_queries(self) -> list[tuple[str, Query]]:
        """List the fields with the words of what may be read, and of what may only be browsed, and these objects."""
        readable = (fields.ANYWHERE.words, self._compiler.readable(self._visible))
        only_browsable = self._compiler.only_browsable(self._visible)
        return [readable] if only_browsable is None else [readable, (fields.METADATA.words, only_browsable)]
