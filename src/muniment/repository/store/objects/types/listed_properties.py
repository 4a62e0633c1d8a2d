"""List the properties of a repository's object types page by page, each property once, with its kind."""

from collections.abc import Collection
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.repository.store.filters import cursors, listed, pages, sql, tree
from muniment.repository.store.objects.types import object_types, type_lists

_TEXT = sa.String(64)


class ListedAttribute(NamedTuple):
    """``name`` is as callers see it."""

    name: str
    kind: str
    place: cursors.Place


def property_page(
    cx: Connection,
    repository_id: int,
    names_left_out: Collection[str],
    stretch: cursors.Stretch,
    selection: tree.Selection = tree.EVERYTHING,
    *,
    system_prefix: str = "r_",
) -> list[ListedAttribute]:
    """List the properties by name unless the selection sorts them; names of ``SYSTEM_PROPERTIES`` begin with
    ``system_prefix``.

    Built-in properties in ``names_left_out`` (neutral names), and custom ones that queries cannot use, are left out.

    Raises UnknownProperty, WrongValue, BadSort.
    """
    members, properties, order = _definitions(repository_id, names_left_out, system_prefix)
    rows = pages.fetch(cx, members, properties, order, stretch, selection)
    return [ListedAttribute(row.name, row.kind, place) for row, place in rows]


def count_properties(
    cx: Connection,
    repository_id: int,
    names_left_out: Collection[str],
    selection: tree.Selection = tree.EVERYTHING,
    *,
    system_prefix: str = "r_",
) -> int:
    """Raises UnknownProperty, WrongValue."""
    members, properties, _ = _definitions(repository_id, names_left_out, system_prefix)
    return pages.count_members(cx, members, properties, selection)


def _definitions(
    repository_id: int, names_left_out: Collection[str], system_prefix: str
) -> tuple[sa.Select[Any], listed.PropertiesOf, pages.Order]:
    built_in = [
        sa.select(
            sa.literal(
                system_prefix + one.name[2:] if one.name in object_types.SYSTEM_PROPERTIES else one.name, _TEXT
            ).label("name"),
            sa.literal(one.kind, _TEXT).label("kind"),
        )
        for kind in object_types.BUILT_IN
        for one in kind.properties
        if one.name not in names_left_out
    ]
    custom = type_lists.custom_properties(repository_id)
    members = sa.union(*built_in, custom).subquery("attributes")
    properties = {
        "name": listed.plain(members.c.name),
        "label": listed.plain(members.c.name),
        "kind": listed.plain(members.c.kind),
    }
    return (
        sa.select(members),
        listed.among(properties, "A list of facets"),
        pages.Order((pages.OrderKey(sql.by_code_point(members.c.name)),)),
    )
