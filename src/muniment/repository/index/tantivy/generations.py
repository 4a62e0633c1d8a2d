"""The built-in engine: indexes in folders, and which of a repository's folders is the current generation.

A repository's folder holds one numbered folder a generation, and a file `current` that names the one in use. Readers
look at that file before each search (2 microseconds), so they follow a switch without being told.
"""

import os
import shutil
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from muniment import disk, locks
from muniment.clock import SECOND, Instant
from muniment.repository.index.contract import Index, IndexWriter, RepositoryIndex, Snapshot
from muniment.repository.index.tantivy.engine import TantivyIndex, TantivyWriter
from muniment.repository.refusals import IndexUnavailable, InUse

POINTER = "current"


class FolderEngine:
    """The folder of all repositories' indexes (an Engine), with one folder in it for each repository.

    ``open_writer`` makes an empty index where there is none. Raises OtherFormat.
    """

    def __init__(
        self,
        folder: Path,
        open_writer: Callable[[Path], IndexWriter] = TantivyWriter,
        open_index: Callable[[Path], Index] = TantivyIndex,
    ) -> None:
        self._folder = folder
        self._open_writer, self._open_index = open_writer, open_index

    def index(self, repository_id: int) -> RepositoryIndex:
        """Return the index of one repository."""
        own = self._folder / str(repository_id)
        return FolderIndex(own, self.holder(), self._open_writer, self._open_index)

    def follower(self) -> str:
        """Name the agent of this folder: the same name as long as the folder is there."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = self._folder / "follower"
        if not kept.exists():
            kept.write_text(uuid.uuid4().hex, encoding="ascii")
        return kept.read_text(encoding="ascii")[:32]

    def holder(self) -> str:
        """Name this folder on this machine."""
        return f"{socket.gethostname()}:{self._folder.absolute()}"

    @contextmanager
    def alone(self) -> Iterator[str]:
        """Be the only agent of this folder. Raises InUse."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ExitStack() as stack:
            try:
                stack.enter_context(locks.hold(self._folder / "agent.lock", wait=False))
            except locks.Held as error:
                raise InUse(
                    f"Another index agent is at work on {self._folder}: stop it first, or let it do the work."
                ) from error
            yield self.holder()

    def sweep(self, now: Instant) -> None:
        """Remove generations left behind, also those of repositories that are gone."""
        for own in self._folder.iterdir():
            if own.name.isdecimal():
                sweep(own, now / SECOND)


class FolderIndex:
    """One repository's folder of generations (a RepositoryIndex)."""

    def __init__(
        self,
        folder: Path,
        holder: str,
        open_writer: Callable[[Path], IndexWriter],
        open_index: Callable[[Path], Index],
    ) -> None:
        self._folder, self._holder = folder, holder
        self._open_writer, self._open_index = open_writer, open_index

    def reader(self) -> Index:
        """Open it for reading, whichever generation is the current one."""
        return FollowingIndex(self._folder, self._open_index)

    def current(self) -> str | None:
        """Name the current generation; None before the first."""
        generation = current(self._folder)
        return None if generation is None else generation.name

    def writer(self, generation: str) -> IndexWriter:
        """Open a generation for writing. Raises OtherFormat, IndexUnavailable, OSError."""
        return self._open_writer(self._folder / generation)

    @contextmanager
    def rebuilding(self) -> Iterator[str]:
        """Hold this machine's only right to begin a generation. Raises InUse."""
        with rebuilding(self._folder):
            yield self._holder

    def begin(self) -> str:
        """Begin the next generation, and name it."""
        return begin(self._folder).name

    def switch(self, generation: str) -> None:
        """Make this generation the current one."""
        switch(self._folder, self._folder / generation)

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)


class FollowingIndex:
    """One repository's index open for reading, whichever generation is current (an Index)."""

    def __init__(self, folder: Path, open_index: Callable[[Path], Index]) -> None:
        self._folder = folder
        self._open_index = open_index
        self._lock = threading.Lock()
        self._seen: tuple[int, int] | None = None
        self._index: Index | None = None

    def snapshot(self) -> Snapshot:
        """Take the newest commit of the current generation. Raises IndexUnavailable."""
        with self._lock:
            mark = _mark(self._folder)
            if mark is None:
                raise IndexUnavailable("The repository has no index yet: the index agent has not been started.")
            if self._index is None or mark != self._seen:
                self._open(mark)
            assert self._index is not None  # noqa: S101 - opened just above
            index = self._index
        return index.snapshot()

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            if self._index is not None:
                self._index.close()
            self._index = None

    def _open(self, mark: tuple[int, int]) -> None:
        generation = current(self._folder)
        if generation is None:
            raise IndexUnavailable("The repository has no index yet: the index agent has not been started.")
        # The index left behind is not closed here: a search of another thread may still be reading from it.
        self._index = self._open_index(generation)
        self._seen = mark


def current(folder: Path) -> Path | None:
    """Name the folder of the current generation; None before the first."""
    try:
        name = (folder / POINTER).read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    return folder / name if name.isdecimal() else None


def begin(folder: Path) -> Path:
    """Make the empty folder of the next generation."""
    _make(folder)
    newest = max((int(each.name) for each in folder.iterdir() if each.name.isdecimal()), default=0)
    generation = folder / str(newest + 1)
    generation.mkdir(mode=0o700)
    return generation


def switch(folder: Path, generation: Path) -> None:
    """Make this generation the current one; it survives a crash, and nobody sees half of it."""
    disk.replace(folder / POINTER, generation.name.encode("ascii"))


@contextmanager
def rebuilding(folder: Path) -> Iterator[None]:
    """Hold the only right to make a new generation. Raises InUse when somebody else is at it."""
    _make(folder)
    with ExitStack() as stack:
        try:
            stack.enter_context(locks.hold(folder / "rebuild.lock", wait=False))
        except locks.Held as error:
            raise InUse("The index is being rebuilt already.") from error
        yield


def sweep(folder: Path, now_seconds: float, idle_seconds: float = 60.0) -> int:
    """Remove generations that are not current, once nobody can be reading them; says how many."""
    used, mark = current(folder), _mark(folder)
    if used is None or mark is None or now_seconds - mark[1] / 1e9 < idle_seconds:
        return 0
    try:
        with rebuilding(folder):
            left = [each for each in folder.iterdir() if each.name.isdecimal() and each != used]
            for each in left:
                shutil.rmtree(each, ignore_errors=True)
            return len(left)
    except InUse:
        return 0


def _make(folder: Path) -> None:
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def _mark(folder: Path) -> tuple[int, int] | None:
    try:
        seen = os.stat(folder / POINTER)
    except FileNotFoundError:
        return None
    return seen.st_ino, seen.st_mtime_ns
