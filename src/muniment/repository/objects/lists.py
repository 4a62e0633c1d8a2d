"""Which objects does a caller see in a folder, which of them does a filter leave, and in which order?

The database leaves out what the caller may not browse, before anything else is looked at. Source: docs/filters.md.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Connection

from muniment.repository.cursors import Place, Stretch
from muniment.repository.filters import listed, pages, sql
from muniment.repository.filters.listed import ListedProperty, PropertiesOf
from muniment.repository.filters.pages import Order, OrderKey
from muniment.repository.filters.tree import EVERYTHING, Selection, SortKey
from muniment.repository.folding import fold
from muniment.repository.objects.object_types import BUILT_IN_NAMES
from muniment.repository.objects.properties import PropertyDefinition
from muniment.repository.objects.table import StoredObject, objects, read_row
from muniment.repository.objects.view import RepositoryView
from muniment.repository.permissions import acls
from muniment.repository.permissions.principals import Permission
from muniment.repository.refusals import UnknownProperty

_COLUMN_COUNT = len(objects.c)
_BY_NAME = Order((OrderKey(objects.c.name), OrderKey(objects.c.seq)), indexed=True)


class ListedObject(NamedTuple):
    """An object of a list, with its place in the order."""

    stored: StoredObject
    place: Place


class ContentDigest(NamedTuple):
    """The SHA-256 digest of an object's content, with what decides who may read it."""

    counter: int
    object_id: str
    acl_id: int
    owner_key: str
    sha256: bytes


class Folder(NamedTuple):
    """What is listed, and for whom: the objects of a type and its sub-types in a folder, or unfiled objects."""

    view: RepositoryView
    folder_id: str | None
    type_name: str


def page(
    cx: Connection, folder: Folder, stretch: Stretch, selection: Selection = EVERYTHING, *, type_prefix: str = ""
) -> list[ListedObject]:
    """List what the caller may browse and the selection asks for, by name unless it sorts.

    ``type_prefix`` spells the names of the built-in types, which the selection compares as they are shown. Raises
    UnknownProperty, WrongValue, BadSort.
    """
    properties = _properties(cx, folder.view, type_prefix)
    page_rows = pages.fetch(cx, _members(folder), properties, _BY_NAME, stretch, selection)
    return [ListedObject(read_row(row[:_COLUMN_COUNT]), place) for row, place in page_rows]


def count(cx: Connection, folder: Folder, selection: Selection = EVERYTHING, *, type_prefix: str = "") -> int:
    """Count what ``page`` lists in all. Raises UnknownProperty, WrongValue."""
    return pages.count(cx, _members(folder), _properties(cx, folder.view, type_prefix), selection)


def order_of(cx: Connection, view: RepositoryView, sort_keys: Sequence[SortKey], *, type_prefix: str = "") -> Order:
    """Return the order of a sort; equal objects stand by counter. ``type_prefix`` is that of ``page``.

    Raises UnknownProperty, BadSort.
    """
    return pages.order_of(sort_keys, _properties(cx, view, type_prefix), OrderKey(objects.c.seq))


def sort(
    cx: Connection, view: RepositoryView, counters: Sequence[int], order: Order, offset: int, limit: int
) -> list[int]:
    """Sort the counters of those of these objects that exist.

    It checks no right. It takes one statement, however many objects there are.
    """
    numbers = sql.numbers_of(sql.numbers_parameter(counters)).table_valued("value")
    members = sa.select(objects.c.seq).join_from(numbers, objects, objects.c.seq == numbers.c.value)
    members = members.where(objects.c.repository_id == view.repository.id)
    return pages.sort(cx, members, order, offset, limit)


def content_digests(cx: Connection, repository_id: int, counters: Sequence[int]) -> list[ContentDigest]:
    """Return the digests of the contents of those of these objects that have content, in any order.

    It checks no right. It takes one statement, however many objects there are.
    """
    numbers = sql.numbers_of(sql.numbers_parameter(counters)).table_valued("value")
    columns = (objects.c.seq, objects.c.id, objects.c.acl_id, objects.c.owner_key, objects.c.content_sha256)
    # A condition on the repository would make SQLite read all of its objects.
    statement = sa.select(*columns, objects.c.repository_id).join_from(
        numbers, objects, objects.c.seq == numbers.c.value
    )
    rows = cx.execute(statement.where(objects.c.content_sha256.is_not(None)))
    return [ContentDigest(*row[:4], bytes(row[4])) for row in rows if row[5] == repository_id]


def places(
    cx: Connection,
    view: RepositoryView,
    object_ids: Sequence[str],
    sort_keys: Sequence[SortKey],
    *,
    type_prefix: str = "",
) -> dict[str, Place]:
    """Return, by id, the places of some objects in the order of a sort. Each place ends with the counter.

    There are at most as many objects as a page has. It checks no right. Raises as ``order_of``.
    """
    members = sa.select(objects.c.id).where(
        objects.c.repository_id == view.repository.id, objects.c.id.in_(list(object_ids))
    )
    by_counter, every = Order((OrderKey(objects.c.seq),)), Stretch(None, 0, len(object_ids))
    properties = _properties(cx, view, type_prefix)
    page_rows = pages.fetch(cx, members, properties, by_counter, every, Selection(sort=tuple(sort_keys)))
    return {row[0]: place for row, place in page_rows}


def page_among(cx: Connection, view: RepositoryView, object_ids: str, stretch: Stretch) -> list[ListedObject]:
    """List those of these objects that exist and that the caller may browse, in this order.

    ``object_ids`` is a JSON list of ids, each at most once.
    """
    members, order = _among(cx, view, object_ids)
    page_rows = pages.fetch(cx, members, _any_property, order, stretch)
    return [ListedObject(read_row(row[:_COLUMN_COUNT]), place) for row, place in page_rows]


