"""Which object types does a repository have, page by page, and which properties do the custom ones add?"""

from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.repository.folding import fold
from muniment.repository.refusals import UnknownType
from muniment.repository.store.filters import cursors, listed, pages, sql, tree
from muniment.repository.store.objects.table import object_types, type_properties
from muniment.repository.store.objects.types.object_types import BUILT_IN, BUILT_IN_NAMES, BUILT_IN_TYPES, STANDARD


def custom_properties(repository_id: int) -> sa.Select[Any]:
    kind = sa.cast(type_properties.c.kind, sa.String(64)).label("kind")
    every = sa.select(type_properties.c.name, kind).join_from(type_properties, object_types)
    is_searchable = sa.and_(type_properties.c.searchable, sa.not_(type_properties.c.awaiting_index))
    return every.where(object_types.c.repository_id == repository_id, is_searchable)


class ListedType(NamedTuple):
    """An object type in a list."""

    name: str
    parent: str | None
    place: cursors.Place


class TypesBelow(NamedTuple):
    """Types below ``parent``: directly, or ``recursive`` all of them. With no ``parent``, all types are meant."""

    parent: str | None = None
    recursive: bool = False


_ANYWHERE = TypesBelow()


def type_page(
    cx: Connection,
    repository_id: int,
    root: str | None,
    stretch: cursors.Stretch,
    selection: tree.Selection = tree.EVERYTHING,
    *,
    type_prefix: str = "",
    above: TypesBelow = _ANYWHERE,
) -> list[ListedType]:
    """List a stretch of the types: ``root`` and those below it, or all types if ``root`` is None, as far as they are
    also ``above.parent``'s.

    Only types that meet the selection's filter are listed. They come in the order of the selection's sort. If it has
    none, the built-in types come first, then the others by name. The shown names of the built-in types begin with
    ``type_prefix``. Filters and sorts use the shown names. Raises UnknownType, UnknownProperty, WrongValue, BadSort.
    """
    _check_known(cx, repository_id, root)
    _check_known(cx, repository_id, above.parent)
    members, properties, order = _list_query(repository_id, root, type_prefix, above)
    page_rows = pages.fetch(cx, members, properties, order, stretch, selection)
    return [ListedType(row.name, row.parent, place) for row, place in page_rows]


def count_types(
    cx: Connection,
    repository_id: int,
    root: str | None,
    selection: tree.Selection = tree.EVERYTHING,
    *,
    type_prefix: str = "",
    above: TypesBelow = _ANYWHERE,
) -> int:
    """Count 0 if there is no ``root``.

    Raises UnknownProperty, WrongValue.
    """
    members, properties, _ = _list_query(repository_id, root, type_prefix, above)
    return pages.count_members(cx, members, properties, selection)


def _list_query(
    repository_id: int, root: str | None, prefix: str, above: TypesBelow
) -> tuple[sa.Select[Any], listed.PropertiesOf, pages.Order]:
    text = sa.String(64)
    subtypes = BUILT_IN_TYPES.with_subtypes([root]) if root in BUILT_IN_NAMES else frozenset()
    built_in = [
        sa.select(
            sa.literal(kind.name, text).label("name"),
            sa.cast(sa.literal(kind.parent, text), text).label("parent"),
            sa.literal(kind.name, sa.String(255)).label("label"),
            sa.literal(at, sa.Integer()).label("rank"),
        )
        for at, kind in enumerate(BUILT_IN)
        if root is None or kind.name in subtypes
    ]
    custom = _custom(repository_id, root)
    rank = sa.literal(len(BUILT_IN), sa.Integer()).label("rank")
    label = sa.func.coalesce(sa.func.nullif(custom.c.label, ""), custom.c.name).label("label")
    types = sa.union_all(*built_in, sa.select(custom.c.name, custom.c.parent, label, rank)).subquery("types")

    def shown_name(name: sa.ColumnElement[str], prefix: str) -> sa.ColumnElement[str]:
        return sa.case((name.in_(sorted(BUILT_IN_NAMES)), sa.literal(prefix, text) + name), else_=name)

    def name_property(name: sa.ColumnElement[str], *, nullable: bool = False) -> listed.ListedProperty:
        return listed.single(
            "string", shown_name(name, prefix), compared=shown_name(name, fold(prefix)), nullable=nullable
        )

    properties = {
        "name": name_property(types.c.name),
        "label": listed.plain(types.c.label),
        "parent": name_property(types.c.parent, nullable=True),
        "super_name": name_property(types.c.parent, nullable=True),
        "category": listed.plain(sa.literal("standard", text)),
        "type_category": listed.single("integer", sa.literal(STANDARD, sa.Integer())),
    }
    order = pages.Order((pages.OrderKey(types.c.rank), pages.OrderKey(sql.by_code_point(types.c.name))))
    members = sa.select(types)
    if above.parent is not None:
        members = members.where(types.c.parent.in_(_parents(repository_id, above)))
    return members, listed.among(properties, "A list of types"), order


def _parents(repository_id: int, above: TypesBelow) -> list[str] | sa.CompoundSelect[Any]:
    """List the types whose children are meant."""
    parent = above.parent or ""
    if not above.recursive:
        return [parent]
    built_in = sorted(BUILT_IN_TYPES.with_subtypes([parent])) if parent in BUILT_IN_NAMES else []
    custom = _custom(repository_id, parent)
    return sa.select(custom.c.name).union_all(*(sa.select(sa.literal(name, sa.String(64))) for name in built_in))


def _custom(repository_id: int, root: str | None) -> sa.Subquery | sa.CTE:
    of_repository = sa.select(object_types.c.name, object_types.c.parent, object_types.c.label).where(
        object_types.c.repository_id == repository_id
    )
    if root is None or root == BUILT_IN[0].name:
        return of_repository.subquery()
    roots = BUILT_IN_TYPES.with_subtypes([root]) if root in BUILT_IN_NAMES else {root}
    direct = of_repository.where(
        sa.or_(object_types.c.name.in_(sorted(roots)), object_types.c.parent.in_(sorted(roots & BUILT_IN_NAMES)))
    )
    descendants = direct.cte("below", recursive=True)
    deeper = sa.select(object_types.c.name, object_types.c.parent, object_types.c.label).join_from(
        object_types,
        descendants,
        sa.and_(object_types.c.parent == descendants.c.name, object_types.c.repository_id == repository_id),
    )
    return descendants.union(deeper)


def _check_known(cx: Connection, repository_id: int, root: str | None) -> None:
    if root is None or root in BUILT_IN_NAMES:
        return
    query = sa.select(object_types.c.id).where(
        object_types.c.repository_id == repository_id, object_types.c.name == root
    )
    if cx.execute(query).first() is None:
        raise UnknownType(f"There is no object type {root[:100]!r}.")
