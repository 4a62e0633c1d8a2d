"""How do objects become documents, and how does a batch of them get into the index in one commit?

An object that makes no document, or that the engine refuses, is recorded with the reason and left out.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec
import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from muniment.database.connections import (
    Busy,
    Database,
    PreparedStatement,
    portions,
    repository_column,
    repository_tables,
    required,
)
from muniment.ground.clock import Instant
from muniment.repository.search.index.contract import IndexWriter
from muniment.repository.search.index.document import Document, document
from muniment.repository.search.meaning import embeddings
from muniment.repository.search.meaning.passages import digest, heading
from muniment.repository.store.change_log.changes import Change, Position
from muniment.repository.store.extraction import queue
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.objects.types import object_types
from muniment.repository.store.objects.types.reindexing import IndexedProperties
from muniment.repository.store.permissions import acls
from muniment.repository.store.repositories import Repository

unindexed = sa.Table(
    "unindexed",
    repository_tables,
    sa.Column("object_id", sa.String(16), primary_key=True),
    repository_column(),
    required("reason", sa.Text),
    required("noted", sa.BigInteger),
)

CHARACTERS = 8_000_000
"""More text, in characters, ends a batch early."""

log = structlog.get_logger("muniment.agent")

_OBJECTS_AT_A_TIME = 1000
_REBUILT_AT_A_TIME = 5000
"""Each commit of a rebuild makes a part of the engine's index, and a search asks every part: so there are few."""

_TEXTS_AT_A_TIME = 25
_SMALL_TEXTS = 256 * 1024
"""A portion of more than ``_TEXTS_AT_A_TIME`` objects, whose texts are read at one time, has at most so many bytes of
content. A compressed file may hold more text than it has bytes.
"""


class Batch(msgspec.Struct):
    """Documents that are committed together.

    ``done_ids`` are all objects, ``keys_to_remove`` those that no longer exist, ``ids_not_indexed`` those recorded as
    not indexed before.
    """

    documents: list[Document] = []
    keys_to_remove: list[str] = []
    refusals: dict[str, str] = {}
    done_ids: set[str] = set()
    ids_not_indexed: set[str] = set()


def of_objects(cx: Connection, repository: Repository, object_ids: Sequence[str]) -> Batch:
    """The batch ends early when it holds much text."""
    return _batch(cx, repository, object_ids, inventory.rows(cx, repository.id, object_ids))


def all_documents(database: Database, repository: Repository) -> Iterator[Batch]:
    """Read each batch in a transaction of its own."""
    last: int | None = 0
    while last is not None:
        with database.read() as cx:
            batch, last = document_batch(cx, repository, last, _REBUILT_AT_A_TIME)
        yield batch


def document_batch(
    cx: Connection, repository: Repository, after_seq: int, most: int | None = None
) -> tuple[Batch, int | None]:
    """Make the next batch above ``after_seq``; return it with its last counter, or None for no more objects."""
    rows = {
        stored.id: stored for stored in inventory.next_objects(cx, repository.id, after_seq, most or _OBJECTS_AT_A_TIME)
    }
    batch = _batch(cx, repository, list(rows), rows)
    return batch, max((rows[object_id].seq for object_id in batch.done_ids), default=None)


def commit(
    database: Database, repository: Repository, writer: IndexWriter, batch: Batch, position: Position, now: Instant
) -> None:
    """Commit; an object that the engine refuses is recorded and left out."""
    position_before = writer.position
    try:
        if batch.refusals:
            _record(database, repository, batch.refusals, now)
        # This comes before the index's commit. A process that is killed in between repeats both, which does no harm.
        readmit(database, batch.ids_not_indexed - batch.refusals.keys())
        writer.apply(batch.documents, [*batch.keys_to_remove, *batch.refusals], position)
    except (OSError, MemoryError, Busy, sa.exc.SQLAlchemyError):
        raise
    except Exception as error:  # noqa: BLE001 - the engine's refusals have no common class
        refusals = _refused_by_engine(writer, batch.documents, position_before, error)
        _record(database, repository, refusals, now)
        batch.refusals |= refusals
        writer.apply((), [*batch.keys_to_remove, *batch.refusals], position)


def readmit(database: Database, object_ids: Collection[str]) -> None:
    """Delete the recorded reasons when the objects can be indexed again."""
    for portion in portions(sorted(object_ids), _OBJECTS_AT_A_TIME):
        with database.begin() as cx:
            cx.execute(unindexed.delete().where(unindexed.c.object_id.in_(portion)))


