"""Which form does a text have before an index splits it into words?"""

import itertools
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Self

from muniment.repository.search.aql.keywords import NUMBER_BLANK, UNSPACED

BREAK = "\u200b"
"""The zero-width space. ``normal`` puts it between words that no blank separates."""

NARROW_BLANK = "\u202f"
"""The narrow blank that does not break. ``normal`` puts it in place of thin or unbreakable blanks between thousands."""

_SOFT_HYPHEN = "\u00ad"
_JOINED = "\u1160\u11ff"
"""The first and the last of the parts that join a Korean letter before them."""

_UNSPACED = re.compile(f"[{UNSPACED}]")
_BLANK_IN_NUMBER = re.compile(NUMBER_BLANK)
_BOUNDARY = re.compile(rf"(?<=[{UNSPACED}])(?=\w)|(?<=\w)(?=[{UNSPACED}])")


def normal(text: str) -> str:
    """That is Unicode NFKC without lone surrogates and soft hyphens.

    In scripts without blanks between words, a BREAK separates each character from its neighbours. Between the thousands
    of a number, a blank that is thin or does not break becomes a NARROW_BLANK.
    """
    if text.isascii():
        return text
    parts = _BLANK_IN_NUMBER.split(whole(text))
    text = NARROW_BLANK.join([unicodedata.normalize("NFKC", part) for part in parts]).replace(_SOFT_HYPHEN, "")
    return _BOUNDARY.sub(BREAK, text) if _UNSPACED.search(text) else text


class PlacedText(NamedTuple):
    """A text, and for each of its characters the place of the original text for which it stands.

    The place begins at the character of the original with the index in ``starts``, and ends before the one in ``ends``.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    @classmethod
    def of(cls, text: str) -> Self:
        return cls(text, range(len(text)), range(1, len(text) + 1))

    def sub(self, pattern: re.Pattern[str], of: Callable[[str], str]) -> Self:
        """Replace each match of a pattern by what ``of`` returns. Its characters stand for the whole match.

        For a match that leaves no trace, the character before it stands, too.
        """
        pieces, starts, ends, done = list[str](), list[int](), list[int](), 0
        for match in pattern.finditer(self.text):
            at, end = match.span()
            piece = of(match[0])
            if piece == match[0] and at < end:
                continue
            pieces += [self.text[done:at], piece]
            starts += self.starts[done:at]
            ends += self.ends[done:at]
            if ends and not piece:
                ends[-1] = self.ends[end - 1]
            start = self.starts[at] if at < len(self.starts) else self.ends[-1]
            starts += [start] * len(piece)
            ends += [self.ends[end - 1] if at < end else start] * len(piece)
            done = end
        if not pieces and not done:
            return self
        pieces.append(self.text[done:])
        return type(self)("".join(pieces), [*starts, *self.starts[done:]], [*ends, *self.ends[done:]])


class FlatText:
    """A folded text, and where its characters were before.

    ``shifts`` are the characters that have become longer: the index in the original, and by how many. A ``blurred``
    text may show other ends of words, after a mark that may join the letter before it, or a character that stands for
    several words.
    """

    def __init__(self, text: str, shifts: Sequence[tuple[int, int]], *, blurred: bool = False) -> None:
        self.text = text
        self.blurred = blurred
        self._shifts = shifts

    def place(self, at: int) -> int:
        """Return the index in the original of the character with this index."""
        if not self._shifts:
            return at
        after = bisect_right(self._begins, at)
        place = at - self._totals[after]
        return min(place, self._shifts[after][0]) if after < len(self._shifts) else place

    def at(self, place: int) -> int:
        """Return the index of the first character that stands for the one with this index in the original."""
        return place if not self._shifts else place + self._totals[bisect_left(self._shifts, (place,))]

    def begins_word(self, at: int) -> bool:
        if at == 0:
            return True
        before = self.text[at - 1]
        if before.isascii():
            return not before.isalnum()
        in_word = before.isalnum() or unicodedata.category(before).startswith("M")
        return not in_word or _UNSPACED.match(before) is not None or _UNSPACED.match(self.text, at) is not None

    @cached_property
    def _totals(self) -> list[int]:
        return list(itertools.accumulate((shift for _, shift in self._shifts), initial=0))

    @cached_property
    def _begins(self) -> list[int]:
        return [at + total + 1 for (at, _), total in zip(self._shifts, self._totals[1:], strict=True)]


def normal_with_places(text: str) -> PlacedText:
    placed = PlacedText.of(text)
    if normal(text) == text:
        return placed
    placed = placed.sub(_BLANK_IN_NUMBER, lambda _: NARROW_BLANK)
    pieces, starts, ends = list[str](), list[int](), list[int]()
    for start, end in itertools.pairwise([*_beginnings(placed.text), len(text)]):
        cluster = placed.text[start:end]
        piece = cluster if cluster == NARROW_BLANK else unicodedata.normalize("NFKC", cluster).replace(_SOFT_HYPHEN, "")
        pieces.append(piece)
        starts += [start] * len(piece)
        ends += [end] * len(piece)
    placed = PlacedText("".join(pieces), starts, ends)
    return placed.sub(_BOUNDARY, lambda _: BREAK) if _UNSPACED.search(placed.text) else placed


def _beginnings(text: str) -> Iterator[int]:
    for at, character in enumerate(text):
        joins = unicodedata.category(character)[0] == "M" or _JOINED[0] <= character <= _JOINED[-1]
        if at == 0 or character.isascii() or not joins:
            yield at


def whole(text: str) -> str:
    """Return the text with a question mark in place of each lone surrogate, which UTF-8 cannot encode."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
