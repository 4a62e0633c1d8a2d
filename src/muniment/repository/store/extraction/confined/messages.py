"""The messages between the extractor and its worker process, as JSON."""

from typing import Literal

import msgspec


class Ready(msgspec.Struct, frozen=True):
    """The worker has loaded its libraries; ``offline`` if it has left the network."""

    offline: bool


class Request(msgspec.Struct, frozen=True):
    """Read the file of the first descriptor, and answer over the second. With ``is_answer``, the file is a Tika
    server's answer.
    """

    name: str
    media_type: str
    is_answer: bool = False


class ReadAnswer(msgspec.Struct, frozen=True):
    """The first line of an answer; if it is `read`, the text follows in UTF-8, then the kept files.

    ``text_bytes`` is the text's length, ``kept`` the names and lengths of the kept files.
    """

    outcome: Literal["read", "failed", "unsupported", "poisoned"]
    note: str
    properties: dict[str, list[str]] = {}
    scanned: bool = False
    text_bytes: int = 0
    kept: tuple[tuple[str, int], ...] = ()


class Ended(msgspec.Struct, frozen=True):
    """``code`` is the exit code of the child that read the file, or the negative number of a signal."""

    code: int
