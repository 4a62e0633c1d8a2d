"""Which process may do the work that only one process may do? The one that has a lease in the database, on any machine.

A lease ends when its holder gives it back, or when its time is over. So the lease of a killed process runs out. A
process can always take a lease that is held under its own name. Therefore only one process may have a name at one time:
a file lock on its machine makes sure of that, or the name is random.
"""

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from muniment.clock import SECOND, Instant
from muniment.db import repository_tables

leases = sa.Table(
    "leases",
    repository_tables,
    sa.Column("purpose", sa.String(16), primary_key=True),
    sa.Column("subject", sa.String(64), primary_key=True),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("until", sa.BigInteger, nullable=False),
)


class Lease(msgspec.Struct, frozen=True):
    """The right to do one piece of work: its purpose, and the subject of the work."""

    purpose: str
    subject: str


def take(cx: Connection, lease: Lease, holder: str, now: Instant, seconds: int) -> bool:
    """Take a lease for so many seconds. Return False if another holder has it, else True."""
    row = {"purpose": lease.purpose, "subject": lease.subject, "holder": holder, "until": now + seconds * SECOND}
    return cx.execute(_TAKE[cx.dialect.name], row | {"now": now}).first() is not None


def holder(cx: Connection, lease: Lease) -> str:
    """Return the name of a lease's last holder, even if its time is over; empty if it was given back or never taken."""
    return cx.execute(sa.select(leases.c.holder).where(_is(lease))).scalar() or ""


def renew(cx: Connection, lease: Lease, holder: str, now: Instant, seconds: int) -> bool:
    """Extend the holder's lease to so many seconds from now. Return False if the holder no longer has it, else True.

    A lease whose time is over can be extended, as long as nobody else has taken it.
    """
    update = leases.update().where(_is(lease), leases.c.holder == holder)
    return cx.execute(update.values(until=now + seconds * SECOND)).rowcount == 1


def release(cx: Connection, lease: Lease, holder: str) -> None:
    """Give a lease back. If another holder has taken it, nothing happens."""
    cx.execute(leases.delete().where(_is(lease), leases.c.holder == holder))


def forget(cx: Connection) -> None:
    """Delete every lease, as after a restore. The holders of a backup's leases work for another installation."""
    cx.execute(leases.delete())


def _is(lease: Lease) -> sa.ColumnElement[bool]:
    return sa.and_(leases.c.purpose == lease.purpose, leases.c.subject == lease.subject)


def _take(insert: postgresql.Insert | sqlite.Insert) -> sa.Executable:
    free = sa.or_(leases.c.until <= sa.bindparam("now"), leases.c.holder == insert.excluded.holder)
    fresh = {name: insert.excluded[name] for name in ("holder", "until")}
    statement = insert.on_conflict_do_update(index_elements=["purpose", "subject"], set_=fresh, where=free)
    return statement.returning(leases.c.until)


_COLUMNS: dict[str, sa.BindParameter[object]] = {
    name: sa.bindparam(name) for name in ("purpose", "subject", "holder", "until")
}
_TAKE = {
    "postgresql": _take(postgresql.insert(leases).values(_COLUMNS)),
    "sqlite": _take(sqlite.insert(leases).values(_COLUMNS)),
}
