"""What does a process remember of embeddings?"""

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from muniment.repository.search.meaning import embeddings

Vector = NDArray[np.float32]

_AT_A_TIME = 20_000
"""So many are compared at a time: as floating-point numbers they take four times the memory."""


class Vectors:
    """Each object has one or several vectors; rows of ``matrix`` are signed bytes."""

    def __init__(self, ids: NDArray[np.int64], firsts: NDArray[np.int64], matrix: NDArray[np.int8]) -> None:
        self.ids = ids
        self._firsts = firsts
        self._matrix = matrix

    def compare(self, question: Vector) -> tuple[Vector, NDArray[np.int64]]:
        """Return nearness, at most 1, and the nearest row of each object."""
        cosines = np.empty(len(self._matrix), np.float32)
        for start in range(0, len(self._matrix), _AT_A_TIME):
            rows = self._matrix[start : start + _AT_A_TIME].astype(np.float32)
            cosines[start : start + _AT_A_TIME] = rows @ question / np.linalg.norm(rows, axis=1)
        best = np.maximum.reduceat(cosines, self._firsts)
        owners = np.repeat(np.arange(len(self.ids)), np.diff(np.append(self._firsts, len(cosines))))
        nearest = np.full(len(self.ids), -1, np.int64)
        at_best = np.flatnonzero(cosines == best[owners])[::-1]
        nearest[owners[at_best]] = at_best
        return best, nearest

    def vectors(self, rows: NDArray[np.int64]) -> Vector:
        found = self._matrix[rows].astype(np.float32)
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found


class VectorCache:
    """Remembers ``most`` vectors by their rows' ids, which never change, for any thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._too_many = np.empty(0, np.int64)
        self._forget()

    def take(self, cx: Connection, ids: Sequence[int]) -> Vectors | None:
        """Return None for no vectors, or more than ``most``. ``ids`` ascend; those that are gone are left out."""
        wanted = np.asarray(ids, np.int64)
        with self._lock:
            if not self._remember(cx, wanted):
                return None
            places = np.searchsorted(self._ids, wanted)
            wanted, places = wanted[places < len(self._ids)], places[places < len(self._ids)]
            places = places[self._ids[places] == wanted]
            firsts, counts = self._firsts[places], self._counts[places]
            if not len(places):
                return None
            own_firsts = np.cumsum(counts) - counts
            rows = np.repeat(firsts - own_firsts, counts) + np.arange(counts.sum())
            return Vectors(self._ids[places], own_firsts, self._matrix[rows])

    def _forget(self) -> None:
        self._ids = np.empty(0, np.int64)
        self._firsts = np.empty(0, np.int64)
        self._counts = np.empty(0, np.int64)
        self._matrix = np.empty((0, embeddings.DIMENSIONS), np.int8)

    def _remember(self, cx: Connection, wanted: NDArray[np.int64]) -> bool:
        """Read what is missing; return False if more than ``most`` are wanted. Without room, all is forgotten, and all
        that is wanted is read.
        """
        missing: list[int] = np.setdiff1d(wanted, self._ids, assume_unique=True).tolist()
        if not missing:
            return True
        if np.array_equal(wanted, self._too_many):
            return False
        room = self._most - int(self._counts[np.isin(self._ids, wanted, assume_unique=True)].sum())
        count = embeddings.count_vectors(cx, missing, room)
        if count > room:
            self._too_many = wanted
            return False
        if len(self._matrix) + count > self._most:
            self._forget()
            missing = wanted.tolist()
        if count:
            self._add(cx, missing)
        return True

    def _add(self, cx: Connection, missing: Sequence[int]) -> None:
        ids, counts, parts = [], [], []
        for row_id, row_vectors in embeddings.vectors(cx, missing):
            count = len(row_vectors) // embeddings.DIMENSIONS
            if count:
                ids.append(row_id)
                counts.append(count)
                parts.append(np.frombuffer(row_vectors, np.int8).reshape(count, embeddings.DIMENSIONS))
        new_counts = np.asarray(counts, np.int64)
        new_firsts = len(self._matrix) + np.cumsum(new_counts) - new_counts
        every_id = np.concatenate([self._ids, np.asarray(ids, np.int64)])
        order = np.argsort(every_id)
        self._ids = every_id[order]
        self._firsts = np.concatenate([self._firsts, new_firsts])[order]
        self._counts = np.concatenate([self._counts, new_counts])[order]
        self._matrix = np.concatenate([self._matrix, *parts])
