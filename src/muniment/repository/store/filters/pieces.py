"""Cut a caller's text into pieces, and read the pieces one after the other."""

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from muniment.ground.refusals import Refusal

TEXT = r"""(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")"""
NUMBER = r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_.]))"
_BLANKS = re.compile(r"[ \t\r\n]*")

T = TypeVar("T")


class TextPiece(NamedTuple):
    """``at`` counts from 0. The last piece has the kind ``end``, and is empty."""

    kind: str
    text: str
    at: int

    def says(self, *words: str) -> bool:
        return self.kind in ("name", "mark") and self.text.lower() in words

    def content(self) -> str:
        """Return the text between the quotes; a doubled quote stands for one."""
        return self.text[1:-1].replace(self.text[0] * 2, self.text[0])

    def quote(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text[:40])

    def refusal(self, kind: type[Refusal], what: str) -> Refusal:
        return kind(f"{what} (character {self.at + 1}).")


class PieceReader:
    """Steps through the pieces of a text; the reader of each language extends it.

    The groups of ``pattern`` are the kinds of pieces, ``whole`` names the text in refusals.

    The methods raise ``refusal`` for a piece that the language does not allow in its place.
    """

    def __init__(self, text: str, pattern: re.Pattern[str], whole: str, refusal: type[Refusal]) -> None:
        self._whole = whole
        self._refusal = refusal
        self._pieces = _cut(text, pattern, whole, refusal)
        self._at = 0

    @property
    def _current(self) -> TextPiece:
        return self._pieces[self._at]

    def _peek(self) -> TextPiece:
        return self._pieces[min(self._at + 1, len(self._pieces) - 1)]

    def _next(self) -> TextPiece:
        piece = self._current
        if piece.kind != "end":
            self._at += 1
        return piece

    def _check(self, word: str) -> None:
        if not self._current.says(word):
            raise self._unexpected(word.upper() if word.isalpha() else repr(word))

    def _take(self, word: str) -> None:
        self._check(word)
        self._at += 1

    def _optional(self, word: str) -> bool:
        if self._current.says(word):
            self._at += 1
            return True
        return False

    def _separated(self, word: str, read: Callable[[], T]) -> list[T]:
        things = [read()]
        while self._optional(word):
            things.append(read())
        return things

    def _unexpected(self, what: str) -> Refusal:
        return self._current.refusal(self._refusal, f"{self._whole} needs {what} here, not {self._current.quote()}")


def _cut(text: str, pattern: re.Pattern[str], whole: str, refusal: type[Refusal]) -> list[TextPiece]:
    pieces, at = [], _skip_blanks(text, 0)
    while at < len(text):
        match = pattern.match(text, at)
        if match is None:
            stray = f"{whole} has no {text[at : at + 20]!r}"
            what = "The text in quotes has no end" if text[at] in "'\"" else stray
            raise refusal(f"{what} (character {at + 1}).")
        pieces.append(TextPiece(match.lastgroup or "", match[0], at))
        at = _skip_blanks(text, match.end())
    return [*pieces, TextPiece("end", "", len(text))]


def _skip_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at
