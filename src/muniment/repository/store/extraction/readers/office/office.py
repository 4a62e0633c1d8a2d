"""What is the text of a word processor's file, of slides, of a spreadsheet, of a book?

The XML of texts and slides is read as a stream, without a tree; a part that could declare entities is refused. Pages of
books are read as web pages, cells by a library.

Text that a reader of the document may see is taken, but no names of styles. The rules that name elements follow
ECMA-376 (Office Open XML), OpenDocument 1.3 and EPUB 3.3. Elements are usually compared without namespaces, because
strict and transitional Office Open XML have different ones.
"""

import contextlib
import posixpath
import urllib.parse
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import BinaryIO, NamedTuple

import lxml.etree

from muniment.repository.store.extraction import embedded
from muniment.repository.store.extraction.findings import Extracted, Unreadable, about, separate
from muniment.repository.store.extraction.formats import Format
from muniment.repository.store.extraction.readers import inner_files, markup
from muniment.repository.store.extraction.readers.office import packed, sheets

_PIECE = 1 << 16
_RELATIONSHIP = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_CUT_OFF = "The XML is not well-formed; the text is what could be read of it."


class _Dialect(NamedTuple):
    texts: frozenset[str]
    lines: frozenset[str]
    blanks: frozenset[str]
    skipped: frozenset[str]
    kinds_of_cells: frozenset[str] = frozenset()


_OOXML = _Dialect(
    texts=frozenset({"t"}),
    lines=frozenset({"p", "br", "cr", "tr", "si", "comment"}),
    blanks=frozenset({"tab", "ptab", "tc"}),
    # A text box is written twice, the second time as the Fallback for older programs. Moved text stands at its old and
    # its new place. A field (fld) holds a slide's number or today's date. A ruby text (rt, rPh) splits words.
    skipped=frozenset({"Fallback", "moveFrom", "fld", "rt", "rPh"}),
)
_COMMENTS = _OOXML._replace(
    texts=frozenset({"t", "text"}), lines=_OOXML.lines | {"cm", "threadedComment"}, skipped=frozenset({"rPh"})
)
_CHART = _OOXML._replace(texts=frozenset({"t", "v"}), lines=frozenset({"p", "pt", "v"}))
_OPEN_DOCUMENT = _Dialect(
    texts=frozenset({"p", "h", "header-decl", "footer-decl"}),
    lines=frozenset({"p", "h", "header-decl", "footer-decl", "line-break", "note", "annotation", "title", "desc"}),
    blanks=frozenset({"s", "tab"}),
    skipped=frozenset(
        {"tracked-changes", "note-citation", "ruby-text", "page-number", "page-count", "creator", "date-string"}
    ),
)
_OPEN_DOCUMENT_MARGINS = _OPEN_DOCUMENT._replace(
    texts=frozenset(f"{place}{pages}" for place in ("header", "footer") for pages in ("", "-left", "-first"))
    | {"master-page"},
)
_NUMBERS = frozenset({"float", "percentage", "currency", "date", "time"})
_SHOWN_IN_TABLES = _OPEN_DOCUMENT._replace(texts=frozenset({"p"}), kinds_of_cells=_NUMBERS)
_DIALECTS = {
    **dict.fromkeys(("header", "footer", "footnotes", "endnotes", "notesSlide", "diagramData", "drawing"), _OOXML),
    **dict.fromkeys(("comments", "threadedComment"), _COMMENTS),
    **dict.fromkeys(("chart", "chartEx"), _CHART),
}

_INNER = ("package", "aFChunk", "oleObject")

_DATES = ("modified", "date", "created", "creation-date")
_SAID = tuple(
    f"{{*}}{name}" for name in ("title", "subject", "creator", "initial-creator", "keywords", "keyword", *_DATES)
)

_PLACEHOLDER = "{*}nvSpPr/{*}nvPr/{*}ph"


