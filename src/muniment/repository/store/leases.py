"""Which process may do the work that only one process may do? The holder of a lease in the database, on any machine.

A lease ends when given back, or after its time, as after a kill. A process can take a lease held under its own name: a
file lock on its machine makes that name its own, or the name is random.
"""

from collections.abc import Callable

import msgspec
import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from muniment.database.connections import Busy, Database, repository_tables, required
from muniment.database.statements import upsert
from muniment.ground.clock import SECOND, Instant
from muniment.repository.refusals import InUse

SECONDS = 30
"""After a machine is killed, its work rests so many seconds."""

_RENEW_AFTER: Instant = 10 * SECOND

log = structlog.get_logger("muniment.agent")

leases = sa.Table(
    "leases",
    repository_tables,
    sa.Column("purpose", sa.String(16), primary_key=True),
    sa.Column("subject", sa.String(64), primary_key=True),
    required("holder", sa.Text),
    required("until", sa.BigInteger),
)


class Lease(msgspec.Struct, frozen=True):
    """The right to do a piece of work."""

    purpose: str
    subject: str


class HeldLease:
    """The process asks it before each step of the work.

    When the lease is lost, the work ends with the sentence ``lost``; without one, it waits.
    """

    def __init__(
        self,
        database: Database,
        lease: Lease,
        holder: str,
        clock: Callable[[], Instant],
        lost: str = "",
        seconds: int = SECONDS,
    ) -> None:
        self._database, self._lease, self._holder, self._clock = database, lease, holder, clock
        self._lost, self._seconds = lost, seconds
        self._renewed_at: Instant | None = None
        self._waits = bool(lost)

    def holds(self) -> bool:
        """Take the lease if it is free, renew it in time.

        Raises Busy or DBAPIError if the database fails; then the process must not write.
        """
        now = self._clock()
        if self._renewed_at is not None and abs(now - self._renewed_at) < _RENEW_AFTER:
            return True
        with self._database.begin() as cx:
            extend = take if self._renewed_at is None else renew
            is_held = extend(cx, self._lease, self._holder, now, self._seconds)
        if not is_held and not self._waits:
            log.warning(
                "another process does this work: waiting for its lease",
                work=self._lease.purpose,
                of=self._lease.subject,
                lost=self._renewed_at is not None,
            )
        self._renewed_at, self._waits = now if is_held else None, not is_held or bool(self._lost)
        return is_held

    def keep(self) -> None:
        """Raises InUse, with the sentence ``lost``, if another process has it."""
        if not self.holds():
            raise InUse(self._lost)

    def release(self) -> None:
        """If the database cannot be reached, the lease runs out."""
        if self._renewed_at is None:
            return
        self._renewed_at = None
        try:
            with self._database.begin() as cx:
                release(cx, self._lease, self._holder)
        except (Busy, sa.exc.DBAPIError) as error:
            log.warning("a lease runs out by itself", work=self._lease.purpose, reason=str(error)[:300])


def take(cx: Connection, lease: Lease, holder: str, now: Instant, seconds: int) -> bool:
    """Return False if another holder has it."""
    row = {"purpose": lease.purpose, "subject": lease.subject, "holder": holder, "until": now + seconds * SECOND}
    return cx.execute(_TAKE, row | {"now": now}).first() is not None


def holder(cx: Connection, lease: Lease) -> str:
    """Return the last holder, even if its time is over; empty if it was given back or never taken."""
    return cx.scalar(sa.select(leases.c.holder).where(_is(lease))) or ""


def renew(cx: Connection, lease: Lease, holder: str, now: Instant, seconds: int) -> bool:
    """Return False if the holder no longer has it. A lease whose time is over can be extended until somebody else takes
    it.
    """
    update = leases.update().where(_is(lease), leases.c.holder == holder)
    return cx.execute(update.values(until=now + seconds * SECOND)).rowcount == 1


def release(cx: Connection, lease: Lease, holder: str) -> None:
    """If another holder has taken it, nothing happens."""
    cx.execute(leases.delete().where(_is(lease), leases.c.holder == holder))


def forget(cx: Connection) -> None:
    """Delete every lease after a restore: the holders in a backup work for another installation."""
    cx.execute(leases.delete())


def _is(lease: Lease) -> sa.ColumnElement[bool]:
    return sa.and_(leases.c.purpose == lease.purpose, leases.c.subject == lease.subject)


_NEW = upsert(leases).values({name: sa.bindparam(name) for name in ("purpose", "subject", "holder", "until")})
_TAKE = _NEW.on_conflict_do_update(
    index_elements=["purpose", "subject"],
    set_=_NEW.excluded["holder", "until"],
    where=sa.or_(leases.c.until <= sa.bindparam("now"), leases.c.holder == _NEW.excluded.holder),
).returning(leases.c.until)
