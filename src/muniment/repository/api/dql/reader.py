"""Read a DQL statement.

A refusal names its character, counted from 1, unless the statement is too long, or ``NameTranslation`` refuses a name.

Source: docs/dql.md, the grammar.
"""

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from muniment.ground.clock import read_timestamp
from muniment.ground.refusals import Refusal
from muniment.repository.api.dql.tree import (
    AskingUser,
    Column,
    Condition,
    Conjunction,
    Day,
    Disjunction,
    InFolder,
    InList,
    InRange,
    IsNull,
    KeywordClause,
    LikePattern,
    Moment,
    Negation,
    Operand,
    PropertyComparison,
    Statement,
    WrittenValue,
)
from muniment.repository.refusals import BadQuery
from muniment.repository.store.filters.pieces import NUMBER, TEXT, PieceReader, TextPiece
from muniment.repository.store.filters.reader import MAX_SORT_KEYS
from muniment.repository.store.filters.tree import Operator, SortKey

MAX_CHARACTERS = 16_000

MAX_DEPTH = 20

MAX_CLAUSES = 1000
"""Each further value of a list, and each further text with keywords, counts as a condition."""

MAX_COLUMNS = 200

_MAX_RUNS = 10
"""In a pattern, a database may try every place of a text for each ``%``."""

