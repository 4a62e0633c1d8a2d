"""The objects of a repository: keep, read, change and delete them. Each change is noted in the same transaction.

An object that the caller may not browse is answered exactly like an object that does not exist. Source:
docs/interface.md, ours 2.
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
from muniment.db import PreparedStatement
from muniment.repository.change_log import changes
from muniment.repository.change_log.changes import Kind
from muniment.repository.content.contract import ContentStore, StoredContent
from muniment.repository.extraction import queue
from muniment.repository.objects import object_ids, object_types, properties, usage, writable
from muniment.repository.objects.object_types import Catalogue
from muniment.repository.objects.properties import Given, Value
from muniment.repository.objects.table import (
    ObjectSummary,
    StoredObject,
    content_columns,
    fold_texts,
    objects,
    read_row,
    row_of,
)
from muniment.repository.objects.usage import Amount, StorageQuota
from muniment.repository.objects.view import RepositoryView
from muniment.repository.permissions import acl_entries, acls
from muniment.repository.permissions.principals import Permission, Principals
from muniment.repository.refusals import InUse, NotPermitted, UnknownObject, VersionConflict, WrongValue
from muniment.repository.repositories import Repository

# The repository is compared afterwards. If the query named it, SQLite would read all objects of the repository.
_IDS = objects.c.id.in_(sa.bindparam("ids", expanding=True))
_BY_IDS = PreparedStatement(sa.select(objects).where(_IDS))
_SUMMARY = sa.select(objects.c.repository_id, *(objects.c[name] for name in ObjectSummary.__struct_fields__))
_SUMMARIES = PreparedStatement(_SUMMARY.where(_IDS))
_SUMMARIES_BY_COUNTER = PreparedStatement(_SUMMARY.where(objects.c.seq.in_(sa.bindparam("counters", expanding=True))))

# The database leaves out what the caller may not browse. So a hidden object costs as much as no object.
_HIGHEST = acl_entries.highest(objects.c.acl_id, objects.c.owner_key)
_MAY_BROWSE = sa.or_(objects.c.owner_key == sa.bindparam("caller_key"), int(Permission.BROWSE) <= _HIGHEST)
_BY_ID = sa.and_(objects.c.id == sa.bindparam("id"), objects.c.repository_id == sa.bindparam("repository"))
_FOR_CALLER = sa.select(objects, _HIGHEST).where(_BY_ID, _MAY_BROWSE)
_FOR_ADMINISTRATOR = sa.select(objects, sa.literal_column(str(int(Permission.DELETE)))).where(_BY_ID)
_LOOK_UPS = [(query, query.with_for_update()) for query in (_FOR_CALLER, _FOR_ADMINISTRATOR)]
"""The queries for an object by its id. A key says whether an administrator asks, and whether the row is locked."""

_AT_A_TIME = 500

NOT_EMPTY = "The folder is not empty."
"""Why a folder is not deleted. The sentence says nothing about objects that the caller may not see."""

_INSERT = PreparedStatement(objects.insert())
_NEXT_SEQS = sa.text("SELECT nextval(pg_get_serial_sequence('objects', 'seq')) FROM generate_series(1, :count)")


def keep_new(
    cx: Connection,
    view: RepositoryView,
    drafts: Sequence[StoredObject],
    texts: Sequence[queue.ExtractedText | None],
    now: Instant,
    quota: StorageQuota | None = None,
) -> list[StoredObject]:
    """Keep new objects. Each gets the next counter and the id that stands for it, and its creation is noted.

    ``drafts`` have no ``seq`` and ``id`` yet. ``texts`` holds the text of each draft's content, or None if the content
    must still be read. ``quota`` limits what each owner may have; None means no limit. Raises VersionConflict when a
    draft refers to something that is gone, QuotaExceeded.
    """
    object_types.hold(cx, view.repository.id, view.catalogue, [draft.type for draft in drafts])
    seqs = _next_seqs(cx, len(drafts))
    new_objects = [
        msgspec.structs.replace(draft, seq=seq, id=object_ids.make(cx, view.catalogue, draft.type, seq))
        for draft, seq in zip(drafts, seqs, strict=True)
    ]
    with _broken_references_refused():
        _INSERT.run_for_each(cx, [row_of(stored) for stored in new_objects])
    files = [
        _file(stored, stored.content, text)
        for stored, text in zip(new_objects, texts, strict=True)
        if stored.content is not None
    ]
    queue.enqueue_new(cx, view.repository.id, files, now)
    usage.count(cx, amounts(new_objects), quota)
    positions = changes.note_all(cx, view.repository.id, [stored.id for stored in new_objects], "created", now)
    return [
        msgspec.structs.replace(stored, position=position)
        for stored, position in zip(new_objects, positions, strict=True)
    ]


def read(
    cx: Connection,
    repository: Repository,
    object_id: str,
    principals: Principals,
    kind: str = "object",
    *,
    lock: bool = False,
) -> tuple[StoredObject, Permission]:
    """Return an object of this kind and the caller's permission on it, by one statement. Raises UnknownObject.

    ``lock`` keeps other transactions from changing the object until the end of this one.
    """
    folded_id = object_id.lower()
    if object_ids.may_be_of(folded_id, kind):
        parameters = {"id": folded_id, "repository": repository.id, **acl_entries.caller_parameters(principals)}
        row = cx.execute(_LOOK_UPS[principals.administrator][lock], parameters).first()
        if row is not None:
            return read_row(row[:-1]), acl_entries.level(row[-1], owns=principals.is_(row.owner_key))
    raise UnknownObject(f"There is no {kind} {object_id[:40]!r}.")


def readable(cx: Connection, repository: Repository, object_id: str, principals: Principals) -> StoredObject:
    """Return an object whose content the caller may read. Raises UnknownObject, NotPermitted."""
    stored, permission = read(cx, repository, object_id, principals)
    require(permission, Permission.READ, "read this object's content")
    return stored


def change(
    cx: Connection,
    view: RepositoryView,
    object_id: str,
    properties: Mapping[str, Given],
    now: Instant,
    *,
    expected: int | None = None,
    kind: str = "object",
) -> StoredObject:
    """Change these properties of an object; the others stay. ``expected`` is the revision that the caller has seen.

    Only the owner or an administrator may assign the ACL, only an administrator the owner. Raises UnknownObject,
    NotPermitted, VersionConflict, UnknownProperty, UnknownAcl, WrongValue, NotWritable.
    """
    repository, principals = view.repository, view.principals
    stored, permission = _lock(cx, repository, object_id, principals, kind, expected)
    object_types.hold(cx, repository.id, view.catalogue, [stored.type])
    current = values(stored, view.catalogue, acls.shown_name(cx, stored.acl_id, principals))
    current["r_index_status"] = [queue.status(cx, stored.id).state]
    owns = principals.is_(stored.owner_key)
    new = writable.read(view.catalogue, stored.type, properties, current, principals, owns=owns)
    if not new or new.keys() - {"acl_name", "owner_name"}:
        require(permission, Permission.WRITE, "change this object")
    kinds: list[Kind] = [] if new.keys() == {"acl_name"} else ["properties"]
    columns: dict[str, object] = {}
    if "object_name" in new:
        columns["name"] = writable.object_name(new)
    if "owner_name" in new:
        owner = writable.text_of(new, "owner_name")
        columns |= {"owner": owner, "owner_key": principals.key_for(cx, owner, now)}
        kinds.append("owner")
    if "acl_name" in new:
        columns["acl_id"] = acls.find_assignable(cx, repository.id, writable.text_of(new, "acl_name"), principals)
        kinds.append("acl")
    if "a_content_type" in new:
        columns["media_type"] = writable.text_of(new, "a_content_type")
    columns["properties"] = writable.encode({**stored.properties, **new})
    new_version = _update(cx, stored, principals, kinds, now, **columns)
    if new_version.owner_key != stored.owner_key:
        queue.change_owner(cx, [stored.id], new_version.owner_key)
        (amount,) = amounts([new_version]).values()
        usage.count(cx, {stored.owner_key: -amount, new_version.owner_key: amount}, None)
    if new_version.content is not None and new_version.media_type != stored.media_type:
        queue.enqueue(cx, repository.id, _file(new_version, new_version.content), now)
    return new_version


def assign_acl(
    cx: Connection, repository: Repository, principals: Principals, object_id: str, acl_name: str, now: Instant
) -> StoredObject:
    """Put an ACL on an object; the very next request obeys it. Raises UnknownObject, NotPermitted, UnknownAcl."""
    stored, _ = _lock(cx, repository, object_id, principals, "object", None)
    if not principals.administrator and not principals.is_(stored.owner_key):
        raise NotPermitted("Only its owner or an administrator may assign an object's ACL.")
    acl_id = stored.acl_id
    if acl_name != acls.shown_name(cx, acl_id, principals):
        acl_id = acls.find_assignable(cx, repository.id, acl_name, principals)
    return _update(cx, stored, principals, ["acl"], now, acl_id=acl_id)


def lock_to_change(cx: Connection, repository: Repository, principals: Principals, object_id: str) -> StoredObject:
    """Read an object that the caller may change, and lock its row. Raises UnknownObject, NotPermitted."""
    stored, permission = _lock(cx, repository, object_id, principals, "object", None)
    require(permission, Permission.WRITE, "change this object")
    return stored


def lock_with_folders_above(cx: Connection, folder_id: str) -> set[str]:
    """Return the ids of a folder and of all folders around it, and lock their rows against moves."""
    ids: set[str] = set()
    current: str | None = folder_id
    while current is not None and current not in ids:
        ids.add(current)
        above = sa.select(objects.c.folder_id).where(objects.c.id == current).with_for_update(key_share=True)
        current = cx.execute(above).scalar_one_or_none()
    return ids


def put_into_folder(
    cx: Connection, stored: StoredObject, principals: Principals, folder_id: str | None, now: Instant
) -> StoredObject:
    """Put an object whose row is locked into another folder, or into none."""
    return _update(cx, stored, principals, ["properties"], now, folder_id=folder_id)


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
    text: queue.ExtractedText | None = None,
    quota: StorageQuota = StorageQuota(),  # noqa: B008 - it does not change
) -> tuple[StoredObject, StoredContent | None]:
    """Give the object other content. Returns the object and its former content, which the caller removes after the
    commit.

    ``text`` is the text of the new content, or None if it must still be read. ``quota`` limits what the owner may have,
    but not for an administrator. Raises UnknownObject, NotPermitted, VersionConflict, WrongValue (for folders),
    QuotaExceeded.
    """
    stored, permission = _lock(cx, repository, object_id, principals, "object", expected)
    require(permission, Permission.WRITE, "change this object")
    check_may_hold_content(stored.id)
    columns = {**content_columns(content), "media_type": media_type}
    new_version = _update(cx, stored, principals, ["content"], now, **columns)
    queue.enqueue(cx, repository.id, _file(new_version, content, text), now)
    growth = Amount(0, content.size - (stored.content.size if stored.content else 0))
    usage.count(cx, {stored.owner_key: growth}, None if principals.administrator else quota)
    return new_version, stored.content


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
    """Delete an object, and return it as it was. The caller removes its content after the commit.

    Raises UnknownObject, NotPermitted, VersionConflict, InUse (for a folder that is not empty).
    """
    stored = lock_to_delete(cx, repository, principals, object_id, kind, expected)
    if lock_children(cx, [stored.id], 1):
        raise InUse(NOT_EMPTY)
    return remove(cx, [stored], now)[0]


def lock_to_delete(
    cx: Connection, repository: Repository, principals: Principals, object_id: str, kind: str, expected: int | None
) -> StoredObject:
    """Read an object that the caller may delete, and lock its row. Raises as ``delete`` does."""
    stored, permission = _lock(cx, repository, object_id, principals, kind, expected)
    require(permission, Permission.DELETE, "delete this object")
    return stored


def lock_children(cx: Connection, folder_ids: Collection[str], limit: int) -> list[StoredObject]:
    """Return at most ``limit`` objects directly in these folders, whatever the caller's rights, and lock their rows."""
    children: list[StoredObject] = []
    ids = sorted(folder_ids)
    for begin in range(0, len(ids), _AT_A_TIME):
        query = (
            sa.select(objects).where(objects.c.folder_id.in_(ids[begin : begin + _AT_A_TIME])).order_by(objects.c.seq)
        )
        children += [read_row(row) for row in cx.execute(query.limit(limit - len(children)).with_for_update())]
    return children


