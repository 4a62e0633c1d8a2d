"""Which part of a text is around the first match? Excerpts are found without splitting the whole text into words.

In a huge text, the beginnings of the query's words are searched for. Only the text at these places is split into words
and compared. The excerpt depends on the text and the query alone, never on other documents.
"""

import re
from collections.abc import Collection, Sequence

from muniment.memories import Memory
from muniment.repository.aql import patterns
from muniment.repository.aql.patterns import Pattern
from muniment.repository.aql.tree import Phrase, Term, Wild
from muniment.repository.index.tantivy.analysis import Analyser, Span
from muniment.repository.index.text import BREAK, normal

LENGTH = 200
"""The approximate length of an excerpt, in characters."""

_BEFORE = 60
_FIRST_PIECE = 192
_PIECE = 65_536
_TRIES = 2000
_SPLIT_WHOLE = 200_000
_REMEMBERED = 200
_MORE = "…"
_WORD = re.compile(r"[^\W_]{1,600}")


class Finder:
    """Finds the first match of a query's leaves (words and phrases) in a text. Any thread may use it."""

    def __init__(self, analyser: Analyser, leaves: Sequence[Term | Wild | Phrase]) -> None:
        self._analyser = analyser
        self._patterns = [_Pattern(analyser, leaf) for leaf in leaves]

    def excerpt(self, text: str, leaves: Collection[int] | None = None, *, thorough: bool = True) -> str | None:
        """Cut out the part of a text around the first match of any of these leaves; None when nothing matches.

        ``leaves`` are places in the sequence of the finder's leaves; None means all of them. Unless ``thorough``, it
        looks at the first 64 KiB alone.
        """
        chosen = self._patterns if leaves is None else [self._patterns[at] for at in leaves]
        patterns = [pattern for pattern in chosen if pattern.words]
        place = self._first_place(text, patterns, thorough) if patterns else None
        return None if place is None else cut(text, place)

    def occurs(self, text: str, leaf: int) -> bool:
        """Say whether the leaf at this place in the sequence of the finder's leaves matches in a text."""
        pattern = self._patterns[leaf]
        return bool(pattern.words) and self._first_place(text, [pattern], True) is not None

    def _first_place(self, text: str, patterns: Sequence["_Pattern"], thorough: bool) -> int | None:
        tries = _TRIES
        overlap = max(len(pattern.beginning) for pattern in patterns)
        begin, end = 0, _FIRST_PIECE
        while begin < len(text):
            flat = self._analyser.flattened(text[begin : end + overlap])
            places = []
            for pattern in patterns:
                at, tries = self._in_piece(pattern, text, begin, flat, tries)
                if at is not None:
                    places.append(at)
            if places:
                return min(places)
            if tries <= 0:
                break
            if begin and not thorough:
                break
            begin, end = end, end + _PIECE
        return self._by_splitting(text[:_SPLIT_WHOLE], patterns) if thorough else None

    def _in_piece(self, pattern: "_Pattern", text: str, begin: int, flat: str, tries: int) -> tuple[int | None, int]:
        at = flat.find(pattern.beginning)
        while at >= 0 and tries > 0:
            if begin + at == 0 or not text[begin + at - 1].isalnum():
                tries -= 1
                if self._matches_at(pattern, text, begin + at):
                    return begin + at, tries
            at = flat.find(pattern.beginning, at + 1)
        return None, tries

    def _matches_at(self, pattern: "_Pattern", text: str, at: int) -> bool:
        """Say whether the leaf matches at this place. For a single word, the answer is remembered."""
        word = _WORD.match(text, at) if len(pattern.words) == 1 else None
        if word is None:
            return pattern.matches(self._analyser.spans(text[at : at + pattern.reach], pattern.stemmed), 0)
        return pattern.answers.answer(
            word[0], lambda: pattern.matches(self._analyser.spans(word[0], pattern.stemmed), 0)
        )

    def _by_splitting(self, text: str, patterns: Sequence["_Pattern"]) -> int | None:
        places = []
        for pattern in patterns:
            spans = self._analyser.spans(text, pattern.stemmed)
            places += [span.start for at, span in enumerate(spans) if pattern.matches(spans, at)][:1]
        return min(places, default=None)


