"""Which keywords may be relaxed, and to what."""

import pytest

from muniment.repository.search.aql import keywords
from muniment.repository.search.aql.rewriting import relaxation
from muniment.repository.search.aql.tree import (
    AnyWord,
    Both,
    Either,
    Expression,
    ExpressionSet,
    Fulltext,
    Keywords,
    Phrase,
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


def relaxed(text: str, *held: Keywords) -> Keywords | None:
    """Return what keywords are relaxed to; None if they stay. Something holds each of ``held``."""
    query = relaxation.relax(Query(condition=Fulltext(read(text))), held.__contains__)
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
        '"b c" *d',
        "b*",
        '(a OR b) "c d"',
        'a or "b c"',
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

    group = Both((Term("b"), Term("c")), loose=True)
    assert relaxed("a not (b c) d") == Both(
        (AnyWord(read("a not (b c) d"), (A, Term("d"))), Without(group, loose=True))
    )


@pytest.mark.parametrize("held", ['"b c"', "b*", "*b", "b?c", "b?c?", "?b-c?d?", "*b-c?", "http://x.org/?b=c"])
def test_phrases_and_wildcards_are_held(held: str) -> None:
    assert relaxed(f"a {held}") == AnyWord(A, (A,), (read(held),))
    assert relaxed(f"a {held} c not d") == Both(
        (AnyWord(Both((A, C), loose=True), (A, C), (read(held),)), Without(Term("d"), loose=True))
    )


def test_words_with_digits_are_held_if_something_has_them() -> None:
    one, other, code = Term("x-1"), Term("2024"), Both((Term("DN"), Term("50")), loose=True)
    assert relaxed("a x-1", one) == AnyWord(A, (A,), (one,))
    assert relaxed("a x-1") == AnyWord(read("a x-1"), (A, one))
    assert relaxed("a DN 50", code) == AnyWord(A, (A,), (code,))
    assert relaxed("a x-1 2024 c", Both((one, other))) == AnyWord(read("a c"), (A, C), (one, other))
    assert relaxed("a x-1 2024", one, other) == AnyWord(A, (A,), (Either((one, other)),))
    assert relaxed("a x-1 2024", other) == AnyWord(read("a x-1"), (A, one), (other,))
    assert relaxed("x-1 2024", Both((one, other))) is None
    assert relaxed("x-1 2024", one, other) == AnyWord(read("x-1 2024"), (), (Either((one, other)),))
    assert relaxed("DN 50", code) is None


def test_a_name_and_its_number_are_words_apart_if_nothing_has_both() -> None:
    name, number = Term("abc"), Term("1234")
    code = Both((name, number), loose=True)
    assert relaxed("abc 1234", code) is None
    assert relaxed("abc 1234 a", code) == AnyWord(A, (A,), (code,))
    assert relaxed("abc 1234", number) == AnyWord(name, (name,), (number,))
    assert relaxed("abc 1234") == AnyWord(read("abc 1234"), (name, number))


@pytest.mark.parametrize(
    ("condition", "proved"),
    [
        (Fulltext(read("a x-1 not b")), True),
        (Fulltext(read("a or x-1")), False),
        (Fulltext(read("a (b or x-1)")), False),
        (ExpressionSet("AND", (Fulltext(read("a")), Property("title", "EQUAL", "b"))), True),
        (ExpressionSet("OR", (Fulltext(read("a")), Fulltext(read("x-1")))), False),
        (None, True),
    ],
)
def test_a_hit_proves_each_word_unless_there_is_a_choice(condition: Expression | None, proved: bool) -> None:
    assert relaxation.proves_each_word(Query(condition=condition)) is proved


def test_in_a_sentence_only_words_with_digits_that_name_one_thing_are_held() -> None:
    words = "a b c d e"
    for held in ("abc-1234", "x123", "12345"):
        assert relaxed(f"{words} {held}", Term(held)) == AnyWord(
            read(words), tuple(map(Term, words.split())), (Term(held),)
        )
    for other in ("x-15", "15.4", "5", "2024"):
        anything = relaxed(f"{words} {other}", Term(other))
        assert isinstance(anything, AnyWord)
        assert anything.needed == ()


def test_what_is_near_in_meaning_has_the_number_too() -> None:
    asked = relaxation.question(Query(condition=Fulltext(read("a x-1"))), lambda _keywords: True)
    assert asked == ("a x-1", Query(condition=Fulltext(Both((Term("x-1"),)))))


def test_of_a_great_many_words_the_first_ones_are_relaxed() -> None:
    many = ["w" * (number + 1) for number in range(relaxation.MOST_WORDS + 2)]
    anything = relaxed(" ".join(many))
    assert isinstance(anything, AnyWord)
    assert [word.text for word in anything.words] == many[: relaxation.MOST_WORDS]
    for words, left_out in ((many, 2), (many[2:], 0)):
        assert relaxation.left_out(Query(condition=Fulltext(read(" ".join(words))))) == left_out


@pytest.mark.parametrize(
    ("text", "sequence"),
    [
        ("a b c", "a b c"),
        ("a, b? c!", "a b c"),
        ("a b not c", "a b"),
        ('"x y" a b', "a b"),
        ("a b (c d)", "a b c d"),
        ("a", None),
        ("a b AND c", None),
        ("a OR b", None),
        ('a b "x y" c d', None),
        ("(a OR b) c", None),
    ],
)
def test_words_that_stand_side_by_side_are_a_sequence(text: str, sequence: str | None) -> None:
    query = relaxation.with_sequence(Query(condition=ExpressionSet("AND", (Fulltext(read(text)),))))
    expected = None if sequence is None else Phrase(sequence)
    assert query.condition == ExpressionSet("AND", (Fulltext(read(text), expected),))
    relaxed_query = relaxation.relax(query)
    if relaxed_query is not None and isinstance(relaxed_query.condition, ExpressionSet):
        (kept,) = relaxed_query.condition.expressions
        assert isinstance(kept, Fulltext)
        assert kept.sequence == expected


def test_the_rest_of_the_query_stays() -> None:
    comparison = Property("title", "EQUAL", "a b")
    query = Query(("document",), ExpressionSet("AND", (Fulltext(read("a b")), comparison, Fulltext(None))))
    words = Fulltext(AnyWord(read("a b"), (A, B)))
    assert relaxation.relax(query) == Query(("document",), ExpressionSet("AND", (words, comparison, Fulltext(None))))
    for condition in (None, comparison, Fulltext(None)):
        assert relaxation.relax(Query(condition=condition)) is None
