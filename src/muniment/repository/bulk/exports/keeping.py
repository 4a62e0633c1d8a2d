"""How do the lines of an export become rows?

A file may come from anybody: its values are checked, and what a line refers to must come before it, except an object's
folders and antecedent (``object_lines.folders_of``). No rights are checked.
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.repository import audit
from muniment.repository.bulk.exports.destination import Destination, about, refuse_dangling
from muniment.repository.bulk.exports.naming import meant
from muniment.repository.bulk.exports.records import (
    AclLine,
    CommentLine,
    ExportLine,
    PropertyLine,
    RelationLine,
    RelationTypeLine,
    SavedSearchLine,
    TypeLine,
)
from muniment.repository.bulk.exports.rows import PERMISSIONS
from muniment.repository.refusals import WrongValue
from muniment.repository.store.objects.decisions import imported_objects
from muniment.repository.store.objects.types import type_editing
from muniment.repository.store.objects.types.type_forms import PropertyForm, TypeForm
from muniment.repository.store.permissions import acl_entries, acl_rows, unnamed_acls
from muniment.repository.store.permissions.acl_look_up import UNNAMED
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.relations import comments, relation_types, relations
from muniment.repository.store.relations.comments import DEEPEST, Comment
from muniment.repository.store.relations.relation_types import RelationType
from muniment.repository.store.relations.relations import Relation
from muniment.repository.store.saved import saved_searches
from muniment.repository.store.saved.saved_searches import SavedDocument, SavedSearch

_NOBODY = Principals("", administrator=True)


def types_of(cx: Connection, to: Destination, some: Sequence[ExportLine], before: int, now: Instant) -> None:
    for number, line in enumerate(some, before + 1):
        if isinstance(line, TypeLine):
            label = line.label or msgspec.UNSET
            form = TypeForm(line.name, line.parent, label, [_form(each) for each in line.properties])
            with about("types.jsonl", number):
                type_editing.define_type(cx, to.repository.id, form, now)


def _form(line: PropertyLine) -> PropertyForm:
    return PropertyForm(
        line.name,
        line.kind,
        line.repeating,
        length=msgspec.UNSET if line.length is None else line.length,
        label=line.label or msgspec.UNSET,
        searchable=line.searchable,
        default=msgspec.UNSET if line.default is None else line.default,
        allowed=line.allowed or msgspec.UNSET,
        is_open=line.is_open,
        depends_on=line.depends_on or msgspec.UNSET,
    )


def relation_types_of(cx: Connection, to: Destination, some: Sequence[ExportLine], before: int, now: Instant) -> None:
    for number, line in enumerate(some, before + 1):
        if isinstance(line, RelationTypeLine):
            with about("relation-types.jsonl", number):
                relation_types.add(cx, to.repository.id, RelationType(line.name, line.description), _NOBODY, now)


def acls_of(cx: Connection, to: Destination, some: Sequence[ExportLine], before: int, now: Instant) -> None:
    acl_lines = [line for line in some if isinstance(line, AclLine)]
    to.bearers.look_up(cx, [entry.accessor for line in acl_lines for entry in line.entries], now)
    to.bearers.look_up(cx, [meant(line.owner_key, line.owner) for line in acl_lines], now)
    with audit.decision(cx, "acls imported", to.repository.target):
        for number, line in enumerate(acl_lines, before + 1):
            with about("acls.jsonl", number):
                _keep_acl(cx, to, line)


def _keep_acl(cx: Connection, to: Destination, line: AclLine) -> None:
    entries = {to.bearers.of(entry.accessor): PERMISSIONS[entry.permission] for entry in line.entries}
    if len(entries) < len(line.entries) or len(entries) > acl_entries.MAX_ENTRIES or "" in entries:
        raise WrongValue("The ACL names one user or group twice, or too many of them.")
    if line.name:
        # A name that only earlier releases allowed stays: such an ACL can be named by its id.
        name, owner_key = line.name, to.bearers.of(line.owner_key, line.owner)
    else:
        name, owner_key = unnamed_acls.name_of(entries), UNNAMED
        if line.apart:
            name = unnamed_acls.name_apart(line.id)
        if line.owner or line.owner_key is not None or line.common:
            raise WrongValue("An ACL without a name has no owner.")
    acl_rows.put_back(
        cx,
        to.repository.id,
        line.id,
        name,
        (line.owner, owner_key),
        dict(sorted(entries.items())),
        (line.created, line.modified),
        common=line.common,
        description=line.description,
    )


def relations_of(cx: Connection, to: Destination, some: Sequence[ExportLine], before: int, now: Instant) -> None:
    relation_lines = [line for line in some if isinstance(line, RelationLine)]
    to.bearers.look_up(cx, [meant(line.maker_key, line.maker) for line in relation_lines], now)
    ends = {end for line in relation_lines for end in (line.parent, line.child)}
    present = imported_objects.present(cx, to.repository.id, ends)
    names, new = set[str](), list[tuple[Relation, str]]()
    for number, line in enumerate(relation_lines, before + 1):
        for end in (line.parent, line.child):
            if end not in present:
                raise refuse_dangling("relations.jsonl", number, "the object", end)
        if line.name not in names:
            with about("relations.jsonl", number):
                names.add(relation_types.find(cx, to.repository.id, line.name).name)
        relation = Relation(line.name, line.parent, line.child, line.id, line.maker, line.created)
        new.append((relation, to.bearers.of(line.maker_key, line.maker)))
    with about("relations.jsonl", before + 1, before + len(some)):
        relations.put_back(cx, to.repository.id, new)


def comments_of(cx: Connection, to: Destination, some: Sequence[ExportLine], before: int, now: Instant) -> None:
    """Refuse a reply unless the comment that it answers came before it."""
    comment_lines = [line for line in some if isinstance(line, CommentLine)]
    to.bearers.look_up(cx, [meant(line.author_key, line.author) for line in comment_lines], now)
    present = imported_objects.present(cx, to.repository.id, {line.object for line in comment_lines})
    above = comments.by_ids(cx, to.repository.id, {line.replies_to for line in comment_lines if line.replies_to})
    new = list[Comment]()
    for number, line in enumerate(comment_lines, before + 1):
        if line.object not in present:
            raise refuse_dangling("comments.jsonl", number, "the object", line.object)
        depth = 0
        if line.replies_to is not None:
            answered = above.get(line.replies_to)
            if answered is None or answered.object_id != line.object or answered.depth >= DEEPEST:
                raise refuse_dangling("comments.jsonl", number, "the comment", line.replies_to)
            depth = answered.depth + 1
        author_key = to.bearers.of(line.author_key, line.author)
        dates = (line.created, line.modified, line.revision)
        above[line.id] = Comment(
            line.id, line.object, line.replies_to, depth, line.author, author_key, *dates, line.text
        )
        new.append(above[line.id])
    with about("comments.jsonl", before + 1, before + len(some)):
        comments.put_back(cx, to.repository.id, new)


def saved_searches_of(cx: Connection, to: Destination, some: Sequence[ExportLine], before: int, now: Instant) -> None:
    search_lines = [line for line in some if isinstance(line, SavedSearchLine)]
    to.bearers.look_up(cx, [meant(line.owner_key, line.owner) for line in search_lines], now)
    new = [
        (
            line.kind,
            SavedSearch(
                line.id,
                line.name,
                line.description,
                line.owner,
                to.bearers.of(line.owner_key, line.owner),
                line.public,
                line.created,
                line.modified,
                line.revision,
                SavedDocument(line.spelling, line.names, line.document, line.format, line.question),
            ),
        )
        for line in search_lines
    ]
    with about("saved-searches.jsonl", before + 1, before + len(some)):
        saved_searches.put_back(cx, to.repository.id, new)
