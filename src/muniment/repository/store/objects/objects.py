"""Store, read, change and delete the objects of a repository. The same transaction notes each change in the change log.

For an object that the caller may not browse, the answer is exactly that for an object that does not exist. Source:
docs/interface.md, ours 2.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from muniment.database.connections import PreparedStatement, portions
from muniment.database.statements import next_keys
from muniment.ground.clock import Instant, timestamp
from muniment.repository.refusals import (
    CheckedOut,
    InUse,
    NotPermitted,
    Superseded,
    UnknownObject,
    VersionConflict,
    WrongValue,
)
from muniment.repository.store.change_log import changes
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.extraction import queue
from muniment.repository.store.objects import inventory, recorded_rights, version_tree, wastebasket
from muniment.repository.store.objects.contents import further_contents, stored_contents, usage
from muniment.repository.store.objects.folders import computed, filing, paths, unique_names
from muniment.repository.store.objects.listing import object_acls, object_ids
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties import stored_values
from muniment.repository.store.objects.properties.properties import Given, Value, milliseconds
from muniment.repository.store.objects.table import StoredObject, content_columns, fold_texts, objects, read_row, row_of
from muniment.repository.store.objects.types import object_types, writable
from muniment.repository.store.permissions import acl_entries
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.repositories import Repository

# The database leaves out what the caller may not browse, so a hidden object gives no row (decision 0091).
_HIGHEST = acl_entries.highest(objects.c.acl_id, objects.c.owner_key)
_MAY_BROWSE = sa.or_(objects.c.owner_key == sa.bindparam("caller_key"), int(Permission.BROWSE) <= _HIGHEST)
_BY_ID = sa.and_(objects.c.id == sa.bindparam("id"), objects.c.repository_id == sa.bindparam("repository"))
_FOR_CALLER = sa.select(objects, _HIGHEST).where(_BY_ID, _MAY_BROWSE)
_FOR_ADMINISTRATOR = sa.select(objects, sa.literal_column(str(int(Permission.DELETE)))).where(_BY_ID)
_LOOK_UPS = [
    (PreparedStatement(query), PreparedStatement(query.with_for_update()))
    for query in (_FOR_CALLER, _FOR_ADMINISTRATOR)
]
"""The index says whether an administrator asks, then whether the row is locked."""

_KINDS: Mapping[str, changes.Kind] = {"owner": "owner", "acl_id": "acl"}

NOT_EMPTY = "The folder is not empty."
"""It says nothing about objects that the caller may not see."""

_INSERT = PreparedStatement(objects.insert())


def keep_new(
    cx: Connection,
    view: RepositoryView,
    drafts: Sequence[StoredObject],
    texts: Sequence[queue.ExtractedText | None],
    now: Instant,
    quota: usage.StorageQuota | None = None,
    *,
    shared: Collection[str] = (),
) -> list[StoredObject]:
    """Store objects. Each gets the next counter and an id, and its creation is noted.

    ``drafts`` have no ``seq`` and ``id`` yet, and no text if it must still be read. ``shared`` are the keys of contents
    of other objects. For equal bytes, the object names the kept content, and the caller later removes the new one.

    Raises UnknownType, QuotaExceeded, and VersionConflict when a draft refers to something that is gone.
    """
    kept = iter(stored_contents.keep_or_share(cx, [draft.content for draft in drafts], shared))
    drafts = [msgspec.structs.replace(draft, content=next(kept)) for draft in drafts]
    object_types.hold(cx, view.repository.id, view.catalogue, [draft.type for draft in drafts])
    seqs = next_keys(cx, objects.c.seq, len(drafts))
    new_objects = [
        msgspec.structs.replace(draft, seq=seq, id=object_ids.make(cx, view.catalogue, draft.type, seq))
        for draft, seq in zip(drafts, seqs, strict=True)
    ]
    with _broken_references_refused():
        _INSERT.run_for_each(cx, [row_of(stored) for stored in new_objects])
        filing.put_back(cx, new_objects)
    files = [
        _file(stored, stored.content, text)
        for stored, text in zip(new_objects, texts, strict=True)
        if stored.content is not None
    ]
    queue.enqueue_new(cx, view.repository.id, files, now)
    usage.add_usage(cx, usage.amounts(new_objects), quota)
    return _note_new(cx, view, new_objects, now)


def put_back(
    cx: Connection, view: RepositoryView, stored_objects: Sequence[StoredObject], now: Instant
) -> list[StoredObject]:
    """Store objects that have ids, such as restored ones; their owners' counts stay.

    Each comes after the folders in which it lies. Texts are read again.

    Raises UnknownType, and VersionConflict when an object refers to something that is gone.
    """
    object_types.hold(cx, view.repository.id, view.catalogue, [each.type for each in stored_objects])
    with _broken_references_refused():
        _INSERT.run_for_each(cx, [row_of(each) for each in stored_objects])
        filing.put_back(cx, stored_objects)
    files = [_file(each, each.content) for each in stored_objects if each.content is not None]
    queue.enqueue_new(cx, view.repository.id, files, now)
    return _note_new(cx, view, stored_objects, now)


def _note_new(
    cx: Connection, view: RepositoryView, stored_objects: Sequence[StoredObject], now: Instant
) -> list[StoredObject]:
    positions = changes.note_all(cx, view.repository.id, [each.id for each in stored_objects], "created", now)
    return _with_positions(stored_objects, positions)


def _with_positions(
    stored_objects: Sequence[StoredObject], positions: Sequence[changes.Position]
) -> list[StoredObject]:
    return [msgspec.structs.replace(each, position=at) for each, at in zip(stored_objects, positions, strict=True)]


def read(
    cx: Connection,
    repository: Repository,
    object_id: str,
    principals: Principals,
    kind: str = "object",
    *,
    lock: bool = False,
) -> tuple[StoredObject, Permission]:
    """Return an object and the caller's permission, by one statement.

    Raises UnknownObject. ``lock`` keeps others from changing it until the transaction ends.
    """
    folded_id = object_id.lower()
    if object_ids.may_be_of(folded_id, kind):
        who = {} if principals.administrator else acl_entries.caller_parameters(principals)
        look_up = _LOOK_UPS[principals.administrator][lock]
        row = look_up.first(cx, id=folded_id, repository=repository.id, **who)
        if row is not None:
            stored = read_row(row[:-1])
            return stored, acl_entries.level(row[-1], owns=principals.is_(stored.owner_key))
    raise UnknownObject(f"There is no {kind} {object_id[:40]!r}.")


def readable(
    cx: Connection, repository: Repository, object_id: str, principals: Principals, *, lock: bool = False
) -> StoredObject:
    """Return an object whose content the caller may read.

    Raises UnknownObject, NotPermitted.
    """
    stored, permission = read(cx, repository, object_id, principals, lock=lock)
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
    """``expected`` is the revision that the caller has seen.

    Only the owner or an administrator may assign the ACL. Only an administrator may assign the owner. Raises
    UnknownObject, NotPermitted, CheckedOut, VersionConflict, UnknownProperty, UnknownAcl, WrongValue, NotWritable,
    NameTaken.
    """
    repository, principals = view.repository, view.principals
    stored, permission = lock_to_use(cx, repository, principals, object_id, kind, expected)
    object_types.hold(cx, repository.id, view.catalogue, [stored.type])
    new = read_new(cx, view, stored, properties)
    if not new or new.keys() - {"acl_name", "owner_name"}:
        require(permission, Permission.WRITE, "change this object")
        refuse_others(stored, principals)
    kinds: list[changes.Kind] = [] if new.keys() == {"acl_name"} else ["properties"]
    columns = columns_of(cx, view, new, now)
    # A format has one name with every charset: the name that is sent back means the charset that is there.
    if columns.get("media_type") == stored.media_type.partition(";")[0].strip():
        columns["media_type"] = stored.media_type
    kinds += [kind for name, kind in _KINDS.items() if name in columns]
    new_name = str(columns.get("name", stored.name))
    if new_name != stored.name:
        unique_names.claim_again(cx, view, stored, new_name)
        filing.rename(cx, stored, new_name)
    columns["properties"] = stored_values.encode({**stored.properties, **new})
    new_version = update(cx, stored, principals, kinds, now, **columns)
    if new_version.owner_key != stored.owner_key:
        queue.change_owner(cx, [stored.id], new_version.owner_key)
        (amount,) = usage.amounts([new_version], further_contents.sizes(cx, [stored.id])).values()
        usage.add_usage(cx, {stored.owner_key: -amount, new_version.owner_key: amount}, None)
    if new_version.content is not None and new_version.media_type != stored.media_type:
        queue.enqueue(cx, repository.id, _file(new_version, new_version.content), now)
    return new_version


def read_new(
    cx: Connection, view: RepositoryView, stored: StoredObject, properties: Mapping[str, Given]
) -> dict[str, list[Value]]:
    """Return the values that change if the caller gives an object these properties.

    Raises UnknownProperty, WrongValue, NotWritable.
    """
    current = current_values(cx, view, stored, properties)
    owns = view.principals.is_(stored.owner_key)
    return writable.read(view.catalogue, stored.type, properties, current, view.principals, owns=owns)


def current_values(
    cx: Connection, view: RepositoryView, stored: StoredObject, names: Container[str]
) -> dict[str, list[Value]]:
    """Return the values that the caller sees now; what takes a statement of its own, only if ``names`` has it."""
    shown = object_acls.shown_acls(cx, [stored], view.principals)
    current = inventory.values(stored, view.catalogue, shown[stored.id].text)
    current["r_index_status"] = [queue.status(cx, stored.id).state]
    if object_ids.holds_objects(stored.id) and any(name in names for name in paths.NAMES):
        current |= paths.values(paths.ancestries(cx, view, [stored])[stored.id])
    if any(name in names for name in object_types.COMPUTED):
        current |= computed.computed_values(cx, view, [stored], shown)[stored.id]
    return current


def columns_of(cx: Connection, view: RepositoryView, new: Mapping[str, list[Value]], now: Instant) -> dict[str, object]:
    """Return the values of properties with columns of their own.

    Raises WrongValue (an empty name, or one that is too long), UnknownAcl.
    """
    columns: dict[str, object] = {}
    if "object_name" in new:
        columns["name"] = writable.object_name(new)
    if "owner_name" in new:
        owner = writable.text_of(new, "owner_name")
        columns |= {"owner": owner, "owner_key": view.principals.key_for(cx, owner, now)}
    if "acl_name" in new:
        acl_name = writable.text_of(new, "acl_name")
        columns["acl_id"] = object_acls.find_assignable(cx, view.repository.id, acl_name, view.principals)
    if "a_content_type" in new:
        columns["media_type"] = writable.text_of(new, "a_content_type")
    if "a_content_date" in new:
        columns["content_date"] = writable.content_date(new)
    return columns


def lock_to_change(
    cx: Connection, repository: Repository, principals: Principals, object_id: str, expected: int | None = None
) -> StoredObject:
    """Raises UnknownObject, NotPermitted, VersionConflict, CheckedOut."""
    stored, permission = lock_to_use(cx, repository, principals, object_id, "object", expected)
    require(permission, Permission.WRITE, "change this object")
    refuse_others(stored, principals)
    return stored


def put_into_folders(
    cx: Connection, stored: StoredObject, principals: Principals, folder_ids: Sequence[str], now: Instant
) -> StoredObject:
    """Put an object into exactly these folders; its row is locked.

    Raises VersionConflict if one of them is gone.
    """
    with _broken_references_refused():
        columns = filing.write(cx, stored, folder_ids)
    return update(cx, stored, principals, ["properties"], now, **columns)


def replace_content(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    content: StoredContent,
    media_type: str,
    now: Instant,
    *,
    content_date: Instant | None = None,
    text: queue.ExtractedText | None = None,
    quota: usage.StorageQuota = usage.StorageQuota(),  # noqa: B008 - it does not change
) -> StoredObject:
    """For equal bytes, the object names the kept content: after the commit, the caller removes the ``freed`` contents,
    and ``content`` if unnamed.

    Without a ``content_date``, a first content keeps its object's date, another is dated ``now``. Without ``text``, it
    is read later. ``quota`` limits the owner, unless the caller is an administrator.

    Raises UnknownObject, NotPermitted, VersionConflict, WrongValue (for folders), CheckedOut, Superseded,
    QuotaExceeded.
    """
    stored, permission = read(cx, repository, object_id, principals, "object", lock=True)
    require(permission, Permission.WRITE, "change this object")
    check_may_have_content(stored, principals)
    former = [stored.content] if stored.content else []
    (kept,), freed = stored_contents.exchange(cx, [content], former)
    if content_date is None and stored.content is None:
        content_date = stored.content_date
    dated = milliseconds(now if content_date is None else content_date)
    columns = {**content_columns(kept), "media_type": media_type, "content_date": dated}
    new_version = update(cx, stored, principals, ["content"], now, **columns)
    queue.enqueue(cx, repository.id, _file(new_version, kept, text), now)
    growth = usage.Amount(0, content.size - sum(each.size for each in former))
    usage.add_usage(cx, {stored.owner_key: growth}, None if principals.administrator else quota)
    return msgspec.structs.replace(new_version, freed=freed)


def check_may_have_content(stored: StoredObject, principals: Principals) -> None:
    """Raises WrongValue (a folder), CheckedOut, Superseded."""
    check_holds_content(stored.id)
    refuse_others(stored, principals)
    if stored.version.superseded:
        raise Superseded(
            "The version has a next one, so its content cannot be changed: check out and check in instead."
        )


def check_holds_content(object_id: str) -> None:
    if object_ids.holds_objects(object_id):
        raise WrongValue("A folder holds objects, not content.")


def refuse_others(stored: StoredObject, principals: Principals) -> None:
    """Raise CheckedOut if somebody else has it checked out, even for an administrator."""
    lock = stored.version.lock
    if lock is not None and not principals.is_(lock.owner_key):
        raise CheckedOut(f"{lock.owner} has this object checked out since {timestamp(lock.since)}.")


def delete(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    now: Instant,
    *,
    expected: int | None = None,
    kind: str = "object",
    keep_days: int = 0,
) -> StoredObject:
    """After the commit, the caller removes the ``freed`` contents; none are freed while the object stays in the
    wastebasket for ``keep_days``.

    Raises UnknownObject, NotPermitted, VersionConflict, CheckedOut, InUse (for a folder that is not empty).
    """
    stored = lock_to_delete(cx, repository, principals, object_id, kind, expected)
    if object_ids.holds_objects(stored.id) and filing.lock_children(cx, [stored.id], 1):
        raise InUse(NOT_EMPTY)
    return remove(cx, [stored], principals, now, keep_days)[0]


def lock_to_delete(
    cx: Connection, repository: Repository, principals: Principals, object_id: str, kind: str, expected: int | None
) -> StoredObject:
    """Raises what ``delete`` raises, except InUse."""
    stored, permission = lock_to_use(cx, repository, principals, object_id, kind, expected)
    require(permission, Permission.DELETE, "delete this object")
    refuse_others(stored, principals)
    return stored


def remove(
    cx: Connection, stored_objects: Sequence[StoredObject], by: Principals, now: Instant, keep_days: int = 0
) -> list[StoredObject]:
    """Remove objects of one repository, each before its folders, and the one with which the others are deleted last.
    Return each with the position of its change. Trees of versions are mended. After the commit, the caller removes the
    ``freed`` contents; none are freed while objects stay in the wastebasket for ``keep_days``.

    Raises InUse for a folder in which other objects lie.
    """
    ids = [each.id for each in stored_objects]
    further: dict[str, list[further_contents.ObjectContent]] = {}
    filing.drop(cx, stored_objects)
    try:
        for portion in portions(ids):
            queue.drop(cx, portion)
            for each in further_contents.remove(cx, portion):
                further.setdefault(each.object_id, []).append(each)
            cx.execute(objects.delete().where(objects.c.id.in_(portion)))
    except IntegrityError as error:
        raise InUse(NOT_EMPTY) from error
    version_tree.mend(cx, stored_objects, now)
    positions = changes.note_all(cx, stored_objects[0].repository_id, ids, "deleted", now) if stored_objects else []
    if keep_days:
        wastebasket.keep_deleted(cx, stored_objects, further, by, now, keep_days)
        return _with_positions(stored_objects, positions)
    contents = {each.id: further_contents.with_main(each.content, further.get(each.id, ())) for each in stored_objects}
    sizes = {object_id: sum(each.content.size for each in some) for object_id, some in further.items()}
    gone = set(stored_contents.release(cx, [content for of_object in contents.values() for content in of_object]))
    usage.release(cx, usage.amounts(stored_objects, sizes))
    return [
        msgspec.structs.replace(each, freed=stored_contents.take(gone, contents[each.id]))
        for each in _with_positions(stored_objects, positions)
    ]


def give(
    cx: Connection, repository_id: int, ids: Collection[str], owner: str, owner_key: str, by: Principals, now: Instant
) -> int:
    """Return how many were somebody else's."""
    cx.execute(sa.select(objects.c.seq).where(objects.c.id.in_(ids)).order_by(objects.c.seq).with_for_update())
    gifts = [stored for stored in inventory.rows(cx, repository_id, ids).values() if stored.owner_key != owner_key]
    gifts.sort(key=lambda stored: stored.seq)
    columns = {"owner": owner, "owner_key": owner_key, "modified": now, "modifier": by.id}
    gift_ids = [stored.id for stored in gifts]
    if gift_ids:
        recorded_rights.given(cx, gift_ids, owner, owner_key)
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
    sizes = further_contents.sizes(cx, gift_ids)
    for former_key, amount in sorted(usage.amounts(gifts, sizes).items()):
        usage.add_usage(cx, {former_key: -amount, owner_key: amount}, None)
    queue.change_owner(cx, gift_ids, owner_key)
    changes.note_all(cx, repository_id, gift_ids, "owner", now)
    return len(gift_ids)


