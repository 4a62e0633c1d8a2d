"""Which objects does a caller see in a folder, which of these meet a filter, and in which order are they listed?

The queries themselves leave out what the caller may not browse. Source: docs/filters.md.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Connection

from muniment.database.statements import without_index
from muniment.ground.naming import fold_name
from muniment.repository.folding import fold
from muniment.repository.refusals import UnknownProperty
from muniment.repository.store.extraction import queue
from muniment.repository.store.filters import listed, pages, sql
from muniment.repository.store.filters.cursors import Place, Stretch
from muniment.repository.store.filters.listed import ListedProperty, PropertiesOf, Test
from muniment.repository.store.filters.pages import Branch, ListedRow, Order, OrderKey
from muniment.repository.store.filters.tree import EVERYTHING, Selection, SortKey
from muniment.repository.store.objects.contents import further_contents
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.properties import PropertyDefinition
from muniment.repository.store.objects.table import (
    IS_CABINET,
    IS_CURRENT,
    StoredObject,
    folder_links,
    objects,
    read_row,
)
from muniment.repository.store.objects.types.object_types import BUILT_IN_NAMES, SHOWN_ONLY
from muniment.repository.store.permissions import acl_entries, acls, principals

_COLUMN_COUNT = len(objects.c)
_BY_NAME = Order((OrderKey(objects.c.name), OrderKey(objects.c.seq)), indexed=True)
_EVERY_VERSION = Order((OrderKey(objects.c.former, kind="integer"), *_BY_NAME.keys), indexed=True)


class ListedObject(NamedTuple):
    """An object of a list."""

    stored: StoredObject
    place: Place


class ListedParent(NamedTuple):
    """A folder in which an object lies."""

    folder_id: str
    place: Place


class ContentDigest(NamedTuple):
    """The ACL and the owner's key decide who may read it."""

    counter: int
    object_id: str
    acl_id: int
    owner_key: str
    sha256: bytes


class Folder(NamedTuple):
    """The objects of a type and its sub-types in a folder; with None, those in no folder. Former versions are left out
    unless ``all_versions``.
    """

    view: RepositoryView
    folder_id: str | None
    type_name: str
    all_versions: bool = False


def object_page(
    cx: Connection, folder: Folder, stretch: Stretch, selection: Selection = EVERYTHING, *, type_prefix: str = ""
) -> list[ListedObject]:
    """List the objects, by name unless sorted, former versions last. Filters and sorts use the shown names, which begin
    with ``type_prefix`` for built-in types.

    Raises UnknownProperty, WrongValue, BadSort.
    """
    properties = properties_of(cx, folder.view, type_prefix)
    order = _EVERY_VERSION if folder.all_versions else _BY_NAME
    page_rows = pages.fetch(cx, _members(folder), properties, order, stretch, selection, _link_branch(folder))
    return with_places(page_rows)


def with_places(page_rows: Sequence[ListedRow]) -> list[ListedObject]:
    """Each row begins with all columns of the table of objects."""
    return [ListedObject(read_row(row[:_COLUMN_COUNT]), place) for row, place in page_rows]


def count_objects(cx: Connection, folder: Folder, selection: Selection = EVERYTHING, *, type_prefix: str = "") -> int:
    """Raises UnknownProperty, WrongValue."""
    return pages.count_members(
        cx, _members(folder), properties_of(cx, folder.view, type_prefix), selection, _link_branch(folder)
    )


class Extent(NamedTuple):
    """All objects of a type and its sub-types that one caller may browse, from all folders.

    With ``counters``, others are left out, and so are former versions unless ``all_versions``.
    """

    view: RepositoryView
    type_name: str
    counters: Sequence[int] | None = None
    all_versions: bool = False


def page_of_extent(
    cx: Connection, extent: Extent, stretch: Stretch, selection: Selection = EVERYTHING, *, type_prefix: str = ""
) -> list[ListedObject]:
    """List the objects, by counter unless sorted.

    Raises what ``object_page`` raises.
    """
    properties, order = properties_of(cx, extent.view, type_prefix), Order((OrderKey(objects.c.seq),), indexed=True)
    return with_places(pages.fetch(cx, _of_extent(extent), properties, order, stretch, selection))


def count_of_extent(cx: Connection, extent: Extent, selection: Selection = EVERYTHING, *, type_prefix: str = "") -> int:
    """Raises UnknownProperty, WrongValue."""
    return pages.count_members(cx, _of_extent(extent), properties_of(cx, extent.view, type_prefix), selection)


def _of_extent(extent: Extent) -> sa.Select[Any]:
    members = sa.select(objects)
    if extent.counters is not None:
        members = members.select_from(_numbered(extent.counters))
    return members.where(*_list_conditions(extent))


