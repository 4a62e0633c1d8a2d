"""Excerpts: around the first match, plain, short, and cheap in a huge text."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.repository.search.analysis import cutting
from muniment.repository.search.analysis.analysis import Analyser, Span
from muniment.repository.search.analysis.excerpts import Finder
from muniment.repository.search.analysis.text import BREAK, normal
from muniment.repository.search.aql.tree import Phrase, Term, Wild
from tests import passes

ENGLISH = Analyser("English")
FILLER = "lorem ipsum dolor sit amet consectetur " * 40


def excerpt(text: str, *leaves: Term | Wild | Phrase) -> str | None:
    return Finder(ENGLISH, leaves).excerpt(text)


@pytest.mark.parametrize(
    ("leaf", "shown"),
    [
        (Term("pumps"), "pumping"),
        (Term("happiness"), "Happy"),
        (Term("ecole"), "École"),
        (Term("Strasse"), "Straße"),
        (Term("die"), "dying"),
        (Term("foo-bar"), "foo bars"),
        (Term("snapshot"), "IndexSnapshots"),
        (Term("IndexSnapshot"), "index snapshot"),
        (Term("1234"), "1,234"),
        (Term("1234"), "1\u202f234"),
        (Term("1,234"), "1234"),
        (Term("muenchen"), "München"),
        (Term("muenchen", fuzzy=True), "München"),
        (Term("카드"), "교통카드는"),
        (Wild("pum*"), "pumping"),
        (Wild("old-pum*"), "Old pumping"),
        (Phrase("big red"), "BIG,\n red"),
    ],
)
def test_the_first_match_is_shown(leaf: Term | Wild | Phrase, shown: str) -> None:
    found = excerpt(f"{FILLER}{shown} {FILLER}", leaf)
    assert found is not None
    assert (shown if "\u202f" in shown else " ".join(shown.split())) in found
    assert found.startswith("…")
    assert found.endswith("…")
    assert 150 < len(found) <= cutting.LENGTH + 1


def test_what_does_not_match_is_not_shown() -> None:
    assert excerpt("pumped up", Phrase("pump")) is None
    assert excerpt("red big", Phrase("big red")) is None
    assert excerpt("spumps", Term("pump")) is None
    assert excerpt("pump of an old pumping station", Wild("x-pum*")) is None
    assert excerpt("old and pumping", Wild("old-pum*")) is None
    assert excerpt("anything", Term("!")) is None
    assert excerpt("anything") is None
    assert excerpt("", Term("a")) is None


def test_the_earliest_of_several_is_shown() -> None:
    found = excerpt(f"{FILLER} valve {FILLER} pump", Term("pump"), Term("valve"))
    assert found is not None
    assert "valve" in found


def test_the_part_with_most_of_the_words_is_shown_and_stop_words_hardly_count() -> None:
    text = f"The pump of a house. {FILLER} the valve of the pump {FILLER} pump {FILLER} valve"
    shown = excerpt(text, Term("pump"), Term("valve"))
    assert shown is not None
    assert "the valve of the pump" in shown
    shown = excerpt(f"{FILLER} here is the one of all {FILLER} pumps stand", Term("the"), Term("of"), Term("pump"))
    assert shown is not None
    assert "pumps stand" in shown


def test_a_passage_with_more_of_the_words_is_shown_even_if_one_word_is_common() -> None:
    shown = excerpt(f"pump {FILLER}" * 6 + f"the pump has a valve here {FILLER}", Term("pump"), Term("valve"))
    assert shown is not None
    assert "pump has a valve" in shown


@pytest.mark.parametrize("written", ["the filing of pumps", "aFile of pumps", "my file-s of pumps", "das Öfile pumps"])
def test_a_rare_word_is_shown_with_a_common_one_beside_it_however_that_is_written(written: str) -> None:
    sought = Term("öfile") if "Ö" in written else Term("files")
    text = f"{sought.text} {FILLER}" * 6 + f"here is {written} in it {FILLER}"
    assert written in (excerpt(text, sought, Term("pumps")) or "")


@pytest.mark.slow
def test_a_variant_deep_in_a_long_text_is_found_in_a_bounded_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "flange PN16 item 3/4 M12x50 " * 6000 + "then an e-mail"
    split = 0
    all_spans = Analyser.all_spans

    def counting(self: Analyser, text: str, stemmed: bool, language: str = "") -> list[Span]:
        nonlocal split
        split += len(text)
        return all_spans(self, text, stemmed, language)

    monkeypatch.setattr(Analyser, "all_spans", counting)
    assert (excerpt(text, Term("email")) or "").endswith("then an e-mail")
    assert excerpt(text, Term("item-flange-x")) is None
    assert split < len(text) / 2


@pytest.mark.parametrize(
    ("code", "filler", "written"),
    [
        ("A4", "an area of all a’s ", "A-4"),
        ("e-mail", "ever each e\ufe0e’s other ", "E mails"),
        ("1,234", "1 1,1 ", "1\u202f234"),
    ],
)
def test_a_code_is_found_behind_many_words_that_begin_like_its_first_part(
    code: str, filler: str, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next word tells most of these words apart from the code, so that none of them need be split."""
    splits = 0
    spans = Analyser.spans

    def counting(self: Analyser, text: str, stemmed: bool, most: int | None = None, language: str = "") -> list[Span]:
        nonlocal splits
        splits += 1
        return spans(self, text, stemmed, most, language)

    monkeypatch.setattr(Analyser, "spans", counting)
    finder = Finder(ENGLISH, [Term(code)])
    text = filler * 3000 + f"and so {written} ends."
    assert (finder.excerpt(text, thorough=False) or "").endswith(f"and so {written} ends.")
    assert splits < 10


