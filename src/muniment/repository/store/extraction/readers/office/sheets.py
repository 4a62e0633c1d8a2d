"""What is in the cells of a spreadsheet?

The parts of an Excel file say, in the order of ECMA-376, how cells show them.
"""

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, NamedTuple

import lxml.etree
import python_calamine

from muniment.repository.store.extraction.findings import Unreadable
from muniment.repository.store.extraction.readers.office import cells

_MOST_CELLS = 500_000
"""Values further down come without what their cells show."""

_REFERENCE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
_MARGIN_CODE = re.compile(r'&(?:"[^"]*"|K[0-9A-Fa-f]{6}|K\d\d[+-]\d{3}|\d+|[A-JL-Za-z])')
_MARGINS = frozenset(f"{pages}{place}" for pages in ("odd", "even", "first") for place in ("Header", "Footer"))

STRING, COMMENT = 19, 637
"""Records in a binary workbook: a string of its table, the text of a comment."""

ShownCells = Mapping[tuple[int, int], str]
"""Rows and columns are counted from 0."""


class Unusable(Exception):
    """The library cannot read the workbook."""


class Formats(NamedTuple):
    """Number formats by style, and whether days count from 1904."""

    of_styles: Sequence[tuple[int, str]] = ()
    since_1904: bool = False


def read_formats(book: lxml.etree._Element, styles: lxml.etree._Element) -> Formats:
    codes = {entry.get("numFmtId"): entry.get("formatCode") or "" for entry in styles.iter("{*}numFmt")}
    numbers = [entry.get("numFmtId", "0") for entry in styles.iterfind("{*}cellXfs/{*}xf")]
    of_styles = [(int(number) if number.isdecimal() else 0, codes.get(number, "")) for number in numbers]
    properties = book.find("{*}workbookPr")
    since_1904 = properties is not None and properties.get("date1904") in {"1", "true", "on"}
    return Formats(of_styles, since_1904)


class Room:
    """What may still be kept of what cells show, over all sheets."""

    def __init__(self, characters: int) -> None:
        self.characters = characters
        self.cells = _MOST_CELLS

    def is_left(self) -> bool:
        return self.characters > 0 and self.cells > 0


class Shown:
    """Collects what cells show, as the target of an XML parser, and the sheet's header and footer."""

    def __init__(self, formats: Formats, room: Room) -> None:
        self.cells: dict[tuple[int, int], str] = {}
        self.margins: list[str] = []
        self._room = room
        self._formats = formats
        self._place: tuple[int, int] | None = None
        self._style = 0
        self._row = self._column = -1
        self._pieces: list[str] | None = None

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = tag.rpartition("}")[2]
        if name == "row":
            number = attributes.get("r", "")
            self._row = int(number) - 1 if number.isdecimal() else self._row + 1
            self._column = -1
        elif name == "c":
            self._begin_cell(attributes)
        elif name in _MARGINS or (name == "v" and self._place):
            self._pieces = []

    def end(self, tag: str) -> None:
        name = tag.rpartition("}")[2]
        if self._pieces is None:
            return
        text = "".join(self._pieces)
        if name == "v" and self._place:
            self._keep(text)
            self._pieces = None
        elif name in _MARGINS:
            self.margins.append(_MARGIN_CODE.sub(" ", text.replace("&&", "\uff06")).replace("\uff06", "&"))
            self._pieces = None

    def data(self, text: str) -> None:
        if self._pieces is not None:
            self._pieces.append(text)

    def doctype(self, _name: str, _public: str | None, _system: str | None) -> None:
        """Refuse what could declare entities."""
        raise Unreadable("The file is damaged: a part of it has a document type declaration.")

    def close(self) -> None: ...

    def _begin_cell(self, attributes: Mapping[str, str]) -> None:
        self._column += 1
        self._room.cells -= 1
        if place := _REFERENCE.fullmatch(attributes.get("r", "")):
            self._column = -1
            for letter in place[1]:
                self._column = (self._column + 1) * 26 + ord(letter) - ord("A")
            self._row = int(place[2]) - 1
        style = attributes.get("s", "0")
        self._style = int(style) if style.isdecimal() else 0
        is_number = attributes.get("t", "n") == "n" and 0 < self._style < len(self._formats.of_styles)
        self._place = (self._row, self._column) if is_number else None

    def _keep(self, text: str) -> None:
        try:
            value = float(text)
        except ValueError:
            return
        number, code = self._formats.of_styles[self._style]
        shown = cells.shown(value, number, code, since_1904=self._formats.since_1904)
        if self._place and shown and shown != text:
            self.cells[self._place] = shown
            self._room.characters -= len(shown)


def texts(file: BinaryIO, shown_in: Mapping[str, ShownCells], characters: int) -> Iterator[tuple[str, str]]:
    """Raises Unreadable, Unusable."""
    file.seek(0)
    try:
        with python_calamine.CalamineWorkbook.from_filelike(file) as workbook:
            for name in workbook.sheet_names:
                yield name, _text(workbook.get_sheet_by_name(name), name, shown_in.get(name, {}), characters)
    except python_calamine.CalamineError as error:
        raise Unreadable(f"The file is damaged: {str(error)[:300]}") from error
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise Unusable from error
        raise


def strings(content: bytes, wanted: int) -> str:
    """``wanted`` is the kind of record in the binary workbook (MS-XLSB 2.4.740, 2.4.332)."""
    found, place = [], 0
    while place < len(content):
        kind, place = _number(content, place, 2)
        size, place = _number(content, place, 4)
        if kind == wanted:
            length = int.from_bytes(content[place + 1 : place + 5], "little")
            found.append(content[place + 5 : min(place + 5 + 2 * length, place + size)].decode("utf-16-le", "replace"))
        place += size
    return "\n".join(found)


def _number(content: bytes, place: int, most: int) -> tuple[int, int]:
    value = 0
    for shift in range(most):
        byte = content[place] if place < len(content) else 0
        place += 1
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            break
    return value, place


def _text(sheet: python_calamine.CalamineSheet, name: str, shown: ShownCells, characters: int) -> str:
    lines = [name]
    length = 0
    for number, row in enumerate(sheet.iter_rows()):
        pieces = (f"{_value(value)} {shown.get((number, column), '')}".strip() for column, value in enumerate(row))
        line = " ".join(filter(None, pieces))
        if line:
            lines.append(line)
            length += len(line)
        if length > characters:
            break
    return "\n".join(lines)


def _value(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, dt.datetime) and value.time() == dt.time.min:
        return str(value.date())
    return str(value).upper() if isinstance(value, bool) else str(value)
