"""What each object's file says: the durable queue of files to read, and the text that was kept of them.

A row is made in the transaction that keeps a content, so nothing accepted is forgotten; it waits until an extractor
leases it, and then holds the text or the reason why there is none. Finishing notes a change of kind `text`.
"""

import uuid
from collections.abc import Sequence
from typing import Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.db import SECOND, Instant, repository_tables
from muniment.repository import changes

State = Literal["waiting", "done", "failed", "unsupported", "empty"]

texts = sa.Table(
    "texts",
    repository_tables,
    sa.Column("object_id", sa.String(16), primary_key=True),
    sa.Column("repository_id", sa.ForeignKey("repositories.id"), nullable=False),
    sa.Column("content_key", sa.String(200), nullable=False),
    sa.Column("media_type", sa.Text, nullable=False),
    sa.Column("file_name", sa.Text, nullable=False),
    sa.Column("state", sa.String(11), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("losses", sa.Integer, nullable=False),
    sa.Column("lease", sa.String(36), nullable=True),
    sa.Column("due", sa.BigInteger, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Index("ix_texts_queue", "state", "due"),
    sa.Index("ix_texts_states", "repository_id", "state"),
)

ATTEMPTS = 3
"""How often a file that brings its reader down is tried before it is parked."""

LOSSES = 10
"""How often a file may be under way when its extractor is lost before it is parked."""

LEASE: Instant = 30 * SECOND
"""How long a job is its taker's unless renewed."""

_PAUSE: Instant = 5 * SECOND
_MANY = 500


class IndexStatus(msgspec.Struct, frozen=True):
    """How far an object's text is, why there is none, and how often its file brought a reader down."""

    state: State
    reason: str
    attempts: int


class Found(msgspec.Struct, frozen=True):
    """What a file says; ``note`` says what was left out, or why there is no text, and is empty where all is said."""

    text: str
    note: str = ""


class File(msgspec.Struct, frozen=True):
    """The content of a new object: where it is, what it is said to be, and its text where that is known already."""

    object_id: str
    content_key: str
    media_type: str
    file_name: str
    found: Found | None = None


class Job(msgspec.Struct, frozen=True):
    """One file to read, leased to its taker."""

    object_id: str
    repository_id: int
    content_key: str
    media_type: str
    file_name: str
    attempts: int
    lease: str


def enqueue(
    cx: Connection, repository_id: int, object_id: str, content_key: str, media_type: str, file_name: str, now: Instant
) -> None:
    """Ask for the text of the object's content, in the transaction that keeps it; an earlier one's text is dropped."""
    drop(cx, object_id)
    enqueue_new(cx, repository_id, [File(object_id, content_key, media_type, file_name)], now)


def enqueue_new(cx: Connection, repository_id: int, files: Sequence[File], now: Instant) -> None:
    """Ask for the texts of new objects, in the transaction that makes them; one that is known is kept at once."""
    rows = [
        {
            "object_id": file.object_id,
            "repository_id": repository_id,
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
        | (_outcome(file.found) if file.found else {})
        for file in files
    ]
    if rows:
        cx.execute(texts.insert(), rows)


def drop(cx: Connection, object_id: str) -> None:
    """Forget the object's text and its place in the queue: the object, or its content, is gone."""
    cx.execute(texts.delete().where(texts.c.object_id == object_id))


def status(cx: Connection, object_id: str) -> IndexStatus:
    """Say how far the object's text is; an object without content is `empty`."""
    return statuses(cx, [object_id])[object_id]


def statuses(cx: Connection, object_ids: Sequence[str]) -> dict[str, IndexStatus]:
    """Say how far the text of each of these objects is."""
    found = dict.fromkeys(object_ids, IndexStatus("empty", "The object has no content.", 0))
    for start in range(0, len(object_ids), _MANY):
        wanted = sa.select(texts.c.object_id, texts.c.state, texts.c.reason, texts.c.attempts).where(
            texts.c.object_id.in_(object_ids[start : start + _MANY])
        )
        found.update((row.object_id, IndexStatus(*row[1:])) for row in cx.execute(wanted))
    return found


def text_of(cx: Connection, object_ids: Sequence[str]) -> dict[str, str]:
    """Read the kept texts; an object without text is left out."""
    found: dict[str, str] = {}
    for start in range(0, len(object_ids), _MANY):
        # With the state in the condition SQLite reads every text there is instead of looking these up.
        wanted = sa.select(texts.c.object_id, texts.c.text, texts.c.state).where(
            texts.c.object_id.in_(object_ids[start : start + _MANY])
        )
        found.update((row.object_id, row.text) for row in cx.execute(wanted) if row.state == "done")
    return found


def counts(cx: Connection, repository_id: int) -> dict[State, int]:
    """Count the repository's files by state; every state is named."""
    found: dict[State, int] = {"waiting": 0, "done": 0, "failed": 0, "unsupported": 0, "empty": 0}
    wanted = sa.select(texts.c.state, sa.func.count()).where(texts.c.repository_id == repository_id)
    found.update((state, count) for state, count in cx.execute(wanted.group_by(texts.c.state)))
    return found


def reasons(cx: Connection, repository_id: int, limit: int) -> list[tuple[str, str, IndexStatus]]:
    """List files without text that should have some, as object id, file name, status: what an operator asks after."""
    wanted = (
        sa.select(texts.c.object_id, texts.c.file_name, texts.c.state, texts.c.reason, texts.c.attempts)
        .where(texts.c.repository_id == repository_id, texts.c.state.in_(("failed", "unsupported")))
        .order_by(texts.c.state, texts.c.object_id)
        .limit(limit)
    )
    return [(row.object_id, row.file_name, IndexStatus(*row[2:])) for row in cx.execute(wanted)]


def waits(cx: Connection, now: Instant) -> bool:
    """Say whether a job could be taken, without taking the database's write lock."""
    return cx.execute(_takeable(now)).first() is not None


def take(cx: Connection, now: Instant) -> Job | None:
    """Lease the job that has waited longest, so that no other extractor gets it; None when nothing is due.

    A job whose lease ran out was lost with its extractor; one lost too often is parked here.
    """
    while row := cx.execute(_takeable(now).with_for_update(skip_locked=True)).first():
        losses = row.losses + (row.lease is not None)
        if losses < LOSSES:
            lease = str(uuid.uuid4())
            _change(cx, row.object_id, row.lease, lease=lease, due=now + LEASE, losses=losses)
            return Job(
                row.object_id,
                row.repository_id,
                row.content_key,
                row.media_type,
                row.file_name,
                row.attempts,
                lease,
            )
        _change(
            cx,
            row.object_id,
            row.lease,
            state="failed",
            reason=f"The extractor was lost {losses} times while it read this file; it is not tried again.",
            losses=losses,
            lease=None,
        )
    return None


def renew(cx: Connection, job: Job, now: Instant) -> bool:
    """Hold the job for longer; False when it is no longer the taker's: the object or its content is gone."""
    return _change(cx, job.object_id, job.lease, due=now + LEASE)


def release(cx: Connection, job: Job, now: Instant) -> None:
    """Give the job back unread, as when the extractor stops; that counts against nobody."""
    _change(cx, job.object_id, job.lease, lease=None, due=now)


def finish(cx: Connection, job: Job, text: str, now: Instant, note: str = "") -> bool:
    """Keep the text, and note a change of kind `text` if there is any; False when the content is no longer that one.

    ``note`` says what the reader left out, or why there is nothing to keep.
    """
    outcome = _outcome(Found(text, note))
    done = _change(cx, job.object_id, job.lease, lease=None, **outcome)
    if done and outcome["state"] == "done":
        changes.note(cx, job.repository_id, job.object_id, "text", now)
    return done


def fail(cx: Connection, job: Job, reason: str, now: Instant, state: Literal["failed", "unsupported", "retry"]) -> bool:
    """Keep the reason why there is no text: for good, or (`retry`) until the file has had its attempts.

    False when the content is no longer that one.
    """
    if state != "retry":
        return _change(cx, job.object_id, job.lease, state=state, reason=_storable(reason), lease=None)
    attempts = job.attempts + 1
    if attempts >= ATTEMPTS:
        parked = f"{_storable(reason)} It was tried {attempts} times and is not tried again."
        return _change(cx, job.object_id, job.lease, state="failed", reason=parked, attempts=attempts, lease=None)
    return _change(
        cx, job.object_id, job.lease, reason=_storable(reason), attempts=attempts, lease=None, due=now + _PAUSE
    )


def _takeable(now: Instant) -> sa.Select[tuple[object, ...]]:
    return (
        sa.select(
            texts.c.object_id,
            texts.c.repository_id,
            texts.c.content_key,
            texts.c.media_type,
            texts.c.file_name,
            texts.c.attempts,
            texts.c.losses,
            texts.c.lease,
        )
        .where(texts.c.state == "waiting", texts.c.due <= now)
        .order_by(texts.c.due, texts.c.object_id)
        .limit(1)
    )


def _change(cx: Connection, object_id: str, held: str | None, **values: object) -> bool:
    still = texts.c.lease == held if held else texts.c.lease.is_(None)
    where = sa.and_(texts.c.object_id == object_id, texts.c.state == "waiting", still)
    return cx.execute(texts.update().where(where).values(**values)).rowcount == 1


def _outcome(found: Found) -> dict[str, object]:
    kept, note = _storable(found.text), _storable(found.note)
    if kept.strip():
        return {"state": "done", "reason": note, "text": kept}
    return {"state": "empty", "reason": note or "The file holds no text.", "text": ""}


def _storable(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
