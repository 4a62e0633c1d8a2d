"""Check an object out, so that nobody else changes it, or cancel that.

A check-out is bound to the user's key: no later bearer of the name inherits it.

Source: docs/interface.md, ours 17.
"""

from collections.abc import Callable

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.repository.refusals import NotCheckedOut, WrongValue
from muniment.repository.store.objects import objects, version_tree
from muniment.repository.store.objects.listing import object_ids
from muniment.repository.store.objects.properties.version import Lock
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions import acl_entries
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.repositories import Repository


def check_out(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    now: Instant,
    *,
    expected: int | None = None,
) -> StoredObject:
    """Nothing changes for who has it checked out already.

    Raises UnknownObject, NotPermitted (if the caller lacks the permission Version), VersionConflict, WrongValue (a
    folder), CheckedOut.
    """
    stored, permission = objects.lock_to_use(cx, repository, principals, object_id, "object", expected)
    check(stored, permission, "check this object out")
    if stored.version.lock is not None:
        objects.refuse_others(stored, principals)
        return stored
    lock = Lock(principals.id, principals.key, now)
    return version_tree.put(cx, stored, msgspec.structs.replace(stored.version, lock=lock), now, "properties")


def cancel(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    now: Instant,
    *,
    expected: int | None = None,
    holder: Callable[[Connection, Lock], Principals | None] | None = None,
) -> StoredObject:
    """An administrator may cancel any check-out; who has Delete, that of a user who lacks Version by now.

    ``holder`` returns the principals of the user who has it, or None if nobody can say.

    Raises UnknownObject, NotPermitted (if the caller lacks the permission Version), VersionConflict, WrongValue (a
    folder), NotCheckedOut, CheckedOut.
    """
    stored, permission = objects.lock_to_use(cx, repository, principals, object_id, "object", expected)
    check(stored, permission, "cancel this check-out")
    if stored.version.lock is None:
        raise NotCheckedOut("Nobody has this object checked out.")
    if not principals.administrator and (
        permission < Permission.DELETE or holder is None or _may_go_on(cx, stored, holder(cx, stored.version.lock))
    ):
        objects.refuse_others(stored, principals)
    return version_tree.put(cx, stored, msgspec.structs.replace(stored.version, lock=None), now, "properties")


def check(stored: StoredObject, permission: Permission, action: str) -> None:
    """Raises NotPermitted, WrongValue (a folder)."""
    objects.require(permission, Permission.VERSION, action)
    if object_ids.holds_objects(stored.id):
        raise WrongValue("A folder has no versions, and cannot be checked out.")


def _may_go_on(cx: Connection, stored: StoredObject, holder: Principals | None) -> bool:
    lock = stored.version.lock
    if holder is None or lock is None:
        return True
    level = acl_entries.permission(cx, stored.acl_id, stored.owner_key, holder)
    return holder.is_(lock.owner_key) and level >= Permission.VERSION
