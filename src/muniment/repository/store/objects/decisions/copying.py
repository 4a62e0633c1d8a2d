"""Copy an object, and a folder with everything in it; copies share the bytes.

What the caller may not browse, and former versions, are left out of a folder.

If the caller may browse any other object but not read it, nothing is copied. Source: docs/interface.md, ours 2 (a body
with `href`).
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import portions
from muniment.ground.clock import Instant
from muniment.repository.refusals import NotPermitted, WrongValue
from muniment.repository.store.objects import inventory, objects
from muniment.repository.store.objects.contents import further_contents, usage
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.listing import lists, object_ids
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties import properties
from muniment.repository.store.objects.table import StoredObject, folder_links, read_row
from muniment.repository.store.objects.table import objects as objects_table
from muniment.repository.store.objects.types.object_types import Catalogue
from muniment.repository.store.permissions import principals


def lock_originals(
    cx: Connection, view: RepositoryView, object_id: str, most: int, *, deep: bool = True
) -> list[StoredObject]:
    """Read the objects to copy: an object and, if it is a folder, everything below it that the caller may browse.

    Without ``deep``, a folder is copied alone.

    The object may be a former version, but former versions in a folder are left out. Until the end of the transaction,
    nobody can replace the contents of these objects. The object with this id comes first. Raises WrongValue if more
    than ``most`` objects are to be copied with it. Raises UnknownObject, and NotPermitted if the caller may not read
    one of the objects.
    """
    root = objects.readable(cx, view.repository, object_id, view.principals, lock=True)
    every, edge = {root.id: root}, [root] if deep else []
    while folders := [each.id for each in edge if object_ids.holds_objects(each.id)]:
        members = _children(cx, view, folders, most + 1)
        edge = [each for each in members if each.id not in every]
        every.update((each.id, each) for each in edge)
        if len(members) > most or len(every) > most + 1:
            raise WrongValue(f"A folder is copied with at most {most} objects: copy folders further down.")
        if objects.lowest_permission(cx, edge, view.principals) < principals.Permission.READ:
            raise NotPermitted(
                "You may not copy this folder: it takes the permission Read on every object that you see in it."
            )
    return list(every.values())


def copy(
    cx: Connection,
    view: RepositoryView,
    sources: Sequence[StoredObject],
    folder_id: str | None,
    now: Instant,
    quota: usage.StorageQuota,
    changes: Mapping[str, properties.Given] = MappingProxyType({}),
) -> StoredObject:
    """Copy the objects that ``lock_originals`` returned, with the same contents. The caller owns the copies.

    The copy of the first object has other properties where ``changes`` says so. It is put into the folder
    ``folder_id``, and is returned. Every other object lies in one
    or more folders among ``sources``, and its copy is put into the copies of these folders. Raises what
    ``creation.create`` raises.
    """
    root = sources[0]
    further = further_contents.by_object(cx, [each.id for each in sources])
    copies: dict[str, StoredObject] = {}
    folders = {each.id for each in sources if object_ids.holds_objects(each.id)}
    parents = {each.id: [at for at in each.folder_ids if at in folders and each is not root] for each in sources}
    level, left = [root], list(sources[1:])
    while level:
        new = [
            creation.NewObject(
                each.type,
                {**_writable(each, view.catalogue), **(changes if each is root else {})},
                folder_id if each is root else _places(each, parents, copies)[0],
                each.content,
                shared=True,
                further=[(one.place, one.media_type, one.content) for one in further.get(each.id, ())],
                original=each.properties,
            )
            for each in level
        ]
        made = creation.create_all(cx, view, new, now, quota)
        copies.update((each.id, stored) for each, stored in zip(level, made, strict=True))
        level = [each for each in left if _places(each, parents, copies)]
        left = [each for each in left if each.id not in {one.id for one in level}]
    for each in sources:
        if len(parents[each.id]) > 1:
            places = _places(each, parents, copies)
            first = copies[each.id].folder_id
            ordered = [first, *(place for place in places if place != first)] if first else places
            objects.put_into_folders(cx, copies[each.id], view.principals, ordered, now)
    return copies[root.id]


def _children(cx: Connection, view: RepositoryView, folder_ids: Sequence[str], limit: int) -> list[StoredObject]:
    children: dict[str, StoredObject] = {}
    for portion in portions(folder_ids):
        linked = sa.select(folder_links.c.object_id).where(
            folder_links.c.folder_id.in_(portion), folder_links.c.former == sa.literal_column("0")
        )
        current = objects_table.c.former == sa.literal_column("0")
        for condition in (objects_table.c.folder_id.in_(portion), objects_table.c.id.in_(linked)):
            query = (
                sa.select(objects_table).where(condition, current, lists.browsable(view)).order_by(objects_table.c.seq)
            )
            children.update(
                (row[1], read_row(row)) for row in cx.execute(query.limit(limit).with_for_update(of=objects_table))
            )
    return list(children.values())


def _places(
    original: StoredObject, parents: Mapping[str, Sequence[str]], copies: Mapping[str, StoredObject]
) -> list[str]:
    return [copies[folder_id].id for folder_id in parents[original.id] if folder_id in copies]


def _writable(source: StoredObject, catalogue: Catalogue) -> dict[str, properties.Given]:
    """Return values as callers send them. A property with a default but no value is None, so that the copy does not get
    the default.
    """
    values_to_copy: dict[str, properties.Given] = {each.name: None for each in catalogue.ruled(source.type)}
    for name, values in inventory.values(source, catalogue, "").items():
        definition = catalogue.properties_of(source.type)[name]
        if definition.writable:
            json_value = properties.as_sent(definition, values)
            values_to_copy[name] = json_value if definition.repeating else json_value[0]
    return values_to_copy
