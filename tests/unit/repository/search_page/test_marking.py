"""Which words of a text are marked, whatever the text and the terms are."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.repository.search_page import marking


def marked(text: str, *terms: str) -> list[str]:
    """Give the marked pieces."""
    return [piece.text for piece in marking.pieces(text, terms) if piece.marked]


@pytest.mark.parametrize(
    ("terms", "text", "found"),
    [
        (["pump"], "Pumps pump, PUMPING is pumped; a pumpkin.", ["Pumps", "pump", "PUMPING", "pumped", "pumpkin"]),
        (["company"], "companies of a company", ["companies", "company"]),
        (["valve"], "valves, valvular, evolve", ["valves"]),
        (["of"], "of off often", ["of"]),
        (["2024"], "2024 20245 2024-01", ["2024", "2024"]),
        (["cafe"], "Café CAFÉ cafés", ["Café", "CAFÉ", "cafés"]),
        (["red valve"], "the red  valve, red-valve, red valves", ["red  valve", "red-valve"]),
        (["pum*"], "pump pumice Pum apum", ["pump", "pumice", "Pum"]),
        (["*ump"], "pump ump umps", ["pump", "ump"]),
        (["p?mp"], "pump pmp paamp", ["pump", "pmp"]),
        (["報告"], "報告書を読む", ["報告"]),
        (["annual"], "annual_report", ["annual"]),
        (["a", "b"], "b a c", ["b", "a"]),
        (["*"], "everything", []),
        (["..."], "a ... b", []),
        ([], "nothing", []),
    ],
)
def test_words_of_a_term_are_marked_in_their_forms(terms: list[str], text: str, found: list[str]) -> None:
    assert marked(text, *terms) == found


@given(st.text(), st.lists(st.text(max_size=20), max_size=5))
def test_the_pieces_are_the_text(text: str, terms: list[str]) -> None:
    pieces = marking.pieces(text, terms)
    assert "".join(piece.text for piece in pieces) == text
    assert all(piece.text for piece in pieces)
    first = marking.first(text, terms)
    assert (first is None) == (not any(piece.marked for piece in pieces))
    if first is not None:
        assert marking.pieces(text, terms)[int(first > 0)].marked


@pytest.mark.parametrize("term", ["a*b*c*d*e", "?a?a?a?a?a?a", "*a*a", "a?" * 200, "a" * 5000, "a b " * 500, "*?*?*a"])
def test_no_term_makes_a_long_text_slow(term: str) -> None:
    text = "a" * 3000 + " " + "aa " * 10_000
    began = time.process_time()
    marking.pieces(text, [term] * 64)
    assert time.process_time() - began < 2
