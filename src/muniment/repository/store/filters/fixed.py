"""One page of a list whose members are in no table."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.repository.folding import fold
from muniment.repository.store.filters import cursors, listed, pages, sql, tree

MOST = 490
"""SQLite takes at most 500 queries in one UNION."""

_TEXT, _NUMBER = sa.String(255), sa.BigInteger()


class ListedName(NamedTuple):
    """A member of a list, and its place in the order."""

    name: str
    place: cursors.Place


def fixed_page(
    cx: Connection,
    members: Mapping[str, Mapping[str, str | int]],
    property_names: Sequence[str],
    stretch: cursors.Stretch,
    selection: tree.Selection = tree.EVERYTHING,
    *,
    numbers: Collection[str] = (),
) -> list[ListedName]:
    """List the wanted members, by name unless the selection sorts them.

    ``members`` maps at most ``MOST`` names to the values of ``property_names``; ``numbers`` are the integers among
    these.

    Raises UnknownProperty, WrongValue, BadSort.
    """
    query, properties, order = _as_rows(members, property_names, numbers)
    return [ListedName(row.name, place) for row, place in pages.fetch(cx, query, properties, order, stretch, selection)]


def count_fixed(
    cx: Connection,
    members: Mapping[str, Mapping[str, str | int]],
    property_names: Sequence[str],
    selection: tree.Selection = tree.EVERYTHING,
    *,
    numbers: Collection[str] = (),
) -> int:
    """Raises UnknownProperty, WrongValue."""
    query, properties, _ = _as_rows(members, property_names, numbers)
    return pages.count_members(cx, query, properties, selection)


def _as_rows(
    members: Mapping[str, Mapping[str, str | int]], property_names: Sequence[str], numbers: Collection[str]
) -> tuple[sa.Select[Any], listed.PropertiesOf, pages.Order]:
    columns = ("name", *property_names)
    rows: list[dict[str, str | int]] = [{"name": name, **of_name} for name, of_name in members.items()]

    def one(row: Mapping[str, str | int]) -> sa.Select[Any]:
        cells: list[sa.ColumnElement[Any]] = [
            sa.literal(row[each], _NUMBER if each in numbers else _TEXT).label(each) for each in columns
        ]
        cells += [sa.literal(fold(str(row[each])), _TEXT).label(f"folded_{each}") for each in columns]
        return sa.select(*cells)

    none = one({column: 0 if column in numbers else "" for column in columns}).where(sa.false())
    table = sa.union_all(none, *map(one, rows)).subquery("members")
    properties: dict[str, listed.ListedProperty] = {
        column: listed.single("integer", table.c[column])
        if column in numbers
        else listed.single("string", table.c[column], compared=table.c[f"folded_{column}"])
        for column in columns
    }

    return sa.select(table), listed.among(properties), pages.Order((pages.OrderKey(sql.by_code_point(table.c.name)),))
