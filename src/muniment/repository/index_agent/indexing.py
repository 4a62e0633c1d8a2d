"""A batch: the documents that some objects make now, and their way into the index in one commit.

An object that makes no document, or one the engine refuses, is recorded with its reason and left out: it never stops
the others.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec
import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.db import Busy, Database, repository_tables
from muniment.repository.change_log.changes import Change, Position
from muniment.repository.extraction import queue
from muniment.repository.index.contract import IndexWriter
from muniment.repository.index.document import Document, document
from muniment.repository.objects import object_types, objects
from muniment.repository.objects.object_types import Catalogue
from muniment.repository.objects.objects import StoredObject
from muniment.repository.permissions import acls
from muniment.repository.repositories import Repository

unindexed = sa.Table(
    "unindexed",
    repository_tables,
    sa.Column("object_id", sa.String(16), primary_key=True),
    sa.Column("repository_id", sa.ForeignKey("repositories.id"), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("noted", sa.BigInteger, nullable=False),
)

CHARACTERS = 8_000_000
"""Text of one batch, in characters, after which it is closed early."""

log = structlog.get_logger("muniment.agent")

_TEXTS_AT_A_TIME = 25
_SMALL_TEXTS = 256 * 1024
"""Bytes of content up to which more than so many texts are read at a time; what is packed holds more than its bytes."""


class Batch(msgspec.Struct):
    """Documents made of some objects. ``done`` names every object looked at, ``refused`` those without a document."""

    documents: list[Document] = []
    gone: list[str] = []
    refused: dict[str, str] = {}
    done: set[str] = set()
    excused: set[str] = set()


def of_objects(cx: Connection, repository: Repository, object_ids: Sequence[str]) -> Batch:
    """Make the documents of these objects, in this order; stops early once they hold much text."""
    catalogue = object_types.catalogue(cx, repository.id)
    made, characters = Batch(), 0
    rows = objects.rows(cx, repository.id, object_ids)
    for some in _portions(object_ids, rows):
        characters += _add(cx, made, catalogue, some, rows)
        if characters > CHARACTERS:
            break
    made.excused = _excused(cx, made.done)
    return made


def every(database: Database, repository: Repository) -> Iterator[Batch]:
    """Make every object's document, each page of them in a read of its own."""
    last: int | None = 0
    while last is not None:
        with database.read() as cx:
            made, last = _page(cx, repository, last)
        yield made


def every_at_once(cx: Connection, repository: Repository) -> Iterator[Batch]:
    """Make every object's document, all in one read."""
    last: int | None = 0
    while last is not None:
        made, last = _page(cx, repository, last)
        yield made


def commit(
    database: Database, repository: Repository, writer: IndexWriter, made: Batch, position: Position, now: Instant
) -> None:
    """Commit the documents and the position; an object the engine refuses is recorded with its reason and left out."""
    before = writer.position
    try:
        if made.refused:
            _record(database, repository, made.refused, now)
        # Before the commit: whoever is killed between the two repeats the batch, and finds nothing left to do here.
        readmit(database, made.excused - made.refused.keys())
        writer.apply(made.documents, [*made.gone, *made.refused], position)
    except (OSError, MemoryError, Busy, sa.exc.SQLAlchemyError):
        raise
    except Exception as error:  # noqa: BLE001 - the engine's refusals have no common class
        refused = _refused_by_engine(writer, made.documents, before, error)
        _record(database, repository, refused, now)
        made.refused |= refused
        writer.apply((), [*made.gone, *made.refused], position)


def readmit(database: Database, object_ids: Collection[str]) -> None:
    """Forget why these objects could not be indexed: now they can."""
    if object_ids:
        with database.begin() as cx:
            cx.execute(unindexed.delete().where(unindexed.c.object_id.in_(object_ids)))


def leave_out(
    database: Database, repository: Repository, writer: IndexWriter, line: Change, why: str, now: Instant
) -> None:
    """Move past a change without a document of its object, and record why."""
    writer.apply((), [line.object_id], line.position)
    log.error("object cannot be indexed", object_id=line.object_id, reason=why)
    _record(database, repository, {line.object_id: why}, now)


