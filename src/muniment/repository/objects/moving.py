"""Put an object into a folder, move it to another, or take it out. An object lies in one folder at most.

Source: docs/interface.md, ours 2 (parent links and child links).
"""

from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.repository.objects import creation, object_ids, objects
from muniment.repository.objects.table import StoredObject
from muniment.repository.objects.view import RepositoryView
from muniment.repository.permissions.principals import Permission, Principals
from muniment.repository.refusals import NotOfferedYet, NotPermitted, UnknownObject, WrongValue
from muniment.repository.repositories import Repository


def link(
    cx: Connection,
    view: RepositoryView,
    object_id: str,
    folder_id: str,
    now: Instant,
) -> StoredObject:
    """Put an object that lies in no folder into one; its ACL stays. It takes Write on the object and on the folder.

    Raises UnknownObject, NotPermitted, WrongValue (a cabinet, a folder into itself), NotOfferedYet (a second folder).
    """
    stored = objects.lock_to_change(cx, view.repository, view.principals, object_id)
    if stored.folder_id is not None:
        raise NotOfferedYet("The object lies in a folder already, and links to several folders are not offered yet.")
    return _put(cx, view, stored, folder_id, now)


def move(
    cx: Connection,
    view: RepositoryView,
    object_id: str,
    folder_id: str,
    to_folder_id: str,
    now: Instant,
) -> StoredObject:
    """Move an object from its folder to another. The caller needs Write on the object and on both folders.

    Raises as ``link`` and ``unlink`` do.
    """
    stored = _lock_in_folder(cx, view.repository, view.principals, object_id, folder_id)
    return _put(cx, view, stored, to_folder_id, now)


def unlink(
    cx: Connection, repository: Repository, principals: Principals, object_id: str, folder_id: str, now: Instant
) -> StoredObject:
    """Take an object out of its folder. The caller needs Write on both.

    Raises UnknownObject (also if the object is not in that folder), NotPermitted, WrongValue (for a folder, which must
    lie in another).
    """
    stored = _lock_in_folder(cx, repository, principals, object_id, folder_id)
    if object_ids.holds_objects(stored.id):
        raise WrongValue("A folder lies in a cabinet or in another folder: move it instead.")
    return objects.put_into_folder(cx, stored, principals, None, now)


def read_member(
    cx: Connection, repository: Repository, principals: Principals, object_id: str, folder_id: str
) -> StoredObject:
    """Read an object that lies in this folder. Raises UnknownObject."""
    stored, _ = objects.read(cx, repository, object_id, principals)
    _check_in_folder(stored, folder_id)
    return stored


def _lock_in_folder(
    cx: Connection, repository: Repository, principals: Principals, object_id: str, folder_id: str
) -> StoredObject:
    stored = objects.lock_to_change(cx, repository, principals, object_id)
    _check_in_folder(stored, folder_id)
    try:
        _, permission = objects.read(cx, repository, folder_id, principals, "folder")
    except UnknownObject:
        permission = Permission.NONE
    if permission < Permission.WRITE:
        raise NotPermitted("You may not take objects out of this folder: it takes the permission Write.")
    return stored


def _check_in_folder(stored: StoredObject, folder_id: str) -> None:
    if stored.folder_id != folder_id.lower():
        raise UnknownObject(f"The object {stored.id!r} does not lie in the folder {folder_id[:40]!r}.")


def _put(
    cx: Connection,
    view: RepositoryView,
    stored: StoredObject,
    folder_id: str,
    now: Instant,
) -> StoredObject:
    folder = creation.may_create(cx, view, stored.type, folder_id)
    if folder is not None and stored.id in objects.lock_with_folders_above(cx, folder.id):
        raise WrongValue("A folder cannot lie in itself or in a folder below it.")
    return objects.put_into_folder(cx, stored, view.principals, folder_id.lower(), now)
