"""Check an object out, so that nobody else changes it. Cancel a check-out.

A check-out is bound to the key of its user, not to their name. So a later bearer of that name does not inherit it.
Source: docs/interface.md, ours 17.
"""

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.repository.objects import object_ids, objects, version_tree
from muniment.repository.objects.table import StoredObject
from muniment.repository.objects.version import Lock
from muniment.repository.permissions.principals import Permission, Principals
from muniment.repository.refusals import NotCheckedOut, WrongValue
from muniment.repository.repositories import Repository


def check_out(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    now: Instant,
    *,
    expected: int | None = None,
) -> StoredObject:
    """Check an object out for the caller. If they have it checked out already, nothing changes.

    ``expected`` is the revision that the caller has seen. Raises UnknownObject, NotPermitted (if the
    caller lacks the permission Version), VersionConflict, WrongValue (a folder), CheckedOut.
    """
    stored = lock_row(cx, repository, principals, object_id, "check this object out", expected=expected)
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
) -> StoredObject:
    """Cancel a check-out of the caller. An administrator may cancel any check-out.

    Raises UnknownObject, NotPermitted (if the caller lacks the permission Version), VersionConflict, WrongValue (a
    folder), NotCheckedOut, CheckedOut.
    """
    stored = lock_row(cx, repository, principals, object_id, "cancel this check-out", expected=expected)
    if stored.version.lock is None:
        raise NotCheckedOut("Nobody has this object checked out.")
    if not principals.administrator:
        objects.refuse_others(stored, principals)
    return version_tree.put(cx, stored, msgspec.structs.replace(stored.version, lock=None), now, "properties")


def lock_row(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    action: str,
    *,
    expected: int | None = None,
) -> StoredObject:
    """Read an object of which the caller may make versions, and lock its row.

    ``action`` says what the caller wants to do; a refusal repeats these words. Raises what ``check_out`` raises, except
    CheckedOut.
    """
    stored, permission = objects.lock_to_use(cx, repository, principals, object_id, "object", expected)
    check(stored, permission, action)
    return stored


def check(stored: StoredObject, permission: Permission, action: str) -> None:
    """Check that the caller may make versions of an object. Raises NotPermitted, WrongValue (a folder)."""
    objects.require(permission, Permission.VERSION, action)
    if object_ids.holds_objects(stored.id):
        raise WrongValue("A folder has no versions, and cannot be checked out.")
