"""What may a caller see of a snapshot of the index? The database decides, after the snapshot was taken.

Source: docs/decisions/0004.
"""

from collections.abc import Collection

from sqlalchemy.engine import Connection

from muniment.repository.aql import bind
from muniment.repository.aql.conditions import BoundQuery
from muniment.repository.change_log import changes
from muniment.repository.change_log.changes import Kind, Position
from muniment.repository.index.contract import Visible
from muniment.repository.objects import inventory
from muniment.repository.permissions.principals import Principals
from muniment.repository.repositories import Repository
from muniment.repository.search.memory import SearchMemory

MAX_PENDING = 2000
"""The most missed changes that a search takes into account. If the index has missed more, the search is refused."""

_CHANGED_WITH_THE_TEXT = "r_index_status"

_CHANGED_WITH_THE_ACL = frozenset({bind.ACL_NAME, "r_modify_date", "r_modifier"})
"""The properties that a new ACL changes. A query for one of them would match the old value in the index."""


def visible(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    query: BoundQuery,
    position: Position,
    max_pending: int = MAX_PENDING,
    memory: SearchMemory | None = None,
    page_properties: Collection[str] = (),
) -> Visible:
    """Return what the caller may see of an index as of ``position``.

    An object is hidden if the index has missed a change of it that a search must not overlook (``changes.hiding``).
    There are two exceptions. If only the ACL changed, the object is shown to callers who may see it now. If only
    properties changed, or only properties and the ACL, it is shown to its owner and to administrators, because they may
    see the old values. There is no exception if the ACL changed and the query or the page needs a property that changes
    with the ACL.

    ``page_properties`` are the properties whose values the page shows. Raises IndexBehind if the index has missed more
    than ``max_pending`` such changes.
    """
    missed_changes = missed(cx, repository, query, position, max_pending, page_properties)
    acl_matters = bool(missed_changes) and bool(
        bind.property_names(query.condition).union(page_properties) & _CHANGED_WITH_THE_ACL
    )
    decidable = {
        object_id: kinds
        for object_id, kinds in missed_changes.items()
        if kinds <= {"acl", "properties"} and not (acl_matters and "acl" in kinds)
    }
    hidden_ids = missed_changes.keys() - decidable.keys()
    if principals.administrator:
        decidable_ids = frozenset(decidable)
        return Visible(
            everything=True,
            owner=principals.key,
            hidden=frozenset(hidden_ids),
            decided=decidable_ids,
            browse=decidable_ids,
            read=decidable_ids,
            all_versions=query.all_versions,
        )
    granted_acls = (memory or SearchMemory()).granted_acls(cx, repository.id, principals)
    browsable, readable = set(), set()
    for object_id, row in inventory.rows(cx, repository.id, list(decidable)).items():
        is_owner = principals.is_(row.owner_key)
        if not is_owner and "properties" in decidable[object_id]:
            continue
        if is_owner or row.acl_id in granted_acls.browse:
            browsable.add(object_id)
        if is_owner or row.acl_id in granted_acls.read:
            readable.add(object_id)
    return Visible(
        owner=principals.key,
        browse_acls=granted_acls.browse,
        read_acls=granted_acls.read,
        hidden=frozenset(hidden_ids),
        decided=frozenset(decidable),
        browse=frozenset(browsable),
        read=frozenset(readable),
        all_versions=query.all_versions,
    )


def missed(
    cx: Connection,
    repository: Repository,
    query: BoundQuery,
    position: Position,
    max_pending: int,
    page_properties: Collection[str],
) -> dict[str, frozenset[Kind]]:
    """Return the objects with changes that an index as of ``position`` has missed and the search must not overlook.

    Each comes with the kinds of these changes. The arguments and the refusal are those of ``visible``.
    """
    names = bind.property_names(query.condition).union(page_properties)
    return changes.hiding(cx, repository.id, position, max_pending, texts=_CHANGED_WITH_THE_TEXT in names)