def leave_out(
    database: Database, repository: Repository, writer: IndexWriter, line: Change, reason: str, now: Instant
) -> None:
    writer.apply((), [line.object_id], line.position)
    log.error("object cannot be indexed", object_id=line.object_id, reason=reason)
    _record(database, repository, {line.object_id: reason}, now)


def reason(cx: Connection, object_id: str) -> str | None:
    row = cx.execute(sa.select(unindexed.c.reason).where(unindexed.c.object_id == object_id)).first()
    return row.reason if row else None


def _batch(
    cx: Connection, repository: Repository, object_ids: Sequence[str], rows: Mapping[str, StoredObject]
) -> Batch:
    catalogue = object_types.catalogue(cx, repository.id)
    indexed = IndexedProperties.read(cx, repository.id, catalogue)
    is_embedded = embeddings.are_there(cx)
    batch, characters = Batch(), 0
    for portion in _portions(object_ids, rows):
        present = [rows[object_id] for object_id in portion if object_id in rows]
        present_ids = [row.id for row in present]
        texts, statuses = queue.text_of(cx, present_ids), queue.statuses(cx, present_ids)
        acl_names = acls.names(cx, {row.acl_id for row in present})
        present_embeddings = embeddings.of_objects(cx, present_ids) if is_embedded else {}
        batch.done_ids.update(portion)
        batch.keys_to_remove += [object_id for object_id in portion if object_id not in rows]
        for row in present:
            try:
                values = inventory.values(row, catalogue, acl_names[row.acl_id], indexed.lacking(row))
                values["r_index_status"] = [statuses[row.id].state]
                text = texts.get(row.id, "")
                embedding = _embedding(present_embeddings.get(row.id), row, text)
                batch.documents.append(document(row, values, text, catalogue.ids, embedding))
            except Exception as error:
                log.exception("object cannot be indexed", object_id=row.id)
                batch.refusals[row.id] = f"{type(error).__name__}: {error}"[:1000]
        characters += sum(map(len, texts.values()))
        if characters > CHARACTERS:
            break
    for some in portions(batch.done_ids):
        batch.ids_not_indexed.update(object_id for (object_id,) in _NOT_INDEXED.all(cx, object_ids=some))
    return batch


def _embedding(embedding: embeddings.Embedding | None, row: StoredObject, text: str) -> int:
    if embedding is None or embedding.digest != digest(heading(row), text):
        return 0
    return embedding.id


def _portions(object_ids: Sequence[str], rows: Mapping[str, StoredObject]) -> Iterator[list[str]]:
    portion: list[str] = []
    total_size = 0
    for object_id in object_ids:
        content = rows[object_id].content if object_id in rows else None
        size = content.size if content else 0
        if len(portion) >= _TEXTS_AT_A_TIME and total_size + size > _SMALL_TEXTS:
            yield portion
            portion, total_size = [], 0
        portion.append(object_id)
        total_size += size
    if portion:
        yield portion


def _refused_by_engine(
    writer: IndexWriter, documents: Sequence[Document], position_before: Position, error: Exception
) -> dict[str, str]:
    """Return, by key, why the engine refused some. Raises ``error`` if the writer refuses even a commit without a
    document.
    """
    refusals: dict[str, str] = {}
    for each in documents:
        try:
            writer.apply([each], (), position_before)
        except Exception as refusal:  # noqa: BLE001 - the engine's refusals have no common class
            refusals[each.key] = f"{type(refusal).__name__}: {refusal}"[:1000]
            try:
                writer.apply((), [each.key], position_before)
            except Exception:  # noqa: BLE001 - as above
                raise error from refusal
            log.warning("object cannot be indexed", object_id=each.key, reason=refusals[each.key])
    return refusals


def _record(database: Database, repository: Repository, refusals: Mapping[str, str], now: Instant) -> None:
    with database.begin() as cx:
        cx.execute(unindexed.delete().where(unindexed.c.object_id.in_(refusals.keys())))
        for object_id, why in refusals.items():
            row = {"object_id": object_id, "repository_id": repository.id, "reason": why, "noted": now}
            cx.execute(unindexed.insert().values(row))


_NOT_INDEXED = PreparedStatement(
    sa.select(unindexed.c.object_id).where(unindexed.c.object_id.in_(sa.bindparam("object_ids", expanding=True)))
)
