"""Delete a folder with everything in it, all or nothing.

Source: docs/interface.md, ours 2 (`del-non-empty`).
"""

from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.repository.objects import object_ids, objects
from muniment.repository.objects.table import StoredObject
from muniment.repository.permissions import acl_entries
from muniment.repository.permissions.principals import Permission, Principals
from muniment.repository.refusals import InUse
from muniment.repository.repositories import Repository


def delete(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    now: Instant,
    most: int,
    *,
    expected: int | None = None,
    kind: str = "object",
) -> list[StoredObject]:
    """Delete an object and, if it is a folder, everything in it; returns the removed objects, the folder last.

    The caller must have the permission Delete on each of them, also on those that they cannot see. If they lack it, or
    if there are more than ``most`` objects in the folder, the answer says only that it is not empty: it tells nothing
    of what is hidden. Contents are to be removed once this is committed. Raises UnknownObject, NotPermitted,
    VersionConflict, InUse.
    """
    level = [objects.lock_to_delete(cx, repository, principals, object_id, kind, expected)]
    levels, count = [level], 0
    while folders := [each.id for each in level if object_ids.holds_objects(each.id)]:
        level = objects.lock_children(cx, folders, most - count + 1)
        count += len(level)
        rights = {(each.acl_id, each.owner_key) for each in level}
        permissions = acl_entries.permissions(cx, rights, principals)
        if count > most or min(permissions.values(), default=Permission.DELETE) < Permission.DELETE:
            raise InUse(
                f"{objects.NOT_EMPTY} A caller who may delete everything in it can delete it with that, "
                f"if that is at most {most} objects."
            )
        levels.append(level)
    # What lies in a folder goes before the folder.
    return [gone for some in reversed(levels) for gone in objects.remove(cx, some, now)]
