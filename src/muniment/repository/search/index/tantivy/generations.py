"""The built-in engine: it keeps indexes in folders.

A repository's folder has a numbered folder for each generation, and a file `current` that names one.
"""

import os
import shutil
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from muniment.ground import disk, locks
from muniment.ground.clock import SECOND, Instant
from muniment.repository.refusals import IndexUnavailable, InUse
from muniment.repository.search.analysis.languages import LANGUAGES
from muniment.repository.search.index.contract import Index, IndexWriter, RepositoryIndex, Snapshot
from muniment.repository.search.index.tantivy.engine import TantivyIndex, TantivyWriter
from muniment.repository.store.repositories import Repository

POINTER = "current"


class FolderEngine:
    """The folder of all indexes (an Engine).

    ``open_writer`` opens, or makes, the index in a folder in a language; it may raise OtherFormat. ``language`` is of
    repositories without one.
    """

    def __init__(
        self,
        folder: Path,
        open_writer: Callable[[Path, str], IndexWriter] = TantivyWriter,
        open_index: Callable[[Path], Index] = TantivyIndex,
        *,
        language: str = "English",
    ) -> None:
        self._folder = folder
        self._open_writer, self._open_index = open_writer, open_index
        self._language = language

    def languages(self) -> Sequence[str]:
        return sorted(LANGUAGES)

    def index(self, repository: Repository) -> RepositoryIndex:
        language = repository.language or self._language
        folder = self._folder / str(repository.id)
        return FolderIndex(folder, self.holder(), lambda path: self._open_writer(path, language), self._open_index)

    def follower(self) -> str:
        """The name stays the same as long as the folder exists."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self._folder / "follower"
        if not file.exists():
            disk.replace(file, uuid.uuid4().hex.encode("ascii"))
        return file.read_text(encoding="ascii")[:32]

    def holder(self) -> str:
        """Name the holder of this machine's leases: the host's name and the path."""
        return f"{socket.gethostname()}:{self._folder.absolute()}"

    @contextmanager
    def sole_agent(self) -> Iterator[str]:
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
        for folder in self._folder.iterdir():
            if folder.name.isdecimal():
                sweep(folder, now / SECOND)


class FolderIndex:
    """A repository's generations (a RepositoryIndex)."""

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
        return FollowingIndex(self._folder, self._open_index)

    def current(self) -> str | None:
        generation = current(self._folder)
        return None if generation is None else generation.name

    def writer(self, generation: str) -> IndexWriter:
        return self._open_writer(self._folder / generation)

    @contextmanager
    def rebuilding(self) -> Iterator[str]:
        with rebuilding(self._folder):
            yield self._holder

    def begin(self) -> str:
        _make(self._folder)
        newest = max((int(each.name) for each in self._folder.iterdir() if each.name.isdecimal()), default=0)
        (self._folder / str(newest + 1)).mkdir(mode=0o700)
        return str(newest + 1)

    def switch(self, generation: str) -> None:
        disk.replace(self._folder / POINTER, generation.encode("ascii"))

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class FollowingIndex:
    """An Index that always uses the current generation."""

    def __init__(self, folder: Path, open_index: Callable[[Path], Index]) -> None:
        self._folder = folder
        self._open_index = open_index
        self._lock = threading.Lock()
        self._opened_mark: tuple[int, int] | None = None
        self._index: Index | None = None

    def snapshot(self) -> Snapshot:
        with self._lock:
            mark = _mark(self._folder)
            if self._index is None or mark != self._opened_mark:
                generation = current(self._folder)
                if generation is None:
                    raise IndexUnavailable("The repository has no index yet: the index agent has not been started.")
                # The former index is not closed, because a search of another thread may still read from it.
                self._index, self._opened_mark = self._open_index(generation), mark
            index = self._index
        return index.snapshot()

    def close(self) -> None:
        with self._lock:
            if self._index is not None:
                self._index.close()
            self._index = None


def current(folder: Path) -> Path | None:
    try:
        name = (folder / POINTER).read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    return folder / name if name.isdecimal() else None


@contextmanager
def rebuilding(folder: Path) -> Iterator[None]:
    """Hold the right to make a generation, of one process of this machine. Raises InUse."""
    _make(folder)
    with ExitStack() as stack:
        try:
            stack.enter_context(locks.hold(folder / "rebuild.lock", wait=False))
        except locks.Held as error:
            raise InUse("The index is being rebuilt already.") from error
        yield


def sweep(folder: Path, now_seconds: float, idle_seconds: float = 60.0) -> int:
    """Remove nothing for ``idle_seconds`` after a switch, as a search may still read the former generation, nor during
    a rebuild.
    """
    current_folder, mark = current(folder), _mark(folder)
    if current_folder is None or mark is None or now_seconds - mark[1] / 1e9 < idle_seconds:
        return 0
    try:
        with rebuilding(folder):
            former = [each for each in folder.iterdir() if each.name.isdecimal() and each != current_folder]
            for each in former:
                shutil.rmtree(each, ignore_errors=True)
            return len(former)
    except InUse:
        return 0


def _make(folder: Path) -> None:
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def _mark(folder: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(folder / POINTER)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns
