"""Read every file that waits for the extractor, in the test's own thread."""

import threading
from collections.abc import Callable

from muniment.database.connections import Database
from muniment.ground.clock import Instant, now
from muniment.repository.options import RepositoryOptions
from muniment.repository.store.extraction import extractor
from muniment.repository.store.extraction.confined.handing_over import HandingOver
from muniment.repository.store.extraction.confined.process import Reader, limits


def drain(
    database: Database,
    store: extractor.Contents,
    options: RepositoryOptions,
    keep_found: extractor.KeepFound,
    clock: Callable[[], Instant] = now,
) -> int:
    """Read every file that is due, and return how many there were."""
    count = 0
    tika = HandingOver(options) if options.extraction.tika else None
    if tika:
        tika.wake(database, clock)
    with Reader(limits(options)) as reader:
        while held := extractor._next_job(database, threading.Event(), clock):
            extractor._handle(held, store, reader, tika, keep_found)
            count += 1
    return count
