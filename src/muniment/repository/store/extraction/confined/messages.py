"""The messages between the extractor and its worker process, as JSON."""

from typing import Literal

import msgspec


class Ready(msgspec.Struct, frozen=True):
    """The worker has loaded its libraries. ``offline`` says whether it has left the network."""

    offline: bool


class Request(msgspec.Struct, frozen=True):
    """A request to read the file of the first descriptor, and to answer over the second descriptor.

    If ``is_answer``, the file is a Tika server's answer.
    """

    name: str
    media_type: str
    is_answer: bool = False


class ReadAnswer(msgspec.Struct, frozen=True):
    """The first line of an answer. If the outcome is `read`, the text follows in UTF-8, then the files that are kept.

    ``properties`` is what the file says about itself, ``text_bytes`` the length of the text. ``kept`` are the names and
    the lengths of the kept files.
    """

    outcome: Literal["read", "failed", "unsupported", "poisoned"]
    note: str
    properties: dict[str, list[str]] = {}
    scanned: bool = False
    text_bytes: int = 0
    kept: tuple[tuple[str, int], ...] = ()


class Ended(msgspec.Struct, frozen=True):
    """The child that read the file has ended. ``code`` is its exit code, or the negative number of a signal."""

    code: int
