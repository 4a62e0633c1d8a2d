"""What is near in meaning leaks nothing: it is what it would be if only what the caller may read existed."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.repository.search.aql.conditions import BoundQuery
from muniment.repository.search.aql.tree import Fulltext, Term
from muniment.repository.search.index.contract import Answer, Near, Search, Snapshot, Visible
from muniment.repository.search.index.document import Document
from muniment.repository.search.meaning import embeddings, nearness
from muniment.repository.search.meaning.embeddings import DIMENSIONS
from muniment.repository.search.meaning.nearness import Meaning
from tests.meanings import ToyModel
from tests.properties.lengths import examples
from tests.properties.shelves import SLOW, IndexFolder, Row

WORDS = ("car", "automobile", "vehicle", "cat", "kitten", "pump", "water", "other")
ACLS = st.frozensets(st.integers(0, 3), min_size=1)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexFolder]:
    made = IndexFolder(tmp_path_factory.mktemp("near") / "index")
    yield made
    made.close()


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexFolder]:
    made = IndexFolder(tmp_path_factory.mktemp("near") / "twin")
    yield made
    made.close()


@st.composite
def documents(draw: st.DrawFn) -> list[tuple[Document, bytes]]:
    """Objects with three words, three times each, so that all score alike; and their vectors. Some have none yet."""
    made = []
    for at in range(draw(st.integers(3, 16))):
        words = draw(st.lists(st.sampled_from(WORDS), min_size=3, max_size=3, unique=True))
        passages = draw(st.lists(st.lists(st.sampled_from(words), min_size=1, max_size=5), min_size=1, max_size=3))
        row = Row(f"{at:016x}", at + 1, 1, "document", "eve@guests", at % 4, {}, " ".join(words * 3))
        vectors = ToyModel().vectors([" ".join(passage) for passage in passages])
        document = row.document()
        if draw(st.booleans()):
            document = msgspec.structs.replace(document, embedding=at + 1)
        made.append((document, np.rint(vectors * 127).astype(np.int8).tobytes()))
    return made


@given(documents(), ACLS, st.sampled_from(WORDS), st.sampled_from([(1, 1), (3, 2), (500, 50)]))
@settings(SLOW, max_examples=examples(20, 1500))
def test_hits_order_scores_and_total_are_those_of_the_twin(
    shelf: IndexFolder,
    twin: IndexFolder,
    rows: list[tuple[Document, bytes]],
    readable: frozenset[int],
    word: str,
    most: tuple[int, int],
) -> None:
    """failures B1, failures B2"""
    visible = Visible(browse_acls=readable, read_acls=readable)
    seen = [document for document, _ in rows if document.acl in readable]
    stored = {at + 1: vectors for at, (_, vectors) in enumerate(rows)}
    snapshot, alone = shelf.holding([document for document, _ in rows]), twin.holding(seen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embeddings, "vectors", lambda _cx, ids: [(each, stored[each]) for each in ids if each in stored])
        counts = {at: len(vectors) // DIMENSIONS for at, vectors in stored.items()}
        patch.setattr(embeddings, "count_vectors", lambda _cx, ids, _most: sum(counts.get(each, 0) for each in ids))
        patch.setattr(nearness, "MOST_NEAR", most[0])
        patch.setattr(nearness, "ADDED", most[1])
        patch.setattr(nearness, "FLOOR", -1.0)  # the floor is the real model's, not the toy's
        near, answer = _ask(snapshot, word, visible)
        expected_near, expected = _ask(alone, word, Visible(everything=True))
    readable_ids = {document.embedding for document, _ in rows if document.acl in readable} - {0}
    assert set(near.embeddings) <= readable_ids
    assert len(near.embeddings) == min(most[0], len(readable_ids))
    assert near.embeddings == expected_near.embeddings
    # The score of words depends on the average length of all texts (docs/decisions/0062), and nearness on that score.
    both = [each.scores for each in (near, expected_near) if any(each.scores)]
    of_best = [[score / max(scores) for score in scores] for scores in both]
    assert of_best[:1] == [pytest.approx(scores, rel=1e-3, abs=1e-3) for scores in of_best[1:]]
    assert answer.total == expected.total
    assert [hit.object_id for hit in answer.hits] == [hit.object_id for hit in expected.hits]
    by_meaning = {document.key for document, _ in rows if document.embedding in near.embeddings[: most[1]]}
    assert by_meaning <= {hit.object_id for hit in answer.hits}


def _ask(snapshot: Snapshot, word: str, visible: Visible) -> tuple[Near, Answer]:
    query = BoundQuery((), Fulltext(Term(word)))
    by_words = Search(query, visible, 0, 100, total=True)
    readable = msgspec.structs.replace(visible, browse_acls=visible.read_acls)
    connection: Any = None
    near = Meaning(ToyModel, 1000).near(connection, snapshot, by_words, Search(BoundQuery(), readable, 0, 0), word)
    return near, snapshot.search(msgspec.structs.replace(by_words, near=near))


def test_a_question_is_compared_with_vectors_of_a_known_size() -> None:
    vectors: Sequence[Sequence[float]] = ToyModel().vectors(["car"]).tolist()
    assert len(vectors[0]) == DIMENSIONS
