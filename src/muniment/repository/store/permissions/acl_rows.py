"""How are ACLs stored with their entries, imported, listed and removed, and how is that recorded? No rights are checked
here.
"""

from collections.abc import Collection, Mapping
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.statements import next_keys, upsert
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.repository import audit, keys
from muniment.repository.store.permissions import acl_entries, acl_look_up, acl_names, principals
from muniment.repository.store.permissions.table import acls

_AT_A_TIME = 500


class NamedAcl(Protocol):
    """A row of an ACL, or what was read of it."""

    @property
    def shown_id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def owner_key(self) -> str: ...


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
    """Return None if the owner has this name, or the ACL is ``common`` and another common one has it. ``owner`` is name
    and key.
    """
    (key,) = next_keys(cx, acls.c.id)
    row = cx.execute(
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
    if row is not None:
        _keep_entries(cx, row, entries)
    return row


def put_back(
    cx: Connection,
    repository_id: int,
    shown_id: str,
    name: str,
    owner: tuple[str, str],
    entries: Mapping[str, principals.Permission],
    dates: tuple[Instant, Instant],
    *,
    common: bool,
    description: str = "",
) -> None:
    """Store an ACL of an export. ``dates``: made, last changed.

    Raises IntegrityError if another ACL has the id, or if the name is taken as in ``insert``.
    """
    (key,) = next_keys(cx, acls.c.id)
    row = cx.execute(
        acls.insert()
        .values(
            id=key,
            repository_id=repository_id,
            shown_id=shown_id,
            name=name,
            owner=owner[0],
            owner_name=fold_name(owner[0]),
            owner_key=owner[1],
            common=common,
            entry_count=len(entries),
            created=dates[0],
            modified=dates[1],
            description=description or None,
        )
        .returning(acls)
    ).one()
    _keep_entries(cx, row, entries)


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
        remove(cx, [row.id for row in rows])


def remove(cx: Connection, ids: Collection[int]) -> None:
    """Raises IntegrityError if something refers to one of them."""
    rows = cx.execute(sa.select(acls).where(acls.c.id.in_(ids))).all()
    if not rows:
        return
    target = target_of(*rows) if len(rows) == 1 else audit.Target("acl", f"{len(rows)} ACLs")
    audit.record(cx, "acl removed", target, rights=[acl_entries.rights_in(acls.c.id.in_(ids))])
    acl_entries.drop(cx, ids)
    cx.execute(acls.delete().where(acls.c.id.in_(ids)))


def target_of(acl: NamedAcl) -> audit.Target:
    """An unnamed one is called by its id."""
    if acl.owner_key == acl_look_up.UNNAMED:
        return audit.Target("acl", acl.shown_id, acl.shown_id)
    return audit.Target("acl", acl_names.write(acl.owner, acl.name) if acl.owner else acl.name, acl.shown_id)


def _keep_entries(cx: Connection, row: acl_look_up.Row, entries: Mapping[str, principals.Permission]) -> None:
    acl_entries.keep_entries(cx, row.id, entries)
    after = acl_entries.levels(entries)
    rights = acl_entries.changed_rights(row.shown_id, {}, after)
    audit.record(cx, "acl made", target_of(row), None, after, rights=rights)
