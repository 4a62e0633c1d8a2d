"""Every format gives its words, every bad file a clear reason; each is read in the real sandbox."""

import codecs
import contextlib
import io
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

import pytest

from muniment.repository.options import RepositoryOptions
from muniment.repository.store.extraction.confined.process import Reader, limits
from muniment.repository.store.extraction.findings import Extracted, Limits, Unreadable, Unsupported
from muniment.repository.store.extraction.readers import plain
from muniment.repository.store.extraction.readers.characters import tidy
from tests import passes
from tests.unit.repository import sample_files as made

WORDS = "Grüße aus Łódź, 漢字 и Здравствуй 😀"
OPTIONS = RepositoryOptions(extraction_seconds=20, extraction_memory_mib=1024)


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    with Reader(limits(OPTIONS)) as opened:
        yield opened


@pytest.fixture(scope="module")
def small_reader() -> Iterator[Reader]:
    """A reader that unpacks 32 MiB at most."""
    with Reader(Limits(seconds=20, memory=128 << 20, characters=4_000_000, depth=3)) as opened:
        yield opened


def cost(reader: Reader, work: Callable[[], None]) -> float:
    """Measure the processor time of those who read the files, in passes over a million characters."""
    read(reader, b"words", "a.txt")
    assert reader._process is not None
    worker = reader._process.pid
    return passes.measure(work, clock=lambda: passes.childrens_time(worker))


def read(reader: Reader, content: bytes, name: str = "", media_type: str = "") -> Extracted:
    descriptor = os.memfd_create("file")
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return reader.read(descriptor, name, media_type, lambda: True)
    finally:
        os.close(descriptor)


FORMATS = {
    "plain.txt": WORDS.encode(),
    "marked.txt": codecs.BOM_UTF8 + WORDS.encode(),
    "utf16.txt": codecs.BOM_UTF16_LE + WORDS.encode("utf-16-le"),
    "utf16be.txt": codecs.BOM_UTF16_BE + WORDS.encode("utf-16-be"),
    "utf32.txt": codecs.BOM_UTF32_LE + WORDS.encode("utf-32-le"),
    "notes.md": f"# {WORDS}\n\n* one".encode(),
    "page.html": f"<!doctype html><meta charset=utf-8><p>{WORDS}</p>".encode(),
    "page.xhtml": f'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><p>{WORDS}</p></html>'.encode(),
    "data.xml": f'<?xml version="1.0"?><a><b>{WORDS}</b></a>'.encode(),
    "wide.xml": f'<?xml version="1.0" encoding="utf-16"?><a><b>{WORDS}</b></a>'.encode("utf-16"),
    "narrow.xml": f'<?xml version="1.0" encoding="utf-16"?><a><b>{WORDS}</b></a>'.encode(),
    "a.docx": made.docx(WORDS),
    "a.odt": made.odt(WORDS),
    "a.xlsx": made.xlsx(WORDS),
    "a.pptx": made.pptx(WORDS),
    "a.epub": made.epub(WORDS),
    "a.rtf": made.rtf("Grüße aus Łódź, 漢字 и Здравствуй"),
    "a.eml": made.eml(WORDS),
    "table.csv": f"a;b\n{WORDS};2".encode(),
    "unnamed": WORDS.encode(),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("packed", [False, True], ids=["bare", "gzip"])
def test_non_ascii_words_come_out_of_every_format(reader: Reader, name: str, packed: bool) -> None:
    content = FORMATS[name]
    found = read(reader, made.compress(content), f"{name}.gz") if packed else read(reader, content, name)
    assert WORDS.removesuffix(" 😀") in found.text
    assert found.note == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FORMATS if name.startswith("a.")])
def test_a_file_is_known_by_its_bytes_whatever_it_is_called(reader: Reader, name: str) -> None:
    assert "Grüße" in read(reader, FORMATS[name], "holiday.jpeg", "application/octet-stream").text


@pytest.mark.slow
def test_a_pdf_gives_its_words(reader: Reader) -> None:
    assert read(reader, made.pdf("Grüße aus Büchern (naïve)"), "a.pdf") == Extracted("Grüße aus Büchern (naïve)", "")


