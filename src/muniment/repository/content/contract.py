"""What a content store does: it keeps bytes under a key, gives them back piece by piece, and never changes them.

Whoever uses a store knows neither folders nor descriptors, so that a store of objects in another place fits beside the
built-in one. A reader that needs a file of this machine asks for one with ``local``.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol

import msgspec

from muniment.clock import Instant

PIECE = 262_144
"""Bytes that are read or written at one time."""


class StoredContent(msgspec.Struct, frozen=True):
    """Content that is kept: its key, its size in bytes, its SHA-256 digest.

    The store chooses the key: 32 hexadecimal digits that it never uses again.
    """

    key: str
    size: int
    sha256: bytes


class ContentWriter(Protocol):
    """Content on its way into the store. Its user writes pieces, then calls ``finish`` or ``abort``."""

    def write(self, *pieces: bytes) -> None:
        """Add bytes, in one or several pieces. Raises NotStored."""

    def finish(self) -> StoredContent:
        """Keep what was written: from here on it survives a power cut. Raises NotStored; then nothing is kept."""

    def abort(self) -> None:
        """Forget what was written. After ``finish`` it does nothing."""


class ContentStore(Protocol):
    """The store that holds every content of an installation."""

    def writer(self) -> ContentWriter:
        """Begin to keep new content. Raises NotStored."""

    def put(self, pieces: Iterable[bytes]) -> StoredContent:
        """Keep these bytes; if the pieces end with an exception, nothing is kept. Raises NotStored."""

    def put_all(self, contents: Sequence[bytes]) -> list[StoredContent]:
        """Keep several small contents at once: when this returns, all of them survive a power cut.

        Raises NotStored; then nothing is kept.
        """

    def adopt(self, content: StoredContent, pieces: Iterable[bytes]) -> bool:
        """Keep a copy from another store under the key that it has there, as a backup and a restore do.

        ``pieces`` is what the other store's ``read`` gives. Returns False when that finds the content damaged; then
        nothing is kept. The copy may not survive a power cut yet: whoever adopts many brings all of them to the disk
        at once. Raises OSError.
        """

    def read(self, content: StoredContent, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Yield bytes, piece by piece: all, or ``length`` of them from ``start``.

        Raises ContentDamaged at the first piece when size or presence is wrong, and before the last piece when
        all of it was read and its digest is wrong: damaged content is never given back whole. Whoever reads content
        that is removed meanwhile reads on.
        """

    def local(self, key: str) -> AbstractContextManager[BinaryIO]:
        """Lend a file of this machine that holds the content, unverified, for a reader that needs its descriptor.

        The file is open for reading, at its beginning. Raises ContentDamaged when there is none under the key.
        """

    def verify(self, key: str, sha256: bytes) -> bool:
        """Say whether the content is still what was kept."""

    def remove(self, key: str) -> bool:
        """Let content go, and say whether it may. Nothing happens when there is none.

        What cannot be removed now, or is being kept for a backup, stays, named by nothing, until a later search for
        such content (``older_than``).
        """

    def keeping(self) -> AbstractContextManager[None]:
        """Let no process remove content while the block runs. It waits for a process that removes some just now.

        The right ends with the process that holds it.
        """

    def older_than(self, before: Instant) -> Iterator[str]:
        """Name every content last written before the instant; remove what was begun before it and never finished."""
