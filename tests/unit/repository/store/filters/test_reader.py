"""What a filter and a sort say, and where a wrong one is wrong."""

import pytest

from muniment.repository.refusals import BadFilter, BadSort
from muniment.repository.store.filters import reader
from muniment.repository.store.filters.tree import AllOf, AnyOf, Comparison, Filter, LiteralValue, Not


def read(text: str) -> Filter | None:
    return reader.read(text, "", str.lower).filter


def text_of(name: str, operator: str, text: str, place: int) -> Comparison:
    return Comparison(name, operator, LiteralValue("text", text), place)  # type: ignore[arg-type]


def test_and_binds_tighter_than_or_and_parentheses_tighter_than_both() -> None:
    a, b, c = (text_of(name, "=", "x", place) for name, place in (("a", 1), ("b", 10), ("c", 20)))
    assert read("a='x' or b='x' and c='x'") == AnyOf((a, AllOf((b, c))))
    assert read("a='x' AND not(b='x')") == AllOf((a, Not(text_of("b", "=", "x", 15))))
    assert read("(a='x' or b='x')and(c='x')") == AllOf(
        (AnyOf((text_of("a", "=", "x", 2), text_of("b", "=", "x", 11))), text_of("c", "=", "x", 21))
    )


def test_values_are_texts_numbers_dates_and_truth_values() -> None:
    assert read("a = 'it''s'") == text_of("a", "=", "it's", 1)
    assert read('starts-with( A , "say ""so""" )') == text_of("a", "starts-with", 'say "so"', 14)
    assert read("a>=-1.5e3") == Comparison("a", ">=", LiteralValue("number", "-1.5e3"), 1)
    assert read("a < date('2024-01-31')") == Comparison("a", "<", LiteralValue("date", "2024-01-31"), 1)
    assert read("a != TRUE()") == Comparison("a", "!=", LiteralValue("truth", "true"), 1)
    assert read("and = 'x' and not = 'y'") == AllOf((text_of("and", "=", "x", 1), text_of("not", "=", "y", 15)))
    assert read(" \t") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a", "character 2"),
        ("a = ", "character 5"),
        ("a = b", "character 5"),
        ("5 = a", "character 1"),
        ("a = 'b", "has no end (character 5)"),
        ("a = 'b' c", "character 9"),
        ("(a = 'b'", "character 9"),
        ("not a = 'b'", "not(...)"),
        ("ends-with(a, 'b')", "no function 'ends-with'"),
        ("contains('a', a)", "name of a property"),
        ("contains(a, 5)", "text in quotes"),
        ("a = date(5)", "ISO 8601 date in quotes"),
        ("a = date('2024-01-31', 'yyyy')", "no pattern"),
        ("a = 5x", "character 5"),
        ("a; drop table", "no '; drop"),
        ("a='b' or", "character 9"),
        ("()", "character 2"),
    ],
)
def test_a_wrong_filter_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(BadFilter) as refused:
        read(text)
    assert said in refused.value.sentence


def test_a_filter_is_bounded() -> None:
    assert read("(" * 20 + "a=1" + ")" * 20)
    assert read(" or ".join(["a=1"] * reader.MAX_COMPARISONS))
    for text in ("(" * 21 + "a=1" + ")" * 21, " or ".join(["a=1"] * 101), "a='" + "b" * 4000 + "'", "(" * 4000):
        with pytest.raises(BadFilter):
            read(text)


def test_a_sort_is_a_list_of_properties() -> None:
    keys = reader.read("", "a, B desc,c ASC no-case , d no-case", str.lower).sort
    assert [(key.name, key.descending, key.folded, key.place) for key in keys] == [
        ("a", False, False, "character 1"),
        ("b", True, False, "character 4"),
        ("c", False, True, "character 11"),
        ("d", False, True, "character 27"),
    ]
    for text, said in (
        ("a,", "character 3"),
        ("a b", "character 1"),
        ("a asc desc", "character 1"),
        ("a,b,A", "twice (character 5)"),
        ("a,b,c,d,e,f", "more than 5"),
        ("a" * 4001, "4000"),
        ("'a'", "character 1"),
    ):
        with pytest.raises(BadSort) as refused:
            reader.read("", text, str.lower)
        assert said in refused.value.sentence, text


def test_a_cursor_tells_two_selections_apart() -> None:
    texts = {reader.read(*both, str).text for both in (("", ""), ("a=1", ""), ("", "a"), ("a=1", "a"), ("a=1 ", "a"))}
    assert len(texts) == 5
