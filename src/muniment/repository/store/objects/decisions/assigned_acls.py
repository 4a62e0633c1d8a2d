"""Put an ACL or ACL entries on an object, and choose the ACL of new objects in a folder.

Only the owner, or an administrator, may do so.

Source: docs/interface.md, ours 4.
"""

from collections.abc import Mapping

from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.repository.refusals import NotPermitted
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.listing import object_acls
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions import acl_entries, acls, unnamed_acls
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.repositories import Repository


def assign(
    cx: Connection, repository: Repository, principals: Principals, object_id: str, acl_name: str, now: Instant
) -> StoredObject:
    """Put an ACL on an object; the very next request obeys it.

    Raises UnknownObject, NotPermitted, UnknownAcl, VersionConflict.
    """
    stored = _lock_of_owner(cx, repository, principals, object_id)
    acl_id = stored.acl_id
    if acl_name != object_acls.shown_name(cx, stored, principals):
        acl_id = object_acls.find_assignable(cx, repository.id, acl_name, principals)
    return objects.update(cx, stored, principals, ["acl"], now, acl_id=acl_id)


def permit(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    entries: Mapping[str, Permission],
    now: Instant,
) -> StoredObject:
    """Put entries on an object, without making a named ACL; the very next request obeys them.

    An ACL with exactly these entries is kept.

    Raises UnknownObject, NotPermitted, UnknownAccessor, WrongValue, VersionConflict.
    """
    stored = _lock_of_owner(cx, repository, principals, object_id)
    acl_id = _acl_of_entries(cx, repository, principals, stored.acl_id, entries, now)
    return objects.update(cx, stored, principals, ["acl"], now, acl_id=acl_id)


def set_default_acl(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    folder_id: str,
    acl: str | Mapping[str, Permission] | None,
    now: Instant,
) -> StoredObject:
    """Choose the ACL of new objects in a folder; with None, they get its own.

    Raises UnknownObject, NotPermitted, UnknownAcl, UnknownAccessor, WrongValue, VersionConflict.
    """
    stored = _lock_of_owner(cx, repository, principals, folder_id, "folder")
    acl_id = None
    if isinstance(acl, str):
        acl_id = object_acls.find_assignable(cx, repository.id, acl, principals)
    elif acl is not None:
        acl_id = _acl_of_entries(cx, repository, principals, stored.default_acl_id or stored.acl_id, acl, now)
    return objects.update(cx, stored, principals, ["properties"], now, default_acl_id=acl_id)


def _lock_of_owner(
    cx: Connection, repository: Repository, principals: Principals, object_id: str, kind: str = "object"
) -> StoredObject:
    stored, _ = objects.lock_to_use(cx, repository, principals, object_id, kind, None)
    if not principals.administrator and not principals.is_(stored.owner_key):
        raise NotPermitted("Only its owner or an administrator may assign an object's ACL.")
    return stored


def _acl_of_entries(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    present_id: int,
    entries: Mapping[str, Permission],
    now: Instant,
) -> int:
    present = acls.by_id(cx, present_id).entries
    checked_entries = acl_entries.check(cx, entries, present, principals, now)
    if checked_entries == present:
        return present_id
    return unnamed_acls.find_or_make(cx, repository.id, checked_entries, now)
