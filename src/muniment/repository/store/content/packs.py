"""Packs: files to which small contents are appended, so that one sync brings many of them to the disk (decision 0040).
Each content has a header (magic, size, SHA-256), then its bytes. A process appends only to its own pack, and nobody
once it has ended, or the pack is full or a day old. A crash may leave bytes at the end that no object names. A key
names its pack and the place in it. A removal overwrites the content with zeros.
"""

import hashlib
import os
import re
import struct
import threading
import uuid
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog

from muniment.ground import disk, locks
from muniment.ground.clock import SECOND, Instant
from muniment.repository.refusals import ContentDamaged
from muniment.repository.store.content.contract import PIECE, Pack, StoredContent
from muniment.repository.store.content.disk_errors import REFUSED_BY_DISK

log = structlog.get_logger("muniment.content")

LARGEST = PIECE
"""Such a content, so many bytes at most, is read in one piece."""

_HEADER = struct.Struct(">4sI32s")
_MAGIC, _ERASED = b"MPK1", b"MPK0"
_FULL_BYTES = 64 << 20
_LIFE: Instant = 86_400 * SECOND

_KEY = re.compile(r"([0-9a-f]{12}8[0-9a-f]{11})([0-9a-f]{8})")
_NAME = re.compile(r"[0-9a-f]{12}8[0-9a-f]{11}")
_MILLISECOND: Instant = SECOND // 1000
_FIRST_LOOK = 4096


def is_key(key: str) -> bool:
    """The thirteenth digit of a packed content's key is 8, which no key of a file has."""
    return _KEY.fullmatch(key) is not None


class Packs:
    """The packs of one folder; threads that append at the same time share a sync."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: deque[_Batch] = deque()
        self._turn = threading.Lock()
        self._current: _OpenPack | None = None

    def append(self, contents: Sequence[bytes], now: Instant) -> list[StoredContent]:
        """Return when all are on the disk. Raises OSError; then none is kept.

        While one thread writes, the contents of others wait, and share the next sync.
        """
        batch = _Batch(contents)
        self._waiting.append(batch)
        with self._turn:
            if batch.stored is None and batch.failure is None:
                self._write_waiting(now)
        if batch.stored is None:
            # Each thread raises an exception of its own.
            failure = batch.failure
            raise OSError(*failure.args) if isinstance(failure, OSError) else InterruptedError from failure
        return batch.stored

    def read(self, key: str, size: int | None = None) -> tuple[bytes, bytes]:
        """Return the digest in the header and the bytes, which are not compared.

        Raises ContentDamaged, OSError. With ``size``, one read of the disk is enough.
        """
        with self._open(key, os.O_RDONLY) as (file, offset):
            return _read(file, offset, _FIRST_LOOK if size is None else _HEADER.size + size)

    def erase(self, key: str) -> None:
        """Overwrite a content with zeros; an error of the disk is logged.

        The header still tells the size. The space becomes free only when the pack is dropped.
        """
        try:
            with suppress(ContentDamaged), self._open(key, os.O_RDWR) as (file, offset):
                _, content = _read(file, offset, _FIRST_LOOK)
                _write(file, _HEADER.pack(_ERASED, len(content), bytes(32)) + bytes(len(content)), offset)
        except OSError as error:
            if error.errno not in REFUSED_BY_DISK:
                raise
            log.warning("a content cannot be erased", key=key, reason=os.strerror(error.errno).lower())

    def adopt(self, content: StoredContent, whole: bytes) -> None:
        """Copy a packed content to the same place of the same pack, without a sync.

        Raises OSError.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)
        with self._open(content.key, os.O_RDWR | os.O_CREAT) as (file, offset):
            _write(file, _HEADER.pack(_MAGIC, content.size, content.sha256) + whole, offset)

    def ended_before(self, before: Instant) -> Iterator[Pack]:
        """Yield the packs begun more than a day before the instant that no process has open: all their contents are
        older than it.
        """
        try:
            names = sorted(os.listdir(self._folder))
        except FileNotFoundError:
            return
        for name in names:
            if _NAME.fullmatch(name) and int(name[:12], 16) * _MILLISECOND + _LIFE < before:
                with suppress(FileNotFoundError, locks.Held):
                    file = os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)
                    try:
                        locks.take(file, wait=False, shared=True)
                        size = os.fstat(file).st_size
                    finally:
                        os.close(file)
                    yield Pack(f"{name}{0:08x}", f"{name}{0xFFFFFFFF:08x}", size, _HEADER.size)

    def drop(self, pack: Pack) -> None:
        """Raises OSError."""
        (self._folder / pack.first[:24]).unlink(missing_ok=True)

    def _write_waiting(self, now: Instant) -> None:
        batches = [self._waiting.popleft() for _ in range(len(self._waiting))]
        try:
            pack = self._pack(now)
            end = pack.end
            for batch in batches:
                end = batch.place(pack.name, end)
            try:
                _write(pack.file, b"".join(part for batch in batches for part in batch.parts()), pack.end)
                os.fdatasync(pack.file)
            except BaseException:
                # What the disk has after a failed write or sync is unknown, so nothing is ever appended to it.
                self._current = None
                pack.give_up()
                raise
            pack.end = end
        except BaseException as error:
            for batch in batches:
                batch.failure = error
            if not isinstance(error, OSError):
                raise
            return
        for batch in batches:
            batch.stored = batch.places

    def _pack(self, now: Instant) -> "_OpenPack":
        if self._current is not None and (self._current.end >= _FULL_BYTES or now >= self._current.until):
            self._current.close()
            self._current = None
        if self._current is None:
            self._current = _OpenPack(self._folder, now)
        return self._current

    @contextmanager
    def _open(self, key: str, flags: int) -> Iterator[tuple[int, int]]:
        """Yield the pack's descriptor and the content's place in it.

        Raises ContentDamaged.
        """
        parts = _KEY.fullmatch(key)
        if parts is None:
            raise ContentDamaged("The content is missing from the store.")
        try:
            file = os.open(self._folder / parts[1], flags | os.O_CLOEXEC, 0o600)
        except FileNotFoundError as error:
            raise ContentDamaged("The content is missing from the store.") from error
        try:
            yield file, int(parts[2], 16)
        finally:
            os.close(file)


