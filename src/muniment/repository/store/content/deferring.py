"""A content store that removes nothing before the end of a common transaction.

After the commit it removes what was to be removed. After a rollback it removes what was put during the transaction.
If the process is killed before such a removal, no row names the content, and the sweep removes it later. If nobody
knows whether a commit succeeded, nothing is removed until the sweep finds content that no row names.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import BinaryIO

from muniment.database import common_transaction
from muniment.database.common_transaction import CommonTransaction
from muniment.ground.clock import Instant
from muniment.repository.store.content.contract import ContentStore, ContentWriter, Pack, StoredContent


class DeferringStore:
    """The content store that an application uses. It passes every call on to the store that keeps the bytes."""

    def __init__(self, store: ContentStore) -> None:
        self._store = store

    def writer(self) -> ContentWriter:
        """Do as ``ContentStore.writer``."""
        common = common_transaction.current()
        return self._store.writer() if common is None else _DeferringWriter(self._store, common)

    def put(self, pieces: Iterable[bytes]) -> StoredContent:
        """Do as ``ContentStore.put``."""
        return self._note([self._store.put(pieces)])[0]

    def put_all(self, contents: Sequence[bytes]) -> list[StoredContent]:
        """Do as ``ContentStore.put_all``."""
        return self._note(self._store.put_all(contents))

    def adopt(self, content: StoredContent, pieces: Iterable[bytes]) -> bool:
        """Do as ``ContentStore.adopt``."""
        return self._store.adopt(content, pieces)

    def read(self, content: StoredContent, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Do as ``ContentStore.read``."""
        return self._store.read(content, start, length)

    def local(self, key: str) -> AbstractContextManager[BinaryIO]:
        """Do as ``ContentStore.local``."""
        return self._store.local(key)

    def verify(self, key: str, sha256: bytes) -> bool:
        """Do as ``ContentStore.verify``."""
        return self._store.verify(key, sha256)

    def remove(self, key: str) -> bool:
        """Do as ``ContentStore.remove``. Within a common transaction, return True, and remove only after its commit."""
        common = common_transaction.current()
        if common is None:
            return self._store.remove(key)
        common.after_commit(partial(self._store.remove, key))
        return True

    def keeping(self) -> AbstractContextManager[None]:
        """Do as ``ContentStore.keeping``."""
        return self._store.keeping()

    def older_than(self, before: Instant) -> Iterator[str]:
        """Do as ``ContentStore.older_than``."""
        return self._store.older_than(before)

    def packs(self, before: Instant) -> Iterator[Pack]:
        """Do as ``ContentStore.packs``."""
        return self._store.packs(before)

    def drop(self, pack: Pack) -> bool:
        """Do as ``ContentStore.drop``."""
        return self._store.drop(pack)

    def _note(self, contents: list[StoredContent]) -> list[StoredContent]:
        common = common_transaction.current()
        if common is not None:
            for content in contents:
                common.after_rollback(partial(self._store.remove, content.key))
        return contents


class _DeferringWriter:
    """A writer whose content is removed again if the common transaction is rolled back."""

    def __init__(self, store: ContentStore, common: CommonTransaction) -> None:
        self._store = store
        self._common = common
        self._writer = store.writer()

    def write(self, *pieces: bytes) -> None:
        self._writer.write(*pieces)

    def finish(self) -> StoredContent:
        content = self._writer.finish()
        self._common.after_rollback(partial(self._store.remove, content.key))
        return content

    def abort(self) -> None:
        self._writer.abort()
