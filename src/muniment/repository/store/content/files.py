"""The built-in content store: a folder with files of one content each, and with packs of many small contents.

A file is written to ``incoming``, synced to the disk, then renamed to its place. A crash leaves a part in ``incoming``,
or a file that no object names: the sweep finds both by their age. Module ``packs`` describes the packs.
"""

import hashlib
import io
import os
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

import structlog

from muniment.ground import disk, locks
from muniment.ground.clock import SECOND, Instant
from muniment.ground.disk import Reserve
from muniment.repository.refusals import ContentDamaged
from muniment.repository.store.content import packs
from muniment.repository.store.content.contract import PIECE, ContentWriter, Pack, StoredContent, write_all
from muniment.repository.store.content.disk_errors import REFUSED_BY_DISK, disk_refusals
from muniment.repository.store.content.packs import Packs

log = structlog.get_logger("muniment.content")

NO_RESERVE = Reserve((), 0)

_KEY = re.compile(r"[0-9a-f]{32}")


class FileWriter:
    """Writes one content to a file (a ContentWriter)."""

    def __init__(self, folder: Path, key: str, reserve: Reserve) -> None:
        self._folder = folder
        self._key = key
        self._reserve = reserve
        self._part = folder / "incoming" / key
        self._digest = hashlib.sha256()
        self._size = 0
        # A request may end while a thread still writes for it: the lock keeps the file open until the thread is done.
        self._lock = threading.Lock()
        with disk_refusals():
            reserve.check()
            self._file: BinaryIO | None = disk.create(self._part, buffering=0)

    def write(self, *pieces: bytes) -> None:
        piece = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        with self._lock, disk_refusals():
            self._reserve.check()
            _write(self._open_file(), piece)
            self._digest.update(piece)
            self._size += len(piece)

    def finish(self) -> StoredContent:
        with self._lock, disk_refusals():
            file, place = self._open_file(), _place(self._folder, self._key)
            try:
                os.fsync(file.fileno())
                _make_folders(place.parent, self._folder)
                os.rename(self._part, place)
                disk.sync(place.parent)
            except BaseException:
                self._drop(file)
                _unlink(place)
                raise
            file.close()
            self._file = None
        return StoredContent(self._key, self._size, self._digest.digest())

    def abort(self) -> None:
        with self._lock:
            if self._file is not None:
                self._drop(self._file)

    def _open_file(self) -> BinaryIO:
        if self._file is None:
            raise ValueError("this content was finished or aborted")
        return self._file

    def _drop(self, file: BinaryIO) -> None:
        file.close()
        self._file = None
        _unlink(self._part)


class Packing(NamedTuple):
    """Contents of at most ``largest`` bytes go to packs, whose age ``clock`` tells."""

    largest: int
    clock: Callable[[], Instant]


class SmallFirstWriter:
    """Writes small content to a pack, other content to a file (a ContentWriter)."""

    def __init__(self, packs: Packs, packing: Packing, file_writer: Callable[[], FileWriter], reserve: Reserve) -> None:
        self._packs = packs
        self._reserve = reserve
        self._packing = packing
        self._file_writer = file_writer
        self._lock = threading.Lock()
        self._pieces: list[bytes] | None = []
        self._size = 0
        self._large: FileWriter | None = None

    def write(self, *pieces: bytes) -> None:
        with self._lock:
            self._open_pieces().extend(pieces)
            self._size += sum(map(len, pieces))
            if self._size > self._packing.largest:
                self._large = self._large or self._file_writer()
                self._large.write(*self._open_pieces())
                self._pieces = []

    def finish(self) -> StoredContent:
        with self._lock:
            pieces, self._pieces = self._open_pieces(), None
            if self._large is not None:
                return self._large.finish()
            with disk_refusals():
                self._reserve.check()
                return self._packs.append([b"".join(pieces)], self._packing.clock())[0]

    def abort(self) -> None:
        with self._lock:
            self._pieces = None
            if self._large is not None:
                self._large.abort()

    def _open_pieces(self) -> list[bytes]:
        if self._pieces is None:
            raise ValueError("this content was finished or aborted")
        return self._pieces


