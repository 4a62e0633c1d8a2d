"""How text becomes words."""

import pytest

from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.analysis.text import BREAK, normal
from muniment.repository.search.aql import patterns
from tests.properties import oracle

ANALYSER = Analyser("English")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Two pumps, one Valve", ["two", "pumps", "one", "valve"]),
        ("annual_report-2024.pdf", ["annual", "report", "2024", "pdf"]),
        ("Straße Øre café cafe\u0301", ["strasse", "ore", "cafe", "cafe"]),
        ("ｐｕｍｐ o\ufb03ce ②", ["pump", "office", "2"]),
        ("docu\u00adment", ["document"]),
        ("水泵维修", ["水", "泵", "维", "修"]),
        ("東京2024年Windows版", ["東", "京", "2024", "年", "windows", "版"]),
        ("カタカナ", ["か", "た", "か", "な"]),
        ("한국어 문서", ["한국어", "문서"]),
        ("- !", []),
        ("x" * 600, []),
    ],
)
def test_words_as_they_are_written(text: str, words: list[str]) -> None:
    """failures B20."""
    assert [word for _, word in ANALYSER.exact(text)] == words


@pytest.mark.parametrize(
    ("text", "found_by"),
    [
        ("it cost 1,234 in all", ["1234", "1,234", "1.234", "1 234"]),
        ("1.234.567", ["1234567", "1,234,567", "1.234.567"]),
        ("1\u202f234 and 5\u00a0678", ["1234", "5678"]),
        ("3'456 and 3\u2019457", ["3456", "3457"]),
        ("$1,234.50", ["1234.50", "1,234.50"]),
        ("1234", ["1,234", "1'234"]),
        ("3.14 and 3.142", ["3.14", "3.142"]),
        ("the IndexSnapshot", ["snapshot", "index", "indexsnapshot", "IndexSnapshot", "index-snapshot", "snapshots"]),
        ("getHTTPResponse()", ["http", "responses", "getHttpResponse", "get-http"]),
        ("Wi-Fi", ["WiFi"]),
        ("b2b mp3", ["b2b", "mp3", "mp", "b"]),
        ("URLs", ["url", "URLs"]),
        ("München-Nord", ["muenchen", "munchen", "MÜNCHEN", "muenchen-nord", "Mu\u0308nchen"]),
        ("Muenchen", ["München", "muenchen"]),
        ("ÄRZTE in Århus, Købmand", ["aerzte", "arzte", "aarhus", "koebmand"]),
        ("GrößeÄndern", ["groesse", "grosse", "aendern", "andern", "größe"]),
        ("報告書は東京2024年末", ["報告", "告書", "報告書", "書", "年", "2024年", "京2024", "東京2024年末"]),
        ("카드는 API는", ["카드", "카드는", "API", "API는"]),
        ("", []),
    ],
)
def test_words_are_found_by_their_variants(text: str, found_by: list[str]) -> None:
    assert [query for query in found_by if not found(text, query)] == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("0.123 and 12.345.6 and 1,23 and 1,2345", "0123"),
        ("12.345.6", "12345"),
        ("1,2345", "12345"),
        ("1,234.567", "1234567"),
        ("12 345", "12345"),
        ("IndexSnapshot", "shot"),
        ("a3b4c5d6e7f8", "b"),
        ("URLs", "ls"),
        ("poet, duel, goes", "pot"),
        ("munchen", "muenchen"),
        ("報 告", "報告書"),
    ],
)
def test_a_variant_is_no_other_word(text: str, query: str) -> None:
    assert not found(text, query)


def test_exact_words_have_no_variants() -> None:
    assert [word for _, word in ANALYSER.exact("IndexSnapshot 1,234 München")] == [
        "indexsnapshot",
        "1",
        "234",
        "munchen",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "the IndexSnapshot of München, 1,234 or 1\u202f234",
        "東京2024年Windows版 A",
        "카드는 API는",
        f"{'x/' * 60}IndexSnapshot/1,234 {'Y' * 600}2",
        "x",
    ],
)
def test_spans_are_what_an_index_holds(text: str) -> None:
    text = normal(text)
    spans = ANALYSER.all_spans(text, stemmed=True)
    main = ANALYSER.spans(text, stemmed=True)
    assert [(span.place, span.word) for span in main] == ANALYSER.stem(text)
    assert spans[: len(main)] == main
    assert sorted(span.word for span in spans) == sorted(
        word for held in oracle.stems(ANALYSER, text) for _, word in held
    )
    assert all(text[span.start : span.end].strip() for span in spans)
    variants = spans[len(main) :]
    assert not variants or variants[0].place == main[-1].place + 2


def found(text: str, query: str) -> bool:
    """Say whether a text holds one of the ways of a term."""
    for way in ANALYSER.ways(query):
        words = [word for _, word in way.words]
        for held in oracle.stems(ANALYSER, text) if way.stems else [ANALYSER.exact(text)]:
            of_text = [word for _, word in held]
            if any(of_text[at : at + len(words)] == words for at in range(len(of_text))):
                return True
    return False


def test_each_spelling_of_a_term_is_looked_up_once() -> None:
    assert [way.words for way in ANALYSER.ways("pump")] == [[(0, "pump")]]
    assert [[word for _, word in way.words] for way in ANALYSER.ways("abc1234")] == [["abc1234"], ["abc", "1234"]]


def test_stems() -> None:
    stems = [{stem for _, stem in ANALYSER.stem(form)} for form in ("pump", "Pumps", "pumping", "pumped")]
    assert stems == [{"pump"}] * 4


