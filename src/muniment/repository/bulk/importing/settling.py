"""Is a file whole, or is it still being written?"""

import contextlib
import errno
import fcntl
import os
import re
import signal
import sys

LONGEST_PAUSE = 600.0
"""After so many seconds without a write, a file counts as whole although a process still has it open for writing."""

_UNFINISHED = re.compile(
    r"~\$.*|.*\.(?:part|partial|crdownload|download|opdownload|filepart|tmp|temp|aria2|ytdl|!ut|!qb|bc!)",
    re.IGNORECASE | re.DOTALL,
)
"""The names that browsers, mail programs and office programs give to a file until it is whole, or beside it."""


def is_unfinished(name: str) -> bool:
    return _UNFINISHED.fullmatch(name) is not None


def is_settled(age: float, quiet_seconds: float, descriptor: int) -> bool:
    """Return whether an open file that was last written ``age`` seconds ago counts as whole."""
    if age >= LONGEST_PAUSE:
        return True
    # A time in the future says nothing: such a file is taken, and taken again when it changes.
    return not 0 <= age < quiet_seconds and not is_being_written(descriptor)


def is_being_written(descriptor: int) -> bool:
    """Return whether a process has the file open for writing. ``descriptor`` is open for reading only.

    Returns False if the system does not say so. Linux does, for a file of the same user (or to the superuser) on a
    local disk: there it refuses a read lease (``fcntl(2)``) on a file with a writer. It needs no notice that could get
    lost, and it also knows writers that came before us.
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
    """Return whether the file is on NFS, which refuses leases on files without a writer, too."""
    device = os.fstat(descriptor).st_dev
    place = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
        # The type of the file system follows a lone hyphen (proc(5)).
        return any(
            line.split()[2] == place and line.partition(" - ")[2].startswith("nfs") for line in mounts if line.strip()
        )
