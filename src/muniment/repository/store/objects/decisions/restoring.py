"""Restore a deleted object, or remove it for good.

The caller's present rights count, not those at the deletion.

Source: docs/interface.md, ours 18; decision 0077.
"""

from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.repository.refusals import NotPermitted, UnknownObject, WrongValue
from muniment.repository.store.objects import objects, recorded_rights, version_tree, wastebasket
from muniment.repository.store.objects.contents import further_contents
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.folders import filing, unique_names
from muniment.repository.store.objects.listing import object_ids
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.properties import Value, fit
from muniment.repository.store.objects.properties.version import CURRENT, FIRST, Version, is_on_branch_of
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.objects.types.object_types import Catalogue
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission, Principals


def restore(cx: Connection, view: RepositoryView, object_id: str, folder_id: str, now: Instant) -> StoredObject:
    """Restore an object with those that go with it (``wastebasket.lock_with_all_below``), under their ids.

    It goes into ``folder_id``; if that is empty, into its former folders that exist and in which the caller may write.
    The caller must own each object, or have Delete on it. A lost ACL becomes that of the first folder, or ``private``.
    Raises UnknownObject, NotPermitted, NameTaken, UnknownType, VersionConflict, WrongValue (also if no former folder
    can be used, or a type is now one for another kind).
    """
    discards = _lock(cx, view, object_id, now)
    _check_kinds(discards, view.catalogue)
    root, ids = discards[0], {each.id for each in discards}
    open_folders: dict[str, StoredObject | None] = {}
    for each in discards:
        for parent in each.folder_ids:
            if parent not in ids and parent not in open_folders:
                open_folders[parent] = _open_folder(cx, view, each.type, parent)
    if folder_id:
        open_folders[folder_id] = creation.may_create(cx, view, root.type, folder_id)
        places = {root.id: [folder_id]}
    else:
        places = {root.id: [parent for parent in root.folder_ids if open_folders.get(parent)]}
        if root.folder_ids and not places[root.id]:
            raise WrongValue("Its folders are gone, or you may not write there: name another folder with 'href'.")
    for each in discards[1:]:
        places[each.id] = [parent for parent in each.folder_ids if parent in ids or open_folders.get(parent)]
        if folder_id and each.folder_ids and not places[each.id]:
            places[each.id] = [folder_id]
    versions = _versions(cx, discards, now)
    listed = [each for each in discards if not versions.get(each.id, FIRST).former]
    _claim_names(cx, view, {each.id: each.name for each in listed}, places)
    known_acls = acls.names(cx, {acl_id for each in discards for acl_id in (each.acl_id, each.default_acl_id or 0)})
    first = open_folders.get(places[root.id][0]) if places[root.id] else None
    instead = first.acl_id if first is not None else acls.built_in(cx, view.repository.id, acls.PRIVATE, now)
    further = wastebasket.take_out(cx, [each.id for each in discards])
    restored = [
        msgspec.structs.replace(
            each,
            folder_id=places[each.id][0] if places[each.id] else None,
            further_folders=tuple(places[each.id][1 : filing.MOST_FOLDERS]),
            acl_id=each.acl_id if each.acl_id in known_acls else instead,
            default_acl_id=each.default_acl_id if each.default_acl_id in known_acls else None,
            version=versions.get(each.id, FIRST),
            properties=_valid(each, view.catalogue),
            modified=now,
            modifier=view.principals.id,
            revision=each.revision + 1,
        )
        for each in discards
    ]
    by_id = {each.id: each for each in restored}
    stored_again = objects.put_back(cx, view, filing.from_below(by_id)[::-1], now)
    further_contents.put_back(cx, further)
    recorded_rights.changed(cx, "object restored", [(each, by_id[each.id]) for each in discards])
    return next(each for each in stored_again if each.id == root.id)


def remove(cx: Connection, view: RepositoryView, object_id: str, now: Instant) -> tuple[str, ...]:
    """Remove what ``restore`` would restore, for good.

    Returns the keys that no row uses any more: their contents are removed after the commit. The caller must own each
    object, or have Delete on it.

    Raises UnknownObject, NotPermitted.
    """
    discards = _lock(cx, view, object_id, now)
    return wastebasket.remove(cx, discards)


def _lock(cx: Connection, view: RepositoryView, object_id: str, now: Instant) -> list[StoredObject]:
    discards = wastebasket.lock_with_all_below(
        cx, wastebasket.find(cx, view.repository, view.principals, object_id, now)
    )
    _check_rights(cx, discards, view.principals)
    return discards


