"""The objects: kept, read, changed and deleted, each with the note of the change in the same transaction.

What the caller may not browse answers exactly like what is not there. Source: docs/interface.md, ours 2.
"""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from muniment.clock import Instant
from muniment.db import BigId, repository_tables
from muniment.repository.change_log import changes
from muniment.repository.change_log.changes import Kind, Position
from muniment.repository.content.contract import ContentStore, StoredContent
from muniment.repository.cursors import Stretch
from muniment.repository.extraction import queue
from muniment.repository.objects import object_ids, properties, usage, writable
from muniment.repository.objects.object_types import Catalogue
from muniment.repository.objects.properties import Given, Value
from muniment.repository.objects.usage import Amount, StorageQuota
from muniment.repository.permissions import acl_entries, acls
from muniment.repository.permissions.principals import Permission, Principals
from muniment.repository.refusals import InUse, NotPermitted, UnknownObject, VersionConflict, WrongValue
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
    sa.Column("revision", sa.Integer, nullable=False),
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

# What the caller may not browse is left out by the database: it takes the statement and the rows of what is not there.
_HIGHEST = acl_entries.highest(objects.c.acl_id, objects.c.owner_key)
_BROWSED = sa.or_(objects.c.owner_key == sa.bindparam("caller_key"), int(Permission.BROWSE) <= _HIGHEST)
_BY_ID = sa.and_(objects.c.id == sa.bindparam("id"), objects.c.repository_id == sa.bindparam("repository"))
_HIDING = sa.select(objects, _HIGHEST).where(_BY_ID, _BROWSED)
_SHOWING = sa.select(objects, sa.literal_column(str(int(Permission.DELETE)))).where(_BY_ID)
_LOOK_UPS = [(one, one.with_for_update()) for one in (_HIDING, _SHOWING)]

_NEXT_SEQS = sa.text("SELECT nextval(pg_get_serial_sequence('objects', 'seq')) FROM generate_series(1, :count)")


class StoredObject(msgspec.Struct, frozen=True):
    """One object as it is stored, in our neutral names.

    ``owner`` is how the owner is shown, ``owner_key`` what their objects are stored under. ``properties`` holds the
    title, subject, keywords, authors and the custom ones, dates as Instants. The file name of the content is the
    object's name. ``position`` is that of the change when this is what a write returned.
    """

    seq: int
    id: str
    repository_id: int
    type: str
    name: str
    owner: str
    owner_key: str
    acl_id: int
    folder_id: str | None
    created: Instant
    creator: str
    modified: Instant
    modifier: str
    revision: int
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
    found: Sequence[queue.ExtractedText | None],
    now: Instant,
    quota: StorageQuota | None = None,
) -> list[StoredObject]:
    """Keep new objects, each under the next counter, the id that stands for it, and with the note of its change.

    ``drafts`` are without ``seq`` and ``id``; ``found`` is what the content of each says, None where that is to be
    read; ``quota`` is what an owner may have of them, None where that does not count. Raises VersionConflict when what
    an object refers to is gone, QuotaExceeded.
    """
    seqs = _next_seqs(cx, len(drafts))
    made = [
        msgspec.structs.replace(draft, seq=seq, id=object_ids.make(cx, catalogue, draft.type, seq))
        for draft, seq in zip(drafts, seqs, strict=True)
    ]
    with _references():
        cx.execute(objects.insert(), [_columns(each) for each in made])
    files = [
        _file(each, each.content, said) for each, said in zip(made, found, strict=True) if each.content is not None
    ]
    queue.enqueue_new(cx, repository.id, files, now)
    usage.count(cx, amounts(made), quota)
    positions = changes.note_all(cx, repository.id, [each.id for each in made], "created", now)
    return [msgspec.structs.replace(each, position=at) for each, at in zip(made, positions, strict=True)]


