"""Files of the office family give the text that their readers see, in its order, and nothing else."""

import io
import tracemalloc
import zipfile

import pytest
from msoffcrypto.format.ooxml import OOXMLFile

from muniment.repository.store.extraction import embedded
from muniment.repository.store.extraction.findings import Extracted, Limits, Unreadable
from muniment.repository.store.extraction.formats import Format
from muniment.repository.store.extraction.readers import readers
from muniment.repository.store.extraction.readers.inner_files import InnerFiles
from muniment.repository.store.extraction.readers.office import office
from tests.unit.repository import sample_files as made

LIMITS = Limits(seconds=20, memory=1 << 30, characters=100_000, depth=3)
WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
OPEN = "urn:oasis:names:tc:opendocument:xmlns:"


def read(content: bytes, format_: Format, limits: Limits = LIMITS) -> Extracted:
    return office.read(io.BytesIO(content), format_, InnerFiles(limits, readers.read_within))


def words(content: bytes, format_: Format) -> list[str]:
    return read(content, format_).text.split()


def document(body: str, **parts: str) -> bytes:
    related = {f"rId{number}": (name, f"{name}1.xml") for number, name in enumerate(parts)}
    more = {f"word/{name}1.xml": f"<w:part {WORD}>{part}</w:part>" for name, part in parts.items()}
    more["word/document.xml"] = f"<w:document {WORD}><w:body>{body}</w:body></w:document>"
    more["word/_rels/document.xml.rels"] = made._relations(related)
    return made.docx("", **more)


def paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/><w:tabs><w:tab w:pos="1"/></w:tabs></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def test_a_document_gives_its_text_without_names_of_styles() -> None:
    content = document(paragraph("The title", "Heading1") + paragraph("A quotation", "Quote") + paragraph("Text"))
    assert words(content, "docx") == ["The", "title", "A", "quotation", "Text"]


def test_runs_join_to_words_and_breaks_part_them() -> None:
    body = "<w:p><w:r><w:t>run</w:t></w:r><w:r><w:t>ning</w:t><w:br/><w:t>one</w:t><w:tab/><w:t>two</w:t></w:r></w:p>"
    assert words(document(body), "docx") == ["running", "one", "two"]


def test_everything_around_the_text_of_a_document_is_read_in_order() -> None:
    box = "<w:r><w:txbxContent>" + paragraph("box") + "</w:txbxContent></w:r>"
    table = f"<w:tbl><w:tr><w:tc>{paragraph('one')}</w:tc><w:tc>{paragraph('two')}</w:tc></w:tr></w:tbl>"
    content = document(
        paragraph("first") + table + f"<w:p>{box}</w:p>" + paragraph("last"),
        footnotes=paragraph("note"),
        endnotes=paragraph("end"),
        header=paragraph("above"),
        footer=paragraph("below"),
        comments=paragraph("remark"),
    )
    assert words(content, "docx") == ["above", "first", "one", "two", "box", "last", "note", "end", "below", "remark"]


def test_nothing_of_a_document_is_read_twice_or_after_it_was_deleted() -> None:
    box = f"<w:r><w:txbxContent>{paragraph('box')}</w:txbxContent></w:r>"
    body = (
        f'<w:p><mc:AlternateContent xmlns:mc="mc"><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>'
        "</mc:AlternateContent></w:p><w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
        "<w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom><w:r><w:instrText>PAGE</w:instrText></w:r>"
        "<w:moveTo><w:r><w:t>moved</w:t></w:r></w:moveTo></w:p>"
    )
    assert words(document(body), "docx") == ["box", "moved"]


def test_a_document_in_the_strict_namespace_is_read() -> None:
    strict = 'xmlns:w="http://purl.oclc.org/ooxml/wordprocessingml/main"'
    body = f"<w:document {strict}><w:body>{paragraph('strict')}</w:body></w:document>"
    assert words(made.docx("", **{"word/document.xml": body}), "docx") == ["strict"]


def test_a_document_without_its_main_part_is_damaged() -> None:
    with pytest.raises(Unreadable, match="damaged"):
        read(made.docx("x", **{"_rels/.rels": made._relations({})}), "docx")


def test_xml_that_breaks_off_gives_the_text_before_it_and_says_so() -> None:
    content = made.docx("", **{"word/document.xml": f"<w:document {WORD}>{paragraph('before')}<w:p><w:t>"})
    assert read(content, "docx").text.split() == ["before"]
    assert "not well-formed" in read(content, "docx").note
    with pytest.raises(Unreadable, match="damaged"):
        read(made.docx("", **{"word/document.xml": "<w:document"}), "docx")