class _Batch:
    def __init__(self, contents: Sequence[bytes]) -> None:
        self._contents = contents
        self._digests = [hashlib.sha256(content).digest() for content in contents]
        self.places: list[StoredContent] = []
        self.stored: list[StoredContent] | None = None
        self.failure: BaseException | None = None

    def place(self, pack: str, offset: int) -> int:
        for content, digest in zip(self._contents, self._digests, strict=True):
            self.places.append(StoredContent(f"{pack}{offset:08x}", len(content), digest))
            offset += _HEADER.size + len(content)
        return offset

    def parts(self) -> Iterator[bytes]:
        for content, digest in zip(self._contents, self._digests, strict=True):
            yield _HEADER.pack(_MAGIC, len(content), digest)
            yield content


class _OpenPack:
    """A new pack, locked while this process writes to it."""

    def __init__(self, folder: Path, now: Instant) -> None:
        self.name = f"{now // _MILLISECOND:012x}8{uuid.uuid4().hex[-11:]}"
        self.end = 0
        self.until = now + _LIFE
        self._path = folder / self.name
        # The folder is made only now, so that packs on a read-only disk can be read.
        folder.mkdir(mode=0o700, exist_ok=True)
        self.file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self.close = weakref.finalize(self, os.close, self.file)
        try:
            locks.take(self.file)
            disk.sync(folder)
            disk.sync(folder.parent)
        except BaseException:
            self.give_up()
            raise

    def give_up(self) -> None:
        with suppress(OSError):
            if self.end:
                os.ftruncate(self.file, self.end)
            else:
                self._path.unlink(missing_ok=True)
        self.close()


def _read(file: int, offset: int, first_look: int) -> tuple[bytes, bytes]:
    data = os.pread(file, first_look, offset)
    if len(data) < _HEADER.size:
        raise ContentDamaged("The content is missing from the store.")
    magic, size, sha256 = _HEADER.unpack_from(data)
    if magic != _MAGIC or size > LARGEST:
        raise ContentDamaged("The content is missing from the store.")
    content = data[_HEADER.size : _HEADER.size + size]
    if len(content) < size:
        content += os.pread(file, size - len(content), offset + _HEADER.size + len(content))
    if len(content) < size:
        raise ContentDamaged("The content ends early.")
    return sha256, content


def _write(file: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        count = os.pwrite(file, rest, offset)
        rest, offset = rest[count:], offset + count
