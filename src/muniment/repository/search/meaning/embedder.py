"""The embedder: it follows the change logs, and keeps the embedding of every object up to date.

It does not embed again what is stored, so a killed one repeats little.
"""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple, Protocol

import msgspec
import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from muniment.database.connections import Busy, Database
from muniment.database.polls import CommitWatch
from muniment.ground.clock import SECOND, Instant
from muniment.repository.search.meaning import embeddings
from muniment.repository.search.meaning.embeddings import NewEmbedding
from muniment.repository.search.meaning.passages import READ, digest, heading, passages
from muniment.repository.search.meaning.process import NotEmbedded
from muniment.repository.store import leases, repositories
from muniment.repository.store.change_log import changes, followers
from muniment.repository.store.extraction import queue
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.repositories import Repository

FOLLOWER = "meaning"

_OBJECTS, _LINES = 100, 200

_PASSAGES = 16
"""The confined process gets so many at a time, or those of one object."""

_TRIES = 3
"""A text that fails so often gets no vectors: only its words find it."""

_NOTED_AGAIN: Instant = 300 * SECOND
"""So often the position in a repository without changes is noted again."""

_POLL_SECONDS, _IDLE_POLL_SECONDS, _LOOK_SECONDS, _AFTER_AN_ERROR_SECONDS = 0.05, 0.2, 1.0, 2.0
_LEASE_SECONDS = 60
_LEASE = leases.Lease("meaning", "embedder")

log = structlog.get_logger("muniment.meaning")


class Embeds(Protocol):
    """What turns texts into vectors: a confined process."""

    def vectors(self, texts: Sequence[str]) -> list[bytes]:
        """Raises NotEmbedded."""


