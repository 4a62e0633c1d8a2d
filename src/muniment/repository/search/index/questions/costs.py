"""May the engine be asked this query?

A pass goes through all words of the index, as one that begins with a wildcard does: so a refusal says nothing about
other people's objects.
"""

from collections.abc import Iterator
from typing import TypeAlias

from muniment.repository.refusals import BadQuery
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.aql.conditions import Between, Carries, Condition, HasValue, Like, OneOf, singles
from muniment.repository.search.aql.patterns import Pattern
from muniment.repository.search.aql.tree import Fulltext, Phrase, Term, Wild, words_of

MOST_PASSES = 4
"""In an index of a hundred thousand objects, a pass takes some tenths of a second."""

MOST_WORDS = 4096

_LARGE, _LARGEST = 100_000, 400_000
"""A larger index permits half of the passes and words, or a quarter."""

_OF_BEGINNING = (1.0, 1 / 8, 1 / 32, 1 / 128, 1 / 256)

_JOINED = 8
"""A beginning takes so many times its passes in a joined word, whose places the engine reads, too."""

_OF_SIMILAR, _OF_RANGE, _OF_VALUES = 1 / 256, 1 / 32, 1 / 8

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
