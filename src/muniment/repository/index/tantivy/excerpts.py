"""Excerpts: the piece of a text around the first match, found without splitting all of it into words.

A huge text is looked through for beginnings of the words asked for, and only what stands there is split and compared.
What is chosen depends on the text and the query alone, never on other documents.
"""

import re
from collections.abc import Collection, Sequence

from muniment.repository.aql.tree import Phrase, Term
from muniment.repository.index.tantivy.analysis import Analyser, Span
from muniment.repository.index.text import BREAK, normal

LENGTH = 200
"""Characters of an excerpt, about."""

_BEFORE = 60
_FIRST_PIECE = 512
_PIECE = 65_536
_TRIES = 2000
_SPLIT_WHOLE = 200_000
_MORE = "…"
_WORD = re.compile(r"[^\W_]{1,600}")


class Finder:
    """Finds where leaves of a query first match in a text."""

    def __init__(self, analyser: Analyser, leaves: Sequence[Term | Phrase]) -> None:
        self._analyser = analyser
        self._wanted = {leaf: wanted for leaf in leaves if (wanted := _Wanted(analyser, leaf)).words}

    def excerpt(self, text: str, leaves: Collection[Term | Phrase] | None = None) -> str | None:
        """Cut the piece of a text around the first match of any leaf, or of some; None when nothing matches."""
        some = [wanted for leaf, wanted in self._wanted.items() if leaves is None or leaf in leaves]
        found = self._first(text, some) if some else None
        return None if found is None else cut(text, found)

    def _first(self, text: str, several: Sequence["_Wanted"]) -> int | None:
        tries = _TRIES
        overlap = max(len(wanted.beginning) for wanted in several)
        begin, end = 0, _FIRST_PIECE
        while begin < len(text):
            flat = self._analyser.flattened(text[begin : end + overlap])
            found = []
            for wanted in several:
                at, tries = self._in_piece(wanted, text, begin, flat, tries)
                if at is not None:
                    found.append(at)
            if found:
                return min(found)
            if tries <= 0:
                break
            begin, end = end, end + _PIECE
        return self._by_splitting(text[:_SPLIT_WHOLE], several)

    def _in_piece(self, wanted: "_Wanted", text: str, begin: int, flat: str, tries: int) -> tuple[int | None, int]:
        at = flat.find(wanted.beginning)
        while at >= 0 and tries > 0:
            if begin + at == 0 or not text[begin + at - 1].isalnum():
                tries -= 1
                if self._stands(wanted, text, begin + at):
                    return begin + at, tries
            at = flat.find(wanted.beginning, at + 1)
        return None, tries

    def _stands(self, wanted: "_Wanted", text: str, at: int) -> bool:
        """Whether the leaf stands here; of a single word the answer is remembered, as texts say words again."""
        word = _WORD.match(text, at) if len(wanted.words) == 1 else None
        if word is None:
            return wanted.matches(self._analyser.spans(text[at : at + wanted.reach], wanted.stemmed), 0)
        known = wanted.known.get(word[0])
        if known is None:
            known = wanted.known[word[0]] = wanted.matches(self._analyser.spans(word[0], wanted.stemmed), 0)
        return known

    def _by_splitting(self, text: str, several: Sequence["_Wanted"]) -> int | None:
        found = []
        for wanted in several:
            spans = self._analyser.spans(text, wanted.stemmed)
            found += [span.start for at, span in enumerate(spans) if wanted.matches(spans, at)][:1]
        return min(found, default=None)


def beginning(text: str) -> str:
    """Cut the beginning of a text."""
    return cut(text, 0)


def cut(text: str, at: int) -> str:
    """Cut the piece of a text around a place, at whole words, white space collapsed."""
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


class _Wanted:
    """A leaf as words, and the beginning to look for them by."""

    def __init__(self, analyser: Analyser, leaf: Term | Phrase) -> None:
        self.known: dict[str, bool] = {}
        self.prefix = isinstance(leaf, Term) and leaf.prefix
        self.stemmed = isinstance(leaf, Term) and not leaf.prefix
        text = normal(leaf.text)
        self.words = [(span.place, span.word) for span in analyser.spans(text, self.stemmed)]
        if not self.words:
            return
        exact = analyser.spans(text, stemmed=False)
        self.beginning = exact[0].word
        if self.stemmed:
            pairs = zip(self.beginning, self.words[0][1], strict=False)
            shared = next((at for at, (a, b) in enumerate(pairs) if a != b), len(self.words[0][1]))
            self.beginning = self.beginning[: max(shared, 1)]
            if len(self.beginning) > 3:
                # Other forms of a word may differ from its stem there (happi, happy; love, loving).
                self.beginning = self.beginning.rstrip("aeiouy") or self.beginning
        self.reach = 4 * len(text) + 200

    def matches(self, spans: Sequence[Span], at: int) -> bool:
        """Whether the words stand here."""
        if at >= len(spans):
            return False
        first, start = self.words[0][0], spans[at].place
        here = {span.place: span.word for span in spans[at : at + self.words[-1][0] - first + 1]}
        *whole, (last, end) = self.words
        if not all(here.get(start + place - first) == word for place, word in whole):
            return False
        word = here.get(start + last - first, "")
        return word.startswith(end) if self.prefix else word == end
