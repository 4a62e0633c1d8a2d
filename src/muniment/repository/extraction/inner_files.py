"""Which files are within a file? They are read within limits that all of them share, whatever holds them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import BinaryIO

from muniment.repository.extraction.findings import Extracted, Limits, Unreadable, Unsupported

_MOST_NOTES = 5

ReadFile = Callable[[BinaryIO, str, str, "InnerFiles"], Extracted]
"""Reads a file of a name and a media type. Raises Unreadable, Unsupported."""


class InnerFiles:
    """The files within one file, at all depths."""

    def __init__(self, limits: Limits, read: ReadFile) -> None:
        self.limits = limits
        self._read = read
        self._levels_left = limits.depth
        self._notes: list[str] = []

    @property
    def note(self) -> str:
        """What was left out, or an empty text."""
        more = len(self._notes) - _MOST_NOTES
        return " ".join([*self._notes[:_MOST_NOTES], *([f"So were {more} more."] if more > 0 else [])])

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Go one level deeper for the block. Raises Unreadable if that is deeper than is read."""
        if self._levels_left < 1:
            raise Unreadable("The file is packed within packed files deeper than is read.")
        self._levels_left -= 1
        try:
            yield
        finally:
            self._levels_left += 1

    def text_of(self, name: str, content: bytes, media_type: str = "", what: str = "file") -> str:
        """Return the text of a file, or an empty text; then a note says why.

        ``what`` is the word for such a file in the note.
        """
        try:
            with self.deeper():
                return self._read(BytesIO(content), name, media_type, self).text
        except (Unreadable, Unsupported) as refusal:
            self._notes.append(f"The {what} {name[:100]!r} was not read: {refusal}")
        return ""