@pytest.mark.slow
def test_a_pdf_of_pictures_is_empty_and_says_why(reader: Reader) -> None:
    scan = Extracted("", "The pages hold pictures only, no text.", scanned=True)
    assert read(reader, made.pdf(picture=True), "a.pdf") == scan
    assert read(reader, made.pdf(), "a.pdf") == Extracted("", "The pages hold no text.")
    with_markup = b"<!doctype html>\n" + made.pdf("words")
    assert read(reader, with_markup, "a.pdf") == Extracted("words", "")
    damaged = made.pdf("words").replace(b"/Type/Page/", b"/Type/None/")
    assert read(reader, damaged, "a.pdf") == Extracted("", "1 of 1 pages could not be read.")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        ("Grüße".encode("latin-1"), "text/plain; charset=ISO-8859-1"),
        ("Grüße".encode("latin-1"), "text/plain"),
        ("Grüße".encode("latin-1"), "text/plain; charset=utf-8"),
        ("Grüße".encode(), "text/plain; charset=no-such-charset"),
        ("Grüße".encode(), "text/plain; charset=undefined"),
        ("Grüße".encode(), "text/plain; charset=punycode"),
        ("Grüße".encode("utf-16-le"), "text/plain; charset=utf-16le"),
        ("Grüße, written without a mark".encode("utf-16-be"), "text/plain"),
        ("<meta charset='iso-8859-1'><p>Grüße".encode("latin-1"), "text/html"),
        ("<meta charset='iso-8859-1'><p>Grüße".encode(), "text/html; charset=utf-8"),
        ("<?xml version='1.0' encoding='ISO-8859-1'?><a>Grüße</a>".encode("latin-1"), "text/xml"),
        (made.compress("Grüße".encode()), "Application/GZip; charset=utf-16le"),
    ],
)
def test_the_encoding_is_found(reader: Reader, content: bytes, media_type: str) -> None:
    assert "Grüße" in read(reader, content, "", media_type).text


@pytest.mark.slow
def test_east_asian_and_cyrillic_charsets_are_known_inside_the_sandbox(reader: Reader) -> None:
    for charset, words in {"shift_jis": "日本語", "gb18030": "漢字", "euc-kr": "한국어", "koi8-r": "Привет"}.items():
        assert read(reader, words.encode(charset), "a.txt", f"text/plain; charset={charset}").text == words


@pytest.mark.slow
def test_a_few_bad_bytes_do_not_spoil_utf_8(reader: Reader) -> None:
    assert (
        read(reader, "Grüße, Łódź, ".encode() + b"\xff" + "Ärger".encode(), "a.txt").text == "Grüße, Łódź, \ufffdÄrger"
    )


def test_html_gives_words_apart_and_no_script(reader: Reader) -> None:
    page = (
        b"<html><head><title>Title</title><style>no{}</style></head><body><h1>Head</h1><script>no()</script>"
        b"<p>one<b>two</b><!-- no -->three<br>four<table><tr><td>five<td>six</table></body>"
    )
    assert read(reader, page, "a.html").text.split() == ["Title", "Head", "onetwothree", "four", "five", "six"]


@pytest.mark.slow
@pytest.mark.parametrize("sent", ["a@", "<", "=?utf-8?q??=", 'undisclosed-recipients:;"staff'])
def test_a_malformed_address_costs_no_mail_its_words(reader: Reader, sent: str) -> None:
    found = read(reader, f"Subject: Report\r\nFrom: {sent}\r\nMIME-Version: 1.0\r\n\r\nwords".encode(), "a.eml")
    assert found.text == f"Subject: Report\nFrom: {sent}\nwords"


@pytest.mark.slow
def test_mail_gives_subject_body_and_what_is_attached(reader: Reader) -> None:
    found = read(reader, made.eml("Body", "<p>Other</p>", ("list.docx", made.docx("attached words"))), "a.eml")
    for expected in ("Büchner's subject", "zoe@example.org", "Body", "list.docx", "attached words"):
        assert expected in found.text
    assert "Other" not in found.text
    found = read(reader, made.eml("Body", attached=("x.bin", b"\0\1\2" * 100)), "a.eml")
    assert "Body" in found.text
    assert "x.bin" in found.note


