"""The tree of object types, with the properties that each type adds to those of its parent."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement
from muniment.ground.caches import Cache
from muniment.repository import version_stamps
from muniment.repository.refusals import NotSearchable, UnknownProperty, UnknownType, VersionConflict, WrongValue
from muniment.repository.store import named_locks
from muniment.repository.store.objects.properties.assistance import Assistance
from muniment.repository.store.objects.properties.properties import (
    MAX_CHARACTERS,
    PropertyDefinition,
    PropertyKind,
    Value,
)
from muniment.repository.store.objects.table import object_types, type_properties

MAX_NAME = 255


class ObjectType(msgspec.Struct, frozen=True):
    """``properties`` are those that it adds; an empty ``label`` means the name."""

    name: str
    parent: str | None
    properties: tuple[PropertyDefinition, ...] = ()
    label: str = ""


def _writable(
    name: str, kind: PropertyKind = "string", *, repeating: bool = False, length: int = MAX_CHARACTERS
) -> PropertyDefinition:
    return PropertyDefinition(name, kind, repeating, length=length)


def _read_only(
    name: str, kind: PropertyKind = "string", *, repeating: bool = False, searchable: bool = True
) -> PropertyDefinition:
    return PropertyDefinition(name, kind, repeating, writable=False, searchable=searchable)


BUILT_IN = (
    ObjectType(
        "sysobject",
        None,
        (
            _writable("object_name", length=MAX_NAME),
            _writable("title"),
            _writable("subject"),
            _writable("keywords", repeating=True),
            _writable("authors", repeating=True),
            _writable("language_code"),
            _writable("a_content_type"),
            _writable("a_content_date", "date"),
            _read_only("owner_name"),
            _read_only("acl_name"),
            _read_only("r_object_id", "id"),
            _read_only("r_object_type"),
            _read_only("r_creation_date", "date"),
            _read_only("r_creator_name"),
            _read_only("r_modify_date", "date"),
            _read_only("r_modifier"),
            _read_only("r_full_content_size", "integer"),
            _read_only("i_folder_id", "id", repeating=True),
            _read_only("r_index_status"),
            _read_only("r_version_label", repeating=True),
            _read_only("i_chronicle_id", "id"),
            _read_only("i_antecedent_id", "id"),
            _read_only("i_latest_flag", "boolean"),
            _read_only("r_log_entry"),
            _read_only("r_lock_owner"),
            _read_only("r_lock_date", "date"),
            _read_only("log_entry", searchable=False),
            _read_only("acl_domain", searchable=False),
            _read_only("i_cabinet_id", "id", searchable=False),
            _read_only("r_content_size", "integer", searchable=False),
            _read_only("r_page_cnt", "integer", searchable=False),
            _read_only("world_permit", "integer", searchable=False),
        ),
    ),
    ObjectType(
        "folder",
        "sysobject",
        (
            _read_only("r_folder_path", repeating=True, searchable=False),
            _read_only("i_ancestor_id", "id", repeating=True, searchable=False),
        ),
    ),
    ObjectType("cabinet", "folder"),
    ObjectType("document", "sysobject"),
)

SHOWN_ONLY = frozenset({"r_folder_path", "i_ancestor_id", "i_cabinet_id"})
"""The index does not hold these built-in properties, and lists cannot filter or sort by them."""

COMPUTED = frozenset({"acl_domain", "i_cabinet_id", "r_content_size", "r_page_cnt", "world_permit"})
"""Built-in properties that are computed when an object is shown."""

STANDARD = 1
"""Every type here has this category. In other systems, 2 is a shareable type, 4 a lightweight one (docs/filters.md)."""

BUILT_IN_NAMES = frozenset(kind.name for kind in BUILT_IN)

SYSTEM_PROPERTIES = frozenset(
    definition.name for kind in BUILT_IN for definition in kind.properties if definition.name.startswith("r_")
)


class Rules(msgspec.Struct, frozen=True):
    """What a row holds as JSON."""

    default: tuple[Value, ...] = ()
    assistance: Assistance = Assistance()


class _Row(NamedTuple):
    type_id: int
    type_name: str
    parent: str
    type_label: str
    name: str | None
    kind: PropertyKind
    repeating: bool
    length: int
    label: str
    searchable: bool
    awaiting_index: bool
    rules: str


_ROWS = PreparedStatement(
    sa.select(
        object_types.c.id,
        *(object_types.c[name] for name in ("name", "parent", "label")),
        *(type_properties.c[name] for name in ("name", "kind", "repeating", "length", "label")),
        *(type_properties.c[name] for name in ("searchable", "awaiting_index", "rules")),
    )
    .join_from(object_types, type_properties, isouter=True)
    .where(object_types.c.repository_id == sa.bindparam("repository"))
    .order_by(object_types.c.name, type_properties.c.id)
)
_rules_decoder = msgspec.json.Decoder(Rules)


def encode_rules(definition: PropertyDefinition) -> str:
    """Return an empty text for no rules."""
    rules = Rules(definition.default, definition.assistance)
    return "" if rules == Rules() else msgspec.json.encode(rules).decode()


class Catalogue:
    """A repository's types as of one read of the database; it does not change."""

    def __init__(self, custom: Iterable[ObjectType] = ()) -> None:
        self._types = {kind.name: kind for kind in (*BUILT_IN, *custom)}
        self._properties = {
            definition.name: definition for kind in self._types.values() for definition in kind.properties
        }
        self._lineages = {name: frozenset(kind.name for kind in self.lineage(name)) for name in self._types}
        self._all: dict[str, dict[str, PropertyDefinition]] = {}
        self._ruled: dict[str, tuple[PropertyDefinition, ...]] = {}
        custom_types = [kind for kind in self._types.values() if kind not in BUILT_IN]
        self.ids = frozenset(each.name for kind in custom_types for each in kind.properties if each.kind == "id")
        self.unsearchable = frozenset(each.name for each in self._properties.values() if not each.searchable)
        self.awaiting_index = frozenset(each.name for each in self._properties.values() if each.awaiting_index)

    def __contains__(self, name: str) -> bool:
        return name in self._types

    def types(self) -> tuple[ObjectType, ...]:
        """List the built-in types first, then the others by name."""
        return tuple(self._types.values())

    def get(self, name: str) -> ObjectType:
        """Raises UnknownType."""
        if name not in self._types:
            raise UnknownType(f"There is no object type {name[:100]!r}.")
        return self._types[name]

    def lineage(self, name: str) -> tuple[ObjectType, ...]:
        """List a type, then its ancestors.

        Raises UnknownType.
        """
        line = [self.get(name)]
        while line[-1].parent is not None:
            line.append(self._types[line[-1].parent])
        return tuple(line)

    def is_a(self, name: str, ancestor: str) -> bool:
        """A type is its own ancestor here.

        Raises UnknownType.
        """
        return ancestor in self._lineages[self.get(name).name]

    def with_subtypes(self, names: Iterable[str]) -> frozenset[str]:
        """Add all sub-types (given 2.8).

        Raises UnknownType.
        """
        roots = {self.get(name).name for name in names}
        return frozenset(name for name, lineage in self._lineages.items() if not roots.isdisjoint(lineage))

    def property(self, name: str) -> PropertyDefinition:
        """Properties of one name have the same kind in all types.

        Raises UnknownProperty.
        """
        if name not in self._properties:
            raise UnknownProperty(f"No object type here has a property {name[:100]!r}.")
        return self._properties[name]

    def searchable(self, name: str) -> PropertyDefinition:
        """Raises UnknownProperty, NotSearchable."""
        definition = self.property(name)
        if name in self.awaiting_index:
            raise NotSearchable(f"The property {name!r} is being indexed again just now: try again in a while.")
        if name in self.unsearchable:
            raise NotSearchable(f"The property {name!r} is not searchable: no query can use it.")
        return definition

    def property_of(self, type_name: str, name: str) -> PropertyDefinition:
        """Raises UnknownType, UnknownProperty."""
        if name not in self.properties_of(type_name):
            raise UnknownProperty(f"The object type {type_name!r} has no property {name[:100]!r}.")
        return self.properties_of(type_name)[name]

    def having(self, name: str) -> frozenset[str]:
        roots = [kind.name for kind in self._types.values() if any(each.name == name for each in kind.properties)]
        return self.with_subtypes(roots)

    def properties_of(self, name: str) -> Mapping[str, PropertyDefinition]:
        """List the inherited ones first.

        Raises UnknownType.
        """
        if (every := self._all.get(name)) is None:
            lineage = reversed(self.lineage(name))
            every = self._all[name] = {each.name: each for kind in lineage for each in kind.properties}
        return every

    def ruled(self, name: str) -> tuple[PropertyDefinition, ...]:
        """List the properties with a default or a list of values.

        Raises UnknownType.
        """
        if (ruled := self._ruled.get(name)) is None:
            every = self.properties_of(name).values()
            ruled = self._ruled[name] = tuple([each for each in every if each.default or each.assistance.values])
        return ruled


