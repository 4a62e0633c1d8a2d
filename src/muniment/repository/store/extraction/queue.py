"""Which files wait for an extractor, and which texts have been read?

The transaction that stores a content queues it too, so no file is forgotten. The row waits until an extractor leases
it, unless the text is known, and then holds the text or the reason why there is none. Each reading ends with a change
of kind `text`, because the state is a property of the object (docs/decisions/0096).

Owners take turns (``turns``); an owner's next file is the one due longest, then the one whose object was made first.
"""

import uuid
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import (
    PreparedStatement,
    portions,
    repository_column,
    repository_tables,
    required,
    required_columns,
)
from muniment.database.statements import count_where, without_index
from muniment.ground.clock import SECOND, Instant
from muniment.repository.store.change_log import changes
from muniment.repository.store.extraction import turns

State = Literal["waiting", "done", "no-text", "unsupported", "failed", "empty"]
"""What is known of the text of an object's content. It is ``waiting``, read with text (``done``) or without
(``no-text``), of a kind that nothing here reads (``unsupported``), not readable (``failed``), or ``empty`` without
content.
"""

WAITS_FOR_TIKA = "It waits for the Tika server, which is away."

_OF_TIKA = sa.text(f"reason = '{WAITS_FOR_TIKA}' AND lease IS NULL")
"""A query must repeat this text to use the index of what waits for Tika."""

texts = sa.Table(
    "texts",
    repository_tables,
    sa.Column("object_id", sa.String(16), primary_key=True),
    repository_column(),
    required("owner_key", sa.String(400)),
    required("content_key", sa.String(200)),
    *required_columns(sa.Text, "media_type", "file_name"),
    required("state", sa.String(11)),
    required("reason", sa.Text),
    *required_columns(sa.Integer, "attempts", "losses"),
    sa.Column("lease", sa.String(36)),
    required("due", sa.BigInteger),
    required("text", sa.Text),
    required("seq", sa.BigInteger),
    sa.Index("ix_texts_queue", "state", "owner_key", "due", "seq"),
    sa.Index("ix_texts_of_tika", "object_id", sqlite_where=_OF_TIKA, postgresql_where=_OF_TIKA),
    sa.Index("ix_texts_states", "repository_id", "state"),
)

ATTEMPTS = 3

LOSSES = 10
"""A file that lost so many extractors is not tried again."""

LEASE: Instant = 30 * SECOND


_PAUSE: Instant = 5 * SECOND
_LONG_PAUSE: Instant = 600 * SECOND
_MANY = 500
_MOST_REMOVALS = 100
"""One ``take`` removes at most so many owners from the line, so that its transaction stays short."""


class IndexStatus(msgspec.Struct, frozen=True):
    """``reason`` says what was left out of the text, or why there is none."""

    state: State
    reason: str
    attempts: int


EMPTY = IndexStatus("empty", "The object has no content.", 0)


TEXTLESS = IndexStatus("no-text", "No text was found in the file.", 0)


class UnreadFile(NamedTuple):
    """A file whose text was not read, or not wholly; ``seq`` is its object's counter."""

    object_id: str
    seq: int
    status: IndexStatus


class ExtractedText(msgspec.Struct, frozen=True):
    """``note`` says what was left out, or why there is no text."""

    text: str
    note: str = ""


class File(msgspec.Struct, frozen=True):
    """The content of an object, with its text if known. ``seq`` is the object's counter: the lowest is next of an
    owner's files due at the same time.
    """

    object_id: str
    seq: int
    owner_key: str
    content_key: str
    media_type: str
    file_name: str
    text: ExtractedText | None = None


class Job(msgspec.Struct, frozen=True):
    """A leased file; ``attempts`` failed before, and it could be taken since ``due``."""

    object_id: str
    repository_id: int
    content_key: str
    media_type: str
    file_name: str
    attempts: int
    lease: str
    due: Instant


def enqueue(cx: Connection, repository_id: int, file: File, now: Instant) -> None:
    """Queue a content in the transaction that stores it, and drop the text of the former one."""
    drop(cx, [file.object_id])
    enqueue_new(cx, repository_id, [file], now)