class _Words:
    def __init__(self, dialect: _Dialect) -> None:
        self._dialect = dialect
        self._inside = self._skipping = 0
        self.pieces: list[str] = []
        self.length = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = tag.rpartition("}")[2]
        if self._skipping or name in self._dialect.skipped or self._is_other_cell(name, attributes):
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
        """Refuse what could declare entities: ECMA-376 part 2 forbids it."""
        raise Unreadable("The file is damaged: a part of it has a document type declaration.")

    def close(self) -> None: ...

    def _is_other_cell(self, name: str, attributes: Mapping[str, str]) -> bool:
        if name != "table-cell" or not self._dialect.kinds_of_cells:
            return False
        kinds = {str(value) for key, value in attributes.items() if str(key).endswith("}value-type")}
        return not kinds & self._dialect.kinds_of_cells

    def _break(self, name: str) -> None:
        if name in self._dialect.lines:
            self.pieces.append("\n")
        elif name in self._dialect.blanks:
            self.pieces.append(" ")
        elif name == "noBreakHyphen":
            self.pieces.append("-")


class _Package:
    def __init__(self, archive: zipfile.ZipFile, inner: inner_files.InnerFiles) -> None:
        self._archive = archive
        self._inner = inner
        self._names = set(archive.namelist())
        self._added: set[str] = set()
        self.characters_left = inner.limits.characters
        self._pieces: list[str] = []
        self._notes: dict[str, None] = {}

    def add(self, part: str, dialect: _Dialect) -> None:
        self.add_text(self.text_of(part, dialect))

    def text_of(self, part: str, dialect: _Dialect) -> str:
        """Return no text if there is no such part, or enough text already.

        Raises Unreadable if the part has a document type, or holds no text before the place where its XML is damaged.
        """
        if part not in self._names or self.characters_left < 0:
            return ""
        words = _Words(dialect)
        try:
            self.feed(part, words, lambda: words.length <= self.characters_left)
        except lxml.etree.XMLSyntaxError as error:
            if not words.length:
                raise Unreadable(f"The file is damaged: {part} cannot be read: {str(error)[:200]}") from error
            self.add_note(_CUT_OFF)
        return "".join(words.pieces)

    def feed(self, part: str, target: _Words | sheets.Shown, wants_more: Callable[[], bool]) -> None:
        """Read no more than the target wants.

        Raises lxml.etree.XMLSyntaxError.
        """
        parser = _parser(target)
        with self._archive.open(part) as stream:
            while wants_more() and (piece := stream.read(_PIECE)):
                parser.feed(piece)
        if wants_more():
            parser.close()

    def add_page(self, part: str) -> None:
        if part in self._names and self.characters_left >= 0:
            self.add_text(markup.html_text(self._archive.read(part)).text)

    def add_text(self, text: str) -> None:
        self._pieces.append(text)
        self.characters_left -= len(text)

    def has(self, part: str) -> bool:
        return part in self._names

    def content(self, part: str) -> bytes:
        return self._archive.read(part)

    def add_note(self, note: str) -> None:
        self._notes[note] = None

    def add_around(self, part: str, kinds: Collection[str] = (*_DIALECTS, *_INNER)) -> None:
        for _id, kind, other in self.related_parts(part):
            if other in self._added or other not in self._names or kind not in kinds:
                continue
            self._added.add(other)
            try:
                if kind in _INNER and self.characters_left >= 0:
                    self._add_file(other, is_object=kind == "oleObject")
                elif kind == "comments" and other.endswith(".bin"):
                    self.add_text(sheets.strings(self.content(other), sheets.COMMENT))
                elif kind in _DIALECTS and not other.endswith(".bin"):
                    self.add(other, _DIALECTS[kind])
                    if kind == "drawing":
                        self.add_around(other)
            except Unreadable as refusal:
                self.add_note(str(refusal))

    def _add_file(self, part: str, *, is_object: bool) -> None:
        name, content = posixpath.basename(part), self.content(part)
        if is_object:
            try:
                inner = embedded.file_within(content)
            except Unreadable as refusal:
                raise Unreadable(f"The file {name!r} was not read: {refusal}") from refusal
            if inner is None:
                return
            self.add_text(inner.name)
            name, content = inner.name or name, inner.content
        self.add_text(self._inner.text_of(name, content))

    def add_background(self, part: str) -> None:
        if part in self._added or part not in self._names or self.characters_left < 0:
            return
        self._added.add(part)
        shapes = [shape for shape in self.tree(part).iter("{*}sp") if shape.find(_PLACEHOLDER) is None]
        self.add_text(
            "\n".join("".join(map(str, line.itertext("{*}t"))) for shape in shapes for line in shape.iter("{*}p"))
        )

    def tree(self, part: str) -> lxml.etree._Element:
        """Raises Unreadable."""
        try:
            return lxml.etree.fromstring(self._archive.read(part), _parser(None))
        except (KeyError, lxml.etree.XMLSyntaxError) as error:
            raise Unreadable(f"The file is damaged: its part {part} is missing or cannot be read.") from error

    def related_parts(self, part: str) -> Iterator[tuple[str, str, str]]:
        folder, name = posixpath.split(part)
        relations = posixpath.join(folder, "_rels", f"{name}.rels")
        if relations not in self._names:
            return
        for relation in self.tree(relations).iter(_RELATIONSHIP):
            if relation.get("TargetMode") != "External":
                kind = relation.get("Type", "").rpartition("/")[2]
                yield relation.get("Id", ""), kind, _target(folder, relation.get("Target", ""))

    def main_part(self) -> str:
        """Raises Unreadable."""
        for _id, kind, part in self.related_parts(""):
            if kind == "officeDocument":
                return part
        raise Unreadable("The file is damaged: it does not name its main part.")

    def related(self, part: str, kind: str) -> list[str]:
        return [other for _id, each, other in self.related_parts(part) if each == kind and other in self._names]

    def result(self, about_part: str) -> Extracted:
        said = self._about(about_part) if about_part in self._names else {}
        return Extracted("\n".join(self._pieces), " ".join(self._notes), said)

    def _about(self, part: str) -> dict[str, list[str]]:
        try:
            root = self.tree(part)
        except Unreadable:
            return {}
        values: dict[str, list[str]] = {}
        for element in root.iter(*_SAID):
            values.setdefault(str(element.tag).rpartition("}")[2], []).append("".join(map(str, element.itertext())))
        first = {name: texts[0] for name, texts in values.items()}
        # An OpenDocument's creator is who changed it last.
        creators = values.get("initial-creator") or values.get("creator", [])
        authors = [name for text in creators for name in (text.split(";"))]
        keywords = [
            word for name in ("keywords", "keyword") for text in values.get(name, []) for word in separate(text)
        ]
        dates = [first[name] for name in _DATES if name in first]
        return about(first.get("title", ""), first.get("subject", ""), authors, keywords, dates)