def read(
    cx: Connection,
    repository: Repository,
    object_id: str,
    principals: Principals,
    kind: str = "object",
    *,
    lock: bool = False,
) -> tuple[StoredObject, Permission]:
    """Read an object of this kind, and how much the caller may do with it: one statement. Raises UnknownObject."""
    sought = object_id.lower()
    if object_ids.may_be_of(sought, kind):
        about = {"id": sought, "repository": repository.id, **acl_entries.caller_parameters(principals)}
        row = cx.execute(_LOOK_UPS[principals.administrator][lock], about).first()
        if row is not None:
            return _stored(row[:-1]), acl_entries.level(row[-1], owns=principals.is_(row.owner_key))
    raise UnknownObject(f"There is no {kind} {object_id[:40]!r}.")


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
    """Change the properties that are given; the others stay. ``expected`` is the revision the caller has seen.

    An object's ACL is its owner's to assign, its owner an administrator's. Raises UnknownObject, NotPermitted,
    VersionConflict, UnknownProperty, UnknownAcl, WrongValue, NotWritable.
    """
    stored, permission = _locked(cx, repository, object_id, principals, kind, expected)
    current = values(stored, catalogue, acls.shown_name(cx, stored.acl_id, principals))
    current["r_index_status"] = [queue.status(cx, stored.id).state]
    owns = principals.is_(stored.owner_key)
    wanted = writable.read(catalogue, stored.type, given, current, principals, owns=owns)
    if not wanted or wanted.keys() - {"acl_name", "owner_name"}:
        require(permission, Permission.WRITE, "change this object")
    kinds: list[Kind] = [] if wanted.keys() == {"acl_name"} else ["properties"]
    columns: dict[str, object] = {}
    if "object_name" in wanted:
        columns["name"] = writable.object_name(wanted)
    if "owner_name" in wanted:
        owner = writable.text_of(wanted, "owner_name")
        columns |= {"owner": owner, "owner_key": principals.key_for(cx, owner, now)}
        kinds.append("owner")
    if "acl_name" in wanted:
        columns["acl_id"] = acls.find_assignable(cx, repository.id, writable.text_of(wanted, "acl_name"), principals)
        kinds.append("acl")
    if "a_content_type" in wanted:
        columns["media_type"] = writable.text_of(wanted, "a_content_type")
    columns["properties"] = writable.encode({**stored.properties, **wanted})
    changed = _written(cx, stored, principals, kinds, now, **columns)
    if changed.owner_key != stored.owner_key:
        queue.change_owner(cx, [stored.id], changed.owner_key)
        (owned,) = amounts([changed]).values()
        usage.count(cx, {stored.owner_key: -owned, changed.owner_key: owned}, None)
    if changed.content is not None and changed.media_type != stored.media_type:
        queue.enqueue(cx, repository.id, _file(changed, changed.content), now)
    return changed


def assign_acl(
    cx: Connection, repository: Repository, principals: Principals, object_id: str, acl_name: str, now: Instant
) -> StoredObject:
    """Put an ACL on an object; the very next request obeys it. Raises UnknownObject, NotPermitted, UnknownAcl."""
    stored, _ = _locked(cx, repository, object_id, principals, "object", None)
    if not principals.administrator and not principals.is_(stored.owner_key):
        raise NotPermitted("Only its owner or an administrator may assign an object's ACL.")
    acl_id = stored.acl_id
    if acl_name != acls.shown_name(cx, acl_id, principals):
        acl_id = acls.find_assignable(cx, repository.id, acl_name, principals)
    return _written(cx, stored, principals, ["acl"], now, acl_id=acl_id)


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
    found: queue.ExtractedText | None = None,
    quota: StorageQuota = StorageQuota(),  # noqa: B008 - it does not change
) -> tuple[StoredObject, StoredContent | None]:
    """Give the object other content; also returns the former one, to be removed once this is committed.

    ``found`` is what the content says, None where that is to be read; ``quota`` what its owner may have, unless an
    administrator asks. Raises UnknownObject, NotPermitted, VersionConflict, WrongValue (for folders), QuotaExceeded.
    """
    stored, permission = _locked(cx, repository, object_id, principals, "object", expected)
    require(permission, Permission.WRITE, "change this object")
    check_may_hold_content(stored.id)
    columns = {**_content_columns(content), "media_type": media_type}
    changed = _written(cx, stored, principals, ["content"], now, **columns)
    queue.enqueue(cx, repository.id, _file(changed, content, found), now)
    grown = Amount(0, content.size - (stored.content.size if stored.content else 0))
    usage.count(cx, {stored.owner_key: grown}, None if principals.administrator else quota)
    return changed, stored.content


def check_may_hold_content(object_id: str) -> None:
    """Raise WrongValue for a folder or cabinet."""
    if object_ids.holds_objects(object_id):
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
    queue.drop(cx, stored.id)
    try:
        cx.execute(objects.delete().where(objects.c.seq == stored.seq))
    except IntegrityError as error:
        raise InUse("The folder is not empty.") from error
    usage.release(cx, amounts([stored]))
    return _noted(cx, stored, ["deleted"], now)


def children(
    cx: Connection,
    repository: Repository,
    catalogue: Catalogue,
    principals: Principals,
    folder_id: str | None,
    type_name: str,
    wanted: Stretch,
) -> list[StoredObject]:
    """List by name what the caller may browse in a folder (unfiled when None) of this type and its sub-types."""
    every = _children(repository, catalogue, principals, folder_id, type_name)
    ordered = every.order_by(objects.c.name, objects.c.seq).limit(wanted.limit)
    if wanted.after is None:
        return [_stored(row) for row in cx.execute(ordered.offset(wanted.offset))]
    name, seq = wanted.after
    # Two statements: a comparison of pairs would look up the name alone, and pass over all children that bear it.
    found = cx.execute(ordered.where(objects.c.name == name, objects.c.seq > seq)).all()
    found = [*found, *cx.execute(ordered.where(objects.c.name > name).limit(wanted.limit - len(found)))]
    return [_stored(row) for row in found]


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
    return int(cx.execute(sa.select(sa.func.count()).select_from(listed)).scalar_one())


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


