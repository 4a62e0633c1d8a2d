"""Which keywords may be relaxed, and to what."""

import pytest

from muniment.repository.aql import keywords, relaxation
from muniment.repository.aql.tree import (
    AnyWord,
    Both,
    ExpressionSet,
    Fulltext,
    Keywords,
    Property,
    Query,
    QueryLimits,
    Term,
    Without,
)

A, B, C = Term("a"), Term("b"), Term("c")


def read(text: str) -> Keywords:
    read = keywords.read(text, QueryLimits())
    assert read is not None
    return read


def relaxed(text: str) -> Keywords | None:
    """Return what keywords are relaxed to; None if they stay."""
    query = relaxation.relax(Query(condition=Fulltext(read(text))))
    if query is None:
        return None
    assert isinstance(query.condition, Fulltext)
    return query.condition.keywords


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a b", ("a", "b")),
        ("a b a", ("a", "b")),
        ("a and b", ("a", "b")),
        ("a or b c", ("a", "b", "c")),
        ("Supply And Demand", ("Supply", "Demand")),
        ("DESIGN AND ANALYSIS", ("DESIGN", "ANALYSIS")),
        ("a (b c)", ("a", "b", "c")),
        ("a b)", ("a", "b")),
        ("a - b, c!", ("a", "b", "c")),
        ("what is lift?", ("what", "is", "lift")),
        ("and a", ("and", "a")),
        ("the ?slip? effect", ("the", "slip", "effect")),
        ("foo-bar? baz", ("foo-bar", "baz")),
        ("?foo-bar baz", ("foo-bar", "baz")),
        ("??foo-bar? baz", ("foo-bar", "baz")),
    ],
)
def test_words_are_relaxed_to_any_of_them(text: str, words: tuple[str, ...]) -> None:
    anything = relaxed(text)
    assert isinstance(anything, AnyWord)
    assert tuple(word.text.rstrip(",!") for word in anything.words) == words
    assert anything.first == read(text)


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a AND b",
        "a OR b",
        "a NOT b",
        "NOT a b",
        'a "b c"',
        "a b*",
        "a *b",
        "a b?c",
        "a b?c?",
        "a ?b-c?d?",
        "a *b-c?",
        "a http://x.org/?b=c",
        "a not (b c)",
        "a or not b",
        "a-b",
        "2024 AND 2025",
        "報告 AND 書",
    ],
)
def test_whoever_writes_an_operator_means_it(text: str) -> None:
    assert relaxed(text) is None


def test_what_follows_a_not_stays_unwanted() -> None:
    for question in ("a not b c", "a not b? c"):
        assert relaxed(question) == Both((AnyWord(read(question), (A, C)), Without(B, loose=True)))


def test_a_great_many_words_are_no_question() -> None:
    many = [f"w{number}" for number in range(relaxation.MOST_WORDS + 1)]
    assert relaxed(" ".join(many)) is None
    assert relaxed(" ".join(many[1:])) is not None


def test_the_rest_of_the_query_stays() -> None:
    comparison = Property("title", "EQUAL", "a b")
    query = Query(("document",), ExpressionSet("AND", (Fulltext(read("a b")), comparison, Fulltext(None))))
    words = Fulltext(AnyWord(read("a b"), (A, B)))
    assert relaxation.relax(query) == Query(("document",), ExpressionSet("AND", (words, comparison, Fulltext(None))))
    for condition in (None, comparison, Fulltext(None)):
        assert relaxation.relax(Query(condition=condition)) is None
