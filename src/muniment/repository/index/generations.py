"""Which of a repository's index folders is the current one: rebuilding makes a new one while searches go on in the old.

A repository's folder holds one numbered folder a generation, and a file `current` that names the one in use. Readers
look at that file before each search (2 microseconds), so they follow a switch without being told.
"""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from muniment import disk, locks
from muniment.repository.index.contract import Index, Snapshot
from muniment.repository.refusals import IndexUnavailable, InUse

POINTER = "current"


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
        """Let the files go."""
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
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
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
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
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


def _mark(folder: Path) -> tuple[int, int] | None:
    try:
        seen = os.stat(folder / POINTER)
    except FileNotFoundError:
        return None
    return seen.st_ino, seen.st_mtime_ns
