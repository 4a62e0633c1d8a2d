"""Which rows name which contents?

A table whose rows use contents has ``id`` and an indexed ``content_key``, and is listed in ``TABLES``, as a test
checks. Whoever adds or removes a use counts it in ``stored_contents``.
"""

from collections.abc import Iterator, Sequence

import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from muniment.database.connections import Busy, Database, repository_tables
from muniment.ground.refusals import NotStored
from muniment.repository.store.content.contract import ContentStore, StoredContent
from muniment.repository.store.extraction import queue
from muniment.repository.store.objects.contents import further_contents, stored_contents
from muniment.repository.store.objects.table import discarded_contents, objects, wastebasket

log = structlog.get_logger("muniment.content")

TABLES = (objects, repository_tables.tables[further_contents.TABLE], wastebasket, discarded_contents)

_AT_A_TIME = 500


def rename_some(cx: Connection, original: StoredContent, copy: StoredContent) -> int:
    """Replace ``original`` by a ``copy`` with the same bytes in some rows; return in how many.

    The caller repeats this in further transactions until 0, so that none gets long.
    """
    count = 0
    for table in TABLES:
        column, identifier = table.c.content_key, table.c.id
        some = sa.select(identifier).where(column == original.key).order_by(identifier).limit(_AT_A_TIME)
        ids = cx.scalars(some.with_for_update()).all()
        where = sa.and_(identifier.in_(ids), column == original.key)
        renamed = cx.scalars(table.update().where(where).values({column.name: copy.key}).returning(identifier)).all()
        if table is objects:
            queue.rename(cx, renamed, original.key, copy.key)
        count += len(renamed)
    if count:
        stored_contents.move_uses(cx, original, copy, count)
    return count


def of_repository(cx: Connection, repository_id: int) -> Iterator[StoredContent]:
    """Yield the contents in the order of digests, equal bytes once, without the wastebasket. The rows are fetched while
    the caller iterates.
    """
    further = repository_tables.tables[further_contents.TABLE]
    columns = ("content_sha256", "content_size", "content_key")
    of_objects = sa.select(*(objects.c[name] for name in columns)).where(
        objects.c.repository_id == repository_id, objects.c.content_key.is_not(None)
    )
    beside = sa.select(*(further.c[name] for name in columns)).join_from(
        further, objects, sa.and_(further.c.object_id == objects.c.id, objects.c.repository_id == repository_id)
    )
    every = sa.union_all(of_objects, beside).subquery()
    sha256, size = every.c.content_sha256, every.c.content_size
    query = sa.select(sha256, size, sa.func.min(every.c.content_key)).group_by(sha256, size).order_by(sha256, size)
    for digest, length, key in cx.execute(query.execution_options(yield_per=_AT_A_TIME)):
        yield StoredContent(key, length, bytes(digest))


def of_wastebasket(database: Database, repository_id: int) -> Iterator[tuple[str, StoredContent]]:
    """Yield each content with its object's id.

    Objects that are deleted while the caller iterates come last. No transaction is open while the caller has a content.
    """
    names = ("content_key", "content_size", "content_sha256")
    order = (wastebasket.c.deleted, wastebasket.c.seq)
    query = sa.select(*order, wastebasket.c.id, *(wastebasket.c[name] for name in names)).order_by(*order)
    query = query.where(wastebasket.c.repository_id == repository_id).limit(_AT_A_TIME)
    further = sa.select(discarded_contents.c.object_id, *(discarded_contents.c[name] for name in names))
    place: tuple[int, int] | None = (0, 0)
    while place is not None:
        after = sa.tuple_(*(sa.literal(part, sa.BigInteger) for part in place))
        with database.read() as cx:
            rows = cx.execute(query.where(sa.tuple_(*order) > after)).all()
            ids = [row.id for row in rows]
            named = [row[2:] for row in rows if row.content_key is not None]
            named += cx.execute(further.where(discarded_contents.c.object_id.in_(ids)))
        for object_id, key, size, digest in named:
            yield object_id, StoredContent(key, size, bytes(digest))
        place = (rows[-1].deleted, rows[-1].seq) if rows else None


def object_ids(cx: Connection, key: str) -> list[str]:
    """Return them sorted, with those in the wastebasket."""
    ids: set[str] = set()
    for table in TABLES:
        ids.update(cx.scalars(sa.select(_object_id(table)).where(table.c.content_key == key)))
    return sorted(ids)


def uses(cx: Connection, object_id: str, key: str) -> bool:
    """Look into the wastebasket, too."""
    for table in TABLES:
        query = sa.select(table.c.content_key).where(table.c.content_key == key, _object_id(table) == object_id)
        if cx.execute(query.limit(1)).first() is not None:
            return True
    return False


def _object_id(table: sa.Table) -> sa.Column[str]:
    return table.c.get("object_id", table.c.id)


def drop_spares(
    database: Database,
    store: ContentStore,
    uploaded: Sequence[StoredContent],
    named: Sequence[StoredContent | None],
    freed: Sequence[str] = (),
) -> None:
    """After the commit, remove uploaded contents that no row names, because equal bytes were kept already, and those
    ``freed``.

    If a content that the rows name now is damaged, they all get the uploaded one instead: no upload inherits damage.
    Nothing is raised, because the rows are committed: the sweep removes what is left.
    """
    try:
        _drop_spares(database, store, uploaded, named)
        for key in freed:
            store.remove(key)
    except (Busy, NotStored, OSError) as trouble:
        log.warning("content that no object has stays for the sweep", reason=str(trouble)[:300])


def _drop_spares(
    database: Database, store: ContentStore, uploaded: Sequence[StoredContent], named: Sequence[StoredContent | None]
) -> None:
    kept = {content.sha256: content for content in named if content is not None}
    whole, keys = set[str](), {content.key for content in kept.values()}
    for content in uploaded:
        if content.key in keys:
            continue
        original = kept.get(content.sha256)
        if original is None or original.key in whole or store.verify(original.key, original.sha256):
            whole |= {original.key} if original else set()
            store.remove(content.key)
            continue
        log.warning("damaged content is mended by an upload of the same bytes", key=original.key)
        if replace(database, original, content):
            store.remove(original.key)
        kept[content.sha256] = content
        whole.add(content.key)


def replace(database: Database, original: StoredContent, copy: StoredContent) -> bool:
    """Change some rows in each transaction.

    Return whether no row uses the original any more. Raises Busy.
    """
    while True:
        with database.begin() as cx:
            count = rename_some(cx, original, copy)
            if not stored_contents.is_used(cx, original.key):
                return True
        if not count:
            return False