@pytest.mark.parametrize(
    ("code", "written"),
    [
        ("a-m", "\u33c2"),
        ("1/4", "¼"),
        ("A4", "a\u00ad 4"),
        ("co-operation", "coo\u0301 co\ufe0e operations"),
        ("cafes-4", "cafe\u0301s 4"),
    ],
)
def test_a_code_is_found_where_single_characters_are_several_words_or_none(code: str, written: str) -> None:
    found = Finder(ENGLISH, [Term(code)]).excerpt(f"{FILLER}{written} stands.", thorough=False)
    assert (found or "").endswith(f"{written} stands.")


def test_rules_and_marks_of_markdown_are_left_out() -> None:
    text = "Title\n=====\n\n## Part\nThe **bold** pump, 2**3. . . . . . 7\n|---|:-:|\n---\nx -- y ..."
    assert cutting.beginning(text) == "Title Part The bold pump, 2**3 7 x -- y ..."


@given(st.lists(st.sampled_from([*"=-_*~.─:|\t\na", "# ", "**", "---", "- ", "-|"]), max_size=8).map("".join))
def test_whatever_is_left_out_is_seen_at_a_first_look(text: str) -> None:
    assert cutting._MAY_BE_NOISE.search(text) or not cutting._NOISE.search(text)


def test_a_far_word_does_not_draw_the_excerpt_away_from_a_near_pair() -> None:
    text = f"red pump {FILLER} valve {FILLER} red {FILLER} pump valve red pump"
    assert "pump valve red pump" in (excerpt(text, Term("red"), Term("pump"), Term("valve")) or "")


def test_an_excerpt_begins_and_ends_with_a_sentence_that_does_so_near_by() -> None:
    text = f"{FILLER}Nothing else. On Monday the pump broke. {'It was mended by night and ran. ' * 20}"
    shown = excerpt(text, Term("pump"))
    assert shown is not None
    assert shown.startswith("On Monday the pump broke.")
    assert shown.endswith("and ran.")
    assert 100 < len(shown) <= cutting.LENGTH
    assert (excerpt(f"{FILLER} at no. 5 and e.g. there a pump {FILLER}", Term("pump")) or "").startswith("…")


@pytest.mark.parametrize(
    ("text", "leaves", "marked"),
    [
        ("Pumps and a pumping house", [Term("pump")], ["Pumps", "pumping"]),
        (f"{FILLER}the old Pump {FILLER}", [Phrase("old pump"), Term("pump")], ["old Pump"]),
        ("a pumphouse, école", [Wild("pum*"), Term("ecole")], ["pumphouse", "école"]),
        ("foo-bar", [Term("foo-bar")], ["foo-bar"]),
        (f"{FILLER}水道局は2024年に報告書を公開した。", [Term("報告"), Term("公開")], ["報告", "公開"]),
        ("東京都の報告書", [Term("報告書"), Term("都")], ["都", "報告書"]),
        ("an IndexSnapshot, snapshots", [Term("snapshot")], ["IndexSnapshot", "snapshots"]),
        ("1,234 or 1\u202f234 or 234", [Term("1234")], ["1,234", "1\u202f234"]),
        ("in München-Nord, Muenchen", [Term("muenchen-nord"), Term("muenchen")], ["München-Nord", "Muenchen"]),
        ("send an e-mail, emails", [Term("email")], ["e-mail", "emails"]),
        ("IBAN DE00 1234 5678 9012 3456 78", [Term("DE00123456789012345678")], ["DE00 1234 5678 9012 3456 78"]),
        ("IBAN DE00123456789012345678", [Term("DE00 1234 5678 9012 3456 78")], ["DE00123456789012345678"]),
        ("a wi-fi-port, XK-77", [Wild("wi*port"), Wild("XK?77")], ["wi-fi-port", "XK-77"]),
        (f"{FILLER}شِعر وكِتَابٌ وَ كِتَابٌ", [Term("كتاب")], ["كِتَابٌ"]),
        ("Королёв, हिन्दी क़लम, party🎉", [Term("королев"), Term("कलम"), Term("🎉")], ["Королёв", "क़लम", "🎉"]),
        ("10² kg, Straße", [Term("102"), Term("strasse")], ["10²", "Straße"]),
        ("nothing", [Term("pump")], []),
        ("", [Term("pump")], []),
    ],
)
def test_marks_are_the_places_of_the_excerpt_that_match(
    text: str, leaves: list[Term | Wild | Phrase], marked: list[str]
) -> None:
    finder = Finder(ENGLISH, leaves)
    shown = finder.excerpt(text) or cutting.beginning(text)
    assert [shown[start:end] for start, end in finder.marks(shown)] == marked


