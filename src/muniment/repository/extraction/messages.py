"""What the extractor and its worker process tell each other, as JSON; an answer is followed by the text itself."""

from typing import Literal

import msgspec


class Ready(msgspec.Struct, frozen=True):
    """The worker has loaded its libraries. ``offline``: it has left the network."""

    offline: bool


class Request(msgspec.Struct, frozen=True):
    """Read the file of the first descriptor that comes with this, and answer over the second."""

    name: str
    media_type: str


class Answer(msgspec.Struct, frozen=True):
    """The first line of an answer; where the outcome is `read`, the text follows in UTF-8."""

    outcome: Literal["read", "failed", "unsupported", "poisoned"]
    note: str


class Ended(msgspec.Struct, frozen=True):
    """The child that read the file has ended, with this exit code or (negative) by this signal."""

    code: int
