"""What is the text of a PDF?"""

import io
import re
from collections.abc import Callable, Iterable, Iterator
from ctypes import byref, c_double, create_string_buffer
from typing import Any, BinaryIO

import msgspec
import pypdfium2
import pypdfium2.raw

from muniment.repository.store.extraction.findings import Extracted, Limits, Unreadable, about, separate
from muniment.repository.store.extraction.readers.right_to_left import Glyph, in_reading_order, is_read_to_the_left

_PAGE_PICTURE = 3
_PASSWORD = 1 << 13
_MOST_OPTIONS = 1000
_MOST_FIELDS = 5000
"""The library's time is quadratic in the number of fields: 5,000 take about a second."""
_UNENDED = "The file is truncated or damaged: its end is missing."
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff]")
_DATE = re.compile(
    r"(?:D:)?(\d{4})(?:(\d\d)(?:(\d\d)(?:(\d\d)(?:(\d\d)(\d\d)?)?)?)?)?(?:Z|([+-])(\d\d)'?(\d\d)?)?", re.ASCII
)
_HYPHEN = re.compile("[\ufffe\x02][ \t]*\r?\n?")
"""What pdfium writes for a hyphen at the end of a line."""


def read(file: BinaryIO, limits: Limits) -> Extracted:
    """Raises Unreadable."""
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
    widgets: dict[int, int] = {}
    for number in range(len(pdf)):
        try:
            page = pdf[number]
            text = _page_text(page.get_textpage())
            if found := sum(1 for each in _annotations(page) if _is_widget(each)):
                widgets[number] = found
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
    is_read = sum(widgets.values()) <= _MOST_FIELDS
    in_form: dict[str, None] = {}
    for text in _form(pdf, widgets) if widgets and is_read and length <= limits.characters else ():
        in_form[text] = None
        length += len(text)
        if length > limits.characters:
            break
    pieces += in_form
    result = _result("\n".join(pieces), len(pdf), unread, pictures, has_end)
    note = result.note if is_read else f"{result.note} The form has too many fields; they were not read.".strip()
    return msgspec.structs.replace(result, note=note, properties=_about(pdf))


def _about(pdf: pypdfium2.PdfDocument) -> dict[str, list[str]]:
    said: dict[str, str] = pdf.get_metadata_dict()
    names = ("Title", "Subject", "Author", "Keywords")
    title, subject, author, keywords = (said.get(name, "") for name in names)
    dates = [_iso(said.get(name, "")) for name in ("ModDate", "CreationDate")]
    return about(title, subject, separate(author), separate(keywords), dates)


def _iso(date: str) -> str:
    """Convert a PDF's date (PDF 32000-1 7.9.4); return an empty text for none."""
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


def _annotations(page: pypdfium2.PdfPage) -> Iterator[Any]:
    for number in range(pypdfium2.raw.FPDFPage_GetAnnotCount(page)):
        if annotation := pypdfium2.raw.FPDFPage_GetAnnot(page, number):
            yield annotation
            pypdfium2.raw.FPDFPage_CloseAnnot(annotation)


def _is_widget(annotation: Any) -> bool:
    is_hidden = pypdfium2.raw.FPDFAnnot_GetFlags(annotation) & pypdfium2.raw.FPDF_ANNOT_FLAG_HIDDEN
    return pypdfium2.raw.FPDFAnnot_GetSubtype(annotation) == pypdfium2.raw.FPDF_ANNOT_WIDGET and not is_hidden


def _form(pdf: pypdfium2.PdfDocument, numbers: Iterable[int]) -> Iterator[str]:
    # With a form of the binding's own, each page would be painted for its fields, which takes long.
    settings = pypdfium2.raw.FPDF_FORMFILLINFO(version=2)
    form = pypdfium2.raw.FPDFDOC_InitFormFillEnvironment(pdf, settings)
    try:
        for number in numbers if form else ():
            page = pdf[number]
            for field in filter(_is_widget, _annotations(page)):
                yield from _shown(form, field)
            page.close()
    finally:
        pypdfium2.raw.FPDFDOC_ExitFormFillEnvironment(form)


def _shown(form: Any, field: Any) -> Iterator[str]:
    raw = pypdfium2.raw
    kinds = (raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX)
    if raw.FPDFAnnot_GetFormFieldType(form, field) not in kinds:
        return
    options = range(min(_MOST_OPTIONS, raw.FPDFAnnot_GetOptionCount(form, field)))
    chosen = [each for each in options if raw.FPDFAnnot_IsOptionSelected(form, field, each)]
    yield from (_wide(raw.FPDFAnnot_GetOptionLabel, form, field, each) for each in chosen)
    if not chosen and not raw.FPDFAnnot_GetFormFieldFlags(form, field) & _PASSWORD:
        yield _wide(raw.FPDFAnnot_GetFormFieldValue, form, field)


def _wide(read: Callable[..., int], *of_what: Any) -> str:
    size = read(*of_what, None, 0)
    text = create_string_buffer(size + 2)
    read(*of_what, pypdfium2.raw.FPDF_WCHAR.from_buffer(text), size)
    return text.raw[:size].decode("utf-16-le", "replace").rstrip("\0").replace("\r", "\n")


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
