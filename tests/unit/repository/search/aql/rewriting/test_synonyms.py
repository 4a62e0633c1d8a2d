"""Which words of a query get synonyms, and which get none."""

import pytest

from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.aql import keywords
from muniment.repository.search.aql.rewriting import relaxation
from muniment.repository.search.aql.rewriting.synonyms import MOST_ADDED, Synonyms
from muniment.repository.search.aql.tree import (
    AnyWord,
    Both,
    Either,
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

ENGLISH = Analyser("English")
CAR = Either((Term("car"), Term("automobile"), Phrase("motor vehicle")))


def stem(text: str) -> list[str]:
    return [stem for _, stem in ENGLISH.stem(text)]


SYNONYMS = Synonyms(["car = automobile=motor vehicle", "boat = ship", "ship = vessel", "lonely", " = "], stem)


def read(text: str) -> Keywords:
    read = keywords.read(text, QueryLimits())
    assert read is not None
    return read


def widen(query: Query, synonyms: Synonyms = SYNONYMS) -> Keywords:
    condition = synonyms.widen(query).condition
    assert isinstance(condition, Fulltext)
    assert condition.keywords is not None
    return condition.keywords


@pytest.mark.parametrize(
    ("text", "wider"),
    [
        ("car", CAR),
        ("Cars", Either((Term("Cars"), Term("automobile"), Phrase("motor vehicle")))),
        ("boat", Either((Term("boat"), Term("ship")))),
        ("ship", Either((Term("ship"), Term("boat"), Term("vessel")))),
        ("fast car", Both((Term("fast"), CAR), loose=True)),
        ("fast NOT car", Both((Term("fast"), Without(CAR)), loose=True)),
    ],
)
def test_a_word_finds_its_synonyms_in_any_of_its_forms(text: str, wider: Keywords) -> None:
    assert widen(Query(condition=Fulltext(read(text)))) == wider


@pytest.mark.parametrize("text", ['"car"', "car*", "c?r", "lonely", "motor vehicle", "motor", "other"])
def test_what_says_exactly_what_is_wanted_gets_none(text: str) -> None:
    assert widen(Query(condition=Fulltext(read(text)))) == read(text)
    assert widen(Query(condition=Fulltext(Term("car", fuzzy=True)))) == Term("car", fuzzy=True)


def test_a_relaxed_question_asks_for_the_synonyms_of_all_its_words() -> None:
    relaxed = relaxation.relax(Query(condition=Fulltext(read("fast car"))))
    assert relaxed is not None
    assert widen(relaxed) == AnyWord(
        Both((Term("fast"), CAR), loose=True), (Term("fast"), Term("car"), Term("automobile"))
    )


def test_the_rest_of_a_query_stays_and_so_does_a_query_without_synonyms() -> None:
    by_name = Property("object_name", "EQUAL", "car")
    query = Query(condition=ExpressionSet("AND", (by_name, Fulltext(Term("car")))))
    assert SYNONYMS.widen(query).condition == ExpressionSet("AND", (by_name, Fulltext(CAR)))
    assert Synonyms().widen(query) is query
    assert SYNONYMS.widen(Query()) == Query()


def test_a_query_gets_so_many_synonyms_and_no_more() -> None:
    many = Synonyms(["=".join(["word", *(f"other{number}" for number in range(150))])])
    widened = widen(Query(condition=Fulltext(Both((Term("word"), Term("word"))))), many)
    assert isinstance(widened, Both)
    assert [len(part.parts) - 1 for part in widened.parts if isinstance(part, Either)] == [150, MOST_ADDED - 150]