def rename(cx: Connection, object_ids: Sequence[str], content_key: str, new_key: str) -> None:
    """Replace a key by one with the same bytes, in the transaction that changes the objects' rows. At most a few
    hundred objects.
    """
    where = sa.and_(texts.c.object_id.in_(object_ids), texts.c.content_key == content_key)
    cx.execute(texts.update().where(where).values(content_key=new_key))


def enqueue_new(cx: Connection, repository_id: int, files: Sequence[File], now: Instant) -> None:
    rows = [
        {
            "object_id": file.object_id,
            "seq": file.seq,
            "repository_id": repository_id,
            "owner_key": file.owner_key,
            "content_key": file.content_key,
            "media_type": _storable(file.media_type),
            "file_name": _storable(file.file_name),
            "state": "waiting",
            "reason": "",
            "attempts": 0,
            "losses": 0,
            "lease": None,
            "due": now,
            "text": "",
        }
        | (_outcome(file.text) if file.text else {})
        for file in files
    ]
    if rows:
        _INSERT.run_for_each(cx, rows)
    turns.join(cx, {file.owner_key for file in files if file.text is None})


def change_owner(cx: Connection, object_ids: Sequence[str], owner_key: str) -> None:
    waiting = 0
    for ids in portions(object_ids):
        portion = sa.and_(texts.c.object_id.in_(ids), without_index(texts.c.state) == "waiting")
        waiting += cx.execute(texts.update().where(portion).values(owner_key=owner_key)).rowcount
    if waiting:
        turns.join(cx, [owner_key])


def drop(cx: Connection, object_ids: Sequence[str]) -> None:
    cx.execute(texts.delete().where(texts.c.object_id.in_(object_ids)))


def status(cx: Connection, object_id: str) -> IndexStatus:
    return statuses(cx, [object_id])[object_id]


def statuses(cx: Connection, object_ids: Sequence[str]) -> dict[str, IndexStatus]:
    states = dict.fromkeys(object_ids, EMPTY)
    for ids in portions(object_ids):
        rows = _STATUSES.all(cx, object_ids=ids)
        states.update((object_id, IndexStatus(*status)) for object_id, *status in rows)
    return states


def text_of(cx: Connection, object_ids: Sequence[str], most: int | None = None) -> dict[str, str]:
    """Objects without text are left out; at most ``most`` characters of each are read."""
    texts_by_id: dict[str, str] = {}
    for ids in portions(object_ids):
        rows = _TEXTS.all(cx, object_ids=ids) if most is None else _BEGINNINGS.all(cx, object_ids=ids, most=most)
        texts_by_id.update((object_id, text) for object_id, text, state in rows if state == "done")
    return texts_by_id


