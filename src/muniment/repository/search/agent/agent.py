"""The index agent: it turns changes into documents, and rebuilds indexes.

A document is made from what the database holds now, so an agent that is killed repeats work, but skips no object.
"""

import itertools
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing

import sqlalchemy as sa
import structlog

from muniment.database.connections import Busy, Database
from muniment.database.polls import CommitWatch
from muniment.ground.clock import SECOND, Instant
from muniment.ground.refusals import NotStored, Refusal
from muniment.repository.refusals import IndexUnavailable, InUse
from muniment.repository.search.agent import indexing
from muniment.repository.search.agent.background import BackgroundChecks
from muniment.repository.search.agent.reindexer import Reindexer
from muniment.repository.search.answering.kept import kept_searches
from muniment.repository.search.index.contract import (
    Engine,
    EngineAway,
    Index,
    IndexWriter,
    OtherFormat,
    RepositoryIndex,
)
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes, followers
from muniment.repository.store.change_log.changes import START, LinesGone, Position
from muniment.repository.store.content.contract import ContentStore
from muniment.repository.store.leases import HeldLease, Lease
from muniment.repository.store.objects import inventory, wastebasket
from muniment.repository.store.objects.contents import compaction
from muniment.repository.store.objects.listing import object_acls
from muniment.repository.store.repositories import Repository

BATCH_CHANGES = 400
"""One commit covers so many lines of the log, until the agent knows how long its commits take."""

log = structlog.get_logger("muniment.agent")

_LOST = "Another machine rebuilds this index now: this machine did not renew its lease in time."

_FEWEST_CHANGES, _MOST_CHANGES = 200, 2000
_COMMIT_SECONDS = 0.3

_POLL_SECONDS, _IDLE_POLL_SECONDS = 0.02, 0.05
_LOOK_SECONDS = 1.0
_AFTER_AN_ERROR_SECONDS = 2.0
_FAILURES_BEFORE_ONE_BY_ONE = 1
_FAILURES_BEFORE_PASSING_OVER = 3
_PASSED_OVER = "The index engine fails on this object; the agent's log has the details."
_CHORES_SECONDS = 300.0
_PURGED_AT_A_TIME = 200
_CHORES_BETWEEN_COMPACTIONS = 12
_NOTE_AGAIN: Instant = 600 * SECOND
"""A rebuild notes its position so often, so that the log keeps the lines that it must still read."""
_COMMITS_TO_THE_END = 10
"""After so many commits, a rebuild may end when the new generation has caught up with the current one."""
_ORPHAN_AGE: Instant = 86_400 * SECOND
_SWEPT_AT_A_TIME = 200


def catch_up(
    database: Database, repository: Repository, writer: IndexWriter, now: Instant, limit: int = BATCH_CHANGES
) -> int:
    """Index the next changes, usually in one commit; return how many lines of the log it covered. Raises LinesGone when
    the log has lost changes that the index has not seen.
    """
    with database.read() as cx:
        lines = changes.after(cx, repository.id, writer.position, limit)
        if not lines:
            return 0
        batch = indexing.of_objects(cx, repository, list(dict.fromkeys(line.object_id for line in lines)))
    covered_lines = list(itertools.takewhile(lambda line: line.object_id in batch.done_ids, lines))
    indexing.commit(database, repository, writer, batch, covered_lines[-1].position, now)
    log.debug("indexed", repository=repository.name, changes=len(covered_lines), position=str(writer.position))
    return len(covered_lines)


def next_limit(limit: int, change_count: int, seconds: float) -> int:
    """A large commit takes less work for each line, but holds up whoever changed an object."""
    if change_count < limit and seconds <= _COMMIT_SECONDS:
        return limit
    fitting = int(change_count * _COMMIT_SECONDS / seconds)
    return max(_FEWEST_CHANGES, min(_MOST_CHANGES, 2 * limit, fitting))


