"""Bytes become the characters that were meant, with a label or without; words at the ends of lines stay words."""

import pytest

from muniment.repository.store.extraction.findings import Unsupported
from muniment.repository.store.extraction.readers.characters import decode, tidy

RUSSIAN = "Договор аренды помещения"
JAPANESE = "契約の報告書を作成する。\nテスト"
CHINESE = "合同 报告,这是一个测试"


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        *((RUSSIAN, name) for name in ("cp1251", "koi8-r", "cp866", "mac_cyrillic", "iso8859-5", "utf-16-le")),
        *((JAPANESE, name) for name in ("shift_jis", "euc_jp", "iso2022_jp", "utf-16-le", "utf-16-be")),
        (CHINESE, "gb18030"),
        (CHINESE, "utf-16-le"),
        ("這是一個測試報告", "big5"),
        ("계약서와 보고서를 작성", "euc_kr"),
        ("계약서와 보고서를 작성", "iso2022_kr"),
        ("Συμφωνία μίσθωσης ακινήτου", "cp1253"),
        ("Smlouva o nájmu bytu, příloha číslo", "cp1250"),
        ("הסכם שכירות של דירה", "cp1255"),
        ("عقد إيجار العقار", "cp1256"),
        ("Grüße", "latin-1"),
        ("it’s “good” – 5 €", "cp1252"),
    ],
)
def test_bytes_without_a_label_are_read_in_their_charset(text: str, charset: str) -> None:
    assert decode(text.encode(charset)).text == text


@pytest.mark.parametrize("label", ["", "us-ascii", "utf-8", "_iso-2022-jp$ESC", "ISO-2022-JP;"])
def test_seven_bits_are_not_always_ascii(label: str) -> None:
    assert decode("テスト報告".encode("iso2022_jp"), label).text == "テスト報告"


@pytest.mark.parametrize(
    ("label", "charset"),
    [("x-sjis", "shift_jis"), ("'windows-31j'", "cp932"), ("iso-8859-8-i", "cp1255"), ("win-1251", "cp1251")],
)
def test_a_label_that_is_nearly_a_name_is_understood(label: str, charset: str) -> None:
    text = {"shift_jis": JAPANESE, "cp932": JAPANESE, "cp1255": "חוזה", "cp1251": "Акт"}[charset]
    assert decode(text.encode(charset), label).text == text


def test_a_label_covers_what_programs_write_beyond_it() -> None:
    assert decode("“no”".encode("cp1252"), "iso-8859-1").text == "“no”"
    assert decode("朱镕基".encode("gbk"), "gb2312").text == "朱镕基"


def test_a_guess_that_is_not_certain_is_noted() -> None:
    assert "which is not certain" in decode("café".encode("latin-1")).note
    assert decode((RUSSIAN * 20).encode("cp1251")).note == ""
    assert decode(RUSSIAN.encode("cp1251"), "windows-1251").note == ""


def test_bytes_of_no_text_are_refused() -> None:
    with pytest.raises(Unsupported):
        decode(bytes(range(256)) * 40)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a long-\nterm loan", "a long-term longterm loan"),
        ("investi-\r\n  gation", "investi-gation investigation"),
        ("state-of-the-\nart", "state-of-the-art state-of-theart"),
        ("Po\n\u00adlitik", "Politik"),
        ("Po\u00ad\nlitik", "Politik"),
        ("- one\n- two", "- one\n- two"),
        ("5-\n6, a -\nb", "5-\n6, a -\nb"),
        ("end-\n\nNew", "end-\n\nNew"),
    ],
)
def test_both_readings_of_a_hyphen_at_the_end_of_a_line_are_found(text: str, expected: str) -> None:
    assert tidy(text, 1000) == expected


@pytest.mark.slow
@pytest.mark.parametrize("run", ["a-", "-\n", " ", "\u00ad", "a", "\n "])
def test_long_runs_cost_no_more_than_their_length(run: str) -> None:
    assert len(tidy(run * 1_000_000, 4_000_000)) <= 4_000_000
