"""Which folders are there, and which lie below them, as far as the caller may browse them?"""

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.repository.objects.lists import browsable
from muniment.repository.objects.table import objects
from muniment.repository.objects.view import RepositoryView

_AT_ONCE = 500


def find(
    cx: Connection,
    view: RepositoryView,
    *,
    ids: Collection[str] | None = None,
    inside: Collection[str] | None = None,
    name: str | None = None,
    most: int | None = None,
) -> set[str]:
    """Return the ids of folders that the caller may browse: of these ``ids``, or ``inside`` these folders.

    With a ``name``, only folders of this name; without ``ids`` and ``inside``, those that lie in no folder. At most
    ``most`` are returned.
    """
    wanted = sa.select(objects.c.id).where(
        objects.c.repository_id == view.repository.id,
        objects.c.type.in_(sorted(view.catalogue.with_subtypes(["folder"]))),
        browsable(view),
    )
    if ids is not None:
        wanted = wanted.where(objects.c.id.in_(ids))
    else:
        wanted = wanted.where(objects.c.folder_id.is_(None) if inside is None else objects.c.folder_id.in_(inside))
    if name is not None:
        wanted = wanted.where(objects.c.name == name)
    if most is not None:
        wanted = wanted.limit(most)
    return set(cx.execute(wanted).scalars())


def descendants(cx: Connection, view: RepositoryView, roots: Collection[str], most: int) -> set[str]:
    """Return the folders with all folders below them that the caller may browse.

    A folder below one that the caller may not browse is left out. It stops looking when it has more than ``most``
    folders.
    """
    seen = set(roots)
    edge = sorted(seen)
    while edge and len(seen) <= most:
        below: set[str] = set()
        for at in range(0, len(edge), _AT_ONCE):
            below |= find(cx, view, inside=edge[at : at + _AT_ONCE])
        edge = sorted(below - seen)
        seen |= below
    return seen
