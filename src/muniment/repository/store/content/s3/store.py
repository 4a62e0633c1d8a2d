"""A content store in the network that speaks S3. Each content is one object, which the store has whole or not at all.

Each request is signed with the digest of its body, so the store refuses bytes that were altered on their way. The store
answers a write when it has the object. We rely on the store to keep the object through a power cut. The sweep
recognises the remains of a crash by their age.
"""

import hashlib
import re
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import structlog

from muniment.database.connections import Busy
from muniment.ground.clock import Instant
from muniment.ground.refusals import NotStored, TooLarge
from muniment.repository.refusals import ContentDamaged, StoreUnavailable
from muniment.repository.store.content.contract import PIECE, ContentWriter, Pack, StoredContent, write_all
from muniment.repository.store.content.removals import RemovalLock
from muniment.repository.store.content.s3.bucket import ContentBucket, MissingObject, ObjectWriter

log = structlog.get_logger("muniment.content")

_FOLDER, _OWNER = "content", "owner"
_BLOCK = 4 << 20
_AT_ONE_TIME = 8
_KEY = re.compile(r"[0-9a-f]{32}")


class S3Writer:
    """Sends one content (a ContentWriter), with at most two parts in memory."""

    def __init__(self, target: ObjectWriter, key: str, claim: Callable[[], None]) -> None:
        self._target, self._key, self._claim = target, key, claim
        self._digest = hashlib.sha256()
        self._size = 0
        self._lock = threading.Lock()
        self._over = False

    def write(self, *pieces: bytes) -> None:
        with self._lock:
            if self._over:
                raise ValueError("this content was finished or aborted")
            if not self._size:
                self._claim()
            self._target.write(pieces)
            for piece in pieces:
                self._digest.update(piece)
                self._size += len(piece)

    def finish(self) -> StoredContent:
        """Raises NotStored; then the sweep removes what the store may have."""
        self.write()
        with self._lock:
            try:
                self._target.close()
            except BaseException:
                self._drop_in_background()
                raise
            self._over = True
        return StoredContent(self._key, self._size, self._digest.digest())

    def abort(self) -> None:
        if not self._over:
            self._drop_in_background()

    def _drop_in_background(self) -> None:
        # The caller does not wait for the store, and another thread may still be sending.
        self._over = True
        if self._target.is_in_parts:
            threading.Thread(target=self._drop, name="content upload given up", daemon=True).start()

    def _drop(self) -> None:
        with self._lock:
            self._target.drop()