def remove_until(cx: Connection, view: RepositoryView, until: Instant, limit: int) -> tuple[int, tuple[str, ...]]:
    """Remove about ``limit`` of the objects deleted up to ``until``, the oldest first; those deleted together go
    together.

    Returns how many, and what ``remove`` returns.

    Raises NotPermitted unless the caller is an administrator.
    """
    if not view.principals.administrator:
        raise NotPermitted("You may not do this: only administrators remove what others deleted.")
    return wastebasket.remove_until(cx, view.repository.id, until, limit)


def _versions(cx: Connection, discards: Sequence[StoredObject], now: Instant) -> dict[str, Version]:
    """Return the ``version`` of each restored object; one left out begins a new tree.

    A tree is restored, without check-outs, only if the repository has none of its versions any more. If its current
    version is missing, the newest becomes current; the first version stands in for a missing antecedent. Otherwise only
    the first version, whose id is the chronicle id, returns to its tree, as a former one.
    """
    trees: dict[str, list[StoredObject]] = {}
    for each in sorted(discards, key=lambda one: one.seq):
        if each.version.chronicle_id is not None:
            trees.setdefault(each.version.chronicle_id, []).append(each)
    for chronicle_id in sorted(trees):
        version_tree.serialize(cx, chronicle_id)
    living: dict[str, list[version_tree.Member]] = {}
    for member in version_tree.members(cx, trees) if trees else ():
        living.setdefault(member.chronicle_id, []).append(member)
    versions: dict[str, Version] = {}
    for chronicle_id, tree in trees.items():
        if chronicle_id in living:
            first = next((each.version for each in tree if each.id == chronicle_id), None)
            if first is not None:
                version_tree.adopt(cx, chronicle_id, living[chronicle_id], now)
                superseded = any(is_on_branch_of(each.labels[0], first.number) for each in living[chronicle_id])
                versions[chronicle_id] = Version(
                    chronicle_id, None, (first.number,), former=True, superseded=superseded
                )
            continue
        versions |= _of_whole_tree(chronicle_id, tree)
    return versions


def _of_whole_tree(chronicle_id: str, tree: Sequence[StoredObject]) -> dict[str, Version]:
    versions: dict[str, Version] = {}
    numbers, lost = {each.id: each.version.number for each in tree}, all(each.former for each in tree)
    antecedents: dict[str, str] = {}
    for each in tree:
        before = [to for to in (each.version.antecedent_id, chronicle_id) if to and to in numbers and to != each.id]
        if before:
            antecedents[each.id] = before[0]
    followed = {to for of, to in antecedents.items() if is_on_branch_of(numbers[of], numbers[to])}
    for each in tree:
        own = each.version
        is_new_current = lost and each is tree[-1]
        versions[each.id] = msgspec.structs.replace(
            own,
            antecedent_id=antecedents.get(each.id),
            labels=(*own.labels, CURRENT) if is_new_current else own.labels,
            former=own.former and not is_new_current,
            superseded=each.id in followed,
            lock=None,
        )
    return versions


def _check_rights(cx: Connection, discards: Sequence[StoredObject], principals: Principals) -> None:
    foreign = [each for each in discards if not principals.is_(each.owner_key)]
    if objects.lowest_permission(cx, foreign, principals) < Permission.DELETE:
        raise NotPermitted(
            "You may not restore or remove this: it takes the permission Delete on each object that goes with it."
        )


def _open_folder(cx: Connection, view: RepositoryView, type_name: str, folder_id: str) -> StoredObject | None:
    try:
        return creation.may_create(cx, view, type_name, folder_id)
    except (UnknownObject, NotPermitted):
        return None


def _check_kinds(discards: Sequence[StoredObject], catalogue: Catalogue) -> None:
    for each in discards:
        if not object_ids.fits(each.id, catalogue, each.type):
            raise WrongValue(
                f"The object type {each.type!r} was made anew for another kind of object than {each.id!r} is."
            )


def _claim_names(
    cx: Connection, view: RepositoryView, names: Mapping[str, str], places: Mapping[str, Sequence[str]]
) -> None:
    claims: dict[str, list[str]] = {}
    for object_id, name in names.items():
        among = [""] if object_ids.kind_of(object_id) == "cabinet" else []
        for folder_id in (*among, *(place for place in places[object_id] if place not in places)):
            claims.setdefault(folder_id, []).append(name)
    for folder_id, claimed in sorted(claims.items()):
        unique_names.claim(cx, view, folder_id or None, claimed)


def _valid(stored: StoredObject, catalogue: Catalogue) -> dict[str, list[Value]]:
    definitions = catalogue.properties_of(stored.type)
    return {
        name: values
        for name, values in stored.properties.items()
        if name in definitions and fit(definitions[name], values)
    }
