"""An index finds exactly what the plain evaluator finds."""

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from muniment.repository.aql.conditions import Between, BoundQuery, Condition, ConditionSet
from muniment.repository.aql.tree import Fulltext, Phrase, Value
from muniment.repository.folding import fold
from muniment.repository.index.contract import Visible
from muniment.repository.index.tantivy.compile import leaves
from tests.properties import shelves
from tests.properties.lengths import examples
from tests.properties.shelves import SLOW, IndexFolder, Row, ask, found_by_oracle

EVERYTHING = Visible(everything=True)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexFolder]:
    made = IndexFolder(tmp_path_factory.mktemp("oracle") / "index")
    yield made
    made.close()


@given(shelves.rows(), st.lists(st.tuples(shelves.queries(), shelves.callers()), min_size=20, max_size=20))
@settings(SLOW, max_examples=examples(25, 600))
def test_the_index_finds_what_the_oracle_finds(
    shelf: IndexFolder, rows: list[Row], asked: list[tuple[BoundQuery, Visible]]
) -> None:
    snapshot = shelf.holding([row.document() for row in rows])
    for query, visible in asked:
        answer = ask(snapshot, query, visible)
        expected = found_by_oracle(query, visible, rows)
        assert {hit.object_id for hit in answer.hits} == expected, (query, visible)
        assert answer.total == len(answer.hits) == len(expected)


@given(shelves.rows(), shelves.queries(), shelves.callers(), st.integers(1, 4))
@settings(SLOW, max_examples=examples(20, 500))
def test_pages_joined_are_the_whole(
    shelf: IndexFolder, rows: list[Row], query: BoundQuery, visible: Visible, size: int
) -> None:
    """failures B13."""
    snapshot = shelf.holding([row.document() for row in rows])
    whole = ask(snapshot, query, visible)
    paged = [hit for offset in range(0, 12, size) for hit in ask(snapshot, query, visible, size, offset).hits]
    assert paged == list(whole.hits)
    by_id, scored = {row.id: row for row in rows}, any(leaves(query.condition))
    order = [(-hit.score if scored else -by_id[hit.object_id].modified, by_id[hit.object_id].seq) for hit in whole.hits]
    assert order == sorted(order)
    assert scored or not any(hit.score for hit in whole.hits)


RANGES: list[tuple[str, list[Value]]] = [
    ("colour", list(shelves.STRINGS)),
    ("size", list(shelves.INTEGERS)),
    ("weight", list(shelves.DOUBLES)),
]


@given(shelves.rows(), st.sampled_from(RANGES), st.data())
@settings(SLOW, max_examples=examples(20, 500))
def test_a_wider_range_never_loses_a_hit(
    shelf: IndexFolder, rows: list[Row], named: tuple[str, list[Value]], data: st.DataObject
) -> None:
    name, values = named
    ends = sorted(data.draw(st.lists(st.sampled_from(values), min_size=4, max_size=4)), key=_key)
    snapshot = shelf.holding([row.document() for row in rows])
    narrow = BoundQuery((), Between(name, ends[1], ends[2]))
    wide = BoundQuery((), Between(name, ends[0], ends[3]))
    found = [{hit.object_id for hit in ask(snapshot, query, EVERYTHING).hits} for query in (narrow, wide)]
    assert found[0] <= found[1]


def _key(value: Value) -> tuple[str, float]:
    return (fold(value), 0) if isinstance(value, str) else ("", float(value))


@given(shelves.rows(), st.lists(shelves.conditions(), min_size=2, max_size=4), shelves.callers())
@settings(SLOW, max_examples=examples(20, 500))
@example([], [Fulltext(None), Fulltext(Phrase("x"))], EVERYTHING)
def test_dropping_a_part_of_an_and_never_loses_a_hit(
    shelf: IndexFolder, rows: list[Row], parts: list[Condition], visible: Visible
) -> None:
    snapshot = shelf.holding([row.document() for row in rows])
    strict = BoundQuery((), ConditionSet("AND", tuple(parts)))
    loose = msgspec.structs.replace(strict, condition=ConditionSet("AND", tuple(parts[1:])))
    found = [{hit.object_id for hit in ask(snapshot, query, visible).hits} for query in (strict, loose)]
    assert found[0] <= found[1]
