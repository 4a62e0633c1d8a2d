"""What does a person mean who types a question?

AND, OR and NOT are operators only in capitals, and if other words are not.

Source: docs/aql.md, "As people type"; docs/decisions/0092.
"""

import itertools
import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from muniment.repository.search.aql.keywords import OPERATORS, PIECE_WORD

FIELDS = ("name", "title", "type", "format", "owner", "in", "before", "after")

_PIECE = re.compile(
    r'(?P<sign>(?<![^\s(])[-!](?=[^\W_]|["“„(*?]))?'
    r"(?:(?<![^\s(!-])(?P<field>[^\W\d_]{2,}):(?=[^\s:]))?"
    rf'(?:["“”„](?P<phrase>[^"“”„]*)["“”„]|(?P<bracket>[()])|(?P<word>{PIECE_WORD}))'
)
_EVERYTHING = re.compile(r"[*.:?]*\*[*.:?]*")
_NO_FIELD = re.compile(r"//|[)\\]")
"""After a colon, this shows that the word before is no field, as in ``http://``."""

_AFTER_A_VALUE = ".,;:!?"


class TypedField(NamedTuple):
    """A field as written in the question; an ``unwanted`` one leaves objects out."""

    name: str
    value: str
    unwanted: bool
    written: str


IsReadable: TypeAlias = Callable[[TypedField], bool]
"""Says whether the value of a field of ``FIELDS`` can narrow a question."""


class LeftOut(NamedTuple):
    """What is left out, as written, and the question with it as a word."""

    written: str
    as_word: str


class Translation(NamedTuple):
    """``text`` is in the language of keywords, narrowed by ``fields``.

    ``words`` look like fields but are searched as words: unknown, or with unreadable values. So are ``misplaced`` ones,
    beside an OR or in parentheses.
    """

    text: str
    fields: tuple[TypedField, ...] = ()
    words: tuple[TypedField, ...] = ()
    misplaced: tuple[TypedField, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def translate(text: str, is_readable: IsReadable = lambda _field: False) -> Translation:
    """An empty text in the result finds everything."""
    return _Translator(text, is_readable).translate()


def has_fields(text: str) -> bool:
    return any((match["field"] or "").lower() in FIELDS for match in _PIECE.finditer(text))


class _Open(NamedTuple):
    """An open parenthesis: the list for its pieces, and where it begins if it is left out."""

    target: list[str]
    left_out_from: int | None


class _Translator:
    """``_unwanted`` gets what is left out of the whole question."""

    def __init__(self, text: str, is_readable: IsReadable) -> None:
        self._text = text
        self._is_readable = is_readable
        self._pieces = list(_PIECE.finditer(text))
        words = [word for word in map(_word, self._pieces) if word.lower() not in OPERATORS]
        self._capitals = any(map(str.isupper, words)) and all(word.upper() == word for word in words)
        self._question: list[str] = []
        self._unwanted: list[str] = []
        self._open: list[_Open] = []
        self._fields: list[TypedField] = []
        self._words: list[TypedField] = []
        self._misplaced: list[TypedField] = []
        self._left_out: list[LeftOut] = []
        self._everything = False

    def translate(self) -> Translation:
        for at, piece in enumerate(self._pieces):
            field = self._field(piece)
            if field is not None and self._narrows(at, field):
                continue
            if piece["bracket"] == ")":
                self._close(piece.end())
            elif piece["bracket"]:
                self._take(at, [*([piece["field"]] if field else []), "("])
            elif piece["word"] and _EVERYTHING.fullmatch(_word(piece)):
                self._everything = True
            elif self._is_operator(at):
                self._take_operator(piece["word"])
            else:
                self._take(at, _written(piece))
        while self._open:
            self._close(len(self._text))
        found = tuple(self._fields), tuple(self._words), tuple(self._misplaced)
        return Translation(self._joined(), *found, tuple(self._left_out))

    @property
    def _target(self) -> list[str]:
        return self._open[-1].target if self._open else self._question

    def _field(self, piece: re.Match[str]) -> TypedField | None:
        name = piece["field"]
        if not name or _NO_FIELD.match(self._text, piece.end("field") + 1):
            return None
        value = piece["phrase"] or (piece["word"] or "").rstrip(_AFTER_A_VALUE)
        return TypedField(name.lower(), value.strip(), bool(piece["sign"]), piece[0])

    def _narrows(self, at: int, field: TypedField) -> bool:
        operators = self._operators_before()
        field = field._replace(unwanted=field.unwanted != bool(operators.count("NOT") % 2))
        if field.name not in FIELDS or not field.value or not self._is_readable(field):
            self._words.append(field)
            return False
        if self._open or "OR" in operators or self._is_operator(at + 1, "or"):
            self._misplaced.append(field)
            return False
        del self._question[len(self._question) - len(operators) :]
        self._fields.append(field)
        return True

    def _take_operator(self, word: str) -> None:
        # Behind a field that narrows, an operator would stand at the beginning, and be a word there.
        if self._target or word == "NOT" or not self._fields:
            self._target.append(word)

    def _take(self, at: int, parts: list[str]) -> None:
        piece, target = self._pieces[at], self._target
        opens = piece["bracket"] == "("
        if piece["sign"]:
            apart = not self._open and not self._operators_before() and not self._is_operator(at + 1, "or")
            target = self._unwanted if apart else target
            target.append("not")
            if not opens:
                self._leave_out(piece.start(), piece.end())
                parts = ["(", *parts, ")"] if len(parts) > 1 else parts
        target += parts
        if opens:
            self._open.append(_Open(target, piece.start() if piece["sign"] else None))

    def _close(self, end: int) -> None:
        if self._open:
            group = self._open.pop()
            group.target.append(")")
            if group.left_out_from is not None:
                self._leave_out(group.left_out_from, end)

    def _leave_out(self, start: int, end: int) -> None:
        self._left_out.append(LeftOut(self._text[start + 1 : end], self._text[:start] + self._text[start + 1 :]))

    def _is_operator(self, at: int, word: str = "") -> bool:
        if at >= len(self._pieces) or self._capitals:
            return False
        piece = self._pieces[at]
        said = "" if piece["sign"] or piece["field"] else piece["word"] or ""
        return said.isupper() and said.lower() in ((word,) if word else OPERATORS)

    def _operators_before(self) -> list[str]:
        return list(itertools.takewhile(lambda each: each in ("AND", "OR", "NOT"), reversed(self._target)))

    def _joined(self) -> str:
        question = self._question
        if self._unwanted and "OR" in question:
            question = ["(", *question, ")"]
        text = " ".join((*question, *self._unwanted))
        # Which other signs are words, such as emoji, the language of keywords says.
        if any(sign.isalnum() or not sign.isascii() for sign in text):
            return text
        return "" if self._everything or self._fields else self._text.strip()


def _word(piece: re.Match[str]) -> str:
    prefix = f"{piece['field']}:" if piece["field"] else ""
    return prefix + (piece["phrase"] or piece["word"] or "")


def _written(piece: re.Match[str]) -> list[str]:
    if piece["phrase"] is not None:
        return [*([piece["field"]] if piece["field"] else []), f'"{piece["phrase"]}"']
    word = _word(piece)
    return [f"'{word}'" if word.lower() in OPERATORS else word]
