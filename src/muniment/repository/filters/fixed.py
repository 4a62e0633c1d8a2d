"""One page of a list whose members are in no table. Each member is a name with properties that are texts."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.repository.cursors import Place, Stretch
from muniment.repository.filters import listed, pages, sql
from muniment.repository.filters.listed import ListedProperty, PropertiesOf
from muniment.repository.filters.pages import Order, OrderKey
from muniment.repository.filters.tree import EVERYTHING, Selection
from muniment.repository.refusals import UnknownProperty

_TEXT = sa.String(255)


class ListedName(NamedTuple):
    """A member of a list, and its place in the order."""

    name: str
    place: Place


def page(
    cx: Connection,
    members: Mapping[str, Mapping[str, str]],
    property_names: Sequence[str],
    stretch: Stretch,
    selection: Selection = EVERYTHING,
) -> list[ListedName]:
    """List the names of these members, which have these properties, by name.

    Raises UnknownProperty, WrongValue, BadSort.
    """
    query, properties, order = _as_rows(members, property_names)
    return [ListedName(row.name, place) for row, place in pages.fetch(cx, query, properties, order, stretch, selection)]


def count(
    cx: Connection,
    members: Mapping[str, Mapping[str, str]],
    property_names: Sequence[str],
    selection: Selection = EVERYTHING,
) -> int:
    """Count all members that ``page`` lists. Raises UnknownProperty, WrongValue."""
    query, properties, _ = _as_rows(members, property_names)
    return pages.count(cx, query, properties, selection)


def _as_rows(
    members: Mapping[str, Mapping[str, str]], property_names: Sequence[str]
) -> tuple[sa.Select[Any], PropertiesOf, Order]:
    columns = ("name", *property_names)
    rows = [{"name": name, **of_name} for name, of_name in members.items()]
    none = sa.select(*(sa.literal("", _TEXT).label(column) for column in columns)).where(sa.false())
    each = [sa.select(*(sa.literal(row[column], _TEXT).label(column) for column in columns)) for row in rows]
    table = sa.union_all(none, *each).subquery("members")
    properties: dict[str, ListedProperty] = {column: listed.plain(table.c[column]) for column in columns}

    def find(name: str) -> ListedProperty:
        if name not in properties:
            raise UnknownProperty(f"This list has no property {name[:100]!r}: it has {', '.join(properties)}.")
        return properties[name]

    return sa.select(table), find, Order((OrderKey(sql.by_code_point(table.c.name)),))
