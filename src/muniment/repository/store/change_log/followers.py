"""Who still reads the change log, and which of its lines may be cut off?

Each index agent, and the embedder, notes how far it has read; a rebuild, where it began. What one of them must still
read stays. A follower that notes nothing for ``Retention.seconds`` is forgotten; it begins anew when lines are gone
(``changes.LinesGone``).
"""

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import repository_column, repository_tables, required_columns
from muniment.database.statements import upsert
from muniment.ground.clock import SECOND, Instant
from muniment.repository.store.change_log import changes

followers = sa.Table(
    "followers",
    repository_tables,
    repository_column(primary_key=True),
    sa.Column("name", sa.String(32), primary_key=True),
    *required_columns(sa.BigInteger, "transaction", "sequence", "seen"),
)


class Retention(msgspec.Struct, frozen=True):
    """How long lines of the log are kept, and at most how many of each repository."""

    seconds: int = 604_800
    lines: int = 1_000_000


def note(cx: Connection, repository_id: int, name: str, position: changes.Position, now: Instant) -> None:
    row = {"repository_id": repository_id, "name": name, **position._asdict(), "seen": now}
    cx.execute(_NOTE, row)


def position(cx: Connection, repository_id: int, name: str) -> changes.Position | None:
    query = sa.select(followers.c.transaction, followers.c.sequence)
    row = cx.execute(query.where(followers.c.repository_id == repository_id, followers.c.name == name)).first()
    return None if row is None else changes.Position(*row)


def leave(cx: Connection, repository_id: int, name: str) -> None:
    cx.execute(followers.delete().where(followers.c.repository_id == repository_id, followers.c.name == name))


def forget(cx: Connection) -> None:
    """A restore needs this, because it makes every index anew."""
    cx.execute(followers.delete())


def cut(cx: Connection, repository_id: int, retention: Retention, now: Instant, limit: int = 1000) -> int:
    """Forget followers that have noted nothing for ``retention.seconds``, then cut; without a follower, nothing is cut
    off.
    """
    before = now - retention.seconds * SECOND
    of_repository = followers.c.repository_id == repository_id
    cx.execute(followers.delete().where(of_repository, followers.c.seen < before))
    place = sa.select(followers.c.transaction, followers.c.sequence).where(of_repository)
    row = cx.execute(place.order_by(followers.c.transaction, followers.c.sequence).limit(1)).first()
    return changes.cut(cx, repository_id, changes.Position(*row), before, retention.lines, limit) if row else 0


_NEW = upsert(followers)
_NOTE = _NEW.on_conflict_do_update(
    index_elements=["repository_id", "name"], set_=_NEW.excluded["transaction", "sequence", "seen"]
)
