"""In which order does the built-in engine return hits?

The engine orders by one field only: for several, an aggregation makes a bucket of each hit, and orders the buckets by
values and counter.
"""

import itertools
import operator
from collections.abc import Sequence

import msgspec
import tantivy
from tantivy import FieldType, Query

from muniment.ground.clock import Instant
from muniment.repository.search.index.contract import Order, SortedBy
from muniment.repository.search.index.questions import layout
from muniment.repository.search.index.questions.engine import Ranked
from muniment.repository.search.index.tantivy import fields
from muniment.repository.search.index.tantivy.combining import all_of, silent, term, terms
from muniment.repository.search.index.tantivy.searching import WatchedSearcher, count_of

REACH = 2_000
"""Deeper hits of equal score keep the engine's order."""

MOST_BUCKETS = 2_000

_NOISE, _MOST_NOISY = 1e-6, 100.0
"""Two scores count as equal if they differ by at most ``_NOISE`` times the score, or ``_MOST_NOISY`` if that is less.
"""

_BESIDE = 200
"""So many hits beyond a page are read at first, to find all with the score of its last."""


class TantivyRanking:
    """Ranks the hits that one searcher finds."""

    def __init__(self, searcher: WatchedSearcher) -> None:
        self._searcher = searcher

    def counters(self, query: Query, order: Order, offset: int, limit: int) -> list[int]:
        """Return counters; by score, the engine chooses among hits with the score of the last one."""
        if limit < 1:
            return []
        if order == "made":
            hits = self._ascending(layout.NUMBER, query, offset, limit, total=False).hits
            return [int(number) for number, _ in hits]
        if order == "relevance":
            hits = list(self._searcher.search(query, offset + limit, count=False).hits)
            ranked_hits = self._ties_in_order(hits)[offset:]
        else:
            ranked_hits, _ = self.by_modification(query, offset, limit, total=False, descending=order == "newest")
        return self._searcher.numbers(layout.NUMBER, [address for _, address in ranked_hits])

    def numbers_of_all(self, query: Query, field: str) -> list[int]:
        number = self._searcher.count(query)
        if not number:
            return []
        hits = self._ascending(field, query, 0, number, total=False).hits
        return [int(value) for value, _ in hits]

    def by_score(self, query: Query, offset: int, limit: int, *, total: bool) -> tuple[list[Ranked], int | None]:
        """Return the best hits first; ``total`` adds the number of all."""
        if offset >= REACH:
            result = self._searcher.search(query, limit, count=total, offset=offset)
            return list(result.hits), count_of(result)
        end = offset + limit
        count = end + _BESIDE
        result = self._searcher.search(query, count, count=total)
        ranked_hits = list(result.hits)
        if len(ranked_hits) == count <= REACH and _end_of_ties(ranked_hits, end) == count:
            ranked_hits = list(self._searcher.search(query, REACH + 1, count=False).hits)
        if end < len(ranked_hits) <= REACH:
            ranked_hits = ranked_hits[: _end_of_ties(ranked_hits, end)]
        return self._head_in_order(ranked_hits)[offset:end], count_of(result)

    def by_modification(
        self, query: Query, offset: int, limit: int, *, total: bool, descending: bool = True
    ) -> tuple[list[Ranked], int | None]:
        """Order exactly, however deep.

        The engine orders by one field: objects of one instant that an edge of the page divides take a further query, by
        counter.
        """
        extra = min(offset, 1)
        order = tantivy.Order.Desc if descending else tantivy.Order.Asc
        result = self._searcher.search(
            *(query, extra + limit + 1), offset=offset - extra, count=total, order_by_field=layout.MODIFIED, order=order
        )
        ranked_hits = list(result.hits)
        before, page, after = ranked_hits[:extra], ranked_hits[extra : extra + limit], ranked_hits[extra + limit :]
        beyond = {instant for instant, _ in (*before, *after)}
        in_order: list[Ranked] = []
        for instant, group in itertools.groupby(self._ties_in_order(page), key=lambda hit: hit[0]):
            ties = list(group)
            if instant in beyond:
                offset_in_ties = 0
                if offset and not in_order:
                    offset_in_ties = offset - self._count_before(query, int(instant), descending=descending)
                ties = self._modified_at(query, int(instant), offset_in_ties, len(ties))
            in_order += ties
        return [(0.0, address) for _, address in in_order], count_of(result)

    def by_values(
        self, query: Query, sorts: Sequence[SortedBy], offset: int, limit: int
    ) -> tuple[list[int], int] | None:
        """Return counters and the total.

        Return None if the page ends deeper than ``MOST_BUCKETS``, a value is a long text, or a property is the date of
        creation, which the index holds only to the millisecond.
        """
        if offset + limit > MOST_BUCKETS or any(sort.name in layout.CUT for sort in sorts):
            return None
        sources = [
            {str(at): {"terms": {"field": _path(sort), "order": _DIRECTIONS[sort.descending], **_MISSING_LAST}}}
            for at, sort in enumerate(sorts)
        ]
        buckets = {"size": offset + limit, "sources": [*sources, {_COUNTER: {"terms": {"field": layout.NUMBER}}}]}
        total = {"value_count": {"field": layout.NUMBER}}
        aggregations = {"page": {"composite": buckets}, "total": total} if limit > 0 else {"total": total}
        answer = msgspec.convert(self._searcher.aggregate(query, aggregations), _Sorted)
        keys = [bucket.key for bucket in answer.page.buckets]
        if any(isinstance(value, str) and len(value) > layout.SORTED for key in keys for value in key.values()):
            return None
        return [int(key[_COUNTER] or 0) for key in keys[offset:]], int(answer.total.value or 0)

    def with_counters(self, query: Query, counters: Sequence[int]) -> list[Ranked]:
        if not counters:
            return []
        hits = self._searcher.search(
            all_of([query, silent(terms(layout.NUMBER, counters))]), len(counters), count=False
        ).hits
        places = {counter: place for place, counter in enumerate(counters)}
        numbers = self._searcher.numbers(layout.NUMBER, [address for _, address in hits])
        pairs = sorted(zip(numbers, hits, strict=True), key=lambda each: places[each[0]])
        return [hit for _, hit in pairs]

    def by_counter(
        self, query: Query, offset: int, limit: int, *, total: bool, descending: bool = False
    ) -> tuple[list[Ranked], int | None]:
        if descending:
            result = self._searcher.search(query, limit, count=total, order_by_field=layout.NUMBER, offset=offset)
        else:
            result = self._ascending(layout.NUMBER, query, offset, limit, total=total)
        return [(0.0, address) for _, address in result.hits], count_of(result)

    def _ascending(self, field: str, query: Query, offset: int, limit: int, *, total: bool) -> tantivy.SearchResult:
        order = tantivy.Order.Asc
        return self._searcher.search(query, limit, count=total, order_by_field=field, offset=offset, order=order)

    def _count_before(self, query: Query, instant: Instant, *, descending: bool) -> int:
        schema, field, kind = fields.SCHEMA, layout.MODIFIED, FieldType.Integer
        if descending:
            range_query = Query.range_query(schema, field, kind, lower_bound=instant, include_lower=False)
        else:
            range_query = Query.range_query(schema, field, kind, upper_bound=instant, include_upper=False)
        return self._searcher.count(all_of([query, range_query]))

    def _modified_at(self, query: Query, instant: Instant, offset: int, limit: int) -> list[Ranked]:
        return self.by_counter(all_of([query, term(layout.MODIFIED, instant)]), offset, limit, total=False)[0]

    def _head_in_order(self, ranked_hits: list[Ranked]) -> list[Ranked]:
        """Keep the engine's order of equal scores on both sides of REACH, or it would differ from page to page."""
        complete = len(ranked_hits)
        if complete > REACH:
            complete = REACH
            while complete and _tie(ranked_hits[complete - 1], ranked_hits[complete]):
                complete -= 1
        head = ranked_hits[:complete]
        return self._ties_in_order(head) + ranked_hits[complete:]

    def _ties_in_order(self, hits: list[Ranked]) -> list[Ranked]:
        if not any(itertools.starmap(_tie, itertools.pairwise(hits))):
            return hits
        numbers = self._searcher.numbers(layout.NUMBER, [address for _, address in hits])
        numbered = list(zip(hits, numbers, strict=True))
        in_order: list[Ranked] = []
        start = 0
        while start < len(hits):
            end = _end_of_ties(hits, start + 1)
            ties = numbered[start:end]
            in_order += [hit for hit, _ in (sorted(ties, key=operator.itemgetter(1)) if len(ties) > 1 else ties)]
            start = end
        return in_order


def _tie(hit: Ranked, following: Ranked) -> bool:
    """Compare scores (or instants) but for rounding: the engine rounds weights to single precision, and they depend on
    everybody's documents.
    """
    return abs(hit[0] - following[0]) <= _NOISE * min(abs(hit[0]), _MOST_NOISY)


def _end_of_ties(hits: Sequence[Ranked], end: int) -> int:
    while end < len(hits) and _tie(hits[end - 1], hits[end]):
        end += 1
    return end


class _Bucket(msgspec.Struct, frozen=True):
    key: dict[str, str | int | None]


class _Buckets(msgspec.Struct, frozen=True):
    buckets: tuple[_Bucket, ...] = ()


class Metric(msgspec.Struct, frozen=True):
    """An answer with one number, or None."""

    value: float | None


class _Sorted(msgspec.Struct, frozen=True):
    total: Metric
    page: _Buckets = _Buckets()


_COUNTER = "counter"
_DIRECTIONS = ("asc", "desc")
_MISSING_LAST = {"missing_bucket": True, "missing_order": "last"}


def _path(sort: SortedBy) -> str:
    if sort.name == "r_modify_date":
        return layout.MODIFIED
    return fields.path(layout.index_kind(sort.kind, folded=sort.folded), sort.name)
