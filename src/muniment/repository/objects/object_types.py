"""The tree of object types, with the properties that each adds to its parent's.

The four built-in types are part of the program. Only custom types are stored, under our neutral names.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.db import BigId, PreparedStatement, repository_tables
from muniment.repository.cursors import Place, Stretch
from muniment.repository.filters import listed, pages, sql
from muniment.repository.filters.listed import ListedProperty, PropertiesOf
from muniment.repository.filters.pages import Order, OrderKey
from muniment.repository.filters.tree import EVERYTHING, Selection
from muniment.repository.folding import fold
from muniment.repository.objects.properties import PropertyDefinition, PropertyKind
from muniment.repository.refusals import (
    NameTaken,
    UnknownProperty,
    UnknownType,
    VersionConflict,
    WrongValue,
)

object_types = sa.Table(
    "object_types",
    repository_tables,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("repository_id", sa.ForeignKey("repositories.id"), nullable=False),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("parent", sa.String(64), nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("repository_id", "name"),
)

type_properties = sa.Table(
    "type_properties",
    repository_tables,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("type_id", sa.ForeignKey("object_types.id"), nullable=False),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("kind", sa.String(10), nullable=False),
    sa.Column("repeating", sa.Boolean, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("type_id", "name"),
)

RESERVED = ("r_", "i_", "a_", "dm_")
"""Prefixes that no custom type or property may have: they are ours, or those of the interface in the field."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class ObjectType(msgspec.Struct, frozen=True):
    """One type: its parent (none for the root) and the properties it adds."""

    name: str
    parent: str | None
    properties: tuple[PropertyDefinition, ...] = ()


def _writable(name: str, kind: PropertyKind = "string", *, repeating: bool = False) -> PropertyDefinition:
    return PropertyDefinition(name, kind, repeating)


def _read_only(name: str, kind: PropertyKind = "string") -> PropertyDefinition:
    return PropertyDefinition(name, kind, repeating=False, writable=False)


BUILT_IN = (
    ObjectType(
        "sysobject",
        None,
        (
            _writable("object_name"),
            _writable("title"),
            _writable("subject"),
            _writable("keywords", repeating=True),
            _writable("authors", repeating=True),
            _writable("language_code"),
            _writable("a_content_type"),
            _read_only("owner_name"),
            _read_only("acl_name"),
            _read_only("r_object_id", "id"),
            _read_only("r_object_type"),
            _read_only("r_creation_date", "date"),
            _read_only("r_creator_name"),
            _read_only("r_modify_date", "date"),
            _read_only("r_modifier"),
            _read_only("r_full_content_size", "integer"),
            _read_only("i_folder_id", "id"),
            _read_only("r_index_status"),
        ),
    ),
    ObjectType("folder", "sysobject"),
    ObjectType("cabinet", "folder"),
    ObjectType("document", "sysobject"),
)
"""The types every repository has. ``r_index_status`` is only shown; the others can be searched."""

STANDARD = 1
"""The category of every type here, as the field numbers it: 2 is a shareable type, 4 a lightweight one."""

BUILT_IN_NAMES = frozenset(kind.name for kind in BUILT_IN)

SYSTEM_PROPERTIES = frozenset(
    definition.name for definition in BUILT_IN[0].properties if definition.name.startswith("r_")
)
"""Built-in properties whose prefix the settings determine."""


class _Row(NamedTuple):
    type_id: int
    name: str
    parent: str
    property_name: str | None
    kind: PropertyKind
    repeating: bool


_ROWS = PreparedStatement(
    sa.select(
        object_types.c.id,
        object_types.c.name,
        object_types.c.parent,
        type_properties.c.name,
        type_properties.c.kind,
        type_properties.c.repeating,
    )
    .join_from(object_types, type_properties, isouter=True)
    .where(object_types.c.repository_id == sa.bindparam("repository"))
    .order_by(object_types.c.name, type_properties.c.id)
)


