"""Read `filter` and `sort` as callers write them. Source: docs/filters.md, the grammar."""

import re
from collections.abc import Callable

from muniment.ground.refusals import Refusal
from muniment.repository.refusals import BadFilter, BadSort
from muniment.repository.store.filters.pieces import NUMBER, TEXT, PieceReader, TextPiece
from muniment.repository.store.filters.tree import (
    AllOf,
    AnyOf,
    Comparison,
    Filter,
    LiteralValue,
    Not,
    Operator,
    Selection,
    SortKey,
)

MAX_CHARACTERS = 4000

MAX_DEPTH = 20

MAX_COMPARISONS = 100

MAX_SORT_KEYS = 5

_PIECE = re.compile(rf"{TEXT}|{NUMBER}|(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)|(?P<operator><=|>=|!=|=|<|>)|(?P<mark>[(),])")
_SORT_KEY = re.compile(r"[ \t\r\n]*([A-Za-z_][A-Za-z0-9_.-]*)((?:[ \t\r\n]+[A-Za-z-]+)*)[ \t\r\n]*")
_OPERATORS: dict[str, Operator] = {one: one for one in ("=", "!=", "<", "<=", ">", ">=")}
_FUNCTIONS: dict[str, Operator] = {one: one for one in ("starts-with", "contains")}


def read(filter_text: str, sort_text: str, neutral: Callable[[str], str]) -> Selection:
    """``neutral`` translates a property's name on the wire into the code's own. Raises BadFilter, BadSort."""
    condition = None if not filter_text.strip() else _Reader(filter_text, neutral).read()
    keys = read_sort(sort_text, neutral)
    text = f"{len(filter_text)} {filter_text} {sort_text}" if condition is not None or keys else ""
    return Selection(condition, keys, text)


def read_sort(text: str, neutral: Callable[[str], str]) -> tuple[SortKey, ...]:
    """Raises BadSort."""
    return () if not text.strip() else tuple(_sort_keys(text, neutral))


class _Reader(PieceReader):
    def __init__(self, text: str, neutral: Callable[[str], str]) -> None:
        if len(text) > MAX_CHARACTERS:
            raise BadFilter(f"The filter is longer than {MAX_CHARACTERS} characters.")
        super().__init__(text, _PIECE, "A filter", BadFilter)
        self._neutral = neutral
        self._depth = 0
        self._comparisons = 0

    def read(self) -> Filter:
        condition = self._any()
        if self._current.kind != "end":
            raise self._unexpected("'and', 'or' or its end")
        return condition

    def _any(self) -> Filter:
        parts = self._separated("or", self._all)
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _all(self) -> Filter:
        parts = self._separated("and", self._condition)
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _condition(self) -> Filter:
        piece, following = self._current, self._peek()
        if piece.says("("):
            return self._within_parentheses()
        if piece.kind != "name":
            raise _bad(piece, f"A condition begins with the name of a property or function, not with {piece.quote()}")
        if piece.says("not") and following.kind == "name":
            raise _bad(piece, "The condition after not stands in parentheses: not(...)")
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
            raise _bad(self._current, f"The filter is nested deeper than {MAX_DEPTH}")
        self._take("(")
        condition = self._any()
        self._take(")")
        self._depth -= 1
        return condition

    def _comparison(self) -> Filter:
        name = self._next()
        if self._current.kind != "operator":
            raise self._unexpected("one of = != < <= > >=")
        operator = _OPERATORS[self._next().text]
        return self._comparison_with(name, operator, self._literal())

    def _function(self) -> Filter:
        function = self._next()
        self._take("(")
        if self._current.kind != "name":
            raise self._unexpected("the name of a property")
        name = self._next()
        self._take(",")
        if self._current.kind != "text":
            raise self._unexpected("a text in quotes")
        literal = self._literal()
        self._take(")")
        return self._comparison_with(name, _FUNCTIONS[function.text.lower()], literal)

    def _comparison_with(self, name: TextPiece, operator: Operator, literal: LiteralValue) -> Comparison:
        self._comparisons += 1
        if self._comparisons > MAX_COMPARISONS:
            raise _bad(name, f"The filter has more than {MAX_COMPARISONS} comparisons")
        return Comparison(self._neutral(name.text), operator, literal, name.at + 1)

    def _literal(self) -> LiteralValue:
        first = self._next()
        if first.kind == "text":
            return LiteralValue("text", first.content())
        if first.kind == "number":
            return LiteralValue("number", first.text)
        if first.says("true", "false"):
            if self._current.says("("):  # As in XPath: true() and false().
                self._take("(")
                self._take(")")
            return LiteralValue("truth", first.text.lower())
        if first.says("date"):
            self._take("(")
            if self._current.kind != "text":
                raise self._unexpected("an ISO 8601 date in quotes")
            piece = self._next()
            if self._current.says(","):
                raise _bad(self._current, "date takes no pattern: it reads ISO 8601")
            self._take(")")
            return LiteralValue("date", piece.content())
        raise _bad(
            first,
            f"A property is compared with a text in quotes, a number, a date or true or false, not {first.quote()}",
        )


def _bad(piece: TextPiece, what: str) -> Refusal:
    return piece.refusal(BadFilter, what)


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
            raise BadSort(f"A sort is a list of properties; ASC or DESC may follow each (character {place}).")
        words = match[2].lower().split()
        directions, others = [word for word in words if word in ("asc", "desc")], set(words) - {"asc", "desc"}
        if len(directions) > 1 or others - {"no-case"} or len(words) > 2:
            raise BadSort(f"Only ASC or DESC, and no-case, may follow a property to sort by (character {place}).")
        name = neutral(match[1])
        if name in {key.name for key in keys}:
            raise BadSort(f"The sort names {match[1][:64]!r} twice (character {place}).")
        keys.append(SortKey(name, directions == ["desc"], bool(others), f"character {place}"))
        if len(keys) > MAX_SORT_KEYS:
            raise BadSort(f"The sort names more than {MAX_SORT_KEYS} properties (character {place}).")
    return keys