def read(file: BinaryIO, format_: Format, inner: inner_files.InnerFiles) -> Extracted:
    """Raises Unreadable, Unsupported."""
    packed.check_parts(file, inner.limits)
    about_part = "meta.xml"
    try:
        with zipfile.ZipFile(file) as archive:
            package = _Package(archive, inner)
            match format_:
                case "docx" | "pptx" | "xlsx":
                    main = package.main_part()
                    about_part = next(iter(package.related("", "core-properties")), "")
                    if format_ == "docx":
                        _document(package, main)
                    elif format_ == "pptx":
                        _slides(package, main)
                    else:
                        _sheets(package, main, file)
                case "ods":
                    _tables(package, file)
                case "epub":
                    about_part = _book(package)
                case _:
                    package.add("content.xml", _OPEN_DOCUMENT)
                    package.add("styles.xml", _OPEN_DOCUMENT_MARGINS)
            return package.result(about_part)
    except zipfile.BadZipFile as error:
        raise Unreadable("The file is truncated or damaged: its parts cannot be unpacked.") from error


def _document(package: _Package, main: str) -> None:
    package.add_around(main, {"header"})
    package.add(main, _OOXML)
    package.add_around(main)


def _slides(package: _Package, main: str) -> None:
    parts = {key: part for key, kind, part in package.related_parts(main) if kind == "slide"}
    for element in package.tree(main).iter("{*}sldId"):
        keys = (value for name, value in element.attrib.items() if str(name).endswith("}id"))
        slide = parts.get(str(next(keys, "")), "")
        package.add(slide, _OOXML)
        package.add_around(slide)
        for layout in package.related(slide, "slideLayout"):
            package.add_background(layout)
            for master in package.related(layout, "slideMaster"):
                package.add_background(master)


