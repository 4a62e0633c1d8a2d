"""The built-in content store: a file for each content, in folders of the data folder, never whole in memory.

A file is written beside its place, brought to the disk, then renamed into it. A crash before the rename leaves a part
in ``incoming``, a crash after it a file that no object names; both are found by their age.
"""

import errno
import hashlib
import os
import re
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import structlog

from muniment import disk, locks
from muniment.clock import SECOND, Instant
from muniment.repository.content.contract import PIECE, StoredContent
from muniment.repository.refusals import ContentDamaged
from muniment.web.refusals import NotStored

log = structlog.get_logger("muniment.content")

_REFUSED_BY_DISK = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
}

_KEY = re.compile(r"[0-9a-f]{32}")


class FileWriter:
    """Content on its way into a file (a ContentWriter)."""

    def __init__(self, folder: Path, key: str) -> None:
        self._folder = folder
        self._key = key
        self._part = folder / "incoming" / key
        self._digest = hashlib.sha256()
        self._size = 0
        # A request may be given up while a thread still writes for it: the file must not be closed under its hands.
        self._lock = threading.Lock()
        with _kept():
            self._file: BinaryIO | None = disk.create(self._part, buffering=0)

    def write(self, *pieces: bytes) -> None:
        """Add bytes, in one or several pieces. Raises NotStored."""
        piece = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        with self._lock, _kept():
            _write(self._opened(), piece)
            self._digest.update(piece)
            self._size += len(piece)

    def finish(self) -> StoredContent:
        """Keep what was written: from here on it survives a power cut. Raises NotStored; then nothing is kept."""
        with self._lock, _kept():
            file = self._opened()
            try:
                os.fsync(file.fileno())
                place = _place(self._folder, self._key)
                _make_folders(place.parent, self._folder)
                os.rename(self._part, place)
                disk.sync(place.parent)
            except BaseException:
                self._drop(file)
                raise
            file.close()
            self._file = None
        return StoredContent(self._key, self._size, self._digest.digest())

    def abort(self) -> None:
        """Forget what was written. After ``finish`` it does nothing."""
        with self._lock:
            if self._file is not None:
                self._drop(self._file)

    def _opened(self) -> BinaryIO:
        if self._file is None:
            raise ValueError("this content is finished or given up")
        return self._file

    def _drop(self, file: BinaryIO) -> None:
        file.close()
        self._file = None
        _let_go(self._part)