def _numbered(counters: Sequence[int]) -> sa.FromClause:
    """Make a join of these counters and their objects."""
    numbers = sql.numbers_of(sql.numbers_parameter(counters)).table_valued("value")
    return numbers.join(objects, objects.c.seq == numbers.c.value)


def page_of_acl(
    cx: Connection,
    view: RepositoryView,
    acl_id: int,
    stretch: Stretch,
    selection: Selection = EVERYTHING,
    *,
    type_prefix: str = "",
) -> list[ListedObject]:
    """List the objects that carry an ACL, former versions too, and the folders that have it as their default.

    They come in the order of the selection's sort, or if it has none, by counter. Raises what ``object_page`` raises.
    """
    properties, order = properties_of(cx, view, type_prefix), Order((OrderKey(objects.c.seq),), indexed=True)
    carrying, as_default = _of_acl(view, acl_id)
    return with_places(pages.fetch(cx, carrying, properties, order, stretch, selection, Branch(as_default, {})))


def count_of_acl(
    cx: Connection, view: RepositoryView, acl_id: int, selection: Selection = EVERYTHING, *, type_prefix: str = ""
) -> int:
    """Count what ``page_of_acl`` lists in all. Raises UnknownProperty, WrongValue."""
    carrying, as_default = _of_acl(view, acl_id)
    properties = properties_of(cx, view, type_prefix)
    return pages.count_members(cx, carrying, properties, selection, Branch(as_default, {}))


def _of_acl(view: RepositoryView, acl_id: int) -> tuple[sa.Select[Any], sa.Select[Any]]:
    # Each branch is read in the order of an index of its own. A condition on the repository, which is that of the ACL,
    # would make SQLite read all of its objects.
    every = sa.select(objects).where(browsable(view))
    of_default = every.where(objects.c.default_acl_id == acl_id, objects.c.acl_id != acl_id)
    return every.where(objects.c.acl_id == acl_id), of_default


def order_of(cx: Connection, view: RepositoryView, sort_keys: Sequence[SortKey], *, type_prefix: str = "") -> Order:
    """Order by these keys, then by counter.

    Raises UnknownProperty, BadSort.
    """
    return pages.order_of(sort_keys, properties_of(cx, view, type_prefix), OrderKey(objects.c.seq))


def sort(
    cx: Connection, view: RepositoryView, counters: Sequence[int], order: Order, offset: int, limit: int
) -> list[int]:
    """Sort, skip ``offset``, return ``limit`` counters: one statement, however many. Objects that do not exist are left
    out; no right is checked.
    """
    members = sa.select(objects.c.seq).select_from(_numbered(counters))
    members = members.where(without_index(objects.c.repository_id) == view.repository.id)
    return pages.sort(cx, members, order, offset, limit)


def content_digests(cx: Connection, repository_id: int, counters: Sequence[int]) -> list[ContentDigest]:
    """Return the digests in any order. No right is checked."""
    columns = (objects.c.seq, objects.c.id, objects.c.acl_id, objects.c.owner_key, objects.c.content_sha256)
    statement = sa.select(*columns).select_from(_numbered(counters))
    in_repository = without_index(objects.c.repository_id) == repository_id
    rows = cx.execute(statement.where(objects.c.content_sha256.is_not(None), in_repository))
    return [ContentDigest(*row[:4], bytes(row[4])) for row in rows]


def places(
    cx: Connection,
    view: RepositoryView,
    object_ids: Sequence[str],
    sort_keys: Sequence[SortKey],
    *,
    type_prefix: str = "",
) -> dict[str, Place]:
    """Return the places of at most a page, each ending with the counter. No right is checked.

    Raises what ``order_of`` raises.
    """
    members = sa.select(objects.c.id).where(
        without_index(objects.c.repository_id) == view.repository.id, objects.c.id.in_(list(object_ids))
    )
    by_counter, every = Order((OrderKey(objects.c.seq),)), Stretch(None, 0, len(object_ids))
    properties = properties_of(cx, view, type_prefix)
    page_rows = pages.fetch(cx, members, properties, by_counter, every, Selection(sort=tuple(sort_keys)))
    return {row[0]: place for row, place in page_rows}


def page_among(cx: Connection, view: RepositoryView, object_ids: str, stretch: Stretch) -> list[ListedObject]:
    """List objects in the order of a JSON list of ids, without what the caller may not browse."""
    members, order = _among(cx, view, object_ids)
    page_rows = pages.fetch(cx, members, _any_property, order, stretch)
    return with_places(page_rows)


