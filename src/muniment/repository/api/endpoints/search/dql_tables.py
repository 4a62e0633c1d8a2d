"""What a statement in DQL may select from besides objects: users, groups, and what describes objects.

Each table shows what the list of the same things shows, to the same callers. Source: docs/dql.md.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant, timestamp
from muniment.repository import bare_names
from muniment.repository.api.endpoints.people import people
from muniment.repository.api.shapes.collections import FeedRequest
from muniment.repository.api.shapes.representations import RELATION_PROPERTIES
from muniment.repository.api.wire import format_names, spelling
from muniment.repository.api.wire.spelling import Written
from muniment.repository.store.filters import fixed
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.filters.fixed import ListedName
from muniment.repository.store.filters.tree import Selection
from muniment.repository.store.objects.types import object_types, type_lists
from muniment.repository.store.objects.types.type_lists import ListedType
from muniment.repository.store.people import Kind, ListedPerson, People, PeopleFilter
from muniment.repository.store.permissions import acl_lists
from muniment.repository.store.permissions.acl_lists import ListedAcl
from muniment.repository.store.permissions.acls import AclSummary
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.relations import relation_types, relations
from muniment.repository.store.relations.relations import ListedRelation, RelationFilter

_VALUE_TYPES: Mapping[str, int] = {"boolean": 0, "integer": 1, "string": 2, "id": 3, "date": 4, "double": 5}
"""The numbers by which the field knows the kinds of properties."""


class TableRow(NamedTuple):
    """A row: its values by neutral name, the address of what it is about, and the title and date of its entry."""

    values: Mapping[str, Written]
    own: str
    title: str
    updated: Instant


class DqlTable(NamedTuple):
    """A table for one caller: its columns by neutral name, and how its rows are read and counted."""

    columns: tuple[str, ...]
    page: Callable[[Stretch, Selection], Sequence[Any]]
    count: Callable[[Selection], int]
    row: Callable[[Any], TableRow]


class TableQuestion(NamedTuple):
    """Who asks for a table, and of whom."""

    cx: Connection
    principals: Principals
    feed: FeedRequest
    people: People | None


def _people(asked: TableQuestion, kind: Kind) -> DqlTable:
    feed, directory, every = asked.feed, asked.people, PeopleFilter(asked.feed.repository.resource_id, kind)
    assert directory is not None  # noqa: S101 - dql asks for it first

    def row(member: ListedPerson) -> TableRow:
        person, names = member.person, feed.names
        values = {
            spelling.read_property(name, names): value
            for name, value in people.person_properties(person, names).items()
        }
        values["r_modify_date"] = timestamp(person.modified, utc="+00:00")
        title = bare_names.shown_name(person.id, feed.context.options)
        return TableRow(values, people.address_of(feed.here, person), title, person.modified)

    own = ("user_name", "user_login_name", "user_address") if kind == "user" else ("group_name", "group_display_name")
    return DqlTable(
        ("r_object_id", "description", *own, "r_modify_date"),
        lambda stretch, selection: directory.page(every, stretch, selection),
        lambda selection: directory.count(every, selection),
        row,
    )


def _named(
    asked: TableQuestion, path: str, columns: tuple[str, ...], members: Mapping[str, Mapping[str, str]]
) -> DqlTable:
    cx, feed = asked.cx, asked.feed

    def row(member: ListedName) -> TableRow:
        own, made = f"{feed.here}/{path}/{member.name}", feed.repository.created
        return TableRow({"name": member.name, **members[member.name]}, own, member.name, made)

    return DqlTable(
        columns,
        lambda stretch, selection: fixed.fixed_page(cx, members, columns[1:], stretch, selection),
        lambda selection: fixed.count_fixed(cx, members, columns[1:], selection),
        row,
    )


def _formats(asked: TableQuestion) -> DqlTable:
    every = format_names.all_format_names(asked.feed.names)
    members = {name: {"description": kind, "mime_type": kind} for name, kind in every.items()}
    return _named(asked, "formats", ("name", "description", "mime_type"), members)


def _relation_types(asked: TableQuestion) -> DqlTable:
    kinds = relation_types.all_relation_types(asked.cx, asked.feed.repository.id)
    members = {kind.name: {"relation_name": kind.name, "description": kind.description} for kind in kinds}
    return _named(asked, "relation-types", ("name", "relation_name", "description"), members)


def _types(asked: TableQuestion) -> DqlTable:
    cx, feed, names = asked.cx, asked.feed, asked.feed.names
    catalogue, repository = object_types.catalogue(cx, feed.repository.id), feed.repository

    def row(member: ListedType) -> TableRow:
        name, properties = spelling.write_type(member.name, names), catalogue.properties_of(member.name).values()
        values: dict[str, Written] = {
            "name": name,
            "super_name": spelling.write_type(member.parent, names) if member.parent else "",
            "label": catalogue.get(member.name).label or name,
            "type_category": object_types.STANDARD,
            "attr_count": len(properties),
            "attr_name": [spelling.write_property(each.name, names) for each in properties],
            "attr_type": [_VALUE_TYPES[each.kind] for each in properties],
            "attr_length": [each.length if each.kind == "string" else 0 for each in properties],
            "attr_repeating": [each.repeating for each in properties],
        }
        return TableRow(values, f"{feed.here}/types/{name}", name, repository.created)

    prefix = names.type_prefix
    attributes = ("attr_count", "attr_name", "attr_type", "attr_length", "attr_repeating")
    return DqlTable(
        ("name", "super_name", "label", "type_category", *attributes),
        lambda stretch, selection: type_lists.type_page(
            cx, repository.id, None, stretch, selection, type_prefix=prefix
        ),
        lambda selection: type_lists.count_types(cx, repository.id, None, selection, type_prefix=prefix),
        row,
    )


def _relations(asked: TableQuestion) -> DqlTable:
    cx, feed, every = asked.cx, asked.feed, RelationFilter()
    who = feed.repository, asked.principals

    def row(member: ListedRelation) -> TableRow:
        relation = member.relation
        values = {name: read(relation) for name, read in RELATION_PROPERTIES.items()}
        return TableRow(values, f"{feed.here}/relations/{relation.id}", relation.id, relation.created)

    return DqlTable(
        tuple(RELATION_PROPERTIES),
        lambda stretch, selection: relations.relation_page(cx, *who, every, stretch, selection),
        lambda selection: relations.count_relations(cx, *who, every, selection),
        row,
    )


_ACL_PROPERTIES: Mapping[str, Callable[[AclSummary], Written]] = {
    "r_object_id": lambda acl: acl.shown_id,
    "object_name": lambda acl: acl.name,
    "owner_name": lambda acl: acl.owner,
    "acl_domain": lambda acl: acl.owner,
    "description": lambda acl: acl.description,
    "r_modify_date": lambda acl: timestamp(acl.modified, utc="+00:00"),
}


def _acls(asked: TableQuestion) -> DqlTable:
    cx, feed, who = asked.cx, asked.feed, (asked.feed.repository.id, asked.principals)

    def row(member: ListedAcl) -> TableRow:
        acl = member.acl
        values = {name: read(acl) for name, read in _ACL_PROPERTIES.items()}
        return TableRow(values, f"{feed.here}/acls/{acl.shown_id}", acl.name, acl.modified)

    return DqlTable(
        tuple(_ACL_PROPERTIES),
        lambda stretch, selection: acl_lists.acl_page(cx, *who, stretch, selection),
        lambda selection: acl_lists.count_acls(cx, *who, selection),
        row,
    )


TableReader: TypeAlias = Callable[[TableQuestion], DqlTable]

PEOPLE: Mapping[str, TableReader] = {"user": partial(_people, kind="user"), "group": partial(_people, kind="group")}
"""Tables that the directory holds."""

TABLES: Mapping[str, TableReader] = {
    **PEOPLE,
    "acl": _acls,
    "format": _formats,
    "relation": _relations,
    "relation_type": _relation_types,
    "type": _types,
}
"""All tables, by their neutral names. On the wire, these have the prefix of the built-in types."""
