"""What reading one file can come to: its text, or the reason why there is none; and the limits it was read within."""

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """What reading one file may cost. ``memory`` is bytes of address space beyond the reader's own code."""

    seconds: int
    memory: int
    characters: int
    ratio: int
    depth: int

    @property
    def loaded(self) -> int:
        """The most bytes of one file, packed or unpacked, that are held in memory at a time."""
        return self.memory // 4

    def unpacked(self, packed: int) -> int:
        """The most bytes that a packed file of this size may unpack to; small ones have a floor of 1 MiB."""
        return min(max(packed * self.ratio, 1 << 20), self.loaded)


class Extracted(msgspec.Struct, frozen=True):
    """A file's text. ``note`` says what was left out, or why there is no text; empty when there is nothing to say."""

    text: str
    note: str


class Unreadable(Exception):
    """The file is of a kind that is read, but this one cannot be: encrypted, truncated, damaged, too large."""


class Unsupported(Exception):
    """The file is of a kind that is not read."""


class Poisoned(Exception):
    """The file brought its reader down: a crash, too much time, too much memory. Another try may fare better."""
