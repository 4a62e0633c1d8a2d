"""The encoder: it turns texts into vectors with the model."""

from collections.abc import Sequence
from pathlib import Path

import ctranslate2
import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from muniment.repository.search.meaning.embeddings import DIMENSIONS

_TOKENS = 256
"""How many tokens of a text the model reads at most."""

_CHARACTERS = 200
"""How many characters of a question are looked at to say whether the model knows its words."""

_AT_A_TIME = 8

_LEAST_LETTERS = 2
"""How many letters and digits the pieces of a text have at least, on average, if the model knows the text's words.

The model cuts a word that it does not know into pieces, and a word that is none into pieces of a letter or two.
"""


class Encoder:
    """The model, read from ``folder`` into the memory of this process. It computes in one thread."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_TOKENS)
        self._model = ctranslate2.Encoder(str(folder), device="cpu", inter_threads=1, intra_threads=1)

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a vector for each text: the mean of the model's output for the text's tokens, scaled to length 1."""
        tokens: list[list[int]] = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        found = np.zeros((len(tokens), DIMENSIONS), np.float32)
        by_length = sorted(range(len(tokens)), key=lambda number: len(tokens[number]))
        for start in range(0, len(by_length), _AT_A_TIME):
            numbers = by_length[start : start + _AT_A_TIME]
            batch = [tokens[number] for number in numbers]
            answer = self._model.forward_batch(batch, token_type_ids=[[0] * len(each) for each in batch])
            states = np.array(answer.last_hidden_state)
            for place, number in enumerate(numbers):
                found[number] = states[place, : len(tokens[number])].mean(axis=0)
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found

    def knows(self, text: str) -> bool:
        pieces = self._tokenizer.encode(text[:_CHARACTERS], add_special_tokens=False).ids
        return sum(map(str.isalnum, text[:_CHARACTERS])) >= _LEAST_LETTERS * len(pieces)


def as_bytes(vectors: NDArray[np.float32]) -> bytes:
    """The largest number of each vector, by magnitude, becomes 127 or -127."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    return bytes(np.rint(vectors * (127 / largest)).astype(np.int8).tobytes())
