"""A model for tests: it knows a few words, and which of them mean the same. It needs no library but numpy."""

import hashlib
from collections.abc import Sequence

import numpy as np

from muniment.repository.search.meaning.embeddings import DIMENSIONS
from muniment.repository.search.meaning.encoder import as_bytes
from muniment.repository.search.meaning.nearness import Meaning
from muniment.repository.search.meaning.vectors import Vector

SENSES = (
    {"car", "automobile", "vehicle", "engine"},
    {"feline", "cat", "kitten", "whiskers"},
    {"pump", "valve", "water"},
)
"""Words of one set mean the same."""


class ToyModel:
    """Turns a text into the sum of what its words mean; a word outside of all senses has a meaning of its own."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def vectors(self, texts: Sequence[str]) -> Vector:
        """Return a vector of length 1 for each text."""
        self.texts += texts
        found = np.array([sum(map(_meaning, text.lower().split()), _meaning("")) for text in texts], np.float32)
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found

    def knows(self, text: str) -> bool:
        """Say that every word is known but those with an x."""
        return "x" not in text


class ToyEmbedding:
    """Stands in for the confined process."""

    def __init__(self) -> None:
        self.model = ToyModel()

    def vectors(self, texts: Sequence[str]) -> list[bytes]:
        """Return the vector of each text as bytes."""
        return [as_bytes(self.model.vectors([text])) for text in texts]


def meaning(most_vectors: int = 100_000) -> Meaning:
    """Make what finds objects by this model."""
    return Meaning(ToyModel, most_vectors)


def _meaning(word: str) -> Vector:
    sense = next((number for number, words in enumerate(SENSES) if word in words), None)
    vector = np.zeros(DIMENSIONS, np.float32)
    if sense is not None:
        vector[sense] = 1.0
    elif word:
        place = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
        vector[len(SENSES) + 1 + place % (DIMENSIONS - len(SENSES) - 1)] = 0.2
    else:
        vector[len(SENSES)] = 0.05
    return vector
