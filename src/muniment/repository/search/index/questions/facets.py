"""How does one snapshot count the hits of a search by the values of their properties?

The engine counts a hit once in a bucket.
"""

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import TypeAlias

from muniment.repository.refusals import BadQuery
from muniment.repository.search.aql.conditions import Between, Condition
from muniment.repository.search.aql.rewriting import narrowing
from muniment.repository.search.aql.spelling import periods
from muniment.repository.search.aql.spelling.facets import BoundFacet, CountedGroup
from muniment.repository.search.index.contract import MOST_FACET_QUESTIONS, FacetCounts, FacetValue
from muniment.repository.search.index.questions import layout
from muniment.repository.search.index.questions.engine import Queries, Query, Searcher, ValueCounts

_SEVERAL = 2
_EXACT = 2**53
"""A double holds all whole numbers up to this exactly."""

Compile: TypeAlias = Callable[[Condition], Query]


class FacetCounter:
    """Counts the hits of queries for one search."""

    def __init__(self, searcher: Searcher, queries: Queries, compile_condition: Compile) -> None:
        self._searcher, self._queries = searcher, queries
        self._compile = compile_condition
        self._questions = 0

    def count(self, query: Query, several: Sequence[BoundFacet]) -> tuple[FacetCounts, ...]:
        """Raises BadQuery for too many values, or too much time. One question counts all facets without buckets and
        periods, and asks for the first and the last date of those with periods.
        """
        by_value = {str(at): (_kind(facet), facet.name) for at, facet in enumerate(several) if _by_each_value(facet)}
        dates = {facet.name for facet in several if _by_period(facet)}
        self._note(len(by_value) > 0)
        answers, extents = self._searcher.values_and_extents(query, by_value, dates) if by_value or dates else ({}, {})
        return tuple(
            self._count(query, facet, answers.get(str(at)), extents.get(facet.name)) for at, facet in enumerate(several)
        )

    def _count(
        self, query: Query, facet: BoundFacet, answer: ValueCounts | None, extent: tuple[int, int] | None
    ) -> FacetCounts:
        candidates = facet.in_order(self._candidates(query, facet, answer, extent))
        first_candidates = candidates[: facet.limit]
        return FacetCounts(
            facet.id,
            facet.name,
            tuple(
                FacetValue(each.name, each.constraint, each.hits, self._nested_counts(query, facet, each))
                for each in first_candidates
            ),
            partial=facet.capped and len(candidates) > len(first_candidates),
        )

    def _nested_counts(self, query: Query, facet: BoundFacet, value: CountedGroup) -> FacetCounts | None:
        if facet.nested is None:
            return None
        if not value.hits:
            return FacetCounts(facet.nested.id, facet.nested.name, ())
        (counts,) = self.count(
            self._queries.all_of([query, self._compile(facet.meaning(value.constraint))]), [facet.nested]
        )
        return counts

    def _candidates(
        self, query: Query, facet: BoundFacet, answer: ValueCounts | None, extent: tuple[int, int] | None
    ) -> list[CountedGroup]:
        if facet.limit < 1:
            return []
        if facet.buckets:
            candidates = [
                CountedGroup((at, 0, ""), bucket.name, narrowing.write(bucket.name), count)
                for at, (bucket, count) in enumerate(zip(facet.buckets, self._in_buckets(query, facet), strict=True))
                if count
            ]
        elif (unit := facet.unit) is not None:
            candidates = self._by_period(query, facet, unit, extent)
        else:
            candidates = self._by_value(facet, answer or ValueCounts(()))
        if facet.with_null and (count := self._hits(query, facet.of_none())):
            place = facet.place(narrowing.NO_VALUE)
            candidates.append(CountedGroup(place, "NULL", narrowing.NO_VALUE, count))
        return candidates

    def _by_value(self, facet: BoundFacet, answer: ValueCounts) -> list[CountedGroup]:
        if not answer.complete:
            raise BadQuery(f"The facet {facet.id[:100]!r} has too many values to be counted: narrow the search.")
        least = 0
        if facet.sort == "FREQUENCY":  # Of many values only those are written that may be shown, and one more.
            commonest = heapq.nlargest(facet.limit + 1, (count for _, count in answer.values))
            least = commonest[-1] if commonest else 0
        candidates = []
        for held, count in answer.values:
            if count < least:
                continue
            value = layout.as_value(_kind(facet), held)
            name = facet.name_of(value)
            constraint = narrowing.write(name)
            place = facet.place_of_value(value)
            candidates.append(CountedGroup(place, name, constraint, count))
        return candidates

    def _by_period(
        self, query: Query, facet: BoundFacet, unit: periods.Unit, extent: tuple[int, int] | None
    ) -> list[CountedGroup]:
        zone = facet.zone
        self._note()
        if extent is None:
            return []
        # An engine may return both ends as doubles, which are not exact for times far from ours.
        years = list(periods.years(extent[0] - periods.DAY, extent[1] + periods.DAY, zone))
        counts = self._in_periods(query, facet, years)
        if unit != "year":
            parts: dict[int, periods.Period] = {}
            for year, count in counts:
                if count or facet.all_periods:
                    parts |= {part.low: part for part in periods.within(unit, int(year.name), zone)}
                if len(parts) > periods.MOST:
                    raise BadQuery(f"The dates of {facet.id[:100]!r} are too far apart to count each {unit}.")
            counts = self._in_periods(query, facet, [parts[first] for first in sorted(parts)])
        nonzero = [at for at, (_, count) in enumerate(counts) if count]
        periods_shown = counts[nonzero[0] : nonzero[-1] + 1] if nonzero else []
        return [
            CountedGroup(
                (0, period.low, ""),
                facet.name_of_period(period),
                narrowing.write(period.name),
                count,
            )
            for period, count in periods_shown
            if count or facet.all_periods
        ]

    def _in_periods(
        self, query: Query, facet: BoundFacet, of: Sequence[periods.Period]
    ) -> list[tuple[periods.Period, int]]:
        self._note()
        counts = self._searcher.in_ranges(query, facet.name, [(period.low, period.high) for period in of])
        return [(period, counts.get(period.low, 0)) for period in of]

    def _in_buckets(self, query: Query, facet: BoundFacet) -> list[int]:
        """One question counts all ranges of whole numbers that have both ends, unless they overlap."""
        conditions = [bucket.condition for bucket in facet.buckets]
        ranges = [_closed_range(condition) for condition in conditions]
        closed = sorted(filter(None, ranges))
        if len(closed) < _SEVERAL or any(one[1] > other[0] for one, other in itertools.pairwise(closed)):
            return [self._hits(query, condition) for condition in conditions]
        self._note(len(closed))
        counts = self._searcher.in_ranges(query, facet.name, closed)
        return [
            self._hits(query, condition) if range_ is None else counts.get(range_[0], 0)
            for condition, range_ in zip(conditions, ranges, strict=True)
        ]

    def _hits(self, query: Query, condition: Condition) -> int:
        self._note()
        return self._searcher.count(self._queries.all_of([query, self._compile(condition)]))

    def _note(self, number: int = 1) -> None:
        self._questions += number
        if self._questions > MOST_FACET_QUESTIONS:
            raise BadQuery("The facets of this search take too long: ask for fewer values, or fewer nested ones.")


def _closed_range(condition: Condition) -> tuple[int, int] | None:
    match condition:
        case Between(low=int(low), high=int(high), low_open=False, high_open=True) if -_EXACT < low < high < _EXACT:
            return low, high
        case _:
            return None


def _by_period(facet: BoundFacet) -> bool:
    return facet.limit > 0 and not facet.buckets and facet.unit is not None


def _by_each_value(facet: BoundFacet) -> bool:
    return facet.limit > 0 and not facet.buckets and facet.unit is None


def _kind(facet: BoundFacet) -> str:
    return layout.index_kind(facet.kind, folded=facet.folded)
