"""How much does each owner keep? Objects, and bytes of content, over all repositories, and how much is allowed.

It is counted in the transaction that makes, replaces, deletes or gives away: so it is what there is, also after a kill.
A quota is checked where something grows, on the count that the same transaction has just written; what is there already
stays.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from muniment.db import repository_tables
from muniment.repository.refusals import QuotaExceeded

usage = sa.Table(
    "usage",
    repository_tables,
    sa.Column("owner_key", sa.String(400), primary_key=True),
    sa.Column("objects", sa.BigInteger, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
)


class Amount(NamedTuple):
    """Objects, and bytes of their content."""

    objects: int
    bytes: int

    def __neg__(self) -> "Amount":
        return Amount(-self.objects, -self.bytes)

    def with_one(self, size: int) -> "Amount":
        """Add an object of this size."""
        return Amount(self.objects + 1, self.bytes + size)


NOTHING = Amount(0, 0)


class StorageQuota(msgspec.Struct, frozen=True):
    """How many objects, and how many bytes of content, one user may own."""

    objects: int = 1_000_000
    bytes: int = 100 * 1024**3


def count(cx: Connection, more: Mapping[str, Amount], quota: StorageQuota | None) -> None:
    """Add to what these owners keep, each by its key; negative amounts are taken away. A statement for each owner.

    Until the commit nobody else counts for them. Raises QuotaExceeded where an owner's amount grows beyond the quota;
    None means that there is none.
    """
    for owner_key, amount in sorted(more.items()):
        row = {"owner_key": owner_key, "objects": amount.objects, "bytes": amount.bytes}
        kept = Amount(*cx.execute(_COUNT[cx.dialect.name], row).one())
        if quota is not None:
            _check(kept, amount, quota)


def release(cx: Connection, gone: Mapping[str, Amount]) -> None:
    """Take away from what these owners keep, each by its key, what is gone."""
    count(cx, {owner_key: -amount for owner_key, amount in gone.items()}, None)


def room(cx: Connection, owner_key: str, quota: StorageQuota, more: Amount = NOTHING) -> int:
    """Say how many bytes may still be added to what an owner keeps, once ``more`` is. Raises QuotaExceeded."""
    kept = of(cx, owner_key)
    _check(Amount(kept.objects + more.objects, kept.bytes + more.bytes), more, quota)
    return max(0, quota.bytes - kept.bytes - more.bytes)


def of(cx: Connection, owner_key: str) -> Amount:
    """Say how much an owner keeps."""
    row = cx.execute(_OF, {"owner": owner_key}).first()
    return Amount(*row) if row else NOTHING


def every(cx: Connection) -> dict[str, Amount]:
    """Say for each owner what was counted; an owner of nothing is left out."""
    wanted = sa.select(usage).where(sa.or_(usage.c.objects != 0, usage.c.bytes != 0)).order_by(usage.c.owner_key)
    return {row.owner_key: Amount(row.objects, row.bytes) for row in cx.execute(wanted)}


def too_much(quota: StorageQuota) -> QuotaExceeded:
    """Say no to bytes that an owner may not add."""
    return QuotaExceeded(f"That is more content than one user may own: {quota.bytes} bytes.")


def _check(kept: Amount, more: Amount, quota: StorageQuota) -> None:
    if more.objects > 0 and kept.objects > quota.objects:
        raise QuotaExceeded(f"That is more objects than one user may own: {quota.objects}.")
    if more.bytes > 0 and kept.bytes > quota.bytes:
        raise too_much(quota)


_OF = sa.select(usage.c.objects, usage.c.bytes).where(usage.c.owner_key == sa.bindparam("owner"))


def _count(insert: postgresql.Insert | sqlite.Insert) -> sa.Executable:
    sums = {name: usage.c[name] + insert.excluded[name] for name in ("objects", "bytes")}
    counted = insert.on_conflict_do_update(index_elements=["owner_key"], set_=sums)
    return counted.returning(usage.c.objects, usage.c.bytes)


_COUNT = {"postgresql": _count(postgresql.insert(usage)), "sqlite": _count(sqlite.insert(usage))}
