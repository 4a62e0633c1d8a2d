"""A content store that removes nothing before the end of a common transaction. After the commit it removes what was to
be removed, after a rollback what was put. If the process is killed first, or nobody knows whether the commit succeeded,
the sweep removes what no row names.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from muniment.database import common_transaction
from muniment.repository.store.content.contract import ContentStore, ContentWriter, StoredContent


class DeferringStore:
    """The content store of an application, which passes every call on to the store that keeps the bytes."""

    def __init__(self, store: ContentStore) -> None:
        self._store = store
        self.adopt, self.read, self.local, self.verify = store.adopt, store.read, store.local, store.verify
        self.keeping, self.older_than, self.packs, self.drop = store.keeping, store.older_than, store.packs, store.drop

    def writer(self) -> ContentWriter:
        common = common_transaction.current()
        return self._store.writer() if common is None else _DeferringWriter(self._store, common)

    def put(self, pieces: Iterable[bytes]) -> StoredContent:
        return self._note([self._store.put(pieces)])[0]

    def put_all(self, contents: Sequence[bytes]) -> list[StoredContent]:
        return self._note(self._store.put_all(contents))

    def remove(self, key: str) -> bool:
        """Within a common transaction, return True, and remove only after its commit."""
        common = common_transaction.current()
        if common is None:
            return self._store.remove(key)
        common.after_commit(partial(self._store.remove, key))
        return True

    def _note(self, contents: list[StoredContent]) -> list[StoredContent]:
        common = common_transaction.current()
        if common is not None:
            for content in contents:
                common.after_rollback(partial(self._store.remove, content.key))
        return contents


class _DeferringWriter:
    def __init__(self, store: ContentStore, common: common_transaction.CommonTransaction) -> None:
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
