"""Which words of a text are to be marked? Those that a search has matched, in their other forms too.

The index splits texts into words and knows their stems; a page has only its terms. So it marks a word that begins like
a term and ends otherwise in a few letters. Nothing here decides what is found.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

_WORD = re.compile(r"[^\W_]+")
_ENDINGS = ("ies", "ing", "es", "ed", "e", "s", "y")
_LONGEST_TAIL = 3
_SHORTEST_STEM = 3
_MOST_GAPS, _LONGEST_GAP = 2, 40
_GAP = re.compile(r"[*?]+")
_MOST_TERMS = 64
_UNBOUNDED = 0x0E00
"""From this character on, writing may set no blanks: every character is a word, and words have no other forms."""

_BEFORE, _AFTER = r"(?<![^\W_])", r"(?![^\W_])"


class Piece(NamedTuple):
    """A piece of a text, and whether it is marked."""

    text: str
    marked: bool


class _Flat(dict[int, str]):
    """Each character as it is compared: one letter for one letter, without case and accent."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        base = unicodedata.normalize("NFKD", character)[:1].lower()
        self[code] = base if len(base) == 1 else character
        return self[code]


_FLAT = _Flat()


def _flat(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(_FLAT)


def pieces(text: str, terms: Sequence[str]) -> list[Piece]:
    """Split a text into marked pieces and the others."""
    pattern = _pattern(tuple(terms))
    if pattern is None:
        return [Piece(text, marked=False)] if text else []
    split: list[Piece] = []
    at = 0
    for found in pattern.finditer(_flat(text)):
        if found.end() == found.start():
            continue
        if found.start() > at:
            split.append(Piece(text[at : found.start()], marked=False))
        split.append(Piece(text[found.start() : found.end()], marked=True))
        at = found.end()
    return [*split, Piece(text[at:], marked=False)] if at < len(text) else split


def first(text: str, terms: Sequence[str]) -> int | None:
    """Return where the first marked word of a text begins; None without any."""
    pattern = _pattern(tuple(terms))
    found = None if pattern is None else pattern.search(_flat(text))
    return None if found is None else found.start()


@lru_cache(maxsize=256)
def _pattern(terms: tuple[str, ...]) -> re.Pattern[str] | None:
    forms = [form for term in terms[:_MOST_TERMS] if (form := _form(_flat(term)))]
    return re.compile("|".join(sorted(forms, key=len, reverse=True))) if forms else None


def _form(term: str) -> str:
    """Write the expression of a term; empty for one without words."""
    if "*" in term or "?" in term:
        return _wild(term)
    words = _WORD.findall(term)
    if not words:
        return ""
    if any(ord(character) >= _UNBOUNDED for character in term):
        return r"[\W_]*".join(map(re.escape, words))
    if len(words) > 1:
        return _BEFORE + r"[\W_]+".join(map(re.escape, words)) + _AFTER
    word = words[0]
    stem = next(
        (
            word.removesuffix(ending)
            for ending in _ENDINGS
            if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM
        ),
        word,
    )
    if len(word) < _SHORTEST_STEM or not word.isalpha():
        return f"{_BEFORE}{re.escape(word)}{_AFTER}"
    return f"{_BEFORE}{re.escape(stem)}[^\\W_]{{0,{_LONGEST_TAIL}}}{_AFTER}"


def _wild(term: str) -> str:
    """Write the expression of a term with wildcards; empty for one with so many that it could take long to match."""
    parts = _GAP.split(term.strip())
    gaps = _GAP.findall(term.strip())
    if len(gaps) > _MOST_GAPS or not _WORD.search(term):
        return ""
    inner = "".join(
        _joined(part) + (f"[^\\W_]{{0,{_LONGEST_GAP if '*' in gap else len(gap)}}}" if gap else "")
        for part, gap in zip_longest(parts, gaps, fillvalue="")
    )
    return f"{_BEFORE}{inner}{_AFTER}"


def _joined(part: str) -> str:
    return "".join(re.escape(sign) if sign.isalnum() else r"[\W_]" for sign in part)
