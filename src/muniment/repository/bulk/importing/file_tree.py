"""Walk the files of a folder, one after the other, without following symbolic links."""

import hashlib
import math
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from muniment.ground.clock import Instant
from muniment.repository.bulk.importing import settling
from muniment.repository.store.extraction import formats
from muniment.repository.store.extraction.readers import plain

SMALL = plain.LARGEST
"""``files`` yields smaller files with their content."""

_PIECE = 1024 * 1024
_HEAD = formats.HEAD
_EARLIEST, _LATEST = -(2**63), 2**63 - 1
"""A database holds nanoseconds from 1677 to 2262; a broken file system reports others."""

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FolderContents(NamedTuple):
    """Files have their sizes by path; ``unreadable`` are folders."""

    files: dict[str, int]
    folders: list[str]
    unreadable: list[tuple[str, str]]


class SourceFile(NamedTuple):
    """A small file with its bytes, a larger one open, an unchanged one with neither.

    ``path`` is relative to the folder, ``modified`` in nanoseconds since 1970, in 64 bits.
    """

    path: str
    size: int
    modified: int
    content: bytes | None = None
    handle: int = -1

    @property
    def date(self) -> Instant:
        """Cut the modification to milliseconds."""
        return self.modified // 1_000_000 * 1000

    @property
    def head(self) -> bytes:
        return os.pread(self.handle, _HEAD, 0) if self.handle >= 0 else (self.content or b"")[:_HEAD]

    def pieces(self) -> Iterator[bytes]:
        if self.content is not None:
            return iter([self.content])
        os.lseek(self.handle, 0, os.SEEK_SET)
        return _pieces(self.handle)

    def digest(self) -> str:
        digest = hashlib.sha256()
        for piece in self.pieces():
            digest.update(piece)
        return digest.hexdigest()

    def close(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)


class _OpenFolder(NamedTuple):
    """``folders`` also has the links that lead to folders."""

    path: str
    folders: list[str]
    names: list[str]
    handle: int


