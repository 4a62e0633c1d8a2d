"""A text in pieces: none is lost, and those that the index marks are marked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.repository.page import marking
from muniment.repository.page.marking import Piece


def test_what_the_index_marks_is_marked() -> None:
    assert marking.pieces("a red valve", [(2, 5), (6, 11)]) == [
        Piece("a ", marked=False),
        Piece("red", marked=True),
        Piece(" ", marked=False),
        Piece("valve", marked=True),
    ]
    assert marking.pieces("", ()) == []


@pytest.mark.slow
@given(st.text(), st.sets(st.integers(0, 30)))
def test_the_pieces_are_the_text(text: str, ends: set[int]) -> None:
    places = sorted(end for end in ends if end <= len(text))
    marks = list(zip(places[::2], places[1::2], strict=False))
    pieces = marking.pieces(text, marks)
    assert "".join(piece.text for piece in pieces) == text
    assert [piece.text for piece in pieces if piece.marked] == [text[start:stop] for start, stop in marks]
