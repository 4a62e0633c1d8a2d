"""Mails, JSON, PDF and locked files give their words, and what they say about themselves."""

import base64
import io

import pytest

from muniment.repository.store.extraction.findings import Extracted, Limits
from muniment.repository.store.extraction.readers import pdf, right_to_left
from muniment.repository.store.extraction.readers.office import cells
from muniment.repository.store.extraction.readers.readers import read
from muniment.repository.store.extraction.readers.right_to_left import Glyph
from tests.unit.repository import sample_files as made

LIMITS = Limits(seconds=20, memory=1 << 30, characters=100_000, depth=3)


def reading(content: bytes, name: str = "", media_type: str = "") -> Extracted:
    return read(io.BytesIO(content), name, media_type, LIMITS)


def mail(kind: str, content: bytes) -> bytes:
    head = f"From: Ada <ada@example.org>\nContent-Type: {kind}\nContent-Transfer-Encoding: base64\n\n"
    return head.encode() + base64.encodebytes(content)


@pytest.mark.parametrize("kind", ["application/pdf", "application/octet-stream"])
def test_a_mail_that_is_nothing_but_a_file_without_a_name_is_read(kind: str) -> None:
    assert "scanned words" in reading(mail(kind, made.pdf("scanned words")), "a.eml").text


def test_a_part_that_no_reader_reads_is_told() -> None:
    note = reading(mail("application/ms-tnef", b'x\x9f>"' + bytes(40)), "a.eml").note
    assert "application/ms-tnef" in note
    assert "TNEF" in note


@pytest.mark.parametrize("kind", ["text/calendar", "text/csv; charset=koi8-r"])
def test_every_kind_of_text_in_a_mail_is_read(kind: str) -> None:
    assert "Договор аренды" in reading(mail(kind, "Договор аренды".encode("koi8-r")), "a.eml").text


def test_a_report_of_delivery_gives_its_reasons() -> None:
    report = b"Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; bob@example.org\nStatus: 5.1.1\n"
    content = b"From: mx\nContent-Type: message/delivery-status\n\n" + report
    assert "bob@example.org" in reading(content, "a.eml").text


def test_mails_of_a_mailbox_are_read_one_by_one() -> None:
    box = b"".join(
        b"From ada@example.org Thu Jan  1 00:00:0%d 1970\n" % number + mail("text/plain", b"words %d" % number) + b"\n"
        for number in range(3)
    )
    text = reading(box).text
    assert [line for line in text.split("\n") if line.startswith("words")] == ["words 0", "words 1", "words 2"]


@pytest.mark.parametrize("first", ["To: bob@example.org", "X-Mailer: m", "412\nReturn-Path: <a@example.org>"])
def test_a_mail_may_begin_with_any_header(first: str) -> None:
    assert "words" in reading(f"{first}\nSubject: s\n".encode() + mail("text/plain", b"words")).text


@pytest.mark.parametrize(
    "subject",
    ["テスト報告".encode("iso2022_jp"), "テスト報告".encode(), b"=?_iso-2022-jp$ESC?B?GyRCJUYlOSVISnM5cBsoQg==?="],
)
def test_headers_are_read_as_they_were_meant(subject: bytes) -> None:
    found = reading(b"Subject: " + subject + b"\nFrom: Ada <ada@example.org>\n\nbody", "a.eml")
    assert found.properties == {"subject": ["テスト報告"], "authors": ["Ada"]}
    assert "Subject: テスト報告" in found.text


@pytest.mark.parametrize("name", ["a.json", "a.ipynb", ""])
def test_escapes_of_json_are_characters_and_its_base64_is_no_text(name: str) -> None:
    picture = base64.b64encode(bytes(range(256)) * 3).decode()
    lines = base64.encodebytes(bytes(range(256)) * 3).decode().replace("\n", "\\n")
    content = f'{{"a": "Gr\\u00fc\\u00dfe \\ud83d\\ude00\\nnext", "image/png": "{picture}", "b": "{lines}"}}'
    words = reading(content.encode(), name).text
    assert "Grüße 😀\nnext" in words
    assert len(words) < 100


def test_hyphens_that_a_pdf_divides_words_with_are_read_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pypdfium2.PdfTextPage.get_text_range", lambda _: "a long\ufffeterm loan, e\x02\r\nmail")
    assert reading(made.pdf("words")).text == "a long-term longterm loan, e-mail email"


def line(text: str, *, left: float = 0) -> list[Glyph]:
    """Put the characters beside each other as they are seen, with a gap for each blank."""
    places = ((character, left + 6 * number) for number, character in enumerate(text))
    return [Glyph(character, place, place + (0 if character == " " else 6)) for character, place in places]


