"""Which sequences of words match a query's words and phrases, and where in a text may they begin?"""

import re
import string
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar, assert_never

from muniment.repository.search.analysis import variants
from muniment.repository.search.analysis.analysis import Analyser, Span, Way
from muniment.repository.search.analysis.text import FlatText
from muniment.repository.search.aql import patterns
from muniment.repository.search.aql.patterns import Pattern
from muniment.repository.search.aql.tree import Phrase, Term, Wild

STOP_WORD = 0.1
"""The weight of a stop word in an excerpt, where any other word has 1."""

_NEXT_WORD = r"(?:[a-z0-9]|[^\x00-\x7f])*+[\x00-/:-@\[-`{-\x7f]++"
_ALPHANUMERIC = frozenset(string.ascii_lowercase + string.digits)
K = TypeVar("K")


class _Leaf(NamedTuple):
    """A leaf of a query: its number, its weight in an excerpt, and the most characters that it may match."""

    number: int
    weight: float
    reach: int


class Kind(NamedTuple):
    """Which form of a text's words a pattern needs: exact words, or stems of a language (empty: the analyser's own)."""

    stemmed: bool
    language: str


class _Sought(NamedTuple):
    """A beginning, and the letter with which the next word must begin, if any."""

    beginning: str
    inside: bool
    following: str


class Beginning:
    """Patterns that are sought at the same places of a text."""

    def __init__(self, sought: "_Sought", patterns: Sequence["WordSequence"]) -> None:
        self.sought, self.patterns = sought, patterns
        beginning, inside, following = sought
        self._is_plain = beginning.isascii() and beginning.isalnum() and not inside and not following

    def candidates(self, flat: FlatText, start: int) -> Iterator[int]:
        """Yield the places in a folded text where ASCII letters say that a word may begin, and the next word."""
        if not self._is_plain:
            for found in (self._wide if flat.blurred else self._narrow).finditer(flat.text, start):
                yield found.start()
            return
        text, beginning = flat.text, self.sought.beginning
        at = text.find(beginning, start)
        while at >= 0:
            if not at or text[at - 1] not in _ALPHANUMERIC:
                yield at
            at = text.find(beginning, at + len(beginning))

    @cached_property
    def _wide(self) -> re.Pattern[str]:
        beginning = re.escape(self.sought.beginning)
        return re.compile(beginning if self.sought.inside else f"{beginning}(?<![a-z0-9]{beginning})")

    @cached_property
    def _narrow(self) -> re.Pattern[str]:
        """It also looks at the next word. A folded text that is ``blurred`` may show it wrongly."""
        following = self.sought.following
        return re.compile(self._wide.pattern + _NEXT_WORD + following) if following else self._wide


class WordSequence:
    """A sequence of words that matches a leaf; a text is searched for ``beginning`` first.

    Each item of ``words`` is a place, and wildcard patterns of which one must match there. With ``inside``, a match may
    begin inside a word. ``phrase`` holds the words of a phrase without gaps.
    """

    def __init__(
        self,
        leaf: _Leaf,
        words: Sequence[tuple[int, Sequence[Pattern]]],
        beginning: str,
        kind: Kind = Kind(stemmed=False, language=""),  # noqa: B008 - it does not change
        *,
        inside: bool = False,
    ) -> None:
        self.leaf, self.weight, self.reach = leaf
        self.words, self.beginning, self.kind = words, beginning, kind
        # No stemmer changes the first letter of a word in ASCII.
        following = str(words[1][1][0].pieces[0])[:1] if kind.stemmed and words[1:] and words[1][0] == 1 else ""
        is_told = not inside and beginning and beginning.isascii() and following.isascii()
        self.sought = _Sought(beginning, inside, following if is_told else "")
        first_words = words[0][1]
        self.literals = frozenset([str(each.pieces[0]) for each in first_words if len(each.pieces) == 1])
        self.wild = [each for each in first_words if len(each.pieces) > 1]
        self.phrase: Sequence[str] = ()

    @cached_property
    def _is_wild(self) -> Callable[[str], bool]:
        return patterns.matcher(self.wild)

    @property
    def places(self) -> int:
        return self.words[-1][0] - self.words[0][0] + 1

    def end(self, spans: Sequence[Span], at: int) -> int:
        last = spans[at].place + self.words[-1][0] - self.words[0][0]
        return max(span.end for span in spans[at : at + self.places] if span.place <= last)

    def begins_with(self, word: str) -> bool:
        return word in self.literals or bool(self.wild and word.startswith(self.beginning) and self._is_wild(word))

    def matches(self, spans: Sequence[Span], at: int) -> bool:
        if at >= len(spans):
            return False
        first_place, start = self.words[0][0], spans[at].place
        word_at = {span.place: span.word for span in spans[at : at + self.places]}
        for place, alternatives in self.words:
            word = word_at.get(start + place - first_place)
            if word is None or not any(_matches(word, pattern) for pattern in alternatives):
                return False
        return True


