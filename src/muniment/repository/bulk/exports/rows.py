"""Which lines of an export do the rows of a repository become?"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import get_args

from sqlalchemy.engine import Connection

from muniment.repository.bulk.exports.naming import BearerNames
from muniment.repository.bulk.exports.records import (
    AclLine,
    CommentLine,
    ContentOfLine,
    EntryLine,
    ExportLine,
    FurtherContentLine,
    LockLine,
    ObjectLine,
    PermissionName,
    PropertyLine,
    RelationLine,
    RelationTypeLine,
    SavedSearchLine,
    TypeLine,
)
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.contents import further_contents
from muniment.repository.store.objects.contents.further_contents import ObjectContent
from muniment.repository.store.objects.properties import properties
from muniment.repository.store.objects.properties.properties import MAX_CHARACTERS, PropertyDefinition, Value
from muniment.repository.store.objects.properties.version import FIRST
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.objects.types import object_types
from muniment.repository.store.objects.types.object_types import BUILT_IN_NAMES, ObjectType
from muniment.repository.store.objects.types.type_forms import AllowedForm, Several
from muniment.repository.store.permissions import acl_entries, acl_rows, unnamed_acls
from muniment.repository.store.permissions.acl_look_up import UNNAMED, Row
from muniment.repository.store.permissions.principals import Permission
from muniment.repository.store.relations import comments, relation_types, relations
from muniment.repository.store.repositories import Repository
from muniment.repository.store.saved import saved_searches

_AT_A_TIME = 500

PERMISSIONS: Mapping[PermissionName, Permission] = {name: Permission[name.upper()] for name in get_args(PermissionName)}


_PERMISSION_NAMES = {level: name for name, level in PERMISSIONS.items()}


def pages(cx: Connection, repository: Repository, file: str, names: BearerNames) -> Iterator[Sequence[ExportLine]]:
    """``names`` looks up the users and groups of each page."""
    return _PAGES[file](cx, repository, names)


def _types(cx: Connection, repository: Repository, _names: BearerNames) -> Iterator[Sequence[TypeLine]]:
    catalogue = object_types.catalogue(cx, repository.id)
    custom = [kind for kind in catalogue.types() if kind.name not in BUILT_IN_NAMES]
    custom.sort(key=lambda kind: (len(catalogue.lineage(kind.name)), kind.name))
    for kind in custom:
        yield [_type(kind, catalogue.properties_of(kind.name))]


def _type(kind: ObjectType, siblings: Mapping[str, PropertyDefinition]) -> TypeLine:
    return TypeLine(kind.name, kind.parent or "", kind.label, [_property(each, siblings) for each in kind.properties])


def _property(of: PropertyDefinition, siblings: Mapping[str, PropertyDefinition]) -> PropertyLine:
    assistance = of.assistance
    other = siblings.get(assistance.depends_on, of)
    return PropertyLine(
        of.name,
        of.kind,
        of.repeating,
        of.length if of.length != MAX_CHARACTERS else None,
        of.label,
        of.searchable,
        _several(of, of.default),
        [
            AllowedForm(properties.as_sent(of, [each.value])[0], each.label, _when(other, each.when))
            for each in assistance.values
        ],
        assistance.is_open,
        assistance.depends_on,
    )


def _several(of: PropertyDefinition, values: Sequence[Value]) -> Several:
    sent = properties.as_sent(of, values)
    return sent if of.repeating and sent else next(iter(sent), None)


def _when(other: PropertyDefinition, values: Sequence[Value]) -> Several:
    return properties.as_sent(other, values) or None


def _relation_types(
    cx: Connection, repository: Repository, _names: BearerNames
) -> Iterator[Sequence[RelationTypeLine]]:
    every = relation_types.all_relation_types(cx, repository.id)
    yield [RelationTypeLine(each.name, each.description) for each in every if each.name not in relation_types.BUILT_IN]


def _acls(cx: Connection, repository: Repository, names: BearerNames) -> Iterator[Sequence[AclLine]]:
    key = 0
    while page := acl_rows.acl_row_page(cx, repository.id, key, _AT_A_TIME):
        entries = acl_entries.entries_of(cx, [row.id for row in page])
        names.look_up(cx, {accessor for of_acl in entries.values() for accessor in of_acl})
        names.look_up(cx, {row.owner_key for row in page if row.owner_key != UNNAMED})
        yield [_acl(row, entries.get(row.id, {}), names) for row in page]
        key = page[-1].id


def _acl(row: Row, entries: Mapping[str, Permission], names: BearerNames) -> AclLine:
    is_unnamed = row.owner_key == UNNAMED
    named = [EntryLine(names.of(accessor), _PERMISSION_NAMES[level]) for accessor, level in entries.items()]
    return AclLine(
        row.shown_id,
        "" if is_unnamed else row.name,
        row.owner,
        None if is_unnamed else names.unlike(row.owner, row.owner_key),
        row.common,
        is_unnamed and unnamed_acls.is_apart(row.name),
        sorted(named, key=lambda entry: str(entry.accessor)),
        row.created,
        row.modified,
        row.description or "",
    )


def _objects(cx: Connection, repository: Repository, names: BearerNames) -> Iterator[Sequence[ObjectLine]]:
    seq = 0
    while page := inventory.next_objects(cx, repository.id, seq, _AT_A_TIME):
        further = further_contents.by_object(cx, [stored.id for stored in page])
        acl_ids = acl_rows.shown_ids(
            cx, [key for stored in page for key in (stored.acl_id, stored.default_acl_id) if key is not None]
        )
        names.look_up(cx, (stored.owner_key for stored in page))
        names.look_up(cx, (stored.version.lock.owner_key for stored in page if stored.version.lock))
        yield [_object(stored, further.get(stored.id, ()), acl_ids, names) for stored in page]
        seq = page[-1].seq


def _object(
    stored: StoredObject, further: Sequence[ObjectContent], acl_ids: Mapping[int, str], names: BearerNames
) -> ObjectLine:
    version, lock = stored.version, stored.version.lock
    return ObjectLine(
        id=stored.id,
        type=stored.type,
        name=stored.name,
        owner=stored.owner,
        owner_key=names.unlike(stored.owner, stored.owner_key),
        acl=acl_ids[stored.acl_id],
        default_acl=None if stored.default_acl_id is None else acl_ids[stored.default_acl_id],
        folders=stored.folder_ids,
        created=stored.created,
        creator=stored.creator,
        modified=stored.modified,
        modifier=stored.modifier,
        revision=stored.revision,
        properties=stored.properties,
        media_type=stored.media_type,
        content_date=stored.content_date,
        content=ContentOfLine(stored.content.sha256.hex(), stored.content.size) if stored.content else None,
        further_contents=[_further(each) for each in sorted(further, key=lambda each: each.id)],
        chronicle=version.chronicle_id,
        antecedent=version.antecedent_id,
        labels=[] if version.labels == FIRST.labels else list(version.labels),
        superseded=version.superseded,
        comment=version.comment,
        lock=LockLine(lock.owner, lock.since, names.unlike(lock.owner, lock.owner_key)) if lock else None,
    )


def _further(each: ObjectContent) -> FurtherContentLine:
    place = each.place
    usual = "" if place.is_primary else further_contents.rendition(each.media_type, place.page, place.modifier).format
    return FurtherContentLine(
        sha256=each.content.sha256.hex(),
        size=each.content.size,
        primary=place.is_primary,
        page=place.page,
        media_type=each.media_type,
        format=None if place.format == usual else place.format,
        modifier=place.modifier,
        added=each.added,
    )


def _relations(cx: Connection, repository: Repository, names: BearerNames) -> Iterator[Sequence[RelationLine]]:
    seq = 0
    while page := relations.next_relations(cx, repository.id, seq, _AT_A_TIME):
        names.look_up(cx, (key for _, _, key in page))
        yield [
            RelationLine(
                each.id,
                each.name,
                each.parent_id,
                each.child_id,
                each.maker,
                each.created,
                names.unlike(each.maker, key),
            )
            for _, each, key in page
        ]
        seq = page[-1][0]


def _comments(cx: Connection, repository: Repository, names: BearerNames) -> Iterator[Sequence[CommentLine]]:
    seq = 0
    while page := comments.next_comments(cx, repository.id, seq, _AT_A_TIME):
        names.look_up(cx, (each.author_key for _, each in page))
        yield [
            CommentLine(
                each.id,
                each.object_id,
                each.author,
                each.created,
                each.modified,
                each.revision,
                each.text,
                each.replies_to,
                names.unlike(each.author, each.author_key),
            )
            for _, each in page
        ]
        seq = page[-1][0]


def _saved_searches(cx: Connection, repository: Repository, names: BearerNames) -> Iterator[Sequence[SavedSearchLine]]:
    last_id = ""
    while page := saved_searches.next_saved(cx, repository.id, last_id, _AT_A_TIME):
        names.look_up(cx, (each.owner_key for _, each in page))
        yield [
            SavedSearchLine(
                id=each.id,
                kind=kind,
                name=each.name,
                description=each.description,
                owner=each.owner,
                owner_key=names.unlike(each.owner, each.owner_key),
                public=each.public,
                created=each.created,
                modified=each.modified,
                revision=each.revision,
                spelling=each.document.spelling,
                names=each.document.names,
                format=each.document.format,
                document=each.document.body,
                question=each.document.question,
            )
            for kind, each in page
        ]
        last_id = page[-1][1].id


_Pages = Callable[[Connection, Repository, BearerNames], Iterator[Sequence[ExportLine]]]

_PAGES: Mapping[str, _Pages] = {
    "types.jsonl": _types,
    "relation-types.jsonl": _relation_types,
    "acls.jsonl": _acls,
    "objects.jsonl": _objects,
    "relations.jsonl": _relations,
    "comments.jsonl": _comments,
    "saved-searches.jsonl": _saved_searches,
}