def count_among(cx: Connection, view: RepositoryView, object_ids: str) -> int:
    members, _ = _among(cx, view, object_ids)
    return pages.count_members(cx, members, _any_property, EVERYTHING)


def parents(
    cx: Connection, stored: StoredObject, stretch: Stretch, selection: Selection = EVERYTHING
) -> list[ListedParent]:
    """List the folders in the order of links, unless the selection, by ``parent-id`` and ``child-id``, sorts them. No
    right is checked.

    Raises UnknownProperty, WrongValue, BadSort.
    """
    ids, properties = _parents(cx, stored)
    order = Order((OrderKey(ids.c.key, kind="integer"),))
    page_rows = pages.fetch(cx, sa.select(ids.c.value), properties, order, stretch, selection)
    return [ListedParent(row[0], place) for row, place in page_rows]


def count_parents(cx: Connection, stored: StoredObject, selection: Selection = EVERYTHING) -> int:
    """Raises UnknownProperty, WrongValue."""
    ids, properties = _parents(cx, stored)
    return pages.count_members(cx, sa.select(ids.c.value), properties, selection)


def _parents(cx: Connection, stored: StoredObject) -> tuple[sa.TableValuedAlias, PropertiesOf]:
    ids = _ids_table(cx, msgspec.json.encode(stored.folder_ids).decode())
    properties = {
        "parent-id": listed.single("id", ids.c.value),
        "child-id": listed.single("id", sa.literal(stored.id, sa.Text())),
    }
    return ids, listed.among(properties)


def _ids_table(cx: Connection, ids: str) -> sa.TableValuedAlias:
    """``key`` grows in the order of the JSON list."""
    ids_text = sa.literal(ids, sa.Text())
    if cx.dialect.name == "postgresql":
        elements = sa.func.jsonb_array_elements_text(sa.cast(ids_text, JSONB))
        return elements.table_valued(sa.column("value", sa.Text()), with_ordinality="key", name="ids").render_derived()
    return sa.func.json_each(ids_text).table_valued(
        sa.column("key", sa.Integer()), sa.column("value", sa.Text()), name="ids"
    )


def _among(cx: Connection, view: RepositoryView, object_ids: str) -> tuple[sa.Select[Any], Order]:
    ids = _ids_table(cx, object_ids)
    join = objects.join(ids, objects.c.id == ids.c.value)
    members = sa.select(objects).select_from(join)
    members = members.where(without_index(objects.c.repository_id) == view.repository.id, browsable(view))
    return members, Order((OrderKey(ids.c.key, kind="integer"),), indexed=True)


def _any_property(name: str) -> ListedProperty:
    raise UnknownProperty(f"This list has its own order, and no property {name[:100]!r}.")


def _members(folder: Folder) -> sa.Select[Any]:
    first = objects.c.folder_id == folder.folder_id if folder.folder_id else objects.c.folder_id.is_(None)
    is_of_cabinets = folder.folder_id is None and folder.view.catalogue.is_a(folder.type_name, "folder")
    return sa.select(objects).where(IS_CABINET if is_of_cabinets else first, *_list_conditions(folder))


def _link_branch(folder: Folder) -> Branch | None:
    """Find objects by a further link to this folder."""
    if folder.folder_id is None:
        return None
    joined = sa.select(objects).join_from(folder_links, objects, objects.c.id == folder_links.c.object_id)
    members = joined.where(folder_links.c.folder_id == folder.folder_id, *_list_conditions(folder))
    if not folder.all_versions:
        members = members.where(folder_links.c.former == sa.literal_column("0"))
    return Branch(members, {objects.c[name]: folder_links.c[name] for name in ("former", "name", "seq")})


def _list_conditions(of: Folder | Extent) -> list[sa.ColumnElement[bool]]:
    types = sorted(of.view.catalogue.with_subtypes([of.type_name]))
    # The folder or the counters find less than the repository holds. Without them, an index that begins with it does.
    is_whole = (of.counters if isinstance(of, Extent) else of.folder_id) is None
    column = objects.c.repository_id
    in_repository = (column if is_whole else without_index(column)) == of.view.repository.id
    wanted = sa.true() if of.all_versions else IS_CURRENT
    return [in_repository, objects.c.type.in_(types), wanted, browsable(of.view)]


def browsable(view: RepositoryView) -> sa.ColumnElement[bool]:
    if view.principals.administrator:
        return sa.true()
    acl_ids = acl_entries.acls_with(view.principals, principals.Permission.BROWSE)
    return sa.or_(objects.c.owner_key == view.principals.key, objects.c.acl_id.in_(acl_ids))


