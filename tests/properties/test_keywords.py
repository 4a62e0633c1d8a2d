"""Laws of the keyword language: every text reads, and what is written by its rules reads back."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from muniment.repository.refusals import BadQuery
from muniment.repository.search.aql import keywords
from muniment.repository.search.aql.tree import Both, Either, Keywords, Phrase, QueryLimits, Term, Wild, Without
from tests.trees import shape

WORDS = st.sampled_from(["pump", "valve", "x", "o'neil", "École", "12:30"])


def trees() -> st.SearchStrategy[Keywords]:
    leaves = st.one_of(
        st.builds(Term, WORDS),
        st.builds(lambda word: Wild(word + "*"), WORDS),
        st.builds(lambda word: Wild("*" + word + "?"), WORDS),
        st.builds(Phrase, WORDS),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(Both, st.lists(inner, min_size=2, max_size=3).map(tuple)),
            st.builds(Either, st.lists(inner, min_size=2, max_size=3).map(tuple)),
            st.builds(Without, inner.filter(lambda part: not isinstance(part, Without))),
        ),
        max_leaves=8,
    )


def written(tree: Keywords) -> str:
    if isinstance(tree, Term | Wild):
        return tree.text
    if isinstance(tree, Phrase):
        return f'"{tree.text}"'
    if isinstance(tree, Without):
        return f"NOT {_inner(tree.part)}"
    assert isinstance(tree, Both | Either)
    return (" OR " if isinstance(tree, Either) else " ").join(map(_inner, tree.parts))


def _inner(tree: Keywords) -> str:
    return written(tree) if isinstance(tree, Term | Wild | Phrase | Without) else f"({written(tree)})"


@given(trees())
def test_what_is_written_reads_back(tree: Keywords) -> None:
    assert shape(keywords.read(written(tree), QueryLimits())) == tree


@given(st.text())
def test_every_text_reads_or_is_refused(text: str) -> None:
    with suppress(BadQuery):
        assert keywords.count_words(keywords.read(text, QueryLimits())) <= max(1, 33 * len(text))


@given(st.text(alphabet='ab()"*?-! \nANDORNOTandornot“'))
def test_signs_and_operators_in_any_order_are_harmless(text: str) -> None:
    found = keywords.read(text, QueryLimits(depth=1000))
    assert (found is None) == (not any(map(str.isalnum, text)))