def remove(cx: Connection, stored_objects: Sequence[StoredObject], now: Instant) -> list[StoredObject]:
    """Remove objects of one repository, and note the changes. Return the objects, each with its change's position.

    After the commit the caller has to remove their contents. Raises InUse for a folder in which other objects lie.
    """
    ids = [each.id for each in stored_objects]
    try:
        for begin in range(0, len(ids), _AT_A_TIME):
            portion = ids[begin : begin + _AT_A_TIME]
            queue.drop(cx, portion)
            cx.execute(objects.delete().where(objects.c.id.in_(portion)))
    except IntegrityError as error:
        raise InUse(NOT_EMPTY) from error
    usage.release(cx, amounts(stored_objects))
    positions = changes.note_all(cx, stored_objects[0].repository_id, ids, "deleted", now) if stored_objects else []
    return [msgspec.structs.replace(each, position=at) for each, at in zip(stored_objects, positions, strict=True)]


def rows(cx: Connection, repository_id: int, ids: Collection[str]) -> dict[str, StoredObject]:
    """Return these objects by id, whatever the caller's rights; objects that are gone are left out."""
    by_id: dict[str, StoredObject] = {}
    sorted_ids = sorted(set(ids))
    for begin in range(0, len(sorted_ids), _AT_A_TIME):
        portion = map(read_row, _BY_IDS.all(cx, ids=sorted_ids[begin : begin + _AT_A_TIME]))
        by_id.update((stored.id, stored) for stored in portion if stored.repository_id == repository_id)
    return by_id