class S3Store:
    """A bucket, or a prefix in one, that holds every content of one installation (a ContentStore).

    ``owner`` names the installation. No other installation can write below its prefix. ``copies`` is the folder of the
    files that ``local`` lends, each of ``largest_copy`` bytes at most.
    """

    def __init__(
        self, bucket: ContentBucket, lock: RemovalLock, owner: Callable[[], str], copies: Path, largest_copy: int
    ) -> None:
        self._bucket, self._lock, self._owner = bucket, lock, owner
        self._copies, self._largest_copy = copies, largest_copy
        self._claimed = False

    def writer(self) -> ContentWriter:
        return self._writer(uuid.uuid4().hex)

    def put(self, pieces: Iterable[bytes]) -> StoredContent:
        return write_all(self.writer(), pieces)

    def put_all(self, contents: Sequence[bytes]) -> list[StoredContent]:
        self._claim()
        new_contents = [StoredContent(uuid.uuid4().hex, len(each), hashlib.sha256(each).digest()) for each in contents]
        with ThreadPoolExecutor(_AT_ONE_TIME) as threads:
            sent = [
                threads.submit(self._bucket.put, _name(content.key), each)
                for content, each in zip(new_contents, contents, strict=True)
            ]
        try:
            for each in sent:
                each.result()
        except BaseException:
            with suppress(NotStored):  # a dead store is not asked once for each content; the sweep removes what it has
                for content in new_contents:
                    self._bucket.remove(_name(content.key))
            raise
        return new_contents

    def adopt(self, content: StoredContent, pieces: Iterable[bytes]) -> bool:
        """Returns False if that store finds the content damaged. Raises NotStored."""
        target = self._bucket.open_writer(_name(content.key))
        try:
            self._claim()
            for piece in pieces:
                target.write([piece])
            target.close()
        except ContentDamaged:
            target.drop()
            return False
        except BaseException:
            target.drop()
            raise
        return True

    def read(self, content: StoredContent, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Raises ContentDamaged before the first piece if the content is missing or has another size, and before the
        last block of 4 MiB if the whole content has another digest. The digest of a part is not checked. Raises
        StoreUnavailable.
        """
        end = content.size if length is None else min(start + length, content.size)
        whole = start == 0 and end == content.size
        digest = hashlib.sha256()
        if start >= end:
            self._check_size(content, self._size(content.key))
            if whole and digest.digest() != content.sha256:
                raise ContentDamaged("The content no longer has the digest with which it was stored.")
            return
        for place in range(start, end, _BLOCK):
            block = self._block(content, place, min(place + _BLOCK, end))
            if whole:
                digest.update(block)
                if place + len(block) == end and digest.digest() != content.sha256:
                    raise ContentDamaged("The content no longer has the digest with which it was stored.")
            for at in range(0, len(block), PIECE):
                yield block[at : at + PIECE]

    @contextmanager
    def local(self, key: str) -> Iterator[BinaryIO]:
        """Lend a copy in a file without a name, which is gone when it is closed. Raises ContentDamaged for no content,
        TooLarge beyond ``largest_copy``, StoreUnavailable, and OSError if the disk has no room.
        """
        size = self._size(key)
        if size > self._largest_copy:
            raise TooLarge(f"The content has more than {self._largest_copy} bytes, so no copy of it is made here.")
        with tempfile.TemporaryFile(dir=self._copies, buffering=0) as file:
            for block in self._blocks(key, size):
                rest = memoryview(block)
                while rest:
                    rest = rest[file.write(rest) :]
            file.seek(0)
            yield file

    def verify(self, key: str, sha256: bytes) -> bool:
        digest = hashlib.sha256()
        try:
            for block in self._blocks(key, self._size(key)):
                digest.update(block)
        except ContentDamaged:
            return False
        return digest.digest() == sha256

    def remove(self, key: str) -> bool:
        """Return False for what is no key, within ``keeping``, or if it fails; a later ``older_than`` yields what
        stays.
        """
        if not _KEY.fullmatch(key):
            return False
        try:
            with self._lock.removing() as may_remove:
                if may_remove:
                    self._bucket.remove(_name(key))
                return may_remove
        except MissingObject:
            return True
        except (Busy, NotStored) as error:
            log.warning("a content stays for now", key=key, reason=str(error)[:300])
            return False

    def keeping(self) -> AbstractContextManager[None]:
        return self._lock.keeping()

    def older_than(self, before: Instant) -> Iterator[str]:
        """Let the store's clock decide the age.

        Raises StoreUnavailable.
        """
        self._claim()
        for each in self._bucket.objects(_FOLDER):
            key = each.name.rpartition("/")[2]
            if each.modified < before and _KEY.fullmatch(key):
                yield key
        try:
            for upload in list(self._bucket.uploads(f"{_FOLDER}/")):
                if upload.began < before:
                    self._bucket.abort(upload)
        except StoreUnavailable as refusal:
            log.warning("unfinished uploads cannot be listed", reason=refusal.sentence)

    def packs(self, before: Instant) -> Iterator[Pack]:  # noqa: ARG002 - the contract's parameter
        return iter(())

    def drop(self, pack: Pack) -> bool:  # noqa: ARG002 - the contract's parameter
        return False

    def _writer(self, key: str) -> S3Writer:
        return S3Writer(self._bucket.open_writer(_name(key)), key, self._claim)

    def _claim(self) -> None:
        """Raises StoreUnavailable if another installation owns the prefix."""
        if self._claimed:
            return
        owner = self._owner().encode()
        try:
            noted_owner = self._bucket.read(_OWNER, 200)
        except MissingObject:
            self._bucket.create(_OWNER, owner)
            noted_owner = self._bucket.read(_OWNER, 200)
        if noted_owner != owner:
            log.error("the content store is another installation's", store=self._bucket.address)
            raise StoreUnavailable("The content store belongs to another installation: give this one another prefix.")
        self._claimed = True

    def _size(self, key: str) -> int:
        if not _KEY.fullmatch(key):
            raise ContentDamaged("The content is missing from the store.")
        try:
            return self._bucket.head(_name(key))
        except MissingObject as error:
            raise ContentDamaged("The content is missing from the store.") from error

    def _check_size(self, content: StoredContent, size: int) -> None:
        if size != content.size:
            raise ContentDamaged("The content no longer has the size with which it was stored.")

    def _block(self, content: StoredContent, start: int, end: int) -> bytes:
        try:
            block, size = self._bucket.get(_name(content.key), start, end)
        except MissingObject as error:
            raise ContentDamaged("The content is missing from the store.") from error
        self._check_size(content, size)
        if len(block) != end - start:
            raise ContentDamaged("The content ends early.")
        return block

    def _blocks(self, key: str, size: int) -> Iterator[bytes]:
        content = StoredContent(key, size, b"")
        for place in range(0, size, _BLOCK):
            yield self._block(content, place, min(place + _BLOCK, size))


def _name(key: str) -> str:
    return f"{_FOLDER}/{key[:2]}/{key}"
