"""Create and replace files that must survive a power cut, and leave a reserve on the disk."""

import errno
import os
from pathlib import Path
from typing import BinaryIO, NamedTuple


def create(path: Path | str, *, buffering: int = -1) -> BinaryIO:
    """Open a new file that only its owner may read, whatever the umask. Raises FileExistsError."""
    return os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb", buffering=buffering
    )


def replace(path: Path, data: bytes, mode: int = 0o600) -> None:
    """The bytes are first written into a new file beside it: a dot, the file's name and more.

    Raises OSError. If only the folder's ``sync`` fails, the file has its new bytes already.
    """
    new_file = path.with_name(f".{path.name}.{os.getpid()}")
    new_file.unlink(missing_ok=True)  # an earlier process with this number may have been killed
    try:
        with create(new_file) as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        new_file.replace(path)
    except BaseException:
        new_file.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path | str) -> None:
    """Wait until a file, or a folder's list of files, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Reserve(NamedTuple):
    """Bytes that stay free on these folders' disks, for writes that end rights or make room."""

    folders: tuple[Path, ...]
    size: int

    def is_used(self) -> bool:
        """A folder that does not exist does not count."""
        return any(folder.exists() and _free(folder) < self.size for folder in self.folders)

    def check(self) -> None:
        if self.is_used():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _free(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize
