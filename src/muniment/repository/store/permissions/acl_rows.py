"""How are rows of ACLs written, imported, listed and removed? No rights are checked here."""

from collections.abc import Collection, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.statements import next_keys, upsert
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.repository import keys
from muniment.repository.store.permissions import acl_entries, acl_look_up, principals
from muniment.repository.store.permissions.table import acls

_AT_A_TIME = 500


def insert(
    cx: Connection,
    repository_id: int,
    name: str,
    owner: tuple[str, str],
    entries: Mapping[str, principals.Permission],
    now: Instant,
    *,
    common: bool,
    description: str = "",
) -> acl_look_up.Row | None:
    """Store an ACL without its entries; return None if the owner has this name, or the ACL is ``common`` and another
    common one has it. ``owner`` is name and key.
    """
    (key,) = next_keys(cx, acls.c.id)
    return cx.execute(
        upsert(acls)
        .values(
            id=key,
            repository_id=repository_id,
            shown_id=f"45{keys.scramble(cx, keys.ACLS, key)}",
            name=name,
            owner=owner[0],
            owner_name=fold_name(owner[0]),
            owner_key=owner[1],
            common=common,
            entry_count=len(entries),
            created=now,
            modified=now,
            description=description or None,
        )
        .on_conflict_do_nothing()
        .returning(acls)
    ).first()


def put_back(
    cx: Connection,
    repository_id: int,
    shown_id: str,
    name: str,
    owner: tuple[str, str],
    entry_count: int,
    dates: tuple[Instant, Instant],
    *,
    common: bool,
    description: str = "",
) -> int:
    """Store an ACL of an export without its entries; return its row's key. ``dates``: made, last changed.

    Raises IntegrityError if another ACL has the id, or if the name is taken as in ``insert``.
    """
    (key,) = next_keys(cx, acls.c.id)
    cx.execute(
        acls.insert().values(
            id=key,
            repository_id=repository_id,
            shown_id=shown_id,
            name=name,
            owner=owner[0],
            owner_name=fold_name(owner[0]),
            owner_key=owner[1],
            common=common,
            entry_count=entry_count,
            created=dates[0],
            modified=dates[1],
            description=description or None,
        )
    )
    return key


def acl_row_page(cx: Connection, repository_id: int, after_key: int, limit: int) -> list[acl_look_up.Row]:
    """List all, unnamed ones included, the oldest first."""
    query = sa.select(acls).where(acls.c.repository_id == repository_id, acls.c.id > after_key)
    return list(cx.execute(query.order_by(acls.c.id).limit(limit)))


def shown_ids(cx: Connection, keys_of_rows: Collection[int]) -> dict[int, str]:
    """Take at most a few hundred."""
    rows = cx.execute(sa.select(acls.c.id, acls.c.shown_id).where(acls.c.id.in_(sorted(set(keys_of_rows)))))
    return {row.id: row.shown_id for row in rows}


def keys_of(cx: Connection, repository_id: int, public_ids: Collection[str]) -> dict[str, int]:
    """Take at most a few hundred."""
    named = acls.c.shown_id.in_(sorted(set(public_ids)))
    rows = cx.execute(sa.select(acls.c.shown_id, acls.c.id).where(named, acls.c.repository_id == repository_id))
    return {row.shown_id: row.id for row in rows}


def has_own(cx: Connection, repository_id: int) -> bool:
    owned = acls.c.owner_key.not_in(("", acl_look_up.UNNAMED))
    return (
        cx.execute(sa.select(acls.c.id).where(acls.c.repository_id == repository_id, owned).limit(1)).first()
        is not None
    )


def remove_every(cx: Connection, repository_id: int) -> None:
    """No object may carry an ACL when this is called."""
    while rows := acl_row_page(cx, repository_id, 0, _AT_A_TIME):
        for row in rows:
            acl_entries.drop(cx, row.id)
        cx.execute(acls.delete().where(acls.c.id.in_([row.id for row in rows])))
