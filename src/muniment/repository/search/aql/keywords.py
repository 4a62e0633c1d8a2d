"""What do keywords ask for?

AND binds tighter than OR, NOT applies to the next term, and a blank means AND. AND and OR are operators only between
two terms, and NOT only before a term; anywhere else they are words. Stray punctuation and unclosed quotation marks are
ignored. Source: docs/aql.md, "By keywords".
"""

import re
import unicodedata
from typing import NamedTuple

from muniment.repository.refusals import BadQuery
from muniment.repository.search.aql import patterns
from muniment.repository.search.aql.tree import (
    Both,
    Either,
    Keywords,
    Phrase,
    QueryLimits,
    Term,
    Wild,
    Without,
    with_parts,
    words_of,
)

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese, for a regular expression; each character counts as a word."""

EMOJI = "\u231a\u231b\u23e9-\u23f3\u2600-\u2767\u2794-\u27bf\u2b50\u2b55\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
"""Each counts as a word in a regular expression."""

NUMBER_BLANK = "(?<=[0-9])[\u00a0\u2007\u2009\u202f](?=[0-9]{3}(?![0-9]))"
"""A blank between the thousands of a number, for a regular expression: it is thin, or does not break."""

_EMOJI = re.compile(f"[{EMOJI}]")
_WORD = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}])[^\W_])+")
PIECE_WORD = rf'(?:[^\s()"“”„]++|{NUMBER_BLANK})++'
_PIECE_WORD = re.compile(PIECE_WORD)
_PIECE = re.compile(rf'["“”„](?P<phrase>[^"“”„]*)["“”„]|(?P<bracket>[()])|(?P<word>{PIECE_WORD})')

OPERATORS = ("and", "or", "not")
_SINGLE_QUOTES = "'‘’‚"
_GAPS = "*?"
_LAST_GAPS = re.compile(r"[*?]+$")
_FIRST_GAPS = re.compile(r"[*?]+")
_PLAIN = re.compile(r"(?:[^\W_]|[*?])+")


class _Piece(NamedTuple):
    kind: str
    text: str


def read(text: str, limits: QueryLimits) -> Keywords | None:
    """Return None for punctuation only. Raises BadQuery beyond a limit."""
    pieces = []
    terms = 0
    for match in _PIECE.finditer(text):
        kind = match.lastgroup or ""
        piece = _Piece(kind, match[kind])
        if kind != "bracket":
            if not any(map(_belongs_to_a_word, piece.text)):
                continue
            terms += _count_words(piece.text)
            check_count(terms, limits)
        pieces.append(piece)
    keywords = _Reader(pieces, limits.depth).read()
    check_count(count_words(keywords), limits)
    return keywords


def read_words(text: str, limits: QueryLimits) -> Keywords | None:
    """Read words that must all match, without operators, phrases or wildcards. Return None for punctuation only. Raises
    BadQuery beyond ``limits``.
    """
    words = [Term(word) for word in _PIECE_WORD.findall(text) if any(map(_belongs_to_a_word, word))]
    check_count(sum(_count_words(word.text) for word in words), limits)
    return _both(list(words), loose=True)


def count_words(keywords: Keywords | None) -> int:
    """Count words, also in phrases. One that begins with a wildcard counts ``patterns.OPEN_CLAUSES`` more, also within
    joined words (``a-*b``).
    """
    open_words = [
        word
        for wild in words_of(keywords)
        if isinstance(wild, Wild)
        for word in _PLAIN.findall(wild.text)
        if word[0] in _GAPS and word.strip(_GAPS)
    ]
    return sum(_count_words(each.text) for each in words_of(keywords)) + patterns.OPEN_CLAUSES * len(open_words)


def check_count(number: int, limits: QueryLimits) -> None:
    if number > limits.clauses:
        raise BadQuery(f"The query has more than {limits.clauses} keywords.")


def fuzzy(keywords: Keywords) -> Keywords:
    """Allow each word one other letter; phrases and wildcards stay."""
    return Term(keywords.text, fuzzy=True) if isinstance(keywords, Term) else with_parts(keywords, fuzzy)


class _Reader:
    def __init__(self, pieces: list[_Piece], max_depth: int) -> None:
        self._pieces = pieces
        self._at = 0
        self._depth = 0
        self._max_depth = max_depth
        # Numbers and scripts without case do not say whether an operator in capitals is an ordinary word.
        words = [piece.text for piece in pieces if piece.text.lower() not in OPERATORS]
        self._capitals = any(map(str.isupper, words)) and all(word.upper() == word for word in words)

    def read(self) -> Keywords | None:
        parts = []
        while self._at < len(self._pieces):
            part = self._or_parts()
            if part is not None:
                parts.append(part)
            self._at += 1  # Skip a bracket that closes nothing.
        return _both(parts, loose=True)

    def _or_parts(self) -> Keywords | None:
        parts, loose = [self._and_parts()], True
        while self._operator("or"):
            loose = loose and self._is_ordinary()
            self._at += 1
            parts.append(self._and_parts())
        either = [part for part in parts if part is not None]
        return Either(tuple(either), loose) if len(either) > 1 else next(iter(either), None)

    def _and_parts(self) -> Keywords | None:
        parts, loose = [self._term()], True
        while self._begins(self._at) and not self._operator("or"):
            if self._operator("and"):
                loose = loose and self._is_ordinary()
                self._at += 1
            parts.append(self._term())
        return _both([part for part in parts if part is not None], loose=loose)

    def _term(self) -> Keywords | None:
        negations, loose = 0, True
        while self._spells("not") and self._begins(self._at + 1):
            negations += 1
            loose = loose and self._is_ordinary()
            self._at += 1
        if not self._begins(self._at):
            return None
        part = self._group() if self._pieces[self._at].text == "(" else self._word()
        return Without(part, loose) if part is not None and negations % 2 else part

    def _group(self) -> Keywords | None:
        self._depth += 1
        if self._depth > self._max_depth:
            raise BadQuery(f"The query's parentheses are nested deeper than {self._max_depth}.")
        self._at += 1
        part = self._or_parts()
        self._at += 1  # Skip the closing bracket, or stand at the end.
        self._depth -= 1
        return part

    def _word(self) -> Keywords:
        piece = self._pieces[self._at]
        self._at += 1
        if piece.kind == "phrase":
            return Phrase(piece.text.strip())
        in_words = [at for at, character in enumerate(piece.text) if _belongs_to_a_word(character)]
        begin, end = in_words[0], in_words[-1] + 1
        word = piece.text[begin:end]
        gaps_before = _LAST_GAPS.search(piece.text[:begin])
        gaps_after = _FIRST_GAPS.match(piece.text[end:])
        wild = (gaps_before[0] if gaps_before else "") + word + (gaps_after[0] if gaps_after else "")
        if not patterns.has_gaps(wild):
            return Term(piece.text[:end].lstrip(_SINGLE_QUOTES))
        if "*" not in wild and (wild == f"{word}?" or not _PLAIN.fullmatch(wild)):
            # A question mark may end a question, or be part of an address.
            return Either((Term(word), Wild(wild)))
        return Wild(wild)

    def _begins(self, at: int) -> bool:
        return at < len(self._pieces) and self._pieces[at].text != ")"

    def _spells(self, word: str) -> bool:
        return (
            self._at < len(self._pieces)
            and self._pieces[self._at].kind == "word"
            and self._pieces[self._at].text.lower() == word
        )

    def _is_ordinary(self) -> bool:
        return self._capitals or not self._pieces[self._at].text.isupper()

    def _operator(self, word: str) -> bool:
        return self._spells(word) and self._begins(self._at + 1)


def _belongs_to_a_word(character: str) -> bool:
    if character.isascii():
        return character.isalnum()
    is_letter = character.isalnum() or unicodedata.category(character).startswith("M")
    return is_letter or _EMOJI.match(character) is not None


def _count_words(text: str) -> int:
    return max(1, len(_WORD.findall(text)))


def _both(parts: list[Keywords], *, loose: bool) -> Keywords | None:
    return Both(tuple(parts), loose) if len(parts) > 1 else next(iter(parts), None)