def summaries(cx: Connection, repository_id: int, ids: Sequence[str]) -> dict[str, ObjectSummary]:
    """Return the summaries of at most a page of objects by id. It takes a third of the time of ``rows``."""
    portion = _SUMMARIES.all(cx, ids=ids)
    return {row[2]: ObjectSummary(*row[1:]) for row in portion if row[0] == repository_id}


def summaries_by_counter(cx: Connection, repository_id: int, counters: Sequence[int]) -> dict[int, ObjectSummary]:
    """Return the summaries of at most a page of objects by counter, as ``summaries`` does by id."""
    portion = _SUMMARIES_BY_COUNTER.all(cx, counters=counters)
    return {row[1]: ObjectSummary(*row[1:]) for row in portion if row[0] == repository_id}


def every(cx: Connection, repository_id: int, after_seq: int, limit: int) -> list[StoredObject]:
    """Return the next objects in the order of ``seq``, whatever the caller's rights."""
    query = sa.select(objects).where(objects.c.repository_id == repository_id, objects.c.seq > after_seq)
    return [read_row(row) for row in cx.execute(query.order_by(objects.c.seq).limit(limit))]


def carrying(cx: Connection, acl_id: int, limit: int) -> tuple[int, list[StoredObject]]:
    """Count the objects that carry an ACL, whatever the caller's rights. Also return the first of them."""
    count = cx.execute(sa.select(sa.func.count()).where(objects.c.acl_id == acl_id)).scalar_one()
    first = sa.select(objects).where(objects.c.acl_id == acl_id).order_by(objects.c.seq).limit(limit)
    return count, [read_row(row) for row in cx.execute(first)]


