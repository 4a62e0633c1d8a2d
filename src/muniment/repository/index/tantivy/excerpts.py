"""Which part of a text shows best why it was found? Excerpts are found without splitting the whole text into words.

In a huge text, the beginnings of the query's words are searched for. Only the text at these places is split into words
and compared. Where several words match, the part with the most of them is shown; stop words hardly count. The excerpt
depends on the text and the query alone, never on other documents.
"""

import itertools
import operator
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

from muniment.memories import Memory
from muniment.repository.aql import patterns
from muniment.repository.aql.patterns import Pattern
from muniment.repository.aql.tree import Phrase, Term, Wild
from muniment.repository.index.tantivy.analysis import Analyser, Span
from muniment.repository.index.text import BREAK, normal

LENGTH = 200
"""The approximate length of an excerpt, in characters."""

_BEFORE = 60
_WINDOW = LENGTH - _BEFORE - 20
_EACH = 4
_STOP_WORD = 0.1
_FIRST_PIECE = 192
_PIECE = 65_536
_TRIES = 2000
_SPLIT_WHOLE = 200_000
_REMEMBERED = 200
_MORE = "…"
_WORD = re.compile(r"[^\W_]{1,600}")
_ASCII_GAP = re.compile(r"[\x00-/:-@\[-`{-\x7f]{1,40}(?=[A-Za-z0-9])")
_SENTENCE_END = re.compile(
    r"""[.!?\u3002\uff01\uff1f](?:(?<=[.!?])["')\]\u201d]*\s+(?=["'(\[\u201c]?[^\W\da-z_])|(?<=[^.!?]))"""
)


class Finder:
    """Finds where a query's leaves (words and phrases) match in a text. Any thread may use it."""

    def __init__(self, analyser: Analyser, leaves: Sequence[Term | Wild | Phrase]) -> None:
        self._analyser = analyser
        self._patterns = [_Pattern(analyser, leaf) for leaf in leaves]
        self._with_words = [pattern for pattern in self._patterns if pattern.words]

    def excerpt(self, text: str, leaves: Collection[int] | None = None, *, thorough: bool = True) -> str | None:
        """Cut out the part of a text where most of these leaves match; None when nothing matches.

        It is the first such part in the first piece of 64 KiB in which anything matches. ``leaves`` are places in the
        sequence of the finder's leaves; None means all of them. Unless ``thorough``, it looks at the first piece alone.
        """
        patterns = self._patterns_of(leaves)
        places = self._places(text, patterns, thorough) if patterns else []
        return cut(text, *_best(places)) if places else None

    def marks(self, excerpt: str) -> tuple[tuple[int, int], ...]:
        """Return where an excerpt holds any of the leaves: the first character of each match, and the one behind it."""
        begin = len(excerpt) - len(excerpt.lstrip(_MORE))
        text = normal(excerpt.strip(_MORE))
        breaks = [at for at, character in enumerate(text) if character == BREAK]
        matches = set[tuple[int, int]]()
        spans_of: dict[bool, list[Span]] = {}
        for pattern in self._patterns_of(None):
            if pattern.stemmed not in spans_of:
                spans_of[pattern.stemmed] = self._analyser.spans(text, pattern.stemmed)
            spans = spans_of[pattern.stemmed]
            matches |= {(spans[at].start, pattern.end(spans, at)) for at in pattern.starts(spans)}
        return tuple(
            (begin + start - bisect_left(breaks, start), begin + end - bisect_left(breaks, end))
            for start, end in _merge(sorted(matches))
        )

    def occurs(self, text: str, leaf: int) -> bool:
        """Say whether the leaf at this place in the sequence of the finder's leaves matches in a text."""
        pattern = self._patterns[leaf]
        return bool(pattern.words) and bool(self._places(text, [pattern], True))

    def _patterns_of(self, leaves: Collection[int] | None) -> list["_Pattern"]:
        if leaves is None:
            return self._with_words
        return [pattern for at in leaves if (pattern := self._patterns[at]).words]

    def _places(self, text: str, patterns: Sequence["_Pattern"], thorough: bool) -> list["_Place"]:
        """List the first matches of each pattern in the first piece of a text that has any; of one pattern the first.

        For one pattern, the beginning of a text is a piece of its own, because it often holds the first match.
        """
        tries, most = _TRIES, _EACH if len(patterns) > 1 else 1
        overlap = max([len(pattern.beginning) for pattern in patterns])
        begin, end = 0, _PIECE if len(patterns) > 1 else _FIRST_PIECE
        places: list[_Place] = []
        while begin < len(text) and tries > 0:
            flat = self._analyser.flatten(text[begin : end + overlap])
            matching = 0
            for pattern in patterns:
                beginning, places_left = pattern.beginning, most
                at = flat.find(beginning)
                while at >= 0 and places_left and tries > 0:
                    place = begin + at
                    if place == 0 or not text[place - 1].isalnum():
                        tries -= 1
                        if self._matches_at(pattern, text, place):
                            places.append((place, pattern))
                            places_left -= 1
                    at = flat.find(beginning, at + 1)
                matching += places_left < most
            if (begin and (places or not thorough)) or matching == len(patterns):
                break
            begin, end = end, end + _PIECE
        return places or (self._by_splitting(text[:_SPLIT_WHOLE], patterns) if thorough else [])

    def _matches_at(self, pattern: "_Pattern", text: str, at: int) -> bool:
        """Say whether the leaf matches at this place. For a single word, the answer is remembered."""
        if pattern.phrase:
            answer = _stands_at(pattern.phrase, text, at)
            if answer is not None:
                return answer
        word = _WORD.match(text, at) if len(pattern.words) == 1 else None
        if word is None:
            beginning = text[at : at + pattern.reach]
            return pattern.matches(self._analyser.spans(beginning, pattern.stemmed, pattern.places), 0)
        answer = pattern.answers.recall(word[0])
        if answer is None:
            spans = self._analyser.spans(word[0], pattern.stemmed)
            answer = pattern.answers.keep(word[0], pattern.matches(spans, 0))
        return answer

    def _by_splitting(self, text: str, patterns: Sequence["_Pattern"]) -> list["_Place"]:
        places: list[_Place] = []
        for pattern in patterns:
            spans = self._analyser.spans(text, pattern.stemmed)
            places += [(spans[at].start, pattern) for at in itertools.islice(pattern.starts(spans), 1)]
        return places


