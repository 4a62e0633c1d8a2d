"""May a process that writes many changes go on writing, or must it wait until the index agent has caught up?"""

import time
from collections.abc import Callable

from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.repository.refusals import IndexUnavailable
from muniment.repository.search.index.contract import Index
from muniment.repository.store.change_log import changes
from muniment.repository.store.repositories import Repository

IsFar = Callable[[Connection, int, changes.Position], bool]
"""Says whether the next changes must wait, with the index at this position."""

_POLL_SECONDS = 0.02


class IndexPace:
    """Waits while an index is far behind, as long as it makes progress."""

    def __init__(
        self, database: Database, repository: Repository, index: Index, is_far: IsFar, patience: float
    ) -> None:
        self._database = database
        self._repository = repository
        self._is_far = is_far
        self._patience = patience
        self._index = index
        self._position_reached, self._reached_at = changes.START, time.monotonic()

    def keep(self, work_meanwhile: Callable[[], None] = lambda: None) -> bool:
        """Return True when the index is not far behind, False if it makes no progress for ``patience`` seconds, or,
        with many changes, if there is none.
        """
        while True:
            try:
                position, exists = self._index.snapshot().position, True
            except IndexUnavailable:
                position, exists = changes.START, False
            now = time.monotonic()
            if position != self._position_reached:
                self._position_reached, self._reached_at = position, now
            with self._database.read() as cx:
                far = self._is_far(cx, self._repository.id, position)
            if not far:
                self._reached_at = now
                return True
            if not exists or now - self._reached_at > self._patience:
                return False
            work_meanwhile()
            time.sleep(_POLL_SECONDS)

    def close(self) -> None:
        self._index.close()