_PIECE = re.compile(
    rf"{TEXT}|{NUMBER}|(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)?)"
    r"|(?P<operator><=|>=|!=|<>|=|<|>)|(?P<mark>[(),*])"
)
_OPERATORS: dict[str, Operator] = {"=": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_DAYS: dict[str, Day] = {"now": "NOW", "today": "TODAY", "yesterday": "YESTERDAY", "tomorrow": "TOMORROW"}
_TWO_DIGITS = "[0-9]{1,2}"
_DATE_FIELDS = {"yyyy": "[0-9]{4}", "mon": "[a-z]{3}"}
_DATE_PARTS = ("yyyy", "mm", "dd", "hh", "mi", "ss")
_SAME_FIELDS = {"hh24": "hh", "mon": "mm"}
_DATE_FIELD = re.compile("yyyy|mon|mm|dd|hh24|hh|mi|ss")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATE_PATTERNS = ("yyyy/mm/dd hh:mi:ss", "yyyy/mm/dd", "mm/dd/yyyy hh:mi:ss", "mm/dd/yyyy", "dd-mon-yyyy")
"""The forms of dates that need no pattern, beside ISO 8601."""
_FUNCTIONS = ("upper", "lower")
_CLAUSES = ("search", "where", "order", "group", "having", "enable", "union", "for", "in")
_OTHER_STATEMENTS = (
    *("update", "create", "delete", "insert", "alter", "drop", "execute", "exec", "grant", "revoke", "change"),
    *("register", "unregister", "truncate", "begin", "commit", "abort"),
)


class NameTranslation(NamedTuple):
    """``row_count`` names the column of ``COUNT(*)``."""

    neutral_type: Callable[[str], str]
    neutral_property: Callable[[str], str]
    row_count: str


def read(text: str, names: NameTranslation) -> Statement:
    """Raises BadQuery, and UnknownType if ``names`` raises it."""
    if len(text) > MAX_CHARACTERS:
        raise BadQuery(f"The statement is longer than {MAX_CHARACTERS} characters.")
    return _Reader(text, names).read()


class _Reader(PieceReader):
    def __init__(self, text: str, names: NameTranslation) -> None:
        super().__init__(text.rstrip().removesuffix(";"), _PIECE, "A statement", BadQuery)
        self._names = names
        self._alias = ""
        self._depth = 0
        self._clauses = 0

    def read(self) -> Statement:
        first = self._next()
        if not first.says("select"):
            why = "Only SELECT is offered" if first.says(*_OTHER_STATEMENTS) else "A statement begins with SELECT"
            raise _bad(first, f"{why}, not {first.quote()}")
        distinct = self._distinct()
        columns_at = self._at
        self._skip_columns()
        self._take("from")
        type_piece = self._name("the name of a type")
        type_name, all_versions = self._names.neutral_type(type_piece.text), False
        if self._current.says("(") and self._peek().says("all"):
            self._at += 2
            self._take(")")
            all_versions = True
        if self._current.kind == "name" and not self._current.says(*_CLAUSES):
            self._alias = self._next().text.lower()
        if self._current.says(","):
            raise _bad(self._current, "A statement selects from one type")
        rest_at, self._at = self._at, columns_at
        columns, count, distinct_count = self._columns()
        distinct, self._at = distinct or distinct_count, rest_at
        fulltext = self._search() if self._optional("search") else ()
        condition = self._any() if self._optional("where") else None
        order = self._order(columns) if self._optional("order") else ()
        if self._optional("enable"):
            self._hints()
        if self._current.kind != "end":
            other_clauses = ("group", "having", "union", "for", "in")
            if self._current.says(*other_clauses):
                raise _bad(self._current, f"{self._current.text.upper()} is not offered")
            raise self._unexpected("its end")
        return Statement(type_name, columns, count, distinct, all_versions, fulltext, condition, order)

    def _skip_columns(self) -> None:
        """Step past the columns, which are read later: an alias in them is defined after ``FROM``."""
        while not self._current.says("from"):
            if self._current.kind == "end":
                raise self._unexpected("FROM")
            self._at += 1

    def _distinct(self) -> bool:
        """Step past ``DISTINCT`` or ``ALL``, unless it is the name of a column."""
        piece = self._current
        if not piece.says("distinct", "all") or self._peek().says(",", "from", ")", "as"):
            return False
        self._at += 1
        return piece.says("distinct")

    def _columns(self) -> tuple[tuple[Column, ...] | None, str | None, bool]:
        """Read the columns, the name of the column with the number of rows, and whether equal values count once."""
        if self._optional("*"):
            self._check("from")
            return None, None, False
        if self._current.says("count") and self._peek().says("("):
            self._at += 2
            counted, distinct = tuple[Column, ...](), self._distinct()
            if distinct:
                piece = self._name("the name of a property")
                counted = (Column(self._property(piece), piece.text, piece.at + 1),)
            elif not self._optional("*"):
                raise _bad(self._current, "COUNT counts rows: COUNT(*), or COUNT(DISTINCT property)")
            self._take(")")
            shown_as = self._shown_as(self._names.row_count)
            self._check("from")
            return counted, shown_as, distinct
        columns: list[Column] = []
        while True:
            piece = self._name("the name of a property")
            if self._current.says("("):
                raise _bad(piece, f"There is no function {piece.text[:40]!r}; COUNT(*) is offered")
            name = self._property(piece)
            columns.append(Column(name, self._shown_as(self._unaliased(piece)), piece.at + 1))
            if len(columns) > MAX_COLUMNS:
                raise _bad(piece, f"The statement has more than {MAX_COLUMNS} columns")
            if not self._optional(","):
                self._check("from")
                if len({column.shown_as for column in columns}) < len(columns):
                    raise _bad(piece, "Two columns have the same name: rename one of them with AS")
                return tuple(columns), None, False

    def _shown_as(self, name: str) -> str:
        if self._optional("as"):
            return self._name("a name")[1][:64]
        if self._current.kind == "name" and not self._current.says("from"):
            return self._next().text[:64]
        return name

    def _search(self) -> tuple[KeywordClause, ...]:
        self._take("document")
        self._take("contains")
        parts = [KeywordClause(self._text("a text"))]
        while self._current.says("and", "or"):
            joint: Literal["AND", "OR"] = "AND" if self._next().says("and") else "OR"
            negated = self._optional("not")
            self._optional("contains")
            self._count(self._current)
            parts.append(KeywordClause(self._text("a text"), joint, negated))
        return tuple(parts)

    def _order(self, columns: tuple[Column, ...] | None) -> tuple[SortKey, ...]:
        self._take("by")
        keys: list[SortKey] = []
        while True:
            piece = self._next()
            if piece.kind == "number" and piece.text.isdecimal() and columns:
                if not 0 < int(piece.text[:4]) <= len(columns):
                    raise _bad(piece, f"There is no column {piece.text[:10]}")
                name = columns[int(piece.text[:4]) - 1].name
            elif piece.kind == "name":
                by_alias = [column.name for column in columns or () if column.shown_as.lower() == piece.text.lower()]
                name = by_alias[0] if by_alias else self._property(piece)
            else:
                raise _bad(piece, f"ORDER BY names a property or a column, not {piece.quote()}")
            descending = self._current.says("desc", "descending")
            if descending or self._current.says("asc", "ascending"):
                self._at += 1
            if name in {key.name for key in keys}:
                raise _bad(piece, "ORDER BY names a property twice")
            keys.append(SortKey(name, descending, folded=False, place=f"character {piece.at + 1}"))
            if len(keys) > MAX_SORT_KEYS:
                raise _bad(piece, f"ORDER BY names more than {MAX_SORT_KEYS} properties")
            if not self._optional(","):
                return tuple(keys)

    def _hints(self) -> None:
        self._take("(")
        depth = 1
        while depth:
            piece = self._next()
            if piece.kind == "end":
                raise self._unexpected("')'")
            depth += piece.says("(") - piece.says(")")

    def _any(self) -> Condition:
        parts = self._separated("or", self._all)
        return parts[0] if len(parts) == 1 else Disjunction(tuple(parts))

    def _all(self) -> Condition:
        parts = self._separated("and", self._condition)
        return parts[0] if len(parts) == 1 else Conjunction(tuple(parts))

    def _condition(self) -> Condition:
        piece, following = self._current, self._peek()
        if piece.says("not", "("):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise _bad(piece, f"The statement is nested deeper than {MAX_DEPTH}")
            self._at += 1
            if piece.says("not"):
                condition: Condition = Negation(self._condition())
            else:
                if self._current.says("select"):
                    raise _bad(self._current, "A statement within a statement is not offered")
                condition = self._any()
                self._take(")")
            self._depth -= 1
            return condition
        if piece.says("folder", "cabinet") and following.says("("):
            return self._folder()
        if piece.says("any") and following.kind == "name":
            self._at += 1
        return self._comparison()

    def _folder(self) -> InFolder:
        piece = self._next()
        self._take("(")
        path, folder_id = "", ""
        if self._optional("id"):
            self._take("(")
            folder_id = self._text("an id").lower()
            self._take(")")
        else:
            path = self._text("a path")
            if not path.startswith("/"):
                raise _bad(piece, "A path begins with '/'")
        descend = self._optional(",")
        if descend:
            self._take("descend")
        self._take(")")
        self._count(piece)
        return InFolder(path, folder_id, descend, piece.at + 1)

    def _comparison(self) -> Condition:
        piece = self._current
        wrapped = piece.says(*_FUNCTIONS) and self._peek().says("(")
        if wrapped:  # Texts are compared without case, so UPPER and LOWER change nothing.
            self._at += 2
        piece = self._name("the name of a property")
        if self._current.says("(") and not wrapped:
            raise _bad(piece, f"There is no function {piece.text[:40]!r} in conditions")
        name, place = self._property(piece), piece.at + 1
        if wrapped:
            self._take(")")
        self._count(piece)
        if self._optional("is"):
            negated = self._optional("not")
            if not self._current.says("null", "nullstring", "nulldate", "nullint", "nullid"):
                raise self._unexpected("NULL or NOT NULL")
            self._at += 1
            return Negation(IsNull(name, place)) if negated else IsNull(name, place)
        negated = self._optional("not")
        if self._optional("like"):
            return self._maybe(LikePattern(name, self._pattern(), place), negated=negated)
        if self._optional("between"):
            low = self._operand()
            self._take("and")
            return self._maybe(InRange(name, low, self._operand(), place), negated=negated)
        if self._optional("in"):
            return self._maybe(InList(name, self._list(), place), negated=negated)
        if negated or self._current.kind != "operator":
            raise self._unexpected("a comparison, LIKE, IN, BETWEEN or IS")
        operator = _OPERATORS[self._next().text]
        return PropertyComparison(name, operator, self._operand(), place)

    @staticmethod
    def _maybe(condition: Condition, *, negated: bool) -> Condition:
        return Negation(condition) if negated else condition

    def _list(self) -> tuple[Operand, ...]:
        self._take("(")
        if self._current.says("select"):
            raise _bad(self._current, "A statement within a statement is not offered")
        operands = [self._operand()]
        while self._optional(","):
            self._count(self._current)
            operands.append(self._operand())
        self._take(")")
        return tuple(operands)

    def _pattern(self) -> tuple[str | None, ...]:
        """``%`` stands for any run of characters, ``_`` for one."""
        first = self._current
        pattern, escape = self._text("a pattern"), ""
        if self._optional("escape"):
            piece = self._current
            escape = self._text("a character")
            if len(escape) != 1:
                raise _bad(piece, "ESCAPE names one character")
        parts: list[str | None] = []
        letters, at = "", 0
        while at < len(pattern):
            letter = pattern[at]
            at += 1
            if escape and letter == escape and at < len(pattern):
                letters += pattern[at]
                at += 1
            elif letter in "%_":
                if letters:
                    parts.append(letters)
                    letters = ""
                if letter == "%" and parts.count("") >= _MAX_RUNS:
                    raise _bad(first, f"A pattern has '%' more than {_MAX_RUNS} times")
                parts.append("" if letter == "%" else None)
            else:
                letters += letter
        return (*parts, letters) if letters else tuple(parts)

    def _operand(self) -> Operand:
        piece = self._next()
        if piece.kind in ("text", "number"):
            return WrittenValue("text", piece.content()) if piece.kind == "text" else WrittenValue("number", piece.text)
        if piece.says("true", "false"):
            return WrittenValue("truth", piece.text.lower())
        if piece.says("user"):
            return AskingUser()
        if piece.says("date") and self._current.says("("):
            return self._date()
        if piece.says("id", *_FUNCTIONS) and self._current.says("("):
            self._at += 1
            text = self._text("a text")
            self._take(")")
            return WrittenValue("text", text)
        what = "a text in quotes, a number, a date, TRUE, FALSE or USER"
        raise _bad(piece, f"A property is compared with {what}, not {piece.quote()}")

    def _date(self) -> Operand:
        self._take("(")
        piece = self._next()
        if piece.kind == "name" and piece.text.lower() in _DAYS:
            self._take(")")
            return Moment(_DAYS[piece.text.lower()])
        if piece.kind != "text":
            raise _bad(piece, f"DATE holds a date in quotes, NOW, TODAY, YESTERDAY or TOMORROW, not {piece.quote()}")
        text = piece.content()
        if self._optional(","):
            pattern = self._text("a pattern")
            moment = _by_pattern(text, pattern)
            if moment is None:
                raise _bad(piece, f"{text[:40]!r} is not a date in the form of the pattern {pattern[:40]!r}")
        else:
            moment = next((found for pattern in _DATE_PATTERNS if (found := _by_pattern(text, pattern))), text)
        self._take(")")
        try:
            read_timestamp(moment)
        except ValueError as error:
            raise _bad(piece, f"{text[:40]!r} is not a date in ISO 8601") from error
        return WrittenValue("date", moment)

    def _property(self, piece: TextPiece) -> str:
        return self._names.neutral_property(self._unaliased(piece))

    def _unaliased(self, piece: TextPiece) -> str:
        alias, dot, name = piece.text.partition(".")
        if dot and alias.lower() != self._alias:
            raise _bad(piece, f"No type of the statement has the alias {alias[:40]!r}")
        return name if dot else piece.text

    def _count(self, piece: TextPiece) -> None:
        self._clauses += 1
        if self._clauses > MAX_CLAUSES:
            raise _bad(piece, f"The statement has more than {MAX_CLAUSES} comparisons and values")

    def _text(self, what: str) -> str:
        if self._current.kind != "text":
            raise self._unexpected(f"{what} in quotes")
        return self._next().content()

    def _name(self, what: str) -> TextPiece:
        if self._current.kind != "name":
            raise self._unexpected(what)
        return self._next()


def _by_pattern(text: str, pattern: str) -> str | None:
    """Read a date in the form of a pattern such as ``mm/dd/yyyy hh:mi:ss``. None if it has another form."""
    fields = _DATE_FIELD.findall(pattern.lower())
    parts = _DATE_FIELD.split(pattern.lower())
    expression = re.escape(parts[0])
    for field, separator in zip(fields, parts[1:], strict=True):
        expression += f"({_DATE_FIELDS.get(field, _TWO_DIGITS)}){re.escape(separator)}"
    names = [_SAME_FIELDS.get(field, field) for field in fields]
    match = re.fullmatch(expression, text.strip().lower()) if len(set(names)) == len(names) <= 6 else None
    if match is None or not {"yyyy", "mm", "dd"} <= set(names):
        return None
    values = dict.fromkeys(_DATE_PARTS, "0") | dict(zip(names, match.groups(), strict=True))
    if "mon" in fields:
        values["mm"] = str(_MONTHS.index(values["mm"]) + 1) if values["mm"] in _MONTHS else "99"
    year, month, day, hour, minute, second = (int(values[name]) for name in _DATE_PARTS)
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"


def _bad(piece: TextPiece, what: str) -> Refusal:
    return piece.refusal(BadQuery, what)