BUILT_IN_TYPES = Catalogue()


_CATALOGUES = 100
_catalogues: Cache[int, Catalogue] = Cache(_CATALOGUES)


def catalogue(cx: Connection, repository_id: int) -> Catalogue:
    """Read a repository's types, which the process may remember until their mark changes (``version_stamps``)."""
    mark = version_stamps.read(cx).types
    remembered = _catalogues.recall(repository_id, mark)
    if remembered is not None:
        return remembered
    present = Catalogue(_custom_types([_Row(*row) for row in _ROWS.all(cx, repository=repository_id)]))
    # In a transaction that is no snapshot, types may be changed between the reads of the mark and of the rows.
    return _catalogues.keep(repository_id, present, mark=mark) if version_stamps.read(cx).types == mark else present


def _custom_types(rows: Iterable[_Row]) -> list[ObjectType]:
    types_by_id: dict[int, ObjectType] = {}
    properties_by_type: dict[int, list[PropertyDefinition]] = {}
    for row in rows:
        types_by_id[row.type_id] = ObjectType(row.type_name, row.parent, label=row.type_label)
        if row.name is not None:
            properties_by_type.setdefault(row.type_id, []).append(_definition(row.name, row))
    return [
        msgspec.structs.replace(kind, properties=tuple(properties_by_type.get(type_id, ())))
        for type_id, kind in types_by_id.items()
    ]


