"""Does one object meet a query? The answer is slow and simple; every index engine is compared with it."""

from collections.abc import Collection, Mapping, Sequence
from typing import assert_never

import tantivy

from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.aql import patterns
from muniment.repository.search.aql.conditions import BoundQuery
from muniment.repository.search.aql.evaluate import Properties
from muniment.repository.search.aql.patterns import JOINED, Pattern
from muniment.repository.search.aql.tree import (
    AnyWord,
    Both,
    Either,
    Fulltext,
    Keywords,
    Phrase,
    Term,
    Value,
    Wild,
    Without,
)
from muniment.repository.search.aql.values import keyword_values

Words = list[tuple[int, str]]
"""Words with their places in a text."""


def exact_words(analyser: Analyser, text: str) -> list[Words]:
    """Split a text into folded words; each joined word follows by itself, with its mark."""
    text = analyser.form(text)
    return [_split(each, analyser.exact_words) for each in (text, *(one + JOINED for one in analyser.joined(text)))]


def stems(analyser: Analyser, text: str, language: str = "") -> list[Words]:
    """Split a text, and each of its variants, into stems."""
    text = analyser.form(text)
    return [_split(each, analyser.stems) for each in analyser.spellings(text, analyser.joined(text), language)]


def _split(text: str, words: tantivy.TextAnalyzer) -> Words:
    return [(each.position, each.text) for each in words.pre_tokenize(text).tokens]


def evaluate(
    query: BoundQuery,
    type_name: str,
    acl: int,
    values: Mapping[str, Sequence[Value]],
    text: str,
    may_read: bool,
    analyser: Analyser,
    ids: Collection[str] = (),
    *,
    former: bool = False,
) -> bool:
    """Return whether an object that the caller may browse meets a bound query.

    ``acl``, ``values`` and ``text`` are the object's; a match in the text counts only if the caller ``may_read`` it.
    ``ids`` names the properties of kind id: keywords do not look at their values. ``former`` says whether the object is
    a former version.
    """
    if query.types and type_name not in query.types:
        return False
    if former and not query.all_versions:
        return False
    if query.condition is None:
        return True
    return _Object(acl, values, text if may_read else "", analyser.asking(query.locale), ids).meets(query.condition)


class _Object(Properties):
    """The parts of one object that a caller may see."""

    def __init__(
        self, acl: int, values: Mapping[str, Sequence[Value]], text: str, analyser: Analyser, ids: Collection[str]
    ) -> None:
        super().__init__(acl, values)
        self._analyser = analyser
        metadata = [value for _, value in keyword_values(values, ids)]
        self._exact = (
            [words for value in metadata for words in exact_words(analyser, value)],
            exact_words(analyser, text),
        )
        language = analyser.language_of(values, text)
        self._stems = (
            [words for value in metadata for words in stems(analyser, value, language)],
            stems(analyser, text, language),
        )

    def finds(self, fulltext: Fulltext) -> bool:
        return fulltext.keywords is not None and self._finds(fulltext.keywords)

    def _finds(self, keywords: Keywords) -> bool:
        match keywords:
            case Both():
                return all(map(self._finds, keywords.parts))
            case Either() | AnyWord():
                return any(map(self._finds, self._choices(keywords)))
            case Without():
                return not self._finds(keywords.part)
            case Phrase():
                return _occur(_literal(self._analyser.exact(keywords.text)), self._exact)
            case Wild():
                return _occur(self._analyser.wild(keywords.text), self._exact)
            case Term():
                return self._matches_term(keywords)
            case _:
                assert_never(keywords)

    def _choices(self, keywords: Either | AnyWord) -> Sequence[Keywords]:
        if isinstance(keywords, Either):
            return keywords.parts
        if keywords.needed:
            return (Both(keywords.needed),)
        return *self._analyser.content_words(keywords.words), keywords.first

    def _matches_term(self, term: Term) -> bool:
        words = self._analyser.exact(term.text) if term.fuzzy else []
        similar = patterns.similar(words[0][1]) if len(words) == 1 else ()
        return any(
            _occur(_literal(way.words), self._stems if way.stems else self._exact)
            for way in self._analyser.ways(term.text)
        ) or any(_occur([(0, pattern)], self._exact) for pattern in similar)


def _literal(words: Words) -> list[tuple[int, Pattern]]:
    return [(place, Pattern((word,))) for place, word in words]


def _occur(sought: Sequence[tuple[int, Pattern]], parts: Sequence[Sequence[Words]]) -> bool:
    """Return whether words that match these patterns occur in one of the texts, at the distances of the query."""
    if not sought:
        return False
    first_place = sought[0][0]
    for texts in parts:
        for text in texts:
            words = dict(text)
            for start, _ in text:
                pairs = [(pattern, words.get(start + at - first_place)) for at, pattern in sought]
                if all(word is not None and pattern.matches(word) for pattern, word in pairs):
                    return True
    return False
