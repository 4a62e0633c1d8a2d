"""Which packs hold mostly content that no object names any more? Move the other contents, and drop these packs.

The objects' rows are the only record of what a pack holds (decision 0040). A pack is dropped if no row names a content
of it. A pack whose contents are moved now is dropped at the next compaction, so that a process that has read a row
before can still read the content. A kill at any point leaves copies that no row names, or a pack that is dropped later.
"""

from collections.abc import Iterator

import sqlalchemy as sa
import structlog

from muniment.clock import Instant
from muniment.db import Database
from muniment.repository.content.contract import ContentStore, Pack, StoredContent
from muniment.repository.extraction import queue
from muniment.repository.objects.table import objects
from muniment.repository.objects.usage import Amount
from muniment.repository.refusals import ContentDamaged

log = structlog.get_logger("muniment.content")

_AT_A_TIME = 200


def steps(database: Database, store: ContentStore, before: Instant) -> Iterator[int]:
    """Move the living contents of packs that are more than half dead, and drop packs without any.

    Only packs are taken to which nobody has written since ``before``. Each step moves a few contents in a transaction
    of its own, and yields their number; a pack that is only looked at or dropped counts as 0. The caller may stop
    iterating after any step. Raises NotStored, Busy, OSError.
    """
    for pack in store.packs(before):
        with database.read() as cx:
            live = _amount(cx, pack)
        if live.objects == 0:
            if store.drop(pack):
                log.info("a pack is dropped", pack=pack.first[:24], bytes=pack.size)
        elif (live.bytes + live.objects * pack.overhead) * 2 < pack.size:
            yield from _move(database, store, pack)
        yield 0


def _move(database: Database, store: ContentStore, pack: Pack) -> Iterator[int]:
    last_key: str | None = ""
    while last_key is not None:
        with database.read() as cx:
            portion = _portion(cx, pack, last_key)
        last_key = portion[-1][1].key if portion else None
        intact, contents = list[tuple[str, StoredContent]](), list[bytes]()
        for object_id, content in portion:
            try:
                contents.append(b"".join(store.read(content)))
            except ContentDamaged as damaged:  # or the object is gone; then the pack is dropped later
                log.warning("a content stays in its pack", object=object_id, reason=damaged.sentence)
            else:
                intact.append((object_id, content))
        if intact:
            # If the commit fails, the rows may name the copies or not. So the copies stay, and count as dead.
            copies = store.put_all(contents)
            with database.begin() as cx:
                for (object_id, content), copy in zip(intact, copies, strict=True):
                    _rename(cx, object_id, content.key, copy.key)
        yield len(intact)


def _amount(cx: sa.Connection, pack: Pack) -> Amount:
    query = sa.select(sa.func.count(), sa.func.sum(objects.c.content_size)).where(_in(pack))
    count, size = cx.execute(query).one()
    return Amount(count, int(size or 0))


def _portion(cx: sa.Connection, pack: Pack, after_key: str) -> list[tuple[str, StoredContent]]:
    columns = (objects.c.id, objects.c.content_key, objects.c.content_size, objects.c.content_sha256)
    query = sa.select(*columns).where(_in(pack), objects.c.content_key > after_key)
    rows = cx.execute(query.order_by(objects.c.content_key).limit(_AT_A_TIME))
    return [(object_id, StoredContent(key, size, bytes(sha256))) for object_id, key, size, sha256 in rows]


def _rename(cx: sa.Connection, object_id: str, key: str, new_key: str) -> None:
    """Name the copy in the object's row, if the row still names the original."""
    where = sa.and_(objects.c.id == object_id, objects.c.content_key == key)
    if cx.execute(objects.update().where(where).values(content_key=new_key)).rowcount:
        queue.rename(cx, object_id, key, new_key)


def _in(pack: Pack) -> sa.ColumnElement[bool]:
    return objects.c.content_key.between(pack.first, pack.last)
