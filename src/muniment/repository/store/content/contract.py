"""What does a content store do? It keeps bytes under a key, returns them piece by piece, and never changes them.

The contract names neither folders nor descriptors, so that a store in the network can implement it, too. A reader that
needs a file on this machine gets one from ``local``. The methods of a store in the network may raise StoreUnavailable,
a subclass of NotStored. ``remove`` and ``abort`` never raise it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol

import msgspec

from muniment.ground.clock import Instant

PIECE = 262_144
"""How many bytes are read or written at one time."""


class StoredContent(msgspec.Struct, frozen=True):
    """Content in the store: its key, its size in bytes, its SHA-256 digest.

    The store chooses the key, 32 hexadecimal digits, and never uses it again.
    """

    key: str
    size: int
    sha256: bytes


class Pack(msgspec.Struct, frozen=True):
    """A pack: contents that a store keeps together. Each of their keys is at least ``first`` and at most ``last``.

    The pack takes ``size`` bytes. Each content takes its own bytes and ``overhead`` bytes more. The space of a removed
    content becomes free only when the pack is dropped.
    """

    first: str
    last: str
    size: int
    overhead: int


class ContentWriter(Protocol):
    """Writes one content to the store. The caller writes pieces, then calls ``finish`` or ``abort``."""

    def write(self, *pieces: bytes) -> None:
        """Add bytes, in one or several pieces. Raises NotStored."""

    def finish(self) -> StoredContent:
        """Keep the bytes, and return the content, which survives a power cut. Raises NotStored.

        When it raises, nothing is kept. But if the answer of a store in the network was lost, the store may have the
        bytes. No row names them, so the sweep removes them.
        """

    def abort(self) -> None:
        """Drop the bytes. After ``finish`` it does nothing."""


def write_all(writer: ContentWriter, pieces: Iterable[bytes]) -> StoredContent:
    """Write all pieces, finish, and return the content. After an exception, abort. Raises NotStored."""
    try:
        for piece in pieces:
            writer.write(piece)
        return writer.finish()
    except BaseException:
        writer.abort()
        raise


class ContentStore(Protocol):
    """The store that holds every content of an installation."""

    def writer(self) -> ContentWriter:
        """Raises NotStored."""

    def put(self, pieces: Iterable[bytes]) -> StoredContent:
        """Keep these bytes, and return the content. If ``pieces`` raises, nothing is kept. Raises NotStored."""

    def put_all(self, contents: Sequence[bytes]) -> list[StoredContent]:
        """Keep several small contents at once, and return them in the same order.

        They all survive a power cut. Raises NotStored. Then none is kept, but a store in the network may have some of
        the bytes, as in ``ContentWriter.finish``.
        """

    def adopt(self, content: StoredContent, pieces: Iterable[bytes]) -> bool:
        """Keep a copy of another store's content under the same key, as a backup and a restore do.

        ``pieces`` comes from the other store's ``read``. Returns False if that store finds the content damaged; then
        nothing is kept. A power cut may destroy the copy, so the caller syncs the disk once after all copies. Raises
        OSError, NotStored.
        """

    def read(self, content: StoredContent, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Yield the bytes piece by piece: all of them, or ``length`` bytes from ``start`` on.

        Raises ContentDamaged before the first piece if the content is missing or has another size. When it reads the
        whole content, it raises ContentDamaged before the last piece if the digest is wrong, so damaged content is
        never returned whole. If the content is removed while it is read, the reader still gets the rest of it, but a
        store in the network may raise ContentDamaged.
        """

    def local(self, key: str) -> AbstractContextManager[BinaryIO]:
        """Lend a file on this machine that holds the content, for a reader that needs a descriptor.

        The digest is not checked. The file is open for reading, at its beginning. Raises ContentDamaged when there is
        no content under the key, TooLarge when the content is too large to be copied to this machine, and OSError.
        """

    def verify(self, key: str, sha256: bytes) -> bool: ...

    def remove(self, key: str) -> bool:
        """Remove content, and return whether removing is allowed now. A ``keeping`` block forbids it.

        A store in the network also returns False if it does not answer. If there is no content under the key, nothing
        is removed. Content that cannot be removed now stays. If it is not in a pack, a later ``older_than`` yields it.
        """

    def keeping(self) -> AbstractContextManager[None]:
        """Forbid every process to remove content while the block runs.

        First it waits for a removal that is under way, and for any other ``keeping`` block. If the process ends within
        the block, removing is allowed again.
        """

    def older_than(self, before: Instant) -> Iterator[str]:
        """Yield the keys of all content that was last written before the instant and is in no pack.

        Unfinished content of that age is removed.
        """

    def packs(self, before: Instant) -> Iterator[Pack]:
        """Yield the packs whose contents were all written before the instant, and to which nobody writes any more.

        A store without packs yields none.
        """

    def drop(self, pack: Pack) -> bool: ...
