"""Which words are one word in two spellings, and which query finds both?"""

import pytest

from muniment.repository.search.aql import keywords
from muniment.repository.search.aql.rewriting import joints, relaxation
from muniment.repository.search.aql.tree import AnyWord, Both, Either, Fulltext, Keywords, Query, QueryLimits, Term


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("an e-mail to O'Brien's U.S.A. office, don't", ["email", "OBrien", "dont", "USA"]),
        ("DE 123 456 789 ISBN 978-3", ["DE123456789", "123456789"]),
        ("GB29 NWBK 6016 1331 9268 19", ["GB29NWBK60161331926819"]),
        ("de89 3704 0044 0532 0130 00", ["de89370400440532013000"]),
        ("call 089 / 123 45 67 or +49 (0)30 / 12 34-56", ["0891234567", "4930123456"]),
        ("+49 (0)89 123456", ["4989123456"]),
        ("49 (0)89 123456", ["49089123456"]),
        ("1,234 kg", ["1234kg"]),
        ("3.14 and 1,234 of v2.10.1 or 12 345", []),
        ("2019 / 2020, 12 / 34 and 4711 - 0815", []),
        ("1 22 33 44 55 66 77 88 99 10 11 12 13", []),
        ("a--b -x- y' 'z", []),
        ("x-" * 200, []),
    ],
)
def test_words_with_joints_are_listed_without_them(text: str, words: list[str]) -> None:
    found = [one.word for one in joints.joined(text)]
    assert set(words) <= set(found)
    assert words or not found


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("(030) 123-4567", "030 123-4567"),
        ("4711001 4711002 4711003", "4711001 4711002 4711003"),
        ("AB12 CD34 EF56 GH78", "AB12 CD34 EF56 GH78"),
        ("ABC 1234", "ABC 1234"),
        ("DN 50", "DN 50"),
        ("A 4", "A 4"),
        ("dn 50", "dn 50"),
        ("iPhone 15", "iPhone 15"),
        ("1,234 kg", "1,234 kg"),
        ("budget 2024", None),
        ("how long is a bolt of dn 50", None),
        ("tel 0891234567", None),
        ("2024 report 12", None),
        ("2019 2020 2021", None),
    ],
)
def test_neighbours_that_are_groups_of_a_number_also_find_it_as_one_word(query: str, number: str | None) -> None:
    widened = joints.widen(Query((), Fulltext(keywords.read(query, QueryLimits()))))
    assert isinstance(widened.condition, Fulltext)
    widened_keywords: Keywords | None = widened.condition.keywords
    if number is None:
        assert isinstance(widened_keywords, Both)
    else:
        assert isinstance(widened_keywords, Either)
        assert widened_keywords.parts[1] == Term(number)
        assert joints.is_number(widened_keywords)


@pytest.mark.parametrize("query", ["+49 30 1234567", "4111 1111 1111 1112", "1111 1111"])
def test_groups_that_may_stand_in_another_number_find_one_word_alone(query: str) -> None:
    widened = joints.widen(Query((), Fulltext(keywords.read(query, QueryLimits()))))
    assert widened.condition == Fulltext(Term(query))


def test_where_any_word_is_enough_a_number_counts_as_a_whole() -> None:
    query = relaxation.relax(Query((), Fulltext(keywords.read("account 4111 1111 1111 1111", QueryLimits()))))
    assert query is not None
    widened = joints.widen(query).condition
    assert isinstance(widened, Fulltext)
    assert isinstance(widened.keywords, AnyWord)
    assert widened.keywords.words == (Term("account"), Term("4111 1111 1111 1111"))


def test_what_belongs_to_a_longer_number_or_a_unit_is_not_taken_with_the_word_before() -> None:
    assert joints.with_groups("pipe 10 mm") == ["pipe", "10 mm"]
    assert joints.with_groups("fax 089 123456") == ["fax", "089 123456"]
    assert joints.with_groups("pump abc 1234") == ["pump", "abc 1234"]


def test_a_number_in_groups_is_no_sequence_that_comes_first() -> None:
    def sequence(text: str) -> object:
        query = relaxation.with_sequence(Query((), Fulltext(keywords.read(text, QueryLimits()))))
        widened = joints.widen(query).condition
        assert isinstance(widened, Fulltext)
        return widened.sequence

    assert sequence("4111 1111 1111 1111") is None
    assert sequence("abc 1234") is None
    assert sequence("call 4711-0815") is None
    assert sequence("red pump") is not None
    assert sequence("red pump 12") is not None


def test_long_rows_of_digits_are_not_looked_at_for_a_number() -> None:
    """A stranger may send a thousand of them; each would take a millisecond."""
    looked_at = joints._is_long_number.cache_info().misses
    words = [Term(f"{number}" + "1" * 100) for number in range(1000)]
    assert list(joints.with_grouped_numbers(words)) == words
    assert joints._is_long_number.cache_info().misses == looked_at
