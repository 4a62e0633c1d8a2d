"""Search leaks nothing: an answer equals that of a twin index of only what the caller may see (design 1.3)."""

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.repository.aql.conditions import BoundQuery
from muniment.repository.aql.facets import BoundFacet
from muniment.repository.aql.tree import Fulltext
from muniment.repository.index.contract import Answer, Search, Snapshot, Visible
from muniment.repository.index.document import Document
from tests.properties import shelves
from tests.properties.lengths import examples
from tests.properties.shelves import SLOW, IndexFolder, Row, may

SIZES = BoundFacet("size", "size", "integer", "string", "FREQUENCY", 3)
FACETS = (
    BoundFacet("colour", "colour", "string", "string", "FREQUENCY", 5, with_null=True, nested=SIZES),
    BoundFacet("weight", "weight", "double", "string", "VALUE_DESCENDING", 3),
    BoundFacet("draft", "draft", "boolean", "string", "FREQUENCY", 2),
)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexFolder]:
    made = IndexFolder(tmp_path_factory.mktemp("twins") / "index")
    yield made
    made.close()


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexFolder]:
    made = IndexFolder(tmp_path_factory.mktemp("twins") / "twin")
    yield made
    made.close()


def asked() -> st.SearchStrategy[BoundQuery]:
    return st.one_of(shelves.queries(), st.builds(BoundQuery, st.just(()), st.builds(Fulltext, shelves.keywords())))


@given(
    shelves.rows(least=4),
    st.lists(asked(), min_size=15, max_size=15),
    st.one_of(shelves.readers(), shelves.callers()),
)
@settings(SLOW, max_examples=examples(60, 1000))
def test_set_total_terms_excerpts_and_facets_are_those_of_the_twin(
    shelf: IndexFolder, twin: IndexFolder, rows: list[Row], queries: list[BoundQuery], visible: Visible
) -> None:
    """failures B1, failures B2"""
    snapshot = shelf.holding([row.document() for row in rows])
    alone = twin.holding(_seen(rows, visible))
    for query in queries:
        answer = _ask(snapshot, query, visible)
        expected = _ask(alone, query, Visible(everything=True))
        assert _told(answer) == _told(expected), query
        assert answer.total == expected.total
        assert answer.facets == expected.facets


def _seen(rows: list[Row], visible: Visible) -> list[Document]:
    """What the caller may see: browsable objects, and their text where it may be read."""
    seen = []
    for row in rows:
        browse, read = may(visible, row)
        if browse:
            seen.append(row.document() if read else msgspec.structs.replace(row, text="").document())
    return seen


def _ask(snapshot: Snapshot, query: BoundQuery, visible: Visible) -> Answer:
    return snapshot.search(Search(query, visible, 0, 100, total=True, facets=FACETS))


def _told(answer: Answer) -> dict[str, tuple[str, tuple[str, ...]]]:
    """All but scores and order: those depend on global statistics, and the documentation says what they can tell."""
    return {hit.object_id: (hit.excerpt, hit.terms) for hit in answer.hits}