def test_reading_ends_soon_after_enough_characters() -> None:
    content = document(paragraph("word " * 200_000), footnotes=paragraph("note"))
    text = read(content, "docx", Limits(20, 1 << 30, 1000, 3)).text
    assert 1000 <= len(text) < 200_000
    assert "note" not in text


@pytest.mark.slow
def test_a_small_file_may_unpack_to_much_more_than_its_size() -> None:
    content = made.docx("words", **{"word/media/a.bin": bytes(16 << 20)})
    assert len(content) * 500 < 16 << 20
    assert words(content, "docx") == ["words"]


def test_a_damaged_chart_costs_no_document_its_words() -> None:
    content = unpacked(document(paragraph("main")))
    content["word/_rels/document.xml.rels"] = made._relations({"rId1": ("chart", "chart1.xml")})
    found = read(made.pack(content | {"word/chart1.xml": "<c:chart"}), "docx")
    assert found.text.split() == ["main"]
    assert "chart1.xml cannot be read" in found.note


def test_slides_come_in_the_order_of_the_show_with_their_notes() -> None:
    parts = unpacked(made.pptx("second"))
    slide = parts["ppt/slides/slide1.xml"]
    assert isinstance(slide, bytes)
    parts["ppt/slides/slide2.xml"] = slide.replace(b"second", b"first")
    parts["ppt/notesSlides/notesSlide2.xml"] = slide.replace(b"second", b"spoken")
    parts["ppt/slides/_rels/slide2.xml.rels"] = made._relations(
        {"rId1": ("notesSlide", "../notesSlides/notesSlide2.xml")}
    )
    parts["ppt/_rels/presentation.xml.rels"] = made._relations(
        {"rId1": ("slide", "slides/slide1.xml"), "rId2": ("slide", "/ppt/slides/slide2.xml")}
    )
    presentation = parts["ppt/presentation.xml"]
    assert isinstance(presentation, bytes)
    parts["ppt/presentation.xml"] = presentation.replace(
        b"<p:sldIdLst>", b'<p:sldIdLst><p:sldId id="257" r:id="rId2"/>'
    )
    assert words(made.pack(parts), "pptx") == ["first", "spoken", "second"]


def test_a_sheet_gives_numbers_dates_and_truths_as_they_are_shown() -> None:
    parts = unpacked(made.xlsx("words"))
    sheet = parts["xl/worksheets/sheet1.xml"]
    assert isinstance(sheet, bytes)
    cells = b'<c r="C1"><v>2.5</v></c><c r="D1" t="b"><v>1</v></c><c r="E1" s="1"><v>45000</v></c></row>'
    parts["xl/worksheets/sheet1.xml"] = sheet.replace(b"</row>", cells)
    parts["xl/_rels/workbook.xml.rels"] = made._relations(
        {"rId1": ("worksheet", "worksheets/sheet1.xml"), "rId2": ("styles", "styles.xml")}
    )
    parts["xl/styles.xml"] = (
        '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><cellXfs count="2">'
        '<xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>'
    )
    parts["xl/worksheets/_rels/sheet1.xml.rels"] = made._relations({"rId1": ("comments", "../comments1.xml")})
    parts["xl/comments1.xml"] = "<comments><comment><text><r><t>remark</t></r></text></comment></comments>"
    assert words(made.pack(parts), "xlsx") == [
        "Ledger",
        "words",
        "4711",
        "2.5",
        "TRUE",
        "2023-03-15",
        "3/15/2023",
        "remark",
    ]


def test_an_open_document_gives_its_text_notes_and_margins() -> None:
    body = (
        "<text:h>Head</text:h><text:p>one<text:s/>two<text:span>three</text:span><text:tab/>four"
        "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>note</text:p></text:note-body>"
        "</text:note></text:p>"
    )
    parts = unpacked(made.odt("old words"))
    content = parts["content.xml"]
    assert isinstance(content, bytes)
    gone = b"<text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
    parts["content.xml"] = content.replace(b"<text:p>old words</text:p>", gone + body.encode())
    parts["styles.xml"] = (
        f'<office:styles xmlns:office="{OPEN}office:1.0" xmlns:style="{OPEN}style:1.0" xmlns:text="{OPEN}text:1.0">'
        "<text:p>no</text:p><style:header><text:p>above</text:p></style:header></office:styles>"
    )
    assert words(made.pack(parts), "odt") == ["Head", "one", "twothree", "four", "note", "above"]


