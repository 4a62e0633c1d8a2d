"""What is the text of a PDF? Its pages give their words, in the order in which they are read."""

import io
import re
from collections.abc import Iterator
from ctypes import byref, c_double
from typing import BinaryIO

import msgspec
import pypdfium2
import pypdfium2.raw

from muniment.repository.extraction.findings import Extracted, Limits, Unreadable, about, separate
from muniment.repository.extraction.right_to_left import Glyph, in_reading_order, is_read_to_the_left

_PAGE_PICTURE = 3
_UNENDED = "The file is truncated or damaged: its end is missing."
_LINE_END = re.compile("\r?\n")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff]")
_DATE = re.compile(
    r"(?:D:)?(\d{4})(?:(\d\d)(?:(\d\d)(?:(\d\d)(?:(\d\d)(\d\d)?)?)?)?)?(?:Z|([+-])(\d\d)'?(\d\d)?)?", re.ASCII
)
_HYPHEN = re.compile("[\ufffe\x02][ \t]*\r?\n?")
"""What pdfium writes for a hyphen at the end of a line, and for the end of that line."""


def read(file: BinaryIO, limits: Limits) -> Extracted:
    """Read the text of a PDF. Raises Unreadable."""
    file.seek(max(0, file.seek(0, io.SEEK_END) - 2048))
    has_end = b"%%EOF" in file.read()
    file.seek(0)
    try:
        pdf = pypdfium2.PdfDocument(file)
    except pypdfium2.PdfiumError as error:
        if "assword" in str(error) or "ecurity" in str(error):
            raise Unreadable("The file is encrypted: it opens with a password only.") from error
        raise Unreadable(_UNENDED if not has_end else "The PDF is damaged and cannot be read.") from error
    pieces: list[str] = []
    length = unread = pictures = 0
    for number in range(len(pdf)):
        try:
            page = pdf[number]
            text = _page_text(page.get_textpage())
            if not text.strip():
                pictures += any(item.type == _PAGE_PICTURE for item in page.get_objects(max_depth=3))
            page.close()
        except pypdfium2.PdfiumError:
            unread += 1
            continue
        pieces.append(text)
        length += len(text)
        if length > limits.characters:
            break
    result = _result("\n".join(pieces), len(pdf), unread, pictures, has_end)
    return msgspec.structs.replace(result, properties=_about(pdf))


def _about(pdf: pypdfium2.PdfDocument) -> dict[str, list[str]]:
    said: dict[str, str] = pdf.get_metadata_dict()
    names = ("Title", "Subject", "Author", "Keywords")
    title, subject, author, keywords = (said.get(name, "") for name in names)
    dates = [_iso(said.get(name, "")) for name in ("ModDate", "CreationDate")]
    return about(title, subject, separate(author), separate(keywords), dates)


def _iso(date: str) -> str:
    """Write a PDF's date (PDF 32000-1 7.9.4) in ISO 8601; empty if it is none."""
    found = _DATE.match(date)
    if found is None:
        return ""
    year, month, day, hour, minute, second, sign, hours, minutes = found.groups()
    offset = f"{sign}{hours}:{minutes or '00'}" if hours else "Z"
    return f"{year}-{month or '01'}-{day or '01'}T{hour or '00'}:{minute or '00'}:{second or '00'}{offset}"


def _result(text: str, pages: int, unread: int, pictures: int, has_end: bool) -> Extracted:
    if not text.strip() and not has_end:
        raise Unreadable(_UNENDED)
    if unread:
        return Extracted(text if text.strip() else "", f"{unread} of {pages} pages could not be read.")
    if not text.strip() and pictures:
        return Extracted("", "The pages hold pictures only, no text.", scanned=True)
    if not text.strip():
        return Extracted("", "The pages hold no text.")
    return Extracted(text, "" if has_end else f"{_UNENDED} The text is what could be read of it.")


def _page_text(page: pypdfium2.PdfTextPage) -> str:
    text: str = page.get_text_range()
    if _RIGHT_TO_LEFT.search(text):
        text = "\n".join(_lines(page))
    return _HYPHEN.sub("-\n", text)


def _lines(page: pypdfium2.PdfTextPage) -> Iterator[str]:
    left, right, bottom, top = (c_double() for _ in range(4))
    line: list[Glyph] = []
    height = 0.0
    for number in range(page.count_chars()):
        code = pypdfium2.raw.FPDFText_GetUnicode(page, number)
        if chr(code) in {"\r", "\n"}:
            if line:
                yield _line_text(line, height)
            line, height = [], 0.0
        elif code and not 0xD800 <= code < 0xE000:
            edges = byref(left), byref(right), byref(bottom), byref(top)
            pypdfium2.raw.FPDFText_GetCharBox(page, number, *edges)
            line.append(Glyph(chr(code), left.value, right.value))
            height = max(height, top.value - bottom.value)
    yield _line_text(line, height)


def _line_text(line: list[Glyph], height: float) -> str:
    if any(is_read_to_the_left(glyph.character) for glyph in line):
        return in_reading_order(line, height / 4)
    return "".join(glyph.character for glyph in line)
