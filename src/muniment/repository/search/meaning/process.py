"""How are texts embedded by a confined process?"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from muniment.repository.search.meaning import messages
from muniment.repository.search.meaning.embeddings import DIMENSIONS
from muniment.repository.store.extraction.findings import Limits

LIMITS = Limits(seconds=3600, memory=1 << 30, characters=0, depth=0)
"""Processor time is in seconds; memory is beside code and model."""

_PROGRAM = (sys.executable, "-I", "-m", "muniment.repository.search.meaning.worker")
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "2", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "0"}
_START_SECONDS, _ANSWER_SECONDS = 120.0, 60.0
_REQUESTS = 2000


class NotEmbedded(Exception):
    """The process did not answer as it should. Another try may succeed."""


class EmbeddingProcess:
    """A confined process with the model of ``folder``, started when needed.

    It is replaced when it breaks, and after ``_REQUESTS`` requests.

    The kernel ends it with the thread that started it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._requests_left = 0

    def close(self) -> None:
        """End it, even while it computes."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

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
        self.close()
        own_end, worker_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with worker_end:
            limits = msgspec.json.encode(LIMITS).decode()
            self._process = subprocess.Popen(
                [*_PROGRAM, str(worker_end.fileno()), str(os.getpid()), limits, str(self._folder.absolute())],
                pass_fds=[worker_end.fileno()],
                env=_ENVIRONMENT,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._channel = own_end
        self._requests_left = _REQUESTS
        own_end.settimeout(_START_SECONDS)
        hello = messages.receive(own_end)
        if hello is None or not msgspec.json.decode(hello, type=messages.Hello).fenced:
            raise OSError("it does not start, or cannot be kept off the network")
        own_end.settimeout(_ANSWER_SECONDS)
        return own_end


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
