"""The extractor: it takes files from the queue, has them read in the sandbox, and stores the results."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, Literal, Protocol

import structlog
from msgspec import structs
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from muniment.database.connections import Busy, Database
from muniment.database.polls import CommitWatch
from muniment.ground.clock import SECOND, Instant, now
from muniment.ground.refusals import Refusal, TooLarge
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import StoreUnavailable
from muniment.repository.store.extraction import queue
from muniment.repository.store.extraction.confined.handing_over import HandingOver, Postponed
from muniment.repository.store.extraction.confined.process import Reader, Unstarted, limits
from muniment.repository.store.extraction.findings import Extracted, Poisoned, Stopped, Unreadable, Unsupported
from muniment.repository.store.extraction.readers import plain

_POLL_SECONDS, _IDLE_POLL_SECONDS = 0.05, 0.2
_LOOK_SECONDS = 1.0
_TROUBLE_SECONDS = 2.0
_RENEW_AFTER: Instant = queue.LEASE // 3

_Outcome = Literal["failed", "unsupported", "retry"]
_OUTCOMES: dict[type[Exception], _Outcome] = {Unreadable: "failed", Unsupported: "unsupported", Poisoned: "retry"}

_log = structlog.get_logger(__name__)


KeepFound = Callable[[Connection, queue.Job, Mapping[str, Sequence[str]], Instant], None]
"""Keeps what a file says about itself, by the names of properties."""


class Contents(Protocol):
    """The part of the content store that the extractor needs."""

    def local(self, key: str) -> AbstractContextManager[BinaryIO]: ...


def run(
    database: Database,
    store: Contents,
    options: RepositoryOptions,
    stop: threading.Event,
    keep_found: KeepFound,
    clock: Callable[[], Instant] = now,
) -> None:
    """Unfinished files go back to the queue when ``stop`` is set. A file that fails never stops the others."""
    tika = HandingOver(options) if options.extraction.tika else None
    threads = [
        threading.Thread(
            target=_work, args=(database, store, options, tika, stop, keep_found, clock), name=f"extract-{number}"
        )
        for number in range(options.extraction_processes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _work(
    database: Database,
    store: Contents,
    options: RepositoryOptions,
    tika: HandingOver | None,
    stop: threading.Event,
    keep_found: KeepFound,
    clock: Callable[[], Instant],
) -> None:
    with Reader(limits(options)) as reader, contextlib.closing(CommitWatch(database)) as watch:
        held, look = None, 0.0
        while not stop.is_set():
            try:
                # It also looks now and then without a commit, because jobs fall due and leases end by the clock alone.
                if not watch.has_new_commits() and held is None and time.monotonic() < look:
                    watch.wait(stop, _POLL_SECONDS, _IDLE_POLL_SECONDS)
                    continue
                look = time.monotonic() + _LOOK_SECONDS
                if tika:
                    tika.wake(database, clock)
                held = _next_job(database, stop, clock)
                if held is not None:
                    _handle(held, store, reader, tika, keep_found)
            except Busy:
                stop.wait(_POLL_SECONDS)
            except StoreUnavailable as refusal:
                _log.warning("extraction waits for the content store", reason=refusal.sentence)
                stop.wait(_TROUBLE_SECONDS)
            except Exception:  # noqa: BLE001 - an unforeseen error must not stop the queue: the file is tried again
                _log.exception("extraction.trouble")
                reader.close()
                stop.wait(_TROUBLE_SECONDS)


def _next_job(database: Database, stop: threading.Event, clock: Callable[[], Instant]) -> "_HeldJob | None":
    now = clock()
    with database.read() as cx:
        if not queue.waits(cx, now):
            return None
    with database.begin() as cx:
        job = queue.take(cx, now)
    return None if job is None else _HeldJob(database, job, stop, clock)


def _handle(held: "_HeldJob", store: Contents, reader: Reader, tika: HandingOver | None, keep_found: KeepFound) -> None:
    job = held.job
    try:
        with contextlib.ExitStack() as lending:
            with held.renewing():
                content = lending.enter_context(store.local(job.content_key))
            result = _plain(content.fileno(), job, reader.characters) or _read(content, held, reader, tika)
    except TooLarge as refusal:
        held.fail(refusal.sentence, "failed")
    except StoreUnavailable:
        # The file did nothing wrong, so it waits for the store, however long that takes.
        held.release()
        raise
    except (Refusal, OSError) as error:
        held.fail(f"Its content could not be opened: {error}", "retry")
    except Postponed as postponed:
        held.postpone(postponed.found, keep_found)
        postponed.when_stored()
    except (Stopped, Unstarted) as error:
        held.release()
        if isinstance(error, Unstarted):
            raise
    except (Unreadable, Unsupported, Poisoned) as refusal:
        held.fail(str(refusal), _OUTCOMES[type(refusal)])
    else:
        held.finish(result, keep_found)


def _read(content: BinaryIO, held: "_HeldJob", reader: Reader, tika: HandingOver | None) -> Extracted:
    name = held.job.file_name
    try:
        found = reader.read(content.fileno(), name, held.job.media_type, held.goes_on)
    except Unsupported:
        if tika is None:
            raise
        return tika.read_whole(content, name, None, reader, held.goes_on)
    if tika is not None and found.scanned:
        return tika.read_whole(content, name, found, reader, held.goes_on)
    return tika.read_rest(found, reader, held.goes_on) if tika is not None and found.kept else found


def _plain(descriptor: int, job: queue.Job, characters: int) -> Extracted | None:
    if os.fstat(descriptor).st_size > plain.LARGEST:
        return None
    # pread does not move the file's position: the next reader starts at the beginning.
    return plain.read(os.pread(descriptor, plain.LARGEST + 1, 0), job.file_name, job.media_type, characters)


class _HeldJob:
    """A job that this extractor has leased, and renews.

    The methods that write raise Busy if the database stays busy. Until the extractor stops, or the lease has run out,
    they try again, so that nobody reads the file twice.
    """

    def __init__(self, database: Database, job: queue.Job, stop: threading.Event, clock: Callable[[], Instant]) -> None:
        self.job = job
        self._database, self._stop, self._clock = database, stop, clock
        self._renewed_at = clock()

    def goes_on(self) -> bool:
        now = self._clock()
        if self._stop.is_set():
            return False
        if now - self._renewed_at < _RENEW_AFTER:
            return True
        is_held = True
        with contextlib.suppress(Busy), self._database.begin() as cx:
            is_held = queue.renew(cx, self.job, now)
        if is_held:
            self._renewed_at = now
        return is_held

    @contextlib.contextmanager
    def renewing(self) -> Iterator[None]:
        end = threading.Event()
        renewals = threading.Thread(target=self._renew, args=(end,), name="renew-lease", daemon=True)
        renewals.start()
        try:
            yield
        finally:
            end.set()
            renewals.join()

    def release(self) -> None:
        self._write(lambda cx: queue.release(cx, self.job, self._clock()))

    def postpone(self, found: Extracted | None, keep_found: KeepFound) -> None:
        """Store the text found without the Tika server until the server has read the file."""
        if found is not None and found.text.strip():
            self.finish(structs.replace(found, note=queue.WAITS_FOR_TIKA), keep_found)
        else:
            self._write(lambda cx: queue.postpone(cx, self.job, self._clock()))

    def fail(self, reason: str, state: _Outcome) -> None:
        attempt = self.job.attempts + 1
        _log.info("extraction.failed", object=self.job.object_id, outcome=state, reason=reason, attempt=attempt)
        self._write(lambda cx: queue.fail(cx, self.job, reason, self._clock(), state))

    def finish(self, result: Extracted, keep_found: KeepFound) -> None:
        def write(cx: Connection) -> None:
            # The object's row comes first, as in every transaction that locks both.
            if result.properties:
                keep_found(cx, self.job, result.properties, self._clock())
            queue.finish(cx, self.job, result.text, self._clock(), result.note)

        self._write(write)

    def _renew(self, end: threading.Event) -> None:
        is_held = True
        while is_held and not end.wait(_RENEW_AFTER / SECOND):
            with contextlib.suppress(DBAPIError):  # the next try may succeed before the lease has run out
                is_held = self.goes_on()

    def _write(self, write: Callable[[Connection], object]) -> None:
        tries_end = time.monotonic() + queue.LEASE / SECOND
        while True:
            try:
                with self._database.begin() as cx:
                    write(cx)
            except Busy:
                if time.monotonic() >= tries_end or self._stop.wait(_POLL_SECONDS):
                    raise
            else:
                return