def test_a_book_is_read_in_the_order_of_its_spine() -> None:
    parts = unpacked(made.epub("second"))
    page, book = parts["c1.xhtml"], parts["book.opf"]
    assert isinstance(page, bytes)
    assert isinstance(book, bytes)
    parts["part one/c 2.xhtml"] = page.replace(b"second", b"first")
    parts["book.opf"] = book.replace(
        b"</manifest><spine>", b'<item id="c2" href="part%20one/c%202.xhtml"/></manifest><spine><itemref idref="c2"/>'
    )
    assert words(made.pack(parts), "epub") == ["One", "first", "One", "second"]


@pytest.mark.parametrize("entity", ['"ha"', 'SYSTEM "file:///etc/passwd"'])
def test_a_part_that_declares_entities_is_refused(entity: str) -> None:
    declared = f"<!DOCTYPE x [<!ENTITY a {entity}>]><w:document {WORD}>{paragraph('one &a; two')}</w:document>"
    with pytest.raises(Unreadable, match="document type"):
        read(made.docx("", **{"word/document.xml": declared}), "docx")


CHART = "<c:chartSpace xmlns:c='c' xmlns:a='a'><a:t>Sales</a:t><c:pt><c:v>May</c:v></c:pt></c:chartSpace>"


def test_charts_and_files_within_a_document_are_read_once() -> None:
    content = unpacked(document(paragraph("main")))
    kinds = {"rId1": ("chart", "chart1.xml"), "rId2": ("package", "inner.xlsx"), "rId3": ("aFChunk", "chunk.html")}
    content["word/_rels/document.xml.rels"] = made._relations(kinds | {"rId4": ("package", "inner.xlsx")})
    content |= {"word/chart1.xml": CHART, "word/inner.xlsx": made.xlsx("cell"), "word/chunk.html": "<html><p>chunk</p>"}
    content["word/_rels/chart1.xml.rels"] = made._relations({"rId1": ("package", "data.xlsx")})
    content["word/data.xlsx"] = made.xlsx("data of the chart")
    assert words(made.pack(content), "docx") == ["main", "Sales", "May", "Ledger", "cell", "4711", "chunk"]


def test_a_file_within_a_document_that_is_not_read_is_told() -> None:
    content = unpacked(document(paragraph("main")))
    content["word/_rels/document.xml.rels"] = made._relations({"rId1": ("package", "inner.bin")})
    inner = InnerFiles(LIMITS, readers.read_within)
    office.read(io.BytesIO(made.pack(content | {"word/inner.bin": b"MM\0*" + bytes(9)})), "docx", inner)
    assert "inner.bin" in inner.note


@pytest.mark.parametrize(
    ("streams", "expected"),
    [
        ({"\x01Ole10Native": made.ole_package("Łódź.txt", b"packaged words")}, ["Łódź.txt", "packaged", "words"]),
        ({"Package": made.docx("words")}, ["words"]),
        ({"package_stream": made.odt("words")}, ["words"]),
        ({"CONTENTS": made.pdf("words", about=f"/Trapped({'x' * 4000})")}, ["words"]),
        ({"CONTENTS": b"settings of a control"}, []),
        ({"Equation Native": b"a formula"}, []),
    ],
)
@pytest.mark.parametrize("kind", ["docx", "pptx", "xlsx"])
def test_an_object_gives_the_file_in_it(streams: dict[str, bytes], expected: list[str], kind: Format) -> None:
    bases = {"docx": made.docx("main"), "pptx": made.pptx("main"), "xlsx": made.xlsx("main")}
    holders = {"docx": "word/{}document.xml", "pptx": "ppt/slides/{}slide1.xml", "xlsx": "xl/worksheets/{}sheet1.xml"}
    parts = unpacked(bases[kind])
    relations = f"{holders[kind].format('_rels/')}.rels"
    parts[relations] = made._relations({"rId1": ("oleObject", "/embeddings/oleObject1.bin")})
    parts["embeddings/oleObject1.bin"] = made.compound(streams)
    result = read(made.pack(parts), kind)
    assert result.text.split() == [*read(bases[kind], kind).text.split(), *expected]
    assert not result.note


