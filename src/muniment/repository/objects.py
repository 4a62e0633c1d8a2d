"""The objects: kept, read, changed and deleted, each with the note of the change in the same transaction.

What the caller may not browse answers exactly like what is not there. Sources: repository.md 8.1 for the ids, 8.2 and
8.3 for what a caller may send.
"""

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from muniment.db import BigId, Instant, repository_tables
from muniment.repository import acls, changes, metadata, properties, text
from muniment.repository.acls import Permission, Principals, accessor_key
from muniment.repository.changes import Kind, Position
from muniment.repository.content import ContentStore, StoredContent
from muniment.repository.object_types import Catalogue
from muniment.repository.properties import Given, Value
from muniment.repository.refusals import (
    InUse,
    NotPermitted,
    UnknownObject,
    VersionConflict,
    WrongValue,
)
from muniment.repository.repositories import Repository

objects = sa.Table(
    "objects",
    repository_tables,
    sa.Column("seq", BigId, primary_key=True),
    sa.Column("id", sa.String(16), nullable=False, unique=True),
    sa.Column("repository_id", sa.ForeignKey("repositories.id"), nullable=False),
    sa.Column("type", sa.String(64), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("owner", sa.String(400), nullable=False),
    sa.Column("owner_key", sa.String(400), nullable=False),
    sa.Column("acl_id", sa.ForeignKey("acls.id"), nullable=False, index=True),
    sa.Column("folder_id", sa.ForeignKey("objects.id"), nullable=True),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("creator", sa.String(400), nullable=False),
    sa.Column("modified", sa.BigInteger, nullable=False),
    sa.Column("modifier", sa.String(400), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("properties", sa.Text, nullable=False),
    sa.Column("media_type", sa.Text, nullable=False),
    sa.Column("content_key", sa.String(32), nullable=True, unique=True),
    sa.Column("content_size", sa.BigInteger, nullable=False),
    sa.Column("content_sha256", sa.LargeBinary, nullable=True),
    sa.Index("ix_objects_repository", "repository_id", "seq"),
    sa.Index("ix_objects_folder", "folder_id", "name", "seq"),
    sqlite_autoincrement=True,
)

# The repository is told apart afterwards: asked for it, SQLite reads all of its objects instead of looking these up.
_BY_IDS = sa.select(objects).where(objects.c.id.in_(sa.bindparam("ids", expanding=True)))

_ID = re.compile(r"[0-9a-f]{16}")
_NEXT_SEQS = sa.text("SELECT nextval(pg_get_serial_sequence('objects', 'seq')) FROM generate_series(1, :count)")
_KINDS = {"document": ("09",), "folder": ("0b", "0c"), "cabinet": ("0c",), "object": ("08", "09", "0b", "0c")}


class StoredObject(msgspec.Struct, frozen=True):
    """One object as it is stored, in our neutral names.

    ``properties`` holds the title, subject, keywords, authors and the custom ones, dates as Instants. The file name of
    the content is the object's name. ``position`` is that of the change when this is what a write returned.
    """

    seq: int
    id: str
    repository_id: int
    type: str
    name: str
    owner: str
    acl_id: int
    folder_id: str | None
    created: Instant
    creator: str
    modified: Instant
    modifier: str
    version: int
    properties: dict[str, list[Value]]
    media_type: str
    content: StoredContent | None
    position: Position | None = None


_SAME = [column.name for column in objects.columns if column.name in StoredObject.__struct_fields__]


def keep_new(
    cx: Connection,
    repository: Repository,
    catalogue: Catalogue,
    drafts: Sequence[StoredObject],
    found: Sequence[text.Found | None],
    now: Instant,
) -> list[StoredObject]:
    """Keep new objects, each under the next identifier and with the note of its change.

    ``drafts`` are without ``seq`` and ``id``; ``found`` is what the content of each says, None where that is to be
    read. Raises VersionConflict when what an object refers to is gone.
    """
    seqs = _next_seqs(cx, len(drafts))
    ids = [
        f"{_kind(catalogue, draft.type)}{repository.id:06x}{seq:08x}" for draft, seq in zip(drafts, seqs, strict=True)
    ]
    made = [
        msgspec.structs.replace(draft, seq=seq, id=object_id)
        for draft, seq, object_id in zip(drafts, seqs, ids, strict=True)
    ]
    with _references():
        cx.execute(objects.insert(), [_columns(each) for each in made])
    files = [
        text.File(each.id, each.content.key, each.media_type, each.name, said)
        for each, said in zip(made, found, strict=True)
        if each.content is not None
    ]
    text.enqueue_new(cx, repository.id, files, now)
    positions = changes.note_all(cx, repository.id, [each.id for each in made], "created", now)
    return [msgspec.structs.replace(each, position=at) for each, at in zip(made, positions, strict=True)]


def read(
    cx: Connection, repository: Repository, object_id: str, principals: Principals, kind: str = "object"
) -> tuple[StoredObject, Permission]:
    """Read an object of this kind, and how much the caller may do with it. Raises UnknownObject."""
    return _found(cx, _where(repository.id, object_id), object_id, principals, kind)


def readable(cx: Connection, repository: Repository, object_id: str, principals: Principals) -> StoredObject:
    """Read an object whose content the caller may read. Raises UnknownObject, NotPermitted."""
    stored, permission = read(cx, repository, object_id, principals)
    require(permission, Permission.READ, "read this object's content")
    return stored


def change(
    cx: Connection,
    repository: Repository,
    catalogue: Catalogue,
    principals: Principals,
    object_id: str,
    given: Mapping[str, Given],
    now: Instant,
    *,
    expected: int | None = None,
    kind: str = "object",
) -> StoredObject:
    """Change the properties that are given; the others stay. ``expected`` is the version the caller has seen.

    An object's ACL is its owner's to assign, its owner an administrator's. Raises UnknownObject, NotPermitted,
    VersionConflict, UnknownProperty, UnknownAcl, WrongValue, NotWritable.
    """
    stored, permission = _locked(cx, repository, object_id, principals, kind, expected)
    current = values(stored, catalogue, acls.names(cx, [stored.acl_id])[stored.acl_id])
    current["r_index_status"] = [text.status(cx, stored.id).state]
    owns = principals.is_(stored.owner)
    wanted = metadata.read(catalogue, stored.type, given, current, principals, owns=owns)
    if not wanted or wanted.keys() - {"acl_name", "owner_name"}:
        require(permission, Permission.WRITE, "change this object")
    kinds: list[Kind] = [] if wanted.keys() == {"acl_name"} else ["properties"]
    columns: dict[str, object] = {}
    if "object_name" in wanted:
        columns["name"] = metadata.object_name(wanted)
    if "owner_name" in wanted:
        owner = metadata.text_of(wanted, "owner_name")
        columns |= {"owner": owner, "owner_key": accessor_key(owner)}
        kinds.append("owner")
    if "acl_name" in wanted:
        columns["acl_id"] = acls.named(cx, repository.id, metadata.text_of(wanted, "acl_name"), principals).id
        kinds.append("acl")
    if "a_content_type" in wanted:
        columns["media_type"] = metadata.text_of(wanted, "a_content_type")
    columns["properties"] = metadata.encoded({**stored.properties, **wanted})
    changed = _written(cx, stored, principals, kinds, now, **columns)
    if changed.content is not None and changed.media_type != stored.media_type:
        text.enqueue(cx, repository.id, stored.id, changed.content.key, changed.media_type, changed.name, now)
    return changed


def assign_acl(
    cx: Connection, repository: Repository, principals: Principals, object_id: str, acl_name: str, now: Instant
) -> StoredObject:
    """Put an ACL on an object; the very next request obeys it. Raises UnknownObject, NotPermitted, UnknownAcl."""
    stored, _ = _locked(cx, repository, object_id, principals, "object", None)
    if not principals.administrator and not principals.is_(stored.owner):
        raise NotPermitted("Only its owner or an administrator may assign an object's ACL.")
    acl = acls.named(cx, repository.id, acl_name, principals)
    return _written(cx, stored, principals, ["acl"], now, acl_id=acl.id)


def replace_content(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    content: StoredContent,
    media_type: str,
    now: Instant,
    *,
    expected: int | None = None,
    found: text.Found | None = None,
) -> tuple[StoredObject, StoredContent | None]:
    """Give the object other content; also returns the former one, to be removed once this is committed.

    ``found`` is what the content says, None where that is to be read.

    Raises UnknownObject, NotPermitted, VersionConflict, WrongValue (folders have none).
    """
    stored, permission = _locked(cx, repository, object_id, principals, "object", expected)
    require(permission, Permission.WRITE, "change this object")
    check_may_hold_content(stored.id)
    columns = {**_content_columns(content), "media_type": media_type}
    changed = _written(cx, stored, principals, ["content"], now, **columns)
    text.drop(cx, stored.id)
    file = text.File(stored.id, content.key, media_type, stored.name, found)
    text.enqueue_new(cx, repository.id, [file], now)
    return changed, stored.content


def check_may_hold_content(object_id: str) -> None:
    """Raise WrongValue for a folder or cabinet."""
    if object_id[:2] in _KINDS["folder"]:
        raise WrongValue("A folder holds objects, not content.")


def delete(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    now: Instant,
    *,
    expected: int | None = None,
    kind: str = "object",
) -> StoredObject:
    """Delete an object, a folder only when it is empty; its content is to be removed once this is committed.

    Raises UnknownObject, NotPermitted, VersionConflict, InUse.
    """
    stored, permission = _locked(cx, repository, object_id, principals, kind, expected)
    require(permission, Permission.DELETE, "delete this object")
    if cx.execute(sa.select(objects.c.seq).where(objects.c.folder_id == stored.id).limit(1)).first():
        raise InUse("The folder is not empty.")
    text.drop(cx, stored.id)
    try:
        cx.execute(objects.delete().where(objects.c.seq == stored.seq))
    except IntegrityError as error:
        raise InUse("The folder is not empty.") from error
    return _noted(cx, stored, ["deleted"], now)


def children(
    cx: Connection,
    repository: Repository,
    catalogue: Catalogue,
    principals: Principals,
    folder_id: str | None,
    type_name: str,
    offset: int,
    limit: int,
) -> list[StoredObject]:
    """List by name what the caller may browse in a folder (unfiled when None) of this type and its sub-types."""
    wanted = _children(repository, catalogue, principals, folder_id, type_name)
    ordered = wanted.order_by(objects.c.name, objects.c.seq).offset(offset).limit(limit)
    return [_stored(row) for row in cx.execute(ordered)]


def count_children(
    cx: Connection,
    repository: Repository,
    catalogue: Catalogue,
    principals: Principals,
    folder_id: str | None,
    type_name: str,
) -> int:
    """Count what ``children`` lists in all."""
    listed = _children(repository, catalogue, principals, folder_id, type_name).subquery()
    counted: int = cx.execute(sa.select(sa.func.count()).select_from(listed)).scalar_one()
    return counted


def rows(cx: Connection, repository_id: int, ids: Collection[str]) -> dict[str, StoredObject]:
    """Read these objects, whoever asks; those that are gone are left out."""
    found: dict[str, StoredObject] = {}
    wanted = sorted(set(ids))
    for begin in range(0, len(wanted), 500):
        some = cx.execute(_BY_IDS, {"ids": wanted[begin : begin + 500]}).all()
        found.update((one.id, one) for one in map(_stored, some) if one.repository_id == repository_id)
    return found


def every(cx: Connection, repository_id: int, after_seq: int, limit: int) -> list[StoredObject]:
    """Read the next objects in the order of ``seq``, whoever asks."""
    wanted = sa.select(objects).where(objects.c.repository_id == repository_id, objects.c.seq > after_seq)
    return [_stored(row) for row in cx.execute(wanted.order_by(objects.c.seq).limit(limit))]


def values(stored: StoredObject, catalogue: Catalogue, acl_name: str) -> dict[str, list[Value]]:
    """Spell out every property that can be searched and has a value, in neutral names, dates to the millisecond."""
    known: dict[str, list[Value]] = {
        **stored.properties,
        "object_name": [stored.name],
        "owner_name": [stored.owner],
        "acl_name": [acl_name],
        "r_object_id": [stored.id],
        "r_object_type": [stored.type],
        "r_creation_date": [properties.milliseconds(stored.created)],
        "r_creator_name": [stored.creator],
        "r_modify_date": [properties.milliseconds(stored.modified)],
        "r_modifier": [stored.modifier],
        "r_full_content_size": [stored.content.size if stored.content else 0],
        "a_content_type": [stored.media_type] if stored.media_type else [],
        "i_folder_id": [stored.folder_id] if stored.folder_id else [],
    }
    return {name: known[name] for name in catalogue.properties_of(stored.type) if known.get(name)}


def sweep(cx: Connection, store: ContentStore, before: Instant) -> int:
    """Remove content written before the instant that no object names, as a crash leaves it; say how many were."""
    removed, old = 0, store.older_than(before)
    while keys := list(itertools.islice(old, 500)):
        named = set(cx.execute(sa.select(objects.c.content_key).where(objects.c.content_key.in_(keys))).scalars())
        for key in set(keys) - named:
            store.remove(key)
            removed += 1
    return removed


def _where(repository_id: int, object_id: str) -> sa.Select[tuple[object, ...]]:
    return sa.select(objects).where(objects.c.repository_id == repository_id, objects.c.id == object_id.lower())


def _found(
    cx: Connection, wanted: sa.Select[tuple[object, ...]], object_id: str, principals: Principals, kind: str
) -> tuple[StoredObject, Permission]:
    shown = object_id.lower() if _ID.fullmatch(object_id.lower()) else ""
    row = cx.execute(wanted).first() if shown.startswith(_KINDS[kind]) else None
    if row is not None:
        stored = _stored(row)
        permission = acls.permission(cx, stored.acl_id, stored.owner, principals)
        if permission >= Permission.BROWSE:
            return stored, permission
    raise UnknownObject(f"There is no {kind} {object_id[:40]!r}.")


def _locked(
    cx: Connection, repository: Repository, object_id: str, principals: Principals, kind: str, expected: int | None
) -> tuple[StoredObject, Permission]:
    wanted = _where(repository.id, object_id).with_for_update()
    stored, permission = _found(cx, wanted, object_id, principals, kind)
    if expected is not None and stored.version != expected:
        raise VersionConflict("The object has changed since the version you named: read it again.")
    return stored, permission


def require(permission: Permission, needed: Permission, what: str) -> None:
    """Raise NotPermitted, in a sentence that says what takes which permission."""
    if permission < needed:
        raise NotPermitted(f"You may not {what}: it takes the permission {needed.name.capitalize()}.")


def _next_seqs(cx: Connection, count: int) -> Sequence[int]:
    if cx.dialect.name == "postgresql":
        return cx.scalars(_NEXT_SEQS, {"count": count}).all()
    # One writer at a time, and what is inserted moves the sequence on.
    last = cx.execute(sa.text("SELECT seq FROM sqlite_sequence WHERE name = 'objects'")).scalar() or 0
    return range(last + 1, last + 1 + count)


def _content_columns(content: StoredContent | None) -> dict[str, object]:
    if content is None:
        return {"content_key": None, "content_size": 0, "content_sha256": None}
    return {"content_key": content.key, "content_size": content.size, "content_sha256": content.sha256}


def _kind(catalogue: Catalogue, type_name: str) -> str:
    for ancestor in ("cabinet", "folder", "document"):
        if catalogue.is_a(type_name, ancestor):
            return _KINDS[ancestor][0]
    return "08"


def _written(
    cx: Connection, stored: StoredObject, principals: Principals, kinds: Sequence[Kind], now: Instant, **columns: object
) -> StoredObject:
    with _references():
        cx.execute(
            objects.update()
            .where(objects.c.seq == stored.seq)
            .values(modified=now, modifier=principals.id, version=stored.version + 1, **columns)
        )
    return _noted(cx, _row(cx, stored.id), kinds, now)


def _noted(cx: Connection, stored: StoredObject, kinds: Sequence[Kind], now: Instant) -> StoredObject:
    positions = [changes.note(cx, stored.repository_id, stored.id, kind, now) for kind in kinds]
    return msgspec.structs.replace(stored, position=positions[-1])


def _row(cx: Connection, object_id: str) -> StoredObject:
    return _stored(cx.execute(sa.select(objects).where(objects.c.id == object_id)).one())


def _stored(row: Sequence[Any]) -> StoredObject:
    """Read a row of all columns by their places, which for a page of hits takes half the time of their names."""
    seq, object_id, repository_id, kind, name, owner, _, acl_id, folder_id, *rest = row
    created, creator, modified, modifier, version, said, media_type, key, size, digest = rest
    return StoredObject(
        seq,
        object_id,
        repository_id,
        kind,
        name,
        owner,
        acl_id,
        folder_id,
        created,
        creator,
        modified,
        modifier,
        version,
        metadata.decoded(said),
        media_type,
        None if key is None else StoredContent(key, size, bytes(digest)),
    )


def _columns(stored: StoredObject) -> dict[str, object]:
    columns = {name: getattr(stored, name) for name in _SAME}
    said = {"owner_key": accessor_key(stored.owner), "properties": metadata.encoded(stored.properties)}
    return columns | said | _content_columns(stored.content)


def _children(
    repository: Repository, catalogue: Catalogue, principals: Principals, folder_id: str | None, type_name: str
) -> sa.Select[tuple[object, ...]]:
    wanted = sa.select(objects).where(
        objects.c.repository_id == repository.id,
        objects.c.folder_id == folder_id if folder_id else objects.c.folder_id.is_(None),
        objects.c.type.in_(sorted(catalogue.with_subtypes([type_name]))),
    )
    if principals.administrator:
        return wanted
    granted = acls.acls_with(repository.id, principals, Permission.BROWSE)
    return wanted.where(sa.or_(objects.c.owner_key == accessor_key(principals.id), objects.c.acl_id.in_(granted)))


@contextmanager
def _references() -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        raise VersionConflict("What the object refers to was deleted meanwhile: try again.") from error