@pytest.mark.parametrize(
    ("seen", "meant"),
    [
        ("םולש", "שלום"),
        ("2024 םקר הקסע", "עסקה רקם 2024"),
        ("(א ףיעס) 15.3", "15.3 (סעיף א)"),
        ("ביבא Acme Ltd לתב", "בתל Acme Ltd אביב"),
        ("look here: םולע םולש there", "look here: שלום עלום there"),
        ("17% ח", "ח 17%"),
    ],
)
def test_a_line_from_right_to_left_is_put_into_the_order_of_reading(seen: str, meant: str) -> None:
    assert right_to_left.in_reading_order(line(seen), 2) == meant


def test_a_ligature_and_a_mark_keep_their_letters() -> None:
    glyphs = [Glyph("ا", 0, 6), Glyph("ل", 0, 6), Glyph("ه", 6, 12), Glyph("َ", 7, 11)]
    assert right_to_left.in_reading_order(glyphs, 2) == "هَلا"


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (0.256, "0%", "26%"),
        (0.025, "0%", "3%"),
        (-1234.5, "#,##0.00 [$€-407]", "-1,234.50 €"),
        (-1234.5, "#,##0.00_);(#,##0.00)", "(1,234.50)"),
        (1_500_000, '0.0,,"M"', "1.5M"),
        (123_456_789, "000-00-0000", "123-45-6789"),
        (45_000.75, "d. mmmm yyyy hh:mm", "15. March 2023 18:00"),
        (45_000.75, "dd.mm.yy h:mm AM/PM", "15.03.23 6:00 PM"),
        (1.5, "[h]:mm:ss", "36:00:00"),
        (3.5, "General", ""),
        (3.5, "0.00E+00", ""),
        (1e300, "yyyy", ""),
        (5, "", ""),
    ],
)
def test_a_number_is_shown_as_its_format_says(value: float, code: str, shown: str) -> None:
    assert cells.shown(value, 0, code) == shown


def test_what_html_says_about_itself_is_found() -> None:
    page = b"<html><head><title>T</title><meta name=Author content='A; B'><meta name=keywords content='x, y'></head>"
    said = {"title": ["T"], "authors": ["A", "B"], "keywords": ["x", "y"]}
    assert reading(page + b"<body>w", "a.html").properties == said


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Tue, 06 May 2003 10:11:12 +0200", ["2003-05-06T10:11:12+02:00"]),
        ("Tue, 06 May 2003 10:11:12 -0000", ["2003-05-06T10:11:12"]),
        ("a day in May", None),
        ("Tue, 99 May 2003 10:11:12 +9999", None),
    ],
)
def test_the_date_of_a_mail_is_found(written: str, read: list[str] | None) -> None:
    content = f"Subject: a\nFrom: b@c\nDate: {written}\n\nwords".encode()
    assert reading(content, "a.eml").properties.get("a_content_date") == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("/ModDate(D:20030506101112+02'00')", ["2003-05-06T10:11:12+02:00"]),
        ("/CreationDate(D:20030506101112Z)", ["2003-05-06T10:11:12Z"]),
        ("/CreationDate(D:20010101)/ModDate(D:200305061011-01)", ["2003-05-06T10:11:00-01:00", "2001-01-01T00:00:00Z"]),
        ("/ModDate(D:2003)", ["2003-01-01T00:00:00Z"]),
        ("/ModDate(6. Mai 2003)", None),
    ],
)
def test_the_dates_in_a_pdf_are_found(written: str, read: list[str] | None) -> None:
    assert reading(made.pdf("words", about=written), "a.pdf").properties.get("a_content_date") == read


def test_what_a_form_in_a_pdf_holds_is_read_as_it_is_shown() -> None:
    options = "/Opt[[(a)(first)][(b)(second)][(c)(third)]]"
    fields = [
        "/FT/Tx/T(1)/V<FEFF014100F3647A>",
        f"/FT/Ch/Ff 131072/T(2){options}/V(b)",
        f"/FT/Ch/Ff 2097152/T(3){options}/V[(a)(c)]",
        f"/FT/Ch/Ff 393216/T(4){options}/V(fourth)",
        "/FT/Tx/Ff 8192/T(5)/V(secret)",
        "/FT/Tx/F 2/T(6)/V(hidden)",
        "/FT/Btn/T(7)/V/Yes/AS/Yes",
        "/FT/Tx/T(8)/V(two\\rlines)",
        "/FT/Tx/T(9)",
    ]
    result = reading(made.pdf("page", fields=fields), "a.pdf")
    assert result.text.split() == ["page", "Łó摺", "second", "first", "third", "fourth", "two", "lines"]
    assert not result.note


def test_a_form_of_very_many_fields_costs_no_pdf_its_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "_MOST_FIELDS", 2)
    for count, note in ((2, ""), (3, "The form has too many fields; they were not read.")):
        fields = [f"/FT/Tx/T({number})/V(value{number})" for number in range(count)]
        result = reading(made.pdf("page", fields=fields), "a.pdf")
        assert result.note == note
        assert result.text.split() == ["page"] + ([] if note else ["value0", "value1"])
