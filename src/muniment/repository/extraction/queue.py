"""What each object's file says: the durable queue of files to read, and the text that was kept of them.

A row is made in the transaction that keeps a content, so nothing accepted is forgotten; it waits until an extractor
leases it, and then holds the text or the reason why there is none. Finishing notes a change of kind `text`. Owners take
turns (``turns``); of one owner's files the one that has been due longest is next, of several due at one time the one
whose object was made first.
"""

import uuid
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.clock import SECOND, Instant
from muniment.db import repository_tables
from muniment.repository.change_log import changes
from muniment.repository.extraction import turns
from muniment.repository.extraction.turns import Turn

State = Literal["waiting", "done", "failed", "unsupported", "empty"]

texts = sa.Table(
    "texts",
    repository_tables,
    sa.Column("object_id", sa.String(16), primary_key=True),
    sa.Column("repository_id", sa.ForeignKey("repositories.id"), nullable=False),
    sa.Column("owner_key", sa.String(400), nullable=False),
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
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Index("ix_texts_queue", "state", "owner_key", "due", "seq"),
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
_SENT_AWAY = 100
"""Owners without a waiting file that one taker sends out of the line, so that its transaction stays short."""


class IndexStatus(msgspec.Struct, frozen=True):
    """How far an object's text is, why there is none, and how often its file brought a reader down."""

    state: State
    reason: str
    attempts: int


class ExtractedText(msgspec.Struct, frozen=True):
    """What a file says; ``note`` says what was left out, or why there is no text, and is empty where all is said."""

    text: str
    note: str = ""


class File(msgspec.Struct, frozen=True):
    """The content of an object: whose it is, where it is, what it is said to be, and its text where that is known.

    ``seq`` is the object's counter: of files that are due at one time the lowest is next.
    """

    object_id: str
    seq: int
    owner_key: str
    content_key: str
    media_type: str
    file_name: str
    found: ExtractedText | None = None


class Job(msgspec.Struct, frozen=True):
    """One file to read, leased to its taker."""

    object_id: str
    repository_id: int
    content_key: str
    media_type: str
    file_name: str
    attempts: int
    lease: str


def enqueue(cx: Connection, repository_id: int, file: File, now: Instant) -> None:
    """Ask for the text of an object's content, in the transaction that keeps it; an earlier one's text is dropped."""
    drop(cx, file.object_id)
    enqueue_new(cx, repository_id, [file], now)


def enqueue_new(cx: Connection, repository_id: int, files: Sequence[File], now: Instant) -> None:
    """Ask for the texts of new objects, in the transaction that makes them; one that is known is kept at once."""
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
        | (_outcome(file.found) if file.found else {})
        for file in files
    ]
    if rows:
        cx.execute(texts.insert(), rows)
    turns.join(cx, {file.owner_key for file in files if file.found is None})


def change_owner(cx: Connection, object_ids: Sequence[str], owner_key: str) -> None:
    """Let files that still wait wait in another owner's turn, in the transaction that gives the objects to them."""
    waiting = 0
    for start in range(0, len(object_ids), _MANY):
        some = sa.and_(texts.c.object_id.in_(object_ids[start : start + _MANY]), texts.c.state == "waiting")
        waiting += cx.execute(texts.update().where(some).values(owner_key=owner_key)).rowcount
    if waiting:
        turns.join(cx, [owner_key])


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
    """List files without text that should have some, as object id, file name, status: what an operator asks after.

    They are in the order of their states, then in that in which their objects were made.
    """
    wanted = (
        sa.select(texts.c.object_id, texts.c.file_name, texts.c.state, texts.c.reason, texts.c.attempts)
        .where(texts.c.repository_id == repository_id, texts.c.state.in_(("failed", "unsupported")))
        .order_by(texts.c.state, texts.c.seq)
        .limit(limit)
    )
    return [(row.object_id, row.file_name, IndexStatus(*row[2:])) for row in cx.execute(wanted)]


def waits(cx: Connection, now: Instant) -> bool:
    """Say whether there is something for ``take`` to do, without taking the database's write lock."""
    return cx.execute(turns.in_line(_FIRST_DUE, now)).first() is not None


def take(cx: Connection, now: Instant) -> Job | None:
    """Lease the next file of the owner whose turn it is, so that no other extractor gets it; None when nothing is due.

    A job whose lease ran out was lost with its extractor; one lost too often is parked here.
    """
    passed, sent_away = turns.FRONT, 0
    while turn := turns.next_after(cx, passed):
        row = cx.execute(_FIRST, {"owner": turn.owner_key}).first()
        if row is None:
            if turns.lock(cx, turn) and cx.execute(_FIRST, {"owner": turn.owner_key}).first() is None:
                turns.leave(cx, turn)
                sent_away += 1
            if sent_away == _SENT_AWAY:
                return None
            passed = turn
        elif row.due > now:
            passed = turn
        elif (losses := row.losses + (row.lease is not None)) < LOSSES:
            if job := _leased(cx, row, turn, losses, now):
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
        # Where nothing was passed, the same owner is looked at once more: their first file is another one now.
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
    outcome = _outcome(ExtractedText(text, note))
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


def _leased(cx: Connection, row: Any, turn: Turn, losses: int, now: Instant) -> Job | None:
    lease = str(uuid.uuid4())
    if not _change(cx, row.object_id, row.lease, lease=lease, due=now + LEASE, losses=losses):
        return None  # whoever held the lease that ran out has just finished
    turns.go_to_the_end(cx, turn)
    return Job(row.object_id, row.repository_id, row.content_key, row.media_type, row.file_name, row.attempts, lease)


def _change(cx: Connection, object_id: str, held: str | None, **values: object) -> bool:
    still = texts.c.lease == held if held else texts.c.lease.is_(None)
    where = sa.and_(texts.c.object_id == object_id, texts.c.state == "waiting", still)
    return cx.execute(texts.update().where(where).values(**values)).rowcount == 1


def _outcome(found: ExtractedText) -> dict[str, object]:
    kept, note = _storable(found.text), _storable(found.note)
    if kept.strip():
        return {"state": "done", "reason": note, "text": kept}
    return {"state": "empty", "reason": note or "The file holds no text.", "text": ""}


def _storable(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


_FIRST = (
    sa.select(
        texts.c.object_id,
        texts.c.repository_id,
        texts.c.content_key,
        texts.c.media_type,
        texts.c.file_name,
        texts.c.attempts,
        texts.c.losses,
        texts.c.lease,
        texts.c.due,
    )
    .where(texts.c.state == "waiting", texts.c.owner_key == sa.bindparam("owner"))
    .order_by(texts.c.due, texts.c.seq)
    .limit(1)
)
"""The file of an owner that is due first, be it under way, or only due later."""

_FIRST_DUE = (
    sa.select(texts.c.due)
    .where(texts.c.state == "waiting", texts.c.owner_key == turns.OWNER_KEY)
    .order_by(texts.c.due, texts.c.seq)
    .limit(1)
    .scalar_subquery()
)
