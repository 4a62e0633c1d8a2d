"""Vectors are compared as a plain loop would compare them; what does not fit is not remembered."""

import numpy as np
import pytest

from muniment.ground.clock import Instant
from muniment.repository.search.meaning import embeddings
from muniment.repository.search.meaning.embeddings import DIMENSIONS, NewEmbedding
from muniment.repository.search.meaning.encoder import as_bytes
from muniment.repository.search.meaning.vectors import VectorCache
from tests.counting import cost
from tests.shelf import Shelf

RANDOM = np.random.default_rng(4)


def embedded(shelf: Shelf, passages: int) -> tuple[int, np.ndarray]:
    """Make an object with so many vectors; return the id of its row, and the vectors."""
    found = RANDOM.normal(size=(passages, DIMENSIONS)).astype(np.float32)
    made = shelf.create({"object_name": "one"})
    with shelf.database.begin() as cx:
        assert embeddings.keep_embeddings(
            cx, shelf.repository.id, [NewEmbedding(made.id, b"d" * 16, as_bytes(found))], shelf.now
        )
        return embeddings.of_objects(cx, [made.id])[made.id].id, found


def test_each_object_counts_by_its_nearest_passage(shelf: Shelf) -> None:
    rows = dict(embedded(shelf, passages) for passages in (1, 3, 2, 5))
    question = RANDOM.normal(size=DIMENSIONS).astype(np.float32)
    question /= np.linalg.norm(question)
    with shelf.database.read() as cx:
        vectors = VectorCache(1000).take(cx, sorted(rows))
    assert vectors is not None
    assert vectors.ids.tolist() == sorted(rows)
    cosines, nearest = vectors.compare(question)
    for place, row in enumerate(sorted(rows)):
        of_row = rows[row] @ question / np.linalg.norm(rows[row], axis=1)
        assert cosines[place] == pytest.approx(of_row.max(), abs=0.01)
        best = rows[row][of_row.argmax()]
        assert vectors.vectors(nearest[[place]])[0] == pytest.approx(best / np.linalg.norm(best), abs=0.01)


def test_a_part_of_what_is_remembered_is_taken_without_the_rest(shelf: Shelf) -> None:
    rows = sorted(dict(embedded(shelf, 2) for _ in range(6)))
    memory = VectorCache(1000)
    with shelf.database.read() as cx:
        for wanted in (rows[3:5], rows[:2], rows, [rows[0], rows[5]], [*rows, rows[-1] + 7]):
            vectors = memory.take(cx, wanted)
            assert vectors is not None
            assert vectors.ids.tolist() == [row for row in wanted if row in rows]


def test_more_vectors_than_there_is_room_for_are_none(shelf: Shelf) -> None:
    rows = sorted(dict(embedded(shelf, 2) for _ in range(4)))
    memory = VectorCache(5)
    with shelf.database.read() as cx:
        assert memory.take(cx, rows) is None
        for wanted in (rows[:2], rows[2:], rows[1:3]):
            vectors = memory.take(cx, wanted)
            assert vectors is not None
            assert vectors.ids.tolist() == wanted


def test_the_embedding_of_an_object_goes_with_it(shelf: Shelf, now: Instant) -> None:
    made = shelf.create({"object_name": "one"})
    new = NewEmbedding(made.id, b"d" * 16, b"\1" * DIMENSIONS)
    with shelf.database.begin() as cx:
        assert embeddings.keep_embeddings(cx, shelf.repository.id, [new], now) == 1
    shelf.delete(made.id)
    with shelf.database.begin() as cx:
        assert not embeddings.are_there(cx)
        assert embeddings.keep_embeddings(cx, shelf.repository.id, [new], now) == 0


def test_objects_that_are_gone_stand_for_no_other_and_room_is_made_for_all_that_are_wanted(shelf: Shelf) -> None:
    rows = sorted(embedded(shelf, passages=1)[0] for _ in range(6))
    memory = VectorCache(4)
    with shelf.database.read() as cx:
        gone = memory.take(cx, [rows[0] - 1, rows[0], rows[2]])
        assert gone is not None
        assert list(gone.ids) == [rows[0], rows[2]]
        others = memory.take(cx, rows[2:])
        assert others is not None
        assert list(others.ids) == rows[2:]


def test_what_has_no_room_is_not_read_and_nothing_is_forgotten_for_it(shelf: Shelf) -> None:
    rows = sorted(dict(embedded(shelf, 2) for _ in range(6)))
    memory = VectorCache(5)
    with shelf.database.read() as cx:
        assert memory.take(cx, rows) is None, "nothing was remembered before"
        with cost(shelf.database) as counted:
            assert memory.take(cx, rows) is None
        assert counted.statements == [], "what is too much is not counted again"
        assert memory.take(cx, rows[:2]) is not None
        assert memory.take(cx, rows[1:]) is None, "one of these is remembered"
        assert memory.take(cx, rows[1:4]) is None, "they are one too many, together with the one that is remembered"
    with shelf.database.begin() as cx:
        cx.execute(embeddings.embeddings.delete())
    with shelf.database.read() as cx:
        remembered = memory.take(cx, rows)
    assert remembered is not None
    assert remembered.ids.tolist() == rows[:2]


def test_vectors_are_counted_in_portions_up_to_a_bound(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sorted(dict(embedded(shelf, passages) for passages in (1, 3, 2, 5)))
    monkeypatch.setattr(embeddings, "_MANY", 2)
    with shelf.database.read() as cx:
        assert embeddings.count_vectors(cx, [rows[0] - 1, *rows, rows[-1] + 1], most=100) == 11
        assert embeddings.count_vectors(cx, rows, most=4) == 11, "four are not more than four"
        assert embeddings.count_vectors(cx, rows, most=3) == 4, "the rest is not counted"
        assert embeddings.count_vectors(cx, [], most=3) == 0
