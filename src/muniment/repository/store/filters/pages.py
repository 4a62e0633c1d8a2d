"""Read a page of a list: what meets a filter, in the order of a sort, from any place on.

A place consists of the values of the sort, and of a key at the end.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.sql.visitors import replacement_traverse

from muniment.repository.refusals import BadFilter, BadSort, UnknownProperty
from muniment.repository.store.filters import conditions, cursors, sql
from muniment.repository.store.filters.listed import SORTED, Kind, ListedProperty, PropertiesOf
from muniment.repository.store.filters.tree import EVERYTHING, Selection, SortKey

MOST_COMPARED = 10_000_000

_FEW_COMPARISONS = 20
"""Counting the members might take longer than so few comparisons."""


class OrderKey(NamedTuple):
    """Members without a value come last, in either direction."""

    expression: sa.ColumnElement[Any]
    descending: bool = False
    nullable: bool = False
    kind: Kind = "string"


class Order(NamedTuple):
    """No two members have the same value for every key. With ``indexed``, a database index holds the keys, and a page
    takes at most one look-up for each.
    """

    keys: tuple[OrderKey, ...]
    indexed: bool = False


class Branch(NamedTuple):
    """Further members of a list, found through another table.

    ``columns`` maps columns of the list's order to columns of that table with the same values, so that its index finds
    a page.
    """

    members: sa.Select[Any]
    columns: Mapping[sa.Column[Any], sa.Column[Any]]


class ListedRow(NamedTuple):
    """``row`` begins with the columns that were selected."""

    row: sa.Row[*tuple[Any, ...]]
    place: cursors.Place


def fetch(
    cx: Connection,
    members: sa.Select[Any],
    properties: PropertiesOf,
    own_order: Order,
    stretch: cursors.Stretch,
    selection: Selection = EVERYTHING,
    further: Branch | None = None,
) -> list[ListedRow]:
    """The last key of ``own_order`` has no value twice, and is the last key of every sort. Members of ``further`` are
    included.

    Raises UnknownProperty, WrongValue, BadSort, BadFilter.
    """
    order = _order(selection, properties, own_order)
    wanted = _wanted(cx, members, properties, selection, further)
    if selection.distinct:
        key = own_order.keys[-1].expression
        first = _grouped(wanted[0], sa.func.min(key), properties, selection.distinct)
        wanted = [each.where(key.in_(first.correlate(None))) for each in wanted]
    branches = [(wanted[0], order)]
    if further is not None:
        branches.append((wanted[1], _by_columns(order, further.columns)))
    if stretch.after is None:
        return _read(cx, branches, None, stretch.limit, stretch.offset)
    steps = [_conditions_behind(each, stretch.after) for _, each in branches]
    if not order.indexed:
        return _read(cx, branches, [sa.or_(*each) for each in steps], stretch.limit)
    # There is one statement for each condition: one comparison of all keys would look up only the first key, and scan
    # every member that has the same value of it.
    page_rows: list[ListedRow] = []
    for step in zip(*steps, strict=True):
        page_rows += _read(cx, branches, step, stretch.limit - len(page_rows))
        if len(page_rows) == stretch.limit:
            break
    return page_rows


def count_members(
    cx: Connection,
    members: sa.Select[Any],
    properties: PropertiesOf,
    selection: Selection,
    further: Branch | None = None,
) -> int:
    """Raises UnknownProperty, WrongValue, BadFilter."""
    wanted = _wanted(cx, members, properties, selection, further)
    if selection.distinct:
        one = sa.literal_column("1", sa.Integer()).label("one")
        wanted = [_grouped(each, one, properties, selection.distinct) for each in wanted]
    counts = [sa.select(sa.func.count()).select_from(query.subquery()).scalar_subquery() for query in wanted]
    return sum(cx.execute(sa.select(*counts)).one())


def _grouped(
    members: sa.Select[Any], selected: sa.ColumnElement[Any], properties: PropertiesOf, names: Sequence[str]
) -> sa.Select[Any]:
    """Make a query with one row for all members that have equal values. Raises UnknownProperty, BadSort."""
    values = []
    for name in names:
        listed_property = properties(name)
        value = listed_property.whole if listed_property.value is None else listed_property.value
        if value is None:
            raise BadSort(f"The values of the property {name!r} cannot be told apart: leave out DISTINCT.")
        values.append(value)
    return members.with_only_columns(selected, maintain_column_froms=True).group_by(*values)


def order_of(sort_keys: Sequence[SortKey], properties: PropertiesOf, last: OrderKey) -> Order:
    """Raises UnknownProperty, BadSort."""
    return _order(Selection(sort=tuple(sort_keys)), properties, Order((last,)))


def sort(cx: Connection, members: sa.Select[Any], order: Order, offset: int, limit: int) -> list[Any]:
    """Return the first column. No two members may have the same value of the last key."""
    return list(cx.scalars(members.order_by(*_ordering(order)).limit(limit).offset(offset)))


def _wanted(
    cx: Connection, members: sa.Select[Any], properties: PropertiesOf, selection: Selection, further: Branch | None
) -> list[sa.Select[Any]]:
    wanted = conditions.condition(selection.filter, properties)
    several = [members] if further is None else [members, further.members]
    _check_size(cx, several, selection)
    return [each.where(wanted) for each in several]


def _check_size(cx: Connection, several: Sequence[sa.Select[Any]], selection: Selection) -> None:
    number = conditions.comparisons(selection.filter)
    if number <= _FEW_COMPARISONS:
        return
    most = MOST_COMPARED // number
    one = sa.literal_column("1", sa.Integer()).label("one")
    first = sa.union_all(*(sa.select(each.with_only_columns(one).limit(most + 1).subquery()) for each in several))
    counted = cx.execute(sa.select(sa.func.count()).select_from(first.subquery())).scalar_one()
    if counted > most:
        raise BadFilter(
            f"The filter has {number} comparisons. It may have so many in a list of at most {most} members: use fewer."
        )


def _order(selection: Selection, properties: PropertiesOf, own_order: Order) -> Order:
    if not selection.sort:
        return own_order
    keys, indexed = [], len(selection.sort) == 1
    for sort_key in selection.sort:
        try:
            sort_property = properties(sort_key.name)
        except UnknownProperty as unknown:
            raise UnknownProperty(f"{unknown.sentence.rstrip('.')} ({sort_key.place}).") from unknown
        if sort_property.value is None or sort_property.compared is None:
            why = (
                "cannot be sorted by" if sort_property.names else "has several values, so a list cannot be sorted by it"
            )
            raise BadSort(f"The property {sort_key.name!r} {why} ({sort_key.place}).")
        expression = _sorted_by(sort_property, sort_property.compared if sort_key.folded else sort_property.value)
        keys.append(OrderKey(expression, sort_key.descending, sort_property.nullable, sort_property.kind))
        indexed = indexed and sort_property.indexed and not sort_key.folded
    return Order((*keys, *own_order.keys[-1:]), indexed)


def _sorted_by(listed_property: ListedProperty, value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    if listed_property.kind not in ("string", "id"):
        return value
    length = getattr(value.type, "length", None)
    return sql.by_code_point(value if length and length <= SORTED else sa.func.substr(value, 1, SORTED))


def _ordering(order: Order) -> list[sa.ColumnElement[Any]]:
    ordering: list[sa.ColumnElement[Any]] = []
    for key in order.keys:
        if key.nullable:
            ordering.append(key.expression.is_(None))
        ordering.append(key.expression.desc() if key.descending else key.expression)
    return ordering


def _by_columns(order: Order, columns: Mapping[sa.Column[Any], sa.Column[Any]]) -> Order:
    def replace(element: Any, **_: Any) -> Any:
        return columns.get(element) if isinstance(element, sa.Column) else None

    keys = [key._replace(expression=replacement_traverse(key.expression, {}, replace)) for key in order.keys]
    return Order(tuple(keys), order.indexed)


def _read(
    cx: Connection,
    branches: Sequence[tuple[sa.Select[Any], Order]],
    behind: Sequence[sa.ColumnElement[bool]] | None,
    limit: int,
    offset: int = 0,
) -> list[ListedRow]:
    """Read all branches in one statement.

    ``behind`` has, for each branch, the condition of rows after the previous page.
    """
    order = branches[0][1]
    queries = []
    for number, (members, own) in enumerate(branches):
        query = members if behind is None else members.where(behind[number])
        queries.append(query.add_columns(*(key.expression for key in own.keys)).order_by(*_ordering(own)))
    if len(queries) == 1:
        return _with_places(cx.execute(queries[0].limit(limit).offset(offset or None)), order)
    first = [sa.select(query.limit(limit + offset).subquery()) for query in queries]
    every = sa.union_all(*first).subquery()
    expressions = list(every.c)[-len(order.keys) :]
    merged = [key._replace(expression=each) for key, each in zip(order.keys, expressions, strict=True)]
    query = sa.select(every).order_by(*_ordering(Order(tuple(merged)))).limit(limit).offset(offset or None)
    return _with_places(cx.execute(query), order)


def _conditions_behind(order: Order, place: cursors.Place) -> list[sa.ColumnElement[bool]]:
    same: list[sa.ColumnElement[bool]] = []
    conditions: list[sa.ColumnElement[bool]] = []
    for key, value in zip(order.keys, place, strict=True):
        if value is None:
            same.append(key.expression.is_(None))
            continue
        bound = sql.double(float(value)) if key.kind == "double" else value
        beyond = key.expression < bound if key.descending else key.expression > bound
        conditions.append(sa.and_(*same, sa.or_(beyond, key.expression.is_(None)) if key.nullable else beyond))
        same.append(key.expression == bound)
    return conditions[::-1]


def _with_places(rows: sa.Result[Any], order: Order) -> list[ListedRow]:
    count = len(order.keys)
    return [ListedRow(row, tuple(map(_plain, row[-count:]))) for row in rows]


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) else value
