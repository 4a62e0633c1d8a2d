"""What may a caller see of a snapshot of the index?

Source: docs/decisions/0004.
"""

from collections.abc import Collection

import msgspec

from muniment.database.snapshots import of_snapshot
from muniment.repository.search.answering.inquiry import Inquiry
from muniment.repository.search.aql import bind
from muniment.repository.search.aql.conditions import BoundQuery
from muniment.repository.search.index.contract import Visible
from muniment.repository.store.change_log import changes
from muniment.repository.store.objects import inventory

_CHANGED_WITH_THE_TEXT = "r_index_status"

_CHANGED_WITH_THE_ACL = frozenset({bind.ACL_NAME, "r_modify_date", "r_modifier"})
"""A new ACL changes these: a query for them would match the old value in the index."""


def visible(inquiry: Inquiry, query: BoundQuery, page_properties: Collection[str] = ()) -> Visible:
    """Hide objects with a missed change that a search must not overlook (``changes.hiding``).

    If only the ACL changed, callers who may see the object now still see it; if properties changed, perhaps with the
    ACL, the owner and administrators do, because they may see old values. Neither holds if the ACL changed, and the
    query or ``page_properties``, which the page shows, need a property that changes with it.

    Raises IndexBehind if the index has missed more than ``max_pending_changes`` of these.
    """
    missed_changes = missed(inquiry, query, page_properties)
    acl_matters = bool(missed_changes) and bool(
        bind.property_names(query.condition).union(page_properties) & _CHANGED_WITH_THE_ACL
    )
    decidable = {
        object_id: kinds
        for object_id, kinds in missed_changes.items()
        if kinds <= {"acl", "properties"} and not (acl_matters and "acl" in kinds)
    }
    principals, repository_id, decided = inquiry.principals, inquiry.repository.id, frozenset(decidable)
    nothing = Visible(
        owner=principals.key,
        hidden=frozenset(missed_changes.keys() - decided),
        decided=decided,
        all_versions=query.all_versions,
    )
    if principals.administrator:
        return msgspec.structs.replace(nothing, everything=True, browse=decided, read=decided)
    granted_acls = inquiry.memory.granted_acls(inquiry.cx, repository_id, principals)
    browsable, readable = set(), set()
    for object_id, row in inventory.rows(inquiry.cx, repository_id, list(decidable)).items():
        is_owner = principals.is_(row.owner_key)
        if not is_owner and "properties" in decidable[object_id]:
            continue
        if is_owner or row.acl_id in granted_acls.browse:
            browsable.add(object_id)
        if is_owner or row.acl_id in granted_acls.read:
            readable.add(object_id)
    return msgspec.structs.replace(
        nothing,
        browse_acls=granted_acls.browse,
        read_acls=granted_acls.read,
        browse=frozenset(browsable),
        read=frozenset(readable),
    )


def missed(inquiry: Inquiry, query: BoundQuery, page_properties: Collection[str]) -> dict[str, frozenset[changes.Kind]]:
    """Return the missed changes that the search must not overlook.

    The arguments and the refusal are those of ``visible``.
    """
    names = bind.property_names(query.condition).union(page_properties)
    about = inquiry.repository.id, inquiry.snapshot.position, inquiry.options.max_pending_changes
    texts = _CHANGED_WITH_THE_TEXT in names
    # A typed question is several searches of one snapshot.
    return of_snapshot(inquiry.cx, (*about, texts), lambda cx: changes.hiding(cx, *about, texts=texts))
