"""List the versions of an object, or check-outs, without what the caller may not browse.

Source: docs/interface.md, ours 17.
"""

from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.statements import count_where
from muniment.ground.naming import fold_name
from muniment.repository.store.filters import cursors, pages, tree
from muniment.repository.store.filters.pages import Order, OrderKey
from muniment.repository.store.objects import objects, version_tree
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.objects.table import objects as table
from muniment.repository.store.permissions import name_keys, principals

_NEWEST_FIRST = Order((OrderKey(table.c.seq, descending=True),), indexed=True)
_BY_HOLDER = Order((OrderKey(table.c.lock_owner_key), OrderKey(table.c.seq)), indexed=True)


class History(NamedTuple):
    """The versions of an object, the newest first."""

    view: RepositoryView
    stored: StoredObject

    @property
    def order(self) -> Order:
        return _NEWEST_FIRST

    def members(self, _cx: Connection) -> sa.Select[Any]:
        chronicle_id = self.stored.version.chronicle_id
        of_tree = table.c.id == self.stored.id if chronicle_id is None else table.c.chronicle_id == chronicle_id
        return sa.select(table).where(of_tree, lists.browsable(self.view))


class Checkouts(NamedTuple):
    """The check-outs, ordered by the key of the user who has them.

    With a ``name``, only those of its present and former bearers count; with ``mine``, only the caller's own, whatever
    the ``name``.
    """

    view: RepositoryView
    name: str | None = None
    mine: bool = False

    @property
    def order(self) -> Order:
        return _BY_HOLDER

    def members(self, cx: Connection) -> sa.Select[Any]:
        held: sa.ColumnElement[bool] = table.c.lock_owner_key.is_not(None)
        if self.mine:
            held = table.c.lock_owner_key == self.view.principals.key
        elif self.name is not None:
            held = table.c.lock_owner_key.in_(name_keys.keys_of_name(cx, fold_name(self.name)))
        return sa.select(table).where(
            table.c.repository_id == self.view.repository.id,
            table.c.lock_owner_key.is_not(None),
            held,
            lists.browsable(self.view),
        )


def version_page(
    cx: Connection,
    listed: History | Checkouts,
    stretch: cursors.Stretch,
    selection: tree.Selection = tree.EVERYTHING,
    *,
    type_prefix: str = "",
) -> list[lists.ListedObject]:
    """List the members, in the order of the list without a sort. Shown names of built-in types begin with
    ``type_prefix``.

    Raises UnknownProperty, WrongValue, BadSort.
    """
    properties = lists.properties_of(cx, listed.view, type_prefix)
    return lists.with_places(pages.fetch(cx, listed.members(cx), properties, listed.order, stretch, selection))


def count_versions(
    cx: Connection, listed: History | Checkouts, selection: tree.Selection = tree.EVERYTHING, *, type_prefix: str = ""
) -> int:
    """Raises UnknownProperty, WrongValue."""
    return pages.count_members(cx, listed.members(cx), lists.properties_of(cx, listed.view, type_prefix), selection)


def current(cx: Connection, view: RepositoryView, object_id: str) -> tuple[StoredObject, principals.Permission]:
    """Return the current version, and the caller's permission on it.

    Raises UnknownObject.
    """
    stored, permission = objects.read(cx, view.repository, object_id, view.principals)
    if not stored.version.former:
        return stored, permission
    return objects.read(cx, view.repository, version_tree.current_id(cx, stored), view.principals)


def count_checkouts(cx: Connection, key: str) -> int:
    """Count in all repositories, whatever a caller's rights."""
    return count_where(cx, table.c.lock_owner_key == key)
