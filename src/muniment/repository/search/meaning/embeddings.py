"""The embeddings of objects: a vector for each passage.

An id in an index always stands for the same vectors. The database deletes the row with its object.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import BigId, portions, repository_tables, required, required_columns
from muniment.ground.clock import Instant
from muniment.repository.store.change_log import changes

DIMENSIONS = 384
"""Each number is a signed byte; only a vector's direction counts."""

embeddings = sa.Table(
    "embeddings",
    repository_tables,
    sa.Column("id", BigId, primary_key=True),
    required("object_id", sa.ForeignKey("objects.id", ondelete="CASCADE"), unique=True),
    *required_columns(sa.LargeBinary, "digest", "vectors"),
    sqlite_autoincrement=True,
)

_MANY = 500


class Embedding(msgspec.Struct, frozen=True):
    """``digest`` is of what the row was made from (``passages.digest``). The id is 0 without vectors: the object is
    near nothing.
    """

    id: int
    digest: bytes


class NewEmbedding(msgspec.Struct, frozen=True):
    """Vectors of passages, ``DIMENSIONS`` bytes each."""

    object_id: str
    digest: bytes
    vectors: bytes


def are_there(cx: Connection) -> bool:
    return cx.execute(sa.select(embeddings.c.id).limit(1)).first() is not None


def of_objects(cx: Connection, object_ids: Collection[str]) -> dict[str, Embedding]:
    found: dict[str, Embedding] = {}
    for portion in portions(object_ids, _MANY):
        size = sa.func.length(embeddings.c.vectors)
        query = sa.select(embeddings.c.object_id, embeddings.c.id, embeddings.c.digest, size)
        for object_id, row_id, row_digest, length in cx.execute(query.where(embeddings.c.object_id.in_(portion))):
            found[object_id] = Embedding(row_id if length else 0, bytes(row_digest))
    return found


def count_vectors(cx: Connection, ids: Sequence[int], most: int) -> int:
    """Rows that are gone have none; beyond ``most``, counting ends."""
    count = 0
    for portion in portions(ids, _MANY):
        size = sa.func.sum(sa.func.length(embeddings.c.vectors))
        count += (cx.scalar(sa.select(size).where(embeddings.c.id.in_(portion))) or 0) // DIMENSIONS
        if count > most:
            break
    return count


def vectors(cx: Connection, ids: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Yield them with ids, in no order, without rows that are gone."""
    for portion in portions(ids, _MANY):
        query = sa.select(embeddings.c.id, embeddings.c.vectors).where(embeddings.c.id.in_(portion))
        for row_id, row_vectors in cx.execute(query):
            yield row_id, bytes(row_vectors)


def keep_embeddings(cx: Connection, repository_id: int, new: Sequence[NewEmbedding], now: Instant) -> int:
    """Store, and note for the index, what objects still exist; return how many."""
    former = embeddings.c.object_id.in_([each.object_id for each in new])
    cx.execute(embeddings.delete().where(former))
    stored_ids = []
    for each in new:
        try:
            with cx.begin_nested():
                cx.execute(embeddings.insert().values(_row(each)))
        except sa.exc.IntegrityError:
            continue  # The object has been deleted meanwhile.
        stored_ids.append(each.object_id)
    changes.note_all(cx, repository_id, stored_ids, "text", now)
    return len(stored_ids)


def _row(new: NewEmbedding) -> Mapping[str, object]:
    return {"object_id": new.object_id, "digest": new.digest, "vectors": new.vectors}
