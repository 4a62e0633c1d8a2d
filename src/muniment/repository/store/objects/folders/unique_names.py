"""Is a name still free in a folder?

It is checked only if the settings want unique names (decision 0077). The folder's row is locked until the transaction
ends, so that no two callers take one name. A refusal may reveal an object that the caller may not browse: operators
accept this (docs/interface.md, ours 2).
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import portions
from muniment.database.statements import without_index
from muniment.ground.naming import compositions
from muniment.repository.refusals import NameTaken
from muniment.repository.store import repositories
from muniment.repository.store.objects.listing import object_ids
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.table import StoredObject, folder_links, objects


def claim(cx: Connection, view: RepositoryView, folder_id: str | None, names: Sequence[str], besides: str = "") -> None:
    """Check names in a folder, or among the cabinets, if they must be unique. Raises NameTaken. The object ``besides``
    may have one of the names.
    """
    if not view.unique_names or not names:
        return
    if folder_id is None:
        repositories.lock(cx, view.repository)
        cabinets = objects.c.type.in_(sorted(view.catalogue.with_subtypes(["cabinet"])))
        in_repository = without_index(objects.c.repository_id) == view.repository.id
        queries = [_names(objects, objects.c.id, besides).where(objects.c.folder_id.is_(None), in_repository, cabinets)]
    else:
        cx.execute(sa.select(objects.c.id).where(objects.c.id == folder_id).with_for_update(key_share=True))
        queries = [
            _names(table, key, besides).where(table.c.folder_id == folder_id)
            for table, key in ((objects, objects.c.id), (folder_links, folder_links.c.object_id))
        ]
    place = "In that folder" if folder_id is not None else "Among the cabinets"
    for name, count in Counter(unicodedata.normalize("NFC", name) for name in names).items():
        if count > 1:
            raise NameTaken(f"{place}, two objects would have the name {name[:100]!r}, and names are unique there.")
    for spellings in portions(sorted(set().union(*map(compositions, names)))):
        for query in queries:
            taken = cx.scalar(query, {"names": spellings})
            if taken is not None:
                raise NameTaken(f"{place}, an object has the name {taken[:100]!r} already, and names are unique there.")


def _names(table: sa.Table, key: sa.Column[str], besides: str) -> sa.Select[str]:
    named = table.c.name.in_(sa.bindparam("names", expanding=True))
    current = table.c.former == sa.literal_column("0")
    return sa.select(table.c.name).where(named, current, key != besides).limit(1)


def claim_again(cx: Connection, view: RepositoryView, stored: StoredObject, name: str) -> None:
    """Check a name in all folders of an object, or among the cabinets, but not for a former version.

    Raises NameTaken.
    """
    for folder_id in sorted(stored.folder_ids) if not stored.former else ():
        claim(cx, view, folder_id, [name], stored.id)
    if object_ids.kind_of(stored.id) == "cabinet":
        claim(cx, view, None, [name], stored.id)
