"""Which errors of a disk become refusals, and which are bugs?"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from muniment.ground.refusals import NotStored

REFUSED_BY_DISK = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
}
"""The disk takes no writes or is broken, or too many files are open."""


@contextmanager
def disk_refusals() -> Iterator[None]:
    """Turn these errors into NotStored. Others are bugs."""
    try:
        yield
    except OSError as error:
        if error.errno not in REFUSED_BY_DISK:
            raise
        raise NotStored(f"The content cannot be kept: {os.strerror(error.errno).lower()}.") from error
