"""Which ACLs does a caller see in a list, filtered and sorted? Source: docs/filters.md."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.ground.naming import fold_name
from muniment.repository.store.filters import cursors, listed, pages, tree
from muniment.repository.store.permissions import acl_entries, acl_look_up
from muniment.repository.store.permissions import acls as acls_room
from muniment.repository.store.permissions.acls import AclSummary
from muniment.repository.store.permissions.principals import OWNER, Permission, Principals
from muniment.repository.store.permissions.table import acls

_BY_NAME = pages.Order((pages.OrderKey(acls.c.name), pages.OrderKey(acls.c.shown_id)), indexed=True)


class ListedAcl(NamedTuple):
    """An ACL of a list; if it is ``owned``, the caller may see all entries."""

    acl: AclSummary
    place: cursors.Place
    owned: bool


def acl_page(
    cx: Connection,
    repository_id: int,
    principals: Principals,
    stretch: cursors.Stretch,
    selection: tree.Selection = tree.EVERYTHING,
) -> list[ListedAcl]:
    """List the ACLs, by name and id unless sorted.

    Raises UnknownProperty, WrongValue, BadSort.
    """
    rows = pages.fetch(cx, _members(repository_id, principals), _property, _BY_NAME, stretch, selection)
    own_ids = {row.id for row, _ in rows if acls_room.owns(row.owner_key, principals)}
    foreign = [row.id for row, _ in rows if row.id not in own_ids]
    counts = acl_entries.count_entries(cx, foreign, principals.accessors | {OWNER})
    return [
        ListedAcl(acls_room.summary(row, counts.get(row.id, 0) if foreign else row.entry_count), place, not foreign)
        for row, place in rows
        for foreign in [row.id not in own_ids]
    ]


def count_acls(
    cx: Connection, repository_id: int, principals: Principals, selection: tree.Selection = tree.EVERYTHING
) -> int:
    """Raises UnknownProperty, WrongValue."""
    return pages.count_members(cx, _members(repository_id, principals), _property, selection)


def entries(
    cx: Connection, listed_acls: Sequence[ListedAcl], principals: Principals
) -> dict[int, dict[str, Permission]]:
    """Return those that the caller may see, by the row's key and the accessor's name."""
    own_entries = acl_entries.entries_of(cx, [each.acl.id for each in listed_acls if each.owned])
    foreign = acl_entries.entries_of(
        cx, [each.acl.id for each in listed_acls if not each.owned], principals.accessors | {OWNER}
    )
    return acl_entries.by_name(
        cx, {each.acl.id: {**own_entries, **foreign}.get(each.acl.id, {}) for each in listed_acls}
    )


def _members(repository_id: int, principals: Principals) -> sa.Select[Any]:
    return sa.select(acls).where(acls.c.repository_id == repository_id, acl_look_up.visible_to(principals))


_OWNER = listed.single("string", acls.c.owner, compared=acls.c.owner_name, fold=fold_name)

# Names of ACLs are compared as they are written: case tells two of them apart.
_property = listed.among(
    {
        "name": listed.exact(acls.c.name),
        "object_name": listed.exact(acls.c.name),
        "owner": _OWNER,
        "owner_name": _OWNER,
        "id": listed.single("id", acls.c.shown_id),
        "r_object_id": listed.single("id", acls.c.shown_id),
        "acl_domain": _OWNER,
        "description": listed.exact(sa.func.coalesce(acls.c.description, "")),
        "r_modify_date": listed.single("date", acls.c.modified),
    },
    "A list of ACLs",
)
