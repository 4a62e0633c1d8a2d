"""RTF gives the text that its readers see, in its order, whatever its characters are written in."""

import pytest

from muniment.repository.store.extraction.readers import rich_text

FONTS = rb"{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial Cyr;}}"


def words(body: bytes) -> list[str]:
    return rich_text.read(b"{\\rtf1\\ansi\\ansicpg1252\\deff0" + FONTS + body + b"}")[0].split()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (rb"one\par two\tab three\line four\~five", "one two three four five"),
        (rb"caf\'e9 \u233?t\u233?", "café été"),
        (rb"\f1 \'cf\'f0\'e8 \plain caf\'e9", "При café"),
        (rb"{\f1 \'cf}\'cf", "ПÏ"),
        (rb"\u-10179?\u-8704?", "😀"),
        (rb"{\uc2\u233 e'x}\u233?y", "éxéy"),
        (rb"{\uc0\u233 e}", "ée"),
        (rb"\trowd one\cell two\cell\row three", "one two three"),
        (rb"a\{b\}c\\d", "a{b}c\\d"),
        (rb"one{\header above}{\footer below}two{\footnote note}three", "one above below two note three"),
        (rb"{\*\unknown no}{\*\bkmkstart no}{\info{\author no}}{\pict ffd8}yes", "yes"),
        (rb'{\field{\*\fldinst HYPERLINK "http://no"}{\fldrslt link}}', "link"),
        (rb"{\shp{\*\shpinst{\sp{\sn no}{\sv 1}}{\shptxt box}}{\shprslt box}}", "box"),
        (rb"one {\deleted gone}two", "one two"),
        (rb"{\pict\bin5 }}{{\}yes", "yes"),
        (b"one\r\ntwo", "onetwo"),
        (rb"{\b0\*\cs7 hello}{ \*\unknown there}{\*\cs7 no}", "hello there"),
        (rb"}}}}one", "one"),
    ],
)
def test_words_come_out_of_rich_text(body: bytes, expected: str) -> None:
    assert words(body) == expected.split()


def test_two_bytes_of_one_character_are_decoded_together() -> None:
    body = rb"{\rtf1{\fonttbl{\f0\fcharset128 Gothic;}}\f0 \'93\'fa\'96\'7b}"
    assert rich_text.read(body)[0] == "日本"


def test_a_file_without_its_end_gives_the_text_before_it() -> None:
    assert words(rb"one {\b two {\i three")[:3] == ["one", "two", "three"]
    assert rich_text.read(b"{\\rtf1 one\\")[0] == "one"


@pytest.mark.slow
def test_groups_may_be_nested_deep() -> None:
    assert rich_text.read(b"{\\rtf1 " + b"{" * 100_000 + b"deep" + b"}" * 100_001)[0] == "deep"


def test_what_a_file_says_about_itself_is_no_text() -> None:
    body = rb"{\rtf1\ansi{\info{\title T\'e9}{\author Ada; Bob}{\*\company no}{\keywords a, b}{\creatim\yr2024}}words}"
    assert rich_text.read(body) == ("words", {"title": ["T\u00e9"], "authors": ["Ada", "Bob"], "keywords": ["a", "b"]})