@pytest.mark.slow
def test_a_mail_within_a_mail_is_read(reader: Reader) -> None:
    outer, inner = EmailMessage(), EmailMessage()
    inner["Subject"], inner["From"] = "Inner subject", "zoe@example.org"
    inner.set_content("<p>inner words</p>", subtype="html")
    outer["Subject"] = "Forwarded"
    outer.set_content("See below.")
    outer.add_attachment(inner)
    lines = read(reader, outer.as_bytes(), "a.eml").text.split("\n")
    assert [line for line in lines if line] == [
        *("Subject: Forwarded", "See below.", "Subject: Inner subject", "From: zoe@example.org", "inner words")
    ]


@pytest.mark.slow
def test_every_part_of_a_mail_is_read_but_no_part_twice(reader: Reader) -> None:
    """A mailing list puts its plain footer behind a part in HTML, and a program puts a picture between two parts."""
    both = MIMEMultipart("alternative", _subparts=[MIMEText("plain"), MIMEText("<p>the same</p>", "html")])
    parts = [both, MIMEText("<p>first</p>", "html"), MIMEText("<p>second</p>", "html"), MIMEText("footer")]
    found = read(reader, MIMEMultipart(_subparts=parts).as_bytes(), "a.eml")
    assert found.text.split() == ["plain", "first", "second", "footer"]


@pytest.mark.slow
def test_a_mail_whose_plain_form_is_blank_is_read_from_its_html(reader: Reader) -> None:
    both = MIMEMultipart("alternative", _subparts=[MIMEText(" \r\n"), MIMEText("<p>words</p>", "html")])
    assert read(reader, both.as_bytes(), "a.eml").text.split() == ["words"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("notes.txt", "A file that begins with %PDF-1.7 is a PDF."),
        ("page", "<html><p>About %PDF-1.7 marks</p></html>"),
    ],
)
def test_a_text_that_mentions_the_mark_of_pdf_is_read(reader: Reader, name: str, text: str) -> None:
    assert "%PDF-1.7" in read(reader, text.encode(), name).text


def test_an_archive_that_holds_a_pdf_is_an_archive(reader: Reader) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.pdf", b"%PDF-1.7")
    assert read(reader, packed.getvalue(), "a.zip").text == "a.pdf"


@pytest.mark.slow
def test_text_is_cut_at_the_limit_and_says_so() -> None:
    small = RepositoryOptions(extraction_characters=1000)
    with Reader(limits(small)) as reader:
        for content, name in (
            (b"word " * 5000, "a.txt"),
            (made.docx("word " * 5000), "a.docx"),
            (b"<p>" + b"word " * 5000, "a.html"),
        ):
            found = read(reader, content, name)
            assert 999 <= len(found.text) <= 1000
            assert "1000 characters" in found.note


@pytest.mark.slow
def test_blanks_of_every_kind_are_folded() -> None:
    every = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace() and chr(code) not in "\r\n"]
    for blank in every:
        assert tidy(f"a{blank}{blank} {blank}b".replace(blank, f"{blank} "), 100) == "a b", hex(ord(blank))
        assert tidy(f"a {blank}\n{blank} b", 100) == "a\nb"
        assert tidy(f"a {blank}\n{blank}\r\n {blank}\n b", 100) == "a\n\nb"
    assert tidy(" \n a \n", 100) == "a"


