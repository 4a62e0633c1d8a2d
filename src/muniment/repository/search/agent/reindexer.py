"""Note in the change log which objects must be indexed again, because a property became searchable or ceased to be.

Source: docs/decisions/0076.
"""

import time
from collections.abc import Callable

import structlog
from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.repository.store.change_log import changes
from muniment.repository.store.objects.types import reindexing

log = structlog.get_logger("muniment.agent")

_LOOK_SECONDS = 1.0

IndexPosition = Callable[[int], changes.Position | None]
"""Returns None if this process does not feed the index at the moment."""


class Reindexer:
    """Carries out the reindexing of properties, perhaps on several machines."""

    def __init__(self, database: Database, reached: IndexPosition) -> None:
        self._database, self._reached = database, reached
        self._look_at = 0.0

    def advance(self, now: Instant) -> bool:
        """Finish properties whose objects are all indexed, and note the next objects of one.

        Call it when the index has reached the end of the change log, so that few notes wait for the index.

        Raises Busy, DBAPIError.
        """
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + _LOOK_SECONDS
        with self._database.read() as cx:
            under_way = reindexing.under_way(cx)
            done = [each for each in under_way if each.after is None and self._has_reached(cx, each)]
        for each in done:
            with self._database.begin() as cx:
                reindexing.finish(cx, each)
            log.info("property indexed", repository=each.repository_id, property=each.property)
        for each in under_way:
            if each.after is not None:
                with self._database.begin() as cx:
                    reindexing.advance(cx, each.id, now)
                self._look_at = 0.0  # look again as soon as the index has followed
                return True
        return bool(done)

    def _has_reached(self, cx: Connection, each: reindexing.Reindexing) -> bool:
        position = self._reached(each.repository_id)
        # After a restore, lines have other transactions, so the noted position may lie beyond the log. Then the index
        # must have reached the end of the log.
        return position is not None and position >= min(each.position, changes.latest(cx, each.repository_id))
