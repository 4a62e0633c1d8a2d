"""What is one commit of the built-in index?"""

import tantivy

from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.index.questions import layout
from muniment.repository.search.index.questions.answering import Answering, EngineAccess, SnapshotCache
from muniment.repository.search.index.tantivy import failures, fields
from muniment.repository.search.index.tantivy.asking import TantivySearcher
from muniment.repository.search.index.tantivy.order import TantivyRanking
from muniment.repository.search.index.tantivy.queries import TantivyQueries
from muniment.repository.search.index.tantivy.reading import Reading
from muniment.repository.search.index.tantivy.searching import WatchedSearcher
from muniment.repository.store.change_log.changes import Position


class TantivySnapshot(Answering, Reading):
    """One commit (a Snapshot), for any thread."""

    def __init__(
        self, index: tantivy.Index, searcher: tantivy.Searcher, analyser: Analyser, memory: SnapshotCache
    ) -> None:
        watched = WatchedSearcher(searcher)
        access = EngineAccess(
            TantivySearcher(watched), TantivyRanking(watched), lambda: TantivyQueries(index), failures.as_refusals
        )
        has_former = searcher.doc_freq(layout.FORMER, layout.IS_FORMER) > 0
        Answering.__init__(self, access, analyser, memory, has_former=has_former)
        Reading.__init__(self, watched, analyser)
        self._position = fields.read_position(searcher)

    @property
    def position(self) -> Position:
        return self._position