def _sheets(package: _Package, main: str, file: BinaryIO) -> None:
    places = _places_of_sheets(package, main)
    shown: dict[str, sheets.ShownCells] = {}
    margins: dict[str, str] = {}
    if not main.endswith(".bin"):
        styles = package.related(main, "styles")
        formats = sheets.read_formats(package.tree(main), package.tree(styles[0])) if styles else sheets.Formats()
        room = sheets.Room(package.characters_left)
        for name, part in places.items():
            target = sheets.Shown(formats, room)
            # What is damaged there the library says that reads the values.
            with contextlib.suppress(lxml.etree.XMLSyntaxError):
                package.feed(part, target, room.is_left)
            shown[name], margins[name] = target.cells, "\n".join(target.margins)
    try:
        for name, text in sheets.texts(file, shown, package.characters_left):
            package.add_text(text)
            package.add_text(margins.get(name, ""))
            if name in places:
                package.add_around(places.pop(name))
    except sheets.Unusable:
        package.add_note("The cells could not be read. The text is that of the workbook's strings.")
        for part in package.related(main, "sharedStrings"):
            if part.endswith(".bin"):
                package.add_text(sheets.strings(package.content(part), sheets.STRING))
            else:
                package.add(part, _OOXML)
    for part in places.values():
        package.add_around(part)


def _places_of_sheets(package: _Package, main: str) -> dict[str, str]:
    parts = {
        key: part for key, kind, part in package.related_parts(main) if kind.endswith("sheet") and package.has(part)
    }
    if main.endswith(".bin"):
        return {part: part for part in parts.values()}
    named: dict[str, str] = {}
    for sheet in package.tree(main).iter("{*}sheet"):
        keys = (str(value) for name, value in sheet.attrib.items() if str(name).endswith("}id"))
        if part := parts.get(next(keys, "")):
            named[sheet.get("name", "")] = part
    return named


def _tables(package: _Package, file: BinaryIO) -> None:
    try:
        values = "\n".join(text for _name, text in sheets.texts(file, {}, package.characters_left))
    except sheets.Unusable as trouble:
        raise Unreadable("The file is damaged: its cells cannot be read.") from trouble
    package.add_text(values)
    known = set(values.split())
    shown = package.text_of("content.xml", _SHOWN_IN_TABLES)
    package.add_text("\n".join(line for line in shown.split("\n") if line not in known))


def _book(package: _Package) -> str:
    root = package.tree("META-INF/container.xml").find(".//{*}rootfile")
    if root is None:
        raise Unreadable("The file is damaged: the book does not name its main part.")
    main = root.get("full-path", "")
    book = package.tree(main)
    parts = {item.get("id"): item.get("href", "") for item in book.iter("{*}item")}
    for reference in book.iter("{*}itemref"):
        place = urllib.parse.unquote(parts.get(reference.get("idref"), ""))
        package.add_page(_target(posixpath.dirname(main), place))
    return main


def _target(folder: str, place: str) -> str:
    return posixpath.normpath(posixpath.join("/", folder, place)).lstrip("/")


def _parser(target: _Words | sheets.Shown | None) -> lxml.etree.XMLParser:
    return lxml.etree.XMLParser(
        target=target,  # type: ignore[arg-type]  # the stubs ask for methods that lxml does not need
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
    )