class Catalogue:
    """A repository's types as of one read of the database; it does not change."""

    def __init__(self, custom: Iterable[ObjectType] = ()) -> None:
        self._types = {kind.name: kind for kind in (*BUILT_IN, *custom)}
        self._properties = {
            definition.name: definition for kind in self._types.values() for definition in kind.properties
        }
        self._lineages = {name: frozenset(kind.name for kind in self.lineage(name)) for name in self._types}
        self._all = {name: self._with_inherited(name) for name in self._types}
        custom_types = (kind for kind in self._types.values() if kind not in BUILT_IN)
        self.ids = frozenset(each.name for kind in custom_types for each in kind.properties if each.kind == "id")
        """Names of the custom properties of kind id, whichever type has them."""

    def __contains__(self, name: str) -> bool:
        return name in self._types

    def types(self) -> tuple[ObjectType, ...]:
        """List the types: the built-in ones first, then the custom ones by name."""
        return tuple(self._types.values())

    def get(self, name: str) -> ObjectType:
        """Find a type by its neutral name. Raises UnknownType."""
        if name not in self._types:
            raise UnknownType(f"There is no object type {name[:100]!r}.")
        return self._types[name]

    def lineage(self, name: str) -> tuple[ObjectType, ...]:
        """List a type and its ancestors, itself first. Raises UnknownType."""
        line = [self.get(name)]
        while line[-1].parent is not None:
            line.append(self._types[line[-1].parent])
        return tuple(line)

    def is_a(self, name: str, ancestor: str) -> bool:
        """Say whether a type is ``ancestor`` or below it. Raises UnknownType."""
        return ancestor in self._lineages[self.get(name).name]

    def with_subtypes(self, names: Iterable[str]) -> frozenset[str]:
        """Return these types with all their sub-types (given 2.8). Raises UnknownType."""
        roots = {self.get(name).name for name in names}
        return frozenset(name for name in self._types if any(kind.name in roots for kind in self.lineage(name)))

    def property(self, name: str) -> PropertyDefinition:
        """Find a property of any type: within a repository a name has one kind. Raises UnknownProperty."""
        if name not in self._properties:
            raise UnknownProperty(f"No object type here has a property {name[:100]!r}.")
        return self._properties[name]

    def properties_of(self, name: str) -> Mapping[str, PropertyDefinition]:
        """List the properties of a type, inherited ones first. Raises UnknownType."""
        return self._all[self.get(name).name]

    def _with_inherited(self, name: str) -> dict[str, PropertyDefinition]:
        return {definition.name: definition for kind in reversed(self.lineage(name)) for definition in kind.properties}


BUILT_IN_TYPES = Catalogue()
"""The types that every repository has, without any other."""


def catalogue(cx: Connection, repository_id: int) -> Catalogue:
    """Read a repository's types."""
    return _catalogue(*(_Row(*row) for row in _ROWS.all(cx, repository=repository_id)))


@lru_cache(maxsize=32)
def _catalogue(*rows: _Row) -> Catalogue:
    """Make the catalogue of these rows; the same rows give the same catalogue."""
    types_by_id: dict[int, tuple[str, str]] = {}
    properties_by_type: dict[int, list[PropertyDefinition]] = {}
    for type_id, name, parent, property_name, kind, repeating in rows:
        types_by_id[type_id] = (name, parent)
        if property_name is not None:
            properties_by_type.setdefault(type_id, []).append(PropertyDefinition(property_name, kind, repeating))
    return Catalogue(
        ObjectType(name, parent, tuple(properties_by_type.get(type_id, ())))
        for type_id, (name, parent) in types_by_id.items()
    )


def custom_properties(repository_id: int) -> sa.Select[Any]:
    """Make a query for the names and kinds of the properties that custom types add."""
    kind = sa.cast(type_properties.c.kind, sa.String(64)).label("kind")
    every = sa.select(type_properties.c.name, kind).join_from(type_properties, object_types)
    return every.where(object_types.c.repository_id == repository_id)


class ListedType(NamedTuple):
    """A type of a list, with its place in the order: the built-in types come before all others."""

    name: str
    parent: str | None
    place: Place


def page(
    cx: Connection,
    repository_id: int,
    root: str | None,
    stretch: Stretch,
    selection: Selection = EVERYTHING,
    *,
    type_prefix: str = "",
) -> list[ListedType]:
    """List a stretch of the types from ``root`` down, or of all: the built-in ones first, then the others by name.

    Only types that meet the selection's filter are listed. If it sorts them, its order comes first. ``type_prefix``
    spells the names of the built-in types, which the selection compares as they are shown. Raises UnknownType,
    UnknownProperty, WrongValue, BadSort.
    """
    _check_known(cx, repository_id, root)
    members, properties, order = _listed(repository_id, root, type_prefix)
    page_rows = pages.fetch(cx, members, properties, order, stretch, selection)
    return [ListedType(row.name, row.parent, place) for row, place in page_rows]