def properties_of(cx: Connection, view: RepositoryView, type_prefix: str) -> PropertiesOf:
    """Find properties by neutral name, for filters and sorts."""

    def find(name: str) -> ListedProperty:
        definition = view.catalogue.property(name)
        if name == "acl_name":
            return listed.naming(named_acl, acl_matching, objects.c.acl_id)
        if name == "r_object_type":
            return _type(type_prefix)
        if name == "acl_domain":
            return listed.naming(
                lambda text: owned_acl(lambda owner: owner == fold_name(text)), owned_acl, objects.c.acl_id
            )
        if name in SHOWN_ONLY:
            raise UnknownProperty(f"The property {name!r} is shown only: no list is filtered or sorted by it.")
        return _COLUMNS.get(name) or _stored_property(definition)

    def named_acl(text: str) -> sa.ColumnElement[bool]:
        acl_id = acls.look_up(cx, view.repository.id, [text], view.principals).get(text)
        return sa.false() if acl_id is None else objects.c.acl_id == acl_id

    def acl_matching(test: Test) -> sa.ColumnElement[bool]:
        return objects.c.acl_id.in_(acls.acls_with_names(view.repository.id, view.principals, test))

    def acl_of(owner: str) -> sa.ColumnElement[bool]:
        return owned_acl(lambda name: name == fold_name(owner))

    def owned_acl(test: Test) -> sa.ColumnElement[bool]:
        return objects.c.acl_id.in_(acls.acls_with_owner(view.repository.id, view.principals, test))

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
    name = sa.literal(definition.name, sa.Text())
    is_text = definition.kind == "string"
    if definition.repeating:
        first = objects.c.folded if is_text else sa.null()
        rows = sql.values_of(first, objects.c.properties, name).table_valued("value")
        value = _FROM_JSON[definition.kind](rows.c.value)
        whole = sql.list_of(objects.c.properties, name)
        return listed.several(definition.kind, rows, sql.plain_folded(value) if is_text else value, whole)
    value = _FROM_JSON[definition.kind](sql.first_value(objects.c.properties, name))
    if is_text:
        return _text(definition.name, value, nullable=True)
    return listed.single(definition.kind, value, nullable=True)


def _labels() -> ListedProperty:
    shown = '{"r_version_label":' + sa.func.coalesce(objects.c.labels, sa.literal('["1.0","CURRENT"]', sa.Text())) + "}"
    rows = sql.values_of(objects.c.folded, shown, sa.literal("r_version_label", sa.Text())).table_valued("value")
    return listed.several("string", rows, sql.plain_folded(sql.as_text(rows.c.value)), objects.c.labels)


def _lies_in(test: Test) -> sa.ColumnElement[bool]:
    link = folder_links.alias()
    of_object = sa.and_(link.c.object_id == objects.c.id, test(link.c.folder_id))
    further = sa.exists(sa.select(sa.literal_column("1")).select_from(link).where(of_object).correlate(objects))
    return sa.or_(sa.func.coalesce(test(objects.c.folder_id), sa.false()), further)


def _pages() -> sa.ColumnElement[int]:
    first = sa.case((objects.c.content_key.is_(None), 0), else_=1)
    return first + further_contents.page_count(objects.c.id)


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
    "i_folder_id": ListedProperty(
        "id", _lies_in, whole=objects.c.folder_id + sa.func.coalesce(objects.c.further_folders, "")
    ),
    "r_creation_date": listed.single("date", objects.c.created),
    "r_modify_date": listed.single("date", objects.c.modified),
    "r_full_content_size": listed.single("integer", objects.c.content_size),
    "a_content_date": listed.single("date", objects.c.content_date, nullable=True),
    "r_index_status": listed.plain(queue.state_of(objects.c.id)),
    "i_chronicle_id": listed.single("id", sa.func.coalesce(objects.c.chronicle_id, objects.c.id)),
    "i_antecedent_id": listed.single("id", objects.c.antecedent_id, nullable=True),
    "i_latest_flag": listed.single("boolean", 1 - objects.c.superseded),
    "r_log_entry": _text("r_log_entry", objects.c.comment, nullable=True),
    "r_lock_owner": _text("r_lock_owner", objects.c.lock_owner, nullable=True),
    "r_lock_date": listed.single("date", objects.c.locked, nullable=True),
    "r_version_label": _labels(),
    "log_entry": _text("r_log_entry", objects.c.comment, nullable=True),
    "r_content_size": listed.single("integer", objects.c.content_size),
    "r_page_cnt": listed.single("integer", _pages()),
    "world_permit": listed.single("integer", acl_entries.world_permit(objects.c.acl_id)),
}
