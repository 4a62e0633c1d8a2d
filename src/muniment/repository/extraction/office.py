"""What is the text of a word processor's file, of slides, of a spreadsheet, of a book? Each is a ZIP file of parts.

The XML of texts and slides is read as a stream: no tree of it is built; a part that could declare entities is refused.
Trees are built of the small parts that say where other parts are. The pages of books are read as web pages, the cells
of spreadsheets by a library. Text that a reader of the document may see is taken, but no names of styles. The rules
that name elements follow ECMA-376 (Office Open XML), OpenDocument 1.3 and EPUB 3.3. Names of elements are usually
compared without their namespaces, because strict and transitional Office Open XML use the same names in different
namespaces.
"""

import datetime as dt
import posixpath
import urllib.parse
import zipfile
from collections.abc import Iterator, Mapping
from typing import BinaryIO, NamedTuple

import lxml.etree
import python_calamine

from muniment.repository.extraction import markup, packed
from muniment.repository.extraction.findings import Extracted, Limits, Unreadable
from muniment.repository.extraction.formats import Format

_PIECE = 1 << 16
_RELATIONSHIP = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_CUT_OFF = "The XML is not well-formed; the text is what could be read of it."


class _Dialect(NamedTuple):
    """Which elements of a part hold text (``texts``), stand for a break or a blank, or are left out?"""

    texts: frozenset[str]
    lines: frozenset[str]
    blanks: frozenset[str]
    skipped: frozenset[str]


_OOXML = _Dialect(
    texts=frozenset({"t"}),
    lines=frozenset({"p", "br", "cr", "tr", "si", "comment"}),
    blanks=frozenset({"tab", "ptab", "tc"}),
    # A text box is written twice, the second time as the Fallback for older programs. Moved text stands at its old and
    # its new place. A field (fld) holds a slide's number or today's date. A ruby text (rt, rPh) splits words.
    skipped=frozenset({"Fallback", "moveFrom", "fld", "rt", "rPh"}),
)
_OPEN_DOCUMENT = _Dialect(
    texts=frozenset({"p", "h"}),
    lines=frozenset({"p", "h", "line-break", "note", "annotation", "title", "desc"}),
    blanks=frozenset({"s", "tab"}),
    skipped=frozenset(
        {"tracked-changes", "note-citation", "ruby-text", "page-number", "page-count", "creator", "date-string"}
    ),
)
_OPEN_DOCUMENT_MARGINS = _OPEN_DOCUMENT._replace(
    texts=frozenset(f"{place}{pages}" for place in ("header", "footer") for pages in ("", "-left", "-first")),
)
_AROUND_TEXT = ("header", "footer", "footnotes", "endnotes", "comments", "diagramData")
_AROUND_SLIDE = ("notesSlide", "comments", "diagramData")


class _Words:
    """Collects the text of a part, as the target of an XML parser."""

    def __init__(self, dialect: _Dialect) -> None:
        self._dialect = dialect
        self._inside = self._skipping = 0
        self.pieces: list[str] = []
        self.length = 0

    def start(self, tag: str, _attributes: Mapping[str, str]) -> None:
        name = tag.rpartition("}")[2]
        if self._skipping or name in self._dialect.skipped:
            self._skipping += 1
            return
        self._inside += name in self._dialect.texts
        self._break(name)

    def end(self, tag: str) -> None:
        if self._skipping:
            self._skipping -= 1
            return
        name = tag.rpartition("}")[2]
        self._inside -= name in self._dialect.texts
        self._break(name)

    def data(self, text: str) -> None:
        if self._inside and not self._skipping:
            self.pieces.append(text)
            self.length += len(text)

    def doctype(self, _name: str, _public: str | None, _system: str | None) -> None:
        """Refuse a document type, which could declare entities: ECMA-376 part 2 forbids it, and nobody needs it."""
        raise Unreadable("The file is damaged: a part of it has a document type declaration.")

    def close(self) -> None:
        """End the document, as the parser's interface asks."""

    def _break(self, name: str) -> None:
        if name in self._dialect.lines:
            self.pieces.append("\n")
        elif name in self._dialect.blanks:
            self.pieces.append(" ")
        elif name == "noBreakHyphen":
            self.pieces.append("-")


