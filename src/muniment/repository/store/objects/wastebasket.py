"""Which deleted objects can still be restored?

If ``wastebasket_days`` is not 0, a deletion moves the row here, so that no search and no other list has it. The content
stays stored, and counts against the owner's quota.

Source: docs/interface.md, ours 18; decision 0077.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import portions
from muniment.database.statements import without_index
from muniment.ground.clock import Instant
from muniment.repository.refusals import UnknownObject
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.filters import cursors, listed, pages, tree
from muniment.repository.store.objects import recorded_rights
from muniment.repository.store.objects.contents import further_contents, stored_contents, usage
from muniment.repository.store.objects.table import StoredObject, content_columns, discarded_contents, wastebasket
from muniment.repository.store.permissions import acl_entries
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.repositories import Repository

DAY = 86_400_000_000

_BY_DELETION = pages.Order(
    (
        pages.OrderKey(wastebasket.c.deleted, descending=True, kind="date"),
        pages.OrderKey(wastebasket.c.seq, descending=True, kind="integer"),
    )
)
_decoder = msgspec.json.Decoder(StoredObject)


class Discard(NamedTuple):
    """``root`` is the object with which it was deleted: itself, a folder above it, or the newest of the versions
    deleted together.
    """

    stored: StoredObject
    root: str
    deleter: str
    deleted: Instant
    expires: Instant


class ListedDiscard(NamedTuple):
    """A deleted object of a list."""

    discard: Discard
    place: cursors.Place


def keep_deleted(
    cx: Connection,
    stored_objects: Sequence[StoredObject],
    further: Mapping[str, Sequence[further_contents.ObjectContent]],
    by: Principals,
    now: Instant,
    days: int,
) -> None:
    """Keep objects deleted together, the one with which the others are deleted last. The counts of uses stay."""
    rows = [
        {
            "seq": each.seq,
            "id": each.id,
            "repository_id": each.repository_id,
            "root": stored_objects[-1].id,
            "name": each.name,
            "owner": each.owner,
            "owner_key": each.owner_key,
            "acl_id": each.acl_id,
            "default_acl_id": each.default_acl_id,
            "deleter": by.id,
            "deleter_key": by.key,
            "deleted": now,
            "expires": now + days * DAY,
            "object": msgspec.json.encode(each).decode(),
            "bytes": sum(one.size for one in further_contents.with_main(each.content, further.get(each.id, ()))),
            **content_columns(each.content),
        }
        for each in stored_objects
    ]
    if rows:
        cx.execute(wastebasket.insert(), rows)
    if contents := [further_contents.row_of(each) for some in further.values() for each in some]:
        cx.execute(discarded_contents.insert(), contents)


def deleted_page(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    now: Instant,
    stretch: cursors.Stretch,
    selection: tree.Selection = tree.EVERYTHING,
) -> list[ListedDiscard]:
    """List objects that the caller owns, and those that they deleted and may browse; the last deletion first unless
    sorted.

    An administrator sees only the root of each deletion, and so does the deleter, if they own or may browse it. Of
    other deletions, callers see each object that they own.

    Raises UnknownProperty, WrongValue, BadSort.
    """
    rows = pages.fetch(cx, _members(repository, principals, now), _property, _BY_DELETION, stretch, selection)
    return [ListedDiscard(_read(row), place) for row, place in rows]


def count_deleted(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    now: Instant,
    selection: tree.Selection = tree.EVERYTHING,
) -> int:
    """Raises UnknownProperty, WrongValue."""
    return pages.count_members(cx, _members(repository, principals, now), _property, selection)


def find(cx: Connection, repository: Repository, principals: Principals, object_id: str, now: Instant) -> Discard:
    """Find one of ``deleted_page``.

    Raises UnknownObject.
    """
    members = _members(repository, principals, now).where(wastebasket.c.id == object_id.lower())
    row = cx.execute(members).first()
    if row is None:
        raise UnknownObject(f"There is no object {object_id[:40]!r} in the wastebasket.")
    return _read(row)


def lock_with_all_below(cx: Connection, discard: Discard) -> list[StoredObject]:
    """Return the object, and what to restore or remove with it: the whole deletion for its root, else what lay below
    it. Lock all rows of the deletion.

    Raises UnknownObject.
    """
    query = sa.select(wastebasket).where(wastebasket.c.root == discard.root).order_by(wastebasket.c.seq)
    left = {row.id: _read(row).stored for row in cx.execute(query.with_for_update())}
    if discard.stored.id not in left:
        raise UnknownObject(f"There is no object {discard.stored.id!r} in the wastebasket.")
    if discard.stored.id == discard.root:
        return [left.pop(discard.root), *left.values()]
    below = [left.pop(discard.stored.id)]
    ids = {below[0].id}
    while edge := [each for each in left.values() if not ids.isdisjoint(each.folder_ids)]:
        below += edge
        ids.update(each.id for each in edge)
        for each in edge:
            del left[each.id]
    return below


def take_out(cx: Connection, ids: Sequence[str]) -> list[further_contents.ObjectContent]:
    """Return further contents; uses and owners' counts stay."""
    contents: list[further_contents.ObjectContent] = []
    for portion in portions(ids):
        gone = discarded_contents.delete().where(discarded_contents.c.object_id.in_(portion))
        contents += map(further_contents.read_row, cx.execute(gone.returning(discarded_contents)))
        cx.execute(wastebasket.delete().where(wastebasket.c.id.in_(portion)))
    return contents


