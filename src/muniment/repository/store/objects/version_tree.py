"""Which versions does a tree have, and how is the tree mended when some are removed? One version is current.

For a removed antecedent, the nearest remaining version before it takes its place; for a removed current version, the
nearest before it becomes current, or else the tree's newest.

Source: docs/interface.md, ours 17.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import portions
from muniment.ground.clock import Instant
from muniment.repository.store import named_locks
from muniment.repository.store.change_log import changes
from muniment.repository.store.objects.folders import filing
from muniment.repository.store.objects.properties import version
from muniment.repository.store.objects.properties.version import CURRENT, Version
from muniment.repository.store.objects.table import StoredObject, fold_texts, objects, read_row


class Member(NamedTuple):
    """A version with what its tree needs."""

    chronicle_id: str
    seq: int
    id: str
    antecedent_id: str | None
    labels: tuple[str, ...]
    former: bool


def serialize(cx: Connection, chronicle_id: str) -> None:
    named_locks.take(cx, f"versions {chronicle_id}")


def members(cx: Connection, chronicle_ids: Collection[str]) -> list[Member]:
    """Return the versions tree by tree, the oldest first, whatever a caller's rights."""
    columns = [objects.c[name] for name in Member._fields]
    every: list[Member] = []
    for ids in portions(sorted(chronicle_ids)):
        query = sa.select(*columns).where(objects.c.chronicle_id.in_(ids))
        rows = cx.execute(query.order_by(objects.c.chronicle_id, objects.c.seq))
        every += [Member(row[0], row[1], row[2], row[3], version.decode(row[4]), bool(row[5])) for row in rows]
    return every


def current_id(cx: Connection, stored: StoredObject) -> str:
    """Find the current version, whatever the caller's rights."""
    if not stored.version.former:
        return stored.id
    query = sa.select(objects.c.id).where(objects.c.chronicle_id == stored.chronicle_id, objects.c.former == 0)
    return str(cx.execute(query).scalar_one())


def put(
    cx: Connection, stored: StoredObject, new: Version, now: Instant, kind: changes.Kind = "version", **columns: object
) -> StoredObject:
    """Set the version of a locked object, whose modification date and modifier stay."""
    changed = msgspec.structs.replace(stored, version=new, revision=stored.revision + 1)
    texts = {"folded": fold_texts(changed), "revision": changed.revision}
    cx.execute(objects.update().where(objects.c.seq == stored.seq).values(**version.columns(new), **texts, **columns))
    filing.mark(cx, stored, former=new.former)
    position = changes.note(cx, stored.repository_id, stored.id, kind, now)
    return msgspec.structs.replace(changed, position=position)


def bearing(cx: Connection, tree: Collection[Member], labels: Collection[str]) -> list[StoredObject]:
    """Read versions that have one of the labels, whatever a caller's rights, and lock their rows."""
    return _rows(cx, [each.id for each in tree if not set(labels).isdisjoint(each.labels[1:])])


def without(of: Version, labels: Collection[str]) -> Version:
    """Make it a former version if it loses ``CURRENT``."""
    left = (of.number, *(label for label in of.labels[1:] if label not in labels))
    return msgspec.structs.replace(of, labels=left, former=CURRENT not in left)


def adopt(cx: Connection, first_id: str, tree: Collection[Member], now: Instant) -> None:
    for stored in _rows(cx, [each.id for each in tree if each.antecedent_id is None]):
        put(cx, stored, msgspec.structs.replace(stored.version, antecedent_id=first_id), now)


def mend(cx: Connection, removed: Sequence[StoredObject], now: Instant) -> None:
    """Mend the trees of objects just removed. Objects never checked in cost nothing."""
    gone = {stored.id: stored for stored in removed if stored.version.chronicle_id is not None}
    trees = sorted({stored.chronicle_id for stored in gone.values()})
    for chronicle_id in trees:
        serialize(cx, chronicle_id)
    antecedents = {object_id: stored.version.antecedent_id for object_id, stored in gone.items()}
    left = members(cx, trees) if trees else []
    for chronicle_id, group in groupby(left, lambda member: member.chronicle_id):
        tree = list(group)
        lost_current = [
            each.id for each in gone.values() if each.chronicle_id == chronicle_id and not each.version.former
        ]
        _mend(cx, tree, antecedents, lost_current, now)


def _mend(
    cx: Connection,
    tree: Sequence[Member],
    antecedents: Mapping[str, str | None],
    lost_current: Sequence[str],
    now: Instant,
) -> None:
    by_id = {each.id: each for each in tree}

    def climb(object_id: str | None) -> str | None:
        while object_id is not None and object_id not in by_id:
            object_id = antecedents.get(object_id)
        return object_id

    new_antecedents = {each.id: climb(each.antecedent_id) for each in tree}
    following = {
        before
        for each in tree
        if (before := new_antecedents[each.id]) is not None
        and version.is_on_branch_of(each.labels[0], by_id[before].labels[0])
    }
    heir = (climb(lost_current[0]) or tree[-1].id) if lost_current else None
    affected = [each.id for each in tree if new_antecedents[each.id] != each.antecedent_id]
    affected += [new_antecedents[each] or each for each in affected]
    affected += [before for gone in antecedents if (before := climb(gone)) is not None]
    for stored in _rows(cx, {*affected, *([heir] if heir else [])}):
        labels = stored.version.labels
        if stored.id == heir and CURRENT not in labels:
            labels = (*labels, CURRENT)
        new = msgspec.structs.replace(
            stored.version,
            antecedent_id=new_antecedents[stored.id],
            superseded=stored.id in following,
            labels=labels,
            former=CURRENT not in labels,
        )
        if new != stored.version:
            put(cx, stored, new, now)


def _rows(cx: Connection, ids: Collection[str]) -> list[StoredObject]:
    if not ids:
        return []
    query = sa.select(objects).where(objects.c.id.in_(sorted(ids))).order_by(objects.c.seq).with_for_update()
    return [read_row(row) for row in cx.execute(query)]
