"""Lock files between processes. A lock ends with its process, even if that is killed."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Held(Exception):
    """Another process holds the lock."""


def open_file(path: Path) -> int:
    """A missing file is made, for its owner alone."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def take(file: int, *, wait: bool = True, shared: bool = False) -> None:
    """Without ``wait``, raises Held if the lock is not free."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError as error:
        raise Held from error


def share(file: int) -> bool:
    """Try, without waiting, to take a shared lock of an open file."""
    try:
        take(file, wait=False, shared=True)
    except Held:
        return False
    return True


def release(file: int) -> None:
    fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def hold(path: Path, *, wait: bool = True) -> Iterator[int]:
    """``wait`` is as in ``take``. Raises Held."""
    file = open_file(path)
    try:
        take(file, wait=wait)
        yield file
    finally:
        os.close(file)
