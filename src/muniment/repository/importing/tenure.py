"""May this process import this folder? Only one process may at one time, so that no file becomes two objects."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from muniment import locks
from muniment.clock import SECOND, Instant
from muniment.db import Busy, Database
from muniment.repository import leases
from muniment.repository.importing import record
from muniment.repository.leases import Lease
from muniment.repository.refusals import InUse

_SECONDS = 60
_RENEW_AFTER: Instant = _SECONDS * SECOND // 6


class ImportTenure:
    """The right of this process to import one folder. The import renews it before each step, if that is due."""

    def __init__(self, database: Database, lease: Lease, holder: str, clock: Callable[[], Instant]) -> None:
        self._database, self._lease, self._holder, self._clock = database, lease, holder, clock
        self._renewed_at = clock()

    def take(self) -> None:
        """Take the lease. Raises InUse, which names the holder, if an import elsewhere has it."""
        with self._database.begin() as cx:
            is_ours = leases.take(cx, self._lease, self._holder, self._clock(), _SECONDS)
            other = "" if is_ours else leases.holder(cx, self._lease)
        if not is_ours:
            raise InUse(f"This folder is being imported already, at {other}: let that import finish first.")

    def renew(self) -> None:
        """Renew the lease if that is due. Raises InUse if it ran out and another import has taken it."""
        now = self._clock()
        if abs(now - self._renewed_at) < _RENEW_AFTER:
            return
        with self._database.begin() as cx:
            if not leases.renew(cx, self._lease, self._holder, now, _SECONDS):
                raise InUse("Another import of this folder has begun, because this one rested too long.")
        self._renewed_at = now

    def release(self) -> None:
        """Give the lease back. If the database cannot be written, the lease runs out by itself."""
        with suppress(Busy), self._database.begin() as cx:
            leases.release(cx, self._lease, self._holder)


@contextmanager
def hold(
    database: Database, folder: Path, repository_id: int, source: str, clock: Callable[[], Instant]
) -> Iterator[ImportTenure]:
    """Hold the right to import the folder ``source`` while the block runs. Raises InUse, which names the holder.

    A lock file in ``folder``, a folder for locks, gives the right to only one process of this machine. The lock ends
    with its process, so nobody waits for an import that was killed. A lease in the database keeps out other machines.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lease = Lease("import", record.key(f"{repository_id} {source}"))
    file = folder / f"{lease.subject}.lock"
    with ExitStack() as at_the_end:
        try:
            descriptor = at_the_end.enter_context(locks.hold(file, wait=False))
        except locks.Held as error:
            process = file.read_text(encoding="ascii", errors="replace").strip()
            raise InUse(
                f"This folder is being imported already, by process {process or 'unknown'} of this machine: let that "
                "import finish first."
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode("ascii"), 0)
        tenure = ImportTenure(database, lease, f"{socket.gethostname()}:{folder.absolute()}", clock)
        tenure.take()
        at_the_end.callback(tenure.release)
        yield tenure