def state_of(object_id: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """Make an SQL expression of a text's state, for filters and sorts."""
    state = sa.select(texts.c.state).where(texts.c.object_id == object_id).scalar_subquery()
    return sa.func.coalesce(state, sa.literal(EMPTY.state, sa.Text()))


def counts(cx: Connection, repository_id: int) -> dict[State, int]:
    by_state: dict[State, int] = dict.fromkeys(("waiting", "done", "no-text", "unsupported", "failed"), 0)
    query = sa.select(texts.c.state, sa.func.count()).where(texts.c.repository_id == repository_id)
    by_state.update((state, count) for state, count in cx.execute(query.group_by(texts.c.state)))
    return by_state


def reasons(cx: Connection, repository_id: int) -> list[tuple[State, str, int]]:
    """Count files not read, or not wholly, the commonest reason first."""
    number = sa.func.count().label("number")
    query = sa.select(texts.c.state, texts.c.reason, number).where(_not_wholly_read(repository_id))
    query = query.group_by(texts.c.state, texts.c.reason).order_by(number.desc(), texts.c.state, texts.c.reason)
    return [(state, reason, count) for state, reason, count in cx.execute(query)]


def unread(cx: Connection, repository_id: int, after_seq: int, limit: int) -> list[UnreadFile]:
    """List files not read, or not wholly, in the order in which their objects were made.

    ``after_seq`` is the counter of the object after which the list goes on.
    """
    columns = (texts.c.object_id, texts.c.seq, texts.c.state, texts.c.reason, texts.c.attempts)
    query = sa.select(*columns).where(_not_wholly_read(repository_id), texts.c.seq > after_seq)
    rows = cx.execute(query.order_by(texts.c.seq).limit(limit))
    return [UnreadFile(row.object_id, row.seq, IndexStatus(*row[2:])) for row in rows]


def _not_wholly_read(repository_id: int) -> sa.ColumnElement[bool]:
    unread_states = sa.or_(texts.c.state != "done", texts.c.reason != "")
    return sa.and_(texts.c.repository_id == repository_id, unread_states)


def waits(cx: Connection, now: Instant) -> bool:
    """Has ``take`` something to do? This needs no write lock."""
    return cx.execute(turns.in_line(_FIRST_DUE, now)).first() is not None


def take(cx: Connection, now: Instant) -> Job | None:
    """Lease the next file of the owner whose turn it is, so that no other extractor gets it.

    Returns None if nothing is due, or after removing ``_MOST_REMOVALS`` owners without a waiting file from the line. A
    job whose lease ran out was lost with its extractor; one lost too often is given up here.
    """
    last_turn, removals = turns.FRONT, 0
    while turn := turns.next_due(cx, last_turn, _FIRST_DUE, now):
        row = cx.execute(_FIRST, {"owner": turn.owner_key}).first()
        if row is None:
            if turns.lock(cx, turn) and cx.execute(_FIRST, {"owner": turn.owner_key}).first() is None:
                turns.leave(cx, turn)
                removals += 1
            if removals == _MOST_REMOVALS:
                return None
            last_turn = turn
        elif row.due > now:
            last_turn = turn
        elif (losses := row.losses + (row.lease is not None)) < LOSSES:
            if job := _lease(cx, row, turn, losses, now):
                return job
        else:
            _change(
                cx,
                row.object_id,
                row.lease,
                state="failed",
                reason=f"The extractor was lost {losses} times while it read this file; it is not tried again.",
                losses=losses,
                lease=None,
            )
            changes.note(cx, row.repository_id, row.object_id, "text", now)
        # If ``last_turn`` is unchanged, the next round looks at the same owner again, who has another first file now.
    return None


def renew(cx: Connection, job: Job, now: Instant) -> bool:
    """Return False if the content is gone, or another extractor has the job."""
    return _change(cx, job.object_id, job.lease, due=now + LEASE)


def release(cx: Connection, job: Job, now: Instant) -> None:
    """Give the job back. This counts as no attempt."""
    _change(cx, job.object_id, job.lease, lease=None, due=now)


def finish(cx: Connection, job: Job, text: str, now: Instant, note: str = "") -> bool:
    """Store the text, and note a change of kind `text`. Returns False if the job is lost, as ``renew`` does."""
    return _end(cx, job, now, **_outcome(ExtractedText(text, note)))


def fail(cx: Connection, job: Job, reason: str, now: Instant, state: Literal["failed", "unsupported", "retry"]) -> bool:
    """Note a change of kind `text`, or with `retry`, let the file wait for its next attempt if one is left."""
    reason = _storable(reason)
    if state != "retry":
        return _end(cx, job, now, state=state, reason=reason)
    attempts = job.attempts + 1
    if attempts < ATTEMPTS:
        return _change(cx, job.object_id, job.lease, lease=None, reason=reason, attempts=attempts, due=now + _PAUSE)
    final = f"{reason} It was tried {attempts} times and is not tried again."
    return _end(cx, job, now, state="failed", reason=final, attempts=attempts)


def _end(cx: Connection, job: Job, now: Instant, **outcome: object) -> bool:
    is_stored = _change(cx, job.object_id, job.lease, lease=None, **outcome)
    if is_stored:
        changes.note(cx, job.repository_id, job.object_id, "text", now)
    return is_stored


def postpone(cx: Connection, job: Job, now: Instant) -> None:
    """Let a file wait for ten minutes or until ``wake``; this is no attempt."""
    _change(cx, job.object_id, job.lease, lease=None, due=now + _LONG_PAUSE, reason=WAITS_FOR_TIKA)


def waiting_for_tika(cx: Connection) -> list[str]:
    """List objects of which the Tika server has to read the file or a part."""
    return list(cx.scalars(sa.select(texts.c.object_id).where(*_WAITS_FOR_TIKA)))


def count_of_tika(cx: Connection, repository_id: int) -> int:
    return count_where(
        cx, texts.c.repository_id == repository_id, texts.c.state == "waiting", texts.c.reason == WAITS_FOR_TIKA
    )


def wake(cx: Connection, object_ids: Sequence[str], now: Instant) -> None:
    """Queue some hundred files of ``waiting_for_tika`` anew; until read, their texts are not found."""
    _queue_anew(cx, object_ids, sa.and_(*_WAITS_FOR_TIKA), now)


def read_again(cx: Connection, repository_id: int, after_seq: int, now: Instant) -> tuple[int, int]:
    """Queue the next few hundred files without text anew, in the order of ``unread``; return how many, and the last
    object's counter.
    """
    in_repository, states = texts.c.repository_id == repository_id, ("failed", "unsupported", "no-text")
    query = sa.select(texts.c.object_id, texts.c.seq).where(in_repository, texts.c.state.in_(states))
    rows = cx.execute(query.where(texts.c.seq > after_seq).order_by(texts.c.seq).limit(_MANY)).all()
    _queue_anew(cx, [row.object_id for row in rows], without_index(texts.c.state).in_(states), now)
    return len(rows), rows[-1].seq if rows else after_seq


def _queue_anew(cx: Connection, object_ids: Sequence[str], where: sa.ColumnElement[bool], now: Instant) -> None:
    query = sa.select(texts.c.object_id, texts.c.repository_id, texts.c.owner_key)
    rows = cx.execute(query.where(texts.c.object_id.in_(object_ids), where)).all()
    which = sa.and_(texts.c.object_id.in_([row.object_id for row in rows]), where)
    cx.execute(texts.update().where(which).values(state="waiting", reason="", attempts=0, losses=0, due=now))
    turns.join(cx, {row.owner_key for row in rows})
    for row in rows:
        changes.note(cx, row.repository_id, row.object_id, "text", now)


def _lease(cx: Connection, row: Any, turn: turns.Turn, losses: int, now: Instant) -> Job | None:
    lease = str(uuid.uuid4())
    if not _change(cx, row.object_id, row.lease, lease=lease, due=now + LEASE, losses=losses):
        return None  # the extractor whose lease ran out has just finished
    turns.go_to_the_end(cx, turn)
    return msgspec.structs.replace(Job(*row[:-1]), lease=lease)


def _change(cx: Connection, object_id: str, current_lease: str | None, **values: object) -> bool:
    same_lease = texts.c.lease == current_lease if current_lease else texts.c.lease.is_(None)
    where = sa.and_(texts.c.object_id == object_id, texts.c.state == "waiting", same_lease)
    return cx.execute(texts.update().where(where).values(**values)).rowcount == 1


def _outcome(result: ExtractedText) -> dict[str, object]:
    text, note = _storable(result.text), _storable(result.note)
    if text.strip():
        return {"state": "done", "reason": note, "text": text}
    return {"state": "no-text", "reason": note or TEXTLESS.reason, "text": ""}


def _storable(text: str) -> str:
    if text.isascii():
        return text.replace("\0", "")
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


_WAITS_FOR_TIKA = without_index(texts.c.state).in_(("waiting", "done")), _OF_TIKA
_INSERT = PreparedStatement(texts.insert())
_OF_THESE = texts.c.object_id.in_(sa.bindparam("object_ids", expanding=True))
"""With the state in the condition, too, SQLite would read every text instead of looking these up."""

_STATUSES = PreparedStatement(
    sa.select(texts.c.object_id, texts.c.state, texts.c.reason, texts.c.attempts).where(_OF_THESE)
)
_TEXTS = PreparedStatement(sa.select(texts.c.object_id, texts.c.text, texts.c.state).where(_OF_THESE))
_BEGINNINGS = PreparedStatement(
    sa.select(texts.c.object_id, sa.func.substr(texts.c.text, 1, sa.bindparam("most")), texts.c.state).where(_OF_THESE)
)
_FIRST = (
    sa.select(*(texts.c[name] for name in Job.__struct_fields__), texts.c.losses)
    .where(texts.c.state == "waiting", texts.c.owner_key == sa.bindparam("owner"))
    .order_by(texts.c.due, texts.c.seq)
    .limit(1)
)
"""Finds an owner's first file, even if it is being read, or not due yet."""

_FIRST_DUE = (
    sa.select(texts.c.due)
    .where(texts.c.state == "waiting", texts.c.owner_key == turns.OWNER_KEY)
    .order_by(texts.c.due, texts.c.seq)
    .limit(1)
    .scalar_subquery()
)