class Embedder:
    """Embeds the objects of all repositories, some at a time."""

    def __init__(self, database: Database, embeds: Embeds, clock: Callable[[], Instant]) -> None:
        self._database, self._embeds, self._clock = database, embeds, clock
        self._lease = leases.HeldLease(database, _LEASE, uuid.uuid4().hex, clock, seconds=_LEASE_SECONDS)
        self._passes: dict[int, _Pass] = {}
        self._noted: dict[int, Instant] = {}
        self._failures: Counter[str] = Counter()

    def advance(self) -> bool:
        """If another process holds the lease, nothing happens.

        Raises Busy, DBAPIError, NotEmbedded.
        """
        if not self._lease.holds():
            return False
        with self._database.read() as cx:
            every = repositories.all_repositories(cx)
        return sum(self._step(repository) for repository in every) > 0

    def release(self) -> None:
        self._lease.release()

    def _step(self, repository: Repository) -> bool:
        if repository.id in self._passes:
            return self._look_at_all(repository, self._passes[repository.id])
        with self._database.read() as cx:
            position = followers.position(cx, repository.id, FOLLOWER)
        if position is None:
            return self._begin_pass(repository)
        try:
            with self._database.read() as cx:
                lines = changes.after(cx, repository.id, position, _LINES)
                object_ids = list(dict.fromkeys(line.object_id for line in lines))
                stale = self._stale(cx, list(inventory.rows(cx, repository.id, object_ids).values()))
        except changes.LinesGone:
            return self._begin_pass(repository)
        if not lines and self._clock() - self._noted.get(repository.id, 0) >= _NOTED_AGAIN:
            self._note(repository, position)  # Otherwise the log forgets who follows a quiet repository.
        if lines and self._embed(repository, stale):
            self._note(repository, lines[-1].position)
        return bool(lines)

    def _begin_pass(self, repository: Repository) -> bool:
        with self._database.read() as cx:
            self._passes[repository.id] = _Pass(changes.settled_position(cx, repository.id))
        return True

    def _look_at_all(self, repository: Repository, of_all: "_Pass") -> bool:
        with self._database.read() as cx:
            some = inventory.next_objects(cx, repository.id, of_all.after, _OBJECTS)
            stale = self._stale(cx, some)
        if not self._embed(repository, stale):
            return True
        if some:
            of_all.after = some[-1].seq
        else:
            del self._passes[repository.id]
            self._note(repository, of_all.start)
        return True

    def _stale(self, cx: Connection, some: Sequence[StoredObject]) -> "list[_Stale]":
        texts = queue.text_of(cx, [stored.id for stored in some], READ)
        present = embeddings.of_objects(cx, [stored.id for stored in some])
        stale = []
        states = queue.statuses(cx, [stored.id for stored in some])
        for stored in some:
            if states[stored.id].state == "waiting":
                continue  # Its text will be noted in the log.
            of_object = heading(stored), texts.get(stored.id, "")
            digest_now = digest(*of_object)
            if stored.id not in present or present[stored.id].digest != digest_now:
                stale.append(_Stale(stored.id, digest_now, passages(*of_object)))
        return stale

    def _embed(self, repository: Repository, stale: "Sequence[_Stale]") -> bool:
        """Return False if the lease is lost, and some may not be embedded."""
        for group in _groups(stale):
            try:
                new = self._vectors_of(group)
            except NotEmbedded:
                if len(group) == 1 and self._failures[group[0].object_id] < _TRIES:
                    raise
                new = [each for one in group for each in self._alone(one)]
            with self._database.begin() as cx:
                embeddings.keep_embeddings(cx, repository.id, new, self._clock())
            if not self._lease.holds():
                return False
        return True

    def _vectors_of(self, group: "Sequence[_Stale]") -> list[NewEmbedding]:
        """Count a failure for the object if the group has one."""
        try:
            of_each = iter(self._embeds.vectors([text for each in group for text in each.passages]))
        except NotEmbedded:
            if len(group) == 1:
                self._failures[group[0].object_id] += 1
            raise
        return [
            NewEmbedding(each.object_id, each.digest, b"".join([next(of_each) for _ in each.passages]))
            for each in group
        ]

    def _alone(self, one: "_Stale") -> list[NewEmbedding]:
        if self._failures[one.object_id] < _TRIES:
            return self._vectors_of([one])
        log.warning("a text cannot be embedded", object_id=one.object_id)
        del self._failures[one.object_id]
        return [NewEmbedding(one.object_id, one.digest, b"")]

    def _note(self, repository: Repository, position: changes.Position) -> None:
        self._noted[repository.id] = now = self._clock()
        with self._database.begin() as cx:
            followers.note(cx, repository.id, FOLLOWER, position, now)


def _groups(stale: "Sequence[_Stale]") -> "Iterator[list[_Stale]]":
    group: list[_Stale] = []
    for each in stale:
        if group and sum(len(one.passages) for one in group) + len(each.passages) > _PASSAGES:
            yield group
            group = []
        group.append(each)
    if group:
        yield group


class _Pass(msgspec.Struct):
    """``start`` is the log's position at the beginning, ``after`` the last counter reached."""

    start: changes.Position
    after: int = 0


class _Stale(NamedTuple):
    object_id: str
    digest: bytes
    passages: list[str]


def run(database: Database, embeds: Embeds, stop: threading.Event, clock: Callable[[], Instant]) -> None:
    embedder = Embedder(database, embeds, clock)
    look = 0.0
    with closing(CommitWatch(database)) as watch:
        has_moved = False
        while not stop.is_set():
            try:
                if not watch.has_new_commits() and not has_moved and time.monotonic() < look:
                    watch.wait(stop, _POLL_SECONDS, _IDLE_POLL_SECONDS)
                    continue
                look = time.monotonic() + _LOOK_SECONDS
                has_moved = embedder.advance()
            except (Busy, NotEmbedded, sa.exc.DBAPIError) as error:
                log.warning("embedding waits", reason=str(error)[:300])
                has_moved = False
                stop.wait(_AFTER_AN_ERROR_SECONDS)
        embedder.release()