@pytest.mark.parametrize(
    "damage",
    [
        {44: 0x100000, 68: 1, 72: 8257, 520: 2},
        {64: 0x10000, 60: 2, 520: 2},
        {48: 0xFFFF},
        {1272: 0x4000000, 520: 2},
        {1272: 100, 1140: 2, 1144: 0x4000000, 520: 2},
    ],
    ids=["table", "small table", "no directory", "stream", "small streams"],
)
def test_a_damaged_object_costs_no_document_its_words_and_little_memory(damage: dict[int, int]) -> None:
    whole = bytearray(made.compound({"Package": made.docx("inner")}))
    for place, value in damage.items():
        whole[place : place + 4] = value.to_bytes(4, "little")
    tracemalloc.start()
    with pytest.raises(Unreadable, match="damaged"):
        embedded.file_within(bytes(whole))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    content = unpacked(document(paragraph("main")))
    content["word/_rels/document.xml.rels"] = made._relations({"rId1": ("oleObject", "oleObject1.bin")})
    result = read(made.pack(content | {"word/oleObject1.bin": bytes(whole)}), "docx")
    assert result.text.split() == ["main"]
    assert "'oleObject1.bin' was not read: It is damaged" in result.note


def test_an_old_file_in_a_document_is_kept_for_another_reader_and_told_without_one() -> None:
    content = unpacked(document(paragraph("main")))
    content["word/_rels/document.xml.rels"] = made._relations({"rId1": ("oleObject", "oleObject1.bin")})
    old = made.compound({"WordDocument": b"old words"})
    for kept_bytes in (0, 1 << 20):
        limits = Limits(20, 1 << 30, 1000, 3, kept_bytes)
        result = readers.read(io.BytesIO(made.pack(content | {"word/oleObject1.bin": old})), "a.docx", "", limits)
        assert result.text.split() == ["main"]
        assert [each.content for each in result.kept] == [old] * bool(kept_bytes)
        assert ("from before 2007" in result.note) == (not kept_bytes)


def test_no_file_within_a_document_is_begun_when_the_time_is_over() -> None:
    content = unpacked(document(paragraph("main")))
    content["word/_rels/document.xml.rels"] = made._relations({"rId1": ("package", "inner.docx")})
    content["word/inner.docx"] = made.docx("inner")
    result = readers.read(io.BytesIO(made.pack(content)), "a.docx", "", Limits(0, 1 << 30, 1000, 3))
    assert result.text.split() == ["main"]
    assert "'inner.docx' was not read: The time" in result.note


def test_slides_give_their_charts_their_comments_and_what_their_master_says() -> None:
    parts = unpacked(made.pptx("slide"))
    kinds = {"rId1": ("chart", "../c.xml"), "rId2": ("comments", "../r.xml"), "rId3": ("slideLayout", "../l.xml")}
    parts["ppt/slides/_rels/slide1.xml.rels"] = made._relations(kinds)
    shape = "<p:sp><p:nvSpPr><p:nvPr>{}</p:nvPr></p:nvSpPr><a:p><a:r><a:t>{}</a:t></a:r></a:p></p:sp>"
    layout = shape.format("<p:ph/>", "hint") + shape.format("", "house")
    parts |= {
        "ppt/c.xml": CHART,
        "ppt/r.xml": "<p:cmLst xmlns:p='p'><p:cm><p:text>remark</p:text></p:cm></p:cmLst>",
        "ppt/l.xml": f"<p:sldLayout xmlns:p='p' xmlns:a='a'>{layout}</p:sldLayout>",
    }
    assert words(made.pack(parts), "pptx") == ["slide", "Sales", "May", "remark", "house"]


def test_what_hangs_on_a_sheet_is_read() -> None:
    parts = unpacked(made.xlsx("words"))
    sheet = parts["xl/worksheets/sheet1.xml"]
    assert isinstance(sheet, bytes)
    margins = (
        b'</sheetData><headerFooter><oddHeader>&amp;L&amp;"Arial,Bold"&amp;12Top &amp;P</oddHeader></headerFooter>'
    )
    parts["xl/worksheets/sheet1.xml"] = sheet.replace(b"</sheetData>", margins)
    parts["xl/worksheets/_rels/sheet1.xml.rels"] = made._relations(
        {"rId1": ("threadedComment", "../t.xml"), "rId2": ("drawing", "../d.xml")}
    )
    parts["xl/_rels/d.xml.rels"] = made._relations({"rId1": ("chart", "c.xml")})
    parts |= {
        "xl/t.xml": "<ThreadedComments><threadedComment><text>remark</text></threadedComment></ThreadedComments>",
        "xl/d.xml": "<wsDr xmlns:a='a'><a:p><a:t>box</a:t></a:p></wsDr>",
        "xl/c.xml": CHART,
    }
    assert words(made.pack(parts), "xlsx") == ["Ledger", "words", "4711", "Top", "remark", "box", "Sales", "May"]


