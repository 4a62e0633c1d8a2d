"""When does a Tika server get a file? When our own readers do not read it, or only pictures are in it.

Files within a file are handed over one by one.

While the server is away, its files wait, and all others are read.
"""

import threading
import time
from collections.abc import Callable
from typing import BinaryIO

from msgspec import structs

from muniment.database.connections import Database, portions
from muniment.ground.clock import Instant
from muniment.repository.options import RepositoryOptions
from muniment.repository.store.extraction import queue
from muniment.repository.store.extraction.confined.process import Reader
from muniment.repository.store.extraction.findings import Extracted, Poisoned, Unreadable, Unsupported
from muniment.repository.store.extraction.readers import plain
from muniment.repository.store.extraction.tika.tika import Away, TikaServer

LOOK_SECONDS = 5.0


class Postponed(Exception):
    """The Tika server is away, so the file waits; ``found`` is what our own readers read of it.

    Whoever stores that the file waits then calls ``when_stored``.
    """

    def __init__(self, found: Extracted | None, when_stored: Callable[[], None]) -> None:
        super().__init__(queue.WAITS_FOR_TIKA)
        self.found, self.when_stored = found, when_stored


class HandingOver:
    """Hands files over to the Tika server; all threads of an extractor share it."""

    def __init__(self, options: RepositoryOptions) -> None:
        self._seconds = options.extraction.tika_seconds
        self._server = TikaServer(options.extraction, options.extraction_characters)
        # An extractor that ran before this one may have left files that wait.
        self._some_wait = True
        self._look_at = 0.0
        self._waking = threading.Lock()

    def read_whole(
        self, content: BinaryIO, name: str, found: Extracted | None, reader: Reader, goes_on: Callable[[], bool]
    ) -> Extracted:
        """Our own readers found no text.

        Raises Postponed, Stopped, Unstarted, Unreadable, Unsupported, Poisoned.
        """
        try:
            result = self._read(content, name, self._seconds, reader, goes_on)
        except Away as away:
            raise Postponed(None, self._note_that_some_wait) from away
        except (Unreadable, Unsupported):
            if found is None:
                raise
            return found
        if found is None:
            return result
        return structs.replace(found, text=result.text, note=result.note) if result.text else found

    def read_rest(self, found: Extracted, reader: Reader, goes_on: Callable[[], bool]) -> Extracted:
        """Have the server read the files within a file that our readers do not.

        Raises Postponed, Stopped, Unstarted.
        """
        texts, notes = [found.text], [found.note] if found.note else []
        end = time.monotonic() + self._seconds
        for each in found.kept:
            try:
                result = self._read(each.content, each.name, max(0.5, end - time.monotonic()), reader, goes_on)
            except Away as away:
                raise Postponed(found, self._note_that_some_wait) from away
            except (Unreadable, Unsupported, Poisoned) as refusal:
                notes.append(f"The file {each.name[:100]!r} was not read: {refusal}")
            else:
                texts.append(result.text)
        cut = plain.cut("\n".join(texts), " ".join(notes)[:1000], reader.characters)
        return structs.replace(found, text=cut.text, note=cut.note)

    def wake(self, database: Database, clock: Callable[[], Instant]) -> None:
        """Let the waiting files be read if the server is there; it is asked only now and then."""
        if not self._some_wait or time.monotonic() < self._look_at or not self._waking.acquire(blocking=False):
            return
        try:
            self._look_at = time.monotonic() + LOOK_SECONDS
            if not self._server.fault():
                self._some_wait = False
                _wake_all(database, clock)
        except BaseException:
            self._some_wait = True
            raise
        finally:
            self._waking.release()

    def _note_that_some_wait(self) -> None:
        self._some_wait = True

    def _read(
        self, content: BinaryIO | bytes, name: str, seconds: float, reader: Reader, goes_on: Callable[[], bool]
    ) -> Extracted:
        with self._server.read(content, name, seconds, goes_on) as answer:
            return reader.read(answer.fileno(), name, "", goes_on, is_answer=True)


def _wake_all(database: Database, clock: Callable[[], Instant]) -> None:
    with database.read() as cx:
        waiting = queue.waiting_for_tika(cx)
    for some in portions(waiting):
        with database.begin() as cx:
            queue.wake(cx, some, clock())