class FileStore:
    """A folder that holds every content (a ContentStore).

    ``copies`` says that it is a backup's folder: nothing is made in it but what is adopted.
    """

    def __init__(self, folder: Path, *, copies: bool = False) -> None:
        self._folder = folder
        if copies:
            return
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _close_to_others(folder, folder.stat().st_mode)
        (folder / "incoming").mkdir(mode=0o700, exist_ok=True)

    def writer(self) -> FileWriter:
        """Begin to keep new content."""
        return FileWriter(self._folder, uuid.uuid4().hex)

    def put(self, pieces: Iterable[bytes]) -> StoredContent:
        """Keep these bytes; if the pieces end with an exception, nothing is kept."""
        writer = self.writer()
        try:
            for piece in pieces:
                writer.write(piece)
            return writer.finish()
        except BaseException:
            writer.abort()
            raise

    def put_all(self, contents: Sequence[bytes]) -> list[StoredContent]:
        """Keep several small contents at once: when this returns, all of them survive a power cut.

        Raises NotStored; then nothing is kept.
        """
        # One folder for all: it is brought to the disk once, not once for each.
        shared = uuid.uuid4().hex[:4]
        kept: list[StoredContent] = []
        incoming = self._folder / "incoming"
        place = _place(self._folder, shared + uuid.uuid4().hex[4:]).parent
        try:
            with _kept():
                for content in contents:
                    key = shared + uuid.uuid4().hex[4:]
                    kept.append(StoredContent(key, len(content), hashlib.sha256(content).digest()))
                    with disk.create(f"{incoming}/{key}", buffering=0) as part:
                        _write(part, content)
                for each in kept:
                    disk.sync(f"{incoming}/{each.key}")
                _make_folders(place, self._folder)
                for each in kept:
                    os.rename(f"{incoming}/{each.key}", f"{place}/{each.key}")
                disk.sync(place)
        except BaseException:
            for each in kept:
                _let_go(incoming / each.key)
                self.remove(each.key)
            raise
        return kept

    def adopt(self, content: StoredContent, pieces: Iterable[bytes]) -> bool:
        """Keep a copy from another store under the key that it has there, and say whether it is whole: else nothing is.

        It is not brought to the disk: who adopts many does that once.
        """
        place = _place(self._folder, content.key)
        for folder in (place.parent.parent, place.parent):
            folder.mkdir(mode=0o700, exist_ok=True)
        with disk.create(place, buffering=0) as copied:
            try:
                for piece in pieces:
                    _write(copied, piece)
            except ContentDamaged:
                place.unlink()
                return False
        return True

    @contextmanager
    def local(self, key: str) -> Iterator[BinaryIO]:
        """Open the content's own file. Raises ContentDamaged when there is none under the key."""
        with self._open(key) as file:
            yield file

    def read(self, content: StoredContent, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Yield bytes, piece by piece.

        Raises ContentDamaged at the first piece when size or presence is wrong, and before the last piece when
        all of it was read and its digest is wrong: damaged content is never given back whole.
        """
        whole = start == 0 and (length is None or length >= content.size)
        with self._open(content.key) as file:
            if os.fstat(file.fileno()).st_size != content.size:
                raise ContentDamaged("The content does not have the size it was kept with.")
            file.seek(start)
            left = content.size - start if length is None else min(length, content.size - start)
            digest = hashlib.sha256()
            while left > 0:
                piece = file.read(min(PIECE, left))
                if not piece:
                    raise ContentDamaged("The content ends early.")
                left -= len(piece)
                if whole:
                    digest.update(piece)
                    if left == 0 and digest.digest() != content.sha256:
                        raise ContentDamaged("The content is not what was kept.")
                yield piece

    def verify(self, key: str, sha256: bytes) -> bool:
        """Say whether the content is still what was kept."""
        try:
            with self._open(key) as file:
                digest = hashlib.sha256()
                while piece := file.read(PIECE):
                    digest.update(piece)
                return digest.digest() == sha256
        except ContentDamaged:
            return False

    def remove(self, key: str) -> bool:
        """Let content go, and say whether it may; who is reading it reads on. Nothing happens when there is none.

        What the disk does not let go, or what is being kept for a backup, stays, named by nothing, until a later search
        for such content (``older_than``).
        """
        with suppress(ValueError), self._removing() as allowed:
            if allowed:
                _let_go(_place(self._folder, key))
            return allowed
        return False

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Let no process remove content while the block runs. Who is removing some is waited for, and who keeps it too.

        The right ends with the process that holds it.
        """
        with self._removals() as lock:
            locks.take(lock)
            yield

    def _open(self, key: str) -> BinaryIO:
        try:
            return open(_place(self._folder, key), "rb", buffering=0)
        except (FileNotFoundError, ValueError) as error:
            raise ContentDamaged("The content is missing from the store.") from error

    @contextmanager
    def _removing(self) -> Iterator[bool]:
        """Say whether content may be removed while the block runs: not while somebody keeps all of it."""
        with self._removals() as lock:
            try:
                locks.take(lock, wait=False, shared=True)
            except locks.Held:
                yield False
            else:
                yield True

    @contextmanager
    def _removals(self) -> Iterator[int]:
        try:
            lock = locks.open_file(self._folder / "removals.lock")
        except OSError as error:
            if error.errno not in _REFUSED_BY_DISK:
                raise
            lock = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)  # the disk takes no removal either
        try:
            yield lock
        finally:
            os.close(lock)

    def older_than(self, before: Instant) -> Iterator[str]:
        """Name every content last written before the instant; parts of that age in ``incoming`` are removed.

        Files that a former release left readable to others are closed to them on the way.
        """
        limit = before / SECOND
        for part in (self._folder / "incoming").iterdir():
            with suppress(FileNotFoundError):
                if part.stat().st_mtime < limit:
                    part.unlink()
        for first in sorted(_folders(self._folder)):
            for second in sorted(_folders(first)):
                for place in sorted(second.iterdir()):
                    with suppress(FileNotFoundError):
                        seen = place.stat()
                        _close_to_others(place, seen.st_mode)
                        if _KEY.fullmatch(place.name) and seen.st_mtime < limit:
                            yield place.name


@contextmanager
def _kept() -> Iterator[None]:
    """Tell a disk that takes nothing from a bug."""
    try:
        yield
    except OSError as error:
        if error.errno not in _REFUSED_BY_DISK:
            raise
        raise NotStored(f"The content cannot be kept: {os.strerror(error.errno).lower()}.") from error


def _let_go(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        if error.errno not in _REFUSED_BY_DISK:
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
        if error.errno not in _REFUSED_BY_DISK:
            raise
        log.warning("others may read this", path=str(path), reason=os.strerror(error.errno).lower())


def _write(file: BinaryIO, piece: bytes) -> None:
    left = memoryview(piece)
    while left:
        left = left[file.write(left) or 0 :]


def _folders(folder: Path) -> Iterator[Path]:
    return (child for child in folder.iterdir() if len(child.name) == 2 and child.is_dir())