def test_comments_of_a_binary_workbook_are_read() -> None:
    text = "Prüfe\U0001f600"
    wide = b"\0" + (len(text) + 1).to_bytes(4, "little") + text.encode("utf-16-le")
    comments = b"\xf4\x04\0" + b"\xfd\x04" + bytes([len(wide)]) + wide + b"\xf5\x04\0"
    parts = unpacked(made.xlsx("words"))
    parts["xl/worksheets/_rels/sheet1.xml.rels"] = made._relations({"rId1": ("comments", "../comments1.bin")})
    assert words(made.pack(parts | {"xl/comments1.bin": comments}), "xlsx")[-1] == text


def test_a_workbook_on_which_the_library_fails_gives_its_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    def panic(_file: object) -> None:
        raise PanicException

    monkeypatch.setattr("python_calamine.CalamineWorkbook.from_filelike", panic)
    text = "w\u00f6rter".encode("utf-16-le")
    item = b"\0" + (len(text) // 2).to_bytes(4, "little") + text
    parts = unpacked(made.xlsx("x"))
    parts["_rels/.rels"] = made._relations({"rId1": ("officeDocument", "xl/workbook.bin")})
    parts["xl/_rels/workbook.bin.rels"] = made._relations({"rId1": ("sharedStrings", "strings.bin")})
    parts |= {"xl/workbook.bin": b"", "xl/strings.bin": b"\x9f\x01\x00" + bytes([19, len(item)]) + item}
    found = read(made.pack(parts), "xlsx")
    assert found.text.split() == ["w\u00f6rter"]
    assert "could not be read" in found.note


@pytest.mark.slow
def test_a_workbook_that_excel_locked_for_nobody_is_opened() -> None:
    locked = io.BytesIO()
    # The library writes no files that Excel would keep in short sectors.
    book = made.pack(unpacked(made.xlsx("words")) | {"xl/media/a.bin": bytes(range(256)) * 64}, zipfile.ZIP_STORED)
    OOXMLFile(io.BytesIO(book)).encrypt("VelvetSweatshop", locked)
    assert "words" in readers.read(io.BytesIO(locked.getvalue()), "a.xlsx", "", LIMITS).text


@pytest.mark.slow
def test_a_workbook_with_a_password_of_its_own_stays_locked() -> None:
    locked = io.BytesIO()
    OOXMLFile(io.BytesIO(made.xlsx("words"))).encrypt("another", locked)
    with pytest.raises(Unreadable, match="encrypted"):
        readers.read(io.BytesIO(locked.getvalue()), "a.xlsx", "", LIMITS)


def test_what_a_document_says_about_itself_is_found() -> None:
    content = unpacked(document(paragraph("words")))
    core = "http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties"
    main = made._relations({"rId1": ("officeDocument", "word/document.xml")})
    relation = f'<Relationship Id="rId2" Type="{core}" Target="core.xml"/></Relationships>'
    content["_rels/.rels"] = main.replace("</Relationships>", relation)
    said = "<dc:title>T</dc:title><dc:creator>A;B</dc:creator><cp:keywords>x, y</cp:keywords><dc:subject> </dc:subject>"
    said += "<dct:created>2001-02-03T04:05:06Z</dct:created><dct:modified>2002-02-03T04:05:06Z</dct:modified>"
    content["core.xml"] = f"<cp:p xmlns:cp='cp' xmlns:dc='dc' xmlns:dct='dct'>{said}</cp:p>"
    expected = {"title": ["T"], "authors": ["A", "B"], "keywords": ["x", "y"]}
    expected["a_content_date"] = ["2002-02-03T04:05:06Z", "2001-02-03T04:05:06Z"]
    assert read(made.pack(content), "docx").properties == expected


def test_an_open_document_says_when_it_was_changed_and_made() -> None:
    said = "<meta:creation-date>2001-02-03T04:05:06.123456789</meta:creation-date><dc:date>2002-02-03</dc:date>"
    meta = f"<m xmlns:dc='dc' xmlns:meta='meta'>{said}</m>"
    found = read(made.pack(unpacked(made.odt("words")) | {"meta.xml": meta}), "odt").properties
    assert found == {"a_content_date": ["2002-02-03", "2001-02-03T04:05:06.123456789"]}


def unpacked(content: bytes) -> dict[str, str | bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
