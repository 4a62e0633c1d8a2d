"""An object as the index keeps it, and how it fills the fields."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.analysis.languages import LANGUAGES
from muniment.repository.search.index.document import document
from muniment.repository.search.index.questions import layout
from tests.properties.shelves import Row


def test_a_document_says_what_the_object_says() -> None:
    made = document(
        Row("09" * 8, 7, 11, "report", "Marta@staff", 3, {}, ""),  # type: ignore[arg-type]
        {"title": ["a\ud800"], "size": [5], "none": []},
        "ﬁle",
    )
    assert (made.key, made.type, made.owner, made.acl) == ("09" * 8, "report", "marta@staff", 3)
    assert (made.seq, made.modified) == (7, 11)
    assert made.values == {"title": ("a?",), "size": (5,)}
    assert made.text == "ﬁle"


def test_words_are_folded_and_stemmed() -> None:
    english = Analyser("English")
    assert [word for _, word in english.exact("ÉCOLE's Straße, İstanbul ﬁle 12:30 a_b")] == (
        ["ecole", "s", "strasse", "istanbul", "file", "12", "30", "a", "b"]
    )
    assert {word for _, word in english.stem("connect connected Connections connecting")} == {"connect"}
    assert Analyser("German").stem("Häuser") == Analyser("German").stem("hauser")
    assert english.exact("e\u0301") == english.exact("é")
    assert english.exact("a " + "b" * 600 + " c") == [(0, "a"), (2, "c")]


def test_every_language_has_stems() -> None:
    for language in LANGUAGES:
        assert Analyser(language).stem("word") != []
    with pytest.raises(ValueError, match="no stemming for 'Klingon'"):
        Analyser("Klingon")


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_doubles_keep_their_order(one: float, other: float) -> None:
    assert (one < other) == (layout.sortable(one) < layout.sortable(other))
    assert (one == other) == (layout.sortable(one) == layout.sortable(other))
    assert layout.double(layout.sortable(one)) == one
