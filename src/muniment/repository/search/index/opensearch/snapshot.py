"""What is one state of an index in OpenSearch, and how does a process follow the newest?"""

import threading
import time
import weakref
from collections import deque
from collections.abc import Collection
from contextlib import suppress

from muniment.database.budgets import Budget
from muniment.database.connections import TookTooLong
from muniment.repository.refusals import IndexUnavailable
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.index.contract import OtherFormat, Snapshot
from muniment.repository.search.index.opensearch import fields
from muniment.repository.search.index.opensearch.client import ClusterAway, Missing, as_refusals
from muniment.repository.search.index.opensearch.generation import Site
from muniment.repository.search.index.opensearch.queries import OpenSearchQueries
from muniment.repository.search.index.opensearch.reading import PointReading
from muniment.repository.search.index.opensearch.searching import KEEP_SECONDS, PointInTime
from muniment.repository.search.index.questions.answering import Answering, EngineAccess, SnapshotCache
from muniment.repository.store.change_log.changes import Position

_CLOSING_SECONDS = 1.0
_IDLE_SECONDS = KEEP_SECONDS / 2
"""A snapshot of which nothing was asked for so long is not used again: only questions keep its point in time alive."""


class OpenSearchSnapshot(Answering, PointReading):
    """One point in time (a Snapshot), for any thread. It may hold newer documents than its position says."""

    def __init__(self, point: PointInTime, position: Position, analyser: Analyser, memory: SnapshotCache) -> None:
        access = EngineAccess(point, point, OpenSearchQueries, as_refusals)
        Answering.__init__(self, access, analyser, memory)
        PointReading.__init__(self, point, analyser)
        self._position = position

    @property
    def is_over(self) -> bool:
        """Say whether the cluster has let the point in time go."""
        return self._point.is_over

    @property
    def idle_seconds(self) -> float:
        return time.monotonic() - self._point.asked

    @property
    def position(self) -> Position:
        return self._position


class OpenSearchIndex:
    """The current generation of a repository, open for reading (an Index).

    Snapshots of one position share one point in time, which is closed when the last of them is gone.
    """

    def __init__(self, site: Site, stop_words: Collection[str] = ()) -> None:
        self._site, self._stop_words = site, stop_words
        self._lock = threading.Lock()
        self._number = -1
        self._snapshot: OpenSearchSnapshot | None = None
        self._index = ""
        self._analyser = Analyser()
        self._memory = SnapshotCache()
        self._over: deque[str] = deque()

    def snapshot(self) -> Snapshot:
        """The position is read first, so that the documents are at least as new. Raises IndexUnavailable."""
        with as_refusals("the index could not be opened"):
            index, number, position = self._newest()
            with self._lock:
                if self._snapshot is not None and self._snapshot.is_over:
                    # The index may be another with the same name.
                    self._snapshot, self._index = None, ""
                is_current = index == self._index and number <= self._number
                if self._snapshot is None or not is_current or self._snapshot.idle_seconds > _IDLE_SECONDS:
                    self._snapshot = None
                    if index != self._index:
                        self._follow(index)
                    self._close_those_over()  # A node permits only so many at one time.
                    self._snapshot, self._number = self._take(index, position), number
                snapshot = self._snapshot
            self._close_those_over()
            return snapshot

    def close(self) -> None:
        """A point in time ends by itself if a search still uses it, or the cluster does not answer at once."""
        with self._lock:
            self._snapshot = None
        with suppress(TookTooLong):
            Budget(_CLOSING_SECONDS).spend(self._close_those_over)

    def _newest(self) -> tuple[str, int, Position]:
        """Return the index, which of its writes the position is, and the position."""
        try:
            answer = self._site.cluster.get(f"/{self._site.alias}/_doc/{fields.POSITION}")
        except Missing as missing:
            raise IndexUnavailable(
                "The repository has no index yet: the index agent has not been started, or the index was deleted."
            ) from missing
        if "position" not in answer.get("_source", {}):
            raise ClusterAway(f"The index {self._site.alias!r} was not made by this installation.")
        return str(answer["_index"]), int(answer["_seq_no"]), Position.parse(answer["_source"]["position"])

    def _follow(self, index: str) -> None:
        try:
            about, _ = self._site.about(index)
        except OtherFormat as error:
            raise IndexUnavailable(f"{error} The index agent makes a new one.") from error
        self._analyser = self._site.analyser(index, about, self._stop_words)
        self._index, self._memory = index, SnapshotCache()

    def _take(self, index: str, position: Position) -> OpenSearchSnapshot:
        how = {"keep_alive": f"{KEEP_SECONDS}s", "allow_partial_pit_creation": "false"}
        pit = str(self._site.cluster.post(f"/{index}/_search/point_in_time", None, **how)["pit_id"])
        snapshot = OpenSearchSnapshot(PointInTime(self._site.cluster, pit), position, self._analyser, self._memory)
        weakref.finalize(snapshot, self._over.append, pit)
        return snapshot

    def _close_those_over(self) -> None:
        over = list[str]()
        with suppress(IndexError):
            while True:
                over.append(self._over.popleft())
        if over:
            with suppress(ClusterAway):  # they end by themselves
                self._site.cluster.ask("DELETE", "/_search/point_in_time", {"pit_id": over})
