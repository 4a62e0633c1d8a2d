"""May this process go on with its work? It takes a lease, renews it in time, and gives it back at the end."""

from collections.abc import Callable

import sqlalchemy as sa
import structlog

from muniment.clock import SECOND, Instant
from muniment.db import Busy, Database
from muniment.repository import leases
from muniment.repository.leases import Lease

SECONDS = 30
"""How long a lease lasts, in seconds. If a machine is killed, its work rests until this time is over."""

_RENEW_AFTER: Instant = SECONDS * SECOND // 3

log = structlog.get_logger("muniment.agent")


class Tenure:
    """The lease of one process. The process asks before each step of its work whether it still holds the lease."""

    def __init__(self, database: Database, lease: Lease, holder: str, clock: Callable[[], Instant]) -> None:
        self._database, self._lease, self._holder, self._clock = database, lease, holder, clock
        self._renewed_at: Instant | None = None
        self._waits = False

    def holds(self) -> bool:
        """Return whether the work may go on. This takes the lease if it is free, and renews it in time.

        Raises Busy or DBAPIError if the database fails; then the process must not write.
        """
        now = self._clock()
        if self._renewed_at is not None and abs(now - self._renewed_at) < _RENEW_AFTER:
            return True
        with self._database.begin() as cx:
            extend = leases.take if self._renewed_at is None else leases.renew
            is_held = extend(cx, self._lease, self._holder, now, SECONDS)
        if not is_held and not self._waits:
            log.warning(
                "another process does this work: waiting for its lease",
                work=self._lease.purpose,
                of=self._lease.subject,
                lost=self._renewed_at is not None,
            )
        self._renewed_at, self._waits = now if is_held else None, not is_held
        return is_held

    def release(self) -> None:
        """Give the lease back, if this process holds it. If the database cannot be reached, the lease runs out."""
        if self._renewed_at is None:
            return
        self._renewed_at = None
        try:
            with self._database.begin() as cx:
                leases.release(cx, self._lease, self._holder)
        except (Busy, sa.exc.DBAPIError) as error:
            log.warning("a lease runs out by itself", work=self._lease.purpose, reason=str(error)[:300])
