"""Texts with wildcards match what the same regular expression matches, without its endless tries."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muniment.repository.search.aql import patterns
from muniment.repository.search.aql.patterns import Gap, Pattern

PIECES = st.lists(st.sampled_from(["a", "b", "ab", "ba", Gap.RUN, Gap.ONE_OR_NONE]), max_size=7).map(tuple)


@pytest.mark.slow
@given(PIECES, st.text("ab\n", max_size=8))
@example(("ab", Gap.ONE_OR_NONE, Gap.RUN, "a"), "aba")
@example((Gap.RUN, Gap.RUN), "")
def test_a_pattern_matches_as_a_regular_expression_does(pieces: tuple[str | Gap, ...], text: str) -> None:
    signs = {Gap.RUN: ".*", Gap.ONE_OR_NONE: ".?"}
    expression = "".join(signs[piece] if isinstance(piece, Gap) else piece for piece in pieces)
    matches = re.fullmatch(expression, text, re.DOTALL) is not None
    assert Pattern(pieces).matches(text) == matches
    assert patterns.matcher([Pattern(("b", Gap.RUN, "b", Gap.RUN, "c")), Pattern(pieces)])(text) == matches
    assert not patterns.matcher([])(text)


def test_many_gaps_and_a_long_text_come_to_an_end() -> None:
    """A regular expression would not within this century."""
    assert not patterns.read("*a" * 60 + "b").matches("a" * 1000)
    assert not patterns.read("?" * 60 + "b").matches("a" * 59)
    assert patterns.read("*a" * 60 + "*b").matches("a" * 1000 + "b")
