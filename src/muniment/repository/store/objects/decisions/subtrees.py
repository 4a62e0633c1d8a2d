"""Delete a folder with everything in it, or refuse and delete nothing.

Source: docs/interface.md, ours 2 (`del-non-empty`, `del-all-links`).
"""

from collections.abc import Mapping

from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.repository.refusals import InUse
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.folders import filing
from muniment.repository.store.objects.listing import object_ids
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions import acl_entries
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.repositories import Repository


def delete(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    now: Instant,
    most: int,
    *,
    all_links: bool = False,
    expected: int | None = None,
    kind: str = "object",
    keep_days: int = 0,
) -> list[StoredObject]:
    """Return the removed objects, the folder last.

    What also lies in a folder outside only loses its links to the deleted folders, unless ``all_links``. The caller
    needs Delete on each deleted object, and Write on each that only loses links, even unseen ones. Without, or beyond
    ``most`` objects, the refusal (InUse) says only that the folder is not empty: it tells nothing of hidden objects.

    After the commit, the caller removes the ``freed`` contents; none are freed while objects stay in the wastebasket
    for ``keep_days``.

    Raises UnknownObject, NotPermitted, VersionConflict, CheckedOut, InUse.
    """
    root = objects.lock_to_delete(cx, repository, principals, object_id, kind, expected)
    going, staying = _members(cx, root, most, all_links=all_links)
    least = {(each.acl_id, each.owner_key): Permission.WRITE for each in staying.values()}
    least |= {(each.acl_id, each.owner_key): Permission.DELETE for each in going.values() if each is not root}
    permissions = acl_entries.permissions(cx, set(least), principals)
    if any(permissions[carried] < needed for carried, needed in least.items()):
        raise _not_empty(most)
    for each in (*going.values(), *staying.values()):
        objects.refuse_others(each, principals)
    for each in staying.values():
        left = [folder_id for folder_id in each.folder_ids if folder_id not in going]
        objects.put_into_folders(cx, each, principals, left, now)
    return objects.remove(cx, filing.from_below(going), principals, now, keep_days)


def _members(
    cx: Connection, root: StoredObject, most: int, *, all_links: bool
) -> tuple[Mapping[str, StoredObject], Mapping[str, StoredObject]]:
    """Return the objects to delete (the folder, too), and those that only lose links, all locked.

    Raises InUse if more than ``most`` objects are in the folder.
    """
    going, staying, edge = {root.id: root}, dict[str, StoredObject](), [root]
    while folders := [each.id for each in edge if object_ids.holds_objects(each.id)]:
        for each in filing.lock_children(cx, folders, most + 1):
            if each.id not in going:
                staying[each.id] = each
        if len(going) - 1 + len(staying) > most:
            raise _not_empty(most)
        edge = [each for each in staying.values() if all_links or going.keys() >= set(each.folder_ids)]
        for each in edge:
            going[each.id] = staying.pop(each.id)
    return going, staying


def _not_empty(most: int) -> InUse:
    return InUse(
        f"{objects.NOT_EMPTY} A caller who may delete everything in it can delete all of that together, "
        f"if that is at most {most} objects."
    )
