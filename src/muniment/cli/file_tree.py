"""The files of a directory tree, one after the other, each read or open: nothing is followed out of it."""

import hashlib
import math
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from muniment.repository.extraction import plain

SMALL = plain.LARGEST
"""Bytes up to which a file comes read; a larger one comes open."""

_PIECE = 1024 * 1024


class File(NamedTuple):
    """A file of the tree. A small one comes with its bytes, a larger one open, an unchanged one with neither.

    ``path`` is relative to the folder, ``modified`` in nanoseconds since 1970.
    """

    path: str
    size: int
    modified: int
    content: bytes | None = None
    handle: int = -1

    def pieces(self) -> Iterator[bytes]:
        """Read it from its beginning."""
        if self.content is not None:
            return iter([self.content])
        os.lseek(self.handle, 0, os.SEEK_SET)
        return _pieces(self.handle)

    def digest(self) -> str:
        """Say the SHA-256 of what it holds, in hexadecimal."""
        digest = hashlib.sha256()
        for piece in self.pieces():
            digest.update(piece)
        return digest.hexdigest()

    def close(self) -> None:
        """Close it where it is open."""
        if self.handle >= 0:
            os.close(self.handle)


class FileTree:
    """One pass over a folder and all below it, in the order of their names.

    ``enter`` is asked once about each folder, the innermost last, and says whether its files are wanted; ``accept`` is
    asked about each file; what ``unchanged`` says is known already comes without being read. ``limit`` bounds the
    number of files, ``limit_bytes`` their sizes together. A file over ``largest`` bytes is refused. What cannot be
    read is told to ``failed``, with its path and why; symbolic links are counted in ``links``.
    """

    def __init__(
        self,
        folder: Path,
        *,
        enter: Callable[[str], bool],
        accept: Callable[[str], bool],
        unchanged: Callable[[File], bool],
        failed: Callable[[str, str], None],
        largest: int,
        limit: int | None = None,
        limit_bytes: int | None = None,
    ) -> None:
        self._folder = folder
        self._enter = enter
        self._accept = accept
        self._unchanged = unchanged
        self._failed = failed
        self._largest = largest
        self._limit = math.inf if limit is None else limit
        self._limit_bytes = math.inf if limit_bytes is None else limit_bytes
        self.links = 0

    def files(self) -> Iterator[File]:
        """Give the files; whoever takes one that is open closes it."""
        seen, seen_bytes = 0, 0
        if not self._enter(""):
            return
        for root, folders, names, handle in os.fwalk(self._folder, follow_symlinks=False):
            here = os.path.relpath(root, self._folder)
            here = "" if here == "." else here
            folders[:] = [name for name in sorted(folders) if self._is_entered(os.path.join(here, name), name, handle)]
            for name in sorted(names):
                path = os.path.join(here, name)
                file = self._opened(path, name, handle) if self._accept(path) else None
                if file is None:
                    continue
                seen, seen_bytes = seen + 1, seen_bytes + file.size
                if seen > self._limit or seen_bytes > self._limit_bytes:
                    file.close()
                    return
                yield file

    def _is_entered(self, path: str, name: str, handle: int) -> bool:
        if stat.S_ISLNK(os.lstat(name, dir_fd=handle).st_mode):
            self.links += 1
            return False
        return self._enter(path)

    def _opened(self, path: str, name: str, above: int) -> File | None:
        try:
            if stat.S_ISLNK(os.lstat(name, dir_fd=above).st_mode):
                self.links += 1
                return None
            # Without blocking: a named pipe would wait for a writer for ever.
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=above)
        except OSError as error:
            self._failed(path, f"cannot be read: {error.strerror}")
            return None
        try:
            return self._looked_at(path, handle)
        except OSError as error:
            os.close(handle)
            self._failed(path, f"cannot be read: {error.strerror}")
            return None

    def _looked_at(self, path: str, handle: int) -> File | None:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size > self._largest:
            os.close(handle)
            regular = stat.S_ISREG(about.st_mode)
            self._failed(path, "larger than max_content_bytes allows" if regular else "not a regular file")
            return None
        file = File(path, about.st_size, about.st_mtime_ns)
        if self._unchanged(file):
            os.close(handle)
            return file
        content = b"".join(_pieces(handle, SMALL + 1)) if file.size <= SMALL else None
        if content is None or len(content) > SMALL:
            return file._replace(handle=handle)
        os.close(handle)
        return file._replace(content=content)


def printable(path: str) -> str:
    """Spell a path, or a name, as text, whatever bytes it has."""
    return os.fsencode(path).decode("utf-8", "replace")


def _pieces(handle: int, most: int | None = None) -> Iterator[bytes]:
    left = _PIECE if most is None else most
    while left > 0 and (piece := os.read(handle, min(left, _PIECE))):
        yield piece
        left -= len(piece) if most is not None else 0
