"""How texts are compared, and which of them a database can fold itself."""

from hypothesis import example, given
from hypothesis import strategies as st

from muniment.repository import folding


def test_texts_are_compared_without_case_but_with_accents() -> None:
    assert folding.fold("ÉCOLE Straße ﬁ") == folding.fold("école STRASSE FI")
    assert folding.fold("école") != folding.fold("ecole")
    assert len(folding.fold("a" * 5000)) == len(folding.fold("é" * 5000)) == folding.COMPARED
    assert folding.fold("a\ud800\nb") == "a? b"


@given(st.text())
@example("a" * 1001)
@example("A\nB")
@example("A\x7f")
def test_lower_case_is_the_folded_form_of_a_plain_text(text: str) -> None:
    if folding.is_plain(text):
        assert folding.fold(text) == text.lower()
        assert folding.folded_forms({"a": [text]}) == {}
    else:
        assert folding.folded_forms({"a": ["X", text], "b": ["X"], "c": [1]}) == {"a": ["x", folding.fold(text)]}