def give(
    cx: Connection, repository_id: int, ids: Collection[str], owner: str, owner_key: str, by: Principals, now: Instant
) -> int:
    """Give these objects to another owner, and note each change. Returns how many belonged to somebody else before."""
    cx.execute(sa.select(objects.c.seq).where(objects.c.id.in_(ids)).order_by(objects.c.seq).with_for_update())
    gifts = [stored for stored in rows(cx, repository_id, ids).values() if stored.owner_key != owner_key]
    gifts.sort(key=lambda stored: stored.seq)
    columns = {"owner": owner, "owner_key": owner_key, "modified": now, "modifier": by.id}
    gift_ids = [stored.id for stored in gifts]
    cx.execute(objects.update().where(objects.c.id.in_(gift_ids)).values(revision=objects.c.revision + 1, **columns))
    copies = [msgspec.structs.replace(stored, owner=owner, modifier=by.id) for stored in gifts]
    new_forms = [
        {"of": new.id, "forms": fold_texts(new)}
        for stored, new in zip(gifts, copies, strict=True)
        if fold_texts(stored) != fold_texts(new)
    ]
    if new_forms:
        cx.execute(
            objects.update().where(objects.c.id == sa.bindparam("of")).values(folded=sa.bindparam("forms")), new_forms
        )
    for former_key, amount in sorted(amounts(gifts).items()):
        usage.count(cx, {former_key: -amount, owner_key: amount}, None)
    queue.change_owner(cx, gift_ids, owner_key)
    changes.note_all(cx, repository_id, gift_ids, "owner", now)
    return len(gift_ids)


