"""What is the result of reading a file? A text, or the reason why there is none. The limits of reading are here too."""

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """The limits for reading one file. ``memory`` is how much the address space may grow, in bytes.

    A packed file may unpack to ``ratio`` times its size. Files within files, such as the attachments of a mail, are
    opened down to ``depth`` levels.
    """

    seconds: int
    memory: int
    characters: int
    ratio: int
    depth: int

    @property
    def loaded_bytes(self) -> int:
        """The largest number of bytes of one file, packed or unpacked, that may be in memory at one time."""
        return self.memory // 4

    def unpacked_bytes(self, size: int) -> int:
        """Return how many bytes a packed file of this size may unpack to.

        They are ``ratio`` times its size, or 1 MiB if that is more, but never more than ``loaded_bytes``.
        """
        return min(max(size * self.ratio, 1 << 20), self.loaded_bytes)


class Extracted(msgspec.Struct, frozen=True):
    """A file's text. ``note`` says what was left out, or why there is no text; it may be empty."""

    text: str
    note: str


class Unreadable(Exception):
    """The file's kind is supported, but this file cannot be read: it is encrypted, truncated, damaged or too large."""


class Unsupported(Exception):
    """The file's kind is not supported."""


class Poisoned(Exception):
    """The file made its reader fail: a crash, too much time, too much memory. Another try may succeed."""
