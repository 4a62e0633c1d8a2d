"""How are texts embedded by a confined process?"""

import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from muniment.repository.search.meaning import messages
from muniment.repository.search.meaning.embeddings import DIMENSIONS
from muniment.repository.store.extraction.confined.child import ChildProcess
from muniment.repository.store.extraction.findings import Limits

LIMITS = Limits(seconds=3600, memory=1 << 30, characters=0, depth=0)
"""Processor time is in seconds; memory is beside code and model."""

_PROGRAM = (sys.executable, "-I", "-m", "muniment.repository.search.meaning.worker")
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "2", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "0"}
_START_SECONDS, _ANSWER_SECONDS = 120.0, 60.0
_REQUESTS = 2000


class NotEmbedded(Exception):
    """The process did not answer as it should. Another try may succeed."""


class EmbeddingProcess(ChildProcess):
    """A confined process with the model of ``folder``. It is started when needed.

    The process is replaced when it breaks, and after ``_REQUESTS`` requests.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._requests_left = 0

    def vectors(self, texts: Sequence[str]) -> list[bytes]:
        """Return ``embeddings.DIMENSIONS`` bytes for each.

        Raises NotEmbedded.
        """
        try:
            channel = self._ensure_process()
            self._requests_left -= 1
            messages.send(channel, msgspec.json.encode([_sendable(text) for text in texts]))
            answer = messages.receive(channel) or b""
        except (OSError, msgspec.DecodeError) as error:
            self.close()
            raise NotEmbedded(f"The process that embeds texts did not answer: {error}") from error
        if len(answer) != len(texts) * DIMENSIONS:
            self.close()
            raise NotEmbedded("The process that embeds texts sent an answer of the wrong length.")
        return [answer[start : start + DIMENSIONS] for start in range(0, len(answer), DIMENSIONS)]

    def _ensure_process(self) -> socket.socket:
        if self._channel is not None and self._requests_left > 0:
            return self._channel
        own_end = self._start(_PROGRAM, socket.SOCK_STREAM, _ENVIRONMENT, LIMITS, str(self._folder.absolute()))
        self._requests_left = _REQUESTS
        own_end.settimeout(_START_SECONDS)
        hello = messages.receive(own_end)
        if hello is None or not msgspec.json.decode(hello, type=messages.Hello).fenced:
            raise OSError("it does not start, or cannot be kept off the network")
        own_end.settimeout(_ANSWER_SECONDS)
        return own_end


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