def remove(cx: Connection, stored_objects: Collection[StoredObject]) -> tuple[str, ...]:
    """Subtract them from their owners' counts, and return the keys that no row uses any more: the caller removes these
    contents after the commit.
    """
    further = take_out(cx, [each.id for each in stored_objects])
    contents = [each.content for each in stored_objects if each.content is not None]
    contents += [each.content for each in further]
    sizes: dict[str, int] = {}
    for each in further:
        sizes[each.object_id] = sizes.get(each.object_id, 0) + each.content.size
    usage.release(cx, usage.amounts(stored_objects, sizes))
    return stored_contents.release(cx, contents)


def purge(cx: Connection, now: Instant, limit: int) -> tuple[int, tuple[str, ...]]:
    """Remove at most ``limit`` whose time is over; return how many, and what ``remove`` returns."""
    query = sa.select(wastebasket).where(wastebasket.c.expires <= now).order_by(wastebasket.c.expires)
    return _remove(cx, query.limit(limit).with_for_update())


def remove_until(cx: Connection, repository_id: int, until: Instant, limit: int) -> tuple[int, tuple[str, ...]]:
    """Remove the oldest first, and what was deleted together, even beyond ``limit``, so that a restoration never finds
    only some.

    Returns what ``purge`` returns.
    """
    table = wastebasket.c
    oldest = sa.select(table.root).where(table.repository_id == repository_id, table.deleted <= until)
    roots = set(cx.scalars(oldest.order_by(table.deleted, table.seq).limit(limit)))
    return _remove(cx, sa.select(wastebasket).where(table.root.in_(roots)).with_for_update())


def remove_of_repository(cx: Connection, repository_id: int, limit: int) -> tuple[int, tuple[str, ...]]:
    """Returns what ``purge`` returns."""
    return _remove(cx, sa.select(wastebasket).where(wastebasket.c.repository_id == repository_id).limit(limit))


def amounts_by_owner(cx: Connection) -> dict[str, usage.Amount]:
    """Count each owner's deleted objects by the owner's key."""
    query = sa.select(wastebasket.c.owner_key, sa.func.count(), sa.func.sum(wastebasket.c.bytes))
    return {
        key: usage.Amount(number, int(size))
        for key, number, size in cx.execute(query.group_by(wastebasket.c.owner_key))
    }


def give(cx: Connection, repository_id: int, key: str, owner: str, owner_key: str) -> int:
    """Return how many."""
    where = sa.and_(wastebasket.c.repository_id == repository_id, wastebasket.c.owner_key == key)
    number, size = cx.execute(sa.select(sa.func.count(), sa.func.sum(wastebasket.c.bytes)).where(where)).one()
    if number:
        recorded_rights.given_deleted(cx, int(number), repository_id, key, owner, owner_key)
        cx.execute(wastebasket.update().where(where).values(owner=owner, owner_key=owner_key))
        amount = usage.Amount(number, int(size))
        usage.add_usage(cx, {key: -amount, owner_key: amount}, None)
    return int(number)


def _remove(cx: Connection, query: sa.Select[tuple[object]]) -> tuple[int, tuple[str, ...]]:
    gone = [_read(row).stored for row in cx.execute(query)]
    return len(gone), remove(cx, gone)


def _members(repository: Repository, principals: Principals, now: Instant) -> sa.Select[tuple[object]]:
    table, top = wastebasket.c, wastebasket.alias().c
    is_root = table.root == table.id
    if principals.administrator:
        return sa.select(wastebasket).where(table.repository_id == repository.id, table.expires > now, is_root)
    in_repository = without_index(table.repository_id) == repository.id
    statement = sa.select(wastebasket).where(in_repository, without_index(table.expires) > now)
    browsable = top.acl_id.in_(acl_entries.acls_with(principals, Permission.BROWSE))
    root_is_visible = sa.exists().where(top.id == table.root, sa.or_(top.owner_key == principals.key, browsable))
    by_root = sa.and_(table.deleter_key == principals.key, root_is_visible)
    owned = table.owner_key == principals.key
    return statement.where(sa.or_(sa.and_(is_root, by_root), sa.and_(owned, sa.not_(by_root))))


def _read(row: sa.Row[tuple[object]]) -> Discard:
    content = None
    if row.content_key is not None:
        content = StoredContent(row.content_key, row.content_size, bytes(row.content_sha256))
    stored = msgspec.structs.replace(
        _decoder.decode(row.object), owner=row.owner, owner_key=row.owner_key, content=content, position=None
    )
    return Discard(stored, row.root, row.deleter, row.deleted, row.expires)


_property = listed.among(
    {
        "object_name": listed.exact(wastebasket.c.name),
        "owner_name": listed.exact(wastebasket.c.owner),
        "r_object_id": listed.single("id", wastebasket.c.id),
        "deleter": listed.exact(wastebasket.c.deleter),
        "deleted": listed.single("date", wastebasket.c.deleted),
        "expires": listed.single("date", wastebasket.c.expires),
    },
    "The wastebasket",
)