def lock_to_use(
    cx: Connection, repository: Repository, principals: Principals, object_id: str, kind: str, expected: int | None
) -> tuple[StoredObject, Permission]:
    """Raises UnknownObject, VersionConflict."""
    stored, permission = read(cx, repository, object_id, principals, kind, lock=True)
    if expected is not None and stored.revision != expected:
        raise VersionConflict("The object has changed since the version you named: read it again.")
    return stored, permission


def lowest_permission(cx: Connection, some: Iterable[StoredObject], principals: Principals) -> Permission:
    """Return the lowest permission of the caller on any of these objects."""
    rights = acl_entries.permissions(cx, {(each.acl_id, each.owner_key) for each in some}, principals)
    return min(rights.values(), default=Permission.DELETE)


def require(permission: Permission, least: Permission, action: str) -> None:
    """The refusal names the action and the needed permission."""
    if permission < least:
        raise NotPermitted(f"You may not {action}: it takes the permission {least.name.capitalize()}.")


def _file(stored: StoredObject, content: StoredContent, text: queue.ExtractedText | None = None) -> queue.File:
    return queue.File(stored.id, stored.seq, stored.owner_key, content.key, stored.media_type, stored.name, text)


def update(
    cx: Connection,
    stored: StoredObject,
    principals: Principals,
    kinds: Sequence[changes.Kind],
    now: Instant,
    **columns: object,
) -> StoredObject:
    """Change a locked object, which gets a new revision.

    Raises VersionConflict if something that the object refers to is gone.
    """
    texts: dict[str, Any] = {name: columns[name] for name in ("name", "owner", "media_type") if name in columns}
    if "properties" in columns:
        texts["properties"] = stored_values.decode(str(columns["properties"]))
    forms = fold_texts(msgspec.structs.replace(stored, modifier=principals.id, **texts))
    record_columns = {"modified": now, "modifier": principals.id, "revision": stored.revision + 1, "folded": forms}
    with _broken_references_refused():
        cx.execute(objects.update().where(objects.c.seq == stored.seq).values(**record_columns, **columns))
    new_version = read_row(cx.execute(sa.select(objects).where(objects.c.id == stored.id)).one())
    recorded_rights.changed(cx, "rights of object changed", [(stored, new_version)])
    return _note(cx, new_version, kinds, now)


def _note(cx: Connection, stored: StoredObject, kinds: Sequence[changes.Kind], now: Instant) -> StoredObject:
    positions = [changes.note(cx, stored.repository_id, stored.id, kind, now) for kind in kinds]
    return msgspec.structs.replace(stored, position=positions[-1])


@contextmanager
def _broken_references_refused() -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        raise VersionConflict("What the object refers to was deleted meanwhile: try again.") from error
