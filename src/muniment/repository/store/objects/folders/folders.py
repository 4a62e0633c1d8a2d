"""Which folders are there, which lie below them, and which is a user's home?

What the caller may not browse is left out.
"""

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import portions
from muniment.database.statements import without_index
from muniment.ground.naming import compositions, fold_name
from muniment.repository.refusals import UnknownObject
from muniment.repository.store.objects.listing.lists import browsable
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.table import (
    IS_CABINET,
    IS_CURRENT,
    StoredObject,
    folder_links,
    objects,
    read_row,
)
from muniment.repository.store.people import Person
from muniment.repository.store.permissions import name_keys


def find(
    cx: Connection,
    view: RepositoryView,
    *,
    ids: Collection[str] | None = None,
    inside: Collection[str] | None = None,
    name: str | None = None,
    most: int | None = None,
) -> set[str]:
    """Find folders with these ``ids``, or directly in ``inside``; without both, those in no folder.

    A ``name`` counts in any composition of its accents. Beyond ``most``, some may be left out.
    """
    names = None if name is None else compositions(name)
    column = objects.c.repository_id
    statement = sa.select(objects.c.id).where(
        (without_index(column) if ids is not None or inside is not None else column) == view.repository.id,
        objects.c.type.in_(sorted(view.catalogue.with_subtypes(["folder"]))),
        browsable(view),
        sa.true() if names is None else objects.c.name.in_(names),
    )
    if ids is not None:
        branches = [statement.where(objects.c.id.in_(ids))]
    elif inside is None:
        branches = [statement.where(IS_CABINET, IS_CURRENT)]
    else:
        # No folder is former. The condition is needed because ``former`` stands before ``name`` in the indexes.
        link = sa.and_(folder_links.c.folder_id.in_(inside), folder_links.c.former == sa.literal_column("0"))
        link &= objects.c.id == folder_links.c.object_id
        if names is not None:
            link &= folder_links.c.name.in_(names)
        statement = statement.where(IS_CURRENT)
        branches = [statement.where(objects.c.folder_id.in_(inside)), statement.join(folder_links, link)]
    found: set[str] = set()
    for branch in branches:
        found.update(cx.scalars(branch if most is None else branch.limit(most)))
    return found


def descendants(cx: Connection, view: RepositoryView, roots: Collection[str], most: int) -> set[str]:
    """Return the ``roots``, and the folders below, reached only through folders that the caller may browse. The search
    ends beyond ``most`` folders.
    """
    folder_ids = set(roots)
    edge = sorted(folder_ids)
    while edge and len(folder_ids) <= most:
        children: set[str] = set()
        for inside in portions(edge):
            children |= find(cx, view, inside=inside)
        edge = sorted(children - folder_ids)
        folder_ids |= children
    return folder_ids


def home(cx: Connection, view: RepositoryView, user: Person) -> StoredObject:
    """Find a user's home: the oldest cabinet that they own and that has their name, or their id, as its name.

    Cabinets that the caller may not browse are left out. Raises UnknownObject if no cabinet is left. Source:
    docs/interface.md, ours 9.
    """
    folded = fold_name(user.id)
    owner_key = name_keys.keys(cx, {folded: user.identity})[folded]
    statement = sa.select(objects).where(
        objects.c.folder_id.is_(None),
        IS_CURRENT,
        objects.c.name.in_(compositions(user.short_name) | compositions(user.id)),
        without_index(objects.c.repository_id) == view.repository.id,
        objects.c.owner_key == owner_key,
        objects.c.type.in_(sorted(view.catalogue.with_subtypes(["cabinet"]))),
        browsable(view),
    )
    row = cx.execute(statement.order_by(objects.c.seq).limit(1)).first()
    if row is None:
        raise UnknownObject(f"The user {user.id} has no home in this repository.")
    return read_row(row)
