"""Is a file whole, or is it still being written?"""

import contextlib
import errno
import fcntl
import os
import re
import signal
import sys

LONGEST_PAUSE = 600.0
"""After so many seconds without a write, a file is whole although a process has it open for writing."""

_UNFINISHED = re.compile(
    r"~\$.*|.*\.(?:part|partial|crdownload|download|opdownload|filepart|tmp|temp|aria2|ytdl|!ut|!qb|bc!)",
    re.IGNORECASE | re.DOTALL,
)
"""Browsers, mail and office programs name files so until they are whole, or beside them."""


def is_unfinished(name: str) -> bool:
    return _UNFINISHED.fullmatch(name) is not None


def is_settled(age: float, quiet_seconds: float, descriptor: int) -> bool:
    """``age`` is the seconds since the last write."""
    if age >= LONGEST_PAUSE:
        return True
    # A time in the future says nothing: such a file is taken, and taken again when it changes.
    return not 0 <= age < quiet_seconds and not is_being_written(descriptor)


def is_being_written(descriptor: int) -> bool:
    """Ask the system, with a descriptor for reading only; False if it does not say.

    Linux refuses a read lease (``fcntl(2)``) on a file with a writer, of the same user (or for the superuser), on a
    local disk. So no notice can get lost, and writers before us count.
    """
    if sys.platform != "linux":
        return False
    try:
        # A writer who comes while we hold the lease waits for a moment, and we get a signal, which is to be harmless.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN and not _is_on_nfs(descriptor)
    with contextlib.suppress(OSError):
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def _is_on_nfs(descriptor: int) -> bool:
    """NFS refuses leases on files without a writer, too."""
    device = os.fstat(descriptor).st_dev
    place = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
        # The type of the file system follows a lone hyphen (proc(5)).
        return any(
            line.split()[2] == place and line.partition(" - ")[2].startswith("nfs") for line in mounts if line.strip()
        )
