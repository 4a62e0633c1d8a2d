"""May the engine be asked this query?

The cost is counted in passes. One pass goes through all words of the index, as a word that begins with a wildcard does.
So a refusal says nothing about other people's objects.
"""

from collections.abc import Iterator
from typing import TypeAlias

from muniment.repository.refusals import BadQuery
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.aql.conditions import Between, Carries, Condition, HasValue, Like, OneOf, singles
from muniment.repository.search.aql.patterns import Pattern
from muniment.repository.search.aql.tree import Fulltext, Phrase, Term, Wild, words_of

MOST_PASSES = 4
"""The most passes of a query. In an index of a hundred thousand objects each takes some tenths of a second."""

MOST_WORDS = 4096
"""The most words, phrases and comparisons of a query, together with the synonyms of its words."""

_LARGE, _LARGEST = 100_000, 400_000
"""An index with more objects permits half of the passes and words, and one with more than ``_LARGEST`` a quarter."""

_OF_BEGINNING = (1.0, 1 / 8, 1 / 32, 1 / 128, 1 / 256)
"""The passes of a word that begins with so many letters and has a wildcard later."""

_JOINED = 8
"""How many times the passes of a beginning a word takes in a joined word, whose places the engine reads, too."""

_OF_SIMILAR, _OF_RANGE, _OF_VALUES = 1 / 256, 1 / 32, 1 / 8
"""The passes of a fuzzy word, of a range of texts, and of a comparison that reads every value of one property."""

_Leaf: TypeAlias = Term | Wild | Phrase | OneOf | Between | Like | HasValue | Carries


def check(condition: Condition | None, analyser: Analyser, documents: int) -> None:
    share = 1 if documents <= _LARGE else 2 if documents <= _LARGEST else 4
    parts = list(_leaves(condition))
    most_words, most_passes = MOST_WORDS // share, MOST_PASSES // share
    if len(parts) > most_words:
        raise BadQuery(f"The query has more than {most_words} words, phrases and comparisons.")
    wild_words = [[word for _, word in analyser.wild(part.text)] for part in parts if isinstance(part, Wild)]
    if sum(word.begins_open for words in wild_words for word in words) > most_passes:
        raise BadQuery(f"The query has too many words that begin with a wildcard: at most {most_passes} may.")
    passes = sum(map(_passes_of_words, wild_words)) + sum(map(_passes, parts))
    if passes > most_passes:
        raise BadQuery(
            "The wildcards of the query stand for too many words together: write more letters before them, or fewer "
            "of them."
        )


def _leaves(condition: Condition | None) -> Iterator[_Leaf]:
    for single in singles(condition):
        if isinstance(single, Fulltext):
            yield from words_of(single.keywords)
        else:
            yield single


def _passes_of_words(words: list[Pattern]) -> float:
    times = _JOINED if len(words) > 1 else 1
    return sum(min(1.0, times * _of_beginning(word)) for word in words if len(word.pieces) > 1 or word.begins_open)


def _of_beginning(word: Pattern) -> float:
    first = word.pieces[0]
    return _OF_BEGINNING[min(len(first) if isinstance(first, str) else 0, len(_OF_BEGINNING) - 1)]


def _passes(part: _Leaf) -> float:
    match part:
        case Term(fuzzy=True):
            return _OF_SIMILAR
        case Like(patterns=alternatives):
            return max((min(_OF_VALUES, _of_beginning(each)) for each in alternatives if each.pieces), default=0.0)
        case Between(low=str()) | Between(high=str()):
            return _OF_RANGE
        case _:
            return 0.0