def values(stored: StoredObject, catalogue: Catalogue, acl_name: str) -> dict[str, list[Value]]:
    """Return the values of every property that can be searched, by neutral name; dates are cut to milliseconds.

    A property without a value is left out.
    """
    every_value: dict[str, list[Value]] = {
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
    return {name: every_value[name] for name in catalogue.properties_of(stored.type) if every_value.get(name)}


def amounts_by_owner(cx: Connection) -> dict[str, Amount]:
    """Count what each owner has, object by object. The counts in ``usage`` must equal these."""
    query = sa.select(objects.c.owner_key, sa.func.count(), sa.func.sum(objects.c.content_size))
    rows = cx.execute(query.group_by(objects.c.owner_key).order_by(objects.c.owner_key))
    return {owner_key: Amount(count, int(size)) for owner_key, count, size in rows}


def contents(cx: Connection) -> Amount:
    """Count the objects that have content in all repositories, and their bytes, in one statement that reads one row."""
    query = sa.select(sa.func.count(objects.c.content_key), sa.func.sum(objects.c.content_size))
    count, size = cx.execute(query).one()
    return Amount(count, int(size or 0))


def sweep(cx: Connection, store: ContentStore, before: Instant) -> int:
    """Remove content that was written before the instant and that no object names, as after a crash.

    Returns how many contents it removed.
    """
    count, old_keys = 0, store.older_than(before)
    while keys := list(itertools.islice(old_keys, _AT_A_TIME)):
        query = sa.select(objects.c.content_key).where(objects.c.content_key.in_(keys))
        count += sum(store.remove(key) for key in set(keys).difference(cx.execute(query).scalars()))
    return count


def _lock(
    cx: Connection, repository: Repository, object_id: str, principals: Principals, kind: str, expected: int | None
) -> tuple[StoredObject, Permission]:
    stored, permission = read(cx, repository, object_id, principals, kind, lock=True)
    if expected is not None and stored.revision != expected:
        raise VersionConflict("The object has changed since the version you named: read it again.")
    return stored, permission


def require(permission: Permission, least: Permission, action: str) -> None:
    """Raise NotPermitted if the permission is too low; the sentence names the action and the permission it needs."""
    if permission < least:
        raise NotPermitted(f"You may not {action}: it takes the permission {least.name.capitalize()}.")


def _next_seqs(cx: Connection, count: int) -> Sequence[int]:
    if cx.dialect.name == "postgresql":
        return cx.scalars(_NEXT_SEQS, {"count": count}).all()
    # SQLite has one writer at a time, and the insert moves the sequence on.
    last = cx.execute(sa.text("SELECT seq FROM sqlite_sequence WHERE name = 'objects'")).scalar() or 0
    return range(last + 1, last + 1 + count)


def amounts(stored_objects: Sequence[StoredObject]) -> dict[str, Amount]:
    """Count by owner's key how many of these objects belong to each owner, and the bytes of their content."""
    by_owner: dict[str, Amount] = {}
    for stored in stored_objects:
        amount = by_owner.get(stored.owner_key, usage.NOTHING)
        by_owner[stored.owner_key] = amount.with_one(stored.content.size if stored.content else 0)
    return by_owner


def _file(stored: StoredObject, content: StoredContent, text: queue.ExtractedText | None = None) -> queue.File:
    return queue.File(stored.id, stored.seq, stored.owner_key, content.key, stored.media_type, stored.name, text)


def _update(
    cx: Connection, stored: StoredObject, principals: Principals, kinds: Sequence[Kind], now: Instant, **columns: object
) -> StoredObject:
    texts: dict[str, Any] = {name: columns[name] for name in ("name", "owner", "media_type") if name in columns}
    if "properties" in columns:
        texts["properties"] = writable.decode(str(columns["properties"]))
    forms = fold_texts(msgspec.structs.replace(stored, modifier=principals.id, **texts))
    record_columns = {"modified": now, "modifier": principals.id, "revision": stored.revision + 1, "folded": forms}
    with _broken_references_refused():
        cx.execute(objects.update().where(objects.c.seq == stored.seq).values(**record_columns, **columns))
    return _note(cx, read_row(cx.execute(sa.select(objects).where(objects.c.id == stored.id)).one()), kinds, now)


def _note(cx: Connection, stored: StoredObject, kinds: Sequence[Kind], now: Instant) -> StoredObject:
    positions = [changes.note(cx, stored.repository_id, stored.id, kind, now) for kind in kinds]
    return msgspec.structs.replace(stored, position=positions[-1])


@contextmanager
def _broken_references_refused() -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        raise VersionConflict("What the object refers to was deleted meanwhile: try again.") from error
