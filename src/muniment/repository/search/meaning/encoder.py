"""The encoder: it turns texts into vectors with the model."""

from collections.abc import Sequence
from pathlib import Path

import ctranslate2
import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from muniment.repository.search.meaning.embeddings import DIMENSIONS

_TOKENS = 256

_CHARACTERS = 200
"""So many characters of a question say whether the model knows its words."""

_LEAST_LETTERS = 2
"""On average, the pieces of a known text have so many letters and digits: the model cuts what it does not know into
pieces, and what is no word into pieces of a letter or two.
"""


class Encoder:
    """The model of ``folder`` in memory, in one thread."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_TOKENS)
        self._model = ctranslate2.Encoder(str(folder), device="cpu", inter_threads=1, intra_threads=1)

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the mean of the model's output for the tokens, scaled to length 1.

        The model reads each text alone: in a batch with longer texts, its vector would be a little different, and tell
        of them.
        """
        tokens: list[list[int]] = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        found = np.zeros((len(tokens), DIMENSIONS), np.float32)
        for number, each in enumerate(tokens):
            answer = self._model.forward_batch([each], token_type_ids=[[0] * len(each)])
            found[number] = np.array(answer.last_hidden_state)[0].mean(axis=0)
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found

    def knows(self, text: str) -> bool:
        pieces = self._tokenizer.encode(text[:_CHARACTERS], add_special_tokens=False).ids
        return sum(map(str.isalnum, text[:_CHARACTERS])) >= _LEAST_LETTERS * len(pieces)


def as_bytes(vectors: NDArray[np.float32]) -> bytes:
    """Make each vector's largest number, by magnitude, 127 or -127."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    return bytes(np.rint(vectors * (127 / largest)).astype(np.int8).tobytes())
