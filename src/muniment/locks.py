"""Which process may go on? Locks of files: each ends with the process that holds it, however it ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Held(Exception):
    """Another process holds the lock."""


def open_file(path: Path) -> int:
    """Open a file for locking, made for its owner alone where it is not there. Gives the descriptor."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def take(file: int, *, wait: bool = True, shared: bool = False) -> None:
    """Take the lock of an open file, alone or ``shared`` with others who share. Raises Held unless it may ``wait``."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError as error:
        raise Held from error


def release(file: int) -> None:
    """Give the lock of an open file back."""
    fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def hold(path: Path, *, wait: bool = True) -> Iterator[int]:
    """Hold a file's lock alone while the block runs; gives its descriptor. Raises Held unless it may ``wait``."""
    file = open_file(path)
    try:
        take(file, wait=wait)
        yield file
    finally:
        os.close(file)
