"""Read `filter` and `sort` as callers write them. Source: docs/filters.md, the grammar.

Every refusal names the place as the number of a character. Length, nesting and the number of comparisons are limited.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from muniment.repository.filters.tree import (
    AllOf,
    AnyOf,
    Comparison,
    Filter,
    Literally,
    Not,
    Operator,
    Selection,
    SortKey,
)
from muniment.repository.refusals import BadFilter, BadSort

MAX_CHARACTERS = 4000
"""The most characters of a filter, and of a sort."""

MAX_DEPTH = 20
"""The deepest nesting of parentheses, with those of ``not``."""

MAX_COMPARISONS = 100
"""The most comparisons in one filter."""

MAX_SORT_KEYS = 5
"""The most properties to sort by."""

_PIECE = re.compile(
    r"""(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")"""
    r"""|(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_.]))"""
    r"""|(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)"""
    r"""|(?P<operator><=|>=|!=|=|<|>)"""
    r"""|(?P<mark>[(),])"""
)
_BLANKS = re.compile(r"[ \t\r\n]*")
_SORT_KEY = re.compile(r"[ \t\r\n]*([A-Za-z_][A-Za-z0-9_.-]*)((?:[ \t\r\n]+[A-Za-z-]+)*)[ \t\r\n]*")
_OPERATORS: dict[str, Operator] = {one: one for one in ("=", "!=", "<", "<=", ">", ">=")}
_FUNCTIONS: dict[str, Operator] = {one: one for one in ("starts-with", "contains")}


class _Piece(NamedTuple):
    """A piece of the filter, where it begins (counted from 0), and what it is; ``end`` is behind the last one."""

    kind: str
    text: str
    at: int

    def says(self, *words: str) -> bool:
        return self.kind in ("name", "mark") and self.text.lower() in words


def read(filter_text: str, sort_text: str, neutral: Callable[[str], str]) -> Selection:
    """Read a filter and a sort. An empty text means none. ``neutral`` translates names of properties.

    Raises BadFilter, BadSort.
    """
    condition = None if not filter_text.strip() else _Reader(filter_text, neutral).read()
    keys = read_sort(sort_text, neutral)
    text = f"{len(filter_text)} {filter_text} {sort_text}" if condition is not None or keys else ""
    return Selection(condition, keys, text)


def read_sort(text: str, neutral: Callable[[str], str]) -> tuple[SortKey, ...]:
    """Read a sort. An empty text means none. ``neutral`` translates names of properties. Raises BadSort."""
    return () if not text.strip() else tuple(_sort_keys(text, neutral))


