"""In which folders does an object lie, and which objects lie in a folder? No right is checked here.

An object's row holds all its folders (``table``), a row in ``folder_links`` each besides the first. Whoever writes
links has locked the object's row.

Source: docs/interface.md, ours 2; decision 0077.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from graphlib import TopologicalSorter

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import portions
from muniment.repository.store.objects.table import StoredObject, encode_ids, folder_links, objects, read_ids, read_row

MOST_FOLDERS = 100


def lock_children(cx: Connection, folder_ids: Collection[str], limit: int) -> list[StoredObject]:
    """Return each child once, and lock its row."""
    children: dict[str, StoredObject] = {}
    for portion in portions(sorted(folder_ids)):
        linked = sa.select(folder_links.c.object_id).where(folder_links.c.folder_id.in_(portion))
        for condition in (objects.c.folder_id.in_(portion), objects.c.id.in_(linked)):
            query = sa.select(objects).where(condition).order_by(objects.c.seq).limit(limit).with_for_update()
            rows = map(read_row, cx.execute(query))
            children.update((row.id, row) for row in rows if not set(portion).isdisjoint(row.folder_ids))
            if len(children) >= limit:
                return list(children.values())[:limit]
    return list(children.values())


def with_all_above(cx: Connection, folder_ids: Iterable[str]) -> set[str]:
    every = set(folder_ids)
    edge = sorted(every)
    while edge:
        above: set[str] = set()
        for ids in portions(edge):
            portion = objects.c.id.in_(ids)
            for first, further in cx.execute(sa.select(objects.c.folder_id, objects.c.further_folders).where(portion)):
                above.update([first] if first else [], read_ids(further))
        edge = sorted(above - every)
        every |= above
    return every


def from_below(stored_objects: Mapping[str, StoredObject]) -> list[StoredObject]:
    """Put each object before the folders in which it lies."""
    order = TopologicalSorter[str]()
    for each in stored_objects.values():
        order.add(each.id)
        for folder_id in each.folder_ids:
            if folder_id in stored_objects:
                order.add(folder_id, each.id)
    return [stored_objects[object_id] for object_id in order.static_order()]


def write(cx: Connection, stored: StoredObject, folder_ids: Sequence[str]) -> dict[str, object]:
    """Write the rows of ``folder_links``, which the first folder does not get; return the columns of the object's own
    row.

    Raises IntegrityError when a folder is gone.
    """
    further = list(folder_ids[1:])
    if gone := set(stored.further_folders).difference(further):
        of_object = folder_links.c.object_id == stored.id
        cx.execute(folder_links.delete().where(of_object, folder_links.c.folder_id.in_(sorted(gone))))
    rows = [_row(stored, folder_id) for folder_id in further if folder_id not in stored.further_folders]
    if rows:
        cx.execute(folder_links.insert(), rows)
    return {"folder_id": folder_ids[0] if folder_ids else None, "further_folders": encode_ids(further)}


def put_back(cx: Connection, stored_objects: Collection[StoredObject]) -> None:
    """Write the links of objects whose own rows name all folders already. At most one folder costs no statement."""
    rows = [_row(each, folder_id) for each in stored_objects for folder_id in each.further_folders]
    if rows:
        cx.execute(folder_links.insert(), rows)


def rename(cx: Connection, stored: StoredObject, name: str) -> None:
    if stored.further_folders:
        cx.execute(folder_links.update().where(folder_links.c.object_id == stored.id).values(name=name))


def mark(cx: Connection, stored: StoredObject, *, former: bool) -> None:
    if stored.further_folders and stored.former != former:
        cx.execute(folder_links.update().where(folder_links.c.object_id == stored.id).values(former=int(former)))


def drop(cx: Connection, stored_objects: Collection[StoredObject]) -> None:
    for ids in portions(each.id for each in stored_objects if each.further_folders):
        cx.execute(folder_links.delete().where(folder_links.c.object_id.in_(ids)))


def _row(stored: StoredObject, folder_id: str) -> dict[str, object]:
    columns = {"name": stored.name, "seq": stored.seq, "former": int(stored.former)}
    return {"object_id": stored.id, "folder_id": folder_id, **columns}
