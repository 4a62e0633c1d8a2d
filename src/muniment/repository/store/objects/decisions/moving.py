"""Put an object into a further folder, move it, or take it out of a folder.

Source: docs/interface.md, ours 2 (parent links and child links).
"""

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.repository.refusals import NotPermitted, UnknownObject, WrongValue
from muniment.repository.store import repositories
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.folders import filing, unique_names
from muniment.repository.store.objects.listing import object_ids
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.repositories import Repository


def link(
    cx: Connection,
    view: RepositoryView,
    object_id: str,
    folder_id: str,
    now: Instant,
) -> StoredObject:
    """Put an object into a further folder; its ACL stays. The caller needs Write on both.

    Raises UnknownObject, NotPermitted, CheckedOut, NameTaken, VersionConflict. Raises WrongValue for a cabinet, and if
    the object lies there already, would lie in itself, or in more than ``filing.MOST_FOLDERS`` folders.
    """
    _lock_folders(cx, view.repository, object_id)
    stored = objects.lock_to_change(cx, view.repository, view.principals, object_id)
    return _put(cx, view, stored, folder_id.lower(), [*stored.folder_ids, folder_id.lower()], now)


def move(
    cx: Connection,
    view: RepositoryView,
    object_id: str,
    folder_id: str,
    to_folder_id: str,
    now: Instant,
) -> StoredObject:
    """The caller needs Write on the object and both folders; its other links stay.

    Raises what ``link`` and ``unlink`` raise.
    """
    _lock_folders(cx, view.repository, object_id)
    stored = _lock_in_folder(cx, view.repository, view.principals, object_id, folder_id)
    former, new = folder_id.lower(), to_folder_id.lower()
    return _put(cx, view, stored, new, [new if each == former else each for each in stored.folder_ids], now)


def unlink(
    cx: Connection, repository: Repository, principals: Principals, object_id: str, folder_id: str, now: Instant
) -> StoredObject:
    """Take an object out of a folder; its other links stay. The caller needs Write on both.

    Raises UnknownObject (also if the object is not in that folder), NotPermitted, CheckedOut, VersionConflict, and
    WrongValue if the object is a folder and would lie in no folder.
    """
    stored = _lock_in_folder(cx, repository, principals, object_id, folder_id)
    folder_ids = [each for each in stored.folder_ids if each != folder_id.lower()]
    if object_ids.holds_objects(stored.id) and not folder_ids:
        raise WrongValue("A folder lies in a cabinet or in another folder: move it instead.")
    return objects.put_into_folders(cx, stored, principals, folder_ids, now)


def read_member(
    cx: Connection, repository: Repository, principals: Principals, object_id: str, folder_id: str
) -> StoredObject:
    """Raises UnknownObject."""
    stored, _ = objects.read(cx, repository, object_id, principals)
    _check_in_folder(stored, folder_id)
    return stored


def _lock_folders(cx: Connection, repository: Repository, object_id: str) -> None:
    """Let one transaction at a time put folders into folders, so that no two together make a circle."""
    if object_ids.holds_objects(object_id.lower()):
        repositories.lock(cx, repository)


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
    if folder_id.lower() not in stored.folder_ids:
        raise UnknownObject(f"The object {stored.id!r} does not lie in the folder {folder_id[:40]!r}.")


def _put(
    cx: Connection,
    view: RepositoryView,
    stored: StoredObject,
    folder_id: str,
    folder_ids: Sequence[str],
    now: Instant,
) -> StoredObject:
    creation.may_create(cx, view, stored.type, folder_id)
    if len(set(folder_ids)) < len(folder_ids):
        raise WrongValue("The object lies in that folder already.")
    if len(folder_ids) > filing.MOST_FOLDERS:
        raise WrongValue(f"An object lies in at most {filing.MOST_FOLDERS} folders.")
    if object_ids.holds_objects(stored.id) and stored.id in filing.with_all_above(cx, [folder_id]):
        raise WrongValue("A folder cannot lie in itself or in a folder below it.")
    if folder_id not in stored.folder_ids:
        unique_names.claim(cx, view, folder_id, [stored.name])
    return objects.put_into_folders(cx, stored, view.principals, folder_ids, now)
