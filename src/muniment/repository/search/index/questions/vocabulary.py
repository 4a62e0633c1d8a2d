"""Which words are in the objects that a caller may see?

A completion is a word by which the caller finds an object; a correction is from texts and metadata of objects that the
caller finds by a similar word.
"""

import heapq
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from muniment.repository.search.analysis import letters
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.analysis.text import BREAK
from muniment.repository.search.aql.patterns import JOINED
from muniment.repository.search.aql.tree import Term
from muniment.repository.search.aql.values import keyword_values
from muniment.repository.search.index.contract import Correction, Visible, WordCount
from muniment.repository.search.index.questions import layout
from muniment.repository.search.index.questions.compile import Compiler
from muniment.repository.search.index.questions.engine import Queries, Query, Ranking, Searcher
from muniment.repository.search.index.questions.rarity import Rarity

SHORTEST, LONGEST = 2, 60
"""Letters of a completed beginning, or of a corrected word, which has more than ``SHORTEST``."""

_LOOKED_THROUGH = 20
_WEIGHED = 100
"""The commonest words of a text: each needs a question to the engine."""

_TEXT = 20_000
_MOST_CORRECTIONS = 4
_TWO_LETTERS_FROM = 6


class Vocabulary:
    """What one caller may see."""

    def __init__(
        self,
        engine: tuple[Searcher, Ranking, Queries],
        compiler: Compiler,
        analyser: Analyser,
        visible: Visible,
    ) -> None:
        self._searcher, self._ranking, self._queries = engine
        self._compiler = compiler
        self._analyser = analyser
        self._visible = visible

    def completions(self, hits: Query, beginning: str, limit: int) -> list[WordCount]:
        sought = self._analyser.exact(beginning)
        if len(sought) != 1 or not SHORTEST <= len(sought[0][1]) <= LONGEST:
            return []
        counts = self.beginning(sought[0][1], hits)
        common = sorted((-count, word) for word, count in counts.items())
        words = (
            (word, -count) for count, word in common if not (word.endswith(JOINED) or self._analyser.is_stop_word(word))
        )
        return [WordCount(letters.written(word), count) for word, count in itertools.islice(words, limit)]

    def beginning(self, letters: str, hits: Query | None = None) -> Counter[str]:
        """With ``hits``, an object counts only if this query also finds it."""
        counts = Counter[str]()
        for field, permitted_query in self._permitted_queries():
            among = permitted_query if hits is None else self._queries.all_of([hits, permitted_query])
            counts.update({word: count for word, count in self._searcher.beginning(field, letters, among) if count})
        return counts

    def corrections(self, word: str) -> list[Correction]:
        exact = self._analyser.exact(word)
        if len(exact) != 1 or not SHORTEST < len(exact[0][1]) <= LONGEST:
            return []
        sought = exact[0][1]
        if self._searcher.count(self._compiler.matching_term(self._visible, Term(word))):
            return []
        found: dict[str, int] = {}
        for most in (1, 2) if len(sought) >= _TWO_LETTERS_FROM else (1,):
            words = (each for each in self._words_like(sought, most) if abs(len(each) - len(sought)) <= most)
            like = Counter(words)
            near = {each: distance for each in like if 0 < (distance := differing(each, sought)) <= most}
            likely = sorted(near, key=lambda each: (near[each], -like[each], each))
            found |= {each: near[each] for each in likely[:_MOST_CORRECTIONS] if each not in found}
        corrections = [
            Correction(
                letters.written(each),
                distance,
                self._searcher.count(self._compiler.holding(self._visible, each, exact=True)),
            )
            for each, distance in found.items()
        ]
        return sorted(corrections, key=lambda each: (each.distance, -each.hits, each.word))

    def telling(self, text: str, key: str, rarity: Rarity, limit: int) -> list[str]:
        itself = self._queries.all_of([self._compiler.readable(self._visible), self._queries.term(layout.KEY, key)])
        hits, number = self._searcher.search(itself, 1, count=True)
        own = number or 0
        language = self._searcher.read(hits[0][1]).source().language if hits else ""
        counts, forms = Counter[str](), defaultdict[str, Counter[str]](Counter)
        for span in self._analyser.spans(text, stemmed=True, language=language):
            counts[span.word] += 1
            forms[span.word][text[span.start : span.end].replace(BREAK, "")] += 1
        weights: dict[str, float] = {}
        for stem, count in itertools.islice(self._telling_stems(counts, forms), _WEIGHED):
            if rarity.finding(stem, exact=False) > own:
                weights[stem] = (1 + math.log(count)) * rarity.weight([stem], exact=False)
        best = set(heapq.nlargest(limit, weights, key=weights.__getitem__))
        return [forms[stem].most_common(1)[0][0] for stem in counts if stem in best]

    def _telling_stems(self, counts: Counter[str], forms: Mapping[str, Counter[str]]) -> Iterator[tuple[str, int]]:
        for stem, count in counts.most_common():
            word = forms[stem].most_common(1)[0][0]
            one_letter = word.isascii() and len(word) < SHORTEST
            if len(word) <= LONGEST and not one_letter and not self._analyser.is_stop_word(word):
                yield stem, count

    def _words_like(self, sought: str, letters: int) -> Iterator[str]:
        for field, permitted_query in self._permitted_queries():
            similar = self._queries.similar(field, sought, letters)
            # These are the newest objects, because the engine's own order depends on everybody's documents.
            among = self._queries.all_of([similar, permitted_query])
            newest, _ = self._ranking.by_counter(among, 0, _LOOKED_THROUGH, total=False, descending=True)
            for _, address in newest:
                stored = self._searcher.read(address)
                source = stored.source()
                for _, value in keyword_values(source.values, source.ids):
                    yield from self._split(value)
                if field == layout.ANYWHERE.words:
                    yield from self._split(stored.text()[:_TEXT])

    def _split(self, text: str) -> Iterator[str]:
        yield from dict.fromkeys(word for _, word in self._analyser.exact(text))

    def _permitted_queries(self) -> list[tuple[str, Query]]:
        """Objects that the caller may read come first, then those they may only browse, if any."""
        readable = (layout.ANYWHERE.words, self._compiler.readable(self._visible))
        only_browsable = self._compiler.only_browsable(self._visible)
        return [readable] if only_browsable is None else [readable, (layout.METADATA.words, only_browsable)]


def differing(word: str, other: str) -> int:
    """Count letters: one more, less or other, or two neighbours exchanged."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for at, letter in enumerate(word):
        row = [at + 1]
        for place, sign in enumerate(other):
            steps = min(last[place + 1] + 1, row[place] + 1, last[place] + (letter != sign))
            if at and place and letter == other[place - 1] and word[at - 1] == sign:
                steps = min(steps, before[place - 1] + 1)
            row.append(steps)
        before, last = last, row
    return last[-1]