def test_characters_that_xml_forbids_are_dropped(reader: Reader) -> None:
    text = read(reader, "one\x0b two\ufffe\x1bthree\u00ad\nfour ".encode() + b"x" * 200, "a.txt").text
    assert text == "one twothreefour " + "x" * 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("garbage.txt", bytes(range(256)) * 40),
        ("picture.png", b"\x89PNG\r\n\x1a\n" + bytes(100)),
        ("drawing.vsdx", made.pack({"[Content_Types].xml": "<Types/>", "visio/document.xml": "<a/>"})),
        ("letter.pages", made.pack({"Index/Document.iwa": "words", "a.txt": "words"})),
        ("drawing.odg", made.pack({"mimetype": "application/vnd.oasis.opendocument.graphics"})),
        ("archive.7z", b"7z\xbc\xaf\x27\x1c" + bytes(100)),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5000)),
        ("song.mp3", b"ID3\x03" + os.urandom(5000)),
    ],
)
def test_what_is_not_read_is_unsupported(reader: Reader, name: str, content: bytes) -> None:
    with pytest.raises(Unsupported):
        read(reader, content, name, "text/plain")


def with_headers(content: bytes, offset: int, change: Callable[[int], int]) -> bytes:
    """Change one byte in the two headers of every part of an archive. ``offset`` is its place in the first of them."""
    out = bytearray(content)
    for signature, place in ((b"PK\x03\x04", offset), (b"PK\x01\x02", offset + 2)):
        at = out.find(signature)
        while at >= 0:
            out[at + place] = change(out[at + place])
            at = out.find(signature, at + 4)
    return bytes(out)


def encrypted_zip(content: bytes) -> bytes:
    """Set the flag that says `encrypted` on every part."""
    return with_headers(content, 6, lambda flags: flags | 1)


MANIFEST = (
    '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry '
    'manifest:full-path="content.xml"><manifest:encryption-data/></manifest:file-entry></manifest:manifest>'
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.docx", encrypted_zip(made.docx(WORDS))),
        ("b.docx", b"\xd0\xcf\x11\xe0" + bytes(600) + "EncryptedPackage".encode("utf-16-le") + bytes(600)),
        ("a.odt", made.odt(WORDS, MANIFEST)),
        ("a.pdf", made.pdf("Words", locked=True)),
    ],
)
def test_an_encrypted_file_says_so(reader: Reader, name: str, content: bytes) -> None:
    with pytest.raises(Unreadable, match="encrypted"):
        read(reader, content, name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["a.docx", "a.odt", "a.xlsx", "a.pptx", "a.epub", "a.docx.gz", "a.txt.gz", "a.pdf", "a.rtf"]
)
@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9])
def test_a_truncated_file_says_so(reader: Reader, name: str, kept: float) -> None:
    bare = name.removesuffix(".gz")
    whole = made.pdf("Words") if bare == "a.pdf" else FORMATS.get(bare, b"words and words " * 50)
    whole = made.compress(whole) if name.endswith(".gz") else whole
    cut = whole[: max(12, int(len(whole) * kept))]
    try:
        note = read(reader, cut, name).note
    except Unreadable as refusal:
        note = str(refusal)
    assert "truncated or damaged" in note