class FileTree:
    """One pass over a folder and all below it, in the order of names.

    ``enter`` is called once for each folder, before those in it, and decides whether to go in. A file that
    ``is_unchanged`` is not read. ``limit`` bounds the files, ``limit_bytes`` their total; one over ``largest`` bytes is
    unreadable, which ``note_failure`` learns with the reason.

    A file that is not ``is_settled``, by its descriptor, is still being written, and left out. So are names with a dot
    first without ``hidden``, and without ``unfinished`` those of unfinished downloads (``settling``). ``links`` counts
    symbolic links, ``left_out`` hidden names, ``unsettled`` the files still being written.
    """

    def __init__(
        self,
        folder: Path,
        *,
        enter: Callable[[str], bool],
        accept: Callable[[str], bool],
        is_unchanged: Callable[[SourceFile], bool],
        note_failure: Callable[[str, str], None],
        largest: int,
        hidden: bool = False,
        unfinished: bool = True,
        is_settled: Callable[[SourceFile, int], bool] = lambda _file, _descriptor: True,
        limit: int | None = None,
        limit_bytes: int | None = None,
    ) -> None:
        self._folder = folder
        self._enter = enter
        self._accept = accept
        self._is_unchanged = is_unchanged
        self._note_failure = note_failure
        self._largest = largest
        self._with_hidden, self._with_unfinished = hidden, unfinished
        self._is_settled = is_settled
        self._limit = math.inf if limit is None else limit
        self._limit_bytes = math.inf if limit_bytes is None else limit_bytes
        self.links = self.left_out = self.unsettled = 0

    def contents(self) -> FolderContents:
        """List folders and accepted files, also those that cannot be imported, without opening any."""
        whole_tree = FolderContents({}, [""], [])

        def note(path: str, error: OSError) -> None:
            whole_tree.unreadable.append((path or ".", error.strerror or ""))

        for folder, folders, names, handle in self._walk(note):
            visible_names = (*sorted(self._visible(folders)), *sorted(self._visible(names)))
            folders.clear()
            for name in visible_names:
                path = os.path.join(folder, name)
                try:
                    about = os.lstat(name, dir_fd=handle)
                except FileNotFoundError:
                    continue  # it is gone already
                except OSError as error:  # such as a folder that may be listed and not searched
                    note(folder, error)
                    folders.clear()
                    break
                if stat.S_ISDIR(about.st_mode):
                    folders.append(name)
                    whole_tree.folders.append(path)
                elif stat.S_ISREG(about.st_mode) and self._accept(path):
                    whole_tree.files[path] = about.st_size
        return whole_tree

    def digest(self, path: str) -> str:
        """Return hexadecimal SHA-256, or an empty text if the file cannot be read."""
        try:
            handle = os.open(self._folder / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return ""
        file = SourceFile(path, 0, 0, handle=handle)
        try:
            return file.digest()
        except OSError:
            return ""
        finally:
            file.close()

    def files(self) -> Iterator[SourceFile]:
        """If a file is yielded open, the caller closes it."""
        count, total = 0, 0
        if not self._enter(""):
            return
        for folder, folders, names, handle in self._walk(self._not_listed):
            self.left_out += sum(self._is_left_out(name) for name in (*folders, *names))
            folders[:] = [
                name
                for name in sorted(self._visible(folders))
                if self._is_entered(os.path.join(folder, name), name, handle)
            ]
            for name in sorted(self._visible(names)):
                path = os.path.join(folder, name)
                file = self._open(path, name, handle) if self._accept(path) else None
                if file is None:
                    continue
                count, total = count + 1, total + file.size
                if count > self._limit or total > self._limit_bytes:
                    file.close()
                    return
                yield file

    def _walk(self, note: Callable[[str, OSError], None]) -> Iterator[_OpenFolder]:
        handle = os.open(self._folder, _FOLDER_FLAGS)
        try:
            yield from _walk(handle, note)
        finally:
            os.close(handle)

    def _not_listed(self, path: str, error: OSError) -> None:
        self._note_failure(path or ".", f"cannot be read: {error.strerror}")

    def _is_left_out(self, name: str) -> bool:
        return not self._with_hidden and name.startswith(".")

    def _visible(self, names: Iterable[str]) -> Iterator[str]:
        return (
            name
            for name in names
            if not self._is_left_out(name) and (self._with_unfinished or not settling.is_unfinished(name))
        )

    def _is_entered(self, path: str, name: str, handle: int) -> bool:
        try:
            is_link = stat.S_ISLNK(os.lstat(name, dir_fd=handle).st_mode)
        except OSError as error:
            self._note_failure(path, f"cannot be read: {error.strerror}")
            return False
        if is_link:
            self.links += 1
            return False
        return self._enter(path)

    def _open(self, path: str, name: str, above: int) -> SourceFile | None:
        try:
            if stat.S_ISLNK(os.lstat(name, dir_fd=above).st_mode):
                self.links += 1
                return None
            # Without O_NONBLOCK, opening a named pipe would wait for a writer for ever.
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=above)
        except OSError as error:
            self._note_failure(path, f"cannot be read: {error.strerror}")
            return None
        try:
            return self._inspect(path, handle)
        except OSError as error:
            os.close(handle)
            self._note_failure(path, f"cannot be read: {error.strerror}")
            return None

    def _inspect(self, path: str, handle: int) -> SourceFile | None:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size > self._largest:
            os.close(handle)
            regular = stat.S_ISREG(about.st_mode)
            self._note_failure(path, "larger than max_content_bytes allows" if regular else "not a regular file")
            return None
        file = SourceFile(path, about.st_size, max(_EARLIEST, min(about.st_mtime_ns, _LATEST)))
        if self._is_unchanged(file):
            os.close(handle)
            return file
        if not self._is_settled(file, handle):
            os.close(handle)
            self.unsettled += 1
            return None
        content = b"".join(_pieces(handle, SMALL + 1)) if file.size <= SMALL else None
        if content is None or len(content) > SMALL:
            return file._replace(handle=handle)
        os.close(handle)
        return file._replace(content=content)


def printable(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")


def _walk(root: int, note: Callable[[str, OSError], None]) -> Iterator[_OpenFolder]:
    """Yield the open ``root``, and each folder whose name the caller leaves in ``folders``.

    One folder besides ``root``, the last, is open at a time, however deep; ``os.fwalk`` keeps open all that lead there.
    ``note`` gets what cannot be read.
    """
    handle, open_path = os.dup(root), ""
    waiting = [("", "")]
    try:
        while waiting:
            above, name = waiting.pop()
            path = os.path.join(above, name)
            try:
                if open_path != above:
                    reopened = _open_below(root, above)
                    os.close(handle)
                    handle, open_path = reopened, above
                if name:
                    entered = os.open(name, _FOLDER_FLAGS, dir_fd=handle)
                    os.close(handle)
                    handle, open_path = entered, path
                folder = _list(path, handle)
            except OSError as error:
                note(path, error)
                continue
            yield folder
            waiting.extend((path, each) for each in reversed(folder.folders))
    finally:
        os.close(handle)


def _open_below(root: int, path: str) -> int:
    """Open a path that may be longer than the system takes, and follow no link."""
    handle = os.dup(root)
    for name in path.split(os.sep) if path else ():
        try:
            entered = os.open(name, _FOLDER_FLAGS, dir_fd=handle)
        finally:
            os.close(handle)
        handle = entered
    return handle


def _list(path: str, handle: int) -> _OpenFolder:
    folder = _OpenFolder(path, [], [], handle)
    with os.scandir(handle) as entries:
        for entry in entries:
            (folder.folders if _is_folder(entry) else folder.names).append(entry.name)
    return folder


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # such as a link that leads to itself
        return False


def _pieces(handle: int, limit: int | None = None) -> Iterator[bytes]:
    remaining = _PIECE if limit is None else limit
    while remaining > 0 and (piece := os.read(handle, min(remaining, _PIECE))):
        yield piece
        remaining -= len(piece) if limit is not None else 0
