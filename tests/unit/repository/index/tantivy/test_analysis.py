"""How text becomes words."""

import pytest

from muniment.repository.index.tantivy.analysis import Analyser
from muniment.repository.index.text import BREAK, normal

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
        ("カタカナ", ["カ", "タ", "カ", "ナ"]),
        ("한국어 문서", ["한국어", "문서"]),
        ("🎉 - !", []),
        ("x" * 600, []),
    ],
)
def test_words_as_they_are_written(text: str, words: list[str]) -> None:
    """failures B20."""
    assert [word for _, word in ANALYSER.exact(text)] == words


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


def test_flattened_text_has_every_character_at_its_place() -> None:
    everything = "".join(chr(code) for code in range(0x20, 0x3000) if not 0xD800 <= code < 0xE000)
    for text in ("Plain TEXT", "ΟΔΟΣ Ünïcödé İstanbul Øre — “x”", "Договор 2024 水泵", everything):
        for start in range(0, len(text), 60):
            piece = text[start : start + 60]
            flat = ANALYSER.flatten(piece)
            assert len(flat) == len(piece)
            for character, folded in zip(piece, flat, strict=True):
                words = ANALYSER.exact(character)
                # Some letters fold further when what they fold to stands beside them.
                assert folded in (words[0][1][0] if words else character.lower(), ANALYSER.flatten(folded)), character
    assert ANALYSER.flatten("ΟΔΟΣ Ünïcödé İstanbul") == "οδοσ unicode istanbul"
    assert ANALYSER.flatten(everything)[0x41 - 0x20 :][:3] == "abc"
