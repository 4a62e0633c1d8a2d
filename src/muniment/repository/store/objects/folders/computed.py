"""What objects show of their ACLs, their contents and the cabinet around them. No column of an object holds this.

Source: docs/interface.md, ours 2.
"""

from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement, portions
from muniment.repository.store.objects.contents import further_contents
from muniment.repository.store.objects.listing import object_ids
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.properties import Value
from muniment.repository.store.objects.table import StoredObject, objects
from muniment.repository.store.permissions import acl_look_up
from muniment.repository.store.permissions.acl_look_up import ShownAcl
from muniment.repository.store.permissions.principals import Permission


def computed_values(
    cx: Connection, view: RepositoryView, several: Sequence[StoredObject], shown: Mapping[str, ShownAcl]
) -> dict[str, dict[str, list[Value]]]:
    """Return the values of ``object_types.COMPUTED`` by object and property: some statements for each 500 objects.

    A cabinet is left out unless the caller may browse every folder on the way to it, and the owner of an ACL that the
    caller may not see, too.
    """
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
    """Return the cabinet of each folder that has no folder above it which the caller may not browse."""
    steps: dict[str, tuple[str | None, int, str]] = {}
    for some in portions(sorted(folder_ids)):
        for folder_id, above, acl_id, owner_key in _ALL_ABOVE.all(cx, folders=some):
            steps[folder_id] = above, acl_id, owner_key
    shown = acl_look_up.shown_acls(cx, {acl_id for _, acl_id, _ in steps.values()}, view.principals)
    found: dict[str, str] = {}
    for folder_id in folder_ids:
        at: str | None = folder_id
        while at is not None:
            above, acl_id, owner_key = steps[at]
            if shown[acl_id].permitted < Permission.BROWSE and not view.principals.is_(owner_key):
                break
            if above is None:
                found[folder_id] = at
            at = above
    return found


_STEP = tuple(objects.c[name] for name in ("id", "folder_id", "acl_id", "owner_key"))
_FOLDERS = sa.select(*_STEP).where(objects.c.id.in_(sa.bindparam("folders", expanding=True))).cte("up", recursive=True)
_ALL_ABOVE = PreparedStatement(
    sa.select(_FOLDERS.union(sa.select(*_STEP).join_from(_FOLDERS, objects, objects.c.id == _FOLDERS.c.folder_id)))
)
