"""Read one page of a list: the members that a filter leaves, in the order of a sort, from any place on.

The place of a member consists of the values that it is sorted by, and of its key at the end. The database continues
behind a place, so a page costs the same at any depth.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.repository.cursors import Place, Stretch
from muniment.repository.filters import conditions, listed, sql
from muniment.repository.filters.listed import SORTED, Kind, ListedProperty, PropertiesOf
from muniment.repository.filters.tree import EVERYTHING, Selection, SortKey
from muniment.repository.folding import fold
from muniment.repository.refusals import BadSort, UnknownProperty


class OrderKey(NamedTuple):
    """An expression that a list is ordered by. Members without a value come last, in either direction."""

    expression: sa.ColumnElement[Any]
    descending: bool = False
    nullable: bool = False
    kind: Kind = "string"


class Order(NamedTuple):
    """The keys of an order. No two members have the same values of all of them.

    With ``indexed``, a database index holds the keys, and a page is found by one look-up for each key.
    """

    keys: tuple[OrderKey, ...]
    indexed: bool = False


class Found(NamedTuple):
    """A row of a list with its place in the order. Its first columns are those that were selected."""

    row: sa.Row[*tuple[Any, ...]]
    place: Place


def fetch(
    cx: Connection,
    members: sa.Select[Any],
    properties: PropertiesOf,
    own_order: Order,
    stretch: Stretch,
    selection: Selection = EVERYTHING,
) -> list[Found]:
    """Read the members that the selection wants, at most ``stretch.limit``.

    ``own_order`` is the list's own order; its last key, which no two members share, ends every order. Raises
    UnknownProperty, WrongValue, BadSort.
    """
    order = _order(selection, properties, own_order)
    query = members.where(conditions.condition(selection.filter, properties))
    query = query.add_columns(*(key.expression for key in order.keys)).order_by(*_ordering(order)).limit(stretch.limit)
    if stretch.after is None:
        return _with_places(cx.execute(query.offset(stretch.offset)), order)
    steps = _conditions_behind(order, stretch.after)
    if not order.indexed:
        return _with_places(cx.execute(query.where(sa.or_(*steps))), order)
    # One statement for each: a comparison of all keys at once would look up the first of them alone, and pass over
    # every member that has the same.
    page_rows: list[Found] = []
    for condition in steps:
        page_rows += _with_places(cx.execute(query.where(condition).limit(stretch.limit - len(page_rows))), order)
        if len(page_rows) == stretch.limit:
            break
    return page_rows


def count(cx: Connection, members: sa.Select[Any], properties: PropertiesOf, selection: Selection) -> int:
    """Count the members that the selection wants. Raises UnknownProperty, WrongValue."""
    query = members.where(conditions.condition(selection.filter, properties))
    return int(cx.execute(sa.select(sa.func.count()).select_from(query.subquery())).scalar_one())


def order_of(sort_keys: Sequence[SortKey], properties: PropertiesOf, last: OrderKey) -> Order:
    """Return the order of a sort that ends with the ``last`` key. Raises UnknownProperty, BadSort."""
    return _order(Selection(sort=tuple(sort_keys)), properties, Order((last,)))


def sort(cx: Connection, members: sa.Select[Any], order: Order, offset: int, limit: int) -> list[Any]:
    """Return the first column of these members in an order. No two of them have the same value of its last key."""
    return list(cx.scalars(members.order_by(*_ordering(order)).limit(limit).offset(offset)))


def wants(cx: Connection, member: Mapping[str, str | int], selection: Selection) -> bool:
    """Say whether the selection wants a member with these values that is in no table. Raises as ``fetch``."""

    def find(name: str) -> ListedProperty:
        if name not in member:
            raise UnknownProperty(f"This list has no property {name[:100]!r}: it has {', '.join(member)}.")
        value = member[name]
        if isinstance(value, int):
            return listed.single("integer", sa.literal(value, sa.BigInteger()))
        return listed.single("string", sa.literal(value, sa.Text()), compared=sa.literal(fold(value), sa.Text()))

    one = sa.literal(1, sa.Integer())
    return bool(fetch(cx, sa.select(one), find, Order((OrderKey(one),)), Stretch(None, 0, 1), selection))


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


def _conditions_behind(order: Order, place: Place) -> list[sa.ColumnElement[bool]]:
    """Make the conditions for members behind a place, the nearest members first. No member meets two of them."""
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


def _with_places(rows: sa.Result[Any], order: Order) -> list[Found]:
    count = len(order.keys)
    return [Found(row, tuple(map(_plain, row[-count:]))) for row in rows]


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) else value