def count_among(cx: Connection, view: RepositoryView, object_ids: str) -> int:
    """Count what ``page_among`` lists in all."""
    members, _ = _among(cx, view, object_ids)
    return pages.count(cx, members, _any_property, EVERYTHING)


def _among(cx: Connection, view: RepositoryView, object_ids: str) -> tuple[sa.Select[Any], Order]:
    ids_text = sa.literal(object_ids, sa.Text())
    ids: sa.TableValuedAlias
    if cx.dialect.name == "postgresql":
        elements = sa.func.jsonb_array_elements_text(sa.cast(ids_text, JSONB))
        ids = elements.table_valued(sa.column("value", sa.Text()), with_ordinality="key", name="ids").render_derived()
    else:
        ids = sa.func.json_each(ids_text).table_valued(
            sa.column("key", sa.Integer()), sa.column("value", sa.Text()), name="ids"
        )
    join = objects.join(ids, objects.c.id == ids.c.value)
    members = sa.select(objects).select_from(join)
    members = members.where(objects.c.repository_id == view.repository.id, browsable(view))
    return members, Order((OrderKey(ids.c.key, kind="integer"),), indexed=True)


def _any_property(name: str) -> ListedProperty:
    raise UnknownProperty(f"This list has its own order, and no property {name[:100]!r}.")


def _members(folder: Folder) -> sa.Select[Any]:
    statement = sa.select(objects).where(
        objects.c.repository_id == folder.view.repository.id,
        objects.c.folder_id == folder.folder_id if folder.folder_id else objects.c.folder_id.is_(None),
        objects.c.type.in_(sorted(folder.view.catalogue.with_subtypes([folder.type_name]))),
    )
    return statement.where(browsable(folder.view))


def browsable(view: RepositoryView) -> sa.ColumnElement[bool]:
    """Make the condition that the caller may browse an object."""
    if view.principals.administrator:
        return sa.true()
    acl_ids = acls.acls_with(view.repository.id, view.principals, Permission.BROWSE)
    return sa.or_(objects.c.owner_key == view.principals.key, objects.c.acl_id.in_(acl_ids))


def _properties(cx: Connection, view: RepositoryView, type_prefix: str) -> PropertiesOf:
    def find(name: str) -> ListedProperty:
        definition = view.catalogue.property(name)
        if name == "acl_name":
            return listed.naming(named_acl)
        if name == "r_object_type":
            return _type(type_prefix)
        if name not in _COLUMNS and name.startswith("r_"):
            raise UnknownProperty(f"The property {name!r} is shown only: no list is filtered or sorted by it.")
        return _COLUMNS.get(name) or _stored_property(definition)

    def named_acl(text: str) -> sa.ColumnElement[bool]:
        acl_id = acls.look_up(cx, view.repository.id, [text], view.principals).get(text)
        return sa.false() if acl_id is None else objects.c.acl_id == acl_id

    return find


def _type(prefix: str) -> ListedProperty:
    built_in = objects.c.type.in_(sorted(BUILT_IN_NAMES))

    def with_prefix(with_this: str) -> sa.ColumnElement[str]:
        return sa.case((built_in, sa.literal(with_this, sa.String(64)) + objects.c.type), else_=objects.c.type)

    return listed.single("string", with_prefix(prefix), compared=with_prefix(fold(prefix)))


def _text(name: str, column: sa.ColumnElement[str], *, nullable: bool = False, indexed: bool = False) -> ListedProperty:
    stored_form = sql.as_text(sql.first_value(objects.c.folded, sa.literal(name, sa.Text())))
    folded_column = sa.func.coalesce(stored_form, sql.plain_folded(column))
    return listed.single("string", column, compared=folded_column, nullable=nullable, indexed=indexed)


def _stored_property(definition: PropertyDefinition) -> ListedProperty:
    """Make the property of values that are stored as JSON, for comparisons in the database."""
    name = sa.literal(definition.name, sa.Text())
    is_text = definition.kind == "string"
    if definition.repeating:
        first = objects.c.folded if is_text else sa.null()
        rows = sql.values_of(first, objects.c.properties, name).table_valued("value")
        value = _FROM_JSON[definition.kind](rows.c.value)
        return listed.several(definition.kind, rows, sql.plain_folded(value) if is_text else value)
    value = _FROM_JSON[definition.kind](sql.first_value(objects.c.properties, name))
    if is_text:
        return _text(definition.name, value, nullable=True)
    return listed.single(definition.kind, value, nullable=True)


_FROM_JSON: Mapping[str, Callable[..., sa.ColumnElement[Any]]] = {
    "string": sql.as_text,
    "id": sql.as_text,
    "integer": sql.as_whole,
    "date": sql.as_whole,
    "double": sql.as_double,
    "boolean": sql.as_truth,
}

_COLUMNS: Mapping[str, ListedProperty] = {
    "object_name": _text("object_name", objects.c.name, indexed=True),
    "owner_name": _text("owner_name", objects.c.owner),
    "r_creator_name": _text("r_creator_name", objects.c.creator),
    "r_modifier": _text("r_modifier", objects.c.modifier),
    "a_content_type": _text("a_content_type", sa.func.nullif(objects.c.media_type, ""), nullable=True),
    "r_object_id": listed.single("id", objects.c.id),
    "i_folder_id": listed.single("id", objects.c.folder_id, nullable=True),
    "r_creation_date": listed.single("date", objects.c.created),
    "r_modify_date": listed.single("date", objects.c.modified),
    "r_full_content_size": listed.single("integer", objects.c.content_size),
}
