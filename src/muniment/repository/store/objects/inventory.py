"""Which objects are there, whatever a caller's rights?"""

from collections.abc import Collection, Container, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement, portions
from muniment.database.statements import count_where
from muniment.repository.store.content.contract import ContentStore
from muniment.repository.store.objects import wastebasket
from muniment.repository.store.objects.contents import further_contents, stored_contents, usage
from muniment.repository.store.objects.listing import object_ids
from muniment.repository.store.objects.properties import properties, version
from muniment.repository.store.objects.table import ObjectSummary, StoredObject, objects, read_row
from muniment.repository.store.objects.types.object_types import Catalogue

# The repository is compared afterwards. If the query named it, SQLite would read all objects of the repository.
_IDS = objects.c.id.in_(sa.bindparam("ids", expanding=True))
_BY_IDS = PreparedStatement(sa.select(objects).where(_IDS))
_SUMMARY = sa.select(objects.c.repository_id, *(objects.c[name] for name in ObjectSummary.__struct_fields__))
_SUMMARIES = PreparedStatement(_SUMMARY.where(_IDS))
_SUMMARIES_BY_COUNTER = PreparedStatement(_SUMMARY.where(objects.c.seq.in_(sa.bindparam("counters", expanding=True))))


def rows(cx: Connection, repository_id: int, ids: Collection[str]) -> dict[str, StoredObject]:
    by_id: dict[str, StoredObject] = {}
    for some in portions(sorted(set(ids))):
        portion = map(read_row, _BY_IDS.all(cx, ids=some))
        by_id.update((stored.id, stored) for stored in portion if stored.repository_id == repository_id)
    return by_id


def versions(cx: Connection, repository_id: int, chronicle_ids: Collection[str]) -> dict[str, list[StoredObject]]:
    """Return all versions of each tree, the current one first."""
    first = rows(cx, repository_id, chronicle_ids)
    trees = {chronicle_id: [stored] for chronicle_id, stored in first.items() if stored.version.chronicle_id is None}
    for others in portions(sorted(set(chronicle_ids) - trees.keys())):
        query = sa.select(objects).where(objects.c.chronicle_id.in_(others))
        for stored in map(read_row, cx.execute(query.order_by(objects.c.former, objects.c.seq))):
            if stored.repository_id == repository_id:
                trees.setdefault(stored.chronicle_id, []).append(stored)
    return trees


def summaries(cx: Connection, repository_id: int, ids: Sequence[str]) -> dict[str, ObjectSummary]:
    """Look up at most a page. It takes a third of the time of ``rows``."""
    portion = _SUMMARIES.all(cx, ids=ids)
    return {row[2]: ObjectSummary(*row[1:]) for row in portion if row[0] == repository_id}


def summaries_by_counter(cx: Connection, repository_id: int, counters: Sequence[int]) -> dict[int, ObjectSummary]:
    portion = _SUMMARIES_BY_COUNTER.all(cx, counters=counters)
    return {row[1]: ObjectSummary(*row[1:]) for row in portion if row[0] == repository_id}


def next_objects(cx: Connection, repository_id: int, after_seq: int, limit: int) -> list[StoredObject]:
    """Go on in the order of ``seq``."""
    query = sa.select(objects).where(objects.c.repository_id == repository_id, objects.c.seq > after_seq)
    return [read_row(row) for row in cx.execute(query.order_by(objects.c.seq).limit(limit))]


def carrying(cx: Connection, acl_id: int, limit: int, *, as_default: bool = False) -> tuple[int, list[StoredObject]]:
    """Count the objects that carry an ACL, or with ``as_default`` have it as their default; return the first ``limit``,
    too.
    """
    carries = (objects.c.default_acl_id if as_default else objects.c.acl_id) == acl_id
    first = sa.select(objects).where(carries).order_by(objects.c.seq).limit(limit)
    return count_where(cx, carries), [read_row(row) for row in cx.execute(first)]


def values(
    stored: StoredObject, catalogue: Catalogue, acl_name: str, lacking: Container[str] = ()
) -> dict[str, list[properties.Value]]:
    """Return the values of an object's properties by neutral name. The properties in ``lacking`` are left out.

    The argument ``acl_name`` is the value of the property of that name; if the argument is empty, the property has no
    value. Dates are cut to milliseconds. Properties without a value are left out, and so are ``r_index_status``, which
    ``extraction/queue`` knows, and those of ``object_types.SHOWN_ONLY`` and ``object_types.COMPUTED``.
    """
    every_value: dict[str, list[properties.Value]] = {
        **stored.properties,
        "object_name": [stored.name],
        "owner_name": [stored.owner],
        "acl_name": [acl_name] if acl_name else [],
        "r_object_id": [stored.id],
        "r_object_type": [stored.type],
        "r_creation_date": [properties.milliseconds(stored.created)],
        "r_creator_name": [stored.creator],
        "r_modify_date": [properties.milliseconds(stored.modified)],
        "r_modifier": [stored.modifier],
        "r_full_content_size": [stored.content.size if stored.content else 0],
        "a_content_type": [stored.media_type] if stored.media_type else [],
        "a_content_date": [] if stored.content_date is None else [stored.content_date],
        "i_folder_id": list(stored.folder_ids),
    }
    if not object_ids.holds_objects(stored.id):
        every_value |= version.values(stored.id, stored.version)
        every_value["log_entry"] = every_value["r_log_entry"]
    names = catalogue.properties_of(stored.type)
    return {name: every_value[name] for name in names if every_value.get(name) and name not in lacking}


def amounts_by_owner(cx: Connection) -> dict[str, usage.Amount]:
    """Count with the wastebasket, reading all objects: the counts in ``usage`` must equal these."""
    query = sa.select(objects.c.owner_key, sa.func.count(), sa.func.sum(objects.c.content_size))
    rows = cx.execute(query.group_by(objects.c.owner_key).order_by(objects.c.owner_key))
    sums, further = further_contents.sums(), dict[str, int]()
    joined = sa.select(objects.c.owner_key, sa.func.sum(sums.c.bytes)).where(sums.c.object_id == objects.c.id)
    further.update((key, int(size)) for key, size in cx.execute(joined.group_by(objects.c.owner_key)))
    amounts = {owner_key: usage.Amount(count, int(size) + further.get(owner_key, 0)) for owner_key, count, size in rows}
    for owner_key, amount in wastebasket.amounts_by_owner(cx).items():
        present = amounts.get(owner_key, usage.NOTHING)
        amounts[owner_key] = usage.Amount(present.objects + amount.objects, present.bytes + amount.bytes)
    return amounts


def remove_unnamed(cx: Connection, store: ContentStore, keys: Sequence[str]) -> int:
    return sum(store.remove(key) for key in set(keys) - stored_contents.used_keys(cx, keys))
