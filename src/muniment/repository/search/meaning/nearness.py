"""Which objects are near in meaning to a question? Objects that the caller may not read are left out.

The question's vector is moved towards those that answer it best, by words and meaning together (pseudo-relevance
feedback, after Rocchio). Nearness then counts in proportion to the score of the best hit by words.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np
import structlog
from sqlalchemy.engine import Connection

from muniment.ground.caches import Cache
from muniment.repository.search.index.contract import LEAD, IndexHit, Near, Search, Snapshot
from muniment.repository.search.meaning.vectors import Vector, VectorCache, Vectors

MOST_OBJECTS = 200_000
"""A search that could find more is not widened by meaning."""

MOST_NEAR = 500

ADDED = 50
"""So many may be hits without the words."""

FLOOR = 0.35
"""A hit without the words is so near, as a cosine (decision 0102)."""

_BY_WORDS = 50

_FEEDBACK, _FEEDBACK_WEIGHT = 3, 2.0
"""The question is moved towards so many objects, whose mean has this weight; its own is 1."""

_FIRST_WEIGHT, _WEIGHT = 0.3, 1.6
"""Nearness has these weights, for the feedback and in the answer; the best hit by words counts as 1."""

_QUESTIONS = 2_000

log = structlog.get_logger("muniment.meaning")


class TextEncoder(Protocol):
    """Turns the text of a question into a vector."""

    def vectors(self, texts: Sequence[str]) -> Vector:
        """Return vectors of length 1."""

    def knows(self, text: str) -> bool:
        """The vector of unknown words means nothing."""


class Meaning:
    """Finds what is near, for the searches of one process. ``load`` runs at the first question; ``most_vectors`` are
    remembered.
    """

    def __init__(self, load: Callable[[], TextEncoder], most_vectors: int) -> None:
        self._load = load
        self._encoder: TextEncoder | None = None
        self._lock = threading.Lock()
        self._memory = VectorCache(most_vectors)
        self._questions: Cache[str, Vector] = Cache(_QUESTIONS)

    @classmethod
    def of_folder(cls, folder: Path, most_vectors: int) -> "Meaning":
        def load() -> TextEncoder:
            from muniment.repository.search.meaning.encoder import Encoder

            return Encoder(folder)

        return cls(load, most_vectors)

    def near(self, cx: Connection, snapshot: Snapshot, by_words: Search, anything: Search, text: str) -> Near:
        """``by_words`` is the question's search, ``anything`` the same search without words.

        The result is empty if the model does not know the words, or ``anything`` finds no vectors, more than
        ``MOST_OBJECTS``, or more than may be remembered.

        Raises what ``Snapshot.search`` raises.
        """
        ids = snapshot.embeddings(anything)
        if not ids or len(ids) > MOST_OBJECTS:
            return Near()
        vectors = self._memory.take(cx, ids)
        if vectors is None:
            return Near()
        question = self._vector(text)
        if question is None:
            return Near()
        bare = msgspec.structs.replace(by_words, offset=0, limit=_BY_WORDS, bare=True, total=False, facets=())
        hits = snapshot.search(bare).hits
        best = max((_without_lead(hit.score) for hit in hits), default=0.0) or 1.0
        cosines, nearest = vectors.compare(question)
        is_near = cosines >= FLOOR
        moved = _towards(question, vectors, nearest[_best(vectors, cosines, hits, best)])
        cosines, _ = vectors.compare(moved)
        order = np.lexsort((vectors.ids, -cosines))[: MOST_NEAR + 1]
        least = cosines[order[-1]] if len(order) > MOST_NEAR else min(0.0, float(cosines[order[-1]]))
        added = order[:ADDED][is_near[order[:ADDED]]]
        order = np.concatenate([added, order[:MOST_NEAR][~np.isin(order[:MOST_NEAR], added)]])
        scores = (cosines[order] - least) * (_WEIGHT * best)
        return Near(tuple(map(int, vectors.ids[order])), tuple(map(float, scores)), len(added))

    def _vector(self, text: str) -> Vector | None:
        vector = self._questions.recall(text)
        if vector is not None:
            return vector
        with self._lock:
            if self._encoder is None:
                self._encoder = self._load()
            if not self._encoder.knows(text):
                return None
            return self._questions.keep(text, self._encoder.vectors([text])[0])


def _best(vectors: Vectors, cosines: Vector, hits: Sequence[IndexHit], best: float) -> list[int]:
    places = {int(embedding): place for place, embedding in enumerate(vectors.ids)}
    by_words = {places[hit.embedding]: _without_lead(hit.score) / best for hit in hits if hit.embedding in places}
    nearest = np.lexsort((vectors.ids, -cosines))[:_BY_WORDS]
    together = {
        place: by_words.get(place, 0.0) + _FIRST_WEIGHT * float(cosines[place])
        for place in {*by_words, *map(int, nearest)}
    }
    return sorted(together, key=lambda place: (-together[place], place))[:_FEEDBACK]


def _towards(question: Vector, vectors: Vectors, rows: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> Vector:
    mean = vectors.vectors(rows).mean(axis=0)
    moved: Vector = question + _FEEDBACK_WEIGHT * mean / np.linalg.norm(mean)
    return moved / np.linalg.norm(moved)


def _without_lead(score: float) -> float:
    return score % LEAD
