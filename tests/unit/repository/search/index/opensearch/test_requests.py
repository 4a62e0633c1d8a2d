"""What is sent to an OpenSearch: words with gaps, queries, documents. What it answers is in tests/opensearch."""

import base64

import pytest
from pyroaring import BitMap

from muniment.repository.refusals import BadQuery
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.aql.conditions import Between, HasValue, Like, OneOf
from muniment.repository.search.aql.patterns import Gap, Pattern
from muniment.repository.search.index.document import Document
from muniment.repository.search.index.opensearch import fields
from muniment.repository.search.index.opensearch.queries import OpenSearchQueries, literal

GAP, QUERIES = fields.GAP, OpenSearchQueries()
PUMP = QUERIES.word("anywhere", "pump")


def test_words_keep_their_places() -> None:
    assert fields.in_places([(3, "one"), (4, "two"), (7, "three")]) == f"one two {GAP} {GAP} three"
    made = fields.to_engine(Document("k", 1, 2, "document", 3, "o", {"title": ("Two pumps",)}, "A valve"), Analyser())
    assert made["metadata_exact"] == f"two pumps {GAP} two pumps {GAP} two pumps"
    assert made["anywhere"] == f"two pump {GAP} two pump {GAP} two pump {GAP} a valv"
    assert made["listed_anywhere"] == ["a", "pumps", "two", "valve"]


def test_a_word_that_is_too_long_leaves_a_gap() -> None:
    made = fields.to_engine(Document("k", 1, 2, "document", 3, "o", {}, f"one {'x' * 600} two"), Analyser())
    assert made["anywhere_exact"] == f"one {GAP} two"


def test_what_adds_no_score_is_a_filter() -> None:
    silent = QUERIES.silent(QUERIES.term("type", "document"))
    assert QUERIES.all_of([silent, PUMP], [QUERIES.term("former", "1")]) == {
        "bool": {
            "filter": [{"term": {"type": "document"}}],
            "must": [PUMP],
            "must_not": [{"term": {"former": "1"}}],
        }
    }
    assert QUERIES.all_of([PUMP]) == QUERIES.any_of([PUMP]) == PUMP
    assert QUERIES.any_of([]) == QUERIES.nothing()


def test_many_acls_are_one_bitmap() -> None:
    assert QUERIES.with_acls({7}) == {"terms": {"acl": [7]}}
    made = QUERIES.with_acls(range(1000))["terms"]
    assert made["value_type"] == "bitmap"
    assert BitMap.deserialize(base64.b64decode(made["acl"][0])) == BitMap(range(1000))


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        (Between("size", 1, 5, low_open=True), {"range": {"p.i.size": {"gte": 2, "lte": 5}}}),
        (Between("size", 5, 5, high_open=True), QUERIES.nothing()),
        (Between("title", "B", None), {"range": {"p.s.title": {"gte": "b"}}}),
        (OneOf("title", ("A",), written=True), {"terms": {"p.v.title": ["A"]}}),
        (OneOf("draft", (True,)), {"terms": {"p.b.draft": [1]}}),
        (
            Like("title", (Pattern(("a", Gap.RUN)),)),
            {"prefix": {"p.s.title": {"value": "a", "rewrite": "constant_score"}}},
        ),
    ],
)
def test_comparisons_are_of_the_field_of_their_kind(comparison: Between | OneOf | Like, expected: object) -> None:
    assert QUERIES.comparison(comparison) == expected


def test_no_name_reaches_another_field() -> None:
    with pytest.raises(BadQuery):
        QUERIES.comparison(HasValue("size.x"))


def test_every_sign_of_a_text_stands_for_itself() -> None:
    assert literal('a.b*"é#') == 'a\\.b\\*\\"é\\#'
