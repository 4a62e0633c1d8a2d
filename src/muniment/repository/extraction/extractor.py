"""The extractor: it takes files from the queue, has them read in the sandbox, and stores the results.

It reads a small plain text file itself, because such a file is not parsed.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import BinaryIO, Literal, Protocol

import structlog
from sqlalchemy.engine import Connection

from muniment.clock import SECOND, Instant, now
from muniment.db import Busy, Database
from muniment.glances import Watch
from muniment.repository.extraction import plain, queue
from muniment.repository.extraction.findings import Extracted, Poisoned, Unreadable, Unsupported
from muniment.repository.extraction.process import Reader, Stopped, Unstarted, limits
from muniment.repository.extraction.queue import Job
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import StoreUnavailable
from muniment.web.refusals import Refusal, TooLarge

_POLL_SECONDS, _IDLE_POLL_SECONDS = 0.05, 0.2
_LOOK_SECONDS = 1.0
_TROUBLE_SECONDS = 2.0
_RENEW_AFTER: Instant = queue.LEASE // 3

_log = structlog.get_logger(__name__)


class Contents(Protocol):
    """The part of the content store that the extractor needs."""

    def local(self, key: str) -> AbstractContextManager[BinaryIO]:
        """Lend a file of this machine that holds the content, open for reading."""


def run(
    database: Database,
    store: Contents,
    options: RepositoryOptions,
    stop: threading.Event,
    clock: Callable[[], Instant] = now,
) -> None:
    """Read the files in the queue until ``stop`` is set. Unfinished files then go back to the queue.

    A file that fails never stops the others.
    """
    threads = [
        threading.Thread(target=_work, args=(database, store, options, stop, clock), name=f"extract-{number}")
        for number in range(options.extraction_processes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def drain(
    database: Database, store: Contents, options: RepositoryOptions, clock: Callable[[], Instant] | None = None
) -> int:
    """Read every file that is due, and return how many there were. This is for tests and for work by hand."""
    read_clock = clock or now
    count = 0
    with Reader(limits(options)) as reader:
        while job := _next_job(database, read_clock()):
            _handle(database, store, reader, job, threading.Event(), read_clock)
            count += 1
    return count


def _work(
    database: Database,
    store: Contents,
    options: RepositoryOptions,
    stop: threading.Event,
    clock: Callable[[], Instant],
) -> None:
    with Reader(limits(options)) as reader, contextlib.closing(Watch(database)) as watch:
        job, look = None, 0.0
        while not stop.is_set():
            try:
                # It also looks now and then without a commit, because jobs fall due and leases end by the clock alone.
                if not watch.has_new_commits() and job is None and time.monotonic() < look:
                    watch.wait(stop, _POLL_SECONDS, _IDLE_POLL_SECONDS)
                    continue
                look = time.monotonic() + _LOOK_SECONDS
                job = _next_job(database, clock())
                if job is not None:
                    _handle(database, store, reader, job, stop, clock)
            except Busy:
                stop.wait(_POLL_SECONDS)
            except StoreUnavailable as refusal:
                _log.warning("extraction waits for the content store", reason=refusal.sentence)
                stop.wait(_TROUBLE_SECONDS)
            except Exception:  # noqa: BLE001 - an unforeseen error must not stop the queue: the file is tried again
                _log.exception("extraction.trouble")
                reader.close()
                stop.wait(_TROUBLE_SECONDS)


def _next_job(database: Database, now: Instant) -> Job | None:
    with database.read() as cx:
        if not queue.waits(cx, now):
            return None
    with database.begin() as cx:
        return queue.take(cx, now)


def _handle(
    database: Database,
    store: Contents,
    reader: Reader,
    job: Job,
    stop: threading.Event,
    clock: Callable[[], Instant],
) -> None:
    lease, record = _HeldJob(database, job, stop, clock), partial(_record, database, stop)
    try:
        with store.local(job.content_key) as content:
            result = _plain(content.fileno(), job, reader.characters) or reader.read(
                content.fileno(), job.file_name, job.media_type, lease
            )
    except TooLarge as refusal:
        _fail(record, job, refusal.sentence, "failed", clock())
    except StoreUnavailable:
        # The file did nothing wrong, so it waits for the store, however long that takes.
        record(lambda cx: queue.release(cx, job, clock()))
        raise
    except (Refusal, OSError) as error:
        _fail(record, job, f"Its content could not be opened: {error}", "retry", clock())
    except (Stopped, Unstarted) as error:
        record(lambda cx: queue.release(cx, job, clock()))
        if isinstance(error, Unstarted):
            raise
    except Unreadable as refusal:
        _fail(record, job, str(refusal), "failed", clock())
    except Unsupported as refusal:
        _fail(record, job, str(refusal), "unsupported", clock())
    except Poisoned as refusal:
        _fail(record, job, str(refusal), "retry", clock())
    else:
        record(lambda cx: queue.finish(cx, job, result.text, clock(), result.note))


def _plain(descriptor: int, job: Job, characters: int) -> Extracted | None:
    if os.fstat(descriptor).st_size > plain.LARGEST:
        return None
    # pread does not move the file's position: the next reader starts at the beginning.
    return plain.read(os.pread(descriptor, plain.LARGEST + 1, 0), job.file_name, job.media_type, characters)


def _fail(
    record: Callable[[Callable[[Connection], object]], None],
    job: Job,
    reason: str,
    state: Literal["failed", "unsupported", "retry"],
    now: Instant,
) -> None:
    _log.info("extraction.failed", object=job.object_id, outcome=state, reason=reason, attempt=job.attempts + 1)
    record(lambda cx: queue.fail(cx, job, reason, now, state))


def _record(database: Database, stop: threading.Event, write: Callable[[Connection], object]) -> None:
    """Write what became of a job, so that nobody reads the file again. Raises Busy if the database stays busy.

    A busy database is tried again until the extractor stops, or the lease has run out.
    """
    tries_end = time.monotonic() + queue.LEASE / SECOND
    while True:
        try:
            with database.begin() as cx:
                write(cx)
        except Busy:
            if time.monotonic() >= tries_end or stop.wait(_POLL_SECONDS):
                raise
        else:
            return


class _HeldJob:
    """Tells the reader to go on, until the extractor stops or loses the job. Renews the lease of the job in time."""

    def __init__(self, database: Database, job: Job, stop: threading.Event, clock: Callable[[], Instant]) -> None:
        self._database, self._job, self._stop, self._clock = database, job, stop, clock
        self._renewed_at = clock()

    def __call__(self) -> bool:
        now = self._clock()
        if self._stop.is_set():
            return False
        if now - self._renewed_at < _RENEW_AFTER:
            return True
        self._renewed_at = now
        with contextlib.suppress(Busy), self._database.begin() as cx:
            return queue.renew(cx, self._job, now)
        return True