class _Reader:
    """Reads pieces from left to right. Every method reads the pieces that it understands and stops behind them."""

    def __init__(self, text: str, neutral: Callable[[str], str]) -> None:
        if len(text) > MAX_CHARACTERS:
            raise BadFilter(f"The filter is longer than {MAX_CHARACTERS} characters.")
        self._pieces = _pieces(text)
        self._neutral = neutral
        self._at = 0
        self._depth = 0
        self._comparisons = 0

    def read(self) -> Filter:
        condition = self._any()
        if self._current_piece.kind != "end":
            raise _bad(
                self._current_piece,
                f"After a complete condition comes 'and', 'or' or the end, not {self._current_piece.text[:40]!r}",
            )
        return condition

    def _any(self) -> Filter:
        parts = [self._all()]
        while self._current_piece.says("or"):
            self._at += 1
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _all(self) -> Filter:
        parts = [self._condition()]
        while self._current_piece.says("and"):
            self._at += 1
            parts.append(self._condition())
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _condition(self) -> Filter:
        piece, following = self._current_piece, self._pieces[min(self._at + 1, len(self._pieces) - 1)]
        if piece.says("("):
            return self._within_parentheses()
        if piece.kind != "name":
            raise _bad(piece, f"A condition begins with the name of a property or function, not with {_quote(piece)}")
        if piece.says("not") and following.kind == "name":
            raise _bad(piece, "What not(...) turns round stands in parentheses")
        if not following.says("("):
            return self._comparison()
        if piece.says("not"):
            self._at += 1
            return Not(self._within_parentheses())
        if piece.text.lower() in _FUNCTIONS:
            return self._function()
        raise _bad(piece, f"There is no function {piece.text[:40]!r}: there are starts-with, contains and not")

    def _within_parentheses(self) -> Filter:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _bad(self._current_piece, f"The filter is nested deeper than {MAX_DEPTH}")
        self._mark("(")
        condition = self._any()
        self._mark(")")
        self._depth -= 1
        return condition

    def _comparison(self) -> Filter:
        name = self._next()
        if self._current_piece.kind != "operator":
            raise _bad(
                self._current_piece,
                f"After {name.text[:64]!r} comes one of = != < <= > >=, not {_quote(self._current_piece)}",
            )
        operator = _OPERATORS[self._next().text]
        return self._compared(name, operator, self._literal())

    def _function(self) -> Filter:
        function = self._next()
        self._mark("(")
        if self._current_piece.kind != "name":
            raise _bad(
                self._current_piece,
                f"{function.text} begins with the name of a property, not with {_quote(self._current_piece)}",
            )
        name = self._next()
        self._mark(",")
        if self._current_piece.kind != "text":
            raise _bad(
                self._current_piece,
                f"{function.text} looks for a text in quotes, not for {_quote(self._current_piece)}",
            )
        literal = self._literal()
        self._mark(")")
        return self._compared(name, _FUNCTIONS[function.text.lower()], literal)

    def _compared(self, name: _Piece, operator: Operator, literal: Literally) -> Comparison:
        self._comparisons += 1
        if self._comparisons > MAX_COMPARISONS:
            raise _bad(name, f"The filter has more than {MAX_COMPARISONS} comparisons")
        return Comparison(self._neutral(name.text), operator, literal, name.at + 1)

    def _literal(self) -> Literally:
        here = self._next()
        if here.kind == "text":
            return Literally("text", _unquote(here.text))
        if here.kind == "number":
            return Literally("number", here.text)
        if here.says("true", "false"):
            if self._current_piece.says("("):  # Quotes are doubled, as in XPath.
                self._mark("(")
                self._mark(")")
            return Literally("truth", here.text.lower())
        if here.says("date"):
            self._mark("(")
            if self._current_piece.kind != "text":
                raise _bad(
                    self._current_piece, f"date holds an ISO 8601 date in quotes, not {_quote(self._current_piece)}"
                )
            piece = self._next()
            if self._current_piece.says(","):
                raise _bad(self._current_piece, "date takes no pattern: it reads ISO 8601")
            self._mark(")")
            return Literally("date", _unquote(piece.text))
        raise _bad(
            here,
            f"A property is compared with a text in quotes, a number, a date or true or false, not {_quote(here)}",
        )

    @property
    def _current_piece(self) -> _Piece:
        return self._pieces[self._at]

    def _next(self) -> _Piece:
        piece = self._pieces[self._at]
        if piece.kind != "end":
            self._at += 1
        return piece

    def _mark(self, mark: str) -> None:
        if not self._current_piece.says(mark):
            raise _bad(self._current_piece, f"Here comes {mark!r}, not {_quote(self._current_piece)}")
        self._at += 1


def _pieces(text: str) -> list[_Piece]:
    pieces, at = [], _blanks(text, 0)
    while at < len(text):
        match = _PIECE.match(text, at)
        if match is None:
            what = "The text in quotes has no end" if text[at] in "'\"" else f"A filter has no {text[at : at + 20]!r}"
            raise BadFilter(f"{what} (character {at + 1}).")
        pieces.append(_Piece(match.lastgroup or "", match[0], at))
        at = _blanks(text, match.end())
    return [*pieces, _Piece("end", "", len(text))]


def _blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def _unquote(text: str) -> str:
    return text[1:-1].replace(text[0] * 2, text[0])


def _quote(piece: _Piece) -> str:
    return "the end" if piece.kind == "end" else repr(piece.text[:40])


def _bad(piece: _Piece, what: str) -> BadFilter:
    return BadFilter(f"{what} (character {piece.at + 1}).")


def _sort_keys(text: str, neutral: Callable[[str], str]) -> list[SortKey]:
    if len(text) > MAX_CHARACTERS:
        raise BadSort(f"The sort is longer than {MAX_CHARACTERS} characters.")
    keys: list[SortKey] = []
    at = 0
    for part in text.split(","):
        place = at + len(part) - len(part.lstrip()) + 1
        at += len(part) + 1
        match = _SORT_KEY.fullmatch(part)
        if match is None:
            raise BadSort(f"A sort is a list of properties, each with ASC or DESC if need be (character {place}).")
        words = match[2].lower().split()
        directions, others = [word for word in words if word in ("asc", "desc")], set(words) - {"asc", "desc"}
        if len(directions) > 1 or others - {"no-case"} or len(words) > 2:
            raise BadSort(f"After a property to sort by may stand ASC or DESC, and no-case (character {place}).")
        name = neutral(match[1])
        if name in {key.name for key in keys}:
            raise BadSort(f"The sort names {match[1][:64]!r} twice (character {place}).")
        keys.append(SortKey(name, directions == ["desc"], bool(others), f"character {place}"))
        if len(keys) > MAX_SORT_KEYS:
            raise BadSort(f"The sort names more than {MAX_SORT_KEYS} properties (character {place}).")
    return keys
