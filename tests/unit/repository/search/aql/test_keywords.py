"""The simple keyword language: what each spelling asks for."""

import tracemalloc

import pytest

from muniment.repository.refusals import BadQuery
from muniment.repository.search.aql import keywords, patterns
from muniment.repository.search.aql.tree import Both, Either, Keywords, Phrase, QueryLimits, Term, Wild, Without
from tests.trees import shape

A, B, C = Term("a"), Term("b"), Term("c")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", A),
        (" a  b\n", Both((A, B))),
        ("a AND b", Both((A, B))),
        ("a and b Or c", Either((Both((A, B)), C))),
        ("a OR b c", Either((A, Both((B, C))))),
        ("(a OR b) c", Both((Either((A, B)), C))),
        ("NOT a b", Both((Without(A), B))),
        ("a not b", Both((A, Without(B)))),
        ("a AND NOT b", Both((A, Without(B)))),
        ("a OR NOT b", Either((A, Without(B)))),
        ("NOT (a b)", Without(Both((A, B)))),
        ("not not a", A),
        ('"a b" c', Both((Phrase("a b"), C))),
        ('"and"', Phrase("and")),
        ("“a b”", Phrase("a b")),
        ("pum*", Wild("pum*")),
        ("foo-ba*", Wild("foo-ba*")),
        ("foo-bar,", Term("foo-bar")),
        ("हिन्दी, ไทย์*", Both((Term("हिन्दी"), Wild("ไทย์*")))),
        ("http://x.org/12:30", Term("http://x.org/12:30")),
    ],
)
def test_the_language(text: str, expected: Keywords) -> None:
    assert shape(keywords.read(text, QueryLimits())) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("and a", Both((Term("and"), A))),
        ("a or", Both((A, Term("or")))),
        ("not", Term("not")),
        ("a NOT", Both((A, Term("NOT")))),
        ("or", Term("or")),
        ("(or)", Term("or")),
    ],
)
def test_an_operator_that_joins_nothing_is_a_word(text: str, expected: Keywords) -> None:
    assert shape(keywords.read(text, QueryLimits())) == expected


@pytest.mark.parametrize("text", ["", " ", "!?", '""', '"', "()", "(((", ")))", "* ? & | :", '" - "', "NOT ()", "*"])
def test_punctuation_alone_is_no_keywords(text: str) -> None:
    found = keywords.read(text, QueryLimits())
    assert found in (None, Term("NOT"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [('a "b', Both((A, B))), ("a) b", Both((A, B))), ("(a b", Both((A, B))), ("a & b", Both((A, B))), ("a ** -", A)],
)
def test_stray_punctuation_is_harmless(text: str, expected: Keywords) -> None:
    assert shape(keywords.read(text, QueryLimits())) == expected


@pytest.mark.slow
def test_limits_hold() -> None:
    assert keywords.read("(" * 20 + "a" + ")" * 20, QueryLimits()) == A
    for hostile in ("(" * 21 + "a", "(" * 100_000, "a " * 1025, "a-" * 1025, '"' + "a " * 1025 + '"'):
        with pytest.raises(BadQuery):
            keywords.read(hostile, QueryLimits())
    assert keywords.read("()" * 100_000 + ")" * 100_000 + '"', QueryLimits()) is None
    assert shape(keywords.read("not " * 1023 + "a", QueryLimits())) == Without(A)


@pytest.mark.parametrize("word", ["*a", "?a", "-*a", "-?a", "(*a)", "NOT -*a", "*-*a", "+*a-b", "a-*b"])
def test_a_word_that_begins_with_a_wildcard_counts_more(word: str) -> None:
    number = keywords.count_words(keywords.read(word, QueryLimits()))
    assert number > patterns.OPEN_CLAUSES
    many = f"{word} " * 3
    assert keywords.count_words(keywords.read(many, QueryLimits(clauses=3 * number))) == 3 * number
    with pytest.raises(BadQuery, match=f"more than {3 * number - 1} keywords"):
        keywords.read(many, QueryLimits(clauses=3 * number - 1))


def test_words_are_counted_wherever_they_stand() -> None:
    assert keywords.count_words(keywords.read('a OR NOT ("b c" d-e)', QueryLimits())) == 5
    assert keywords.count_words(None) == 0
    for text, number in (("a-*b", 34), ("*a-?b", 66), ("a*-b?", 2), ("a-*-b*", 2)):
        assert keywords.count_words(keywords.read(text, QueryLimits())) == number


def test_a_long_word_takes_no_memory_for_each_letter_while_it_is_split() -> None:
    """A regular expression that may go back keeps more than 200 bytes for each character."""
    text, limits = "%41" * 30_000, QueryLimits(clauses=100_000)
    for read in (keywords.read, keywords.read_words):
        tracemalloc.start()
        try:
            read(text, limits)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 60 * len(text), peak
