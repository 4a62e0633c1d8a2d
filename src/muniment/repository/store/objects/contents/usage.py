"""How many objects and bytes does each owner have, over all repositories, and how many may they have?

The transaction that changes objects updates the counts, so they are right even after a kill. A quota is checked when an
amount grows, on the new count; who has more, because it was lowered, keeps it.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement, repository_tables, required_columns
from muniment.database.statements import upsert
from muniment.repository.refusals import QuotaExceeded
from muniment.repository.store.objects.table import StoredObject

usage = sa.Table(
    "usage",
    repository_tables,
    sa.Column("owner_key", sa.String(400), primary_key=True),
    *required_columns(sa.BigInteger, "objects", "bytes"),
)


class Amount(NamedTuple):
    """A number of objects, and of bytes of content."""

    objects: int
    bytes: int

    def __neg__(self) -> "Amount":
        return Amount(-self.objects, -self.bytes)


NOTHING = Amount(0, 0)


class StorageQuota(msgspec.Struct, frozen=True):
    """How much one user may own."""

    objects: int = 1_000_000
    bytes: int = 100 * 1024**3


def add_usage(cx: Connection, amounts: Mapping[str, Amount], quota: StorageQuota | None) -> None:
    """Add these amounts, perhaps negative, by owner's key.

    Until the commit, no other transaction can count for these owners. Raises QuotaExceeded if an owner's amount grows
    beyond the quota, if there is one.
    """
    for owner_key, amount in sorted(amounts.items()):
        row = {"owner_key": owner_key, "objects": amount.objects, "bytes": amount.bytes}
        (row_counts,) = _COUNT.all(cx, **row)
        total = Amount(*row_counts)
        if quota is not None:
            _check(total, amount, quota)


def release(cx: Connection, amounts: Mapping[str, Amount]) -> None:
    add_usage(cx, {owner_key: -amount for owner_key, amount in amounts.items()}, None)


def amounts(stored_objects: Collection[StoredObject], further_bytes: Mapping[str, int] = {}) -> dict[str, Amount]:
    """``further_bytes`` are those of further contents, by object id."""
    by_owner: dict[str, Amount] = {}
    for stored in stored_objects:
        amount = by_owner.get(stored.owner_key, NOTHING)
        size = (stored.content.size if stored.content else 0) + further_bytes.get(stored.id, 0)
        by_owner[stored.owner_key] = Amount(amount.objects + 1, amount.bytes + size)
    return by_owner


def room(cx: Connection, owner_key: str, quota: StorageQuota, addition: Amount = NOTHING) -> int:
    """Return the bytes that an owner may still add after ``addition``.

    Raises QuotaExceeded if ``addition`` is too much already.
    """
    current = usage_of(cx, owner_key)
    _check(Amount(current.objects + addition.objects, current.bytes + addition.bytes), addition, quota)
    return max(0, quota.bytes - current.bytes - addition.bytes)


def usage_of(cx: Connection, owner_key: str) -> Amount:
    row = _OF.first(cx, owner=owner_key)
    return Amount(*row) if row else NOTHING


def usage_by_owner(cx: Connection) -> dict[str, Amount]:
    query = sa.select(usage).where(sa.or_(usage.c.objects != 0, usage.c.bytes != 0)).order_by(usage.c.owner_key)
    return {row.owner_key: Amount(row.objects, row.bytes) for row in cx.execute(query)}


def too_much(quota: StorageQuota) -> QuotaExceeded:
    return QuotaExceeded(f"That is more content than one user may own: {quota.bytes} bytes.")


def _check(total: Amount, addition: Amount, quota: StorageQuota) -> None:
    if addition.objects > 0 and total.objects > quota.objects:
        raise QuotaExceeded(f"That is more objects than one user may own: {quota.objects}.")
    if addition.bytes > 0 and total.bytes > quota.bytes:
        raise too_much(quota)


_OF = PreparedStatement(sa.select(usage.c.objects, usage.c.bytes).where(usage.c.owner_key == sa.bindparam("owner")))
_NEW = upsert(usage)
_COUNT = PreparedStatement(
    _NEW.on_conflict_do_update(
        index_elements=["owner_key"],
        set_={name: usage.c[name] + _NEW.excluded[name] for name in ("objects", "bytes")},
    ).returning(usage.c.objects, usage.c.bytes)
)