def group_by(patterns: Sequence[WordSequence], key: Callable[[WordSequence], K]) -> dict[K, list[WordSequence]]:
    groups: dict[K, list[WordSequence]] = {}
    for pattern in patterns:
        groups.setdefault(key(pattern), []).append(pattern)
    return groups


def by_first_word(words: set[str], patterns: Sequence[WordSequence]) -> dict[str, list[WordSequence]]:
    beginners: dict[str, list[WordSequence]] = {}
    for pattern in patterns:
        others = {word for word in words if pattern.begins_with(word)} if pattern.wild else words & pattern.literals
        for word in others:
            beginners.setdefault(word, []).append(pattern)
    return beginners


def sequences(analyser: Analyser, leaf: Term | Wild | Phrase, number: int) -> list[WordSequence]:
    about = _Leaf(number, 1.0, 4 * len(leaf.text) + 200)
    match leaf:
        case Wild():
            words = analyser.wild(leaf.text)
            each_word = [(place, (pattern,)) for place, pattern in words]
            return [WordSequence(about, each_word, _literal_beginning(words[0][1]))] if words else []
        case Phrase():
            exact = analyser.exact(leaf.text)
            if not exact:
                return []
            pattern = WordSequence(about, _literal(exact), exact[0][1])
            if [place for place, _ in exact] == list(range(len(exact))):
                pattern.phrase = [word for _, word in exact]
            return [pattern]
        case Term():
            if analyser.is_stop_word(leaf.text):
                about = about._replace(weight=STOP_WORD)
            ways = analyser.ways(leaf.text)
            term_patterns = [_of_way(about, way) for way in ways]
            if ways and (thousands := variants.thousands(ways[0].words[0][1])):
                kind = Kind(True, ways[0].language)
                term_patterns.append(WordSequence(about, _literal([*enumerate(thousands)]), thousands[0], kind))
            return [*term_patterns, _fuzzy(about, analyser, leaf, ways[0])] if leaf.fuzzy and ways else term_patterns
        case _:
            assert_never(leaf)


def _of_way(about: _Leaf, way: Way) -> WordSequence:
    if not way.stems:
        return WordSequence(about, _literal(way.words), way.beginning)
    pairs = zip(way.beginning, way.words[0][1], strict=False)
    common_length = next((at for at, (a, b) in enumerate(pairs) if a != b), len(way.words[0][1]))
    beginning = way.beginning[: max(common_length, 1)]
    if len(beginning) > 3:
        # Other forms of a word may end differently from its stem (happi, happy; love, loving).
        beginning = beginning.rstrip("aeiouy") or beginning
    return WordSequence(about, _literal(way.words), beginning, Kind(True, way.language), inside=way.has_bigrams)


def _fuzzy(about: _Leaf, analyser: Analyser, term: Term, way: Way) -> WordSequence:
    exact = analyser.exact(term.text)
    # A stem is the beginning of its forms, or nearly so.
    stem = Pattern((way.words[0][1], patterns.Gap.RUN))
    return WordSequence(about, [(exact[0][0], (*patterns.similar(exact[0][1]), stem)), *_literal(exact[1:])], "")


def _literal(words: Sequence[tuple[int, str]]) -> list[tuple[int, Sequence[Pattern]]]:
    return [(place, (Pattern((word,)),)) for place, word in words]


def _matches(word: str, pattern: Pattern) -> bool:
    return pattern.pieces == (word,) or (len(pattern.pieces) > 1 and pattern.matches(word))


def _literal_beginning(pattern: Pattern) -> str:
    return pattern.pieces[0] if isinstance(pattern.pieces[0], str) else ""