def run(
    database: Database,
    engine: Engine,
    stop: threading.Event,
    clock: Callable[[], Instant],
    store: ContentStore | None = None,
    retention: followers.Retention = followers.Retention(),  # noqa: B008 - it does not change
    check_seconds: float = 0.0,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Work while holding the lease of the engine's indexes; wait while another machine holds it.

    ``ready`` is called once no other agent of this machine can work on them. Without a ``store``, nothing is purged
    from the wastebasket, nor content removed. Its own checks wait ``check_seconds`` before each range of objects; with
    0, it checks only on request.

    Raises InUse when another agent of this machine works on these indexes.
    """
    with engine.sole_agent() as place, ExitStack() as at_the_end:
        ready()
        tenure = HeldLease(database, Lease("agent", engine.follower()), place, clock)
        at_the_end.callback(tenure.release)
        feeders: dict[int, _Feeder] = {}
        at_the_end.callback(_close, feeders)
        watch = CommitWatch(database)
        at_the_end.callback(watch.close)
        content_chores = _ContentChores(
            database, store, HeldLease(database, Lease("compaction", "content"), place, clock)
        )
        at_the_end.callback(content_chores.stop)
        reindexer = Reindexer(
            database, lambda repository_id: feeders[repository_id].position if repository_id in feeders else None
        )
        checks = BackgroundChecks(database, engine, check_seconds)
        at_the_end.callback(checks.close)
        look, chores = 0.0, time.monotonic() + _CHORES_SECONDS
        has_moved = False
        while not stop.is_set():
            try:
                if not tenure.holds():
                    _close(feeders)
                    checks.close()
                    has_moved, look = False, 0.0
                    stop.wait(_LOOK_SECONDS)
                    continue
                # The agent also looks without a commit: another generation may be current, or the disk may have room.
                looking = time.monotonic() >= look
                if watch.has_new_commits() or has_moved or looking:
                    if looking:
                        _follow(database, feeders, engine, tenure)
                        look = time.monotonic() + _LOOK_SECONDS
                    has_moved = False
                    for feeder in feeders.values():
                        has_moved |= feeder.advance(database, clock)
                has_moved = has_moved or reindexer.advance(clock())
                if time.monotonic() >= chores:
                    _chores(database, engine, clock)
                    content_chores.begin(clock())
                    for feeder in feeders.values():
                        feeder.cut_log(database, retention, clock())
                    chores = time.monotonic() + _CHORES_SECONDS
                content_chores.advance()
                has_moved |= checks.advance(clock())
            except (Busy, sa.exc.DBAPIError, OSError) as error:
                log.warning("agent waits for the database or the disk", reason=str(error)[:300])
                has_moved, look = False, 0.0
                content_chores.stop()
                stop.wait(_AFTER_AN_ERROR_SECONDS)
            if not has_moved:
                watch.wait(stop, _POLL_SECONDS, _IDLE_POLL_SECONDS)


def rebuild(
    database: Database,
    repository: Repository,
    engine: Engine,
    clock: Callable[[], Instant],
    progress: Callable[[int], None] = lambda _indexed: None,
) -> Position:
    """Until the switch, searches use the former generation. Raises InUse when a rebuild of this index is under way on
    any machine, or another machine has taken over because this one did not renew its lease in time.
    """
    index, name = engine.index(repository), uuid.uuid4().hex
    with index.rebuilding() as place, ExitStack() as at_the_end:
        tenure = HeldLease(database, Lease("rebuild", f"{engine.follower()} {repository.id}"), place, clock, _LOST)
        if not tenure.holds():
            raise InUse("The index is being rebuilt already.")
        at_the_end.callback(tenure.release)
        generation = index.begin()
        with database.begin() as cx:
            start, noted_at = changes.settled_position(cx, repository.id), clock()
            followers.note(cx, repository.id, name, start, noted_at)
        at_the_end.callback(_leave, database, repository, name)
        writer = index.writer(generation)
        try:
            indexed, readmitted_ids = 0, set[str]()
            for batch in indexing.all_documents(database, repository):
                # The current generation still lacks these objects: their reasons stay until the switch.
                unindexed, batch.ids_not_indexed = batch.ids_not_indexed, set()
                indexing.commit(database, repository, writer, batch, START, clock())
                readmitted_ids |= unindexed - batch.refusals.keys()
                indexed += len(batch.done_ids)
                progress(indexed)
                tenure.keep()
                if clock() - noted_at > _NOTE_AGAIN:
                    noted_at = clock()
                    with database.begin() as cx:
                        followers.note(cx, repository.id, name, start, noted_at)
            writer.apply((), (), start)
            position = _follow_log(database, repository, writer, index, clock, tenure)
        finally:
            writer.close()
        tenure.keep()
        index.switch(generation)
        indexing.readmit(database, readmitted_ids)
    log.info("rebuilt", repository=repository.name, objects=indexed, position=str(position))
    return position


class _Feeder:
    def __init__(self, repository: Repository, engine: Engine, tenure: HeldLease | None = None) -> None:
        self._repository = repository
        self.language = repository.language
        self._tenure = tenure
        self._name = engine.follower()
        self._engine = engine
        self._index = engine.index(repository)
        self._generation: str | None = None
        self._writer: IndexWriter | None = None
        self._not_before = 0.0
        self._failures = 0
        self._limit = BATCH_CHANGES

    def advance(self, database: Database, clock: Callable[[], Instant]) -> bool:
        """Raises Busy and DBAPIError. After another error, a later call tries again, with only one change if the engine
        failed. A change that fails again and again is passed over.
        """
        if time.monotonic() < self._not_before:
            return False
        try:
            writer = self._current_writer(database, clock)
        except (Refusal, OSError, LinesGone) as error:
            log.warning("indexing waits", repository=self._repository.name, reason=str(error))
            self._not_before = time.monotonic() + _AFTER_AN_ERROR_SECONDS
            return False
        try:
            began = time.monotonic()
            limit = self._limit if self._failures < _FAILURES_BEFORE_ONE_BY_ONE else 1
            change_count = catch_up(database, self._repository, writer, clock(), limit)
            if limit == self._limit:
                self._limit = next_limit(limit, change_count, time.monotonic() - began)
        except (Busy, sa.exc.DBAPIError):
            raise
        except LinesGone:
            self.close()  # the next call opens the index again, and rebuilds it
            return True
        except OSError as error:
            waiting = "indexing waits" if isinstance(error, EngineAway) else "indexing waits for room on the disk"
            log.warning(waiting, repository=self._repository.name, reason=str(error))
            self._not_before = time.monotonic() + _AFTER_AN_ERROR_SECONDS
            self.close()
            return False
        except Exception:
            log.exception("indexing failed", repository=self._repository.name)
            self._failures += 1
            self._not_before = time.monotonic() + _AFTER_AN_ERROR_SECONDS
            self.close()
            return self._failures >= _FAILURES_BEFORE_PASSING_OVER and self._pass_over(database, clock)
        self._failures = 0 if change_count else self._failures
        return change_count > 0

    @property
    def position(self) -> Position | None:
        return None if self._writer is None else self._writer.position

    def cut_log(self, database: Database, retention: followers.Retention, now: Instant) -> None:
        """Each step is a short transaction of its own."""
        if self._writer is None:
            return  # the position that was noted last stays
        with database.begin() as cx:
            followers.note(cx, self._repository.id, self._name, self._writer.position, now)
        cut = 1
        while cut:
            with database.begin() as cx:
                cut = followers.cut(cx, self._repository.id, retention, now)

    def close(self) -> None:
        writer, self._writer, self._generation = self._writer, None, None
        if writer is not None:
            try:
                writer.close()
            except Exception:
                log.exception("closing the index failed", repository=self._repository.name)

    def _pass_over(self, database: Database, clock: Callable[[], Instant]) -> bool:
        """If a new writer cannot write at all, the object is not to blame."""
        try:
            writer = self._current_writer(database, clock)
            writer.apply((), (), writer.position)
            with database.read() as cx:
                lines = changes.after(cx, self._repository.id, writer.position, 1)
        except (Refusal, OSError, LinesGone) as error:
            log.warning("indexing waits", repository=self._repository.name, reason=str(error))
            self.close()
            return False
        for line in lines:
            indexing.leave_out(database, self._repository, writer, line, _PASSED_OVER, clock())
        self._failures = 0
        return True

    def _current_writer(self, database: Database, clock: Callable[[], Instant]) -> IndexWriter:
        generation = self._index.current()
        if self._writer is not None and generation == self._generation:
            return self._writer
        self.close()
        if generation is None:
            with self._index.rebuilding():
                generation = self._index.current() or self._index.begin()
                self._index.writer(generation).close()
                self._index.switch(generation)
        try:
            writer = self._index.writer(generation)
        except OtherFormat as error:
            log.warning("the index is made anew", repository=self._repository.name, reason=str(error))
            return self._rebuild(database, clock)
        with database.read() as cx:
            is_ahead = writer.position > changes.latest(cx, self._repository.id)
            is_behind = writer.position < changes.cut_to(cx, self._repository.id)
        if is_ahead or is_behind:
            reason = (
                "it is ahead of the database, as after a restore" if is_ahead else "the lines that follow it are gone"
            )
            log.warning("the index is made anew", repository=self._repository.name, reason=reason)
            writer.close()
            return self._rebuild(database, clock)
        self._writer, self._generation = writer, generation
        return writer

    def _rebuild(self, database: Database, clock: Callable[[], Instant]) -> IndexWriter:
        def renew(_indexed: int) -> None:
            if self._tenure is not None:
                self._tenure.holds()  # if the agent's lease is lost, the rebuild's own lease still counts

        rebuild(database, self._repository, self._engine, clock, renew)
        return self._current_writer(database, clock)


class _ContentChores:
    """Purges the wastebasket, unnamed content and unused space of packs, on the machine with the lease for it."""

    def __init__(self, database: Database, store: ContentStore | None, tenure: HeldLease) -> None:
        self._database, self._store, self._tenure = database, store, tenure
        self._steps: Iterator[int] | None = None
        self._chores = 0

    def begin(self, now: Instant) -> None:
        """Begin a round at the first of each ``_CHORES_BETWEEN_COMPACTIONS`` calls, if there is a store, and no round
        under way.
        """
        if self._store is not None and self._steps is None and self._chores % _CHORES_BETWEEN_COMPACTIONS == 0:
            before = now - _ORPHAN_AGE
            sweep = _sweep(self._database, self._store, before)
            purge = _purge(self._database, self._store, now)
            self._steps = itertools.chain(purge, sweep, compaction.steps(self._database, self._store, before))
        self._chores += 1

    def advance(self) -> None:
        if self._steps is None:
            return
        try:
            if not self._tenure.holds() or next(self._steps, None) is None:
                self.stop()
        except NotStored as refusal:
            log.warning("the sweep and the packs wait for the content store", reason=refusal.sentence)
            self.stop()

    def stop(self) -> None:
        self._steps = None
        self._tenure.release()


def _follow_log(
    database: Database,
    repository: Repository,
    writer: IndexWriter,
    index: RepositoryIndex,
    clock: Callable[[], Instant],
    tenure: HeldLease,
) -> Position:
    """Bring a new generation to the end of the change log. While changes go on, the position of the current generation
    is enough, so that the rebuild can end: the agent indexes later changes.
    """
    with closing(index.reader()) as current:
        commits = 0
        while True:
            change_count = catch_up(database, repository, writer, clock())
            if not change_count or (commits >= _COMMITS_TO_THE_END and _is_behind(current, writer.position)):
                return writer.position
            commits += 1
            tenure.keep()


def _is_behind(current: Index, position: Position) -> bool:
    try:
        return current.snapshot().position <= position
    except IndexUnavailable:
        return False


def _leave(database: Database, repository: Repository, name: str) -> None:
    try:
        with database.begin() as cx:
            followers.leave(cx, repository.id, name)
    except (Busy, sa.exc.DBAPIError) as error:
        log.warning(
            "the change log waits for a rebuild that is over", repository=repository.name, reason=str(error)[:300]
        )


def _purge(database: Database, store: ContentStore, now: Instant) -> Iterator[int]:
    number = 1
    while number:
        with database.begin() as cx:
            number, freed = wastebasket.purge(cx, now, _PURGED_AT_A_TIME)
        for key in freed:
            store.remove(key)
        yield number


def _sweep(database: Database, store: ContentStore, before: Instant) -> Iterator[int]:
    old_keys = store.older_than(before)
    while keys := list(itertools.islice(old_keys, _SWEPT_AT_A_TIME)):
        with database.read() as cx:
            count = inventory.remove_unnamed(cx, store, keys)
        yield count


def _chores(database: Database, engine: Engine, clock: Callable[[], Instant]) -> None:
    now, remain = clock(), True
    while remain:  # a transaction for each portion, so that no write waits for all of them
        with database.begin() as cx:
            remain = kept_searches.purge(cx, now) + object_acls.remove_unused(cx) > 0
    engine.sweep(now)


def _follow(database: Database, feeders: dict[int, _Feeder], engine: Engine, tenure: HeldLease) -> None:
    with database.read() as cx:
        every = repositories.all_repositories(cx)
    for removed_id in feeders.keys() - {repository.id for repository in every}:
        feeders.pop(removed_id).close()
    for repository in every:
        feeder = feeders.get(repository.id)
        if feeder is not None and feeder.language != repository.language:
            feeder.close()
            feeder = None
        feeders[repository.id] = feeder or _Feeder(repository, engine, tenure)


def _close(feeders: Mapping[int, _Feeder]) -> None:
    for feeder in feeders.values():
        feeder.close()