@pytest.mark.slow
def test_marks_of_many_words_with_wildcards_cost_little() -> None:
    words = [f"{a}{b}lorem" for a in "bcdfghjklm" for b in "aeiou"]
    finder = Finder(ENGLISH, [*(Term(word, fuzzy=True) for word in words), *(Wild(f"{word}*") for word in words)])
    start = time.process_time()
    for _ in range(100):
        assert len(finder.marks("dolor sit amet boloren consectetur cilorems " * 4)) == 8
    assert time.process_time() - start < 2  # with each pattern read anew for each word, it is 10 seconds


@pytest.mark.slow
@pytest.mark.parametrize("there", [1, 150])
def test_many_words_of_letters_and_digits_cost_little(there: int) -> None:
    """Such a word is also sought by its parts, of which the first is a single letter: each text has very many."""
    pairs = [f"{letter}{digit}" for letter in "abcdefghijklmno" for digit in "12345"]
    words = [one + other for one, other in itertools.product(pairs, pairs[::19])]
    assert len(words) == 300
    finder = Finder(ENGLISH, [Term(word) for word in words])
    fillers = [
        f"{letter}{ending}" for letter in "abcdefghijklmno" for ending in ("lorem", "ipsum", "dolor", "sit", "amet")
    ]
    start = time.process_time()
    for number in range(50):
        shown = [words[(number * 7 + each) % 300] for each in range(there)]
        text = " ".join([*fillers * 6, *shown, "end"])
        found = finder.excerpt(text)
        assert found is not None
        assert {found[begin:end] for begin, end in finder.marks(found)} & set(shown)
    assert (
        time.process_time() - start < 1.5
    )  # with each pattern compared with each word by itself, it is over 4 seconds


def test_white_space_is_collapsed_and_ends_are_whole() -> None:
    assert excerpt("a \t\n pump\r\n\r\nz", Term("pump")) == "a pump z"
    assert cutting.beginning("  one\n\n two ") == "one two"
    assert cutting.beginning("") == ""
    long = cutting.beginning("word " * 100)
    assert long.endswith("word…")
    assert len(long) <= cutting.LENGTH + 1


def test_a_word_without_end_is_cut() -> None:
    found = excerpt("y" * 5000 + " pump " + "z" * 5000, Term("pump"))
    assert found is not None
    assert "yyy pump…" in found
    assert len(found) <= cutting.LENGTH + 2


@pytest.mark.slow
@pytest.mark.parametrize("filler", ["lorem ipsum ", "lörem ipsüm — ", "pumpernickel "])
def test_a_match_at_the_end_of_a_huge_text_is_found_cheaply(filler: str) -> None:
    text = filler * (2_000_000 // len(filler)) + "then pumping stopped."
    found = excerpt(text, Term("pump"))
    assert passes.measure(lambda: excerpt(text, Term("pump")), len(text)) < 5
    if filler != "pumpernickel ":
        assert found is not None
        assert found.endswith("then pumping stopped.")


def test_a_match_over_the_border_of_two_pieces_is_found() -> None:
    for before in range(65_520, 65_540):
        found = excerpt("a" * before + " big red", Phrase("big red"))
        assert found is not None
        assert found.endswith("big red")


@pytest.mark.parametrize("leaf", [Term("報告"), Phrase("報告書"), Wild("報*")])
def test_a_sentence_without_blanks_is_shown_as_it_was_written(leaf: Term | Wild | Phrase) -> None:
    sentence = "水道局は2024年に報告書を公開した。"
    found = excerpt(normal(FILLER + sentence + FILLER), leaf)
    assert found is not None
    assert "2024年に報告書を公開した。" in found
    assert BREAK not in found


@pytest.mark.slow
@pytest.mark.parametrize("at", range(170, 210))
def test_a_piece_begins_anywhere_in_a_word(at: int) -> None:
    """Texts are folded piece by piece; a word over the seam is found, and its end is not taken for a word."""
    before = "x" * 3 + " " * (at - 3)
    found = excerpt(f"{before}pumping {FILLER}", Term("pump"))
    assert found is not None
    assert "pumping" in found
    assert excerpt(f"{before}unpumped {FILLER}", Term("pump")) is None


def test_a_quick_look_goes_no_further_than_the_first_pieces() -> None:
    finder = Finder(ENGLISH, [Term("pump")])
    near, far = FILLER + "pumping " + FILLER, "a word " * 20_000 + "pumping"
    assert finder.excerpt(near, thorough=False) == finder.excerpt(near)
    assert finder.excerpt(far, thorough=False) is None
    assert "pumping" in (finder.excerpt(far) or "")