@pytest.mark.slow
def test_damaged_files_never_bring_the_reader_down(reader: Reader) -> None:
    contents = {"a.pdf": made.pdf("Words " * 50), **{n: c for n, c in FORMATS.items() if n.startswith("a.")}}
    for name, content in contents.items():
        for place in range(8, len(content), max(1, len(content) // 12)):
            damaged = bytearray(content)
            damaged[place : place + 8] = b"\xff\x00<&>\xfe\x80\x7f"
            with contextlib.suppress(Unreadable, Unsupported):
                read(reader, bytes(damaged), name)


def test_an_empty_file_is_empty(reader: Reader) -> None:
    assert read(reader, b"", "a.docx") == Extracted("", "The file is empty.")


# Bombs


def nested(depth: int) -> bytes:
    inner = made.pack({"a.txt": "x"}, zipfile.ZIP_STORED)
    for _ in range(depth - 1):
        inner = made.pack({"inner.zip": inner}, zipfile.ZIP_STORED)
    return inner


BOMBS: dict[str, Callable[[], bytes]] = {
    "ratio.docx": lambda: made.docx("x", **{"word/media/zeros.bin": bytes(33 << 20)}),
    "text.docx": lambda: made.docx("A" * (33 << 20)),
    "many-parts.docx": lambda: made.docx("x", **{f"word/media/{number}.bin": "" for number in range(20_001)}),
    "nested.docx": lambda: made.docx("x", **{"word/embeddings/a.zip": nested(6)}),
    "nested-ratio.docx": lambda: made.docx(
        "x", **{"word/embeddings/a.zip": made.pack({str(n): bytes(4 << 20) for n in range(9)})}
    ),
    "bomb.txt.gz": lambda: made.compress(bytes(33 << 20)),
    "bomb.gz.gz": lambda: made.compress(made.compress(b"a" * (33 << 20))),
    "ten-thousand-archives.docx": lambda: made.docx(
        "x", **{f"word/embeddings/{number}.zip": nested(3) for number in range(10_000)}
    ),
    "two-thousand-deep.docx": lambda: made.docx("x", **{"word/embeddings/a.zip": nested(2000)}),
    "deep.txt.gz": lambda: made.compress(b"words", 5),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.slow
def test_a_bomb_is_refused_before_it_costs_much(small_reader: Reader, name: str) -> None:
    """failures B10"""
    bomb, reader = BOMBS[name](), small_reader

    def refuse() -> None:
        with pytest.raises(Unreadable, match=r"unpacks to more|deeper than is read|more than \d+ parts"):
            read(reader, bomb, name)

    assert cost(reader, refuse) < 80


def odd_zip(content: bytes) -> bytes:
    """Give every part of an archive a compression that no Python knows."""
    return with_headers(content, 8, lambda _: 97)


@pytest.mark.slow
@pytest.mark.parametrize(
    "inner", [encrypted_zip(nested(1)), odd_zip(nested(1)), nested(1)[:40]], ids=["encrypted", "odd", "damaged"]
)
def test_an_archive_that_cannot_be_unpacked_inside_a_document_hides_no_text(reader: Reader, inner: bytes) -> None:
    assert read(reader, made.docx("words", **{"word/embeddings/a.zip": inner}), "a.docx").text == "words"


@pytest.mark.slow
def test_archives_within_the_depth_allowed_are_no_bombs(reader: Reader) -> None:
    assert read(reader, made.docx("words", **{"word/embeddings/a.zip": nested(2)}), "a.docx").text == "words"
    assert read(reader, made.compress(b"words", 3), "a.txt.gz").text == "words"


LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol">'
    + "".join(f'<!ENTITY lol{n} "' + f"&lol{n - 1 or ''};" * 10 + '">' for n in range(1, 12))
    + ']><lolz a="&lol11;">before &lol11; after</lolz>'
)
OUTSIDE = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>before &x; after</a>'


@pytest.mark.slow
@pytest.mark.parametrize("document", [LAUGHS, OUTSIDE], ids=["billion laughs", "external entity"])
def test_entities_of_a_document_are_never_expanded(reader: Reader, document: str) -> None:
    """failures B9"""
    text = read(reader, document.encode(), "a.xml").text
    assert text.split() == ["before", "after"]
    office = made.docx("x", **{"word/document.xml": document.replace("<lolz ", "<w:document ")})
    with contextlib.suppress(Unreadable):
        text = read(reader, office, "a.docx").text
        assert len(text) < 100
        assert "root:" not in text


def test_html_entities_and_those_unknown_do_not_lose_the_text_behind_them(reader: Reader) -> None:
    assert read(reader, b"<a>caf&eacute; &unknown; after &lt;b&gt; &amp; &#233;</a>", "a.xml").text == (
        "café after <b> & é"
    )


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1000, 500_000])
def test_deep_html_is_read_as_far_as_it_goes(reader: Reader, depth: int) -> None:
    page = b"<p>before</p>" + b"<div>" * depth + b"deep" + b"</div>" * depth
    found = read(reader, page, "a.html")
    assert found.text.startswith("before")
    assert ("deep" in found.text) == (depth == 1000)
    assert ("nested too deep" in found.note) == (depth != 1000)