def beginning(text: str) -> str:
    """Cut out the beginning of a text."""
    return cut(text, 0, 0)


def cut(text: str, first: int, last: int) -> str:
    """Cut out the part of a text from a little before ``first`` to a little after ``last``, both counted in characters.

    It begins and ends with a sentence, if one begins or ends near by, else with a word. White space is collapsed.
    """
    # White space is rare enough that most texts need no more than the shorter piece.
    text_before = " ".join(text[max(0, first - 2 * _BEFORE) : first].split()) if first else ""
    if len(text_before) <= _BEFORE and first > 2 * _BEFORE:
        text_before = " ".join(text[max(0, first - 4 * _BEFORE) : first].split())
    gap = " " if first and text[first - 1].isspace() and text_before else ""
    if len(text_before) > _BEFORE:
        near = text_before[-_BEFORE:] + gap
        sentence = _SENTENCE_END.search(near + text[first])
        if sentence is not None and sentence.end() <= len(near):
            text_before, gap = near[sentence.end() :], ""
        else:
            near = near[: len(near) - len(gap)]
            text_before = _MORE + near[near.find(" ") + 1 :]
    elif first > 4 * _BEFORE:
        text_before = _MORE + text_before
    room = LENGTH - len(text_before)
    after = " ".join(text[first : first + room + _BEFORE].split())
    if len(after) <= room:
        after = " ".join(text[first : first + 4 * LENGTH].split())
    if len(after) > room:
        after = _ending(after, max(last - first, room // 2), room)
    elif len(text) > first + 4 * LENGTH and text[first + 4 * LENGTH :][:4096].strip():
        after += _MORE
    return (text_before + gap + after).replace(BREAK, "")


def _ending(text: str, least: int, most: int) -> str:
    """Cut a text at the last end of a sentence between two lengths, else at a word."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text, least, most + 2) if match.end() <= most]
    if ends:
        return text[: ends[-1]].rstrip()
    text = text[:most]
    return text[: text.rfind(" ")] + _MORE if " " in text else text + _MORE


def _best(places: list["_Place"]) -> tuple[int, int]:
    """Return the first and the last match of the window in which the most patterns match; of equal ones the first."""
    if len(places) == 1:
        return places[0][0], places[0][0]
    places.sort(key=operator.itemgetter(0))
    counts: dict[_Pattern, int] = dict.fromkeys([pattern for _, pattern in places], 0)
    best, window = 0.0, (0, 0)
    weight, end, last = 0.0, 0, len(places)
    for at, pattern in places:
        while end < last and places[end][0] <= at + _WINDOW:
            entering = places[end][1]
            if not counts[entering]:
                weight += entering.weight
            counts[entering] += 1
            end += 1
        if weight > best + _STOP_WORD / 2:
            best, window = weight, (at, places[end - 1][0])
            if end == last:
                break
        counts[pattern] -= 1
        if not counts[pattern]:
            weight -= pattern.weight
    return window


def _merge(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Unite ranges that overlap; they are in order."""
    merged_ranges: list[tuple[int, int]] = []
    for start, end in ranges:
        if merged_ranges and start < merged_ranges[-1][1]:
            merged_ranges[-1] = (merged_ranges[-1][0], max(end, merged_ranges[-1][1]))
        else:
            merged_ranges.append((start, end))
    return merged_ranges


class _Pattern:
    """A leaf as patterns of words, and the beginning of its first word, which is searched for in the text."""

    def __init__(self, analyser: Analyser, leaf: Term | Wild | Phrase) -> None:
        self.answers: Memory[str, bool] = Memory(_REMEMBERED)
        self.stemmed = isinstance(leaf, Term) and not leaf.fuzzy
        self.weight = _STOP_WORD if isinstance(leaf, Term) and analyser.is_stop_word(leaf.text) else 1.0
        self.reach = 4 * len(leaf.text) + 200
        self.phrase: Sequence[str] = ()
        text = normal(leaf.text)
        self.words: list[tuple[int, Sequence[Pattern]]]
        if isinstance(leaf, Wild):
            self.words = [(place, (pattern,)) for place, pattern in analyser.wild(leaf.text)]
            self.beginning = _literal_beginning(self.words[0][1][0]) if self.words else ""
            return
        self.words = [(span.place, (Pattern((span.word,)),)) for span in analyser.spans(text, self.stemmed)]
        if not self.words:
            return
        exact, stems = analyser.spans(text, stemmed=False), analyser.stem(leaf.text)
        self.beginning = exact[0].word
        if isinstance(leaf, Phrase) and [span.place for span in exact] == list(range(len(exact))):
            self.phrase = [span.word for span in exact]
        if isinstance(leaf, Term) and leaf.fuzzy:
            # A stem is the beginning of its forms, or nearly so.
            stem = Pattern((stems[0][1], patterns.Gap.RUN))
            self.words = [(self.words[0][0], (*patterns.similar(exact[0].word), stem)), *self.words[1:]]
            self.beginning = ""
        elif self.stemmed:
            pairs = zip(self.beginning, stems[0][1], strict=False)
            common_length = next((at for at, (a, b) in enumerate(pairs) if a != b), len(stems[0][1]))
            self.beginning = self.beginning[: max(common_length, 1)]
            if len(self.beginning) > 3:
                # Other forms of a word may end differently from its stem (happi, happy; love, loving).
                self.beginning = self.beginning.rstrip("aeiouy") or self.beginning

    @property
    def places(self) -> int:
        """How many places its words take up in a text."""
        return self.words[-1][0] - self.words[0][0] + 1

    def end(self, spans: Sequence[Span], at: int) -> int:
        """Return the character behind the words that match from this span on."""
        last = spans[at].place + self.words[-1][0] - self.words[0][0]
        return max(span.end for span in spans[at : at + self.places] if span.place <= last)

    def starts(self, spans: Sequence[Span]) -> Iterator[int]:
        """Say from which spans on the words match, one after the other."""
        first_words = self.words[0][1]
        for at, span in enumerate(spans):
            if any(_matches(span.word, pattern) for pattern in first_words) and self.matches(spans, at):
                yield at

    def matches(self, spans: Sequence[Span], at: int) -> bool:
        """Say whether the words match from this span on."""
        if at >= len(spans):
            return False
        first_place, start = self.words[0][0], spans[at].place
        word_at = {span.place: span.word for span in spans[at : at + self.places]}
        for place, alternatives in self.words:
            word = word_at.get(start + place - first_place)
            if word is None or not any(_matches(word, pattern) for pattern in alternatives):
                return False
        return True


_Place: TypeAlias = tuple[int, _Pattern]
"""Where a pattern matches in a text."""


def _stands_at(phrase: Sequence[str], text: str, at: int) -> bool | None:
    """Say whether these words stand one after the other at a place; None where a character beyond ASCII decides."""
    for number, word in enumerate(phrase):
        if number:
            gap = _ASCII_GAP.match(text, at)
            if gap is None:
                here = text[at : at + 1]
                return False if here.isascii() and here.isalnum() else None
            at = gap.end()
        end = at + len(word)
        here = text[at:end]
        if not here.isascii():
            return None
        if here.lower() != word:
            return False
        at = end
    following = text[at : at + 1]
    return not following.isalnum() if following.isascii() else None


def _matches(word: str, pattern: Pattern) -> bool:
    return pattern.pieces == (word,) or (len(pattern.pieces) > 1 and pattern.matches(word))


def _literal_beginning(pattern: Pattern) -> str:
    return pattern.pieces[0] if isinstance(pattern.pieces[0], str) else ""