def _definition(name: str, row: _Row) -> PropertyDefinition:
    rules = _rules_decoder.decode(row.rules) if row.rules else Rules()
    return PropertyDefinition(
        name,
        row.kind,
        row.repeating,
        length=row.length,
        label=row.label,
        searchable=row.searchable,
        awaiting_index=row.awaiting_index,
        default=rules.default,
        assistance=rules.assistance,
    )


def lock_all(cx: Connection, repository_id: int) -> Catalogue:
    """Keep others from changing a repository's types until the commit.

    Who changes types or properties calls this before reading the types by which it decides, locking a single type, or
    writing: so two never wait for each other, and each sees what the earlier wrote.

    Who only writes objects waits while a type of theirs is changed. A batch that writes objects, then changes types,
    may wait for a change of these objects' types that waits for it: PostgreSQL then ends one of the two, which raises
    Busy.
    """
    named_locks.take(cx, f"types {repository_id}")
    return catalogue(cx, repository_id)


def lock(cx: Connection, repository_id: int, name: str) -> Catalogue:
    """Do ``lock_all``; also, until the commit, nobody can store an object of this type or a sub-type.

    Raises UnknownType, and WrongValue for a built-in type.
    """
    if name in BUILT_IN_NAMES:
        raise WrongValue(f"The object type {name!r} is built in: it stays as it is.")
    present = lock_all(cx, repository_id)
    if not cx.execute(select_types(repository_id, [name]).with_for_update()).first():
        raise UnknownType(f"There is no object type {name[:100]!r}.")
    return present


def hold(cx: Connection, repository_id: int, read: Catalogue, names: Iterable[str]) -> None:
    """Before writing objects of these types: keep others from changing these and the types above them until the
    transaction ends.

    The objects were checked by the catalogue ``read``. Built-in types need no statement.

    Raises UnknownType, and VersionConflict if one of the types has changed since the catalogue was read. A change of
    labels, or of which properties are searchable, does not count.
    """
    custom = {kind.name for name in set(names) for kind in read.lineage(name)} - BUILT_IN_NAMES
    if not custom:
        return
    cx.execute(select_types(repository_id, sorted(custom)).with_for_update(read=True, key_share=True)).all()
    present = catalogue(cx, repository_id)
    if present is not read and any(
        name not in present or _checked_part(present.get(name)) != _checked_part(read.get(name)) for name in custom
    ):
        raise VersionConflict("An object type was changed meanwhile: try again.")


def _checked_part(kind: ObjectType) -> ObjectType:
    plain = [msgspec.structs.replace(each, label="", searchable=True, awaiting_index=False) for each in kind.properties]
    return msgspec.structs.replace(kind, label="", properties=tuple(plain))


def select_types(repository_id: int, names: Collection[str]) -> sa.Select[tuple[int]]:
    """Order the types as every transaction must lock them."""
    return (
        sa.select(object_types.c.id)
        .where(object_types.c.repository_id == repository_id, object_types.c.name.in_(names))
        .order_by(object_types.c.id)
    )
