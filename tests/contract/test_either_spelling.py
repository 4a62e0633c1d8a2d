"""A joined word or number in either spelling; docs/aql.md, "By keywords"; docs/decisions/0094."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.repository.search.answering import results
from muniment.repository.search.answering.inquiry import SearchQuestion
from muniment.repository.search.aql import keywords, typed
from muniment.repository.search.aql.tree import Fulltext, Query, QueryLimits
from muniment.repository.search.index.contract import Answer, Search
from muniment.repository.search.index.questions.answering import Answering
from muniment.repository.search.index.tantivy.engine import TantivyWriter
from tests.shelf import MARTA, Shelf

pytestmark = pytest.mark.campaign_on("postgresql")

PAIRS = [
    ("email", "e-mail", "e-nail"),
    ("cooperation", "co-operation", "co-opposition"),
    ("obrien", "O'Brien", "O'Brian"),
    ("O’Brien", "OBrien", "O’Brian"),
    ("usa", "U.S.A.", "U.S.B."),
    ("U.S.A", "USA", "U.S.B"),
    ("wifi", "Wi-Fi", "Wi-Fu"),
    ("Nordsüd", "Nord-Süd", "Nord-West"),
    ("NORD-SÜD", "nordsüd", "NORD-OST"),
    ("Müllerstraße", "Müller-Straße", "Müller-Gasse"),
    ("Muellerstrasse", "Müller-Straße", "Mueller-Gasse"),
    ("coopération", "co-opération", "co-opérette"),
    ("коечто", "кое-что", "кое-кто"),
    ("Коечто", "КОЕ-ЧТО", "КОЕ-КТО"),
    ("Κάποιοςάλλος", "Κάποιος-Άλλος", "Κάποιος-Μόνος"),
    ("İçanadolu", "İç-Anadolu", "İç-Avrupa"),
    ("ısıyalıtım", "ısı-yalıtım", "ısı-değişim"),
    ("Łódźzachód", "Łódź-Zachód", "Łódź-Wschód"),
    ("Größenänderung", "Größen-Änderung", "Größen-Ordnung"),
    ("email", "e\N{EN DASH}mail", "e\N{EN DASH}nail"),
    ("email", "e\N{HYPHEN}mail", "e\N{HYPHEN}nail"),
    ("email", "e\N{NON-BREAKING HYPHEN}mail", "e\N{NON-BREAKING HYPHEN}nail"),
    ("email", "e\N{FIGURE DASH}mail", "e\N{FIGURE DASH}nail"),
    ("email", "e\N{MINUS SIGN}mail", "e\N{MINUS SIGN}nail"),
    ("email", "e\N{SOFT HYPHEN}mail", "e\N{SOFT HYPHEN}nail"),
    ("email", "e\N{SMALL HYPHEN-MINUS}mail", "e\N{SMALL HYPHEN-MINUS}nail"),
    ("email", "e\N{FULLWIDTH HYPHEN-MINUS}mail", "e\N{FULLWIDTH HYPHEN-MINUS}nail"),
    ("e-mail", "e\N{EN DASH}mail", "e-nail"),
    ("1234", "1,234", "1,235"),
    ("1234", "1_234", "1_235"),
    ("1234", "1\N{NO-BREAK SPACE}234", "1\N{NO-BREAK SPACE}235"),
    ("1234567", "1,234,567", "1,234,568"),
    ("1234567", "1.234.567", "1.234.568"),
    ("1234567", "1'234'567", "1'234'568"),
    ("1234567", "1’234’567", "1’234’568"),
    ("1234567", "1_234_567", "1_234_568"),
    ("1234567", "1\N{NO-BREAK SPACE}234\N{NO-BREAK SPACE}567", "1\N{NO-BREAK SPACE}234\N{NO-BREAK SPACE}568"),
    ("1234567", "1\N{NARROW NO-BREAK SPACE}234\N{NARROW NO-BREAK SPACE}567", "1234568"),
    ("1.234.567", "1,234,567", "1,234,568"),
    ("12345678", "1234-5678", "1234-5679"),
    ("12345678", "1234\N{EN DASH}5678", "1234\N{EN DASH}5679"),
    ("9783161484100", "978-3-16-148410-0", "978-3-16-148410-1"),
    ("DE89370400440532013000", "DE89 3704 0044 0532 0130 00", "DE89 3704 0044 0532 0130 01"),
    ("GB29NWBK60161331926819", "GB29 NWBK 6016 1331 9268 19", "GB29 NWBK 6016 1331 9268 18"),
    ("+4989123456", "+49 89 123-456", "+49 89 123-457"),
    ("5551234567", "(555) 123-4567", "(555) 123-4568"),
    ("4111111111111111", "4111 1111 1111 1111", "4111 1111 1111 1112"),
    ("INV123", "INV-123", "INV-124"),
    ("INV123", "INV 123", "INV 124"),
    ("INV-123", "INV 123", "INW 123"),
    ("ABC-1234", "ABC 1234", "ABC-1235"),
    ("ABC1234", "ABC 1234", "ABC1235"),
    ("ABC-1234", "ABC\N{NON-BREAKING HYPHEN}1234", "ABC\N{NON-BREAKING HYPHEN}1235"),
    ("DN50", "DN 50", "DN 65"),
    ("ISO-9001", "ISO 9001", "ISO 9002"),
    ("iPhone15", "iPhone 15", "iPhone 16"),
    ("iPhone-15", "iPhone 15", "iPhone 14"),
    ("windows11", "Windows 11", "Windows 10"),
    ("Boeing-747", "Boeing 747", "Boeing 737"),
    ("KX500A", "KX 500A", "KX 500B"),
    ("M8x40", "M 8x40", "M 8x50"),
    ("A4", "A 4", "A 5"),
    ("10mm", "10 mm", "11 mm"),
    ("1.5kg", "1.5 kg", "1.6 kg"),
    ("100MHz", "100 MHz", "101 MHz"),
    ("10m\N{SUPERSCRIPT TWO}", "10 m\N{SUPERSCRIPT TWO}", "11 m\N{SUPERSCRIPT TWO}"),
    ("20\N{DEGREE SIGN}C", "20 \N{DEGREE SIGN}C", "21 \N{DEGREE SIGN}C"),
    ("10km/h", "10 km/h", "11 km/h"),
    ("1,234 kg", "1234 kg", "1235 kg"),
    ("1234kg", "1,234 kg", "1,235 kg"),
    ("1,234kg", "1234 kg", "1235 kg"),
    ("100,000 km", "100000km", "100001km"),
    ("1,234.56 kg", "1234.56 kg", "1234.57 kg"),
    ("1,234 pumps", "1234 pumps", "1235 pumps"),
    ("abc 1234", "ABC-1234", "ABD-1234"),
    ("abc 1234", "ABC1234", "ABC1235"),
    ("inv 20240001", "INV-20240001", "INW-20240001"),
    ("covid 19", "COVID-19", "COVID-18"),
    ("ABC-1234 pump", "ABC1234 pump", "ABC1235 pump"),
    ("pump abc 1234", "pump ABC-1234", "pump ABD-1234"),
    ("iPhone15 case", "iPhone 15 case", "iPhone 16 case"),
    ("pipe 10 mm", "pipe 10mm", "pipe 11mm"),
    ("de89 3704 0044 0532 0130 00", "DE89370400440532013000", "DE89370400440532013001"),
    ("mt84 malt 0110 0001 2345 mtlc ast0 01s", "MT84MALT011000012345MTLCAST001S", "MT84MALT011000012345MTLCAST002S"),
    ("089 / 123 45 67", "089/1234567", "089/1234568"),
    ("089 / 123 45 67", "0891234567", "0891234568"),
    ("089 / 123 45 67", "089-123-45-67", "089-123-45-68"),
    ("030 \N{EN DASH} 12345-67", "(030) 1234567", "(030) 1234568"),
    ("+49 89 / 123456", "+4989123456", "+4989123457"),
    ("+49 (0)89 123456", "+49 89 123456", "+49 89 123457"),
    ("+49 (0) 89/123456", "+4989123456", "+4989123457"),
    ("fax 089 / 123 45 67", "fax 0891234567", "fax 0891234568"),
    ("0-8044-2957-X", "080442957X", "080442958X"),
    ("6ES7 315-2EH14-0AB0", "6ES7315-2EH14-0AB0", "6ES7315-2EH14-0AB1"),
]
"""Two spellings of one word, and another word that neither of them finds."""

FILLER = "among other words"


@pytest.mark.parametrize(
    ("language", "others"),
    [
        pytest.param("English", (), id="English"),
        pytest.param("German", (), id="German", marks=pytest.mark.campaign),
        pytest.param("English", ("French", "German", "Greek", "Russian", "Turkish"), id="several"),
    ],
)
def test_either_spelling_finds_both_in_one_order_and_no_other_word(
    repository_db: Database, tmp_path: Path, now: Instant, language: str, others: Sequence[str]
) -> None:
    shelf = Shelf(repository_db, tmp_path, now, language=language)
    shelf.writer = TantivyWriter(tmp_path / "index", language, others)
    try:
        made = [_keep(shelf, *pair) for pair in PAIRS]
        shelf.catch_up()
        wrong = [said for pair, kept in zip(PAIRS, made, strict=True) for said in _differences(shelf, pair, kept)]
    finally:
        shelf.close()
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.parametrize(("question", "searches"), [("pump ABC-1234", 2), ("abc 1234", 1), ("pump abc 1234", 2)])
def test_where_all_words_are_found_no_further_search_asks_for_the_number(
    repository_db: Database, tmp_path: Path, now: Instant, monkeypatch: pytest.MonkeyPatch, question: str, searches: int
) -> None:
    asked = []
    search = Answering.search

    def counted(snapshot: Answering, one: Search) -> Answer:
        asked.append(one)
        return search(snapshot, one)

    shelf = Shelf(repository_db, tmp_path, now)
    try:
        shelf.add("named", "a pump ABC-1234")
        shelf.catch_up()
        monkeypatch.setattr(Answering, "search", counted)
        assert _asked(shelf, question)
    finally:
        shelf.close()
    assert len(asked) == searches


def _keep(shelf: Shelf, one: str, two: str, other: str) -> list[str]:
    """Keep objects with either spelling, once or several times, and at last one with the other word."""
    texts = [
        f"the {one} {FILLER}",
        f"the {two} {FILLER} {FILLER}",
        f"the {two} and {two} and {two} {FILLER}",
        f"{one} and {one}",
        f"the {other} {FILLER}",
    ]
    return [shelf.add("named", text) for text in texts]


def _differences(shelf: Shelf, pair: tuple[str, str, str], kept: list[str]) -> list[str]:
    *both, other = kept
    answers = [_asked(shelf, spelling) for spelling in pair[:2]]
    said = [
        f"{sought!r} misses one" for sought, found in zip(pair, answers, strict=False) if not set(both) <= set(found)
    ]
    said += [f"{sought!r} finds {pair[2]!r}" for sought, found in zip(pair, answers, strict=False) if other in found]
    orders = [[one for one in found if one in both] for found in answers]
    if orders[0] != orders[1]:
        said.append(f"{pair[0]!r} and {pair[1]!r} have another order")
    scores = [[found.get(one) for one in both] for found in answers]
    if any(map(str.isdigit, pair[0])) and scores[0] != scores[1]:
        said.append(f"{pair[0]!r} and {pair[1]!r} have other scores: {scores}")
    if kept[0] not in _asked(shelf, f'"{pair[0]}"'):
        said.append(f"the quoted {pair[0]!r} misses itself")
    return said


def _asked(shelf: Shelf, text: str) -> dict[str, float]:
    """Ask as a GET does, for what is found with its scores."""
    condition = Fulltext(keywords.read(typed.translate(text).text, QueryLimits()))
    question = SearchQuestion(Query(condition=condition), 1, 1000, words="auto", typed=True)
    snapshot = shelf.index.snapshot()
    with shelf.database.read() as cx:
        page = results.search(shelf.inquiry(cx, MARTA, question, snapshot))
    return {hit.object_id: round(hit.score, 4) for hit in page.hits}
