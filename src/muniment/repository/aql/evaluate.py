"""Does one object meet a query? The answer is slow and simple; tests compare every index engine with it.

Explanations use ``compares`` for the conditions that concern properties alone.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, assert_never

from muniment.repository.aql import patterns
from muniment.repository.aql.conditions import (
    Between,
    BoundQuery,
    Carries,
    Condition,
    ConditionSet,
    HasValue,
    Like,
    OneOf,
    Unless,
)
from muniment.repository.aql.patterns import Pattern
from muniment.repository.aql.tree import (
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
from muniment.repository.aql.values import keyword_values
from muniment.repository.folding import COMPARED, fold

Words = list[tuple[int, str]]
"""Words with their places in a text."""


class Way(Protocol):
    """A way to match a term: an object matches if it holds these words one after the other."""

    @property
    def stems(self) -> bool:
        """Whether the words are stems."""

    @property
    def words(self) -> Words:
        """The words."""


class Analyser(Protocol):
    """Splits text into words. This module gets the analyser of the index, so both agree on what a word is."""

    def exact(self, text: str) -> Words:
        """Split text into words without case and accents, not reduced to stems."""

    def exact_all(self, text: str) -> Sequence[Words]:
        """Split text as ``exact`` does. The words that signs or blanks divide follow, each by itself as one word."""

    def asking(self, locale: str) -> "Analyser":
        """Return the analyser for keywords in a language, or this analyser if the language changes nothing."""

    def language_of(self, values: Mapping[str, Sequence[Value]], text: str) -> str:
        """Return the language of an object with these values and this text.

        Returns an empty text for the index's main language, and for a language that the index does not have.
        """

    def stem_all(self, text: str, language: str = "") -> Sequence[Words]:
        """Split a text and each variant of it into words reduced to stems. The text is in the language ``language``."""

    def ways(self, text: str) -> Sequence[Way]:
        """List the ways in which a term is found. Any of them is enough."""

    def wild(self, text: str) -> list[tuple[int, Pattern]]:
        """Split text with wildcards into patterns of words, with their places."""

    def content_words(self, words: Sequence[Term]) -> Sequence[Term]:
        """Return the words that are no stop words, or all words if all are stop words.

        Of several words with the same stems, only the first is returned.
        """


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


def compares(condition: Condition, acl: int, values: Mapping[str, Sequence[Value]]) -> bool:
    """Return whether an object with this ACL and these values meets a condition without keywords."""
    return _Properties(acl, values).meets(condition)


class _Properties:
    """The ACL and the properties of one object. No keywords match it, because its text is not given."""

    def __init__(self, acl: int, values: Mapping[str, Sequence[Value]]) -> None:
        self._acl = acl
        self._values = values

    def meets(self, condition: Condition) -> bool:
        match condition:
            case ConditionSet():
                results = map(self.meets, condition.conditions)
                return all(results) if condition.operator == "AND" else any(results)
            case Unless():
                return not self.meets(condition.condition)
            case Carries():
                return self._acl in condition.acls
            case Fulltext():
                return condition.keywords is not None and self.finds(condition.keywords)
            case HasValue() | Like() | Between() | OneOf():
                return self._compares(condition)
            case _:
                assert_never(condition)

    def _compares(self, condition: HasValue | Like | Between | OneOf) -> bool:
        match condition:
            case HasValue():
                return bool(self._values.get(condition.name))
            case Like():
                texts = [value for value in self._folded_values(condition.name) if isinstance(value, str)]
                return any(pattern.matches(text) for text in texts for pattern in condition.patterns)
            case Between():
                return any(_between(condition, value) for value in self._folded_values(condition.name))
            case OneOf(written=True):
                return any(_as_written(value) in condition.values for value in self._values.get(condition.name, ()))
            case OneOf():
                sought = list(map(_fold, condition.values))
                return any(value in sought for value in self._folded_values(condition.name))
            case _:
                assert_never(condition)

    def _folded_values(self, name: str) -> list[Value]:
        return list(map(_fold, self._values.get(name, ())))

    def finds(self, _keywords: Keywords) -> bool:
        """Return whether the object meets keywords."""
        return False


class _Object(_Properties):
    """The parts of one object that a caller may see."""

    def __init__(
        self, acl: int, values: Mapping[str, Sequence[Value]], text: str, analyser: Analyser, ids: Collection[str]
    ) -> None:
        super().__init__(acl, values)
        self._analyser = analyser
        metadata = [value for _, value in keyword_values(values, ids)]
        self._exact = (
            [words for value in metadata for words in analyser.exact_all(value)],
            analyser.exact_all(text),
        )
        language = analyser.language_of(values, text)
        self._stems = (
            [stems for value in metadata for stems in analyser.stem_all(value, language)],
            analyser.stem_all(text, language),
        )

    def finds(self, keywords: Keywords) -> bool:
        match keywords:
            case Both():
                return all(map(self.finds, keywords.parts))
            case Either() | AnyWord():
                return any(map(self.finds, self._choices(keywords)))
            case Without():
                return not self.finds(keywords.part)
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


def _as_written(value: Value) -> Value:
    return value[:COMPARED] if isinstance(value, str) else value


def _fold(value: Value) -> Value:
    return fold(value) if isinstance(value, str) else value


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


def _between(condition: Between, value: Value) -> bool:
    low, high = (None if bound is None else _fold(bound) for bound in (condition.low, condition.high))
    bounds = [bound for bound in (low, high) if bound is not None]
    if any(isinstance(bound, str) != isinstance(value, str) for bound in bounds):
        return False
    key = _sort_key(value)
    above = low is None or (key > _sort_key(low) if condition.low_open else key >= _sort_key(low))
    below = high is None or (key < _sort_key(high) if condition.high_open else key <= _sort_key(high))
    return above and below


def _sort_key(value: Value) -> tuple[str, float]:
    return (value, 0) if isinstance(value, str) else ("", value)