class _Package:
    """An open ZIP file, whose parts ``packed`` has checked, and the text that was read from it."""

    def __init__(self, archive: zipfile.ZipFile, limits: Limits) -> None:
        self._archive = archive
        self._names = set(archive.namelist())
        self._characters_left = limits.characters
        self._pieces: list[str] = []
        self._note = ""

    def add(self, part: str, dialect: _Dialect) -> None:
        """Add the text of an XML part. Add nothing if there is no such part or the text is long enough already.

        Raises Unreadable if the part has a document type, or holds no text before the place where its XML is damaged.
        """
        if part not in self._names or self._characters_left < 0:
            return
        words = _Words(dialect)
        parser = _parser(words)
        try:
            with self._archive.open(part) as stream:
                while words.length <= self._characters_left and (piece := stream.read(_PIECE)):
                    parser.feed(piece)
            if words.length <= self._characters_left:
                parser.close()
        except lxml.etree.XMLSyntaxError as error:
            if not words.length:
                raise Unreadable(f"The file is damaged: {part} cannot be read: {str(error)[:200]}") from error
            self._note = _CUT_OFF
        self.add_text("".join(words.pieces))

    def add_page(self, part: str) -> None:
        """Add the text of an XHTML part. Add nothing if there is no such part or the text is long enough already."""
        if part in self._names and self._characters_left >= 0:
            self.add_text(markup.html_text(self._archive.read(part)).text)

    def add_text(self, text: str) -> None:
        """Add a text."""
        self._pieces.append(text)
        self._characters_left -= len(text)

    def tree(self, part: str) -> lxml.etree._Element:
        """Parse a small part that says where other parts are. Raises Unreadable."""
        try:
            return lxml.etree.fromstring(self._archive.read(part), _parser(None))
        except (KeyError, lxml.etree.XMLSyntaxError) as error:
            raise Unreadable(f"The file is damaged: its part {part} is missing or cannot be read.") from error

    def related_parts(self, part: str) -> Iterator[tuple[str, str, str]]:
        """Yield each reference from a part of an Office Open XML file to another part: its id, its kind, that part."""
        folder, name = posixpath.split(part)
        relations = posixpath.join(folder, "_rels", f"{name}.rels")
        if relations not in self._names:
            return
        for relation in self.tree(relations).iter(_RELATIONSHIP):
            if relation.get("TargetMode") != "External":
                kind = relation.get("Type", "").rpartition("/")[2]
                yield relation.get("Id", ""), kind, _target(folder, relation.get("Target", ""))

    def names(self, *beginnings: str) -> set[str]:
        """Return the names of those parts whose names begin with one of ``beginnings``."""
        return {name for name in self._names if name.startswith(beginnings)}

    def main_part(self) -> str:
        """Return the name of the main part of an Office Open XML file. Raises Unreadable."""
        for _id, kind, part in self.related_parts(""):
            if kind == "officeDocument":
                return part
        raise Unreadable("The file is damaged: it does not name its main part.")

    def result(self) -> Extracted:
        """Return all text, in the order in which it was added."""
        return Extracted("\n".join(self._pieces), self._note)


def read(file: BinaryIO, format_: Format, limits: Limits) -> Extracted:
    """Read the text of a file of the office family or of a book. Raises Unreadable, Unsupported."""
    packed.check_parts(file, limits)
    try:
        with zipfile.ZipFile(file) as archive:
            package = _Package(archive, limits)
            match format_:
                case "docx":
                    _document(package)
                case "pptx":
                    _slides(package)
                case "xlsx" | "ods":
                    _sheets(package, file, limits)
                case "epub":
                    _book(package)
                case _:
                    package.add("content.xml", _OPEN_DOCUMENT)
                    if format_ == "odt":
                        package.add("styles.xml", _OPEN_DOCUMENT_MARGINS)
            return package.result()
    except zipfile.BadZipFile as error:
        raise Unreadable("The file is truncated or damaged: its parts cannot be unpacked.") from error


def _document(package: _Package) -> None:
    main = package.main_part()
    around = [(kind, part) for _id, kind, part in package.related_parts(main) if kind in _AROUND_TEXT]
    for kind, part in around:
        if kind == "header":
            package.add(part, _OOXML)
    package.add(main, _OOXML)
    for kind, part in around:
        if kind != "header":
            package.add(part, _OOXML)


def _slides(package: _Package) -> None:
    main = package.main_part()
    parts = {key: part for key, kind, part in package.related_parts(main) if kind == "slide"}
    for element in package.tree(main).iter("{*}sldId"):
        keys = (value for name, value in element.attrib.items() if str(name).endswith("}id"))
        slide = parts.get(str(next(keys, "")), "")
        package.add(slide, _OOXML)
        for _id, kind, part in package.related_parts(slide):
            if kind in _AROUND_SLIDE:
                package.add(part, _OOXML)


def _sheets(package: _Package, file: BinaryIO, limits: Limits) -> None:
    file.seek(0)
    try:
        with python_calamine.CalamineWorkbook.from_filelike(file) as workbook:
            for name in workbook.sheet_names:
                package.add_text(_sheet(workbook, name, limits.characters))
    except python_calamine.CalamineError as error:
        raise Unreadable(f"The file is damaged: {str(error)[:300]}") from error
    for part in sorted(package.names("xl/comments", "xl/drawings/drawing")):
        package.add(part, _OOXML)


def _sheet(workbook: python_calamine.CalamineWorkbook, name: str, characters: int) -> str:
    lines = [name]
    length = 0
    for row in workbook.get_sheet_by_name(name).iter_rows():
        line = " ".join(cell for cell in map(_cell, row) if cell)
        if line:
            lines.append(line)
            length += len(line)
        if length > characters:
            break
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, dt.datetime) and value.time() == dt.time.min:
        return str(value.date())
    return str(value).upper() if isinstance(value, bool) else str(value)


def _book(package: _Package) -> None:
    root = package.tree("META-INF/container.xml").find(".//{*}rootfile")
    if root is None:
        raise Unreadable("The file is damaged: the book does not name its main part.")
    main = root.get("full-path", "")
    book = package.tree(main)
    parts = {item.get("id"): item.get("href", "") for item in book.iter("{*}item")}
    for reference in book.iter("{*}itemref"):
        place = urllib.parse.unquote(parts.get(reference.get("idref"), ""))
        package.add_page(_target(posixpath.dirname(main), place))


def _target(folder: str, place: str) -> str:
    return posixpath.normpath(posixpath.join("/", folder, place)).lstrip("/")


def _parser(target: _Words | None) -> lxml.etree.XMLParser:
    return lxml.etree.XMLParser(
        target=target,  # type: ignore[arg-type]  # the stubs ask for methods that lxml does not need
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
    )
