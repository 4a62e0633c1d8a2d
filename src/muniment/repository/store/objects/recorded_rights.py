"""Record which ACL and which owner an object gets after it was made. What it was made with, the object itself says."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.audit import select_rights
from muniment.repository import audit
from muniment.repository.store.objects.table import StoredObject, objects, wastebasket
from muniment.repository.store.permissions import acl_rows

_ACLS: dict[str, Callable[[StoredObject], int | None]] = {
    "acl": lambda stored: stored.acl_id,
    "default acl": lambda stored: stored.default_acl_id,
}


def changed(cx: Connection, action: str, pairs: Sequence[tuple[StoredObject, StoredObject]]) -> None:
    """``pairs``: an object before and after, one row each for what differs."""
    differing = [pair for pair in pairs if _rights(pair[0]) != _rights(pair[1])]
    if not differing:
        return
    ids = {acl_id for pair in differing for each in pair for of in _ACLS.values() if (acl_id := of(each)) is not None}
    shown = acl_rows.shown_ids(cx, ids)
    for before, after in differing:
        former, new, rights = dict[str, object](), dict[str, object](), list[audit.Right]()
        for kind, of in _ACLS.items():
            if of(before) != of(after):
                former[kind], new[kind] = texts = shown.get(of(before) or 0, ""), shown.get(of(after) or 0, "")
                rights.append(audit.Right(kind, texts[1], before.id, *texts))
        if before.owner_key != after.owner_key:
            former["owner"], new["owner"] = before.owner, after.owner
            rights.append(audit.Right("owner", after.owner_key, before.id, before.owner_key, after.owner_key))
        audit.record(cx, action, audit.Target("object", before.name, before.id), former, new, rights=rights)


def given(cx: Connection, ids: Collection[str], owner: str, owner_key: str) -> None:
    """Objects of others, which are about to get this owner: one event for all."""
    which = objects.c.id.in_(ids)
    rights = select_rights("owner", owner_key, objects.c.id, objects.c.owner_key, owner_key).where(which)
    _given(cx, len(ids), owner, rights)


def given_deleted(cx: Connection, number: int, repository_id: int, key: str, owner: str, owner_key: str) -> None:
    """As ``given``, for what ``key`` owned of the wastebasket."""
    table = wastebasket
    which = (table.c.repository_id == repository_id) & (table.c.owner_key == key)
    _given(cx, number, owner, select_rights("owner", owner_key, table.c.id, key, owner_key).where(which))


def _given(cx: Connection, number: int, owner: str, rights: sa.Select[Any]) -> None:
    audit.record(cx, "objects given", audit.Target("user", owner), None, {"objects": number}, rights=[rights])


def _rights(stored: StoredObject) -> tuple[int, int | None, str]:
    return stored.acl_id, stored.default_acl_id, stored.owner_key