def carrying(cx: Connection, acl_id: int, limit: int) -> tuple[int, list[StoredObject]]:
    """Count the objects that carry an ACL, and read the first of them, whoever asks."""
    count = cx.execute(sa.select(sa.func.count()).where(objects.c.acl_id == acl_id)).scalar_one()
    first = sa.select(objects).where(objects.c.acl_id == acl_id).order_by(objects.c.seq).limit(limit)
    return count, [_stored(row) for row in cx.execute(first)]


def give(
    cx: Connection, repository_id: int, ids: Collection[str], owner: str, owner_key: str, by: Principals, now: Instant
) -> int:
    """Make these objects another owner's, each with the note of its change; says how many were not theirs already."""
    cx.execute(sa.select(objects.c.seq).where(objects.c.id.in_(ids)).order_by(objects.c.seq).with_for_update())
    some = [one for one in rows(cx, repository_id, ids).values() if one.owner_key != owner_key]
    some.sort(key=lambda one: one.seq)
    columns = {"owner": owner, "owner_key": owner_key, "modified": now, "modifier": by.id}
    moved = [one.id for one in some]
    cx.execute(objects.update().where(objects.c.id.in_(moved)).values(revision=objects.c.revision + 1, **columns))
    for former, amount in sorted(amounts(some).items()):
        usage.count(cx, {former: -amount, owner_key: amount}, None)
    queue.change_owner(cx, moved, owner_key)
    changes.note_all(cx, repository_id, moved, "owner", now)
    return len(moved)


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


def amounts_by_owner(cx: Connection) -> dict[str, Amount]:
    """Count what each owner keeps, object by object: what ``usage`` must say."""
    wanted = sa.select(objects.c.owner_key, sa.func.count(), sa.func.sum(objects.c.content_size))
    rows = cx.execute(wanted.group_by(objects.c.owner_key).order_by(objects.c.owner_key))
    return {owner_key: Amount(count, int(size)) for owner_key, count, size in rows}


def contents(cx: Connection) -> Amount:
    """Count the objects that have content, in all repositories, and its bytes: one statement, one row."""
    wanted = sa.select(sa.func.count(objects.c.content_key), sa.func.sum(objects.c.content_size))
    count, size = cx.execute(wanted).one()
    return Amount(count, int(size or 0))


def sweep(cx: Connection, store: ContentStore, before: Instant) -> int:
    """Remove content written before the instant that no object names, as a crash leaves it; say how many were."""
    removed, old = 0, store.older_than(before)
    while keys := list(itertools.islice(old, 500)):
        named = set(cx.execute(sa.select(objects.c.content_key).where(objects.c.content_key.in_(keys))).scalars())
        removed += sum(store.remove(key) for key in set(keys) - named)
    return removed


def _locked(
    cx: Connection, repository: Repository, object_id: str, principals: Principals, kind: str, expected: int | None
) -> tuple[StoredObject, Permission]:
    stored, permission = read(cx, repository, object_id, principals, kind, lock=True)
    if expected is not None and stored.revision != expected:
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


def amounts(some: Sequence[StoredObject]) -> dict[str, Amount]:
    """Count what each owner keeps of these objects."""
    counted: dict[str, Amount] = {}
    for one in some:
        before = counted.get(one.owner_key, usage.NOTHING)
        counted[one.owner_key] = before.with_one(one.content.size if one.content else 0)
    return counted


def _file(stored: StoredObject, content: StoredContent, found: queue.ExtractedText | None = None) -> queue.File:
    return queue.File(stored.id, stored.seq, stored.owner_key, content.key, stored.media_type, stored.name, found)


def _written(
    cx: Connection, stored: StoredObject, principals: Principals, kinds: Sequence[Kind], now: Instant, **columns: object
) -> StoredObject:
    with _references():
        cx.execute(
            objects.update()
            .where(objects.c.seq == stored.seq)
            .values(modified=now, modifier=principals.id, revision=stored.revision + 1, **columns)
        )
    return _noted(cx, _stored(cx.execute(sa.select(objects).where(objects.c.id == stored.id)).one()), kinds, now)


def _noted(cx: Connection, stored: StoredObject, kinds: Sequence[Kind], now: Instant) -> StoredObject:
    positions = [changes.note(cx, stored.repository_id, stored.id, kind, now) for kind in kinds]
    return msgspec.structs.replace(stored, position=positions[-1])


def _stored(row: Sequence[Any]) -> StoredObject:
    """Read a row of all columns by their places, which for a page of hits takes half the time of their names."""
    *same, encoded, media_type, key, size, digest = row
    content = None if key is None else StoredContent(key, size, bytes(digest))
    return StoredObject(*[*same, writable.decode(encoded), media_type, content])


def _columns(stored: StoredObject) -> dict[str, object]:
    columns = {name: getattr(stored, name) for name in _SAME}
    return columns | {"properties": writable.encode(stored.properties)} | _content_columns(stored.content)


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
    return wanted.where(sa.or_(objects.c.owner_key == principals.key, objects.c.acl_id.in_(granted)))


@contextmanager
def _references() -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        raise VersionConflict("What the object refers to was deleted meanwhile: try again.") from error