@pytest.mark.slow
@pytest.mark.parametrize(
    "tag",
    [
        "<p " + " ".join(f"a{number}=1" for number in range(200_000)) + ">",
        "<p " + "".join(f'a{number}="1"' for number in range(200_000)) + ">",
        "<p x='>' " + " ".join(f"a{number}" for number in range(200_000)) + ">",
    ],
)
def test_200_000_attributes_cost_nothing(reader: Reader, tag: str) -> None:
    page = f"<p>before</p>{tag}words</p>after".encode()
    xml = ("<r " + " ".join(f"a{number}='1'" for number in range(200_000)) + ">words</r>").encode()

    def read_both() -> None:
        assert read(reader, page, "a.html").text.split() == ["before", "words", "after"]
        assert read(reader, xml, "a.xml").text == "words"

    assert cost(reader, read_both) < 80


def test_stray_quotes_in_tags_lose_no_text(reader: Reader) -> None:
    page = b'<p class="a"">one</p><a href=\'x\' \'>two</a><p title="it\'s">three</p>' + b"<p>more</p>" * 100
    text = read(reader, page, "a.html").text
    assert text.split()[:3] == ["one", "two", "three"]
    assert text.count("more") == 100


@pytest.mark.slow
def test_a_long_attribute_is_no_flood(reader: Reader) -> None:
    picture = b'<img src="data:image/png;base64,' + b"QUJD" * 100_000 + b'" alt="a"><p>words'
    assert read(reader, picture, "a.html").text == "words"


@pytest.mark.slow
def test_a_packed_table_of_many_cells_is_read_whole(reader: Reader) -> None:
    rows = "".join(f'<row r="{n}"><c r="A{n}"><v>{n}</v></c><c r="B{n}"><v>7</v></c></row>' for n in range(1, 100_001))
    out = io.BytesIO(made.xlsx("x"))
    with zipfile.ZipFile(out) as archive:
        parts: dict[str, str | bytes] = {name: archive.read(name) for name in archive.namelist()}
    sheet = parts["xl/worksheets/sheet1.xml"]
    assert isinstance(sheet, bytes)
    head, _, _ = sheet.partition(b"<row")
    parts["xl/worksheets/sheet1.xml"] = head + rows.encode() + b"</sheetData></worksheet>"
    text = read(reader, made.pack(parts), "a.xlsx").text
    assert "100000" in text
    assert "99999" in text


@pytest.mark.slow
def test_plain_text_says_the_same_without_a_sandbox(reader: Reader) -> None:
    found = {name: plain.read(content, name, "", 4_000_000) for name, content in FORMATS.items()}
    read_here = {name for name, said in found.items() if said is not None}
    assert read_here == {"plain.txt", "marked.txt", "utf16.txt", "utf16be.txt", "utf32.txt", "notes.md"}
    for name in read_here:
        assert found[name] == read(reader, FORMATS[name], name)
    assert plain.read(b"x" * 2000, "a.txt", "", 1000) == Extracted(
        "x" * 1000, "Only the first 1000 characters were kept."
    )


@pytest.mark.parametrize(
    ("content", "name", "media_type"),
    [
        (FORMATS["a.docx"], "a.txt", "text/plain"),
        (b"%PDF-1.4", "a.txt", "text/plain"),
        (bytes(257) + b"ustar", "a.txt", "text/plain"),
        (bytes(range(256)) * 9, "a.txt", "text/plain"),
        (b"<p>words</p>", "a.html", "text/plain"),
        (b"<p>words</p>", "a.txt", "text/html"),
        (b"words", "a.txt", "text/plain; charset=utf-16"),
        (b"words", "a.csv", "text/csv"),
        (b"", "a.txt", "text/plain"),
        (b"x" * (plain.LARGEST + 1), "a.txt", "text/plain"),
    ],
)
def test_what_may_be_anything_else_is_left_to_the_sandbox(content: bytes, name: str, media_type: str) -> None:
    assert plain.read(content, name, media_type, 4_000_000) is None


@pytest.mark.slow
def test_many_comments_do_not_hold_up_who_tells_the_format(reader: Reader) -> None:
    assert read(reader, b"<!---->" * 500 + b"words").text.endswith("words")
