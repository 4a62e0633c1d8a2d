"""ACLs without a name hold sets of entries that were put on objects directly.

Objects with equal sets carry the same ACL; one whose entries change gets another. The entries change only when a user
or group leaves the directory; then no further object gets the ACL. Callers see only the entries on an object, so nobody
can tell that objects share them. It has no owner and counts against no quota.

Source: docs/interface.md, ours 4; docs/decisions/0080.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from muniment.ground.clock import Instant
from muniment.repository.refusals import VersionConflict
from muniment.repository.store import repositories
from muniment.repository.store.permissions import acl_rows, principals
from muniment.repository.store.permissions.acl_look_up import UNNAMED
from muniment.repository.store.permissions.table import acls

_AT_A_TIME = 500
_CHANGED = "changed "


def find_or_make(cx: Connection, repository_id: int, entries: Mapping[str, principals.Permission], now: Instant) -> int:
    """Find or make an ACL with entries that ``acl_entries.check`` has returned. Until the commit nobody removes the
    ACL.

    Raises VersionConflict if it was removed while this function ran.
    """
    name = name_of(entries)
    present = sa.select(acls.c.id).where(
        acls.c.repository_id == repository_id, acls.c.owner_key == UNNAMED, acls.c.name == name
    )
    locked = present.with_for_update(read=True, key_share=True)
    acl_id = cx.scalar(locked)
    if acl_id is None:
        row = acl_rows.insert(cx, repository_id, name, ("", UNNAMED), entries, now, common=False)
        if row is not None:
            return int(row.id)
        acl_id = cx.scalar(locked)  # another transaction has made it meanwhile
    if acl_id is None:
        raise VersionConflict("The permissions were changed at the same time: try again.")
    return int(acl_id)


def keep_apart(cx: Connection, acl_ids: Collection[int]) -> None:
    """Mark those that are unnamed: their entries have changed, so no further object may share them."""
    own_name = sa.literal(_CHANGED) + acls.c.shown_id
    cx.execute(acls.update().where(acls.c.id.in_(acl_ids), acls.c.owner_key == UNNAMED).values(name=own_name))


def remove_unused(cx: Connection, is_used: Callable[[sa.ColumnElement[int]], sa.ColumnElement[bool]]) -> int:
    """Remove some that nothing uses (by ``is_used`` for an ACL's id); return how many. None is removed if one comes
    into use meanwhile. Without a guard, all stay: an import stores ACLs before the objects that carry them.
    """
    closed = [each.id for each in repositories.all_repositories(cx) if not each.resource_id]
    unused = sa.select(acls.c.id).where(acls.c.owner_key == UNNAMED, sa.not_(is_used(acls.c.id))).limit(_AT_A_TIME)
    if closed:
        unused = unused.where(acls.c.repository_id.not_in(closed))
    acl_ids = list(cx.scalars(unused))
    try:
        with cx.begin_nested():
            acl_rows.remove(cx, acl_ids)
    except IntegrityError:
        return 0
    return len(acl_ids)


def is_apart(name: str) -> bool:
    return name.startswith(_CHANGED)


def name_apart(shown_id: str) -> str:
    """Make a name by which no further object shares the ACL."""
    return _CHANGED + shown_id


def name_of(entries: Mapping[str, principals.Permission]) -> str:
    """Write equal sets as the same text."""
    return hashlib.sha256(msgspec.json.encode(sorted((key, int(level)) for key, level in entries.items()))).hexdigest()