def reason(cx: Connection, object_id: str) -> str | None:
    """Say why an object could not be indexed; None when it could."""
    row = cx.execute(sa.select(unindexed.c.reason).where(unindexed.c.object_id == object_id)).first()
    return row.reason if row else None


def unindexed_in(cx: Connection, repository_id: int) -> set[str]:
    """Name the objects of a repository that could not be indexed."""
    return set(cx.scalars(sa.select(unindexed.c.object_id).where(unindexed.c.repository_id == repository_id)).all())


def _add(
    cx: Connection, made: Batch, catalogue: Catalogue, object_ids: Sequence[str], rows: Mapping[str, StoredObject]
) -> int:
    present = [rows[object_id] for object_id in object_ids if object_id in rows]
    texts = queue.text_of(cx, [row.id for row in present])
    named = acls.names(cx, {row.acl_id for row in present})
    for object_id in object_ids:
        made.done.add(object_id)
        row = rows.get(object_id)
        if row is None:
            made.gone.append(object_id)
            continue
        try:
            values = objects.values(row, catalogue, named[row.acl_id])
            made.documents.append(document(row, values, texts.get(object_id, ""), catalogue.ids))
        except Exception as error:
            log.exception("object cannot be indexed", object_id=object_id)
            made.refused[object_id] = f"{type(error).__name__}: {error}"[:1000]
    return sum(len(each) for each in texts.values())


def _portions(object_ids: Sequence[str], rows: Mapping[str, StoredObject]) -> Iterator[list[str]]:
    """Divide them so that the texts of one portion fit into memory: many small ones, or a few whatever they hold."""
    portion: list[str] = []
    held = 0
    for object_id in object_ids:
        content = rows[object_id].content if object_id in rows else None
        size = content.size if content else 0
        if len(portion) >= _TEXTS_AT_A_TIME and held + size > _SMALL_TEXTS:
            yield portion
            portion, held = [], 0
        portion.append(object_id)
        held += size
    if portion:
        yield portion


def _page(cx: Connection, repository: Repository, after_seq: int) -> tuple[Batch, int | None]:
    stored = objects.every(cx, repository.id, after_seq, _TEXTS_AT_A_TIME * 8)
    made, characters, last = Batch(), 0, after_seq
    catalogue = object_types.catalogue(cx, repository.id)
    rows = {row.id: row for row in stored}
    for some in _portions(list(rows), rows):
        characters += _add(cx, made, catalogue, some, rows)
        last = rows[some[-1]].seq
        if characters > CHARACTERS:
            break
    made.excused = _excused(cx, made.done)
    return made, last if stored else None


def _refused_by_engine(
    writer: IndexWriter, documents: Sequence[Document], before: Position, error: Exception
) -> dict[str, str]:
    """Apply each document alone to find those that the engine refuses; a writer that refuses everything is ill."""
    refused: dict[str, str] = {}
    for each in documents:
        try:
            writer.apply([each], (), before)
        except Exception as why:  # noqa: BLE001 - the engine's refusals have no common class
            refused[each.key] = f"{type(why).__name__}: {why}"[:1000]
            try:
                writer.apply((), [each.key], before)
            except Exception:  # noqa: BLE001 - as above
                raise error from why
            log.warning("object cannot be indexed", object_id=each.key, reason=refused[each.key])
    return refused


def _record(database: Database, repository: Repository, refused: Mapping[str, str], now: Instant) -> None:
    with database.begin() as cx:
        cx.execute(unindexed.delete().where(unindexed.c.object_id.in_(refused.keys())))
        for object_id, why in refused.items():
            cx.execute(
                unindexed.insert().values(object_id=object_id, repository_id=repository.id, reason=why, noted=now)
            )


def _excused(cx: Connection, object_ids: set[str]) -> set[str]:
    return set(cx.scalars(sa.select(unindexed.c.object_id).where(unindexed.c.object_id.in_(object_ids))).all())
