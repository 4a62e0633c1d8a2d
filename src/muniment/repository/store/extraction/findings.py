"""What is the result of reading a file? A text, or the reason why there is none. The limits of reading are here too."""

import re
from collections.abc import Mapping, Sequence

import msgspec

_LONGEST = 1000
_MOST_VALUES = 50
"""A file says at most so many characters of a text, authors or keywords about itself."""


MOST_KEPT = 50


class Limits(msgspec.Struct, frozen=True):
    """``memory`` is how much the address space may grow, in bytes.

    Files within files are opened down to ``depth`` levels; up to ``kept_bytes`` of those that no reader here reads are
    kept.
    """

    seconds: int
    memory: int
    characters: int
    depth: int
    kept_bytes: int = 0

    @property
    def loaded_bytes(self) -> int:
        """So many bytes of one file may be in memory at one time, or unpacked."""
        return self.memory // 4


class KeptFile(msgspec.Struct, frozen=True):
    """A file within a file that no reader here reads."""

    name: str
    content: bytes


class Extracted(msgspec.Struct, frozen=True):
    """A text; ``note`` says what was left out, or why there is none.

    ``properties`` is what the file says about itself. A ``scanned`` file has pages of pictures only.
    """

    text: str
    note: str
    properties: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)
    scanned: bool = False
    kept: tuple[KeptFile, ...] = ()


def about(
    title: str = "",
    subject: str = "",
    authors: Sequence[str] = (),
    keywords: Sequence[str] = (),
    dates: Sequence[str] = (),
) -> dict[str, list[str]]:
    """Return what a file says about itself, without empty texts and repetitions.

    ``dates`` are in ISO 8601; one that cannot be believed makes way for the next.
    """
    found = {"title": [title], "subject": [subject], "authors": authors, "keywords": keywords, "a_content_date": dates}
    bare = {
        name: list(dict.fromkeys(filter(None, map(_bare, values[:_MOST_VALUES])))) for name, values in found.items()
    }
    return {name: values for name, values in bare.items() if values}


def separate(text: str) -> list[str]:
    return re.split("[;\n]", text) if ";" in text or "\n" in text else text.split(",")


def _bare(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text[:_LONGEST]).split())


class Unreadable(Exception):
    """A supported file that is encrypted, truncated, damaged or too large."""


class Unsupported(Exception):
    """The file's kind is not supported."""


class Stopped(Exception):
    """The extractor no longer wants the file."""


class Poisoned(Exception):
    """The file made its reader fail: a crash, too much time, too much memory. Another try may succeed."""
