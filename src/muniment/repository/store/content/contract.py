"""What does a content store do? It keeps bytes under a key and never changes them.

The contract names neither folders nor descriptors, so that a store in the network can implement it, too. The methods of
a store in the network may raise StoreUnavailable, a subclass of NotStored. ``remove`` and ``abort`` never raise it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol

import msgspec

from muniment.ground.clock import Instant

PIECE = 262_144


class StoredContent(msgspec.Struct, frozen=True):
    """The store chooses the key, 32 hexadecimal digits, and never uses it again."""

    key: str
    size: int
    sha256: bytes


class Pack(msgspec.Struct, frozen=True):
    """A pack: contents kept together, with keys from ``first`` to ``last``.

    Each content takes its own bytes and ``overhead`` bytes more. The space of a removed content becomes free only when
    the pack is dropped.
    """

    first: str
    last: str
    size: int
    overhead: int


class ContentWriter(Protocol):
    """The caller writes pieces, then calls ``finish`` or ``abort``."""

    def write(self, *pieces: bytes) -> None:
        """Raises NotStored."""

    def finish(self) -> StoredContent:
        """Keep the bytes through a power cut. Raises NotStored; then nothing is kept, but a store in the network may
        have the bytes, which the sweep removes.
        """

    def abort(self) -> None:
        """Drop the bytes. It does nothing after ``finish``."""


def write_all(writer: ContentWriter, pieces: Iterable[bytes]) -> StoredContent:
    """Abort after an exception.

    Raises NotStored.
    """
    try:
        for piece in pieces:
            writer.write(piece)
        return writer.finish()
    except BaseException:
        writer.abort()
        raise


class ContentStore(Protocol):
    """Holds every content of an installation."""

    def writer(self) -> ContentWriter:
        """Raises NotStored."""

    def put(self, pieces: Iterable[bytes]) -> StoredContent:
        """If ``pieces`` raises, nothing is kept.

        Raises NotStored.
        """

    def put_all(self, contents: Sequence[bytes]) -> list[StoredContent]:
        """Keep several small contents, in the same order, through a power cut. Raises NotStored, as
        ``ContentWriter.finish``.
        """

    def adopt(self, content: StoredContent, pieces: Iterable[bytes]) -> bool:
        """Keep a copy of another store's content under the same key, as a backup and a restore do.

        Returns False if that store finds the content damaged; then nothing is kept. A power cut may destroy the copy,
        so the caller syncs the disk once after all copies. Raises OSError, NotStored.
        """

    def read(self, content: StoredContent, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Raises ContentDamaged before the first piece if the content is missing or has another size. Raises
        ContentDamaged before the last piece if the digest of whole content is wrong, so damaged content is never
        returned whole. Content that is removed meanwhile is still read to its end, but a store in the network may raise
        ContentDamaged.
        """

    def local(self, key: str) -> AbstractContextManager[BinaryIO]:
        """Lend a file on this machine that holds the content, for a reader that needs a descriptor.

        The digest is not checked. Raises ContentDamaged when there is no content under the key, TooLarge when the
        content is too large to be copied to this machine, and OSError.
        """

    def verify(self, key: str, sha256: bytes) -> bool: ...

    def remove(self, key: str) -> bool:
        """Remove content; return False while a ``keeping`` block forbids it, or if a store in the network does not
        answer.

        Content that stays is yielded by a later ``older_than``, unless it is in a pack.
        """

    def keeping(self) -> AbstractContextManager[None]:
        """Wait for a removal under way and for other ``keeping`` blocks, then forbid every process to remove content,
        until the block or the process ends.
        """

    def older_than(self, before: Instant) -> Iterator[str]:
        """Yield the keys of content in no pack last written before the instant, and remove unfinished content of that
        age.
        """

    def packs(self, before: Instant) -> Iterator[Pack]:
        """Yield the packs whose contents were all written before the instant, and which nobody writes any more."""

    def drop(self, pack: Pack) -> bool: ...
