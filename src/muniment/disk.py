"""Put this on the disk: a new file for its owner alone, a whole file in another's place; and let it last."""

import os
from pathlib import Path
from typing import BinaryIO


def create(path: Path | str, *, buffering: int = -1) -> BinaryIO:
    """Open a new file for writing that its owner alone may read, whatever the umask. Raises FileExistsError."""
    return os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb", buffering=buffering
    )


def replace(path: Path, data: bytes) -> None:
    """Let a file hold these bytes; it survives a power cut, and nobody sees half. Raises OSError: it is as before.

    It is written beside its place, under a name that begins with a dot and the file's own.
    """
    written = path.with_name(f".{path.name}.{os.getpid()}")
    written.unlink(missing_ok=True)  # a process that had this number may have been killed
    try:
        with create(written) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        written.replace(path)
    except BaseException:
        written.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path | str) -> None:
    """Bring a file, or a folder's own entries, to the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
