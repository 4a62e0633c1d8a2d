"""What objects show of their ACLs, their contents and the cabinet around them. No column of an object holds this.

Source: docs/interface.md, ours 2.
"""

from collections.abc import Collection, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import portions
from muniment.repository.store.objects.contents import further_contents
from muniment.repository.store.objects.listing import object_acls, object_ids
from muniment.repository.store.objects.listing.lists import browsable
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.properties import Value
from muniment.repository.store.objects.table import StoredObject, objects


def values(cx: Connection, view: RepositoryView, several: Sequence[StoredObject]) -> dict[str, dict[str, list[Value]]]:
    """Return the values of ``object_types.COMPUTED`` by object and property: some statements for each 500 objects.

    A cabinet is left out unless the caller may browse every folder on the way to it, and the owner of an ACL that the
    caller may not see, too.
    """
    shown = object_acls.shown(cx, several, view.principals)
    pages = further_contents.page_counts(cx, [stored.id for stored in several if stored.content is not None])
    cabinets = _cabinets(cx, view, several)
    return {
        stored.id: {
            "acl_domain": [shown[stored.id].owner] if shown[stored.id].owner else [],
            "i_cabinet_id": [cabinets[stored.id]] if stored.id in cabinets else [],
            "r_content_size": [stored.content.size if stored.content else 0],
            "r_page_cnt": [pages.get(stored.id, 0) + (stored.content is not None)],
            "world_permit": [int(shown[stored.id].world)],
        }
        for stored in several
    }


def _cabinets(cx: Connection, view: RepositoryView, several: Sequence[StoredObject]) -> dict[str, str]:
    """Return the id of the cabinet above the first folder of each object. A cabinet is its own."""
    cabinets = {stored.id: stored.id for stored in several if object_ids.kind_of(stored.id) == "cabinet"}
    of_folder = _cabinets_of(cx, view, {stored.folder_id for stored in several if stored.folder_id})
    inside = {stored.id: of_folder[stored.folder_id] for stored in several if stored.folder_id in of_folder}
    return cabinets | inside


def _cabinets_of(cx: Connection, view: RepositoryView, folder_ids: Collection[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for some in portions(sorted(folder_ids)):
        columns = (objects.c.id.label("at"), objects.c.folder_id.label("above"))
        first = sa.select(objects.c.id.label("first"), *columns).where(objects.c.id.in_(some), browsable(view))
        up = first.cte("up", recursive=True)
        next_step = sa.select(up.c.first, *columns).join_from(up, objects, objects.c.id == up.c.above)
        up = up.union(next_step.where(browsable(view)))
        found.update((row.first, row.at) for row in cx.execute(sa.select(up).where(up.c.above.is_(None))))
    return found