def count(
    cx: Connection, repository_id: int, root: str | None, selection: Selection = EVERYTHING, *, type_prefix: str = ""
) -> int:
    """Count all types that ``page`` lists. Raises UnknownProperty, WrongValue."""
    members, properties, _ = _listed(repository_id, root, type_prefix)
    return pages.count(cx, members, properties, selection)


def _listed(repository_id: int, root: str | None, prefix: str) -> tuple[sa.Select[Any], PropertiesOf, Order]:
    """Make a query for the types, with the properties that they are filtered by and their order."""
    text = sa.String(64)
    subtypes = BUILT_IN_TYPES.with_subtypes([root]) if root in BUILT_IN_NAMES else frozenset()
    built_in = [
        sa.select(
            sa.literal(kind.name, text).label("name"),
            sa.cast(sa.literal(kind.parent, text), text).label("parent"),
            sa.literal(at, sa.Integer()).label("rank"),
        )
        for at, kind in enumerate(BUILT_IN)
        if root is None or kind.name in subtypes
    ]
    custom = _custom(repository_id, root)
    rank = sa.literal(len(BUILT_IN), sa.Integer()).label("rank")
    types = sa.union_all(*built_in, sa.select(custom.c.name, custom.c.parent, rank)).subquery("types")

    def shown_name(name: sa.ColumnElement[str], prefix: str) -> sa.ColumnElement[str]:
        return sa.case((name.in_(sorted(BUILT_IN_NAMES)), sa.literal(prefix, text) + name), else_=name)

    def name_property(name: sa.ColumnElement[str], *, nullable: bool = False) -> ListedProperty:
        return listed.single(
            "string", shown_name(name, prefix), compared=shown_name(name, fold(prefix)), nullable=nullable
        )

    properties: Mapping[str, ListedProperty] = {
        "name": name_property(types.c.name),
        "label": listed.plain(types.c.name),
        "parent": name_property(types.c.parent, nullable=True),
        "category": listed.plain(sa.literal("standard", text)),
        "type_category": listed.single("integer", sa.literal(STANDARD, sa.Integer())),
    }

    def find(name: str) -> ListedProperty:
        if name not in properties:
            raise UnknownProperty(f"A list of types has no property {name[:100]!r}: it has {', '.join(properties)}.")
        return properties[name]

    return sa.select(types), find, Order((OrderKey(types.c.rank), OrderKey(sql.by_code_point(types.c.name))))