def beginning(text: str) -> str:
    """Cut out the beginning of a text."""
    return cut(text, 0)


def cut(text: str, at: int) -> str:
    """Cut out the part of a text around the character ``at``, at whole words, with white space collapsed."""
    before = " ".join(text[max(0, at - 4 * _BEFORE) : at].split()) if at else ""
    gap = " " if at and text[at - 1].isspace() and before else ""
    if len(before) > _BEFORE:
        before = before[-_BEFORE:]
        before = _MORE + before[before.find(" ") + 1 :] if " " in before else _MORE + before
    elif at > 4 * _BEFORE:
        before = _MORE + before
    room = LENGTH - len(before)
    after = " ".join(text[at : at + room + _BEFORE].split())
    if len(after) <= room:
        after = " ".join(text[at : at + 4 * LENGTH].split())
    if len(after) > room:
        after = after[:room]
        after = after[: after.rfind(" ")] + _MORE if " " in after else after + _MORE
    elif len(text) > at + 4 * LENGTH and text[at + 4 * LENGTH :][:4096].strip():
        after += _MORE
    return (before + gap + after).replace(BREAK, "")


class _Pattern:
    """A leaf as patterns of words, and the beginning of its first word, which is searched for in the text."""

    def __init__(self, analyser: Analyser, leaf: Term | Wild | Phrase) -> None:
        self.answers: Memory[str, bool] = Memory(_REMEMBERED)
        self.stemmed = isinstance(leaf, Term) and not leaf.fuzzy
        self.reach = 4 * len(leaf.text) + 200
        text = normal(leaf.text)
        self.words: list[tuple[int, Sequence[Pattern]]]
        if isinstance(leaf, Wild):
            self.words = [(place, (pattern,)) for place, pattern in analyser.wild(leaf.text)]
            self.beginning = _literal_beginning(self.words[0][1][0]) if self.words else ""
            return
        self.words = [(span.place, (Pattern((span.word,)),)) for span in analyser.spans(text, self.stemmed)]
        if not self.words:
            return
        exact, stems = analyser.spans(text, stemmed=False), analyser.stemmed(leaf.text)
        self.beginning = exact[0].word
        if isinstance(leaf, Term) and leaf.fuzzy:
            # A stem is the beginning of its forms, or nearly so.
            stem = Pattern((stems[0][1], patterns.Gap.RUN))
            self.words = [(self.words[0][0], (*patterns.similar(exact[0].word), stem)), *self.words[1:]]
            self.beginning = ""
        elif self.stemmed:
            pairs = zip(self.beginning, stems[0][1], strict=False)
            shared = next((at for at, (a, b) in enumerate(pairs) if a != b), len(stems[0][1]))
            self.beginning = self.beginning[: max(shared, 1)]
            if len(self.beginning) > 3:
                # Other forms of a word may end differently from its stem (happi, happy; love, loving).
                self.beginning = self.beginning.rstrip("aeiouy") or self.beginning

    def matches(self, spans: Sequence[Span], at: int) -> bool:
        """Say whether the words match from this span on."""
        if at >= len(spans):
            return False
        first_place, start = self.words[0][0], spans[at].place
        word_at = {span.place: span.word for span in spans[at : at + self.words[-1][0] - first_place + 1]}
        for place, alternatives in self.words:
            word = word_at.get(start + place - first_place)
            if word is None or not any(_matches(word, pattern) for pattern in alternatives):
                return False
        return True


def _matches(word: str, pattern: Pattern) -> bool:
    return pattern.pieces == (word,) or (len(pattern.pieces) > 1 and pattern.matches(word))


def _literal_beginning(pattern: Pattern) -> str:
    return pattern.pieces[0] if isinstance(pattern.pieces[0], str) else ""
