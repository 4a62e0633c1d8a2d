"""Which process may do the work that only one may do? A lease in the database, for processes of any machine.

A lease ends when its holder gives it back, or when its time is over and it was not renewed: a killed holder's lease
runs out. The same holder takes its own lease at once. A name of a holder therefore means a place where only one process
can be at work, as a file lock makes sure.
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
    """The right to do one piece of work: its purpose, and what it is done to."""

    purpose: str
    subject: str


def take(cx: Connection, lease: Lease, holder: str, now: Instant, seconds: int) -> bool:
    """Take a lease for so many seconds, unless another holder has it; the holder of it takes it anew."""
    row = {"purpose": lease.purpose, "subject": lease.subject, "holder": holder, "until": now + seconds * SECOND}
    return cx.execute(_TAKE[cx.dialect.name], row | {"now": now}).first() is not None


def renew(cx: Connection, lease: Lease, holder: str, now: Instant, seconds: int) -> bool:
    """Make one's own lease last so many seconds from now, also one whose time was over; False when it was lost."""
    own = leases.update().where(_is(lease), leases.c.holder == holder)
    return cx.execute(own.values(until=now + seconds * SECOND)).rowcount == 1


def release(cx: Connection, lease: Lease, holder: str) -> None:
    """Give a lease back; one that was lost stays with its holder."""
    cx.execute(leases.delete().where(_is(lease), leases.c.holder == holder))


def forget(cx: Connection) -> None:
    """Forget every lease, as after a restore: their holders work on another installation."""
    cx.execute(leases.delete())


def _is(lease: Lease) -> sa.ColumnElement[bool]:
    return sa.and_(leases.c.purpose == lease.purpose, leases.c.subject == lease.subject)


def _take(insert: postgresql.Insert | sqlite.Insert) -> sa.Executable:
    free = sa.or_(leases.c.until <= sa.bindparam("now"), leases.c.holder == insert.excluded.holder)
    fresh = {name: insert.excluded[name] for name in ("holder", "until")}
    taken = insert.on_conflict_do_update(index_elements=["purpose", "subject"], set_=fresh, where=free)
    return taken.returning(leases.c.until)


_COLUMNS: dict[str, sa.BindParameter[object]] = {
    name: sa.bindparam(name) for name in ("purpose", "subject", "holder", "until")
}
_TAKE = {
    "postgresql": _take(postgresql.insert(leases).values(_COLUMNS)),
    "sqlite": _take(sqlite.insert(leases).values(_COLUMNS)),
}