class FileStore:
    """A folder that holds every content (a ContentStore).

    Without ``packing`` no new content goes to a pack. With ``copies``, the folder is that of a backup, and only
    ``adopt`` writes to it. New content, but not ``adopt``, is refused where less than the ``reserve`` is free.
    """

    def __init__(
        self, folder: Path, *, packing: Packing | None = None, copies: bool = False, reserve: Reserve = NO_RESERVE
    ) -> None:
        self._folder = folder
        self._reserve = reserve
        self._packing = packing
        self._packs = Packs(folder / "packs")
        if copies:
            return
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _close_to_others(folder, folder.stat().st_mode)
        (folder / "incoming").mkdir(mode=0o700, exist_ok=True)

    def writer(self) -> ContentWriter:
        if self._packing is None:
            return self._file_writer()
        return SmallFirstWriter(self._packs, self._packing, self._file_writer, self._reserve)

    def put(self, pieces: Iterable[bytes]) -> StoredContent:
        return write_all(self.writer(), pieces)

    def put_all(self, contents: Sequence[bytes]) -> list[StoredContent]:
        if self._packing is None:
            return self._put_files(contents)
        largest = self._packing.largest
        small = [content for content in contents if len(content) <= largest]
        in_files = self._put_files([content for content in contents if len(content) > largest])
        try:
            with disk_refusals():
                self._reserve.check()
                in_packs = self._packs.append(small, self._packing.clock()) if small else []
        except BaseException:
            for each in in_files:
                self.remove(each.key)
            raise
        files_left, packs_left = iter(in_files), iter(in_packs)
        return [next(packs_left if len(each) <= largest else files_left) for each in contents]

    def _file_writer(self) -> FileWriter:
        return FileWriter(self._folder, uuid.uuid4().hex, self._reserve)

    def _put_files(self, contents: Sequence[bytes]) -> list[StoredContent]:
        if not contents:
            return []
        # All contents go to one folder, so that one sync is enough for their names.
        folder_name = uuid.uuid4().hex[:4]
        new_contents: list[StoredContent] = []
        incoming = self._folder / "incoming"
        place = _place(self._folder, folder_name + uuid.uuid4().hex[4:]).parent
        try:
            with disk_refusals():
                self._reserve.check()
                for content in contents:
                    key = folder_name + uuid.uuid4().hex[4:]
                    new_contents.append(StoredContent(key, len(content), hashlib.sha256(content).digest()))
                    with disk.create(f"{incoming}/{key}", buffering=0) as part:
                        _write(part, content)
                for each in new_contents:
                    disk.sync(f"{incoming}/{each.key}")
                _make_folders(place, self._folder)
                for each in new_contents:
                    os.rename(f"{incoming}/{each.key}", f"{place}/{each.key}")
                disk.sync(place)
        except BaseException:
            for each in new_contents:
                _unlink(incoming / each.key)
                self.remove(each.key)
            raise
        return new_contents

    def adopt(self, content: StoredContent, pieces: Iterable[bytes]) -> bool:
        """Do as ``ContentStore.adopt``: the caller syncs the disk once after all copies."""
        if packs.is_key(content.key):
            try:
                whole = b"".join(pieces)
            except ContentDamaged:
                return False
            self._packs.adopt(content, whole)
            return True
        place = _place(self._folder, content.key)
        for folder in (place.parent.parent, place.parent):
            folder.mkdir(mode=0o700, exist_ok=True)
        with disk.create(place, buffering=0) as copy:
            try:
                for piece in pieces:
                    _write(copy, piece)
            except ContentDamaged:
                place.unlink()
                return False
        return True

    @contextmanager
    def local(self, key: str) -> Iterator[BinaryIO]:
        """Packed content is copied to a file in memory.

        Raises ContentDamaged if there is no content under the key.
        """
        if not packs.is_key(key):
            with self._open(key) as file:
                yield file
            return
        _, content = self._packs.read(key)
        with open(os.memfd_create("content"), "w+b", buffering=0) as copy:
            _write(copy, content)
            copy.seek(0)
            yield copy

    def read(self, content: StoredContent, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Check the digest of packed content before the first piece, of other content before the last, and not at all
        if only a part of it is read.
        """
        if packs.is_key(content.key):
            yield from self._read_packed(content, start, length)
            return
        whole = start == 0 and (length is None or length >= content.size)
        with self._open(content.key) as file:
            if os.fstat(file.fileno()).st_size != content.size:
                raise ContentDamaged("The content no longer has the size with which it was stored.")
            file.seek(start)
            bytes_left = content.size - start if length is None else min(length, content.size - start)
            digest = hashlib.sha256()
            while bytes_left > 0:
                piece = file.read(min(PIECE, bytes_left))
                if not piece:
                    raise ContentDamaged("The content ends early.")
                bytes_left -= len(piece)
                if whole:
                    digest.update(piece)
                    if bytes_left == 0 and digest.digest() != content.sha256:
                        raise ContentDamaged("The content no longer has the digest with which it was stored.")
                yield piece

    def verify(self, key: str, sha256: bytes) -> bool:
        try:
            if packs.is_key(key):
                return hashlib.sha256(self._packs.read(key)[1]).digest() == sha256
            with self._open(key) as file:
                return hashlib.file_digest(file, "sha256").digest() == sha256
        except ContentDamaged:
            return False

    def remove(self, key: str) -> bool:
        with suppress(ValueError), self._removing() as may_remove:
            if may_remove and packs.is_key(key):
                self._packs.erase(key)
            elif may_remove:
                _unlink(_place(self._folder, key))
            return may_remove
        return False

    def packs(self, before: Instant) -> Iterator[Pack]:
        return self._packs.ended_before(before)

    def drop(self, pack: Pack) -> bool:
        with self._removing() as may_remove:
            if may_remove:
                self._packs.drop(pack)
            return may_remove

    @contextmanager
    def keeping(self) -> Iterator[None]:
        with self._removals() as lock:
            locks.take(lock)
            yield

    def _read_packed(self, content: StoredContent, start: int, length: int | None) -> Iterator[bytes]:
        sha256, whole = self._packs.read(content.key, content.size)
        if len(whole) != content.size:
            raise ContentDamaged("The content no longer has the size with which it was stored.")
        if not sha256 == hashlib.sha256(whole).digest() == content.sha256:
            raise ContentDamaged("The content no longer has the digest with which it was stored.")
        piece = whole[start : None if length is None else start + length]
        if piece:
            yield piece

    def _open(self, key: str) -> io.FileIO:
        try:
            return open(_place(self._folder, key), "rb", buffering=0)
        except (FileNotFoundError, ValueError) as error:
            raise ContentDamaged("The content is missing from the store.") from error

    @contextmanager
    def _removing(self) -> Iterator[bool]:
        with self._removals() as lock:
            yield locks.share(lock)

    @contextmanager
    def _removals(self) -> Iterator[int]:
        try:
            lock = locks.open_file(self._folder / "removals.lock")
        except OSError as error:
            if error.errno not in REFUSED_BY_DISK:
                raise
            # A disk that refuses a lock file refuses removals, too, so a lock of the folder is enough.
            lock = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield lock
        finally:
            os.close(lock)

    def older_than(self, before: Instant) -> Iterator[str]:
        """Earlier releases may have let other users of the system read files: this takes that access away."""
        limit = before / SECOND
        for part in (self._folder / "incoming").iterdir():
            with suppress(FileNotFoundError):
                if part.stat().st_mtime < limit:
                    part.unlink()
        for first in sorted(_folders(self._folder)):
            for second in sorted(_folders(first)):
                for place in sorted(second.iterdir()):
                    with suppress(FileNotFoundError):
                        status = place.stat()
                        _close_to_others(place, status.st_mode)
                        if _KEY.fullmatch(place.name) and status.st_mtime < limit:
                            yield place.name


def _unlink(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        if error.errno not in REFUSED_BY_DISK:
            raise
        log.warning("a file cannot be removed", file=str(file), reason=os.strerror(error.errno).lower())


def _place(folder: Path, key: str) -> Path:
    if not _KEY.fullmatch(key):
        raise ValueError("not a key of this store")
    return folder / key[:2] / key[2:4] / key


def _make_folders(folder: Path, root: Path) -> None:
    if folder == root or folder.is_dir():
        return
    _make_folders(folder.parent, root)
    folder.mkdir(mode=0o700, exist_ok=True)
    disk.sync(folder.parent)


def _close_to_others(path: Path, mode: int) -> None:
    if not mode & 0o077:
        return
    try:
        path.chmod(mode & 0o700)
    except OSError as error:
        if error.errno not in REFUSED_BY_DISK:
            raise
        log.warning("others may read this", path=str(path), reason=os.strerror(error.errno).lower())


def _write(file: BinaryIO, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[file.write(rest) or 0 :]


def _folders(folder: Path) -> Iterator[Path]:
    return (child for child in folder.iterdir() if len(child.name) == 2 and child.is_dir())
