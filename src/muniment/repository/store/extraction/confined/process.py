"""How does the extractor have a file read by a worker process? It waits a limited time, and distrusts the answer."""

import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Self

import msgspec

from muniment.repository.options import RepositoryOptions
from muniment.repository.store.extraction.confined.child import ChildProcess
from muniment.repository.store.extraction.confined.messages import Ended, ReadAnswer, Ready, Request
from muniment.repository.store.extraction.findings import (
    MOST_KEPT,
    Extracted,
    KeptFile,
    Limits,
    Poisoned,
    Stopped,
    Unreadable,
    Unsupported,
    about,
)

_PROGRAM = (sys.executable, "-I", "-m", "muniment.repository.store.extraction.confined.worker")
_START_SECONDS = 120.0
_TICK = 0.25
_GRACE = 2.0
_FILES = 1000
_HEADER = 1 << 19
_KEPT_BYTES = 32 << 20

# The worker gets only variables that keep libraries from starting a thread or a memory arena for each core.
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "2", "TOKIO_WORKER_THREADS": "1", "RAYON_NUM_THREADS": "1"}


class Unstarted(Exception):
    """The worker does not start, or ends before it gets a file, which is not to blame."""


class Reader(ChildProcess):
    """A worker process that reads one file after another. It is started when needed, and replaced when it breaks."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self._limits = limits
        self._files_left = 0

    @property
    def characters(self) -> int:
        return self._limits.characters

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def read(
        self, descriptor: int, name: str, media_type: str, goes_on: Callable[[], bool], *, is_answer: bool = False
    ) -> Extracted:
        """While the worker reads, ``goes_on`` is called several times a second.

        Raises Stopped when ``goes_on`` returns False, Unstarted when the worker process does not start or ends before
        it gets the file, and Unreadable, Unsupported or Poisoned when the file cannot be read.
        """
        channel = self._ensure_worker()
        self._files_left -= 1
        source, target = os.pipe2(os.O_CLOEXEC)
        try:
            try:
                request = msgspec.json.encode(Request(_sendable(name), _sendable(media_type), is_answer))
                socket.send_fds(channel, [request], [descriptor, target])
            except OSError as error:
                raise Unstarted("The process that reads files ended before it got this one.") from error
            finally:
                os.close(target)
            answer, end = self._await_answer(source, channel, goes_on)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(source)
        return _to_result(answer, end, self._limits)

    def _ensure_worker(self) -> socket.socket:
        if (
            self._channel is not None
            and self._files_left > 0
            and self._process is not None
            and self._process.poll() is None
        ):
            return self._channel
        own_end = self._start(_PROGRAM, socket.SOCK_SEQPACKET, _ENVIRONMENT, self._limits)
        self._files_left = _FILES
        own_end.settimeout(_START_SECONDS)
        try:
            msgspec.json.decode(own_end.recv(_HEADER), type=Ready)
        except (msgspec.DecodeError, OSError) as error:
            self.close()
            raise Unstarted(f"The process that reads files does not start: {_PROGRAM[0]} -m {_PROGRAM[-1]}") from error
        return own_end

    def _await_answer(self, source: int, channel: socket.socket, goes_on: Callable[[], bool]) -> tuple[bytes, Ended]:
        """Raises Poisoned, Stopped."""
        asked = time.monotonic()
        deadline = asked + self._limits.seconds + _GRACE
        limit = _HEADER + 4 * self._limits.characters + self._limits.kept_bytes
        answer = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(source, selectors.EVENT_READ)
            watched_file: int | socket.socket = source
            while True:
                now = time.monotonic()
                if now > deadline:
                    raise Poisoned(f"Reading it took longer than the {self._limits.seconds} seconds allowed.")
                if now - asked >= _TICK:
                    asked = now
                    if not goes_on():
                        raise Stopped
                if not selector.select(_TICK):
                    continue
                if watched_file is channel:
                    return bytes(answer), _receive_end(channel)
                if piece := os.read(source, 1 << 18):
                    answer += piece
                    if len(answer) > limit:
                        raise Poisoned("Its reader wrote more than is allowed.")
                else:
                    selector.unregister(source)
                    selector.register(channel, selectors.EVENT_READ)
                    watched_file = channel


def limits(options: RepositoryOptions) -> Limits:
    return Limits(
        seconds=options.extraction_seconds,
        memory=options.extraction_memory_mib << 20,
        characters=options.extraction_characters,
        depth=options.extraction_depth,
        kept_bytes=_KEPT_BYTES if options.extraction.tika else 0,
    )


def _receive_end(channel: socket.socket) -> Ended:
    try:
        if message := channel.recv(_HEADER):
            return msgspec.json.decode(message, type=Ended)
    except (OSError, msgspec.DecodeError) as error:
        raise Poisoned("The process that reads files failed while it read this one.") from error
    raise Poisoned("The process that reads files ended while it read this one.")


def _to_result(answer: bytes, end: Ended, limits: Limits) -> Extracted:
    """Distrust the answer: the file may have taken the worker over."""
    if end.code != 0:
        raise Poisoned(_how_it_ended(end.code, limits))
    header, _, rest = answer.partition(b"\n")
    try:
        message = msgspec.json.decode(header, type=ReadAnswer)
    except msgspec.DecodeError as error:
        raise Poisoned("Its reader answered what cannot be understood.") from error
    if message.outcome == "read":
        text = rest[: max(message.text_bytes, 0)].decode("utf-8", "replace")[: limits.characters]
        said, kept = _said(message.properties), _kept(message, rest)
        return Extracted(text, message.note[:1000], said, message.scanned, kept)
    kinds = {"failed": Unreadable, "unsupported": Unsupported, "poisoned": Poisoned}
    raise kinds[message.outcome](message.note[:1000])


def _said(properties: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    title, subject, authors, keywords, dates = (
        properties.get(name, ()) for name in ("title", "subject", "authors", "keywords", "a_content_date")
    )
    return about(" ".join(title[:1]), " ".join(subject[:1]), authors, keywords, dates)


def _kept(message: ReadAnswer, content: bytes) -> tuple[KeptFile, ...]:
    kept: list[KeptFile] = []
    start = message.text_bytes
    for name, size in message.kept:
        if size < 1 or start < 0 or start + size > len(content) or len(kept) == MOST_KEPT:
            raise Poisoned("Its reader answered what cannot be understood.")
        kept.append(KeptFile(name, content[start : start + size]))
        start += size
    return tuple(kept)


def _how_it_ended(code: int, limits: Limits) -> str:
    if code == -signal.SIGXCPU:
        return f"Reading it took more than the {limits.seconds} seconds of processor time allowed."
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return (
            f"Its reader was ended by {name}: it crashed, or needed more than the {limits.memory >> 20} MiB "
            "of memory allowed."
        )
    return "Its reader crashed."


def _sendable(text: str) -> str:
    return text[-500:].encode("utf-8", "replace").decode("utf-8")