@pytest.mark.parametrize(
    "text", ["plain", "cafe\u0301", "東京2024年Windows版", "ภาษาไทย", "docu\u00adment 水\u00ad泵", "ﷺ㌀"]
)
def test_what_is_normal_stays_so(text: str) -> None:
    assert normal(normal(text)) == normal(text)


def test_only_scripts_without_blanks_get_breaks() -> None:
    assert BREAK in normal("水泵")
    assert BREAK not in normal("Straße, naïve, Ωμέγα, договор, हिन्दी, 한국어")


def test_there_is_no_stemming_for_every_language() -> None:
    with pytest.raises(ValueError, match="choose one of Arabic"):
        Analyser("Klingon")


@pytest.mark.slow
def test_flattened_text_knows_the_place_of_every_character() -> None:
    everything = "".join(chr(code) for code in range(0x20, 0x3000) if not 0xD800 <= code < 0xE000)
    for text in ("Plain TEXT", "ΟΔΟΣ Ünïcödé İstanbul Øre Straße — “x”", "Договор 2024 水泵", everything):
        flat = ANALYSER.flatten(text)
        places = [flat.place(at) for at in range(len(flat.text))]
        assert places == sorted(places)
        for at, folded in list(zip(places, flat.text, strict=True))[:: max(1, len(text) // 500)]:
            alone = ANALYSER.flatten(text[at]).text
            assert folded in alone, text[at]
    assert ANALYSER.flatten("ΟΔΟΣ Ünïcödé İstanbul Straße").text == "οδοσ unicode istanbul strasse"
    assert ANALYSER.flatten("e-mail an Müller 12 34", spelled=True).text == "email an mueller1234"


@pytest.mark.parametrize(
    ("text", "found_by"),
    [
        ("كِتَابٌ أحمد الدوري العـــدد", ["كتاب", "احمد", "الدورى", "العدد"]),
        ("کتاب های ۲۰۲۴ و ٢٠٢٣", ["كتاب", "2024", "2023", "٢٠٢٤"]),
        ("שָׁלוֹם מלך", ["שלום", "מלכ"]),
        ("Королёв, п\u02bcять", ["Королев", "п'ять", "п’ять", "КОРОЛЕВ", "пять"]),
        ("क़लम २०२४ हँस हिन्दी", ["कलम", "2024", "हंस", "हिन्दी"]),
        ("ετήσια ΣΟΦΟΣ οδός", ["ετησια", "ΕΤΗΣΙΑ", "σοφός", "ΟΔΟΣ"]),
        ("party🎉 👍🏽 ❤️", ["🎉", "👍", "❤", "party"]),
        ("ヒラガナ", ["ひらがな", "ﾋﾗｶﾞﾅ"]),
        ("10² x̄y", ["102", "xy"]),
    ],
)
def test_letters_that_a_reader_takes_for_the_same_are_the_same(text: str, found_by: list[str]) -> None:
    assert [query for query in found_by if not found(text, query)] == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("कालम किलम", "कलम"),
        ("हिन्दी", "दी"),
        ("बंद", "बद"),
        ("กา", "กิ"),
        ("パパ", "はは"),
        ("йод", "иод"),
        ("👍", "👎"),
        ("٢٠٢٤", "2023"),
    ],
)
def test_other_letters_are_other_words(text: str, query: str) -> None:
    assert not found(text, query)


SPELLINGS = [
    ("email", "e-mail"),
    ("cooperation", "co-operation"),
    ("obrien", "O'Brien"),
    ("usa", "U.S.A."),
    ("12345678", "1234-5678"),
    ("INV123", "INV-123"),
    ("9783161484100", "978-3-16-148410-0"),
    ("DE00123456789012345678", "DE00 1234 5678 9012 3456 78"),
    ("GB29NWBK60161331926819", "GB29 NWBK 6016 1331 9268 19"),
    ("+49301234567", "+49 30 1234567"),
    ("5551234567", "(555) 123-4567"),
    ("4111111111111111", "4111 1111 1111 1111"),
    ("DE123456789", "DE 123 456 789"),
    ("کتابها", "کتاب\u200cها"),
]


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_either_spelling_of_a_joined_word_finds_both(one: str, other: str) -> None:
    for query in (one, other):
        assert found(f"the {one} here", query)
        assert found(f"the {other} here", query)
    if one[-1].isdigit():
        changed = one[:-1] + str(9 - int(one[-1]))
        assert not found(other, changed)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("3.14 in 2 places", "314"),
        ("12 345", "12345"),
        ("1 22 33 44 55 66 77 88 99 10 11 12", "122334455667788991011"),
        ("a--b", "ab"),
        ("John's", "johns-x"),
    ],
)
def test_other_words_are_not_joined(text: str, query: str) -> None:
    assert not found(text, query)


def test_patterns_cross_the_joints_of_a_word() -> None:
    for text, query in [("wi-fi-port", "wi*port"), ("XK-77", "XK?77"), ("INV-123", "inv12*"), ("e-mail", "*mail")]:
        ((_, pattern),) = ANALYSER.wild(query)
        assert any(pattern.matches(word) for words in oracle.exact_words(ANALYSER, text) for _, word in words), text
    ((_, pattern),) = ANALYSER.wild("wi?port")
    assert not any(pattern.matches(word) for words in oracle.exact_words(ANALYSER, "wi-fi-port") for _, word in words)
    assert ANALYSER.wild("हि*") == [(0, patterns.read("हि*"))]