def _custom(repository_id: int, root: str | None) -> sa.Subquery | sa.CTE:
    """Make a query for the custom types: all, or those that are this type or lie below it."""
    of_repository = sa.select(object_types.c.name, object_types.c.parent).where(
        object_types.c.repository_id == repository_id
    )
    if root is None or root == BUILT_IN[0].name:
        return of_repository.subquery()
    roots = BUILT_IN_TYPES.with_subtypes([root]) if root in BUILT_IN_NAMES else {root}
    direct = of_repository.where(
        sa.or_(object_types.c.name.in_(sorted(roots)), object_types.c.parent.in_(sorted(roots & BUILT_IN_NAMES)))
    )
    descendants = direct.cte("below", recursive=True)
    deeper = sa.select(object_types.c.name, object_types.c.parent).join_from(
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


def add_type(cx: Connection, repository_id: int, kind: ObjectType, now: Instant) -> None:
    """Add a custom type below an existing one. Raises NameTaken, UnknownType, WrongValue."""
    present = catalogue(cx, repository_id)
    _check_name(kind.name, "type")
    if kind.name in {present_type.name for present_type in present.types()}:
        raise NameTaken(f"There is an object type {kind.name!r} already.")
    if kind.parent is None:
        raise UnknownType(f"The object type {kind.name!r} needs a parent, such as 'document'.")
    present.get(kind.parent)
    hold(cx, repository_id, present, [kind.parent])
    cx.execute(
        object_types.insert().values(repository_id=repository_id, name=kind.name, parent=kind.parent, created=now)
    )
    for definition in kind.properties:
        add_property(cx, repository_id, kind.name, definition, now)


def add_property(
    cx: Connection, repository_id: int, type_name: str, definition: PropertyDefinition, now: Instant
) -> None:
    """Add a property to a custom type; existing objects have no value for it.

    Raises UnknownType (also for a built-in one), NameTaken, WrongValue (the name has another kind elsewhere).
    """
    present = catalogue(cx, repository_id)
    _check_name(definition.name, "property")
    if type_name in BUILT_IN_NAMES:
        raise UnknownType(f"The object type {type_name!r} is built in: add a type below it, with the property.")
    subtypes = present.with_subtypes([type_name])
    if any(definition.name in present.properties_of(name) for name in subtypes):
        raise NameTaken(f"The object type {type_name!r}, or one below it, has a property {definition.name!r} already.")
    check_same_kind(present, definition)
    hold(cx, repository_id, present, [type_name])
    type_id = cx.execute(_select_types(repository_id, [type_name])).scalar_one()
    cx.execute(
        type_properties.insert().values(
            type_id=type_id, name=definition.name, kind=definition.kind, repeating=definition.repeating, created=now
        )
    )


def lock(cx: Connection, repository_id: int, name: str) -> Catalogue:
    """Lock a custom type, and read all types. Until the commit nobody keeps an object of it or of a type below it.

    Raises UnknownType, WrongValue for a built-in type.
    """
    if name in BUILT_IN_NAMES:
        raise WrongValue(f"The object type {name!r} is built in: it stays as it is.")
    if not cx.execute(_select_types(repository_id, [name]).with_for_update()).first():
        raise UnknownType(f"There is no object type {name[:100]!r}.")
    return catalogue(cx, repository_id)


def hold(cx: Connection, repository_id: int, read: Catalogue, names: Iterable[str]) -> None:
    """Lock these types until a transaction commits that writes objects of them, so that nobody changes them before.

    ``read`` is the catalogue by which the objects were checked. Built-in types need no lock and no statement. Raises
    VersionConflict if one of the types has changed since the catalogue was read.
    """
    custom = {kind.name for name in set(names) for kind in read.lineage(name)} - BUILT_IN_NAMES
    if not custom:
        return
    cx.execute(_select_types(repository_id, sorted(custom)).with_for_update(read=True, key_share=True)).all()
    present = catalogue(cx, repository_id)
    if present is not read and any(name not in present or present.get(name) != read.get(name) for name in custom):
        raise VersionConflict("An object type was changed meanwhile: try again.")


def remove_type(cx: Connection, repository_id: int, name: str) -> None:
    """Remove a custom type with its properties; ``removal`` decides whether it may go."""
    of_type = _select_types(repository_id, [name]).scalar_subquery()
    cx.execute(type_properties.delete().where(type_properties.c.type_id == of_type))
    cx.execute(object_types.delete().where(object_types.c.repository_id == repository_id, object_types.c.name == name))


def remove_property(cx: Connection, repository_id: int, type_name: str, name: str) -> None:
    """Remove a property from a custom type; ``removal`` decides whether it may go."""
    of_type = _select_types(repository_id, [type_name]).scalar_subquery()
    cx.execute(type_properties.delete().where(type_properties.c.type_id == of_type, type_properties.c.name == name))


def _select_types(repository_id: int, names: Collection[str]) -> sa.Select[tuple[int]]:
    return (
        sa.select(object_types.c.id)
        .where(object_types.c.repository_id == repository_id, object_types.c.name.in_(names))
        .order_by(object_types.c.id)
    )


def _check_name(name: str, what: str) -> None:
    if not _NAME.fullmatch(name):
        raise WrongValue(f"A {what} name has letters a-z, digits and _, begins with a letter and ends within 64.")
    if name.startswith(RESERVED):
        raise WrongValue(f"A {what} name may not begin with {', '.join(RESERVED)}: those are the repository's own.")


def check_same_kind(catalogue: Catalogue, definition: PropertyDefinition) -> None:
    """Raise WrongValue if another type of the repository has a property of this name and of another kind."""
    try:
        present = catalogue.property(definition.name)
    except UnknownProperty:
        return
    if (present.kind, present.repeating) != (definition.kind, definition.repeating):
        values = "several values" if present.repeating else "one value"
        raise WrongValue(
            f"The property {definition.name!r} is of kind {present.kind} with {values} in this repository already."
        )
